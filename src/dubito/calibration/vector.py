"""Vector scaling: a slope and a bias for each class."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dubito._numerics.row_subsets import subsample_rows
from dubito._numerics.targets import mixed_targets
from dubito.calibration._kernels.hessian_solvers import HessianSolver, dense_solver
from dubito.calibration._kernels.softmax_covariance import DenseDiagonal
from dubito.calibration._kernels.vector_scaling import (
    block_solver,
    diagonal_hessian,
    diagonal_value_and_blocks,
    likely_scores,
    likely_value_and_blocks,
)
from dubito.calibration._penalised_fit import (
    BIASES,
    SLOPES,
    PenalisedModel,
    class_covariance,
    covariance_given_mean_slope,
    maximise_marginal_likelihood,
    solve_map,
)
from dubito.calibration.affine import AffineMixin
from dubito.calibration.delta_method import (
    SoftmaxMapWithErrors,
    shared_slope,
    slope_strength,
)
from dubito.calibration.shrunken import ShrunkenCalibrator, SmoothedLabels

if TYPE_CHECKING:
    from dubito._typing import FloatArray
    from dubito.calibration._kernels.temperature_scaling import Slope
    from dubito.calibration._kernels.vector_scaling import Blocks, Likely

#: Classes up to which the full Hessian is computed.
_DENSE_CLASSES = 200
#: Most multiplications for a Hessian; where all rows need more, it is that of a sample.
_HESSIAN_COST = 4e9
#: Scores in the sample of rows on which strengths for many classes are chosen.
_SAMPLE_SCORES = 4e6
#: Most scores with which the start is computed from all classes; of more, from likely ones.
_ALL_SCORES = 1e6
#: Probability by the temperature map below which a class is unlikely.
_UNLIKELY = 1e-5


class VectorCalibrator(AffineMixin, ShrunkenCalibrator):
    r"""Vector scaling: :math:`p=\mathrm{softmax}(a\circ u+b)`, a slope and a bias per class.

    The fit minimises the negative log-likelihood of log scores u and a ridge penalty towards the
    fitted temperature map θ,

    .. math:: \sum_iw_i\ell_i(a,b)
        +\tfrac{\lambda_a}{2}s^2\lVert a-\theta\rVert^2+\tfrac{\lambda_b}{2}\lVert b\rVert^2,

    with s the root mean square of the scores, so that units of scores do not matter. Few rows per
    class, separable scores or a class without rows are no problem. As n grows the penalty vanishes.

    Parameters
    ----------
    ridge : float or "auto", default="auto"
        Strength λ of the penalty, in pseudo-observations: half of λ times the sum of squared
        departures from the temperature map, in log-odds. "auto" finds one strength for slopes
        and one for biases from the data. A very large one gives the temperature map; 0 gives plain
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
    slope_ : ndarray of shape (K,)
        a.
    bias_ : ndarray of shape (K,)
        b, of mean 0: a constant added to all changes nothing.
    base_slope_ : float
        Slope θ of the temperature map that the fit is shrunk to.
    ridge_ : ndarray of shape (2,)
        Strengths of the penalty on slopes and on biases.
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
    The external calibration of nested dichotomies of Leathart et al. (2019); there the fit is not
    penalised, and the bias of a class absent from the hold-out tends to minus infinity. Targets and
    the temperature map are those of `TemperatureCalibrator`, with min(1/4, ridge)
    pseudo-observations.

    "auto" maximises the marginal likelihood (MacKay, 1992), which needs no folds; see `ridge_` for
    the result. Where n K² exceeds 4e9, with up to 200 classes, a fixed random sample of rows
    decides. With more classes a sample gives the start, where n K exceeds 4e6, and all rows decide;
    where n K exceeds 1e6 that start is found on likely classes alone, those to which the
    temperature map gives a row a probability above 1e-5, with the scores of others fixed.

    Up to 200 classes the solver is Newton's method, to a gradient norm of 1e-11. Beyond, the
    Hessian is taken class by class, along with the gradient in one pass over the scores, and
    limited-memory BFGS corrects it where classes depend on each other; it ends at 1e-8, an error of
    the parameters much smaller than their standard errors. At 50,000 rows of 1,000 classes
    strengths and fit take about fifteen passes.

    **Bounds** are of the log-odds of a class against the rest, with standard errors by the delta
    method from the Hessian. The strengths by the marginal likelihood are too strong for bounds:
    those of slopes and biases are limited to 1, a prior standard deviation of 1 in log-odds, and
    the slope θ is treated as unknown, with standard errors down and up from the likelihood itself.
    Belief and plausibility are integrals of that contour. ``level=0.9`` lets slopes deviate by up
    to 2 in log-odds and gives the interval around the map fitted with those strengths, widened to
    contain the probability. In simulations (2 to 10 classes, 30 to 1,000 rows, truths off the
    temperature map; ``experiments/validity``) it contained the true probability in 0.87 or more of
    the rows and classes. Stored for it is the covariance, up to 200 classes in full; beyond, class
    by class, centred at the fitted map.

    Examples
    --------
    >>> import numpy as np
    >>> from dubito.calibration import VectorCalibrator
    >>> rng = np.random.default_rng(0)
    >>> logits = rng.normal(size=(5000, 3))
    >>> y = np.argmax(logits + [1, 0, -1] + rng.gumbel(size=(5000, 3)), axis=1)
    >>> calibrator = VectorCalibrator(input="logits").fit(logits, y)
    >>> calibrator.bias_.round(0) + 0.0
    array([ 1.,  0., -1.])
    >>> calibrator.predict_bounds([[0.0, 0.0, 0.0]], level=0.9).lower.round(2)
    array([[0.64, 0.25, 0.08]])
    """

    def _model(
        self, u: FloatArray, labels: SmoothedLabels, slope: Slope, scale: float
    ) -> PenalisedModel:
        return VectorLikelihood(np.ascontiguousarray(u), labels, slope.theta, scale)

    def _set_parameters(self, x: FloatArray, theta: float, scale: float, unit: float) -> None:
        n_classes = len(self.classes_)
        self.slope_ = (theta + x[:n_classes] / scale) / unit
        self.bias_ = x[n_classes:] - x[n_classes:].mean()

    def _logits(self, table: FloatArray) -> FloatArray:
        return self.slope_ * self._log_scores(table, normalised=True) + self.bias_

    def _layer(self) -> tuple[FloatArray, FloatArray]:
        return np.diag(self.slope_), self.bias_.copy()


class VectorLikelihood:
    """The likelihood of vector scaling: parameters are K slopes, then K biases.

    The formulas are in `_kernels/vector_scaling.py`.
    """

    def __init__(self, u: FloatArray, labels: SmoothedLabels, theta: float, scale: float) -> None:
        self._u, self._labels, self._theta, self._scale = u, labels, theta, scale
        n, n_classes = u.shape
        self.total = float(labels.weight.sum())
        self.groups = np.repeat([SLOPES, BIASES], n_classes)
        self._dense = n_classes <= _DENSE_CLASSES
        affordable = _HESSIAN_COST / n_classes**2 if self._dense else _SAMPLE_SCORES / n_classes
        self._affordable = max(int(affordable), 2 * n_classes)
        # A Hessian of a sample costs more than a step; blocks are a by-product of the gradient.
        self.refresh = 20 if self._dense and n > self._affordable else 1
        self.tolerance = 1e-11 if self._dense and self.refresh == 1 else 1e-8
        self.has_full_hessian = self._dense
        self._target_sums = _target_sums(u, labels)
        self._last: tuple[FloatArray, tuple[float, FloatArray, Blocks]] | None = None

    def objective(self, x: FloatArray) -> tuple[float, FloatArray]:
        """Return the negative log-likelihood and its gradient."""
        return self._derivatives(x)[:2]

    def hessian_solver(self, x: FloatArray, penalty: FloatArray) -> HessianSolver:
        """Return the solver of the Hessian; with many classes of its block for each class alone."""
        if not self._dense:
            return block_solver(self._derivatives(x)[2], self._scale, penalty)
        return dense_solver(self._hessian(x), penalty)

    def level_strengths(self) -> FloatArray:
        """Return the strength of slopes and of biases that bounds at a level do not exceed."""
        return np.array([slope_strength(self._theta * self._scale), 1.0])

    def map_with_errors(self, x: FloatArray, strengths: FloatArray) -> SoftmaxMapWithErrors:
        """Return the map with standard errors; many classes share only the mean slope in them."""
        slope, bias = self._parameters(x)
        n_classes = len(slope)
        if not self._dense:
            blocks, direction = class_covariance(self._derivatives(x)[2], self._scale, strengths)
            shared = shared_slope(direction, (n_classes, 2))
            return SoftmaxMapWithErrors(slope, bias, self._scale, blocks, shared)
        covariance, direction, deviance = covariance_given_mean_slope(
            self, self._hessian(x), x, strengths
        )
        shared = shared_slope(direction.reshape(2, n_classes).T, (n_classes, 2), deviance)
        full = DenseDiagonal.from_covariance(covariance, n_classes)
        return SoftmaxMapWithErrors(slope, bias, self._scale, full, shared)

    def _hessian(self, x: FloatArray) -> FloatArray:
        """Return the Hessian of all rows, or where they are many an estimate from a sample."""
        slope, bias = self._parameters(x)
        rows = subsample_rows(len(self._u), self._affordable)
        weight = self._labels.weight[rows]
        weight = weight * (self.total / weight.sum())
        hessian = diagonal_hessian(self._u[rows], weight, slope, bias)
        n_classes = len(slope)
        hessian[:n_classes] /= self._scale
        hessian[:, :n_classes] /= self._scale
        return hessian

    def choose_strengths(self) -> tuple[FloatArray, FloatArray]:
        """Return the strengths with the greatest marginal likelihood, and the parameters there."""
        sample = self._sample()
        strengths, x = maximise_marginal_likelihood(sample)
        if self._dense or sample is self:
            return strengths, x
        # With few rows per class the marginal likelihood is flat: the sample only gives a start.
        return maximise_marginal_likelihood(self, strengths, x, rounds=8, tolerance=1e-3)

    def start_for(self, strengths: FloatArray) -> FloatArray:
        """Return the temperature map, or for many rows the fit to a sample of them."""
        start = np.zeros(len(self.groups))
        sample = self._sample()
        return start if sample is self else solve_map(sample, strengths, start, tolerance=1e-4).x

    def _sample(self) -> VectorLikelihood:
        """Return the likelihood on fewer rows, or on their likely classes; itself if small."""
        if len(self._u) > self._affordable:
            rows = subsample_rows(len(self._u), self._affordable)
            part = VectorLikelihood(
                self._u[rows], self._labels.take(rows), self._theta, self._scale
            )
            return part if self._dense else part._sample()
        if self._dense or self._u.size <= _ALL_SCORES:
            return self
        likely = likely_scores(self._u, self._labels.y, self._theta, _UNLIKELY)
        if likely is None:
            return self
        return LikelyClassesLikelihood(self._u, self._labels, self._theta, self._scale, likely)

    def _sums(
        self, slope: FloatArray, bias: FloatArray
    ) -> tuple[float, FloatArray, FloatArray, Blocks]:
        """Return the log normaliser summed over rows, its two gradients, and its Hessian blocks."""
        return diagonal_value_and_blocks(self._u, self._labels.weight, slope, bias)

    def _derivatives(self, x: FloatArray) -> tuple[float, FloatArray, Blocks]:
        """Return the objective, its gradient and the blocks of the Hessian.

        The last result is cached: the solver needs the Hessian at the point it has just evaluated,
        and a fit at other strengths starts where the last one ended.
        """
        if self._last is None or not np.array_equal(self._last[0], x):
            slope, bias = self._parameters(x)
            value, by_slope, by_bias, blocks = self._sums(slope, bias)
            target_slope, target_bias = self._target_sums
            value -= float(slope @ target_slope + bias @ target_bias)
            gradient = [(by_slope - target_slope) / self._scale, by_bias - target_bias]
            self._last = x.copy(), (value, np.concatenate(gradient), blocks)
        return self._last[1]

    def _parameters(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        n_classes = self._u.shape[1]
        return self._theta + x[:n_classes] / self._scale, x[n_classes:]


class LikelyClassesLikelihood(VectorLikelihood):
    """That likelihood with the logits of unlikely classes fixed to those of the temperature map."""

    def __init__(
        self, u: FloatArray, labels: SmoothedLabels, theta: float, scale: float, likely: Likely
    ) -> None:
        super().__init__(u, labels, theta, scale)
        self._likely = likely

    def _sums(
        self, slope: FloatArray, bias: FloatArray
    ) -> tuple[float, FloatArray, FloatArray, Blocks]:
        return likely_value_and_blocks(self._likely, self._labels.weight, slope, bias)


def _target_sums(u: FloatArray, labels: SmoothedLabels) -> tuple[FloatArray, FloatArray]:
    """Return the sums over rows of targets times scores, (K,), and of targets, (K,)."""
    n_classes = u.shape[1]
    weight, y = labels.weight, labels.y
    own = np.bincount(y, weight * u[np.arange(len(u)), y], n_classes)
    by_slope = mixed_targets(own, weight @ u, labels.pseudo_fraction, n_classes)
    return by_slope, labels.target_sums(n_classes)
