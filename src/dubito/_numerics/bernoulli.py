r"""Relative likelihoods of one Bernoulli parameter, and the belief and plausibility they imply.

With k successes and r failures (any non-negative numbers: counts or sums of sample weights),
n = k + r and :math:`\hat\theta=k/n`, the contour is
:math:`\mathrm{pl}(\theta)=\theta^k(1-\theta)^r/\hat\theta^k(1-\hat\theta)^r`, and

.. math::
    \mathrm{Bel}=\hat\theta-\int_0^{\hat\theta}\mathrm{pl}
    =\hat\theta-T\,I_{\hat\theta}(k+1,r+1),\qquad
    \mathrm{Pl}=\hat\theta+\int_{\hat\theta}^1\mathrm{pl}
    =\hat\theta+T\,I_{1-\hat\theta}(r+1,k+1)

with I the regularised incomplete beta function and
:math:`T=\int_0^1\mathrm{pl}=B(k+1,r+1)/\hat\theta^k(1-\hat\theta)^r`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import betainc, betaincinv, gammaln, xlog1py, xlogy

if TYPE_CHECKING:
    from dubito._typing import FloatArray

#: Largest total weight; a larger one is scaled down to it, because the incomplete beta function
#: fails for larger arguments. Belief and plausibility are at most 1e-7 apart there.
LARGEST_WEIGHT = 1e15

#: Least argument for which Stirling's series with five terms is exact to rounding.
_STIRLING_FROM = 16.0


def frequency(successes: FloatArray, failures: FloatArray) -> FloatArray:
    """Return the fraction of successes; one half where there is neither success nor failure."""
    total = successes + failures
    return np.divide(successes, total, out=np.full(np.shape(total), 0.5), where=total > 0)


def belief_interval(successes: FloatArray, failures: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return belief and plausibility of a success; 0 and 1 without observations."""
    successes, failures = _limited(successes, failures)
    estimate = frequency(successes, failures)
    total = total_contour(successes, failures)
    below = total * betainc(successes + 1, failures + 1, estimate)
    # The upper tail by reflection: 1 - betainc would cancel.
    above = total * betainc(failures + 1, successes + 1, frequency(failures, successes))
    return np.maximum(estimate - below, 0.0), np.minimum(estimate + above, 1.0)


def clopper_pearson(
    successes: FloatArray, failures: FloatArray, level: float
) -> tuple[FloatArray, FloatArray]:
    r"""Return the confidence limits of the probability of a success (Clopper and Pearson 1934).

    The :math:`\alpha/2` quantile of Beta(k, r+1) and the :math:`1-\alpha/2` quantile of
    Beta(k+1, r), with :math:`\alpha` = 1 - level; 0 without a success, 1 without a failure. Exact,
    never below the level, for counts; for sums of weights by the same formula.
    """
    successes, failures = _limited(successes, failures)
    lower = _lower_limit(successes, failures, 0.5 * (1 - level))
    return lower, 1 - _lower_limit(failures, successes, 0.5 * (1 - level))


def _limited(successes: FloatArray, failures: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return both weights, scaled down where their sum exceeds `LARGEST_WEIGHT`."""
    scale = LARGEST_WEIGHT / np.maximum(successes + failures, LARGEST_WEIGHT)
    return scale * successes, scale * failures


def _lower_limit(successes: FloatArray, failures: FloatArray, tail: float) -> FloatArray:
    """Return the `tail` quantile of Beta(k, r+1); 0 where k is 0."""
    positive = successes > 0
    quantile = betaincinv(np.where(positive, successes, 1.0), failures + 1, tail)
    return np.where(positive, np.minimum(quantile, frequency(successes, failures)), 0.0)


def contour(theta: FloatArray, successes: FloatArray, failures: FloatArray) -> FloatArray:
    """Return the relative likelihood of `theta`; all arguments broadcast."""
    estimate = frequency(successes, failures)
    largest = xlogy(successes, estimate) + xlogy(failures, frequency(failures, successes))
    return np.exp(np.minimum(xlogy(successes, theta) + xlog1py(failures, -theta) - largest, 0.0))


def total_contour(successes: FloatArray, failures: FloatArray) -> FloatArray:
    r"""Return the integral of the contour over [0, 1].

    :math:`T=1/((n+1)\,b)` with b the binomial probability of k successes at its mode. As in
    Loader's saddle-point form, :math:`\log b=\lambda(n)-\lambda(k)-\lambda(r)` where
    :math:`\lambda(x)=\log\Gamma(x+1)-x\log x+x` grows as :math:`\tfrac12\log x` only: no large
    logarithms cancel, however large n is.
    """
    n = successes + failures
    log_mode = _log_factorial_remainder(n)
    log_mode -= _log_factorial_remainder(successes) + _log_factorial_remainder(failures)
    return np.exp(-log_mode) / (n + 1)


def _log_factorial_remainder(x: FloatArray) -> FloatArray:
    r"""Return :math:`\lambda(x)=\log\Gamma(x+1)-x\log x+x`, without cancellation for large x."""
    small = np.minimum(x, _STIRLING_FROM)
    direct = gammaln(small + 1) - xlogy(small, small) + small
    large = np.maximum(x, _STIRLING_FROM)
    s = 1 / large**2
    series = (1 / 12 - s * (1 / 360 - s * (1 / 1260 - s * (1 / 1680 - s / 1188)))) / large
    return np.where(x < _STIRLING_FROM, direct, 0.5 * np.log(2 * np.pi * large) + series)
