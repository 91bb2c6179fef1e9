"""The joint model of two classes: a logistic regression on several scores, with its doubts (P1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import expit

from dubito._kernels.joint_logistic import (
    JointEvidence,
    belief_and_plausibility,
    contour_of,
    joint_evidence,
    quadratic_evidence,
)
from dubito._kernels.joint_logistic_level import (
    JointLevels,
    joint_levels,
    level_bounds,
    quadratic_levels,
)
from dubito._kernels.logistic import fit_logistic, standardisation, standardised
from dubito._kernels.targets import event_targets
from dubito.calibration._joint_settings import (
    SMALLEST,
    JointSettings,
    brought_near,
    check_estimate_exists,
    choose_likelihood,
    root_mean_square,
)
from dubito.calibration._joint_strength import strengths_by_evidence

if TYPE_CHECKING:
    from dubito._checks import BoolArray, FloatArray, IntArray

#: Up to so many rows times squared coefficients bounds are exact unless asked for: 5 ms a row.
_CHEAP = 250_000


@dataclass(frozen=True, kw_only=True)
class BinaryJointModel:
    """A fitted logistic regression on standardised margins (n, J), with its likelihood."""

    centre: FloatArray
    scale: FloatArray
    bias: bool
    likelihood: str
    ridge: FloatArray  # strength of the slopes' ridge, (1,)
    evidence: JointEvidence
    belief: JointEvidence  # what bounds are made from
    levels: JointLevels

    @property
    def n_iter(self) -> int:
        """Newton steps of the fit."""
        return self.evidence.fit.n_iter

    @property
    def gradient_norm(self) -> float:
        """Largest component of the gradient at the estimate for each unit of weight."""
        return self.evidence.fit.gradient_norm

    @property
    def certificate(self) -> float:
        """The largest gradient norm of all fits: of the estimate, and of bounds at a level."""
        return max(self.gradient_norm, self.levels.gradient_norm)

    @property
    def slope(self) -> FloatArray:
        """Slope of each classifier in its own units."""
        inner = self.evidence.coef[1:] if self.bias else self.evidence.coef
        return np.divide(inner, self.scale, out=np.zeros_like(inner), where=self.scale > 0)

    @property
    def intercept(self) -> float:
        """Log-odds where all scores are 0."""
        level = self.evidence.coef[0] if self.bias else 0.0
        return float(level - self.slope @ self.centre)

    def proba(self, margins: FloatArray) -> FloatArray:
        """Return the estimated probabilities (n, 2)."""
        eta = self._design(margins) @ self.evidence.coef
        return np.column_stack([expit(-eta), expit(eta)])

    def bounds(self, margins: FloatArray, threads: int) -> tuple[FloatArray, FloatArray]:
        """Return belief and plausibility, each (n, 2)."""
        design = self._design(margins)
        lower, upper = belief_and_plausibility(self.belief, design, threads=threads)
        if self.belief is not self.evidence:  # the estimate has a ridge, the bounds have none
            theta = expit(design @ self.evidence.coef)
            lower, upper = np.minimum(lower, theta), np.maximum(upper, theta)
        return np.column_stack([1 - upper, lower]), np.column_stack([1 - lower, upper])

    def level_bounds(
        self, margins: FloatArray, level: float, threads: int
    ) -> tuple[FloatArray, FloatArray]:
        """Return bounds that hold the probabilities at a confidence level, each (n, 2)."""
        exact = self.likelihood == "exact"
        lower, upper = level_bounds(
            self.levels, self._design(margins), level, exact=exact, threads=threads
        )
        return np.column_stack([1 - upper, lower]), np.column_stack([1 - lower, upper])

    def contour(self, margins: FloatArray, theta: FloatArray, threads: int) -> FloatArray:
        """Return the plausibility of each probability of the second class, (n, t)."""
        return contour_of(self.belief, self._design(margins), theta, threads=threads)

    def _design(self, margins: FloatArray) -> FloatArray:
        return design_of(margins, self.centre, self.scale, bias=self.bias)


def fit_binary(
    margins: FloatArray, y: IntArray, weight: FloatArray, settings: JointSettings
) -> BinaryJointModel:
    """Fit the model to margins (n, J), labels 0 and 1, and positive weights."""
    bias = settings.bias is not False
    units = [standardisation(column, weight) for column in margins.T]
    centre, scale = np.array(units).T
    if not bias:
        centre, scale = np.zeros_like(centre), root_mean_square(margins, weight)
    scale = np.where(scale < SMALLEST, 0.0, scale)
    design = design_of(margins, centre, scale, bias=bias)
    target = event_targets(y == 1, weight, settings.targets)
    slopes = np.arange(design.shape[1]) >= int(bias)
    ridge = settings.ridge
    if ridge is None:
        ridge = _ridge_by_evidence(design, target, weight, slopes)
    penalty = np.where(slopes, ridge, 0.0)
    if settings.targets == "raw":
        open_ended = design[:, penalty == 0]
        advantages = np.where(y == 1, 1, -1)[:, None] * open_ended
        check_estimate_exists(advantages, np.full(open_ended.shape[1], -np.inf))
    belief = evidence = joint_evidence(design, target, weight, penalty)
    if settings.ridge is None:
        belief = joint_evidence(design, target, weight, np.zeros(len(penalty)))
    levels = joint_levels(design, y == 1, weight)
    likelihood = choose_likelihood(settings.likelihood, len(design) * design.shape[1] ** 2, _CHEAP)
    if likelihood == "quadratic":
        levels = quadratic_levels(levels)
        if belief is evidence:
            belief = evidence = quadratic_evidence(evidence)
        else:
            belief = quadratic_evidence(belief)
    return BinaryJointModel(
        centre=centre,
        scale=scale,
        bias=bias,
        likelihood=likelihood,
        ridge=np.array([float(ridge)]),
        evidence=evidence,
        belief=belief,
        levels=levels,
    )


def _ridge_by_evidence(
    design: FloatArray, target: FloatArray, weight: FloatArray, slopes: BoolArray
) -> float:
    """Return the strength of the slopes' ridge that maximises the evidence."""
    everything = np.ones(len(slopes), dtype=bool)

    def fit_at(penalty: FloatArray) -> tuple[FloatArray, FloatArray, BoolArray]:
        ridge = penalty.diagonal()
        coef = fit_logistic(design, target, weight, ridge, np.zeros(len(ridge))).coef
        p = expit(design @ coef)
        hessian = (design * (weight * p * (1 - p))[:, None]).T @ design + penalty
        return coef, hessian, everything

    return float(strengths_by_evidence(fit_at, np.diag(slopes.astype(float))[None])[0])


def design_of(
    margins: FloatArray, centre: FloatArray, scale: FloatArray, *, bias: bool
) -> FloatArray:
    """Return standardised scores, after a column of ones where there is a bias."""
    with np.errstate(over="ignore"):
        columns = [standardised(s, c, d) for s, c, d in zip(margins.T, centre, scale, strict=True)]
    near = brought_near(np.column_stack(columns))
    return np.column_stack([np.ones(len(margins)), near]) if bias else near
