"""Other methods for the imprecise discriminant of Carranza Alarcón and Destercke 2019.

For each row, each class is one convex quadratic programme (the nearest mean of the box) and, unless
another class has excluded it already, one concave one (the farthest). Four ways to solve them:

* `farthest_by_coordinates`: the free method of the only public implementation, classifip (on
  GitHub, sdestercke/classifip), whose exact method needs MATLAB. It hands the concave programme to
  qcqp: coordinate descent from a random start, every side of the box a quadratic constraint that is
  held to 0.01 only. It is not exact: it ends at a local optimum of a box that may be too wide.
  qcqp needs a cvxpy older than 1.0, so its steps are repeated here, without its modelling and
  without its random steps along features of no variance; this rival is no slower than the
  package itself.
* `farthest_by_branching`: exact, the box split until a convex relaxation settles every part.
* `farthest_by_corners`: exact, all 2^p corners.
* nearest means by cvxopt's interior point, as classifip does, or by scipy's L-BFGS-B.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse
from scipy.optimize import minimize

try:
    import cvxopt
except ImportError:
    cvxopt = None

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Bools = NDArray[np.bool_]

#: Relative gap at which a part of the box counts as settled.
SETTLED = 1e-9


@dataclass(frozen=True, kw_only=True)
class BoxProblem:
    """Squared distances of `x` to the means of a box: centre + half_width * s, s in [-1, 1]^p."""

    precision: Floats
    mean: Floats
    half_width: Floats
    x: Floats

    @cached_property
    def quad(self) -> Floats:
        """The matrix A of the distance d'Pd + 2 b's + s'As."""
        return self.half_width[:, None] * self.precision * self.half_width

    @cached_property
    def slope(self) -> Floats:
        """The vector b of the distance d'Pd + 2 b's + s'As."""
        return -self.half_width * (self.precision @ (self.x - self.mean))

    def distance(self, s: Floats) -> float:
        """Return the squared distance to the mean given by `s`."""
        offset = self.x - self.mean - self.half_width * s
        return float(offset @ self.precision @ offset)


@dataclass(frozen=True, kw_only=True)
class BoxedGaussians:
    """Gaussian classes with means in boxes; `score` is log prior minus half the log determinant."""

    score: Floats
    means: Floats
    half_widths: Floats
    precisions: Floats

    def problem(self, k: int, x: Floats) -> BoxProblem:
        """Return the two programmes of class `k` at `x`."""
        return BoxProblem(
            precision=self.precisions[k], mean=self.means[k], half_width=self.half_widths[k], x=x
        )

    def widened(self, c: float) -> BoxedGaussians:
        """Return the same classes with half widths `c` times as large."""
        return BoxedGaussians(
            score=self.score,
            means=self.means,
            half_widths=c * self.half_widths,
            precisions=self.precisions,
        )


def learn(X: Floats, y: NDArray[np.intp], *, tied: bool, c: float = 1.0) -> BoxedGaussians:
    """Return the fitted classes as published, with the raw box; classes are numbered from 0.

    Directions in which a class hardly varies, in units of the pooled standard deviations, are left
    out of its form and its determinant.
    """
    counts = np.bincount(y)
    parts = [X[y == k] for k in range(len(counts))]
    scatter = np.array(
        [(rows - rows.mean(axis=0)).T @ (rows - rows.mean(axis=0)) for rows in parts]
    )
    pooled = scatter.sum(axis=0) / (len(y) - len(counts))
    unit = np.sqrt(np.diag(pooled))
    own = pooled[None] if tied else scatter / (counts - 1)[:, None, None]
    forms = [_precision(covariance / np.outer(unit, unit)) for covariance in own]
    shape = (len(counts), *pooled.shape)
    return BoxedGaussians(
        score=np.log(counts / len(y)) - 0.5 * np.array([volume for _, volume in forms]),
        means=np.array([rows.mean(axis=0) for rows in parts]),
        half_widths=np.repeat((c / counts)[:, None], len(unit), axis=1),
        precisions=np.broadcast_to([form / np.outer(unit, unit) for form, _ in forms], shape),
    )


def _precision(covariance: Floats) -> tuple[Floats, float]:
    """Return the pseudo-inverse and the logarithm of the pseudo-determinant."""
    values, vectors = np.linalg.eigh(covariance)
    kept = values > 1e-8 * values[-1]
    turned = vectors[:, kept] / np.sqrt(values[kept])
    return turned @ turned.T, float(np.log(values[kept]).sum())


@dataclass(frozen=True, kw_only=True)
class Method:
    """How to solve the two programmes of a class: each gives a squared distance."""

    nearest: Callable[[BoxProblem], float]
    farthest: Callable[[BoxProblem], float]

    def log_bounds(self, model: BoxedGaussians, x: Floats) -> tuple[Floats, Floats]:
        """Return bounds on log(prior x density) of all classes, up to a constant."""
        problems = [model.problem(k, x) for k in range(len(model.score))]
        return (
            model.score - 0.5 * np.array([self.farthest(problem) for problem in problems]),
            model.score - 0.5 * np.array([self.nearest(problem) for problem in problems]),
        )

    def posterior_bounds(self, model: BoxedGaussians, x: Floats) -> tuple[Floats, Floats]:
        """Return bounds on the probabilities of all classes, for precise priors."""
        low, high = self.log_bounds(model, x)
        low, high = np.exp(low - high.max()), np.exp(high - high.max())
        return low / (low + high.sum() - high), high / (high + low.sum() - low)

    def stays(self, model: BoxedGaussians, x: Floats) -> Bools:
        """Return the classes that no other dominates, most likely ones first, as classifip does."""
        problems = [model.problem(k, x) for k in range(len(model.score))]
        centre = np.zeros(len(x))
        likely = model.score - 0.5 * np.array([p.distance(centre) for p in problems])
        high = model.score - 0.5 * np.array([self.nearest(problem) for problem in problems])
        stays = np.ones(len(high), dtype=bool)
        for k in np.argsort(-likely):
            if stays[k]:
                dominated = high < model.score[k] - 0.5 * self.farthest(problems[k])
                dominated[k] = False
                stays &= ~dominated
        return stays

    def sets(self, model: BoxedGaussians, X: Floats) -> Bools:
        """Return the sets of all rows."""
        return np.array([self.stays(model, x) for x in X])

    def critical_c(self, model: BoxedGaussians, x: Floats, max_c: float, steps: int) -> Floats:
        """Halve [0, max_c] `steps` times for each class; `model` has the boxes of c = 1."""
        found = np.where(self.stays(model.widened(0.0), x), 0.0, np.inf)
        inside = self.stays(model.widened(max_c), x)
        for k in np.flatnonzero(inside & (found > 0)):
            low, high = 0.0, max_c
            for _ in range(steps):
                middle = 0.5 * (low + high)
                if self.stays(model.widened(middle), x)[k]:
                    high = middle
                else:
                    low = middle
            found[k] = high
        return found


def box_minimum_by_cvxopt(quad: Floats, slope: Floats) -> Floats:
    """Return the s in [-1, 1]^p with the least s'As + 2 b's, by cvxopt's interior point."""
    p = len(slope)
    sides = cvxopt.spmatrix([1.0] * p + [-1.0] * p, range(2 * p), [*range(p), *range(p)])
    solution = cvxopt.solvers.qp(
        cvxopt.matrix(2.0 * quad),
        cvxopt.matrix(2.0 * slope),
        sides,
        cvxopt.matrix(1.0, (2 * p, 1)),
        options={"show_progress": False, "abstol": 1e-12, "reltol": 1e-9},
    )
    return np.clip(np.array(solution["x"]).ravel(), -1.0, 1.0)


def box_minimum_by_scipy(quad: Floats, slope: Floats) -> Floats:
    """Return the same by L-BFGS-B."""

    def value(s: Floats) -> tuple[float, Floats]:
        half = quad @ s + slope
        return float(s @ (half + slope)), 2.0 * half

    start = np.where(slope > 0, -1.0, 1.0)
    bounds = [(-1.0, 1.0)] * len(slope)
    options = {"ftol": 1e-15, "gtol": 1e-12, "maxiter": 1_000}
    return minimize(value, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options).x


def nearest_by_cvxopt(problem: BoxProblem) -> float:
    """Return the least distance, by cvxopt."""
    return problem.distance(box_minimum_by_cvxopt(problem.quad, problem.slope))


def nearest_by_scipy(problem: BoxProblem) -> float:
    """Return the least distance, by L-BFGS-B."""
    return problem.distance(box_minimum_by_scipy(problem.quad, problem.slope))


def farthest_by_corners(problem: BoxProblem) -> float:
    """Return the largest distance over all 2^p corners; 1 GB where p is 22."""
    p = len(problem.x)
    corners = 2.0 * ((np.arange(2**p)[:, None] >> np.arange(p)) & 1) - 1.0
    values = np.einsum("ij,ij->i", corners @ problem.quad + 2.0 * problem.slope, corners)
    return problem.distance(corners[values.argmax()])


def farthest_by_branching(
    problem: BoxProblem, minimum: Callable[[Floats, Floats], Floats]
) -> float:
    """Return the largest distance by branch and bound; `minimum` solves the relaxations.

    With u such that Diag(u) - A is positive semidefinite, s'As = s'(A - Diag(u))s + sum(u) at the
    corners, and the right hand side is concave between them.
    """
    quad, slope = problem.quad, problem.slope
    excess = _majorant(quad)
    convex = np.diag(excess) - quad
    best = _climb(quad, slope, np.where(slope > 0, 1.0, -1.0))
    best_value = best @ (quad @ best + 2.0 * slope)
    parts = [np.zeros(len(slope))]  # a sign where a coordinate is settled, 0 where it is free
    while parts:
        part = parts.pop()
        free = np.flatnonzero(part == 0)
        settled = np.flatnonzero(part)
        own = slope[free] + quad[np.ix_(free, settled)] @ part[settled]
        fixed = part @ (quad @ part + 2.0 * slope)
        s = minimum(convex[np.ix_(free, free)], -own)
        half = convex[np.ix_(free, free)] @ s - own
        # Adding the largest gain of the linearised problem makes the bound valid for any s.
        bound = s @ (own - half) + excess[free].sum() + 2.0 * (half @ s + np.abs(half).sum())
        corner = part.copy()
        corner[free] = np.where(s > 0, 1.0, -1.0)
        corner = _climb(quad, slope, corner)
        value = corner @ (quad @ corner + 2.0 * slope)
        if value > best_value:
            best, best_value = corner, value
        if fixed + bound > best_value + SETTLED * abs(best_value):
            split = free[(excess[free] * (1.0 - s**2)).argmax()]
            for sign in (-np.sign(best[split]), np.sign(best[split])):
                child = part.copy()
                child[split] = sign
                parts.append(child)
    return problem.distance(best)


def _majorant(quad: Floats) -> Floats:
    """Return u with Diag(u) - A positive semidefinite: the diagonal of A times one number."""
    root = np.sqrt(np.maximum(np.diag(quad), np.finfo(float).tiny))
    return np.linalg.eigvalsh(quad / np.outer(root, root))[-1] * root**2


def _climb(quad: Floats, slope: Floats, s: Floats) -> Floats:
    """Flip the sign that gains most until none gains."""
    s = s.copy()
    while True:
        gain = 4.0 * (np.diag(quad) - s * (quad @ s + slope))
        i = gain.argmax()
        if gain[i] <= SETTLED * np.abs(quad).sum():
            return s
        s[i] = -s[i]


@dataclass(frozen=True)
class Quadratic:
    """x'Px + q'x + r with sparse P, as in solvers for general quadratic constraints."""

    matrix: sparse.csr_matrix
    linear: Floats
    constant: float

    def along(self, x: Floats, i: int) -> tuple[float, float, float]:
        """Return the three coefficients as a function of coordinate `i`."""
        rest = x.copy()
        rest[i] = 0.0
        return (
            float(self.matrix[i, i]),
            float(2.0 * (self.matrix[i, :] @ rest)[0] + self.linear[i]),
            float((self.matrix @ rest + self.linear) @ rest + self.constant),
        )


def farthest_by_coordinates(problem: BoxProblem, rng: np.random.Generator) -> float:
    """Return the distance at a local optimum, as qcqp finds it: see the top of the file."""
    p = len(problem.x)
    flat = sparse.csr_matrix((p, p))
    goal = Quadratic(
        sparse.csr_matrix(-0.5 * problem.precision), problem.precision @ problem.x, 0.0
    )
    sides = [
        Quadratic(flat, sign * side, -sign * (problem.mean[i] + sign * problem.half_width[i]))
        for sign in (-1.0, 1.0)
        for i, side in enumerate(np.eye(p))
    ]
    mean = _enter(rng.standard_normal(p), sides)
    slack = max(max(0.0, side.linear @ mean + side.constant) for side in sides)
    for _ in range(150):
        before = mean.copy()
        for i in range(p):
            curvature, slope, _ = goal.along(mean, i)
            low, high = _interval([side.along(mean, i) for side in sides], slack)
            ends = [curvature * end**2 + slope * end for end in (low, high)]
            if abs(curvature) + abs(slope) > 0 and ends[0] != ends[1]:
                mean[i] = low if ends[0] < ends[1] else high
        if np.abs(mean - before).max() <= 1e-4:
            break
    offset = problem.x - mean
    return float(offset @ problem.precision @ offset)


def _enter(mean: Floats, sides: list[Quadratic]) -> Floats:
    """Halve the largest violation, coordinate by coordinate, until it is below 0.01."""
    for i in range(len(mean)):
        lines = [side.along(mean, i) for side in sides]
        violation = max(0.0, *(b * mean[i] + c for _, b, c in lines if b != 0))
        low, high = -1e-4, violation - 0.01
        while high - low > 1e-4:
            slack = 0.5 * (low + high)
            start, end = _interval(lines, slack)
            if start > end:
                low = slack
            else:
                high, mean[i] = slack, 0.5 * (start + end)
    return mean


def _interval(lines: list[tuple[float, float, float]], slack: float) -> tuple[float, float]:
    """Return where all bx + c <= slack; the sides of a box are lines."""
    low, high = -np.inf, np.inf
    for _, slope, constant in lines:
        if slope > 0:
            high = min(high, (slack - constant) / slope)
        elif slope < 0:
            low = max(low, (slack - constant) / slope)
    return low, high
