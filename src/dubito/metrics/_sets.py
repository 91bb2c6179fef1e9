"""Utility and size of label sets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dubito._labels import as_labels, label_columns
from dubito._numerics.set_utility import ALPHA, utility_of_size
from dubito._validation import drop_zero_weights
from dubito._wording import name_rows
from dubito.belief import Bounds, MassBatch

if TYPE_CHECKING:
    import numpy.typing as npt

    from dubito._typing import BoolArray, FloatArray, IntArray


def utility_discounted_accuracy(
    y_true: npt.ArrayLike,
    sets: npt.ArrayLike,
    alpha: float,
    *,
    classes: npt.ArrayLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
) -> float:
    r"""Return the mean utility of label sets: 1 for the true label alone, less for larger sets.

    .. math:: u_\alpha(y, Y) = \frac{\alpha}{|Y|} + \frac{1 - \alpha}{|Y|^2}
              \quad\text{if } y \in Y, \text{ else } 0.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        True labels.
    sets : array-like of bool, shape (n, K)
        ``sets[i, k]`` is whether the set of row i contains class k, as ``predict_set`` gives it;
        integers 0 and 1 are allowed. An empty set has utility 0.
    alpha : float
        The reward for caution, in [0, 3]: a pair that contains the true label is worth
        :math:`(1 + \alpha) / 4`. 1 is discounted accuracy (a pair is worth 1/2), 1.6 is `u65`, 2.2
        is `u80`. Below 0 large sets would cost more than errors; above 3 a pair would be
        worth more than the label itself.
    classes : array-like of shape (K,), default=None
        The label of each column, as in ``estimator.classes_``. Without it, integers in 0..K-1 are
        column numbers, and otherwise exactly K distinct labels are taken in sorted order.
    sample_weight : array-like of shape (n,), default=None
        Row weights: 2 counts as the row twice, 0 as no row.

    Returns
    -------
    float
        In [0, 1]; 1 is best. For sets of one label it is the accuracy, for every alpha.

    References
    ----------
    Zaffalon, Corani and Mauá (2012), Evaluating credal classifiers by utility-discounted
    predictive accuracy.

    Examples
    --------
    Right alone, right in a pair, wrong:

    >>> from dubito.metrics import utility_discounted_accuracy
    >>> sets = [[True, False, False], [True, True, False], [False, False, True]]
    >>> round(utility_discounted_accuracy(["a", "b", "a"], sets, alpha=1.6,
    ...                                   classes=["a", "b", "c"]), 4)
    0.55
    """
    return _mean_utility(compare_sets(y_true, sets, classes, sample_weight), _check_alpha(alpha))


def u65(
    y_true: npt.ArrayLike,
    sets: npt.ArrayLike,
    *,
    classes: npt.ArrayLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
) -> float:
    r"""Return the mean utility of label sets, a pair that contains the true label being worth 0.65.

    `utility_discounted_accuracy` with :math:`\alpha = 1.6`: a mild reward for caution
    (Zaffalon et al. 2012).

    Parameters
    ----------
    y_true, sets, classes, sample_weight
        As in `utility_discounted_accuracy`.

    Returns
    -------
    float
        In [0, 1]; 1 is best.

    Examples
    --------
    >>> from dubito.metrics import u65
    >>> round(u65([0, 1], [[True, True], [False, True]]), 4)
    0.825
    """
    return _mean_utility(compare_sets(y_true, sets, classes, sample_weight), ALPHA["u65"])


def u80(
    y_true: npt.ArrayLike,
    sets: npt.ArrayLike,
    *,
    classes: npt.ArrayLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
) -> float:
    r"""Return the mean utility of label sets, a pair that contains the true label being worth 0.8.

    `utility_discounted_accuracy` with :math:`\alpha = 2.2`: a strong reward for caution
    (Zaffalon et al. 2012).

    Parameters
    ----------
    y_true, sets, classes, sample_weight
        As in `utility_discounted_accuracy`.

    Returns
    -------
    float
        In [0, 1]; 1 is best.

    Examples
    --------
    >>> from dubito.metrics import u80
    >>> round(u80([0, 1], [[True, True], [False, True]]), 4)
    0.9
    """
    return _mean_utility(compare_sets(y_true, sets, classes, sample_weight), ALPHA["u80"])


def discounted_accuracy(
    y_true: npt.ArrayLike,
    sets: npt.ArrayLike,
    *,
    classes: npt.ArrayLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
) -> float:
    r"""Return the accuracy of a label drawn at random from each set.

    The mean of :math:`1[y \in Y] / |Y|`, which is `utility_discounted_accuracy` with
    :math:`\alpha = 1`: no reward for caution.

    Parameters
    ----------
    y_true, sets, classes, sample_weight
        As in `utility_discounted_accuracy`.

    Returns
    -------
    float
        In [0, 1]; 1 is best.

    References
    ----------
    Corani and Zaffalon (2009), Lazy naive credal classifier.

    Examples
    --------
    >>> from dubito.metrics import discounted_accuracy
    >>> discounted_accuracy([0, 1], [[True, True], [False, True]])
    0.75
    """
    return _mean_utility(compare_sets(y_true, sets, classes, sample_weight), 1.0)


def mean_set_size(sets: npt.ArrayLike, *, sample_weight: npt.ArrayLike | None = None) -> float:
    r"""Return the mean number of labels in a set: the mean of :math:`|Y|`.

    Parameters
    ----------
    sets : array-like of bool, shape (n, K)
        Label sets, as ``predict_set`` gives them. An empty set has size 0.
    sample_weight : array-like of shape (n,), default=None
        Row weights: 2 counts as the row twice, 0 as no row.

    Returns
    -------
    float
        In [0, K]; 1 when every set is a single label.

    References
    ----------
    Vovk, Fedorova, Nouretdinov and Gammerman (2016), Criteria of efficiency for conformal
    prediction (criterion N).

    Examples
    --------
    >>> from dubito.metrics import mean_set_size
    >>> mean_set_size([[True, True], [False, True]])
    1.5
    """
    weight, checked = drop_zero_weights(sample_weight, sets=check_sets(sets))
    return float(np.average(checked.sum(axis=1), weights=weight))


class ComparedSets(NamedTuple):
    """Label sets compared with the true labels; each field is (n,)."""

    true_column: IntArray  # of the true label
    hit: BoolArray  # whether the set contains the true label
    size: IntArray  # number of labels in the set
    weight: FloatArray  # sample weights


def compare_sets(
    y_true: npt.ArrayLike,
    sets: npt.ArrayLike,
    classes: npt.ArrayLike | None,
    sample_weight: npt.ArrayLike | None,
) -> ComparedSets:
    """Return checked label sets, compared with the true labels."""
    weight, labels, checked = drop_zero_weights(
        sample_weight, y_true=as_labels(y_true, "y_true"), sets=check_sets(sets)
    )
    return compare_columns(
        checked, label_columns(labels, checked.shape[1], classes, "y_true"), weight
    )


def compare_columns(checked: BoolArray, true_column: IntArray, weight: FloatArray) -> ComparedSets:
    """Return checked label sets, compared with the column of each row's label."""
    hit = checked[np.arange(len(checked)), true_column]
    return ComparedSets(true_column, hit, checked.sum(axis=1), weight)


def utility(compared: ComparedSets, alpha: float) -> FloatArray:
    """Return the utility of each set."""
    value = utility_of_size(np.maximum(compared.size, 1), alpha)  # an empty set is never a hit
    return np.asarray(compared.hit * value)


def _mean_utility(compared: ComparedSets, alpha: float) -> float:
    return float(np.average(utility(compared, alpha), weights=compared.weight))


def _check_alpha(alpha: Any) -> float:
    try:
        number = float(alpha)
    except (TypeError, ValueError):
        number = np.nan
    if not 0.0 <= number <= 3.0:
        raise ValueError(
            f"alpha must be a number in [0, 3] (1.6 is u65, 2.2 is u80). Got {alpha!r} instead."
        )
    return number


def check_sets(sets: npt.ArrayLike) -> BoolArray:
    """Return label sets as a boolean array."""
    expected = (
        "sets must be a boolean (n, K) array, True where a row's set contains the class, "
        "as predict_set gives it"
    )
    if isinstance(sets, Bounds | MassBatch):
        raise TypeError(
            f"{expected}; got {type(sets).__name__}. A decision rule makes sets of it, "
            "such as dubito.decision.interval_dominance."
        )
    if hasattr(sets, "toarray"):
        raise TypeError(f"{expected}; got a sparse matrix: pass sets.toarray().")
    try:
        array = np.asarray(sets)
    except ValueError as error:  # rows of unequal length
        raise ValueError(f"{expected}; got rows of unequal length.") from error
    if array.ndim != 2:
        raise ValueError(f"{expected}; got an array of shape {array.shape}.")
    if array.shape[1] < 1:
        raise ValueError(f"{expected}; got no columns (shape {array.shape}).")
    if array.dtype == object:  # pandas gives nullable booleans so
        array = np.asarray(array.tolist())
    if array.dtype == bool:
        return array
    if array.dtype.kind not in "iu":
        raise TypeError(
            f"{expected}; got values of type {array.dtype}. "
            "Probabilities are turned into sets by a decision rule or a threshold."
        )
    odd = np.flatnonzero(((array != 0) & (array != 1)).any(axis=1))
    if len(odd):
        raise ValueError(f"{expected}; integers must be 0 or 1, unlike in {name_rows(odd)}.")
    return array.astype(bool)
