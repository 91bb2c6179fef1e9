"""Matrix scaling: a full matrix of slopes and a bias for each class."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dubito._numerics.row_subsets import subsample_rows
from dubito._numerics.softmax import softmax_in_place
from dubito._numerics.targets import mixed_targets
from dubito.calibration._kernels.hessian_solvers import HessianSolver, dense_solver
from dubito.calibration._kernels.matrix_scaling import (
    Spectrum,
    kronecker_solver,
    matrix_hessian,
    matrix_value,
    spectrum,
)
from dubito.calibration._kernels.softmax_covariance import DenseMatrix, KroneckerMatrix
from dubito.calibration._kernels.vector_scaling import Blocks
from dubito.calibration._penalised_fit import (
    BIASES,
    OFF_DIAGONAL,
    SLOPES,
    STRONGEST,
    PenalisedModel,
    class_covariance,
    covariance_given_mean_slope,
    maximise_marginal_likelihood,
    quadratic_strength,
    solve_map,
)
from dubito.calibration.affine import AffineMixin
from dubito.calibration.delta_method import SoftmaxMapWithErrors, shared_slope, slope_strength
from dubito.calibration.shrunken import ShrunkenCalibrator, SmoothedLabels
from dubito.calibration.vector import VectorLikelihood

if TYPE_CHECKING:
    from dubito._typing import FloatArray
    from dubito.calibration._kernels.temperature_scaling import Slope

#: Parameters up to which the full Hessian is computed.
_DENSE_PARAMETERS = 1100
#: Most multiplications for a Hessian; where all rows need more, it is that of a sample.
_HESSIAN_COST = 4e9

#: Classes up to which bounds use the full covariance: 0.8 MB for 24 classes.
_COVARIANCE_CLASSES = 24
#: Largest prior variance, in log-odds, of the sum of a row's entries off the diagonal.
_OFF_DIAGONAL_VARIANCE = 9.0

#: Steps between approximate Hessians, more than a fit takes: it starts close to its optimum.
_NO_REFRESH = 10_000
#: Most fits for the choice of strengths where each is expensive.
_ROUNDS = 8


class MatrixCalibrator(AffineMixin, ShrunkenCalibrator):
    r"""Matrix scaling: :math:`p=\mathrm{softmax}(Wu+b)` with a full matrix.

    The fit minimises the negative log-likelihood of log scores u and a ridge penalty towards the
    fitted temperature map θ,

    .. math:: \sum_iw_i\ell_i(W,b)+\tfrac{\lambda_d}{2}s^2\sum_k(W_{kk}-\theta)^2
        +\tfrac{\lambda_b}{2}\lVert b\rVert^2+\tfrac{\lambda_o}{2}s^2\sum_{k\ne j}W_{kj}^2,

    with s the root mean square of the scores, so that units of scores do not matter. Few rows per
    class, separable scores or a class without rows are no problem: the data then support no entries
    off the diagonal, and the map is nearly vector or temperature scaling.

    Parameters
    ----------
    ridge : float or "auto", default="auto"
        Strength λ of the penalty, in pseudo-observations: half of λ times the sum of squared
        departures from the temperature map, in log-odds. "auto" finds one strength for each of
        the three groups from the data. A very large one gives the temperature map; 0 gives plain
        maximum likelihood, which separable scores or a class without rows do not have.
    input : {"margin", "logits", "proba", "log_proba"}, default="margin"
        What the scores are: any scores where higher means likelier, logits, or probabilities,
        of which the logarithm is taken. Of logits the log softmax is taken, so that a constant
        added to a row changes nothing; added to a row of margins it does.
    floor : float or "auto", default="auto"
        Probabilities below it are raised to it before their logarithm is taken; "auto" chooses it
        on the rows of the fit, as in `AutoCalibrator`.
    classes : array-like of shape (K,), optional
        Labels in the order of the columns; needed if y lacks some.

    Attributes
    ----------
    matrix_ : ndarray of shape (K, K)
        W; row k gives the score of class k.
    bias_ : ndarray of shape (K,)
        b, of mean 0: a constant added to all changes nothing.
    base_slope_ : float
        Slope θ of the temperature map that the fit is shrunk to.
    ridge_ : ndarray of shape (3,)
        Strengths of the penalty on the diagonal, on biases and off the diagonal.
    misfit_ : float
        Fraction of calibration rows, of at most 32, at which the interval of the fitted probability
        and an isotonic one are disjoint. Above 1/6 bounds at a level come with a `MisfitWarning`.
        0 where there are fewer than five rows for each parameter.
    gradient_norm_ : float
        Norm of the gradient of the mean penalised negative log-likelihood at the estimate.
    n_iter_ : int
        Steps of the last fit.
    classes_ : ndarray of shape (K,)
        Labels of the columns.

    Notes
    -----
    Guo et al., *On Calibration of Modern Neural Networks* (2017), who do not penalise and found it
    to overfit. Targets and the temperature map are those of `TemperatureCalibrator`, with
    min(1/4, ridge) pseudo-observations.

    "auto" maximises the marginal likelihood (MacKay, 1992), which needs no folds. Up to 32 classes
    the Hessian is computed in full and the solver is Newton's method, on a fixed random sample of
    rows where they are too many. Beyond, memory stays O(K²): slopes and biases have the strengths
    that vector scaling finds, that off the diagonal maximises the marginal likelihood of a
    quadratic model around it, and limited-memory BFGS starts from a Hessian that is a Kronecker
    product. A pass costs O(nK²).

    **Bounds** are those of `VectorCalibrator`, by the delta method from the Hessian of all
    parameters, with the same validity in the same simulations. ``level=0.9`` limits the strength
    off the diagonal as well, to max(1, (K-1)/9). Stored for bounds is the covariance, up to 24
    classes in full, O(K⁴) numbers; beyond, that of the Kronecker product and of slope and bias
    class by class, O(K²), centred at the fitted map.

    Examples
    --------
    >>> import numpy as np
    >>> from dubito.calibration import MatrixCalibrator
    >>> rng = np.random.default_rng(0)
    >>> truth, scores = np.eye(3), 2 * rng.normal(size=(5000, 3))
    >>> truth[0, 1] = 0.5
    >>> y = np.argmax(scores @ truth.T + rng.gumbel(size=(5000, 3)), axis=1)
    >>> calibrator = MatrixCalibrator().fit(scores, y)
    >>> round(float(calibrator.matrix_[0, 1] - calibrator.matrix_[2, 1]), 1)
    0.5
    >>> bounds = calibrator.predict_bounds([[1.0, 0.5, -1.0]], level=0.9)
    >>> bounds.lower.round(2), bounds.upper.round(2)
    (array([[0.6 , 0.28, 0.07]]), array([[0.64, 0.32, 0.09]]))
    """

    def _model(
        self, u: FloatArray, labels: SmoothedLabels, slope: Slope, scale: float
    ) -> PenalisedModel:
        return MatrixLikelihood(np.ascontiguousarray(u), labels, slope.theta, scale)

    def _set_parameters(self, x: FloatArray, theta: float, scale: float, unit: float) -> None:
        n_classes = len(self.classes_)
        table = x.reshape(n_classes, n_classes + 1)
        self.matrix_ = (theta * np.eye(n_classes) + table[:, :-1] / scale) / unit
        self.bias_ = table[:, -1] - table[:, -1].mean()

    def _logits(self, table: FloatArray) -> FloatArray:
        return self._log_scores(table, normalised=True) @ self.matrix_.T + self.bias_

    def _layer(self) -> tuple[FloatArray, FloatArray]:
        return self.matrix_.copy(), self.bias_.copy()


class MatrixLikelihood:
    """The likelihood of matrix scaling: parameters are (K, K+1), the bias last.

    The formulas are in `_kernels/matrix_scaling.py`.
    """

    def __init__(self, u: FloatArray, labels: SmoothedLabels, theta: float, scale: float) -> None:
        self._u, self._labels, self._theta, self._scale = u, labels, theta, scale
        n, n_classes = u.shape
        self.total = float(labels.weight.sum())
        groups = np.full((n_classes, n_classes + 1), OFF_DIAGONAL)
        np.fill_diagonal(groups, SLOPES)
        groups[:, -1] = BIASES
        self.groups = groups.ravel()
        self._dense = groups.size <= _DENSE_PARAMETERS
        cost = groups.size**2 if self._dense else groups.size
        self._affordable = max(int(_HESSIAN_COST / cost), 2 * n_classes)
        self.refresh = 1 if self._dense and n <= self._affordable else _NO_REFRESH
        self.tolerance = 1e-11 if self.refresh == 1 else 1e-8
        self.has_full_hessian = self._dense and n_classes <= _COVARIANCE_CLASSES
        self._target_sums = _target_sums(u, labels)
        self._spectrum: Spectrum | None = None

    def objective(self, x: FloatArray) -> tuple[float, FloatArray]:
        """Return the negative log-likelihood and its gradient."""
        matrix, bias = self._parameters(x)
        value, by_matrix, by_bias = matrix_value(self._u, self._labels.weight, matrix, bias)
        target_matrix, target_bias = self._target_sums
        value -= float(np.vdot(matrix, target_matrix) + bias @ target_bias)
        by_matrix = (by_matrix - target_matrix) / self._scale
        return value, np.column_stack([by_matrix, by_bias - target_bias]).ravel()

    def hessian_solver(self, x: FloatArray, penalty: FloatArray) -> HessianSolver:
        """Return the solver of the full Hessian, or where it is too large of an approximation."""
        if self._dense:
            features, weight, p = self._sample(x)
            return dense_solver(matrix_hessian(features, weight, p), penalty)
        return kronecker_solver(self._spectrum_at(x), penalty)

    def level_strengths(self) -> FloatArray:
        """Return the strength of each group that bounds at a level do not exceed."""
        n_classes = self._u.shape[1]
        slope = slope_strength(self._theta * self._scale)
        return np.array([slope, 1.0, max(1.0, (n_classes - 1) / _OFF_DIAGONAL_VARIANCE)])

    def map_with_errors(self, x: FloatArray, strengths: FloatArray) -> SoftmaxMapWithErrors:
        """Return the map with standard errors, by a Kronecker product for many classes."""
        matrix, bias = self._parameters(x)
        n_classes = len(bias)
        if not self.has_full_hessian:
            structured, direction = self._structured_covariance(x, strengths)
            shared = shared_slope(direction, (n_classes, 2))
            return SoftmaxMapWithErrors(matrix, bias, self._scale, structured, shared)
        covariance, direction, deviance = covariance_given_mean_slope(
            self, matrix_hessian(*self._sample(x)), x, strengths
        )
        shared = shared_slope(direction, (n_classes, n_classes + 1), deviance)
        full = DenseMatrix.from_covariance(covariance, n_classes)
        return SoftmaxMapWithErrors(matrix, bias, self._scale, full, shared)

    def _structured_covariance(
        self, x: FloatArray, strengths: FloatArray
    ) -> tuple[KroneckerMatrix, FloatArray]:
        """Return the sum of a Kronecker product and of blocks of each class, and the shared slope.

        The Kronecker product has the prior of entries off the diagonal, the blocks are those of
        vector scaling. Both include the prior variance of slopes and biases, so that their sum is
        too large rather than too small. The slope is a direction (K, 2).
        """
        features, weight, p = self._sample(x)
        values, left, right = self._spectrum_at(x)
        variances = np.ascontiguousarray(1 / (values + strengths[OFF_DIAGONAL])).T
        spread = p * (1 - p) * weight[:, None]
        scores = features[:, :-1]
        sums = Blocks(
            np.einsum("ij,ij->j", spread, scores**2),
            np.einsum("ij,ij->j", spread, scores),
            spread.sum(axis=0),
        )
        blocks, direction = class_covariance(sums, 1.0, strengths)
        return KroneckerMatrix(variances, left, right, blocks), direction

    def choose_strengths(self) -> tuple[FloatArray, FloatArray]:
        """Return the strengths with the greatest marginal likelihood, and the parameters there.

        The rows may be a sample.
        """
        if not self._dense:
            return self._choose_from_vector_scaling()
        if len(self._u) <= self._affordable:
            return maximise_marginal_likelihood(self)
        rows = subsample_rows(len(self._u), self._affordable)
        labels = self._labels.take(rows)
        sample = MatrixLikelihood(self._u[rows], labels, self._theta, self._scale)
        return maximise_marginal_likelihood(sample)

    def start_for(self, strengths: FloatArray) -> FloatArray:
        """Return the temperature map, or for many classes vector scaling, which is closer."""
        if self._dense:
            return np.zeros(len(self.groups))
        diagonal = VectorLikelihood(self._u, self._labels, self._theta, self._scale)
        strengths = strengths[: BIASES + 1]
        fit = solve_map(diagonal, strengths, diagonal.start_for(strengths), tolerance=1e-7)
        return _embed(fit.x)

    def _choose_from_vector_scaling(self) -> tuple[FloatArray, FloatArray]:
        """Return strengths and start: those of vector scaling, then also off the diagonal."""
        diagonal = VectorLikelihood(self._u, self._labels, self._theta, self._scale)
        strengths, start = diagonal.choose_strengths()
        x = _embed(solve_map(diagonal, strengths, start, tolerance=1e-7).x)
        _, gradient = self.objective(x)
        gradient[self.groups != OFF_DIAGONAL] = 0.0
        off = quadratic_strength(self._spectrum_at(x), gradient)
        if off >= STRONGEST:
            return np.append(strengths, off), x
        # The quadratic model is inaccurate far from x: its strength is only a start.
        first = np.clip(np.append(strengths, off), 1.0, 100.0)
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
        features = np.column_stack([part / self._scale, np.ones(len(part))])
        return features, weight * (self.total / weight.sum()), p

    def _parameters(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        n_classes = self._u.shape[1]
        table = x.reshape(n_classes, n_classes + 1)
        matrix = table[:, :-1] / self._scale
        matrix[np.diag_indices(n_classes)] += self._theta
        return matrix, table[:, -1].copy()


def _embed(diagonal: FloatArray) -> FloatArray:
    """Return K slopes and K biases as (K, K+1) parameters."""
    n_classes = len(diagonal) // 2
    table = np.zeros((n_classes, n_classes + 1))
    np.fill_diagonal(table, diagonal[:n_classes])
    table[:, -1] = diagonal[n_classes:]
    return table.ravel()


def _target_sums(u: FloatArray, labels: SmoothedLabels) -> tuple[FloatArray, FloatArray]:
    """Return the sums over rows of targets times scores, (K, K), and of targets, (K,)."""
    n_classes = u.shape[1]
    weight, y = labels.weight, labels.y
    order = np.argsort(y, kind="stable")
    own = np.zeros((n_classes, n_classes))
    for rows in np.split(order, np.flatnonzero(np.diff(y[order])) + 1):
        own[y[rows[0]]] = weight[rows] @ u[rows]
    by_matrix = mixed_targets(own, own.sum(axis=0), labels.pseudo_fraction, n_classes)
    return by_matrix, labels.target_sums(n_classes)
