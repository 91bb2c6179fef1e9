r"""Boxes of the class means, and Gaussian classes with such boxes as compiled kernels take them.

The energy of a class is :math:`-2\log` of prior times density: small means probable. The mean of
class k lies within :math:`c\,e_{ki}w_k` of its sample mean along feature i, with units e and
sizes w of `box_units_and_sizes`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dubito.discriminant._kernels.diagonal_majorant import diagonal_majorants
from dubito.discriminant._kernels.moments import standard_deviations

if TYPE_CHECKING:
    from dubito._typing import FloatArray, IntArray
    from dubito.discriminant._kernels.moments import Moments

#: Rounding error of a squared distance, relative to the largest in the box.
DISTANCE_ROUNDING = 1e-14

#: Columns of `BoxedGaussians.parameters`.
SIZE, NEAR_OFFSET, FAR_OFFSET, LOG_FACTOR, RANK, RADIUS = range(6)


class BoxedGaussians(NamedTuple):
    """K classes on S covariance matrices (one for all, or one each), p features.

    Diagonal covariances have `roots`, the others `axes` and the arrays below it; unused arrays are
    empty. One array of `parameters` in place of six saves compile time.
    """

    #: (K, 6): size w_k of the box; energy at distance 0, with the upper and with the lower prior;
    #: log of the factor κ: covariances lie between the fitted one divided by κ and multiplied by κ;
    #: rank of the covariance; an upper bound on the distance from centre to corner for c = 1.
    parameters: FloatArray
    covariances: IntArray  # (K,) index of the covariance of each class, 0 to S - 1
    units: FloatArray  # (S, p) half widths of the boxes for c w_k = 1
    origins: FloatArray  # (S, p) subtracted from a row before its product with the axes
    roots: FloatArray  # (K, p) square roots of the precisions of diagonal covariances
    axes: FloatArray  # (S, p, p) A with precision A Aᵀ
    centres: FloatArray  # (K, p) Aᵀm: sample means m, less the origin, in coordinates of the axes
    linear_of_means: FloatArray  # (K, p) E P m; E has the units on its diagonal
    scaled_precisions: FloatArray  # (S, p, p) Q = E P E
    off_diagonal_sums: FloatArray  # (S, p) sums of |Q_ij| over j other than i
    majorants: FloatArray  # (S, p) u with Diag(u) - Q non-negative definite

    def half_widths(self, c: float) -> FloatArray:
        """Return the half widths of the boxes along the features, c e w, (K, p)."""
        return np.asarray(c * self.parameters[:, SIZE, None] * self.units[self.covariances])

    def with_offsets(self, near: FloatArray, far: FloatArray) -> BoxedGaussians:
        """Return the classes with other energies at distance 0, each (K,)."""
        parameters = self.parameters.copy()
        parameters[:, NEAR_OFFSET], parameters[:, FAR_OFFSET] = near, far
        return self._replace(parameters=parameters)


def boxed_gaussians(
    means: FloatArray,
    counts: FloatArray,
    axes: FloatArray,
    units: FloatArray,
    sizes: FloatArray,
    *,
    log_factors: FloatArray,
    ranks: FloatArray,
) -> BoxedGaussians:
    """Return Gaussian classes whose means may lie anywhere in a box; energies at distance 0 are 0.

    `axes` is (S, p, p) with S = 1 or K, or (K, p) for diagonal covariances; `units` (S, p) and
    `sizes` (K,) are those of `box_units_and_sizes`. `with_offsets` sets the energies at distance 0.
    """
    n_classes, p = means.shape
    parameters = np.zeros((n_classes, 6))
    parameters[:, SIZE] = sizes
    parameters[:, LOG_FACTOR], parameters[:, RANK] = log_factors, ranks
    if axes.ndim == 2:
        parameters[:, RADIUS] = np.sqrt(((axes * units) ** 2).sum(axis=1)) * sizes
        none = np.empty((0, p))
        cube = np.empty((0, p, p))
        covariances = np.arange(n_classes)
        return BoxedGaussians(
            parameters, covariances, units, means, axes, cube, none, none, cube, none, none
        )
    tied = len(axes) == 1
    covariances = np.zeros(n_classes, dtype=np.intp) if tied else np.arange(n_classes)
    origins = np.average(means, axis=0, weights=counts)[None, :] if tied else means
    scaled_axes = units[:, :, None] * axes
    centres = (means - origins[0]) @ axes[0] if tied else np.zeros((n_classes, p))
    scaled_precisions = np.ascontiguousarray(scaled_axes @ scaled_axes.transpose(0, 2, 1))
    diagonals = np.diagonal(scaled_precisions, axis1=1, axis2=2)
    majorants = diagonal_majorants(scaled_precisions)
    parameters[:, RADIUS] = np.sqrt(majorants.sum(axis=1))[covariances] * sizes
    return BoxedGaussians(
        parameters,
        covariances,
        units,
        origins,
        roots=np.empty((0, p)),
        axes=axes,
        centres=centres,
        linear_of_means=centres @ scaled_axes[0].T,
        scaled_precisions=scaled_precisions,
        off_diagonal_sums=np.abs(scaled_precisions).sum(axis=2) - diagonals,
        majorants=majorants,
    )


def box_units_and_sizes(box: str, moments: Moments) -> tuple[FloatArray, FloatArray]:
    r"""Return units e (S, p) and sizes w (K,) of the boxes, whose half widths are c e w.

    ==================  =========================  ==========================================
    box                 e                          w
    ==================  =========================  ==========================================
    "raw" (published)   1                          :math:`1/n_k`
    "scaled"            pooled deviation           :math:`1/n_k`
    "standard_error"    deviation of the class     :math:`1/\sqrt{n_k}`
    "inscribed"         deviation of the class     :math:`1/\sqrt{q\,n_k}`, q features that vary
    ==================  =========================  ==========================================
    """
    n_covariances, p = len(moments.axes), moments.means.shape[1]
    if box in {"inscribed", "standard_error"}:
        errors = 1.0 / np.sqrt(moments.counts)
        if box == "inscribed":
            # The cube inscribed in the unit ball of q dimensions has half width 1 / sqrt(q).
            errors /= max(int(np.count_nonzero(moments.spread)), 1) ** 0.5
        return standard_deviations(moments), errors
    units = moments.spread if box == "scaled" else np.ones(p)
    return np.tile(units, (n_covariances, 1)), 1.0 / moments.counts
