"""The set of classes with the largest expected utility, which decreases with the set size."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from dubito._numerics.set_utility import ALPHA, utility_of_size
from dubito._validation import TIE, as_float_array
from dubito.decision.risk import Belief, as_belief

if TYPE_CHECKING:
    from dubito._typing import BoolArray, FloatArray, IntArray

SizeUtility: TypeAlias = str | Callable[[int], float] | npt.ArrayLike


def set_utility(belief: Belief, utility: SizeUtility = "u65") -> BoolArray:
    r"""Return the set of classes with the largest expected utility.

    A set Y has utility :math:`g(|Y|)` if it contains the truth and 0 otherwise, so the best set
    of each size consists of the most probable classes and the best size maximises
    :math:`g(s)\sum_{i\le s}p_{(i)}`: exact, in O(K log K) per row.

    Parameters
    ----------
    belief : array of probabilities (n, K), Bounds, MassBatch or MassFunction
        Beliefs enter through their pignistic probability.
    utility : {"u65", "u80"}, callable or array-like of shape (K,), default "u65"
        :math:`g`. u65 and u80 are :math:`g(s)=\alpha/s+(1-\alpha)/s^2` with
        :math:`\alpha` = 1.6 and 2.2, which give a set of two 0.65 and 0.8; otherwise a non-negative
        function of the size, or its values for sizes 1..K.

    Returns
    -------
    ndarray of bool, shape (n, K)
        The chosen sets, never empty. Of equally good sizes the smallest is chosen; of equally
        probable classes the first.

    Examples
    --------
    >>> from dubito.decision import set_utility
    >>> set_utility([[0.6, 0.3, 0.1]], "u65")
    array([[ True, False, False]])
    >>> set_utility([[0.6, 0.3, 0.1]], "u80")
    array([[ True,  True, False]])
    """
    proba = as_belief(belief).pignistic()
    n, n_classes = proba.shape
    order = _most_probable_first(proba)
    expected = np.cumsum(np.take_along_axis(proba, order, axis=1), axis=1)
    expected *= _values_by_size(utility, n_classes)
    best = expected.max(axis=1, keepdims=True)
    size = np.argmax(expected >= best - TIE * np.abs(best), axis=1) + 1
    chosen = np.empty((n, n_classes), dtype=bool)
    np.put_along_axis(chosen, order, np.arange(n_classes) < size[:, None], axis=1)
    return chosen


def _most_probable_first(proba: FloatArray) -> IntArray:
    """Return the classes in decreasing probability; ties up to rounding in column order."""
    order = np.argsort(-proba, axis=1, kind="stable")
    decreasing = np.take_along_axis(proba, order, axis=1)
    tie_group = np.zeros(proba.shape, dtype=np.intp)
    tie_group[:, 1:] = np.cumsum(decreasing[:, :-1] - decreasing[:, 1:] > TIE, axis=1)
    within = np.argsort(tie_group * proba.shape[1] + order, axis=1)
    return np.take_along_axis(order, within, axis=1)


def _values_by_size(utility: SizeUtility, n_classes: int) -> FloatArray:
    """Return the utility of sets of size 1..K that contain the true class, (K,)."""
    sizes = range(1, n_classes + 1)
    if isinstance(utility, str):
        if utility not in ALPHA:
            raise ValueError(
                "utility must be 'u65', 'u80', a function of the set size, or its "
                f"{n_classes} values. Got {utility!r} instead."
            )
        return utility_of_size(sizes, ALPHA[utility])
    values = [utility(size) for size in sizes] if callable(utility) else utility
    checked = as_float_array(values, "utility", ndim=1)
    if len(checked) != n_classes:
        raise ValueError(
            f"utility must have one value for each size 1..{n_classes}; got {len(checked)}."
        )
    if (checked < 0).any():
        raise ValueError("utility must not be negative: a set that misses the truth earns 0.")
    return checked
