"""Ensembles of nested dichotomies: the mean of several trees over the same classes."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import check_random_state

from dubito._compat import HasMethods, Interval, StrOptions, fit_context
from dubito._numerics.softmax import log_softmax
from dubito._validation import level_of_each
from dubito.calibration import TemperatureCalibrator
from dubito.dichotomies._calibrators import (
    as_external,
    default_external,
    default_internal_of_ensemble,
    fit_external,
    held_out_rows,
    is_auto,
)
from dubito.dichotomies._kernels.holdout import Holdout, hold_out
from dubito.dichotomies._many_classes import ManyClassesMixin, vacuous_bounds
from dubito.dichotomies._parallel import in_row_chunks
from dubito.dichotomies._structures import structure_of_ensemble
from dubito.dichotomies._training_rows import ClassRows, read_class_rows
from dubito.dichotomies.classifier import NestedDichotomyClassifier

if TYPE_CHECKING:
    from numpy.random import Generator

    from dubito._typing import FloatArray
    from dubito.calibration.base import BaseCalibrator


class _Pooling(NamedTuple):
    """Parameters of the mean of trees, kept as they were at the time of the fit.

    ``slope`` is β of the geometric mean before calibration, 1 if it is fitted. ``calibrated``:
    whether the mean is calibrated if rows can be held out.
    """

    geometric: bool
    slope: float
    calibrated: bool

    @property
    def averages_bounds(self) -> bool:
        """Whether probabilities and bounds are means of those of the trees."""
        return not (self.geometric or self.calibrated)


class NestedDichotomyEnsemble(ManyClassesMixin, ClassifierMixin, BaseEstimator):
    r"""The mean of several nested dichotomies with different trees.

    The splits near the root of a tree separate sets of classes with little in common; another tree
    has other splits, and other errors. The geometric mean of M trees

    .. math:: p(c\mid x)\propto\prod_{m=1}^Mp_m(c\mid x)^{\beta/M}

    keeps the classes that all trees find possible, and is sharper than any of them; the arithmetic
    mean keeps those that one tree does. The mean is calibrated on rows that none of its trees was
    fitted to, and bounds are those of its calibrator.

    Parameters
    ----------
    estimator : NestedDichotomyClassifier or classifier, default=None
        The tree that is cloned; None is the default one. Another classifier is that of the nodes.
        Parameters of the tree that are "auto" are chosen for the ensemble: a structure that makes
        trees differ, uncalibrated logistic nodes or other nodes with Platt's sigmoids, and no
        external calibration of each tree.
    n_estimators : int, default=10
        Number M of trees.
    pooling : {"geometric", "arithmetic"}, default="geometric"
        The kind of mean.
    external : "auto", None, calibrator or its name, default="auto"
        Calibration of the log-probabilities of the mean, as "vector". "auto": one slope,
        :math:`\beta`, by ``EvidentialMultinomialCalibrator``, which gives the bounds. None: the
        arithmetic mean without calibration, whose bounds are means of the trees' bounds; a
        temperature for the geometric mean.
    temperature : "auto" or float, default="auto"
        :math:`1/\beta` of the geometric mean. "auto" is fitted to held-out rows, and 1 if none can
        be held out, as every class keeps a row. With a number nothing is fitted unless `external`
        names a calibrator.
    holdout_size : "auto" or float, default="auto"
        Fraction of the rows held out for calibration; the trees are fitted without them. "auto":
        all rows in five folds below 1,000 rows, otherwise a tenth, at most 1,000 rows, which
        determine one slope well; up to 20,000 rows the trees are then fitted again to all of them.
    n_jobs : int, default=None
        Number of jobs, as in `NestedDichotomyClassifier`: trees are fitted one after the other,
        their nodes in parallel.
    random_state : int, RandomState or None, default=None
        Seed of the trees and the held-out rows.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        Labels, in the order of the columns.
    estimators_ : list of NestedDichotomyClassifier
        The trees.
    external_ : calibrator or None
        The fitted calibrator of the mean; None also if fewer than 20 rows can be held out. The
        bounds are then 0 and 1.
    temperature_ : float
        :math:`1/\beta`; 1 for the arithmetic mean, which has none.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of features, if X has them.

    Notes
    -----
    Leathart et al. 2019 use a single tree. The bounds express how well the slope of the mean is
    known. With ``pooling="arithmetic", external=None`` they are means of the trees' bounds, which
    are exact, because trees vary independently, but too wide for decisions if classes are many. At
    a confidence level each of M trees then has bounds at :math:`1-(1-\text{level})/M`, so that all
    of them hold together at the level; their means bound the mean of the trees' true probabilities,
    each given the scores of its own nodes. This is conservative, because the trees are fitted to
    the same rows and mostly err together.

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

    def _given_member(self) -> NestedDichotomyClassifier:
        """Return the unfitted tree that `estimator` is, or whose nodes have it as their model."""
        if isinstance(self.estimator, NestedDichotomyClassifier):
            return self.estimator
        return NestedDichotomyClassifier(self.estimator)

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the trees, and calibrate their mean.

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
        calibrator, member = self._calibrator(), self._given_member()
        member._calibrators()  # raises for bad calibrators, before rows are read
        finite = member._ensure_all_finite()
        rows = read_class_rows(
            self, X, y, sample_weight, dtype=member.dtype, ensure_all_finite=finite
        )
        self._pooling, self._floored = self._current_pooling(), self._names_calibrator()
        self.classes_, self._row_format = rows.classes, rows.row_format
        random_state = check_random_state(self.random_state)
        seeds = random_state.randint(np.iinfo(np.int32).max, size=self.n_estimators + 1)
        rng = np.random.default_rng(seeds[0])
        holdout = Holdout([])
        if calibrator is not None:
            holdout = hold_out(rows.codes, rows.weight, self.holdout_size, rng)
        template = self._template(member, len(rows.classes))
        self.estimators_ = self._fit_members(
            template, replace(rows, weight=holdout.final_weight(rows.weight)), seeds[1:]
        )
        self.external_: BaseCalibrator | None = None
        if calibrator is not None and holdout.parts:
            mean = self._mean_of_held_out(template, rows, holdout, rng)
            self.external_ = fit_external(
                calibrator, mean, held_out_rows(rows, holdout), floored=self._floored
            )
        self.temperature_ = self._fitted_temperature()
        return self

    def _mean_of_held_out(
        self, template: NestedDichotomyClassifier, rows: ClassRows, holdout: Holdout, rng: Generator
    ) -> FloatArray:
        """Return the log-probabilities of the mean for held-out rows, part by part."""
        parts = []
        for part in holdout.parts:
            members = self.estimators_
            if holdout.refit:
                seeds = rng.integers(np.iinfo(np.int32).max, size=self.n_estimators)
                members = self._fit_members(template, rows.without(part), seeds)
            mean = partial(self._mean_log_proba, members)
            parts.append(in_row_chunks(mean, rows.X[part], len(rows.classes), self.n_jobs))
        return np.concatenate(parts)

    def _current_pooling(self) -> _Pooling:
        return _Pooling(
            geometric=self.pooling == "geometric",
            slope=1.0 if is_auto(self.temperature) else 1 / float(self.temperature),
            calibrated=self._calibrator() is not None,
        )

    def _calibrator(self) -> BaseCalibrator | None:
        """Return the calibrator of the mean."""
        if is_auto(self.external):
            return default_external() if is_auto(self.temperature) else None
        if self.external is None and self.pooling == "geometric" and is_auto(self.temperature):
            return TemperatureCalibrator(input="logits")
        return as_external(self.external)

    def _template(
        self, member: NestedDichotomyClassifier, n_classes: int
    ) -> NestedDichotomyClassifier:
        """Return the unfitted member of which clones are fitted: `member` with "auto" replaced.

        "auto" becomes values for ensembles: trees that differ, and no external calibration of each
        member if the mean is calibrated.
        """
        structure = structure_of_ensemble(member.structure, n_classes)
        template = clone(member).set_params(structure=structure, n_jobs=self.n_jobs)
        if member._calibrators().both_auto and not self._pooling.averages_bounds:
            internal = default_internal_of_ensemble(member.estimator)
            template.set_params(internal=internal, external=None)
        return template

    def _fit_members(
        self, template: NestedDichotomyClassifier, rows: ClassRows, seeds: Any
    ) -> list[NestedDichotomyClassifier]:
        members = []
        for seed in seeds:
            member = clone(template).set_params(random_state=int(seed))
            for name in ("n_features_in_", "feature_names_in_"):
                if hasattr(self, name):
                    setattr(member, name, getattr(self, name))
            members.append(member._fit_rows(rows))
        return members

    def _fitted_temperature(self) -> float:
        if not is_auto(self.temperature):
            return float(self.temperature)
        if self.external_ is None or self.pooling != "geometric" or self._names_calibrator():
            return 1.0
        slope: float = self.external_.slope_
        return float(1 / slope) if slope > 0 else np.inf

    def _mean_log_proba(self, members: list[NestedDichotomyClassifier], X: Any) -> FloatArray:
        """Return the log-probabilities (n, K) of the mean of members before calibration."""
        total = members[0]._log_proba(X)
        for member in members[1:]:
            if self._pooling.geometric:
                total += member._log_proba(X)
            else:
                np.logaddexp(total, member._log_proba(X), out=total)
        if not self._pooling.geometric:
            return total - np.log(len(members))
        return log_softmax(self._pooling.slope / len(members) * total)

    def _names_calibrator(self) -> bool:
        """Return whether `external` names a calibrator; otherwise only a slope is fitted."""
        return not (self.external is None or is_auto(self.external))

    def _log_proba_before_external(self, X: Any) -> FloatArray:
        return self._mean_log_proba(self.estimators_, X)

    def _proba_before_external(self, X: Any) -> FloatArray:
        if self._pooling.geometric:
            return np.exp(self._mean_log_proba(self.estimators_, X))
        total = self.estimators_[0]._proba(X)
        for member in self.estimators_[1:]:
            total += member._proba(X)
        return total / len(self.estimators_)

    def _require_bounds(self) -> None:
        fitted = hasattr(self, "estimators_")
        pooling = self._pooling if fitted else self._current_pooling()
        if pooling.calibrated:
            return
        if pooling.averages_bounds:
            (self.estimators_[0] if fitted else self._given_member())._require_bounds()
            return
        raise AttributeError(
            f"external={self.external!r} with temperature={self.temperature!r} gives "
            'probabilities and no bounds; use external="auto" and temperature="auto", or a '
            "calibrator with bounds as external."
        )

    def _bounds_without_external(self, X: Any, level: float | None) -> FloatArray:
        if not self._pooling.averages_bounds:
            return vacuous_bounds(X.shape[0], len(self.classes_))
        if level is not None:
            level = level_of_each(level, len(self.estimators_))
        total = self.estimators_[0]._stacked_bounds(X, level)
        for member in self.estimators_[1:]:
            total += member._stacked_bounds(X, level)
        return total / len(self.estimators_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = self._given_member().__sklearn_tags__().input_tags
        return tags
