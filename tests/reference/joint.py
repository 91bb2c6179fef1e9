"""Joint calibration of several classifiers by its definition: generic optimisers and quadrature.

Two classes are written from Minary et al. 2017 (eq. 3-10); more classes from the definition of the
bounds, the greatest probability in each level set of the likelihood and the least under Gumbel
noise. Uses no code of dubito. Every optimum is certified: the problems are convex, so a point that
meets the conditions of Karush, Kuhn and Tucker is the optimum.
"""

from itertools import pairwise, product

import numpy as np
from scipy.integrate import quad, quad_vec
from scipy.linalg import null_space
from scipy.optimize import minimize
from scipy.special import expit, logit


class NotCertifiedError(AssertionError):
    """No certified optimum was found."""


def class_targets(y, n_classes, targets, weight):
    """Return the targets of the likelihood, (n, K), rows sum to 1.

    "smoothed" is Xu et al. 2015, eq. 25: one more row of each class beside the rows of a class.
    "light" adds a quarter of a row, divided equally among the classes, to all rows; a number adds
    that many rows; "raw" is 0 and 1.
    """
    own = np.eye(n_classes)[y]
    if targets == "raw":
        return own
    if targets == "light" or not isinstance(targets, str):
        pseudo = 0.25 if targets == "light" else targets
        fraction = pseudo / (weight.sum() + pseudo)
        return (1 - fraction) * own + fraction / n_classes
    count = (weight @ own)[y][:, None]
    return (count * own + 1) / (count + n_classes)


def softmax(utility):
    """Return probabilities and the log of the sum, along the last axis; scipy's are slower."""
    top = utility.max(axis=-1, keepdims=True)
    lifted = np.exp(utility - top)
    total = lifted.sum(axis=-1, keepdims=True)
    return lifted / total, (top + np.log(total))[..., 0]


def least(function, start):
    """Return the minimum of a smooth convex function with value, gradient and Hessian.

    Newton's method from the start; if it fails, a trust region method, then Newton's method.
    """
    polished = _newton(function, start)
    if polished is None:
        found = minimize(
            lambda x: function(x)[0],
            start,
            jac=lambda x: function(x)[1],
            hess=lambda x: function(x)[2],
            method="trust-exact",
            options={"gtol": 1e-6, "maxiter": 2_000},
        )
        polished = _newton(function, found.x)
    if polished is None:
        raise NotCertifiedError(f"no minimum found from {start}")
    return polished


@np.errstate(over="ignore", invalid="ignore")
def _newton(function, x):
    """Return the minimum by Newton's method, to a decrement of 1e-15, or None."""
    previous = np.inf
    for _ in range(30):
        value, gradient, hessian = function(x)
        if not np.isfinite(value):
            return None
        try:
            step = np.linalg.solve(hessian, gradient)
        except np.linalg.LinAlgError:
            return None
        decrement = gradient @ step
        if not 0 <= decrement < 1e4 * previous:
            return None
        x = x - step
        if decrement < 1e-15 * max(1.0, abs(value)):
            return x
        previous = decrement
    return None


class JointLogistic:
    """Two classes, J scores: expit(b + sum of a_j s_j), slopes of any sign.

    `best` holds coefficients of standardised scores; `slope` and `intercept` those of raw scores.
    """

    def __init__(self, scores, y, *, targets="light", ridge=0.0, weight=None, bias=True):
        scores, y = np.asarray(scores, dtype=float), np.asarray(y, dtype=int)
        self.weight = np.ones(len(y)) if weight is None else np.asarray(weight, dtype=float)
        self.target = class_targets(y, 2, targets, self.weight)[:, 1]
        self.bias = bias
        centre = np.average(scores, axis=0, weights=self.weight)
        self.scale = np.sqrt(np.average((scores - centre) ** 2, axis=0, weights=self.weight))
        self.centre = centre if bias else 0.0 * centre
        self.penalty = np.r_[[0.0] * bias, np.full(scores.shape[1], ridge)]
        self.design = self.standardised(scores)
        self.best = least(self._likelihood, np.zeros(self.design.shape[1]))
        self.least, _, self.curvature = self._likelihood(self.best)
        self.slope = self.best[int(bias) :] / self.scale
        self.intercept = bias * self.best[0] - self.slope @ self.centre

    def standardised(self, scores):
        x = (np.asarray(scores, dtype=float) - self.centre) / self.scale
        return np.column_stack([np.ones(len(x)), x]) if self.bias else x

    def _likelihood(self, coefficients):
        """Return the penalised negative log-likelihood, gradient and Hessian."""
        eta = self.design @ coefficients
        proba = expit(eta)
        value = self.weight @ (np.logaddexp(0, eta) - self.target * eta)
        gradient = self.design.T @ (self.weight * (proba - self.target))
        curvature = (self.design.T * (self.weight * proba * expit(-eta))) @ self.design
        ridge = self.penalty * coefficients
        value += 0.5 * ridge @ coefficients
        return value, gradient + ridge, curvature + np.diag(self.penalty)

    def estimate(self, row):
        """Return the log-odds at one row of scores, and their standard deviation."""
        z = self.standardised([row])[0]
        return z @ self.best, np.sqrt(z @ np.linalg.solve(self.curvature, z))

    def profile(self, row):
        """Return the relative profile likelihood of log-odds at one row, as a function."""
        z = self.standardised([row])[0]
        basis = null_space(z[None])
        solved = {z @ self.best: basis.T @ self.best}

        def relative(eta):
            def restricted(free):
                value, gradient, hessian = self._likelihood(eta * z / (z @ z) + basis @ free)
                return value, basis.T @ gradient, basis.T @ hessian @ basis

            start = solved[min(solved, key=lambda other: abs(other - eta))]
            solved[eta] = least(restricted, start)
            return float(np.exp(self.least - restricted(solved[eta])[0]))

        return relative

    def contour(self, row, theta):
        """Return the contour at one row of scores (Minary et al. 2017, eq. 7 and 10)."""
        relative = self.profile(row)
        return np.array([relative(logit(t)) if 0 < t < 1 else 0.0 for t in theta])

    def bounds(self, row):
        """Return belief and plausibility of the second class, integrated over log-odds.

        Minary et al. 2017, eq. 3.
        """
        relative = self.profile(row)
        at, deviation = self.estimate(row)

        def integrand(u):
            return relative(u) * expit(u) * expit(-u)

        def area(sign):
            # Beyond 40 the logistic density is below 1e-17.
            reach = [at, at + sign * deviation]
            while sign * reach[-1] < 40 and relative(reach[-1]) > 1e-14:
                reach.append(reach[-1] + 1.4 * (reach[-1] - reach[-2]))
            low, high = np.clip(sorted((reach[0], reach[-1])), -40, 40)
            knots = np.r_[low, reach, -20, -8, -3, 0, 3, 8, 20, high]
            cuts = np.unique(knots[(low <= knots) & (knots <= high)])
            return sum(quad(integrand, a, b, epsabs=1e-12)[0] for a, b in pairwise(cuts))

        return expit(at) - area(-1), expit(at) + area(+1)


class JointMultinomial:
    """K classes, J classifiers: softmax of sum of a_j s_jk (+ b_k), slopes not negative.

    Parameters are the J slopes, then with `bias` those of all classes but the last.
    """

    def __init__(self, scores, y, *, targets="light", bias=False, weight=None):
        scores, y = np.asarray(scores, dtype=float), np.asarray(y, dtype=int)
        self.n_slopes, self.n_classes = scores.shape[1:]
        self.bias = bias
        self.weight = np.ones(len(y)) if weight is None else np.asarray(weight, dtype=float)
        self.target = class_targets(y, self.n_classes, targets, self.weight)
        self.design = self.features(scores)
        self.bounded = np.arange(self.design.shape[2]) < self.n_slopes
        self.best = self._fit()
        self.least = self.likelihood(self.best)[0]

    def features(self, scores):
        """Return features (n, K, P): utilities are linear in the parameters."""
        table = np.moveaxis(scores, 1, 2)
        if not self.bias:
            return table
        constant = np.tile(np.eye(self.n_classes)[:, :-1], (len(table), 1, 1))
        return np.concatenate([table, constant], axis=2)

    def likelihood(self, parameters):
        """Return the negative log-likelihood, gradient and Hessian."""
        utility = self.design @ parameters
        proba, total = softmax(utility)
        value = self.weight @ (total - (self.target * utility).sum(axis=1))
        gradient = np.einsum("i,ik,ikp->p", self.weight, proba - self.target, self.design)
        middle = self.design - np.einsum("ik,ikp->ip", proba, self.design)[:, None]
        flat = middle.reshape(-1, middle.shape[2])
        hessian = (flat * (self.weight[:, None] * proba).reshape(-1, 1)).T @ flat
        return value, gradient, hessian

    def _fit(self):
        size = self.design.shape[2]
        found = minimize(
            lambda x: self.likelihood(x)[:2],
            np.zeros(size),
            jac=True,
            method="L-BFGS-B",
            bounds=[(0.0, None) if bounded else (None, None) for bounded in self.bounded],
        )
        for bound in _bound_sets(found.x, self.bounded):
            free = _newton(lambda x, f=~bound: _part(self.likelihood, x, f), found.x[~bound])
            if free is None:
                continue
            parameters = np.zeros(size)
            parameters[~bound] = free
            slopes, gradient = parameters[self.bounded], self.likelihood(parameters)[1]
            if (slopes >= 0).all() and (gradient[bound] >= -1e-10).all():
                return parameters
        raise NotCertifiedError("no maximum of the likelihood found")

    def proba(self, row):
        """Return the probabilities of one row, (J, K), at the estimate."""
        return softmax(self.features(np.asarray(row, dtype=float)[None])[0] @ self.best)[0]

    def bounds(self, row):
        """Return lower and upper probabilities of one row of scores, (J, K)."""
        table, n_classes = self.features(np.asarray(row, dtype=float)[None])[0], self.n_classes
        pairs = list(product(range(n_classes), repeat=2))
        odds = [Program(self, log_odds(table, j)) for j in range(n_classes)]
        leads = {(j, k): Program(self, linear(table[k] - table[j])) for j, k in pairs if j != k}

        def integrand(r):
            upper = expit([program.greatest(r) for program in odds])
            lead = np.array([leads[pair].greatest(r) if pair in leads else 0.0 for pair in pairs])
            lower = np.exp(-softmax(lead.reshape(n_classes, n_classes))[1])
            return np.r_[lower, upper] * r * np.exp(-0.5 * r**2)

        # The integral beyond 8 is 1e-14; at kinks the set of active bounds changes.
        kinks = sorted({kink for program in [*odds, *leads.values()] for kink in program.kinks()})
        both, _ = quad_vec(integrand, 0, 8, epsabs=1e-9, epsrel=0, norm="max", points=kinks)
        return both[:n_classes], both[n_classes:]


def _part(function, x, free):
    """Return value, gradient and Hessian in the free parameters, the others being 0."""
    whole = np.zeros(len(free))
    whole[free] = x
    value, gradient, hessian = function(whole)
    return value, gradient[free], hessian[np.ix_(free, free)]


def _bound_sets(x, bounded):
    """Yield candidates for the slopes at 0: first those near 0, then all choices."""
    yield bounded & (x < 1e-5)
    for chosen in product([False, True], repeat=int(bounded.sum())):
        bound = np.zeros(len(x), dtype=bool)
        bound[bounded] = chosen
        yield bound


def log_odds(table, j):
    """Return a function with value, gradient and Hessian of the log-odds of class j: concave."""
    others = np.delete(table, j, axis=0)

    def function(parameters):
        proba, total = softmax(others @ parameters)
        middle = proba @ others
        spread = others - middle
        return table[j] @ parameters - total, table[j] - middle, -(spread.T * proba) @ spread

    return function


def linear(slope):
    flat = np.zeros((len(slope), len(slope)))
    return lambda parameters: (slope @ parameters, slope, flat)


class Program:
    """Maximise a concave function of the parameters over level sets of the likelihood."""

    def __init__(self, model, function):
        self.model = model
        self.function = function
        self.last = None

    def greatest(self, r):
        """Return the maximum where the relative likelihood is at least exp(-r^2/2)."""
        return self.function(self._solve(r)[0])[0]

    def kinks(self):
        """Return the r at which the active constraints change, by bisection between grid points."""
        scan = np.r_[np.geomspace(0.02, 0.5, 8), np.linspace(0.6, 7.9, 74)]
        return [kink for low, high in pairwise(scan) for kink in self._changes(low, high)]

    def _changes(self, low, high):
        while (before := self._pattern(low)) != self._pattern(high):
            end = high
            while end - low > 1e-6 * end:
                middle = 0.5 * (low + end)
                low, end = (middle, end) if self._pattern(middle) == before else (low, middle)
            yield end
            low = end

    def _pattern(self, r):
        _, bound, tight = self._solve(r)
        return (*bound, tight)

    def _solve(self, r):
        for start, bound, tight in self._starts(r):
            parameters = self._polished(r, start, bound, tight)
            if parameters is not None:
                self.last = (r, parameters, bound, tight)
                return parameters, bound, tight
        raise NotCertifiedError(f"no maximum found at r={r}")

    def _starts(self, r):
        """Yield starts: parameters, slopes at 0, whether the likelihood constraint is active."""
        best = self.model.best
        if self.last is not None:
            near, place, bound, tight = self.last
            yield (best + (place - best) * r / near if tight else place), bound, tight
        found = self._direct(r)
        slack = self.model.least + 0.5 * r**2 - self.model.likelihood(found)[0]
        tight = slack < 1e-4 * r**2
        for bound in _bound_sets(found, self.model.bounded):
            yield found, bound, tight
            yield found, bound, not tight

    def _direct(self, r):
        """Return the maximum by sequential quadratic programming, in units of the level set."""
        best, bounded = self.model.best, self.model.bounded
        curvature = self.model.likelihood(best)[2]
        unit = r * np.linalg.inv(np.linalg.cholesky(curvature)).T
        value, gradient, _ = self.function(best)
        size = max(np.linalg.norm(unit.T @ gradient), 1e-3 * r)

        def inside(z):
            return 1 - (self.model.likelihood(best + unit @ z)[0] - self.model.least) / (0.5 * r**2)

        def inside_slope(z):
            return -unit.T @ self.model.likelihood(best + unit @ z)[1] / (0.5 * r**2)

        found = minimize(
            lambda z: (value - self.function(best + unit @ z)[0]) / size,
            np.zeros(len(best)),
            jac=lambda z: -unit.T @ self.function(best + unit @ z)[1] / size,
            method="SLSQP",
            constraints=[
                {"type": "ineq", "fun": inside, "jac": inside_slope},
                {
                    "type": "ineq",
                    "fun": lambda z: (best + unit @ z)[bounded],
                    "jac": lambda z: unit[bounded],  # noqa: ARG005
                },
            ],
            options={"ftol": 1e-12, "maxiter": 200},
        )
        return best + unit @ found.x

    @np.errstate(over="ignore", invalid="ignore")
    def _polished(self, r, start, bound, tight):
        """Return the optimum by Newton's method on the KKT conditions, or None if they fail."""
        x, free, multiplier = np.where(bound, 0.0, start), ~bound, None
        for _ in range(40):
            value, gradient, hessian = self.model.likelihood(x)
            if not np.isfinite(value):
                return None
            _, slope, curvature = self.function(x)
            border = gradient[free]
            if multiplier is None:
                usable = tight and border.any()
                multiplier = slope[free] @ border / (border @ border) if usable else 0.0
            excess = value - self.model.least - 0.5 * r**2
            residual = slope - multiplier * gradient  # 0 where free, outwards at a bound
            met = abs(excess) < 1e-12 if tight else excess < 1e-12
            # The level set has width about r, and r is also its weight: less precision at small r.
            enough = 1e-10 * (1 + 1 / r**2) * (1 + np.abs(slope).max())
            if met and np.abs(residual[free]).max(initial=0.0) < enough:
                feasible = multiplier >= 0 and (x[self.model.bounded] >= -1e-13).all()
                return x if feasible and (residual[bound] <= 1e-9).all() else None
            matrix, unmet = (curvature - multiplier * hessian)[np.ix_(free, free)], residual[free]
            unit = np.linalg.norm(matrix) / max(np.linalg.norm(border), 1e-300)
            if tight:
                edge = unit * border
                matrix = np.block([[matrix, -edge[:, None]], [edge, np.zeros((1, 1))]])
                unmet = np.r_[unmet, unit * excess]
            step = np.linalg.lstsq(matrix, -unmet, rcond=None)[0]
            x[free] += step[: free.sum()]
            multiplier += unit * step[-1] if tight else 0.0
        return None


def near_copies(seed, *, n=6, n_classifiers=10, n_classes=3, noise=1e-2):
    """Return few rows of many classifiers with nearly equal scores."""
    rng = np.random.default_rng(seed)
    y = rng.integers(n_classes, size=n)
    base = rng.normal(size=(n, 1, n_classes)) + np.eye(n_classes)[y][:, None]
    return base + noise * rng.normal(size=(n, n_classifiers, n_classes)), y
