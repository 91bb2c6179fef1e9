"""Pooling: the mean of several maps whose weights make rows left out likely."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from dubito._checks import FloatArray, IntArray

#: Steps of the fixed-point iteration, and the change of weights that ends it.
_STEPS, _CHANGE = 200, 1e-6


def folds_by_margin(u: FloatArray, y: IntArray, n_folds: int) -> IntArray:
    """Return the fold of each row, from the rank of its margin: own score less the best other.

    Equal rows share a fold, so that a row of weight 2 counts as two rows, and neither the order of
    the rows nor that of the classes matters.
    """
    rows = np.arange(len(u))
    others = u.copy()
    others[rows, y] = -np.inf
    margin = u[rows, y] - others.max(axis=1)
    # Ties must stay ties: differences of equal scores may differ by rounding.
    unit = float(np.abs(margin).max()) or 1.0
    return np.unique(np.round(margin / unit, 12), return_inverse=True)[1] % n_folds


def balanced(fold: IntArray, weight: FloatArray, n_folds: int) -> bool:
    """Say whether every fold has rows and none more than half of them: many may be equal."""
    held = np.bincount(fold, weight, n_folds)
    return bool(held.min() > 0 and held.max() <= 0.5 * held.sum())


def fit_weights(likelihood: FloatArray, weight: FloatArray, prior: FloatArray) -> FloatArray:
    r"""Return the weights of maps that make the labels of left-out rows likeliest.

    The maximum of :math:`\sum_iw_i\log\sum_mv_mq_{im}+\sum_m a_m\log v_m` over weights v of the
    maps, by expectation maximisation.

    Parameters
    ----------
    likelihood : ndarray of shape (n, M)
        Probability q that each map gives to the true class.
    weight : ndarray of shape (n,)
        Weights of the rows.
    prior : ndarray of shape (M,)
        Rows a that count for each map before any is seen.
    """
    mix = prior / prior.sum()
    for _ in range(_STEPS):
        part = likelihood * mix
        new = (weight / part.sum(axis=1)) @ part + prior
        new /= new.sum()
        if np.abs(new - mix).max() < _CHANGE:
            return new
        mix = new
    return mix
