"""The fitted joint model of more than two classes: its scaled scores, estimate and bounds.

A softmax with one slope for each classifier; the likelihood and its bounds are in
`_kernels/joint_softmax.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dubito._numerics.softmax import softmax_in_place
from dubito._numerics.targets import target_table
from dubito.belief.bounds import including
from dubito.calibration._binary_joint_model import (
    SMALLEST_DEVIATION,
    JointSettings,
    check_estimate_exists,
    choose_likelihood_form,
    rescale_huge_rows,
    root_mean_square,
)
from dubito.calibration._kernels.joint_softmax import (
    CERTIFIED,
    SoftmaxFit,
    SoftmaxLikelihood,
    belief_and_plausibility,
    fit_softmax_model,
    quadratic_softmax_likelihood,
    softmax_likelihood,
)
from dubito.calibration._kernels.joint_softmax_level import (
    SoftmaxLevelLikelihoods,
    level_bounds,
    softmax_level_likelihoods,
    stepped_bounds,
)
from dubito.calibration._kernels.marginal_likelihood import ridge_by_marginal_likelihood
from dubito.calibration._kernels.penalised_fit import SMALLEST_RIDGE
from dubito.calibration.errors import CalibrationInputError

if TYPE_CHECKING:
    from dubito._typing import BoolArray, FloatArray, IntArray

#: Largest number of operations for each row of a prediction, of some nanoseconds each, for which
#: likelihood="auto" is exact.
_EXACT_OPERATIONS = 1_000_000

#: Largest number of operations of a fit for which a model with biases is also tried.
_BIAS_OPERATIONS = 20_000_000

#: Biases are left out if the marginal likelihood gives them a stronger ridge, a prior standard
#: deviation below 0.1 in log-odds: they would only widen the bounds.
_STRONGEST_BIAS_RIDGE = 100.0


@dataclass(frozen=True, kw_only=True)
class SoftmaxJointModel:
    """A fitted softmax of scaled log scores (n, J, K), with its likelihood."""

    scale: FloatArray
    bias: bool
    likelihood: str
    ridge: FloatArray  # strength of the slopes' ridge, and of the biases' where there are any
    flat: bool  # whether the likelihood is constant in some directions
    fit: SoftmaxFit
    belief_likelihood: SoftmaxLikelihood
    level_likelihoods: SoftmaxLevelLikelihoods

    @property
    def n_iter(self) -> int:
        """Newton steps of the fit."""
        return self.fit.n_iter

    @property
    def gradient_norm(self) -> float:
        """Largest component of the projected gradient at the estimate per unit of sample weight."""
        return self.fit.gradient_norm

    @property
    def slope(self) -> FloatArray:
        """Slope of each classifier in its own units."""
        inner = self.fit.coef[: len(self.scale)]
        return np.divide(inner, self.scale, out=np.zeros_like(inner), where=self.scale > 0)

    @property
    def intercept(self) -> FloatArray:
        """Bias of each class, of mean zero."""
        biases = np.append(0.0, self.fit.coef[len(self.scale) :])
        n_classes = len(self.belief_likelihood.utilities) + 1
        return biases - biases.mean() if self.bias else np.zeros(n_classes)

    def proba(self, scores: FloatArray) -> FloatArray:
        """Return the estimated probabilities (n, K)."""
        return softmax_in_place(self._queries(scores) @ self.fit.coef)

    def bounds(self, scores: FloatArray, threads: int) -> tuple[FloatArray, FloatArray]:
        """Return lower and upper probabilities, each (n, K)."""
        compute = stepped_bounds if self.flat else belief_and_plausibility
        bounds = compute(self.belief_likelihood, self._queries(scores), threads=threads)
        return including(self.proba(scores), bounds)

    def level_bounds(
        self, scores: FloatArray, level: float, threads: int
    ) -> tuple[FloatArray, FloatArray]:
        """Return bounds that contain the probabilities at a confidence level, each (n, K)."""
        if self.level_likelihoods.gradient_norm > CERTIFIED:
            raise _not_certified(self.level_likelihoods.gradient_norm)
        return level_bounds(self.level_likelihoods, self._queries(scores), level, threads=threads)

    def _queries(self, scores: FloatArray) -> FloatArray:
        return queries_of(scores, self.scale, bias=self.bias)


def fit_softmax(
    scores: FloatArray, y: IntArray, weight: FloatArray, settings: JointSettings
) -> SoftmaxJointModel:
    """Return the model fitted to log scores (n, J, K), labels 0..K-1, and positive weights."""
    n, n_classifiers, n_classes = scores.shape
    scale = spread_of(scores, weight)
    bias = settings.bias
    if bias is None:  # try biases only if that fit takes seconds at most
        bias = n * n_classes * (n_classifiers + n_classes) ** 2 <= _BIAS_OPERATIONS
    queries = queries_of(scores, scale, bias=bias)
    rows = np.ascontiguousarray(queries[:, 1:])
    p = rows.shape[2]
    bounded = np.arange(p) < n_classifiers
    target = target_table(y, weight, n_classes, settings.targets)[y, 1:]
    if settings.ridge is None:
        forms = _forms(n_classifiers, n_classes, bias=bias)
        ridge = _ridge_by_marginal_likelihood(rows, target, weight, bounded, forms)
        if settings.bias is None and bias and ridge[1] > _STRONGEST_BIAS_RIDGE:
            return fit_softmax(scores, y, weight, settings._replace(bias=False))
        estimate = _certified(
            fit_softmax_model(rows, target, weight, np.tensordot(ridge, forms, axes=1), bounded)
        )
    else:
        ridge = np.array([float(settings.ridge)])
    penalty = np.where(bounded, settings.ridge or 0.0, 0.0)
    if settings.targets == "raw":
        advantages = (queries[np.arange(n), y][:, None, :] - queries).reshape(-1, p)
        lower = np.where(bounded, 0.0, -np.inf)
        check_estimate_exists(advantages[:, penalty == 0], lower[penalty == 0])
    if settings.ridge is None:
        fit, penalty = _without_ridge(rows, target, weight, bounded)
    else:
        estimate = fit = _certified(fit_softmax_model(rows, target, weight, penalty, bounded))
    belief = softmax_likelihood(rows, weight, penalty, bounded, fit)
    # One solution path per pair of classes, of some dozen passes over rows, classes and Hessian.
    likelihood_form = choose_likelihood_form(
        settings.likelihood, n * n_classes**3 * (p**2 + 15), _EXACT_OPERATIONS
    )
    quadratic = likelihood_form == "quadratic"
    if quadratic:
        belief = quadratic_softmax_likelihood(belief, fit.hessian, penalty)
    return SoftmaxJointModel(
        scale=scale,
        bias=bias,
        likelihood=likelihood_form,
        ridge=ridge,
        flat=n < p and not quadratic and not penalty.any(),
        fit=estimate,
        belief_likelihood=belief,
        level_likelihoods=softmax_level_likelihoods(rows, y, weight, bounded, quadratic=quadratic),
    )


def _forms(n_classifiers: int, n_classes: int, *, bias: bool) -> FloatArray:
    """Return the quadratic forms of the ridges: of slopes, and of biases about their mean.

    Biases are relative to the first class; the form about their mean treats all classes alike.
    """
    p = n_classifiers + (n_classes - 1 if bias else 0)
    forms = np.zeros((1 + bias, p, p))
    forms[0, :n_classifiers, :n_classifiers] = np.eye(n_classifiers)
    if bias:
        forms[1, n_classifiers:, n_classifiers:] = np.eye(n_classes - 1) - 1 / n_classes
    return forms


def _ridge_by_marginal_likelihood(
    rows: FloatArray, target: FloatArray, weight: FloatArray, bounded: BoolArray, forms: FloatArray
) -> FloatArray:
    """Return the ridge of each group that maximises the marginal likelihood."""

    def fit_at(penalty: FloatArray) -> tuple[FloatArray, FloatArray, BoolArray]:
        fit = fit_softmax_model(rows, target, weight, penalty, bounded)
        return fit.coef, fit.hessian, ~(bounded & (fit.coef <= 0.0))

    return ridge_by_marginal_likelihood(fit_at, forms)


def _without_ridge(
    rows: FloatArray, target: FloatArray, weight: FloatArray, bounded: BoolArray
) -> tuple[SoftmaxFit, FloatArray]:
    """Return the fit that bounds are computed from, and its penalty: 0, or the weakest.

    If classifiers are copies up to rounding, the optimum cannot be certified without a penalty.
    """
    none = np.zeros(len(bounded))
    fit = fit_softmax_model(rows, target, weight, none, bounded)
    if fit.gradient_norm <= CERTIFIED:
        return fit, none
    weakest = np.where(bounded, SMALLEST_RIDGE, 0.0)
    return _certified(fit_softmax_model(rows, target, weight, weakest, bounded)), weakest


def _certified(fit: SoftmaxFit) -> SoftmaxFit:
    """Return the fit; raise if its gradient is not near 0."""
    if fit.gradient_norm > CERTIFIED:
        raise _not_certified(fit.gradient_norm)
    return fit


def _not_certified(gradient_norm: float) -> CalibrationInputError:
    return CalibrationInputError(
        f"the joint fit did not reach the maximum of the likelihood: its gradient is still "
        f"{gradient_norm:.1e} for each row, where at most {CERTIFIED:.0e} is allowed. Some "
        "classifiers are copies of each other to rounding; use a ridge, such as ridge=1, fewer "
        "classifiers or more calibration rows."
    )


def spread_of(scores: FloatArray, weight: FloatArray) -> FloatArray:
    """Return the spread of each classifier's scores between classes; 0 where it is rounding."""
    centred = scores - scores.mean(axis=2, keepdims=True)
    spread = root_mean_square(centred, weight)
    noise = 1e-13 * np.abs(scores).max(axis=(0, 2))
    return np.where(
        (np.ptp(scores, axis=2).max(axis=0) > noise) & (spread > SMALLEST_DEVIATION), spread, 0.0
    )


def queries_of(scores: FloatArray, scale: FloatArray, *, bias: bool) -> FloatArray:
    """Return the derivatives of the linear predictors in the coefficients, (n, K, p).

    Linear predictors are relative to the first class, whose own are 0.
    """
    n, _, n_classes = scores.shape
    safe = np.where(scale > 0, scale, 1.0)[:, None]
    with np.errstate(over="ignore"):
        scaled = np.where(scale[:, None] > 0, (scores - scores[:, :, :1]) / safe, 0.0)
    slopes = rescale_huge_rows(scaled).transpose(0, 2, 1)
    if not bias:
        return np.ascontiguousarray(slopes)
    biases = np.broadcast_to(np.eye(n_classes)[:, 1:], (n, n_classes, n_classes - 1))
    return np.concatenate([slopes, biases], axis=2)
