"""Several trees over the same classes: what one puts far apart another keeps together."""

from __future__ import annotations

from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import check_random_state

from dubito._checks import level_of_each
from dubito._kernels.softmax import log_softmax
from dubito._sklearn import HasMethods, Interval, StrOptions, fit_context
from dubito.calibration import TemperatureCalibrator
from dubito.dichotomies._external import fit_external
from dubito.dichotomies._holdout import rows_aside
from dubito.dichotomies._many_classes import ManyClassesMixin
from dubito.dichotomies._tree_model import over_rows
from dubito.dichotomies.classifier import NestedDichotomyClassifier

if TYPE_CHECKING:
    from dubito._checks import BoolArray, FloatArray
    from dubito.dichotomies._class_rows import ClassRows


#: Rows that a temperature is fitted on where nothing else is asked for.
_HOLDOUT_ROWS = 1000


class NestedDichotomyEnsemble(ManyClassesMixin, ClassifierMixin, BaseEstimator):
    r"""Nested dichotomies of several trees, pooled.

    A tree has to tell apart halves of the classes that have nothing in common; another tree has
    other halves, and other errors. Their geometric mean

    .. math:: p(c\mid x)\propto\prod_{m=1}^Mp_m(c\mid x)^{\beta/M}

    keeps what all of them think possible, and is sharper than any of them; their arithmetic mean
    keeps what one of them does.

    Parameters
    ----------
    estimator : NestedDichotomyClassifier or classifier, default=None
        The tree that is cloned; None is the default one. Another classifier is that of the nodes.
    n_estimators : int, default=10
        Number M of trees.
    pooling : {"geometric", "arithmetic"}, default="geometric"
        Which mean.
    temperature : "auto" or float, default="auto"
        :math:`1/\beta` of the geometric mean; "auto" is fitted on rows that no tree has seen, and
        1 where there are none to spare: every class keeps a row.
    holdout_size : "auto" or float, default="auto"
        Part of the rows that is set aside for it; "auto" is a tenth, and 1,000 rows at most, which
        tell one number well.
    n_jobs : int, default=None
        Jobs, as in `NestedDichotomyClassifier`: trees are fitted one after the other, their nodes
        side by side.
    random_state : int, RandomState or None, default=None
        Decides the trees and the rows set aside.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        Labels, in the order of columns.
    estimators_ : list of NestedDichotomyClassifier
        The trees.
    temperature_ : float
        :math:`1/\beta`; 1 for the arithmetic mean, which has none.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of features, where X has them.

    Notes
    -----
    P4 has one tree. Bounds are defined for the arithmetic mean, where they are means of the
    trees' bounds, and exact, as trees are free of each other. At a confidence level each of M trees
    has bounds at :math:`1-(1-\text{level})/M`, so that all of them hold at the level; their means
    then hold the mean of the trees' true probabilities, each given the scores of its own nodes.
    That is cautious, for the trees see the same rows and mostly err together.

    Examples
    --------
    >>> from dubito.datasets import make_many_classes
    >>> from dubito.dichotomies import NestedDichotomyClassifier, NestedDichotomyEnsemble
    >>> X, y = make_many_classes(3000, n_classes=40, n_features=20, random_state=0)
    >>> one = NestedDichotomyClassifier(random_state=0).fit(X[:2000], y[:2000])
    >>> five = NestedDichotomyEnsemble(n_estimators=5, random_state=0).fit(X[:2000], y[:2000])
    >>> five.score(X[2000:], y[2000:]) > one.score(X[2000:], y[2000:])
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "estimator": [HasMethods(["fit", "predict"]), None],
        "n_estimators": [Interval(Integral, 1, None, closed="left")],
        "pooling": [StrOptions({"geometric", "arithmetic"})],
        "temperature": [StrOptions({"auto"}), Interval(Real, 1e-100, 1e100, closed="both")],
        "holdout_size": [StrOptions({"auto"}), Interval(Real, 0, 1, closed="neither")],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        estimator: Any = None,
        *,
        n_estimators: int = 10,
        pooling: str = "geometric",
        temperature: str | float = "auto",
        holdout_size: str | float = "auto",
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.n_estimators = n_estimators
        self.pooling = pooling
        self.temperature = temperature
        self.holdout_size = holdout_size
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _tree(self) -> NestedDichotomyClassifier:
        """Return the tree that is cloned."""
        if isinstance(self.estimator, NestedDichotomyClassifier):
            return self.estimator
        return NestedDichotomyClassifier(self.estimator)

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the trees, and the temperature of their mean.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, p)
        y : array-like of shape (n,)
        sample_weight : array-like of shape (n,), optional
            A row of weight 2 counts as two rows, a row of weight 0 not at all.

        Returns
        -------
        self
        """
        if self.pooling == "arithmetic" and self.temperature != "auto":
            raise ValueError(
                f"temperature={self.temperature!r} is that of a geometric mean; "
                'with pooling="arithmetic" leave it at "auto".'
            )
        tree = self._tree()
        rows = tree._read(self, X, y, sample_weight)
        self.classes_, self._features = rows.classes, rows.kind
        chance = check_random_state(self.random_state)
        seeds = chance.randint(np.iinfo(np.int32).max, size=self.n_estimators + 1)
        aside = np.zeros(len(rows.codes), dtype=bool)
        if self.pooling == "geometric" and self.temperature == "auto":
            aside = rows_aside(rows, self._share_aside(rows), np.random.default_rng(seeds[0]))
        inside = rows.without(aside)
        self.estimators_ = [self._fit_member(tree, inside, int(seed)) for seed in seeds[1:]]
        self._slope = self._fit_slope(rows, aside)
        self.temperature_ = 1 / self._slope if self._slope > 0 else np.inf
        return self

    def _share_aside(self, rows: ClassRows) -> float:
        if isinstance(self.holdout_size, str):
            return min(0.1, _HOLDOUT_ROWS / len(rows.codes))
        return float(self.holdout_size)

    def _fit_member(
        self, tree: NestedDichotomyClassifier, rows: ClassRows, seed: int
    ) -> NestedDichotomyClassifier:
        member = clone(tree).set_params(random_state=seed, n_jobs=self.n_jobs)
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self, name):
                setattr(member, name, getattr(self, name))
        return member._fit_rows(rows)

    def _fit_slope(self, rows: ClassRows, aside: BoolArray) -> float:
        """Return the power of the geometric mean."""
        if not aside.any():
            return 1.0 if isinstance(self.temperature, str) else 1 / float(self.temperature)
        pooled = over_rows(self._mean_log, rows.X[aside], len(self.classes_), self.n_jobs)
        calibrator = fit_external(
            TemperatureCalibrator(input="logits"),
            pooled,
            self.classes_[rows.codes[aside]],
            rows.weight[aside],
            self.classes_,
        )
        return calibrator.slope_

    def _mean_log(self, X: Any) -> FloatArray:
        """Return the mean of the trees' log-probabilities, (n, K)."""
        total = self.estimators_[0]._log_proba(X)
        for member in self.estimators_[1:]:
            total += member._log_proba(X)
        return total / len(self.estimators_)

    def _log_proba(self, X: Any) -> FloatArray:
        if self.pooling == "geometric":
            return log_softmax(self._slope * self._mean_log(X))
        total = self.estimators_[0]._log_proba(X)
        for member in self.estimators_[1:]:
            np.logaddexp(total, member._log_proba(X), out=total)
        return total - np.log(len(self.estimators_))

    def _proba(self, X: Any) -> FloatArray:
        if self.pooling == "geometric":
            return np.exp(self._log_proba(X))
        total = self.estimators_[0]._proba(X)
        for member in self.estimators_[1:]:
            total += member._proba(X)
        return total / len(self.estimators_)

    def _require_bounds(self) -> None:
        if self.pooling != "arithmetic":
            raise AttributeError(
                f"pooling={self.pooling!r} has no bounds: those of a product of trees are not "
                'known; use pooling="arithmetic".'
            )
        self._tree()._require_bounds()

    def _both_bounds(self, level: float | None, X: Any) -> FloatArray:
        if level is not None:
            level = level_of_each(level, len(self.estimators_))
        total = self.estimators_[0]._both_bounds(level, X)
        for member in self.estimators_[1:]:
            total += member._both_bounds(level, X)
        return total / len(self.estimators_)

    def _reading(self) -> dict[str, Any]:
        return self._tree()._reading()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = self._tree().__sklearn_tags__().input_tags
        return tags
