"""Several trees over the same classes: what one puts far apart another keeps together."""

from __future__ import annotations

from functools import partial
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import check_random_state

from dubito._compat import HasMethods, Interval, StrOptions, fit_context
from dubito._numerics.softmax import log_softmax
from dubito._validation import level_of_each
from dubito.calibration import TemperatureCalibrator
from dubito.dichotomies._auto import default_external, internal_of_several, is_auto
from dubito.dichotomies._external import as_scores, fit_external, held_rows, read_external
from dubito.dichotomies._growth import structure_of_several
from dubito.dichotomies._holdout import Aside, plan_aside, rows_aside
from dubito.dichotomies._many_classes import ManyClassesMixin, know_nothing
from dubito.dichotomies._tree_model import over_rows
from dubito.dichotomies.classifier import NestedDichotomyClassifier

if TYPE_CHECKING:
    from numpy.random import Generator

    from dubito._typing import FloatArray
    from dubito.calibration.base import BaseCalibrator
    from dubito.dichotomies._class_rows import ClassRows


class NestedDichotomyEnsemble(ManyClassesMixin, ClassifierMixin, BaseEstimator):
    r"""Nested dichotomies of several trees, pooled.

    A tree has to tell apart halves of the classes that have nothing in common; another tree has
    other halves, and other errors. Their geometric mean

    .. math:: p(c\mid x)\propto\prod_{m=1}^Mp_m(c\mid x)^{\beta/M}

    keeps what all of them think possible, and is sharper than any of them; their arithmetic mean
    keeps what one of them does. The mean is calibrated on rows that none of its trees has seen, and
    bounds are those of its calibrator.

    Parameters
    ----------
    estimator : NestedDichotomyClassifier or classifier, default=None
        The tree that is cloned; None is the default one. Another classifier is that of the nodes.
        What a tree leaves at "auto" is chosen for the pool: a structure that makes trees differ,
        logistic nodes as they are and others with Platt's sigmoids, no calibration of each whole.
    n_estimators : int, default=10
        Number M of trees.
    pooling : {"geometric", "arithmetic"}, default="geometric"
        Which mean.
    external : "auto", None, "vector" or calibrator, default="auto"
        Calibration of the pooled log-probabilities. "auto": one slope, :math:`\beta`, by
        ``EvidentialMultinomialCalibrator``, which gives the bounds. None: the arithmetic mean as
        it is, whose bounds are means of the trees'; a temperature for the geometric one.
    temperature : "auto" or float, default="auto"
        :math:`1/\beta` of the geometric mean; "auto" is fitted on rows that no tree has seen, and
        1 where there are none to spare: every class keeps a row. With a number nothing is fitted
        unless `external` names a calibrator.
    holdout_size : "auto" or float, default="auto"
        Part of the rows that is set aside to calibrate on; the trees do without. "auto": all rows
        in five folds below 1,000 rows, then a tenth, and 1,000 rows at most, which tell one number
        well; up to 20,000 rows the trees are fitted again to all of them.
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
    external_ : calibrator or None
        The fitted calibrator of the pool; None also where fewer than 20 rows can be held out. The
        bounds are then 0 and 1.
    temperature_ : float
        :math:`1/\beta`; 1 for the arithmetic mean, which has none.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of features, where X has them.

    Notes
    -----
    P4 has one tree. Bounds speak of the calibration of the pool: how well its slope is known. With
    ``pooling="arithmetic", external=None`` they are means of the trees' bounds, and exact, as trees
    are free of each other; with many classes they are too wide to decide by. At a confidence level
    each of M trees then has bounds at :math:`1-(1-\text{level})/M`, so that all of them hold at the
    level; their means hold the mean of the trees' true probabilities, each given the scores of its
    own nodes. That is cautious, for the trees see the same rows and mostly err together.

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
        "external": "no_validation",
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
        external: Any = "auto",
        temperature: str | float = "auto",
        holdout_size: str | float = "auto",
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.n_estimators = n_estimators
        self.pooling = pooling
        self.external = external
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
        calibrator, tree = self._calibrator(), self._tree()
        rows = tree._read(self, X, y, sample_weight)
        self.classes_, self._features = rows.classes, rows.kind
        chance = check_random_state(self.random_state)
        seeds = chance.randint(np.iinfo(np.int32).max, size=self.n_estimators + 1)
        rng = np.random.default_rng(seeds[0])
        aside = Aside([]) if calibrator is None else self._set_aside(rows, rng)
        member = self._member(tree, len(rows.classes))
        self.estimators_ = self._fit_trees(member, aside.inside(rows), seeds[1:])
        self.external_: BaseCalibrator | None = None
        if calibrator is not None and aside.parts:
            pooled = self._pool_aside(member, rows, aside, rng)
            held = held_rows(rows, aside)
            self.external_ = fit_external(calibrator, pooled, held, cut=self._named())
        self.temperature_ = self._found_temperature()
        return self

    def _pool_aside(
        self, member: NestedDichotomyClassifier, rows: ClassRows, aside: Aside, rng: Generator
    ) -> FloatArray:
        """Return the pooled log-probabilities of rows held out, part by part."""
        parts = []
        for part in aside.parts:
            trees = self.estimators_
            if aside.refit:
                seeds = rng.integers(np.iinfo(np.int32).max, size=self.n_estimators)
                trees = self._fit_trees(member, rows.without(part), seeds)
            pool = partial(self._pool, trees)
            parts.append(over_rows(pool, rows.X[part], len(rows.classes), self.n_jobs))
        return np.concatenate(parts)

    def _calibrator(self) -> BaseCalibrator | None:
        """Return the calibrator of the pooled probabilities."""
        if is_auto(self.external):
            return default_external() if is_auto(self.temperature) else None
        if self.external is None and self.pooling == "geometric" and is_auto(self.temperature):
            return TemperatureCalibrator(input="logits")
        return read_external(self.external)

    def _set_aside(self, rows: ClassRows, rng: Generator) -> Aside:
        if is_auto(self.holdout_size):
            return plan_aside(rows, rng)
        aside = rows_aside(rows, float(self.holdout_size), rng)
        return Aside([aside] if aside.any() else [])

    def _member(self, tree: NestedDichotomyClassifier, n_classes: int) -> NestedDichotomyClassifier:
        """Return the tree that is fitted again and again.

        What it leaves at "auto" is chosen for the pool: trees that differ, and no calibration of
        each as a whole where the pool is calibrated.
        """
        structure = structure_of_several(tree.structure, n_classes)
        member = clone(tree).set_params(structure=structure, n_jobs=self.n_jobs)
        if tree._calibrators().by_default and not self._has_means():
            member.set_params(internal=internal_of_several(tree.estimator), external=None)
        return member

    def _has_means(self) -> bool:
        """Say whether probabilities and bounds are means of the trees' own."""
        return self.pooling == "arithmetic" and self._calibrator() is None

    def _fit_trees(
        self, member: NestedDichotomyClassifier, rows: ClassRows, seeds: Any
    ) -> list[NestedDichotomyClassifier]:
        trees = []
        for seed in seeds:
            tree = clone(member).set_params(random_state=int(seed))
            for name in ("n_features_in_", "feature_names_in_"):
                if hasattr(self, name):
                    setattr(tree, name, getattr(self, name))
            trees.append(tree._fit_rows(rows))
        return trees

    def _found_temperature(self) -> float:
        if not is_auto(self.temperature):
            return float(self.temperature)
        if self.external_ is None or self.pooling != "geometric" or self._named():
            return 1.0
        slope: float = self.external_.slope_
        return float(1 / slope) if slope > 0 else np.inf

    def _pool(self, trees: list[NestedDichotomyClassifier], X: Any) -> FloatArray:
        """Return log-probabilities of the trees' mean before it is calibrated, (n, K)."""
        total = trees[0]._log_proba(X)
        for tree in trees[1:]:
            if self.pooling == "geometric":
                total += tree._log_proba(X)
            else:
                np.logaddexp(total, tree._log_proba(X), out=total)
        if self.pooling == "arithmetic":
            return total - np.log(len(trees))
        slope = 1.0 if is_auto(self.temperature) else 1 / float(self.temperature)
        return log_softmax(slope / len(trees) * total)

    def _named(self) -> bool:
        """Say whether a calibrator was asked for, and not a slope alone."""
        return not (self.external is None or is_auto(self.external))

    def _scores(self, X: Any) -> FloatArray:
        """Return what the external calibrator is told of rows."""
        assert self.external_ is not None  # noqa: S101 - asked only where there is one
        return as_scores(self.external_, self._pool(self.estimators_, X), cut=self._named())

    def _log_proba(self, X: Any) -> FloatArray:
        if self.external_ is None:
            return self._pool(self.estimators_, X)
        return self.external_.predict_log_proba(self._scores(X))

    def _proba(self, X: Any) -> FloatArray:
        if self.external_ is not None:
            return self.external_.predict_proba(self._scores(X))
        if self.pooling == "geometric":
            return np.exp(self._log_proba(X))
        total = self.estimators_[0]._proba(X)
        for member in self.estimators_[1:]:
            total += member._proba(X)
        return total / len(self.estimators_)

    def _require_bounds(self) -> None:
        if self._calibrator() is not None:
            return
        if self._has_means():
            self._tree()._require_bounds()
            return
        raise AttributeError(
            f"external={self.external!r} with temperature={self.temperature!r} gives "
            'probabilities and no bounds; use external="auto" and temperature="auto", or a '
            "calibrator with bounds as external."
        )

    def _both_bounds(self, level: float | None, X: Any) -> FloatArray:
        if self.external_ is not None:
            bounds = self.external_.predict_bounds(self._scores(X), level=level)
            return np.stack([*bounds], axis=1)
        if not self._has_means():
            return know_nothing(X.shape[0], len(self.classes_))
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
