r"""The Laplace interval: the usual interval of plain maximum likelihood.

The estimate of the log-odds is plus or minus t standard errors, with
:math:`t=\Phi^{-1}((1+\mathrm{level})/2)` and the standard error by the delta method from the
inverse Hessian of the negative log-likelihood; the ends are mapped by the sigmoid. Written for this
experiment, without code of the package.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import expit, logit, softmax
from scipy.stats import norm

if TYPE_CHECKING:
    from experiments.validity.cells import Floats, Ints

#: Log-odds of a row beyond which the estimate is taken to diverge.
_DIVERGED = 40.0


def sigmoid_interval(scores: Floats, y: Ints, query: Floats, level: float) -> tuple[Floats, Floats]:
    """Return the interval (q, 2) of both classes of a logistic regression with intercept.

    Parameters
    ----------
    scores : (n, J)
    y : (n,)
        Zeros and ones.
    query : (q, J)

    Returns
    -------
    lower, upper : (q, 2)
        nan where the classes are separated, so that no estimate exists.
    """
    design = np.column_stack([np.ones(len(scores)), scores])
    coef = np.zeros(design.shape[1])
    lost = np.full((len(query), 2), np.nan)
    for _ in range(60):
        p = expit(design @ coef)
        hessian = (design * (p * (1 - p))[:, None]).T @ design
        gradient = design.T @ (p - y)
        if np.linalg.cond(hessian) > 1e12:
            return lost, lost
        step = np.linalg.solve(hessian, gradient)
        coef = coef - step
        if np.abs(design @ coef).max() > _DIVERGED and _separates(design @ coef, y):
            return lost, lost
        if np.abs(step).max() < 1e-8 * (1 + np.abs(coef).max()):
            break
    else:
        return lost, lost
    at = np.column_stack([np.ones(len(query)), query])
    error = np.sqrt(np.einsum("qi,ij,qj->q", at, np.linalg.inv(hessian), at))
    half = norm.ppf((1 + level) / 2) * error
    lower, upper = expit(at @ coef - half), expit(at @ coef + half)
    return np.column_stack([1 - upper, lower]), np.column_stack([1 - lower, upper])


def _separates(log_odds: Floats, y: Ints) -> bool:
    return bool(((log_odds > 0) == (y == 1)).all())


def softmax_interval(
    features: Floats, y: Ints, query: Floats, level: float
) -> tuple[Floats, Floats]:
    """Return the interval (q, K) of a softmax whose utilities are linear in few coefficients.

    Parameters
    ----------
    features : (n, K, p)
        Utility of class k of row i is ``features[i, k] @ coef``.
    y : (n,)
        Class numbers.
    query : (q, K, p)

    Returns
    -------
    lower, upper : (q, K)
        nan where no estimate exists.
    """
    coef = np.zeros(features.shape[2])
    lost = np.full(query.shape[:2], np.nan)
    own = features[np.arange(len(y)), y]
    for _ in range(60):
        p = softmax(features @ coef, axis=1)
        centred = features - np.einsum("nk,nkp->np", p, features)[:, None]
        hessian = np.einsum("nk,nki,nkj->ij", p, centred, centred)
        gradient = (np.einsum("nk,nkp->np", p, features) - own).sum(axis=0)
        if np.linalg.cond(hessian) > 1e12:
            return lost, lost
        step = np.linalg.solve(hessian, gradient)
        coef = coef - step
        if p[np.arange(len(y)), y].min() > 1 - 1e-8:  # separated: the slope diverges
            return lost, lost
        if np.abs(step).max() < 1e-8 * (1 + np.abs(coef).max()):
            break
    else:
        return lost, lost
    p = softmax(query @ coef, axis=1)
    centred = query - np.einsum("qk,qkp->qp", p, query)[:, None]
    slope = centred / np.maximum(1 - p, 1e-300)[:, :, None]  # of the log-odds of each class
    error = np.sqrt(np.einsum("qki,ij,qkj->qk", slope, np.linalg.inv(hessian), slope))
    half = norm.ppf((1 + level) / 2) * error
    with np.errstate(divide="ignore"):
        centre = logit(p)
    return expit(centre - half), expit(centre + half)


def oracle_interval(
    seen: tuple[Floats, Floats], queried: tuple[Floats, Floats], precision: Floats, level: float
) -> tuple[Floats, Floats]:
    """Return the interval (q, K) given the prior distribution of the true parameters.

    The Gaussian posterior has the curvature of the likelihood at the truth and of the prior, so it
    exists for any rows; it is centred at the truth, since only widths are compared.

    Parameters
    ----------
    seen, queried : tuple of (n, K, p) and (n, K)
        Features, in which logits are linear, and true probabilities.
    precision : (p,)
        One over the variance of each parameter.
    """
    features, p = seen
    apart = (features - np.einsum("nk,nkp->np", p, features)[:, None]) * np.sqrt(p)[:, :, None]
    flat = apart.reshape(-1, apart.shape[2])
    covariance = np.linalg.inv(flat.T @ flat + np.diag(precision))
    query, q = queried
    centred = query - np.einsum("qk,qkp->qp", q, query)[:, None]
    slope = centred / np.maximum(1 - q, 1e-300)[:, :, None]
    error = np.sqrt(np.einsum("qkp,qkp->qk", slope @ covariance, slope))
    half = norm.ppf((1 + level) / 2) * error
    return expit(logit(q) - half), expit(logit(q) + half)


def proportion_interval(successes: Floats, rows: Floats, level: float) -> tuple[Floats, Floats]:
    """Return the interval of a proportion by its log-odds; nan if one outcome is absent."""
    with np.errstate(divide="ignore", invalid="ignore"):
        centre = np.log(successes) - np.log(rows - successes)
        half = norm.ppf((1 + level) / 2) * np.sqrt(1 / successes + 1 / (rows - successes))
        seen = (successes > 0) & (successes < rows)
        lower, upper = expit(centre - half), expit(centre + half)
    return np.where(seen, lower, np.nan), np.where(seen, upper, np.nan)
