"""The fitted model: Gaussian classes with boxed means, priors, and bounds on log densities."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dubito.discriminant._kernels.class_boxes import (
    BoxedGaussians,
    box_units_and_sizes,
    boxed_gaussians,
)
from dubito.discriminant._kernels.moments import CovarianceSettings, Moments, class_moments
from dubito.discriminant._kernels.row_searches import energy_bounds

if TYPE_CHECKING:
    from dubito._typing import FloatArray, IntArray
    from dubito.discriminant._kernels.posterior import Priors
    from dubito.discriminant._kernels.row_searches import SearchLimits


class LogDensityBounds(NamedTuple):
    """Lower and upper log densities of the classes, each (n, K)."""

    lower: FloatArray
    upper: FloatArray


class ModelSettings(NamedTuple):
    """Parameters of the estimator that determine the fitted classes."""

    covariance: CovarianceSettings
    covariance_imprecision: float
    box: str


class GaussianModel(NamedTuple):
    """Fitted Gaussian classes with boxed means."""

    moments: Moments
    priors: Priors
    boxed: BoxedGaussians
    log_det: FloatArray  # (K,) log det(2 pi covariance)

    def log_joint(self, rows: FloatArray) -> FloatArray:
        """Return log of prior times density at the sample means, up to a constant per row."""
        with np.errstate(divide="ignore"):  # a class of prior 0 has log -inf
            offsets = np.log(self.priors.precise) - 0.5 * self.log_det
        means, axes = self.moments.means, self.moments.axes
        if axes.ndim == 3 and len(axes) == 1:
            # Without the quadratic term common to all classes: no cancellation in rows far away.
            projected, centres = (rows - self.boxed.origins[0]) @ axes[0], self.boxed.centres
            return projected @ centres.T - 0.5 * (centres * centres).sum(axis=1) + offsets
        project = np.matmul if axes.ndim == 3 else np.multiply
        differences = (project(rows - mean, own) for mean, own in zip(means, axes, strict=True))
        squared = np.stack([np.einsum("ij,ij->i", d, d) for d in differences], axis=1)
        return np.asarray(offsets - 0.5 * squared)

    def log_density_bounds(
        self, rows: FloatArray, c: float, limits: SearchLimits
    ) -> tuple[LogDensityBounds, int]:
        """Return lower and upper log densities, and the number of unsettled searches.

        These stopped at their limit before the largest distance was certain; bounds stay valid.
        """
        densities = self.boxed.with_offsets(self.log_det, self.log_det)
        near, far, n_unsettled = energy_bounds(densities, rows, c, limits)
        return LogDensityBounds(-0.5 * far, -0.5 * near), n_unsettled


def fit_model(
    X: FloatArray,
    codes: IntArray,
    weight: FloatArray,
    priors: Priors,
    settings: ModelSettings,
) -> GaussianModel:
    """Return the model of the classes 0 to K - 1, each of which has rows."""
    moments = class_moments(
        X,
        codes,
        len(priors.precise),
        weight,
        settings.covariance,
    )
    n_classes = len(moments.counts)
    rank = np.broadcast_to(moments.rank, n_classes).astype(np.float64)
    # A direction in which a class has no spread counts with the pooled spread at distance 0: so
    # densities of classes of different rank have the same dimension.
    dimension = max(np.count_nonzero(moments.spread), rank.max())
    log_det = moments.log_det + np.full(n_classes, dimension * np.log(2 * np.pi))
    row_counts = (
        moments.counts.sum() if settings.covariance.covariance_type == "tied" else moments.counts
    )
    log_factors = np.log1p(settings.covariance_imprecision / row_counts) * (rank > 0)
    units, sizes = box_units_and_sizes(settings.box, moments)
    with np.errstate(divide="ignore"):  # of prior 0: infinite energy, -2 log(prior times density)
        near, far = (log_det - 2 * np.log(bound) for bound in (priors.upper, priors.lower))
    boxed = boxed_gaussians(
        moments.means,
        moments.counts,
        moments.axes,
        units,
        sizes,
        log_factors=np.broadcast_to(log_factors, n_classes).astype(np.float64),
        ranks=rank,
    )
    return GaussianModel(moments, priors, boxed.with_offsets(near, far), log_det)
