"""Confidence intervals of observed fractions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dubito._numerics.bernoulli import clopper_pearson

if TYPE_CHECKING:
    from dubito._typing import FloatArray


def effective_size(weight: FloatArray) -> float:
    r"""Return the effective sample size of weighted rows: :math:`(\sum w)^2/\sum w^2` (Kish).

    >>> effective_size(np.array([3.0, 3.0, 3.0])), round(effective_size(np.array([1.0, 3.0])), 2)
    (3.0, 1.6)
    """
    return float(weight.sum() ** 2 / (weight**2).sum())


def fraction_interval(
    fraction: FloatArray | float, size: FloatArray | float, confidence_level: float
) -> tuple[FloatArray, FloatArray]:
    r"""Return Clopper and Pearson's interval of a probability, from a fraction of `size` rows.

    It contains the true probability with **at least** that level, for every n and every
    probability; `reliability_curve` compares it with Wilson's.

    >>> low, high = fraction_interval(1.0, 30, 0.95)
    >>> print(low.round(3), high)
    0.884 1.0
    """
    hits = np.asarray(fraction * size)
    return clopper_pearson(hits, np.asarray(size - hits), confidence_level)
