"""The fitted joint model of two classes: its settings, standardised scores, estimate and bounds.

A logistic regression on several scores (Minary et al., 2017); the likelihood and its bounds are in
`_kernels/joint_logistic.py`. The settings and checks at the top also serve `_softmax_joint_model`,
the model of more classes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.optimize import linprog
from scipy.special import expit

from dubito._numerics.logistic_curvature import logistic_hessian
from dubito._numerics.logistic_fit import fit_logistic, standardisation, standardised
from dubito._numerics.targets import event_targets
from dubito.belief.bounds import including
from dubito.calibration._kernels.joint_logistic import (
    JointLikelihood,
    belief_and_plausibility,
    contour_of,
    joint_likelihood,
    quadratic_joint_likelihood,
)
from dubito.calibration._kernels.joint_logistic_level import (
    JointLevelLikelihoods,
    joint_level_likelihoods,
    level_bounds,
    quadratic_level_likelihoods,
)
from dubito.calibration._kernels.marginal_likelihood import ridge_by_marginal_likelihood
from dubito.calibration.errors import CalibrationInputError

if TYPE_CHECKING:
    from dubito._typing import BoolArray, FloatArray, IntArray

#: Largest score of a row, in standard deviations from the centre, to which rows with larger ones
#: are scaled down: bounds have reached their limit to eight digits there, and rounding would
#: dominate further out.
_LARGEST_SCORE = 1e8

#: Scores with a smaller standard deviation count as constant, as its inverse might not be finite.
SMALLEST_DEVIATION = 1e-290

#: Largest product of the calibration rows and the squared number of coefficients for which
#: likelihood="auto" is exact: about 5 ms for each row of a prediction.
_EXACT_OPERATIONS = 250_000


class JointSettings(NamedTuple):
    """Parameters of the fit of a joint model."""

    targets: str
    ridge: float | None  # None: by the marginal likelihood
    bias: bool | None  # None: by the marginal likelihood
    likelihood: str


def rescale_huge_rows(rows: FloatArray) -> FloatArray:
    """Return standardised scores, rows with any above `_LARGEST_SCORE` scaled down to it."""
    finite = np.clip(rows, -1e300, 1e300)
    largest = np.abs(finite).max(axis=tuple(range(1, rows.ndim)), keepdims=True, initial=1.0)
    return finite * np.minimum(_LARGEST_SCORE / largest, 1.0)


def root_mean_square(values: FloatArray, weight: FloatArray) -> FloatArray:
    """Return the root mean square of each classifier's values (axis 1), without overflow."""
    others = tuple(axis for axis in range(values.ndim) if axis != 1)
    largest = np.abs(values).max(axis=others, keepdims=True)
    squares = (values / np.where(largest > 0, largest, 1.0)) ** 2
    by_row = squares.reshape(*squares.shape[:2], -1).mean(axis=2)
    return np.asarray(np.sqrt(np.average(by_row, axis=0, weights=weight)) * largest.ravel())


def choose_likelihood_form(wanted: str, operations: int, limit: int) -> str:
    """Return "exact" or "quadratic"; for "auto", exact up to a limit of operations."""
    if wanted != "auto":
        return wanted
    return "exact" if operations <= limit else "quadratic"


def check_estimate_exists(advantages: FloatArray, lower: FloatArray) -> None:
    r"""Raise where raw targets have no maximum-likelihood estimate.

    `advantages` (m, p) times the coefficients without a ridge is the margin of each row's true
    class over another class; the coefficients are at least `lower`. There is no estimate exactly
    if some direction decreases no margin and increases one: the likelihood then grows along it
    without end. A linear programme finds this direction.
    """
    size = np.abs(advantages).max(axis=1, initial=0.0)
    if not size.any():
        return
    advantages = advantages[size > 0] / size[size > 0, None]  # the scale of a row does not matter
    found = linprog(
        -advantages.sum(axis=0),
        A_ub=np.vstack([-advantages, advantages]),
        b_ub=np.concatenate([np.zeros(len(advantages)), np.ones(len(advantages))]),
        bounds=[(low, None) for low in lower],
        method="highs",
    )
    if found.status == 0 and -found.fun < 0.5:  # a direction can be scaled until a margin is 1
        return
    raise CalibrationInputError(
        "some combination of the scores separates the classes, so with raw targets no "
        'maximum-likelihood estimate exists; use targets="light", which always has one, a '
        "ridge, or more calibration rows."
    )


@dataclass(frozen=True, kw_only=True)
class BinaryJointModel:
    """A fitted logistic regression on standardised margins (n, J), with its likelihood."""

    centre: FloatArray
    scale: FloatArray
    bias: bool
    likelihood: str
    ridge: FloatArray  # strength of the slopes' ridge, (1,)
    estimate_likelihood: JointLikelihood
    belief_likelihood: JointLikelihood  # that of belief and plausibility
    level_likelihoods: JointLevelLikelihoods

    @property
    def n_iter(self) -> int:
        """Newton steps of the fit."""
        return self.estimate_likelihood.fit.n_iter

    @property
    def gradient_norm(self) -> float:
        """Largest component of the gradient at the estimate per unit of sample weight."""
        return self.estimate_likelihood.fit.gradient_norm

    @property
    def largest_gradient_norm(self) -> float:
        """Largest gradient norm of all fits: of the estimate, and of bounds at a level."""
        return max(self.gradient_norm, self.level_likelihoods.gradient_norm)

    @property
    def slope(self) -> FloatArray:
        """Slope of each classifier in its own units."""
        inner = self.estimate_likelihood.coef[1:] if self.bias else self.estimate_likelihood.coef
        return np.divide(inner, self.scale, out=np.zeros_like(inner), where=self.scale > 0)

    @property
    def intercept(self) -> float:
        """Log-odds where all scores are 0."""
        bias = self.estimate_likelihood.coef[0] if self.bias else 0.0
        return float(bias - self.slope @ self.centre)

    def proba(self, margins: FloatArray) -> FloatArray:
        """Return the estimated probabilities (n, 2)."""
        eta = self._design(margins) @ self.estimate_likelihood.coef
        return np.column_stack([expit(-eta), expit(eta)])

    def bounds(self, margins: FloatArray, threads: int) -> tuple[FloatArray, FloatArray]:
        """Return belief and plausibility, each (n, 2)."""
        design = self._design(margins)
        lower, upper = belief_and_plausibility(self.belief_likelihood, design, threads=threads)
        # The estimate has a ridge, the bounds have none.
        if self.belief_likelihood is not self.estimate_likelihood:
            theta = expit(design @ self.estimate_likelihood.coef)
            lower, upper = including(theta, (lower, upper))
        return np.column_stack([1 - upper, lower]), np.column_stack([1 - lower, upper])

    def level_bounds(
        self, margins: FloatArray, level: float, threads: int
    ) -> tuple[FloatArray, FloatArray]:
        """Return bounds that contain the probabilities at a confidence level, each (n, 2)."""
        exact = self.likelihood == "exact"
        lower, upper = level_bounds(
            self.level_likelihoods, self._design(margins), level, exact=exact, threads=threads
        )
        return np.column_stack([1 - upper, lower]), np.column_stack([1 - lower, upper])

    def contour(self, margins: FloatArray, theta: FloatArray, threads: int) -> FloatArray:
        """Return the plausibility of each probability of the second class, (n, t)."""
        return contour_of(self.belief_likelihood, self._design(margins), theta, threads=threads)

    def _design(self, margins: FloatArray) -> FloatArray:
        return design_of(margins, self.centre, self.scale, bias=self.bias)


def fit_binary(
    margins: FloatArray, y: IntArray, weight: FloatArray, settings: JointSettings
) -> BinaryJointModel:
    """Return the model fitted to margins (n, J), labels 0 and 1, and positive sample weights."""
    bias = settings.bias is not False
    units = [standardisation(column, weight) for column in margins.T]
    centre, scale = np.array(units).T
    if not bias:
        centre, scale = np.zeros_like(centre), root_mean_square(margins, weight)
    scale = np.where(scale < SMALLEST_DEVIATION, 0.0, scale)
    design = design_of(margins, centre, scale, bias=bias)
    target = event_targets(y == 1, weight, settings.targets)
    slopes = np.arange(design.shape[1]) >= int(bias)
    ridge = settings.ridge
    if ridge is None:
        ridge = _ridge_by_marginal_likelihood(design, target, weight, slopes)
    penalty = np.where(slopes, ridge, 0.0)
    if settings.targets == "raw":
        unpenalised = design[:, penalty == 0]
        advantages = np.where(y == 1, 1, -1)[:, None] * unpenalised
        check_estimate_exists(advantages, np.full(unpenalised.shape[1], -np.inf))
    belief = estimate = joint_likelihood(design, target, weight, penalty)
    if settings.ridge is None:
        belief = joint_likelihood(design, target, weight, np.zeros(len(penalty)))
    likelihoods = joint_level_likelihoods(design, y == 1, weight)
    likelihood_form = choose_likelihood_form(
        settings.likelihood, len(design) * design.shape[1] ** 2, _EXACT_OPERATIONS
    )
    if likelihood_form == "quadratic":
        likelihoods = quadratic_level_likelihoods(likelihoods)
        if belief is estimate:
            belief = estimate = quadratic_joint_likelihood(estimate)
        else:
            belief = quadratic_joint_likelihood(belief)
    return BinaryJointModel(
        centre=centre,
        scale=scale,
        bias=bias,
        likelihood=likelihood_form,
        ridge=np.array([float(ridge)]),
        estimate_likelihood=estimate,
        belief_likelihood=belief,
        level_likelihoods=likelihoods,
    )


def _ridge_by_marginal_likelihood(
    design: FloatArray, target: FloatArray, weight: FloatArray, slopes: BoolArray
) -> float:
    """Return the strength of the slopes' ridge that maximises the marginal likelihood."""
    all_free = np.ones(len(slopes), dtype=bool)

    def fit_at(penalty: FloatArray) -> tuple[FloatArray, FloatArray, BoolArray]:
        ridge = penalty.diagonal()
        coef = fit_logistic(design, target, weight, ridge, np.zeros(len(ridge))).coef
        return coef, logistic_hessian(design, design @ coef, weight, ridge), all_free

    return float(ridge_by_marginal_likelihood(fit_at, np.diag(slopes.astype(float))[None])[0])


def design_of(
    margins: FloatArray, centre: FloatArray, scale: FloatArray, *, bias: bool
) -> FloatArray:
    """Return standardised scores, after a column of ones where there is a bias."""
    with np.errstate(over="ignore"):
        columns = [standardised(s, c, d) for s, c, d in zip(margins.T, centre, scale, strict=True)]
    scores = rescale_huge_rows(np.column_stack(columns))
    return np.column_stack([np.ones(len(margins)), scores]) if bias else scores
