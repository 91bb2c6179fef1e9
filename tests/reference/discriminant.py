"""The imprecise Gaussian discriminant by its definition, with enumeration of all vertices.

The farthest mean of a box is found among all its vertices, the nearest by bounded least squares
with a certificate, bounds and decisions among all vertices of the prior set times all combinations
of least and greatest densities, and critical imprecision by finding a root (Carranza Alarcón and
Destercke 2019). Exponential in features and classes, one row at a time; uses no code of dubito.
"""

from __future__ import annotations

from functools import cache
from itertools import product

import numpy as np
from scipy.optimize import brentq, lsq_linear
from scipy.special import softmax
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

LOG_2PI = float(np.log(2 * np.pi))


class NotCertifiedError(AssertionError):
    """No certified optimum was found."""


@cache
def corners(size):
    """Return all vertices of [-1, 1]^size, (2^size, size)."""
    return np.array(list(product([-1.0, 1.0], repeat=size)))


def farthest(root, d, h):
    """Return the greatest squared distance |root (d - y)|^2 over the vertices of |y| <= h."""
    return float(((root @ d - (corners(len(d)) * h) @ root.T) ** 2).sum(axis=1).max())


def nearest(root, d, h):
    """Return the least squared distance: min of |root (d - y)|^2 over the box |y| <= h.

    The problem is convex: the minimum is below the value by at most the gap to the minimum of the
    tangent plane. An error is raised where the gap is not small.
    """
    target, design = root @ d, root * h
    s = np.zeros(len(d))  # y = h s
    inside = np.abs(d) <= h
    s[inside & (h > 0)] = d[inside & (h > 0)] / h[inside & (h > 0)]
    if not inside.all() and design.any():
        moves = design.any(axis=0)
        found = lsq_linear(
            design[:, moves], target, (-1, 1), method="bvls", tol=1e-15, max_iter=500
        )
        s[moves] = found.x.clip(-1, 1)
        s = _polished(design, target, s)
    residual = target - design @ s
    value, gradient = float(residual @ residual), -2 * residual @ design
    gap = gradient @ s + np.abs(gradient).sum()
    rounding = 1e-15 * ((np.abs(root) @ (np.abs(d) + h)) ** 2).sum()
    if gap > 1e-10 * value + rounding:
        raise NotCertifiedError(f"the nearest point is open by {gap} of {value}")
    return value


def _polished(design, target, s):
    """Return the solution for the free coordinates, others fixed at their bounds, if better."""
    free = np.abs(s) < 1 - 1e-9
    rest = target - design[:, ~free] @ s[~free]
    better = s.copy()
    better[free] = np.linalg.lstsq(design[:, free], rest, rcond=None)[0]
    if (np.abs(better) > 1 + 1e-12).any():
        return s
    return min([better.clip(-1, 1), s], key=lambda at: float(((target - design @ at) ** 2).sum()))


def prior_vertices(lower, upper):
    """Return the vertices of priors within bounds that sum to 1: all but one are at a bound."""
    found, places = [], np.arange(len(lower))
    for left in places:
        for at in product([0, 1], repeat=len(lower) - 1):
            prior = np.zeros(len(lower))
            prior[places != left] = np.where(at, upper[places != left], lower[places != left])
            prior[left] = 1 - prior.sum()
            if lower[left] - 1e-12 <= prior[left] <= upper[left] + 1e-12:
                found.append(np.clip(prior, 0.0, 1.0))
    return np.unique(np.round(found, 15), axis=0)


def _log_sum(terms):
    """Return the log of the sum of exponentials over the last axis; scipy's is slower."""
    top = terms.max(axis=-1, keepdims=True)
    shifted = terms - np.where(np.isfinite(top), top, 0)
    return np.log(np.exp(shifted).sum(axis=-1)) + top[..., 0]


def draw_classes(rng, n_features, counts, *, condition=1e4, distance=3.0):
    """Return random rows of classes whose sample covariances have exactly this condition number.

    Each class has its own axes and variances; means are about `distance` deviations apart. A count
    must exceed the number of features.
    """
    spread = np.geomspace(1, condition, n_features)
    rows, labels = [], np.repeat(np.arange(len(counts)), counts)
    for count in counts:
        drawn = rng.normal(size=(count, n_features))
        white = np.linalg.qr(drawn - drawn.mean(axis=0))[0] * np.sqrt(count - 1)
        turn = np.linalg.qr(rng.normal(size=(n_features, n_features)))[0]
        root = (turn * np.sqrt(rng.permutation(spread))).T
        mean = rng.normal(size=n_features) * distance / np.sqrt(n_features)
        rows.append((white + mean) @ root)
    return np.concatenate(rows), labels


def draw_between(rng, X, y, n):
    """Return random rows on lines between training rows, where classes are hard to predict."""
    first, second = (rng.integers(len(y), size=n) for _ in range(2))
    position = rng.random((n, 1))
    return position * X[first] + (1 - position) * X[second]


class ImpreciseGaussians:
    """Gaussian classes with means in boxes; labels are 0..K-1, options those of the estimator."""

    def __init__(
        self,
        X,
        y,
        *,
        covariance_type="tied",
        c=1.0,
        box="raw",
        priors=None,
        prior_imprecision=0.0,
        covariance_imprecision=0.0,
        weight=None,
        tol=1e-4,
        divisor="likelihood",
    ):
        X, y = np.asarray(X, dtype=float), np.asarray(y)
        weight = np.ones(len(y)) if weight is None else np.asarray(weight, dtype=float)
        members = [y == k for k in range(y.max() + 1)]
        self.counts = np.array([weight[own].sum() for own in members])
        self.means = np.array([weight[own] @ X[own] / weight[own].sum() for own in members])
        middle = X - self.means[y]
        for own in members:  # constant columns are centred without rounding errors
            middle[np.ix_(own, np.ptp(X[own], axis=0) == 0)] = 0
        scatters = [(middle[own].T * weight[own]) @ middle[own] for own in members]
        freedom = 1 if divisor == "unbiased" else 0
        pooled = sum(scatters) / (self.counts.sum() - freedom * len(members))
        self.deviations = np.sqrt(np.diag(pooled))
        self.covariances = [
            _covariance(covariance_type, scatter, count - freedom, pooled)
            for scatter, count in zip(scatters, self.counts, strict=True)
        ]
        self.c, self.box = c, box
        # Half widths for c = 1.
        if box == "standard_error":
            own = np.sqrt([np.diag(covariance) for covariance in self.covariances])
            self.e = own / np.sqrt(self.counts[:, None])
        else:
            unit = self.deviations if box == "scaled" else np.ones(X.shape[1])
            self.e = unit / self.counts[:, None]
        units = 1 + 0 * self.deviations if covariance_type == "spherical" else self.deviations
        forms = [_root(covariance, units, tol) for covariance in self.covariances]
        self.roots, log_dets = zip(*forms, strict=True)
        self.log_dets = np.array(log_dets)
        self.priors = prior_vertices(*_prior_bounds(priors, prior_imprecision, self.counts))
        tied = covariance_type == "tied"
        rows = np.full(len(members), self.counts.sum()) if tied else self.counts
        self.rank = np.array([len(root) for root in self.roots])
        # A direction without variance counts as one of pooled variance, at distance 0.
        self.dimension = max(np.count_nonzero(self.deviations), self.rank.max())
        stretch = covariance_imprecision / rows
        self.kappas = np.where(self.rank > 0, 1 + stretch, 1.0)
        self._known = {}

    @property
    def n_classes(self):
        return len(self.counts)

    def at(self, c):
        """Return the same classes with boxes of another size."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__, c=c)
        return other

    def half_widths(self):
        return self.c * self.e

    def distances(self, x):
        """Return the least and greatest squared distance to each class, (K,) each."""
        key = (self.c, x.tobytes())
        if key not in self._known:
            self._known[key] = self._distances(x)
        return self._known[key]

    def _distances(self, x):
        pieces = list(zip(self.roots, self.means, self.half_widths(), strict=True))
        near = [nearest(root, x - mean, h) for root, mean, h in pieces]
        far = [farthest(root, x - mean, h) for root, mean, h in pieces]
        return np.array(near), np.array(far)

    def log_densities(self, x):
        """Return the least and greatest log density of each class, (K,) each."""
        near, far = self.distances(x)
        kappa = self.kappas
        others = np.maximum(self.rank - 1, 0) * np.log(kappa)
        constant = self.dimension * LOG_2PI + self.log_dets
        # The extreme covariances of the interval are extreme in every direction except that of the
        # distance, where the value is log(stretch) + distance / stretch.
        stretch = np.clip(near, 1 / kappa, kappa)
        least = np.log(stretch) + near / stretch - others
        most = np.maximum(np.log(kappa) + far / kappa, far * kappa - np.log(kappa)) + others
        return -0.5 * (constant + most), -0.5 * (constant + least)

    def _log_joints(self, x):
        """Return log(prior x density) for each vertex of priors and of densities, (V, K)."""
        lower, upper = self.log_densities(x)
        density = np.where(corners(self.n_classes) > 0, upper, lower)
        with np.errstate(divide="ignore"):
            prior = np.log(self.priors)
        return (prior[:, None] + density[None]).reshape(-1, self.n_classes)

    def posteriors(self, x):
        """Return the lower and upper posterior probability of each class, (K,) each."""
        proba = softmax(self._log_joints(x), axis=1)
        return proba.min(axis=0), proba.max(axis=0)

    def margins(self, x, loss=None):
        """Return the least log ratio of regrets of act b and act a, (acts, acts).

        Positive where a has less expected loss than b for all priors and means.
        """
        losses = 1 - np.eye(self.n_classes) if loss is None else np.asarray(loss, dtype=float)
        gain = losses[None] - losses[:, None]  # of a over b, (acts, acts, K)
        joints = self._log_joints(x)[:, None, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            won = _log_sum(joints + np.log(np.maximum(gain, 0)))
            lost = _log_sum(joints + np.log(np.maximum(-gain, 0)))
            ratio = won - lost
        return np.where(np.isnan(ratio), 0, ratio).min(axis=0)  # both 0: a tie

    def maximal(self, x, loss=None):
        """Return the acts that no other act dominates, (acts,)."""
        return ~(self.margins(x, loss) > 1e-11).any(axis=0)

    def critical_c(self, x, limit=1e6):
        """Return the smallest c at which each class is maximal, (K,); inf above the limit."""
        return np.array([self._entry(x, k, limit) for k in range(self.n_classes)])

    def _entry(self, x, k, limit):
        def short(c):
            return np.delete(self.at(c).margins(x)[:, k], k).max()

        high = 1.0
        if short(0.0) <= 1e-11:
            return 0.0
        while short(high) > 0:
            high *= 4
            if high > limit:
                return np.inf
        return brentq(short, 0.0, high, xtol=1e-13, rtol=1e-13)


@cache
def scikit_learn_divisor():
    """Return the divisor of the installed scikit-learn, which changed with version 1.9.1."""
    probe = LinearDiscriminantAnalysis().fit([[-1.0], [1.0], [9.0], [11.0]], [0, 0, 1, 1])
    # Means 10 apart and a sum of squares of 4, over 2 degrees of freedom or 4 rows.
    return "unbiased" if np.isclose(4 * probe.coef_[0, 0] / 10, 2) else "likelihood"


def _covariance(kind, scatter, divisor, pooled):
    """Return the covariance matrix of one class."""
    if kind == "tied":
        return pooled
    # A single row, or copies of one, have no covariance: the pooled one is used.
    own = scatter / divisor if divisor > 0 and scatter.any() else pooled
    if kind == "full":
        return own
    variance = np.diag(own)
    return np.diag(variance if kind == "diag" else np.full(len(own), variance.mean()))


def _root(covariance, units, tol):
    """Return R with R'R the pseudo-inverse, and the log determinant of its range."""
    units = np.where(units > 0, units, 1.0)
    values, vectors = np.linalg.eigh(covariance / np.outer(units, units))
    kept = values > tol**2 * max(values.max(), 0.0)
    root = (vectors[:, kept] / np.sqrt(values[kept])).T / units
    return root, np.log(values[kept]).sum() + 2 * np.log(units).sum()


def _prior_bounds(priors, imprecision, counts):
    """Return bounds of each class's prior, tightened to those that the others allow."""
    total = counts.sum()
    prior = counts / total if priors is None else np.asarray(priors, dtype=float)
    given = prior_vertices(*prior.T) if prior.ndim == 2 else prior[None]
    lower, upper = total * given.min(axis=0), total * given.max(axis=0) + imprecision
    return lower / (total + imprecision), upper / (total + imprecision)
