r"""Gaussian classes with boxes for their means, fitted: from rows to energies, sets, critical c."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dubito._kernels.boxed_gaussians import WIDTH, BoxedGaussians, boxed_gaussians
from dubito._kernels.imprecise_gaussian import critical_c, energy_bounds, possible_sets
from dubito.discriminant._moments import Moments, class_moments, standard_deviations

if TYPE_CHECKING:
    from dubito._checks import BoolArray, FloatArray, IntArray

#: Rows from which on a second thread pays.
_ROWS_A_THREAD = 256


class LogDensityBounds(NamedTuple):
    """Lower and upper log densities of the classes, each (n, K)."""

    lower: FloatArray
    upper: FloatArray


class Settings(NamedTuple):
    """What of an estimator's parameters shapes the classes."""

    covariance_type: str
    box: str
    covariance_imprecision: float
    shrinkage: float | str | None
    tol: float
    unbiased: bool


class Effort(NamedTuple):
    """How much work a prediction may take."""

    max_nodes: int
    n_threads: int

    def options(self, n_rows: int) -> dict[str, int]:
        """Return the kernels' options for so many rows."""
        threads = max(1, min(self.n_threads, n_rows // _ROWS_A_THREAD))
        return {"max_nodes": self.max_nodes, "threads": threads}


class Priors(NamedTuple):
    """Prior probabilities of the classes, each (K,); lower and upper ones are reachable."""

    precise: FloatArray
    lower: FloatArray
    upper: FloatArray

    @property
    def are_precise(self) -> bool:
        return bool((self.lower == self.upper).all())


class GaussianModel(NamedTuple):
    """Fitted classes."""

    moments: Moments
    priors: Priors
    boxed: BoxedGaussians
    log_volumes: FloatArray  # (K,) minus twice the log density at no distance

    def half_widths(self, c: float) -> FloatArray:
        """Return half widths of the boxes of the means, (K, p)."""
        widths = self.boxed.table[:, WIDTH, None]
        return np.asarray(c * widths * self.boxed.units[self.boxed.shapes])

    def log_joint(self, rows: FloatArray) -> FloatArray:
        """Return log prior times density at the sample means, but for a constant of each row."""
        with np.errstate(divide="ignore"):  # a class of prior 0 has log -inf
            offsets = np.log(self.priors.precise) - 0.5 * self.log_volumes
        means, axes = self.moments.means, self.moments.axes
        if axes.ndim == 3 and len(axes) == 1:
            # What all classes share is left out: rows far away keep their digits.
            placed, centres = (rows - self.boxed.origins[0]) @ axes[0], self.boxed.centres
            return placed @ centres.T - 0.5 * (centres * centres).sum(axis=1) + offsets
        turn = np.matmul if axes.ndim == 3 else np.multiply
        ways = (turn(rows - mean, own) for mean, own in zip(means, axes, strict=True))
        squared = np.stack([np.einsum("ij,ij->i", way, way) for way in ways], axis=1)
        return np.asarray(offsets - 0.5 * squared)

    def log_density_bounds(
        self, rows: FloatArray, c: float, effort: Effort
    ) -> tuple[LogDensityBounds, int]:
        """Return lower and upper log densities, and the number of searches cut short."""
        densities = self.boxed.with_offsets(self.log_volumes, self.log_volumes)
        least, largest, cut = energy_bounds(densities, rows, c, **effort.options(len(rows)))
        return LogDensityBounds(-0.5 * largest, -0.5 * least), cut

    def sets(self, rows: FloatArray, c: float, effort: Effort) -> tuple[BoolArray, int]:
        """Return the maximal classes under 0/1 loss, and the number of searches cut short."""
        kept, cut = possible_sets(self.boxed, rows, c, **effort.options(len(rows)))
        return kept, int(cut.sum())

    def critical(self, rows: FloatArray, max_c: float, effort: Effort) -> tuple[FloatArray, int]:
        """Return the c at which each class enters, and the number of searches cut short."""
        entry, cut = critical_c(self.boxed, rows, max_c, **effort.options(len(rows)))
        return entry, int(cut.sum())


def sums_of_weights(codes: IntArray, weight: FloatArray, n_classes: int) -> FloatArray:
    """Return how much each class counts, (K,)."""
    return np.bincount(codes, weight, minlength=n_classes).astype(np.float64)


def learn(
    X: FloatArray,
    codes: IntArray,
    weight: FloatArray,
    priors: Priors,
    settings: Settings,
) -> GaussianModel:
    """Fit the classes 0 to K - 1, each of which has rows."""
    moments = class_moments(
        X,
        codes,
        len(priors.precise),
        weight,
        covariance_type=settings.covariance_type,
        shrinkage=settings.shrinkage,
        tol=settings.tol,
        unbiased=settings.unbiased,
    )
    n_classes = len(moments.counts)
    rank = np.broadcast_to(moments.rank, n_classes).astype(np.float64)
    # A direction that a class has lost counts as one of pooled spread, met at its centre: so
    # densities of classes of different rank are of one dimension.
    dimension = max(np.count_nonzero(moments.spread), rank.max())
    log_volumes = moments.log_det + np.full(n_classes, dimension * np.log(2 * np.pi))
    behind = moments.counts.sum() if settings.covariance_type == "tied" else moments.counts
    scales = np.log1p(settings.covariance_imprecision / behind) * (rank > 0)
    units, widths = box_of(settings, moments)
    with np.errstate(divide="ignore"):  # a class of prior zero is infinitely far away
        near, far = (log_volumes - 2 * np.log(bound) for bound in (priors.upper, priors.lower))
    boxed = boxed_gaussians(
        moments.means,
        moments.counts,
        moments.axes,
        units,
        widths,
        log_scales=np.broadcast_to(scales, n_classes).astype(np.float64),
        ranks=rank,
    )
    return GaussianModel(moments, priors, boxed.with_offsets(near, far), log_volumes)


def box_of(settings: Settings, moments: Moments) -> tuple[FloatArray, FloatArray]:
    """Return units (S, p) and widths (K,) of the boxes: half widths are c times their product."""
    n_shapes, p = len(moments.axes), moments.means.shape[1]
    if settings.box in {"inscribed", "standard_error"}:
        errors = 1.0 / np.sqrt(moments.counts)
        if settings.box == "inscribed":  # in a ball of radius 1, a cube has sides of 2 / sqrt(q)
            errors /= max(int(np.count_nonzero(moments.spread)), 1) ** 0.5
        return standard_deviations(moments), errors
    units = moments.spread if settings.box == "scaled" else np.ones(p)
    return np.tile(units, (n_shapes, 1)), 1.0 / moments.counts
