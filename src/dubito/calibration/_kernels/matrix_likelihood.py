"""The likelihood of matrix scaling, as the penalised fit uses it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dubito._numerics.row_subsets import subsample_rows
from dubito._numerics.softmax import softmax_in_place
from dubito.calibration._kernels.delta_method import SoftmaxMapWithErrors
from dubito.calibration._kernels.hessian_solvers import HessianSolver, dense_solver
from dubito.calibration._kernels.marginal_likelihood import (
    maximise_marginal_likelihood,
    quadratic_ridge,
)
from dubito.calibration._kernels.matrix_scaling import (
    Spectrum,
    kronecker_solver,
    matrix_hessian,
    matrix_value,
    spectrum,
)
from dubito.calibration._kernels.penalised_fit import (
    BIASES,
    LARGEST_RIDGE,
    OFF_DIAGONAL,
    SLOPES,
    largest_slope_ridge,
    solve_map,
)
from dubito.calibration._kernels.shared_slope import (
    class_covariance,
    covariance_given_mean_slope,
    shared_slope,
)
from dubito.calibration._kernels.softmax_covariance import DenseMatrix, KroneckerMatrix
from dubito.calibration._kernels.vector_likelihood import VectorLikelihood
from dubito.calibration._kernels.vector_scaling import Blocks

if TYPE_CHECKING:
    from dubito._typing import FloatArray
    from dubito.calibration._kernels.light_labels import LightLabels

#: Largest number of parameters for which the full Hessian is computed.
_DENSE_PARAMETERS = 1100
#: Limit on the multiplications for a Hessian; where all rows need more, it is that of a sample.
_HESSIAN_MULTIPLICATIONS = 4e9

#: Largest number of classes for which bounds use the full covariance: 0.8 MB for 24 classes.
_COVARIANCE_CLASSES = 24
#: Largest prior variance, in log-odds, of the sum of a row's entries off the diagonal.
_OFF_DIAGONAL_VARIANCE = 9.0

#: Number of steps between approximate Hessians, more than a fit takes: the first Hessian is good
#: enough, because the fit starts close to its optimum.
_NO_REFRESH = 10_000
#: Limit on the fits for the choice of the ridge where each is expensive.
_ROUNDS = 8


class MatrixLikelihood:
    """The likelihood of matrix scaling around the temperature map of slope `base_slope`.

    Parameters x are (K, K+1): the matrix, less `base_slope` on the diagonal and in units of
    1/`score_scale`, and the bias last.
    """

    def __init__(
        self, u: FloatArray, labels: LightLabels, base_slope: float, score_scale: float
    ) -> None:
        self._u, self._labels = u, labels
        self._base_slope, self._score_scale = base_slope, score_scale
        n, n_classes = u.shape
        self.total = float(labels.weight.sum())
        groups = np.full((n_classes, n_classes + 1), OFF_DIAGONAL)
        np.fill_diagonal(groups, SLOPES)
        groups[:, -1] = BIASES
        self.groups = groups.ravel()
        self._dense = groups.size <= _DENSE_PARAMETERS
        cost = groups.size**2 if self._dense else groups.size
        self._affordable = max(int(_HESSIAN_MULTIPLICATIONS / cost), 2 * n_classes)
        self.refresh = 1 if self._dense and n <= self._affordable else _NO_REFRESH
        self.tolerance = 1e-11 if self.refresh == 1 else 1e-8
        self.has_full_hessian = self._dense and n_classes <= _COVARIANCE_CLASSES
        self._target_sums = labels.score_sums(u), labels.target_sums(n_classes)
        self._spectrum: Spectrum | None = None

    def objective(self, x: FloatArray) -> tuple[float, FloatArray]:
        """Return the negative log-likelihood and its gradient."""
        matrix, bias = self._parameters(x)
        value, by_matrix, by_bias = matrix_value(self._u, self._labels.weight, matrix, bias)
        target_matrix, target_bias = self._target_sums
        value -= float(np.vdot(matrix, target_matrix) + bias @ target_bias)
        by_matrix = (by_matrix - target_matrix) / self._score_scale
        return value, np.column_stack([by_matrix, by_bias - target_bias]).ravel()

    def hessian_solver(self, x: FloatArray, penalty: FloatArray) -> HessianSolver:
        """Return the solver of the full Hessian, or where it is too large of an approximation."""
        if self._dense:
            features, weight, p = self._sample(x)
            return dense_solver(matrix_hessian(features, weight, p), penalty)
        return kronecker_solver(self._spectrum_at(x), penalty)

    def largest_level_ridge(self) -> FloatArray:
        """Return what each group's ridge is lowered to, if larger, for bounds at a level."""
        n_classes = self._u.shape[1]
        slope = largest_slope_ridge(self._base_slope * self._score_scale)
        return np.array([slope, 1.0, max(1.0, (n_classes - 1) / _OFF_DIAGONAL_VARIANCE)])

    def map_with_errors(self, x: FloatArray, ridge: FloatArray) -> SoftmaxMapWithErrors:
        """Return the map with standard errors, by a Kronecker product for many classes."""
        matrix, bias = self._parameters(x)
        n_classes = len(bias)
        if not self.has_full_hessian:
            structured, direction = self._structured_covariance(x, ridge)
            shared = shared_slope(direction, (n_classes, 2))
            return SoftmaxMapWithErrors(matrix, bias, self._score_scale, structured, shared)
        covariance, direction, deviance = covariance_given_mean_slope(
            self, matrix_hessian(*self._sample(x)), x, ridge
        )
        shared = shared_slope(direction, (n_classes, n_classes + 1), deviance)
        full = DenseMatrix.from_covariance(covariance, n_classes)
        return SoftmaxMapWithErrors(matrix, bias, self._score_scale, full, shared)

    def _structured_covariance(
        self, x: FloatArray, ridge: FloatArray
    ) -> tuple[KroneckerMatrix, FloatArray]:
        """Return the sum of a Kronecker product and of blocks of each class, and the shared slope.

        The Kronecker product has the prior of entries off the diagonal, the blocks are those of
        vector scaling. Both include the prior variance of slopes and biases, so that their sum is
        too large rather than too small. The slope is a direction (K, 2).
        """
        features, weight, p = self._sample(x)
        values, left, right = self._spectrum_at(x)
        variances = np.ascontiguousarray(1 / (values + ridge[OFF_DIAGONAL])).T
        spread = p * (1 - p) * weight[:, None]
        scores = features[:, :-1]
        sums = Blocks(
            np.einsum("ij,ij->j", spread, scores**2),
            np.einsum("ij,ij->j", spread, scores),
            spread.sum(axis=0),
        )
        blocks, direction = class_covariance(sums, 1.0, ridge)
        return KroneckerMatrix(variances, left, right, blocks), direction

    def choose_ridge(self) -> tuple[FloatArray, FloatArray]:
        """Return the ridge with the greatest marginal likelihood, and the parameters there.

        The rows may be a sample.
        """
        if not self._dense:
            return self._choose_from_vector_scaling()
        if len(self._u) <= self._affordable:
            return maximise_marginal_likelihood(self)
        rows = subsample_rows(len(self._u), self._affordable)
        labels = self._labels.take(rows)
        sample = MatrixLikelihood(self._u[rows], labels, self._base_slope, self._score_scale)
        return maximise_marginal_likelihood(sample)

    def start_at(self, ridge: FloatArray) -> FloatArray:
        """Return the parameters at which the fit starts: 0, or for many classes vector scaling.

        0 is the temperature map; vector scaling is closer to the result.
        """
        if self._dense:
            return np.zeros(len(self.groups))
        diagonal = VectorLikelihood(self._u, self._labels, self._base_slope, self._score_scale)
        ridge = ridge[: BIASES + 1]
        fit = solve_map(diagonal, ridge, diagonal.start_at(ridge), tolerance=1e-7)
        return _embed(fit.x)

    def _choose_from_vector_scaling(self) -> tuple[FloatArray, FloatArray]:
        """Return the ridge of vector scaling and of entries off the diagonal, and a start."""
        diagonal = VectorLikelihood(self._u, self._labels, self._base_slope, self._score_scale)
        ridge, start = diagonal.choose_ridge()
        x = _embed(solve_map(diagonal, ridge, start, tolerance=1e-7).x)
        _, gradient = self.objective(x)
        gradient[self.groups != OFF_DIAGONAL] = 0.0
        off = quadratic_ridge(self._spectrum_at(x), gradient)
        if off >= LARGEST_RIDGE:
            return np.append(ridge, off), x
        # The quadratic model is inaccurate far from x: its ridge is only a start.
        first = np.clip(np.append(ridge, off), 1.0, 100.0)
        return maximise_marginal_likelihood(self, first, x, rounds=_ROUNDS)

    def _spectrum_at(self, x: FloatArray) -> Spectrum:
        """Return the spectrum at the first x passed: the fit is nearly converged there."""
        if self._spectrum is None:
            self._spectrum = spectrum(*self._sample(x))
        return self._spectrum

    def _sample(self, x: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return features, sample weights and probabilities of the rows for a Hessian."""
        rows = subsample_rows(len(self._u), self._affordable)
        part, weight = self._u[rows], self._labels.weight[rows]
        matrix, bias = self._parameters(x)
        p = softmax_in_place(part @ matrix.T + bias)
        features = np.column_stack([part / self._score_scale, np.ones(len(part))])
        return features, weight * (self.total / weight.sum()), p

    def _parameters(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        n_classes = self._u.shape[1]
        parameters = x.reshape(n_classes, n_classes + 1)
        matrix = parameters[:, :-1] / self._score_scale
        matrix[np.diag_indices(n_classes)] += self._base_slope
        return matrix, parameters[:, -1].copy()


def _embed(diagonal: FloatArray) -> FloatArray:
    """Return parameters of matrix scaling, (K, K+1) in a row, from K slopes and K biases."""
    n_classes = len(diagonal) // 2
    parameters = np.zeros((n_classes, n_classes + 1))
    np.fill_diagonal(parameters, diagonal[:n_classes])
    parameters[:, -1] = diagonal[n_classes:]
    return parameters.ravel()
