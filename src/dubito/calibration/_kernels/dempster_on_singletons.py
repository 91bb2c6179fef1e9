r"""Bounds of Dempster's combination from the beliefs and plausibilities of single classes.

O(K) for each row; the masses of larger sets are not needed.

Source i gives class k belief :math:`b_{ik}` and plausibility :math:`\pi_{ik}`. Before
normalisation the combined plausibility is :math:`a_k=\prod_i\pi_{ik}` exactly (Xu et al. 2015,
eq. 7), and the combined belief is at least :math:`a_k-d_k` with
:math:`d_k=\prod_i(\pi_{ik}-b_{ik})`: every
focal set contains k, and at least one is {k}. The normaliser :math:`1-\kappa` lies between

.. math:: \max\Bigl(\max_ka_k,\;\sum_k(a_k-d_k)\Bigr)\quad\text{and}\quad
          \min\Bigl(1,\;\sum_ka_k\Bigr),

which are equal where all sources are probabilities; for two classes it is
:math:`a_0+a_1-d` exactly, and for one source 1. Products are taken as sums of logarithms: those of
a hundred sources of a thousand classes would underflow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from dubito._typing import FloatArray


class DempsterBounds(NamedTuple):
    """Bounds on Dempster's combination, (n, K), and the largest conflict that they allow, (n,)."""

    proba: FloatArray  # the normalised product of contours
    lower: FloatArray
    upper: FloatArray
    conflict: FloatArray
    total_conflict: npt.NDArray[np.bool_]


def dempster_bounds(log_a: FloatArray, log_d: FloatArray, n_sources: int) -> DempsterBounds:
    """Return bounds of Dempster's combination, from the logarithms of a and d above, each (n, K).

    Rows in total conflict are those where no class has a positive plausibility.
    """
    log_max = log_a.max(axis=1, keepdims=True)
    total_conflict = np.isneginf(log_max)
    log_max[total_conflict] = 0.0
    # Relative to the largest a of the row, so that its exponential does not underflow.
    a, d = np.exp(log_a - log_max), np.exp(np.minimum(log_d, log_a) - log_max)
    total = np.where(total_conflict, 1.0, a.sum(axis=1, keepdims=True))
    belief = a - d
    if n_sources == 1:  # no conflict: the normaliser is 1
        least_norm = greatest_norm = np.exp(-log_max)
    elif a.shape[1] == 2:
        least_norm = greatest_norm = np.where(
            total_conflict, 1.0, total - d.min(axis=1, keepdims=True)
        )
    else:
        least_norm = np.maximum(1.0, belief.sum(axis=1, keepdims=True))
        greatest_norm = np.exp(np.minimum(np.log(total), np.maximum(-log_max, np.log(least_norm))))
    proba = a / total
    kappa = -np.expm1(np.minimum(log_max + np.log(least_norm), 0.0))
    return DempsterBounds(
        proba=proba,
        lower=np.minimum(belief / greatest_norm, proba),
        upper=np.maximum(np.minimum(a / least_norm, 1.0), proba),
        conflict=np.where(total_conflict, 1.0, kappa)[:, 0],
        total_conflict=total_conflict[:, 0],
    )
