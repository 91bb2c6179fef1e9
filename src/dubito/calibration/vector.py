"""Vector scaling: a slope and a bias for each class."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dubito._kernels.softmax import (
    diagonal_hessian,
    diagonal_value_and_blocks,
    likely_scores,
    likely_value_and_blocks,
    log_softmax,
    softmax_rows,
    spread_rows,
)
from dubito.calibration._base import AffineMixin
from dubito.calibration._shrinkage import (
    Labels,
    Metric,
    ShrunkenCalibrator,
    ShrunkenMap,
    dense_metric,
    maximise_evidence,
    solve_map,
)

if TYPE_CHECKING:
    import numpy.typing as npt

    from dubito._checks import FloatArray
    from dubito._kernels.softmax import Blocks, Likely, Slope

    Sums = tuple[float, FloatArray, FloatArray, Blocks]

#: Classes up to which the Hessian is kept in full.
_DENSE_CLASSES = 200
#: Multiplications that a Hessian may cost; where there are more rows, it is that of a sample.
_HESSIAN_COST = 4e9
#: Scores in the sample of rows on which strengths for many classes are chosen.
_SAMPLE_SCORES = 4e6
#: Scores beyond which those of unlikely classes are left out at first, and what unlikely is.
_ALL_SCORES = 1e6
_UNLIKELY = 1e-5


class VectorCalibrator(AffineMixin, ShrunkenCalibrator):
    r"""Vector scaling: :math:`p=\mathrm{softmax}(a\circ u+b)`, a slope and a bias per class.

    The fit minimises the negative log-likelihood of log scores u and a ridge penalty towards the
    fitted temperature map θ,

    .. math:: \sum_iw_i\ell_i(a,b)
        +\tfrac{\lambda_a}{2}s^2\lVert a-\theta\rVert^2+\tfrac{\lambda_b}{2}\lVert b\rVert^2,

    with s the root mean square of the scores, so that units of scores do not matter. Few rows per
    class, separable scores or a class without rows do no harm. As n grows the penalty vanishes.

    Parameters
    ----------
    input : {"margin", "logits", "proba"}, default="margin"
        What the scores are: any scores where higher means likelier, logits, or probabilities,
        of which the logarithm is taken. Of logits the log softmax is taken, so that a constant
        added to a row changes nothing; added to a row of margins it does.
    ridge : "auto" or float, default="auto"
        Strength λ of the penalty, in pseudo-observations: half of λ times the sum of squared
        departures from the temperature map, in log-odds. "auto" finds one strength for slopes
        and one for biases from the data. A very large one gives the temperature map; 0 gives plain
        maximum likelihood, which separable scores or a class without rows do not have.
    floor : float or "auto", default="auto"
        Probabilities below it are raised to it before their logarithm is taken. "auto" is half of
        the smallest positive one in the fit, within 1e-16 and 0.01: what a forest calls impossible
        is then a little less likely than what it has seen once.
    classes : array-like of shape (K,), optional
        Labels of the columns, where y lacks some of them.

    Attributes
    ----------
    slope_ : ndarray of shape (K,)
        a.
    bias_ : ndarray of shape (K,)
        b, of mean 0: a constant added to all changes nothing.
    base_slope_ : float
        Slope θ of the temperature map that the fit is shrunken towards.
    ridge_ : ndarray of shape (2,)
        Strengths of the penalty on slopes and on biases.
    gradient_norm_ : float
        Norm of the gradient of the mean penalised negative log-likelihood at the estimate.
    n_iter_ : int
        Steps of the last fit.
    classes_ : ndarray of shape (K,)
        Labels of the columns.

    Notes
    -----
    P4's external calibration of nested dichotomies; there the fit is not penalised, and a
    class absent from the hold-out drives its bias to minus infinity. Targets and the
    temperature map are those of `TemperatureCalibrator`, with min(1/4, ridge) pseudo-observations.

    "auto" maximises the evidence (MacKay, 1992), which needs no folds; see `ridge_` for the
    result. Where n K² exceeds 4e9, with up to 200 classes, a fixed random sample of rows decides.
    With more classes a sample gives the start, where n K exceeds 4e6, and all rows decide; where
    n K exceeds 1e6 that start is found on likely classes alone, those to which the temperature map
    gives a row a probability above 1e-5, others kept as it has them.

    Up to 200 classes the solver is Newton's method, to a gradient norm of 1e-11. Beyond, the
    Hessian is taken class by class, along with the gradient in one pass over the scores, and
    limited-memory BFGS corrects it where classes are entangled; it ends at 1e-8, which moves
    parameters by much less than their standard errors. At 50,000 rows of 1,000 classes strengths
    and fit take about fifteen passes.

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
    """

    def __init__(
        self,
        *,
        input: str = "margin",
        ridge: float | str = "auto",
        floor: float | str = "auto",
        classes: npt.ArrayLike | None = None,
    ) -> None:
        super().__init__(input=input, ridge=ridge, floor=floor, classes=classes)

    def _model(self, u: FloatArray, labels: Labels, slope: Slope, scale: float) -> ShrunkenMap:
        return DiagonalMap(np.ascontiguousarray(u), labels, slope.theta, scale)

    def _keep(self, x: FloatArray, theta: float, scale: float, unit: float) -> None:
        n_classes = len(self.classes_)
        self.slope_ = (theta + x[:n_classes] / scale) / unit
        self.bias_ = x[n_classes:] - x[n_classes:].mean()

    def _proba(self, table: FloatArray) -> FloatArray:
        u = self._log_scores(table, normalised=True)
        return softmax_rows(self.slope_ * u + self.bias_)

    def _log_proba(self, table: FloatArray) -> FloatArray:
        u = self._log_scores(table, normalised=True)
        return log_softmax(self.slope_ * u + self.bias_)

    def _layer(self) -> tuple[FloatArray, FloatArray]:
        return np.diag(self.slope_), self.bias_.copy()


class DiagonalMap:
    """The likelihood of a slope and a bias per class: parameters are K slopes, then K biases."""

    def __init__(self, u: FloatArray, labels: Labels, theta: float, scale: float) -> None:
        self._u, self._labels, self._theta, self._scale = u, labels, theta, scale
        n, n_classes = u.shape
        self.total = float(labels.weight.sum())
        self.groups = np.repeat([0, 1], n_classes)
        self._dense = n_classes <= _DENSE_CLASSES
        affordable = _HESSIAN_COST / n_classes**2 if self._dense else _SAMPLE_SCORES / n_classes
        self._affordable = max(int(affordable), 2 * n_classes)
        # The Hessian of a sample is taken once; blocks come with the gradient, and cost nothing.
        self.refresh = 20 if self._dense and n > self._affordable else 1
        self.tolerance = 1e-11 if self._dense and self.refresh == 1 else 1e-8
        self._targets = _target_sums(u, labels)
        self._last: tuple[FloatArray, tuple[float, FloatArray, Blocks]] | None = None

    def objective(self, x: FloatArray) -> tuple[float, FloatArray]:
        """Return the negative log-likelihood and its gradient."""
        return self._derivatives(x)[:2]

    def metric(self, x: FloatArray, penalty: FloatArray) -> Metric:
        """Return the Hessian, that of a sample of many rows; class by class for many classes."""
        if not self._dense:
            return block_metric(self._derivatives(x)[2], self._scale, penalty)
        slope, bias = self._parameters(x)
        rows = spread_rows(len(self._u), self._affordable)
        weight = self._labels.weight[rows]
        weight = weight * (self.total / weight.sum())
        hessian = diagonal_hessian(self._u[rows], weight, slope, bias)
        n_classes = len(slope)
        hessian[:n_classes] /= self._scale
        hessian[:, :n_classes] /= self._scale
        return dense_metric(hessian, penalty)

    def choose(self) -> tuple[FloatArray, FloatArray]:
        """Return the strengths with the greatest evidence, and the parameters there."""
        sample = self._sample()
        strengths, x = maximise_evidence(sample)
        if self._dense or sample is self:
            return strengths, x
        # A few rows per class leave the evidence flat: the sample gives a start, all rows decide.
        return maximise_evidence(self, strengths, x, rounds=8, tolerance=1e-3)

    def start(self, strengths: FloatArray) -> FloatArray:
        """Return the temperature map, or where there are many rows the fit to a sample of them."""
        start = np.zeros(len(self.groups))
        sample = self._sample()
        return start if sample is self else solve_map(sample, strengths, start, tolerance=1e-4).x

    def _sample(self) -> DiagonalMap:
        """Return the map on fewer rows, or on their likely classes; itself where it is small."""
        if len(self._u) > self._affordable:
            rows = spread_rows(len(self._u), self._affordable)
            part = DiagonalMap(self._u[rows], self._labels.take(rows), self._theta, self._scale)
            return part if self._dense else part._sample()
        if self._dense or self._u.size <= _ALL_SCORES:
            return self
        likely = likely_scores(self._u, self._labels.y, self._theta, _UNLIKELY)
        if likely is None:
            return self
        return LikelyMap(self._u, self._labels, self._theta, self._scale, likely)

    def _sums(self, slope: FloatArray, bias: FloatArray) -> Sums:
        return diagonal_value_and_blocks(self._u, self._labels.weight, slope, bias)

    def _derivatives(self, x: FloatArray) -> tuple[float, FloatArray, Blocks]:
        """Return the objective with blocks of the Hessian.

        The last are kept: a solver asks for a metric where it has just been, and a fit at other
        strengths starts where one ended.
        """
        if self._last is None or not np.array_equal(self._last[0], x):
            slope, bias = self._parameters(x)
            value, by_slope, by_bias, blocks = self._sums(slope, bias)
            target_slope, target_bias = self._targets
            value -= float(slope @ target_slope + bias @ target_bias)
            gradient = [(by_slope - target_slope) / self._scale, by_bias - target_bias]
            self._last = x.copy(), (value, np.concatenate(gradient), blocks)
        return self._last[1]

    def _parameters(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        n_classes = self._u.shape[1]
        return self._theta + x[:n_classes] / self._scale, x[n_classes:]


class LikelyMap(DiagonalMap):
    """The same likelihood, unlikely classes of each row kept as the temperature map has them."""

    def __init__(
        self, u: FloatArray, labels: Labels, theta: float, scale: float, likely: Likely
    ) -> None:
        super().__init__(u, labels, theta, scale)
        self._likely = likely

    def _sums(self, slope: FloatArray, bias: FloatArray) -> Sums:
        return likely_value_and_blocks(self._likely, self._labels.weight, slope, bias)


def block_metric(blocks: Blocks, scale: float, penalty: FloatArray) -> Metric:
    """Return the metric of slope and bias of each class, other classes left out of it.

    All but one direction are well told by blocks: a constant added to all biases changes no
    probability, where they see curvature. Its penalty keeps the mean bias at 0: so do steps.
    """
    n_classes = len(blocks.slope)
    a = blocks.slope / scale**2 + penalty[:n_classes]
    b = blocks.both / scale
    c = blocks.bias + penalty[n_classes:]
    a, c = (d + 1e-10 * max(d.max(), 1e-290) for d in (a, c))
    determinant = np.maximum(a * c - b * b, 1e-12 * a * c)

    def solve(gradient: FloatArray) -> FloatArray:
        first, second = gradient[:n_classes], gradient[n_classes:]
        bias = (a * second - b * first) / determinant
        return np.concatenate([(c * first - b * second) / determinant, bias - bias.mean()])

    return Metric(solve, lambda: np.concatenate([c / determinant, a / determinant]))


def _target_sums(u: FloatArray, labels: Labels) -> tuple[FloatArray, FloatArray]:
    """Sum targets, and targets times scores, over the rows."""
    n_classes = u.shape[1]
    weight, y, share = labels.weight, labels.y, labels.share
    own = np.bincount(y, weight * u[np.arange(len(u)), y], n_classes)
    counts = np.bincount(y, weight, n_classes)
    by_slope = (1 - share) * own + share / n_classes * (weight @ u)
    return by_slope, (1 - share) * counts + share / n_classes * weight.sum()
