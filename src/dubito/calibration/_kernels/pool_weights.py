"""Weights of several maps in a mean of their probabilities, from rows left out of their fit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from dubito._typing import FloatArray, IntArray

#: Limit on the iterations of the fit, and the largest change of a weight at which it stops.
_ITERATIONS, _CHANGE = 200, 1e-6


def folds_by_margin(u: FloatArray, y: IntArray, n_folds: int) -> IntArray:
    """Return the fold of each row: the rank of its margin modulo `n_folds`.

    The margin is the score of the true class minus the best of the other classes. Equal rows are in
    one fold, so that a row of weight 2 counts as two rows, and the order of rows or classes does
    not matter.
    """
    rows = np.arange(len(u))
    others = u.copy()
    others[rows, y] = -np.inf
    margin = u[rows, y] - others.max(axis=1)
    # Rounded: margins that are equal in exact arithmetic may differ in the last digits.
    unit = float(np.abs(margin).max()) or 1.0
    return np.unique(np.round(margin / unit, 12), return_inverse=True)[1] % n_folds


def is_balanced(fold: IntArray, weight: FloatArray, n_folds: int) -> bool:
    """Return whether every fold has rows and none has more than half of their weight."""
    totals = np.bincount(fold, weight, n_folds)
    return bool(totals.min() > 0 and totals.max() <= 0.5 * totals.sum())


def fit_pool_weights(
    true_class_proba: FloatArray, weight: FloatArray, prior: FloatArray
) -> FloatArray:
    r"""Return the weights of maps that maximise the likelihood of left-out rows.

    The maximum of :math:`\sum_iw_i\log\sum_m\omega_mq_{im}+\sum_m a_m\log\omega_m` over weights
    :math:`\omega_m` of the maps, by expectation maximisation.

    Parameters
    ----------
    true_class_proba : ndarray of shape (n, M)
        Probability q of the true class by each map.
    weight : ndarray of shape (n,)
        Sample weights.
    prior : ndarray of shape (M,)
        Prior rows a of each map.
    """
    pool_weights = prior / prior.sum()
    for _ in range(_ITERATIONS):
        part = true_class_proba * pool_weights
        new = (weight / part.sum(axis=1)) @ part + prior
        new /= new.sum()
        if np.abs(new - pool_weights).max() < _CHANGE:
            return new
        pool_weights = new
    return pool_weights
