r"""Gaussian classes whose means lie in boxes: what the compiled kernels work on.

Distances are in energies, :math:`-2\log` of prior times density: small is probable. Class k's mean
lies within :math:`c\,e_{ki}w_k` of its sample mean along feature i: of units e and a width w that
is :math:`1/n_k`, or :math:`1/\sqrt{n_k}` for boxes of c standard errors.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dubito._kernels.diagonal_majorant import diagonal_majorants

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]


#: Columns of `BoxedGaussians.table`.
WIDTH, NEAR, FAR, LOG_SCALE, RANK, REACH = range(6)


class BoxedGaussians(NamedTuple):
    """K classes on S covariance matrices (one for all, or one each), p features.

    Diagonal ones have `roots`, the others `axes` and what is made of them; the rest is empty.
    Few arrays, since every one of them takes time to compile.
    """

    #: (K, 6): width w_k of the box; energy beside the distance, with the upper and with the lower
    #: prior; log of the factor within which the covariance is known; dimensions with spread; the
    #: longest way from the centre to a corner for c = 1, or more.
    table: FloatArray
    shapes: IntArray  # (K,) which covariance
    units: FloatArray  # (S, p) half widths of the boxes for c w_k = 1
    origins: FloatArray  # (S, p) what is taken from a row before it is turned to the axes
    roots: FloatArray  # (K, p) of the precisions of diagonal covariances
    axes: FloatArray  # (S, p, p) A with precision A A'
    centres: FloatArray  # (K, p) sample means on the axes
    centre_pulls: FloatArray  # (K, p) what the means contribute to the pull E P (x - m)
    quads: FloatArray  # (S, p, p) Q = E P E
    guards: FloatArray  # (S, 2, p) sums of |Q| along rows but for the diagonal; u with Diag(u) >= Q

    def with_offsets(self, near: FloatArray, far: FloatArray) -> BoxedGaussians:
        """Return the classes with other energies beside the distance, each (K,)."""
        table = self.table.copy()
        table[:, NEAR], table[:, FAR] = near, far
        return self._replace(table=table)


def boxed_gaussians(
    means: FloatArray,
    counts: FloatArray,
    axes: FloatArray,
    units: FloatArray,
    widths: FloatArray,
    *,
    log_scales: FloatArray,
    ranks: FloatArray,
) -> BoxedGaussians:
    """Prepare classes; `axes` is (S, p, p) with S = 1 or K, or (K, p) where diagonal.

    `units` is (S, p), `widths` is (K,). Nothing is added to the distances before `with_offsets`.
    """
    n_classes, p = means.shape
    table = np.zeros((n_classes, 6))
    table[:, WIDTH], table[:, LOG_SCALE], table[:, RANK] = widths, log_scales, ranks
    if axes.ndim == 2:
        table[:, REACH] = np.sqrt(((axes * units) ** 2).sum(axis=1)) * widths
        none = np.empty((0, p))
        cube = np.empty((0, p, p))
        shapes = np.arange(n_classes)
        return BoxedGaussians(table, shapes, units, means, axes, cube, none, none, cube, cube)
    tied = len(axes) == 1
    shapes = np.zeros(n_classes, dtype=np.intp) if tied else np.arange(n_classes)
    origins = np.average(means, axis=0, weights=counts)[None, :] if tied else means
    turned = units[:, :, None] * axes
    centres = (means - origins[0]) @ axes[0] if tied else np.zeros((n_classes, p))
    quads = np.ascontiguousarray(turned @ turned.transpose(0, 2, 1))
    others = np.abs(quads).sum(axis=2) - np.diagonal(quads, axis1=1, axis2=2)
    lifts = diagonal_majorants(quads)
    table[:, REACH] = np.sqrt(lifts.sum(axis=1))[shapes] * widths
    return BoxedGaussians(
        table,
        shapes,
        units,
        origins,
        roots=np.empty((0, p)),
        axes=axes,
        centres=centres,
        centre_pulls=centres @ turned[0].T,
        quads=quads,
        guards=np.stack([others, lifts], axis=1),
    )
