r"""Bounds of Dempster's combination from the beliefs and plausibilities of single classes.

O(K) for each row; the masses of larger sets are not needed.

Source i gives class k belief :math:`b_{ik}` and plausibility :math:`\pi_{ik}`. Before
normalisation the combined plausibility is :math:`a_k=\prod_i\pi_{ik}` exactly (Xu et al. 2015,
eq. 7), and the combined belief is at least :math:`a_k-d_k` with
:math:`d_k=\prod_i(\pi_{ik}-b_{ik})`: every source
contains k and one says k alone. The normaliser :math:`1-\kappa` lies between

.. math:: \max\Bigl(\max_ka_k,\;\sum_k(a_k-d_k)\Bigr)\quad\text{and}\quad
          \min\Bigl(1,\;\sum_ka_k\Bigr),

which meet where all sources are probabilities; for two classes it is
:math:`a_0+a_1-d` exactly, and for one source 1. All of it in logs: a hundred sources of a thousand
classes underflow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from dubito._typing import FloatArray


class Combined(NamedTuple):
    """Contour product, bounds on Dempster's result, and the largest conflict they allow."""

    proba: FloatArray
    lower: FloatArray
    upper: FloatArray
    conflict: FloatArray
    total_conflict: npt.NDArray[np.bool_]


def combine_contours(log_a: FloatArray, log_d: FloatArray, n_sources: int) -> Combined:
    """Combine given the logs of a and d, each (n, K); `total` marks rows without a class."""
    top = log_a.max(axis=1, keepdims=True)
    total = np.isneginf(top)
    top[total] = 0.0
    # From here on relative to the largest a of the row, which is then 1: nothing underflows.
    a, d = np.exp(log_a - top), np.exp(np.minimum(log_d, log_a) - top)
    every = np.where(total, 1.0, a.sum(axis=1, keepdims=True))
    sure = a - d
    if n_sources == 1:  # nothing to contradict: the normaliser is 1
        least = most = np.exp(-top)
    elif a.shape[1] == 2:
        least = most = np.where(total, 1.0, every - d.min(axis=1, keepdims=True))
    else:
        least = np.maximum(1.0, sure.sum(axis=1, keepdims=True))
        most = np.exp(np.minimum(np.log(every), np.maximum(-top, np.log(least))))
    proba = a / every
    kappa = -np.expm1(np.minimum(top + np.log(least), 0.0))
    return Combined(
        proba=proba,
        lower=np.minimum(sure / most, proba),
        upper=np.maximum(np.minimum(a / least, 1.0), proba),
        conflict=np.where(total, 1.0, kappa)[:, 0],
        total_conflict=total[:, 0],
    )
