"""The likelihood of vector scaling, as the penalised fit uses it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dubito._numerics.row_subsets import subsample_rows
from dubito.calibration._kernels.delta_method import SoftmaxMapWithErrors
from dubito.calibration._kernels.hessian_solvers import HessianSolver, dense_solver
from dubito.calibration._kernels.marginal_likelihood import maximise_marginal_likelihood
from dubito.calibration._kernels.penalised_fit import (
    BIASES,
    SLOPES,
    largest_slope_ridge,
    solve_map,
)
from dubito.calibration._kernels.shared_slope import (
    class_covariance,
    covariance_given_mean_slope,
    shared_slope,
)
from dubito.calibration._kernels.softmax_covariance import DenseDiagonal
from dubito.calibration._kernels.vector_scaling import (
    block_solver,
    diagonal_hessian,
    diagonal_value_and_blocks,
    likely_scores,
    likely_value_and_blocks,
)

if TYPE_CHECKING:
    from dubito._typing import FloatArray
    from dubito.calibration._kernels.light_labels import LightLabels
    from dubito.calibration._kernels.vector_scaling import Blocks, Likely

#: Largest number of classes for which the full Hessian is computed.
_DENSE_CLASSES = 200
#: Limit on the multiplications for a Hessian; where all rows need more, it is that of a sample.
_HESSIAN_MULTIPLICATIONS = 4e9
#: Number of scores in the sample of rows on which the ridge for many classes is chosen.
_SAMPLE_SCORES = 4e6
#: Largest number of scores with which the fit that gives the start uses all classes; with more, it
#: uses the likely ones.
_ALL_SCORES = 1e6
#: Largest probability of an unlikely class, by the temperature map.
_UNLIKELY = 1e-5


class VectorLikelihood:
    """The likelihood of vector scaling around the temperature map of slope `base_slope`.

    Parameters x are K slopes, less `base_slope` and in units of 1/`score_scale`, then K biases.
    """

    def __init__(
        self, u: FloatArray, labels: LightLabels, base_slope: float, score_scale: float
    ) -> None:
        self._u, self._labels = u, labels
        self._base_slope, self._score_scale = base_slope, score_scale
        n, n_classes = u.shape
        self.total = float(labels.weight.sum())
        self.groups = np.repeat([SLOPES, BIASES], n_classes)
        self._dense = n_classes <= _DENSE_CLASSES
        affordable = (
            _HESSIAN_MULTIPLICATIONS / n_classes**2 if self._dense else _SAMPLE_SCORES / n_classes
        )
        self._affordable = max(int(affordable), 2 * n_classes)
        # A Hessian of a sample costs more than a step; blocks are a by-product of the gradient.
        self.refresh = 20 if self._dense and n > self._affordable else 1
        self.tolerance = 1e-11 if self._dense and self.refresh == 1 else 1e-8
        self.has_full_hessian = self._dense
        self._target_sums = labels.own_score_sums(u), labels.target_sums(n_classes)
        self._last: tuple[FloatArray, tuple[float, FloatArray, Blocks]] | None = None

    def objective(self, x: FloatArray) -> tuple[float, FloatArray]:
        """Return the negative log-likelihood and its gradient."""
        return self._derivatives(x)[:2]

    def hessian_solver(self, x: FloatArray, penalty: FloatArray) -> HessianSolver:
        """Return the solver of the Hessian; with many classes of its block for each class alone."""
        if not self._dense:
            return block_solver(self._derivatives(x)[2], self._score_scale, penalty)
        return dense_solver(self._hessian(x), penalty)

    def largest_level_ridge(self) -> FloatArray:
        """Return what each group's ridge is lowered to, if larger, for bounds at a level."""
        return np.array([largest_slope_ridge(self._base_slope * self._score_scale), 1.0])

    def map_with_errors(self, x: FloatArray, ridge: FloatArray) -> SoftmaxMapWithErrors:
        """Return the map with standard errors; many classes share only the mean slope in them."""
        slope, bias = self._parameters(x)
        n_classes = len(slope)
        if not self._dense:
            blocks, direction = class_covariance(self._derivatives(x)[2], self._score_scale, ridge)
            shared = shared_slope(direction, (n_classes, 2))
            return SoftmaxMapWithErrors(slope, bias, self._score_scale, blocks, shared)
        covariance, direction, deviance = covariance_given_mean_slope(
            self, self._hessian(x), x, ridge
        )
        shared = shared_slope(direction.reshape(2, n_classes).T, (n_classes, 2), deviance)
        full = DenseDiagonal.from_covariance(covariance, n_classes)
        return SoftmaxMapWithErrors(slope, bias, self._score_scale, full, shared)

    def _hessian(self, x: FloatArray) -> FloatArray:
        """Return the Hessian of all rows, or where they are many an estimate from a sample."""
        slope, bias = self._parameters(x)
        rows = subsample_rows(len(self._u), self._affordable)
        weight = self._labels.weight[rows]
        weight = weight * (self.total / weight.sum())
        hessian = diagonal_hessian(self._u[rows], weight, slope, bias)
        n_classes = len(slope)
        hessian[:n_classes] /= self._score_scale
        hessian[:, :n_classes] /= self._score_scale
        return hessian

    def choose_ridge(self) -> tuple[FloatArray, FloatArray]:
        """Return the ridge with the greatest marginal likelihood, and the parameters there."""
        sample = self._sample()
        ridge, x = maximise_marginal_likelihood(sample)
        if self._dense or sample is self:
            return ridge, x
        # With few rows per class the marginal likelihood is flat: the sample only gives a start.
        return maximise_marginal_likelihood(self, ridge, x, rounds=8, tolerance=1e-3)

    def start_at(self, ridge: FloatArray) -> FloatArray:
        """Return the parameters at which the fit starts: 0, or of many rows the fit to a sample.

        0 is the temperature map.
        """
        start = np.zeros(len(self.groups))
        sample = self._sample()
        return start if sample is self else solve_map(sample, ridge, start, tolerance=1e-4).x

    def _sample(self) -> VectorLikelihood:
        """Return the likelihood on fewer rows, or on their likely classes; itself if small."""
        if len(self._u) > self._affordable:
            rows = subsample_rows(len(self._u), self._affordable)
            part = VectorLikelihood(
                self._u[rows], self._labels.take(rows), self._base_slope, self._score_scale
            )
            return part if self._dense else part._sample()
        if self._dense or self._u.size <= _ALL_SCORES:
            return self
        likely = likely_scores(self._u, self._labels.y, self._base_slope, _UNLIKELY)
        if likely is None:
            return self
        return LikelyClassesLikelihood(
            self._u, self._labels, self._base_slope, self._score_scale, likely
        )

    def _sums(
        self, slope: FloatArray, bias: FloatArray
    ) -> tuple[float, FloatArray, FloatArray, Blocks]:
        """Return the log normaliser summed over rows, its two gradients, and its Hessian blocks."""
        return diagonal_value_and_blocks(self._u, self._labels.weight, slope, bias)

    def _derivatives(self, x: FloatArray) -> tuple[float, FloatArray, Blocks]:
        """Return the objective, its gradient and the blocks of the Hessian.

        The last result is cached: the solver needs the Hessian at the point it has just evaluated,
        and a fit with another ridge starts where the last one ended.
        """
        if self._last is None or not np.array_equal(self._last[0], x):
            slope, bias = self._parameters(x)
            value, by_slope, by_bias, blocks = self._sums(slope, bias)
            target_slope, target_bias = self._target_sums
            value -= float(slope @ target_slope + bias @ target_bias)
            gradient = [(by_slope - target_slope) / self._score_scale, by_bias - target_bias]
            self._last = x.copy(), (value, np.concatenate(gradient), blocks)
        return self._last[1]

    def _parameters(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        n_classes = self._u.shape[1]
        return self._base_slope + x[:n_classes] / self._score_scale, x[n_classes:]


class LikelyClassesLikelihood(VectorLikelihood):
    """Vector scaling with the logits of unlikely classes fixed to those of the temperature map."""

    def __init__(
        self,
        u: FloatArray,
        labels: LightLabels,
        base_slope: float,
        score_scale: float,
        likely: Likely,
    ) -> None:
        super().__init__(u, labels, base_slope, score_scale)
        self._likely = likely

    def _sums(
        self, slope: FloatArray, bias: FloatArray
    ) -> tuple[float, FloatArray, FloatArray, Blocks]:
        return likely_value_and_blocks(self._likely, self._labels.weight, slope, bias)
