r"""Gaussian classes whose means lie in boxes: what the compiled kernels work on.

Distances are in energies, :math:`-2\log` of prior times density: small is probable. Class k's mean
lies within :math:`c\,e_i/n_k` of its sample mean along feature i.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dubito._kernels.diagonal_majorant import diagonal_majorants

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]


class BoxedGaussians(NamedTuple):
    """K classes on S covariance matrices (one for all, or one each), p features.

    Diagonal ones have `roots`, the others `axes` and what is made of them; the rest is empty.
    """

    origins: FloatArray  # (S, p) what is taken from a row before it is turned to the axes
    units: FloatArray  # (p,) half widths of the boxes for c / n_k = 1
    widths: FloatArray  # (K,) 1 / n_k
    shapes: IntArray  # (K,) which covariance
    near_offsets: FloatArray  # (K,) energy beside the distance, with the upper prior
    far_offsets: FloatArray  # (K,) the same with the lower prior
    log_scales: FloatArray  # (K,) log of the factor within which the covariance is known
    ranks: FloatArray  # (K,) dimensions with spread
    roots: FloatArray  # (K, p) of the precisions of diagonal covariances
    axes: FloatArray  # (S, p, p) A with precision A A'
    centres: FloatArray  # (K, p) sample means on the axes
    centre_pulls: FloatArray  # (K, p) what the means contribute to the pull E P (x - m)
    quads: FloatArray  # (S, p, p) Q = E P E
    reaches: FloatArray  # (S, p) sums of |Q| along rows, but for the diagonal
    lifts: FloatArray  # (S, p) u with Diag(u) above Q
    sizes: FloatArray  # (S,) sum of u: the largest squared way from centre to corner, or more


def boxed_gaussians(
    means: FloatArray,
    counts: FloatArray,
    axes: FloatArray,
    units: FloatArray,
    *,
    near_offsets: FloatArray,
    far_offsets: FloatArray,
    log_scales: FloatArray,
    ranks: FloatArray,
) -> BoxedGaussians:
    """Prepare classes; `axes` is (S, p, p) with S = 1 or K, or (K, p) where diagonal."""
    n_classes, p = means.shape
    common = {
        "units": units,
        "widths": 1.0 / counts,
        "near_offsets": near_offsets,
        "far_offsets": far_offsets,
        "log_scales": log_scales,
        "ranks": ranks,
    }
    if axes.ndim == 2:
        return BoxedGaussians(
            origins=means,
            shapes=np.arange(n_classes),
            roots=axes,
            axes=np.empty((0, p, p)),
            centres=np.empty((0, p)),
            centre_pulls=np.empty((0, p)),
            quads=np.empty((0, p, p)),
            reaches=np.empty((0, p)),
            lifts=np.empty((0, p)),
            sizes=((axes * units) ** 2).sum(axis=1),
            **common,
        )
    tied = len(axes) == 1
    origins = np.average(means, axis=0, weights=counts)[None, :] if tied else means
    centres = (means - origins[0]) @ axes[0] if tied else np.zeros((n_classes, p))
    turned = units[:, None] * axes
    quads = np.ascontiguousarray(turned @ turned.transpose(0, 2, 1))
    lifts = diagonal_majorants(quads)
    return BoxedGaussians(
        origins=origins,
        shapes=np.zeros(n_classes, dtype=np.intp) if tied else np.arange(n_classes),
        roots=np.empty((0, p)),
        axes=axes,
        centres=centres,
        centre_pulls=centres @ turned[0].T if tied else np.zeros((n_classes, p)),
        quads=quads,
        reaches=np.abs(quads).sum(axis=2) - np.diagonal(quads, axis1=1, axis2=2),
        lifts=lifts,
        sizes=lifts.sum(axis=1),
        **common,
    )
