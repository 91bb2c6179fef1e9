"""Nested dichotomies by their definition (Leathart et al. 2019): recursive, a model at each node.

Trees are nested pairs of labels, nodes are named by the turns that lead to them ("" is the root,
"LR" the right child of its left child), numbers are kept in dictionaries by node or label, and
bounds and decisions are found among all combinations of the ends of the nodes' intervals. Uses no
code of dubito, except for the calibrators that a caller passes.
"""

from __future__ import annotations

import warnings
from itertools import product

import numpy as np
from scipy import sparse
from scipy.special import expit, logsumexp, xlogy
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression


class NotCertifiedError(AssertionError):
    """No certified optimum was found."""


def in_pairs(nested):
    """Return nested pairs: larger groups are split in halves, the first not smaller."""
    if not isinstance(nested, (tuple, list)):
        return nested
    if len(nested) == 1:
        return in_pairs(nested[0])
    middle = (len(nested) + 1) // 2
    halves = (nested[:middle], nested[middle:]) if len(nested) > 2 else nested
    return tuple(in_pairs(half) for half in halves)


def leaves(pair):
    """Return the labels from left to right."""
    return leaves(pair[0]) + leaves(pair[1]) if isinstance(pair, tuple) else [pair]


def nodes(pair, name=""):
    """Return the name of each node with the labels at its left and right, in preorder."""
    if not isinstance(pair, tuple):
        return []
    here = (name, leaves(pair[0]), leaves(pair[1]))
    return [here, *nodes(pair[0], name + "L"), *nodes(pair[1], name + "R")]


def path_products(pair, right, name="", here=1.0):
    """Return the probability of each label, from that of the right side at each node.

    Leathart et al. 2019, section 2.
    """
    if not isinstance(pair, tuple):
        return {pair: here}
    return {
        **path_products(pair[0], right, name + "L", here * (1 - right[name])),
        **path_products(pair[1], right, name + "R", here * right[name]),
    }


def node_log_odds(pair, log_proba):
    """Return the log-odds of the right side of each node, from log probabilities by label."""
    return {
        name: logsumexp([log_proba[label] for label in right], axis=0)
        - logsumexp([log_proba[label] for label in left], axis=0)
        for name, left, right in nodes(pair)
    }


def node_losses(pair, log_proba, y):
    """Return the summed log loss of each node over the rows of its classes."""
    found, losses = node_log_odds(pair, log_proba), {}
    for name, left, right in nodes(pair):
        here = np.isin(y, left + right)
        event = np.isin(y[here], right)
        p = expit(found[name][here])
        losses[name] = -(xlogy(event, p) + xlogy(~event, 1 - p)).sum()
    return losses


def every_corner(pair, intervals):
    """Yield probabilities by label for every choice of ends of the nodes' intervals."""
    names = [name for name, _, _ in nodes(pair)]
    for ends in product([0, 1], repeat=len(names)):
        right = {name: intervals[name][end] for name, end in zip(names, ends, strict=True)}
        yield path_products(pair, right)


def class_bounds(pair, intervals):
    """Return the least and greatest probability of each label, by label."""
    corners = list(every_corner(pair, intervals))
    return {
        label: tuple(f([corner[label] for corner in corners], axis=0) for f in (np.min, np.max))
        for label in leaves(pair)
    }


def maximal(pair, intervals, tie=1e-12):
    """Return whether no other label is more probable at every corner, by label.

    The difference of two labels' probabilities is linear in each node's, so corners decide.
    """
    corners = list(every_corner(pair, intervals))
    kept = {}
    for b in leaves(pair):
        leads = [
            np.min([corner[a] - corner[b] for corner in corners], axis=0)
            for a in leaves(pair)
            if a != b
        ]
        kept[b] = np.max(leads, axis=0) <= tie
    return kept


def best_first(proba, k):
    """Return the columns of the k largest of a row; ties go to the first column."""
    return sorted(range(len(proba)), key=lambda j: (-proba[j], j))[:k]


class NestedDichotomy:
    """A clone of `estimator` at each node, and of `calibrator` where one is given.

    Rows are put in the order of the leaves, those of one label as they come; the fold of a row is
    its place in that order modulo `n_folds`. A calibrator is fitted to the log-odds of models of
    the other folds; a node with one row at a side has none.
    """

    def __init__(self, nested, estimator, *, calibrator=None, n_folds=3):
        self.pair = in_pairs(nested)
        self.estimator, self.calibrator, self.n_folds = estimator, calibrator, n_folds

    def fit(self, X, y, weight=None):
        order = np.concatenate([np.flatnonzero(y == label) for label in leaves(self.pair)])
        X, y = X[order], y[order]
        weight = np.ones(len(y)) if weight is None else np.asarray(weight)[order]
        fold = np.arange(len(y)) % self.n_folds
        self.models, self.maps = {}, {}
        for name, left, right in nodes(self.pair):
            here = np.isin(y, left + right)
            event = np.isin(y[here], right).astype(int)
            rows = X[here], event, weight[here]
            self.models[name] = fitted(self.estimator, *rows)
            if self.calibrator is not None and min(event.sum(), (1 - event).sum()) > 1:
                self.maps[name] = self._calibrated(*rows, fold[here])
        return self

    def _calibrated(self, X, event, weight, fold):
        scores = np.empty(len(event))
        for left_out in range(self.n_folds):
            out = fold == left_out
            if out.any():
                model = fitted(self.estimator, X[~out], event[~out], weight[~out])
                scores[out] = log_odds(model, X[out])
        return clone(self.calibrator).fit(scores, event, sample_weight=weight)

    def right(self, X):
        """Return the probability of the right side of each node, by name."""
        found = {}
        for name, model in self.models.items():
            scores = log_odds(model, X)
            calibrated = name in self.maps
            found[name] = (
                self.maps[name].predict_proba(scores)[:, 1] if calibrated else expit(scores)
            )
        return found

    def intervals(self, X):
        """Return bounds of the right side of each node, by name; [0, 1] without calibration."""
        found = {}
        for name, model in self.models.items():
            scores = log_odds(model, X)
            if name in self.maps:
                bounds = self.maps[name].predict_bounds(scores)
                found[name] = bounds.lower[:, 1], bounds.upper[:, 1]
            else:
                found[name] = np.zeros(len(scores)), np.ones(len(scores))
        return found

    def proba(self, X):
        """Return the probability of each label, by label."""
        return path_products(self.pair, self.right(X))


def fitted(estimator, X, event, weight):
    """Return a clone fitted to the rows; weights are passed only if some differ from 1."""
    options = {} if (weight == 1).all() else {"sample_weight": weight}
    with warnings.catch_warnings():
        # At the tightest tolerance the line search of a solver ends in rounding errors.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return clone(estimator).fit(X, event, **options)


def log_odds(model, X):
    """Return the log-odds of the event, for logistic regression without rounding to 0 and 1."""
    if isinstance(model, LogisticRegression):
        return model.decision_function(X)
    with np.errstate(divide="ignore"):
        if hasattr(model, "predict_log_proba"):
            log_proba = model.predict_log_proba(X)
        else:
            log_proba = np.log(model.predict_proba(X))
    return log_proba[:, 1] - log_proba[:, 0]


def tight_logistic(**options):
    """Return scikit-learn's logistic regression with a tight tolerance.

    Newton's method converges; at the same tolerance L-BFGS stops up to 0.06 of log-odds away.
    """
    solver = LogisticRegression(solver="newton-cholesky", tol=1e-10, max_iter=10_000)
    return solver.set_params(**options)


def newton_logistic(X, event, *, C=1.0, weight=None):
    """Return coefficients and intercept of L2 logistic regression for columns of any scale.

    Newton's method on columns divided by their largest entry, where scikit-learn's solvers stop
    early. The intercept is not penalised. The certificate is Newton's decrement, twice the possible
    decrease of the objective.
    """
    X = X.toarray() if sparse.issparse(X) else np.asarray(X, dtype=float)
    unit = np.abs(X).max(axis=0)
    unit[unit == 0] = 1.0
    design = np.column_stack([X / unit, np.ones(len(X))])
    penalty = np.append(1 / (C * unit**2), 0.0)
    weight = np.ones(len(X)) if weight is None else np.asarray(weight, dtype=float)
    beta, sign = np.zeros(design.shape[1]), np.where(event, 1.0, -1.0)

    def value(at):
        return weight @ np.logaddexp(0, -sign * (design @ at)) + 0.5 * penalty @ at**2

    for _ in range(500):
        p = expit(design @ beta)
        gradient = design.T @ (weight * (p - (sign > 0))) + penalty * beta
        hessian = (design.T * (weight * p * (1 - p))) @ design + np.diag(penalty)
        scale = 1 / np.sqrt(np.diag(hessian))
        step = scale * np.linalg.lstsq(hessian * np.outer(scale, scale), scale * gradient)[0]
        if gradient @ step < 1e-18 * weight.sum():
            beta = beta - step  # converges quadratically here
            return beta[:-1] / unit, beta[-1]
        length = 1.0
        while value(beta - length * step) > value(beta) and length > 1e-6:
            length /= 2
        beta = beta - length * step
    raise NotCertifiedError(f"the decrement is still {gradient @ step}")


class RowRecorder(ClassifierMixin, BaseEstimator):
    """Logistic regression that records its training rows: the first column is a row number."""

    fitted_rows: list = []  # noqa: RUF012 - shared by all copies on purpose

    def fit(self, X, y, sample_weight=None):
        self.fitted_rows.append(frozenset(X[:, 0].astype(int).tolist()))
        self.model_ = tight_logistic().fit(X[:, 1:], y, sample_weight)
        self.classes_ = self.model_.classes_
        return self

    def predict_proba(self, X):
        return self.model_.predict_proba(X[:, 1:])

    def predict(self, X):
        return self.model_.predict(X[:, 1:])
