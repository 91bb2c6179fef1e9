"""Several classifiers, one answer."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils import check_random_state, get_tags, indexable
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from dubito._estimators import CautiousMixin
from dubito._kernels.contours import Combined, combine_contours
from dubito._sklearn import (
    BaseComposition,
    Interval,
    StrOptions,
    check_feature_names,
    check_n_features,
    fit_context,
    pick,
)
from dubito.belief import (
    Bounds,
    MassBatch,
    TotalConflictError,
    cautious,
    conflict,
    dempster,
)
from dubito.belief import discount as discounted
from dubito.calibration._base import BaseCalibrator
from dubito.calibration._members import Member, all_classes, features_of, stratified_parts
from dubito.calibration._rows import read_rows
from dubito.calibration.classifier import CalibratedClassifier
from dubito.calibration.evidential_multinomial import EvidentialMultinomialCalibrator

if TYPE_CHECKING:
    import numpy.typing as npt

    from dubito._checks import FloatArray

_MASS_RULES = {"dempster": dempster, "cautious": cautious}


class EvidentialFusion(CautiousMixin, MetaEstimatorMixin, ClassifierMixin, BaseComposition):
    r"""Combine classifiers by calibrating each to a belief function and combining these.

    Parameters
    ----------
    estimators : list of (name, estimator) or (name, estimator, columns)
        The members: classifiers, fitted ones as ``FrozenEstimator(model)``, or
        `CalibratedClassifier` with a calibration of their own. `columns` picks the features of a
        member, by number, name, slice or mask.
    method : {"independent"}, default "independent"
        Each member is calibrated alone, then their beliefs are combined as independent evidence
        (P0, section II).
    rule : {"contour", "dempster", "cautious"}, default "contour"
        "contour": the contours multiply (P0, eq. 7), in O(K) per row for any number of classes.
        "dempster", "cautious": the members' full mass functions are combined, for few classes;
        the cautious rule counts evidence once that members share, and with more than two classes
        needs a `discount`.
    discount : float, default 0
        How far to doubt every member: this share of its mass goes to the whole frame before
        anything is combined. The cautious rule is defined only with some mass there, which
        calibrators of more than two classes need not leave; its answers depend on how much.
    calibrator : calibrator, optional
        For members that bring none. By default `EvidentialMultinomialCalibrator` with light
        targets, and ``coupling="inverse_cdf"`` for the rules on masses, for that coupling has them.
    cv : int, splitter, iterable or "disjoint", default 5-fold, stratified
        How members that are not frozen get rows to calibrate on. "disjoint": the rows are parted
        among the members, each trains on one half of its part and calibrates on the other, so
        that the members' evidence is independent (P0, section V).
    n_jobs : int, optional
        Folds fitted at a time.
    random_state : int or RandomState, optional
        Draws the parts of ``cv="disjoint"``.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
    members_ : list of CalibratedClassifier

    Notes
    -----
    What the answers mean:

    ==========  ===========================================  ================================
    rule        ``predict_proba``                            ``predict_bounds``
    ==========  ===========================================  ================================
    contour     normalised product of the contours           an interval sure to hold belief
                :math:`pl(k)\propto\prod_ipl_i(k)`, which    and plausibility under Dempster's
                is what Dempster's rule makes of the         rule; exact for two classes and
                normalised contours                          for precise members without discount
    dempster,   pignistic probability of the combined mass   its belief and plausibility
    cautious
    ==========  ===========================================  ================================

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from dubito.calibration import EvidentialFusion
    >>> X, y = load_wine(return_X_y=True)
    >>> chemistry = LogisticRegression(max_iter=10_000)
    >>> members = [("chemistry", chemistry, slice(0, 5)), ("colour", GaussianNB(), slice(9, 11))]
    >>> fusion = EvidentialFusion(members).fit(X, y)
    >>> fusion.predict(X[:2])
    array([0, 0])
    >>> fusion.conflict(X).shape
    (178,)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "estimators": [list],
        "method": [StrOptions({"independent"})],
        "rule": [StrOptions({"contour", *_MASS_RULES})],
        "discount": [Interval(Real, 0, 1, closed="left")],
        "calibrator": [BaseCalibrator, None],
        "cv": ["cv_object", StrOptions({"disjoint"})],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        estimators: list[tuple[Any, ...]],
        *,
        method: str = "independent",
        rule: str = "contour",
        discount: float = 0.0,
        calibrator: BaseCalibrator | None = None,
        cv: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.estimators = estimators
        self.method = method
        self.rule = rule
        self.discount = discount
        self.calibrator = calibrator
        self.cv = cv
        self.n_jobs = n_jobs
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Calibrate every member.

        Parameters
        ----------
        X : array-like of shape (n, features)
        y : array-like of shape (n,)
        sample_weight : array-like of shape (n,), optional

        Returns
        -------
        self
        """
        members = self._read_members()
        X, labels, weight = read_rows(self, X, y, sample_weight)
        self._check_features(X, reset=True)
        self.classes_ = all_classes(labels, members)
        self.columns_ = [member.columns for member in members]
        self.members_ = [
            self._calibrated(member.estimator, split)._fit(
                pick(features_of(X, member.columns), rows),
                labels[rows],
                None if weight is None else weight[rows],
                known=self.classes_,
            )
            for member, (rows, split) in zip(members, self._shares(labels), strict=True)
        ]
        self._check_masses()
        return self

    def predict_proba(self, X: Any) -> FloatArray:
        """Return one probability for each class.

        Parameters
        ----------
        X : array-like
            As in `fit`.

        Returns
        -------
        ndarray of shape (n, K)
        """
        if self.rule == "contour":
            return self._combined(X).proba
        return self.predict_mass(X).pignistic()

    def predict_bounds(self, X: Any) -> Bounds:
        """Return belief and plausibility of each class after combination.

        Parameters
        ----------
        X : array-like
            As in `fit`.

        Returns
        -------
        Bounds
            Of shape (n, K).
        """
        if self.rule == "contour":
            combined = self._combined(X)
            return Bounds(combined.lower, combined.upper)
        return self.predict_mass(X).bounds()

    @available_if(lambda self: self.rule in _MASS_RULES)
    def predict_mass(self, X: Any) -> MassBatch:
        """Return the combined mass functions, with ``rule="dempster"`` or ``"cautious"``.

        Parameters
        ----------
        X : array-like
            As in `fit`.

        Returns
        -------
        MassBatch
        """
        return _MASS_RULES[self.rule](*self._masses(X))

    def conflict(self, X: Any) -> FloatArray:
        r"""Return how far the members contradict each other, row by row.

        The mass :math:`\kappa` that the members' combination puts on the empty set. With
        ``rule="contour"`` it is a number that :math:`\kappa` cannot exceed given the members'
        bounds: exact for two classes, and for precise members without discount.

        Parameters
        ----------
        X : array-like
            As in `fit`.

        Returns
        -------
        ndarray of shape (n,)
            From 0, no conflict, to 1.
        """
        if self.rule == "contour":
            return self._products(X).conflict
        return np.asarray(conflict(*self._masses(X)))

    def _combined(self, X: Any) -> Combined:
        """Return the combined contours, or say which rows have no class left."""
        combined = self._products(X)
        if combined.total.any():
            raise TotalConflictError(np.flatnonzero(combined.total))
        return combined

    def _products(self, X: Any) -> Combined:
        """Multiply the members' contours, one member at a time to keep memory bounded."""
        log_a = log_d = np.zeros((1, 1))
        for member, own in self._inputs(X):
            bounds = member.predict_bounds(own)
            lower = (1 - self.discount) * bounds.lower
            upper = (1 - self.discount) * bounds.upper + self.discount
            with np.errstate(divide="ignore"):
                log_a = log_a + np.log(upper)
                log_d = log_d + np.log(upper - lower)
        return combine_contours(log_a, log_d, len(self.members_))

    def _check_masses(self) -> None:
        """Refuse a rule on masses that some member does not have, before anybody predicts."""
        if self.rule == "contour":
            return
        n_classes = len(self.classes_)
        if self.rule == "cautious" and self.discount == 0 and n_classes > 2:
            raise ValueError(
                'rule="cautious" needs some mass on the whole frame, which calibrators of '
                f"{n_classes} classes need not leave; say how far to doubt the members, as in "
                "discount=0.05."
            )
        for member, (name, *_) in zip(self.members_, self.estimators, strict=True):
            if not hasattr(member, "predict_mass"):
                kind = type(member.pairs_[0].calibrator).__name__
                raise TypeError(
                    f"rule={self.rule!r} combines full mass functions, which {kind} of member "
                    f"{name!r} does not define for {n_classes} classes. Use "
                    'EvidentialMultinomialCalibrator(coupling="inverse_cdf"), for at most 12 '
                    'classes, or rule="contour".'
                )

    def _masses(self, X: Any) -> list[MassBatch]:
        """Return every member's mass functions."""
        return [discounted(m.predict_mass(own), self.discount) for m, own in self._inputs(X)]

    def _inputs(self, X: Any) -> Iterator[tuple[CalibratedClassifier, Any]]:
        """Return every member with the features it reads."""
        check_is_fitted(self)
        (X,) = indexable(X)
        self._check_features(X, reset=False)
        return (
            (member, features_of(X, columns))
            for member, columns in zip(self.members_, self.columns_, strict=True)
        )

    def _check_features(self, X: Any, *, reset: bool) -> None:
        """Note the features of a fit, or compare with them."""
        if getattr(X, "ndim", 2) == 1:
            raise ValueError(
                f"X must be 2-dimensional; got an array of shape {X.shape}. Reshape your data: "
                "X.reshape(1, -1) if it is one row, X.reshape(-1, 1) if it is one feature."
            )
        check_feature_names(self, X, reset=reset)
        check_n_features(self, X, reset=reset)

    def _calibrated(self, estimator: Any, split: Any) -> CalibratedClassifier:
        """Return the member as a calibrated classifier, not yet fitted."""
        if isinstance(estimator, CalibratedClassifier):
            return clone(estimator)
        calibrator = self.calibrator
        if calibrator is None:
            coupling = "gumbel" if self.rule == "contour" else "inverse_cdf"
            calibrator = EvidentialMultinomialCalibrator(coupling=coupling, targets="light")
        return CalibratedClassifier(
            estimator, calibrator, cv=split, ensemble=self.cv == "disjoint", n_jobs=self.n_jobs
        )

    def _shares(self, y: npt.NDArray[Any]) -> Iterator[tuple[Any, Any]]:
        """Return for every member its rows, and how it splits them to train and to calibrate."""
        n_members = len(self.estimators)
        if self.cv != "disjoint":
            # A generator of folds would be used up by the first member.
            folds = list(self.cv) if isinstance(self.cv, Iterator) else self.cv
            yield from [(slice(None), folds)] * n_members
            return
        random = check_random_state(self.random_state)
        part = stratified_parts(y, n_members, random)
        for member in range(n_members):
            rows = np.flatnonzero(part == member)
            half = stratified_parts(y[rows], 2, random)
            yield rows, [(np.flatnonzero(half == 0), np.flatnonzero(half == 1))]

    def _read_members(self) -> list[Member]:
        """Return the members, checked."""
        try:
            members = [Member(*entry) for entry in self.estimators]
        except TypeError as error:
            raise ValueError(
                "estimators must be a list of (name, estimator) or (name, estimator, columns). "
                f"Got {self.estimators!r} instead."
            ) from error
        if not members:
            raise ValueError("estimators is empty; at least one (name, estimator) is needed.")
        self._validate_names([member.name for member in members])
        return members

    @property
    def _named(self) -> list[tuple[str, Any]]:
        """The members without their columns: what nested parameters are made of."""
        try:
            return [(name, estimator) for name, estimator, *_ in self.estimators]
        except (TypeError, ValueError):  # not yet a list of members: `fit` will say so
            return self.estimators

    @_named.setter
    def _named(self, pairs: list[tuple[str, Any]]) -> None:
        self.estimators = [
            (name, estimator, *columns)
            for (name, estimator), (_, _, *columns) in zip(pairs, self.estimators, strict=True)
        ]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters, with ``deep`` also those of the members by name."""
        return self._get_params("_named", deep=deep)

    def set_params(self, **params: Any) -> Self:
        """Set parameters, also those of members, as in ``svm__C=1``."""
        if "estimators" in params:
            self.estimators = params.pop("estimators")
        return self._set_params("_named", **params)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = [get_tags(e).input_tags for _, e in self._named if e is not None]
        tags.input_tags.sparse = all(tag.sparse for tag in inner)
        tags.input_tags.allow_nan = all(tag.allow_nan for tag in inner)
        return tags
