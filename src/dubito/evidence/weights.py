"""Masses, bounds, conflict and ignorance from weights of evidence (Denœux 2019, Prop. 1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dubito._numerics import evidence_weights
from dubito._validation import as_float_array
from dubito._wording import name_rows
from dubito.belief import Bounds, Frame, MassBatch
from dubito.belief.frame import DENSE_LIMIT

if TYPE_CHECKING:
    import numpy.typing as npt

    from dubito._typing import FloatArray


def bounds_from_weights(w_plus: npt.ArrayLike, w_minus: npt.ArrayLike) -> Bounds:
    r"""Return belief and plausibility of each class, given the evidence for and against it.

    Dempster's rule combines the simple mass functions :math:`\{k\}^{w^+_k}` and
    :math:`\overline{\{k\}}^{w^-_k}` of all classes (Denœux 2019, eq. 31; a weight w is a degree
    of support :math:`1-e^{-w}`). With :math:`q_k=1-e^{-w^-_k}`,

    .. math::
        Bel(k)&=e^{-w^-_k}\bigl(e^{w^+_k}-1+\prod_{l\ne k}q_l\bigr)/D,\qquad
        Pl(k)=e^{w^+_k-w^-_k}/D,\\
        D&=\sum_ke^{-w^-_k}(e^{w^+_k}-1)+1-\prod_kq_k .

    Parameters
    ----------
    w_plus, w_minus : array-like of shape (n, K)
        Non-negative and finite: the total weights of `EvidenceModel.totals`.

    Returns
    -------
    Bounds
        Of shape (n, K). The plausibilities are the softmax of ``w_plus - w_minus`` times a number
        of at least 1 per row. The belief is at most that softmax for two classes; for more it may
        exceed it.

    Notes
    -----
    The time is O(K) per row. Computed without subtractions and positive exponents, the results
    have at least ten correct digits for weights that are 0 or from 1e-9 to over 1e4.

    Examples
    --------
    >>> from dubito.evidence import bounds_from_weights
    >>> bounds = bounds_from_weights([[2.0, 0.0, 0.0]], [[0.0, 0.5, 0.0]])
    >>> bounds.lower.round(3), bounds.upper.round(3)
    (array([[0.865, 0.   , 0.   ]]), array([[1.   , 0.082, 0.135]]))
    """
    return Bounds._trusted(*evidence_weights.bounds(*_check_weights(w_plus, w_minus)))


def mass_from_weights(
    w_plus: npt.ArrayLike, w_minus: npt.ArrayLike, *, classes: Any = None
) -> MassBatch:
    r"""Return the full mass functions, given the evidence for and against each class.

    With q and D of `bounds_from_weights`, sets of two and more classes have
    :math:`m(A)=\prod_{k\in A}e^{-w^-_k}\prod_{k\notin A}q_k/D` (Denœux 2019, Prop. 1); the mass of
    a single class is its belief.

    Parameters
    ----------
    w_plus, w_minus : array-like of shape (n, K)
        Non-negative and finite, K up to 20: the total weights of `EvidenceModel.totals`.
    classes : sequence of K labels, optional
        By default 0, 1, ..., K-1.

    Returns
    -------
    MassBatch
        Dense: all :math:`2^K-1` non-empty subsets in bit-mask order.

    Examples
    --------
    >>> from dubito.evidence import mass_from_weights
    >>> batch = mass_from_weights([[2.0, 0.0, 0.0]], [[0.0, 0.5, 0.0]], classes=["a", "b", "c"])
    >>> {A: round(float(m), 3) for A, m in batch[0].masses.items()}
    {('a',): 0.865, ('a', 'c'): 0.053, ('a', 'b', 'c'): 0.082}
    """
    w_plus, w_minus = _check_weights(w_plus, w_minus)
    n_classes = w_plus.shape[1]
    if n_classes > DENSE_LIMIT:
        raise ValueError(
            f"masses of all 2^{n_classes} sets of classes are not listed beyond {DENSE_LIMIT} "
            "classes. Ask for the bounds (bounds_from_weights, predict_bounds): belief and "
            "plausibility of each class, for any number of them."
        )
    frame = Frame(range(n_classes) if classes is None else classes)
    if len(frame) != n_classes:
        raise ValueError(f"classes names {len(frame)} classes; the weights have {n_classes}.")
    return MassBatch._trusted(frame, frame.subsets(), evidence_weights.masses(w_plus, w_minus))


def conflict_from_weights(w_plus: npt.ArrayLike, w_minus: npt.ArrayLike) -> FloatArray:
    r"""Return the degree of conflict of the evidence in each row.

    It is the mass of the empty set before normalising, when all simple mass functions of
    `bounds_from_weights` are combined: :math:`\kappa=1-e^{-\sum_kw^+_k}D`. For two classes it is
    eq. 21 of Denœux 2019. For more the paper's appendix counts only the conflict between all
    evidence for and all evidence against classes, each normalised first; that number depends on how
    the same evidence is divided into weights for and against, this one does not.

    Parameters as for `bounds_from_weights`.

    Returns
    -------
    ndarray of shape (n,)
        From 0, no conflict, to 1.

    Examples
    --------
    >>> from dubito.evidence import conflict_from_weights
    >>> conflict_from_weights([[1.0, 1.0], [1.0, 0.0]], [[0.0, 0.0], [0.0, 0.0]]).round(3)
    array([0.4, 0. ])
    """
    return evidence_weights.conflict(*_check_weights(w_plus, w_minus))


def ignorance_from_weights(w_plus: npt.ArrayLike, w_minus: npt.ArrayLike) -> FloatArray:
    r"""Return the ignorance in each row: the mass of the whole frame.

    :math:`m(\Theta)=e^{-\sum_kw^-_k}/D` with D of `bounds_from_weights`.

    Parameters as for `bounds_from_weights`.

    Returns
    -------
    ndarray of shape (n,)
        From 0 to 1; 1 is no evidence at all.

    Examples
    --------
    >>> from dubito.evidence import ignorance_from_weights
    >>> ignorance_from_weights([[0.0, 0.0], [1.0, 1.0]], [[0.0, 0.0], [0.0, 0.0]]).round(3)
    array([1.   , 0.225])
    """
    return evidence_weights.ignorance(*_check_weights(w_plus, w_minus))


def _check_weights(w_plus: Any, w_minus: Any) -> tuple[FloatArray, FloatArray]:
    """Return both arrays of weights, checked to have the same shape."""
    plus, minus = _non_negative(w_plus, "w_plus"), _non_negative(w_minus, "w_minus")
    if plus.shape != minus.shape:
        raise ValueError(
            f"w_plus and w_minus must have one shape, a column for each class; got {plus.shape} "
            f"and {minus.shape}."
        )
    if plus.shape[1] < 2:
        raise ValueError(
            "weights of evidence need a column for each of at least two classes; got "
            f"{plus.shape[1]}."
        )
    return plus, minus


def _non_negative(weights: Any, name: str) -> FloatArray:
    array = as_float_array(weights, name, ndim=2)
    if array.size and array.min() < 0:
        rows = name_rows(np.flatnonzero((array < 0).any(axis=1)))
        raise ValueError(
            f"{name} must not be negative, as in {rows}: evidence for a class goes into w_plus, "
            "evidence against it into w_minus, both as positive numbers."
        )
    return np.ascontiguousarray(array)
