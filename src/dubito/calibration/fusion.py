"""EvidentialFusion: several classifiers combined into one."""

from __future__ import annotations

from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Self

from sklearn.base import ClassifierMixin, MetaEstimatorMixin
from sklearn.utils import get_tags, indexable
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from dubito._calibrator_names import CALIBRATORS
from dubito._compat import BaseComposition, Hidden, Interval, StrOptions, fit_context
from dubito._meta_estimators import read_rows, refuse_prefit
from dubito._validation import check_level, level_error
from dubito.base import CautiousMixin
from dubito.calibration._fusion_independent import (
    MASS_RULES,
    IndependentCombination,
    check_independent,
    fit_independent,
)
from dubito.calibration._fusion_joint import JointCombination, check_joint, fit_joint
from dubito.calibration._fusion_masses import (
    MassCombination,
    TotalsCombination,
    check_masses,
    fit_masses,
)
from dubito.calibration._fusion_members import (
    all_classes,
    check_features,
    features_of,
    read_members,
)
from dubito.calibration.base import BaseCalibrator, has_two_classes

if TYPE_CHECKING:
    from collections.abc import Callable

    from dubito._typing import FloatArray
    from dubito.belief import Bounds, MassBatch
    from dubito.calibration._fusion_independent import MemberRows
    from dubito.calibration.evidential_joint import EvidentialJointCalibrator

#: What each method checks before anything is fitted, and how it fits.
_METHODS: dict[str, tuple[Callable[..., None], Callable[..., Any]]] = {
    "joint": (check_joint, fit_joint),
    "independent": (check_independent, fit_independent),
    "masses": (check_masses, fit_masses),
}


def _has_mass(fusion: EvidentialFusion) -> bool:
    """Return whether the method and rule give masses."""
    method, rule = getattr(fusion, "_fitted_method_and_rule", (fusion.method, fusion.rule))
    if method == "joint":
        return has_two_classes(fusion)
    combination = getattr(fusion, "_combination", None)
    return rule in MASS_RULES or isinstance(combination, TotalsCombination)


class EvidentialFusion(CautiousMixin, MetaEstimatorMixin, ClassifierMixin, BaseComposition):
    r"""Combine classifiers into one, with calibrated probabilities, belief and plausibility.

    Parameters
    ----------
    estimators : list of (name, estimator) or (name, estimator, columns)
        The members: classifiers, fitted ones as ``FrozenEstimator(model)``, `CalibratedClassifier`,
        or None where the features are scores already. `columns` picks the features of a member, by
        number, name, slice or mask.
    method : {"joint", "independent", "masses"}, default "joint"
        "joint": one calibrator reads the scores of all members on the same held-out rows, and
        estimates a weight for each (Minary et al. 2017). "independent": each member is calibrated
        alone, then their beliefs are combined as independent evidence (Xu et al. 2015, section
        II), which counts common evidence twice. "masses": members with mass functions of their
        own, such as `dubito.evidence.EvidentialClassifier`, are trained on all rows and combined
        without calibration; `calibrator` and `cv` must not be given.
    rule : {"contour", "dempster", "cautious"}, default "contour"
        How "independent" and "masses" combine. "contour": the contours multiply (Xu et al. 2015,
        eq. 7), in O(K) per row for any number of classes. "dempster", "cautious": the members' full
        mass functions are combined, for few classes; the cautious rule counts common evidence once,
        and with more than two classes calibrated members need a `discount` for it.

        Members with ``totals`` of their weights of evidence that know all classes need no
        `discount` and no limit on classes: with "masses" the totals add up by Dempster's rule,
        which "contour" means there, and the cautious rule takes the largest of each.
    discount : float, default 0
        Fraction of the mass of every member that is moved to the whole frame before the
        combination. The cautious rule needs some mass there, which calibrators of more than two
        classes need not give; its result depends on the amount.
    calibrator : calibrator or str, optional
        An object or a name, as in `CalibratedClassifier`.
        "joint": `EvidentialJointCalibrator`, by default with ``ridge="auto"``; its ``classes`` are
        set, and its ``input`` becomes "proba" for members whose scores are probabilities.
        "independent": by default `EvidentialMultinomialCalibrator`, with
        ``coupling="inverse_cdf"`` for rules on masses; a `CalibratedClassifier` has its own.
    cv : int, splitter, iterable or "disjoint", default None
        How members that are not frozen get rows to calibrate on; None: 5 stratified folds, or
        nothing with "masses". Folds: scores of each fold come from copies trained on the others,
        and members for new rows are trained on all. "disjoint": the rows are divided among the
        members, each of which trains on one half of its part. The other halves calibrate: with
        "independent" each its own member, so that the members' evidence is independent (Xu et al.
        2015, section V); with "joint" all members, because none was trained on them (Minary et al.
        2017, section 4).
    n_jobs : int, optional
        Members and folds fitted in parallel; with "independent" folds of one member. Threads for
        bounds of the default calibrator of "joint".
    random_state : int or RandomState, optional
        Draws the parts of ``cv="disjoint"``.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
    members_ : list of CalibratedClassifier
        The members, each calibrated alone; with "joint" on the same scores, by the same kind of
        calibrator. With "masses" the fitted members themselves.
    columns_ : list
        The columns each member reads; None: all.
    calibrator_ : EvidentialJointCalibrator
        The calibrator of all members; with "joint" alone.

    See Also
    --------
    EvidentialJointCalibrator : Does the same for scores in place of classifiers.

    Notes
    -----
    Predictions of each method:

    ===========  ========  ====================================  ===============================
    method       rule      ``predict_proba``                     ``predict_bounds``
    ===========  ========  ====================================  ===============================
    joint        --        the most likely probability given     belief and plausibility from
                           the scores of all members             the likelihood of all
                                                                 coefficients
    independent  contour   normalised product of the contours    an interval that includes belief
                           :math:`pl(k)\propto\prod_ipl_i(k)`,   and plausibility under
                           which is what Dempster's rule makes   Dempster's rule; exact for two
                           of the normalised contours            classes and for precise members
                                                                 without discount
    independent  others    pignistic probability of the          its belief and plausibility
                           combined mass
    masses       contour   the same by Dempster's rule           the same where all members have
                                                                 totals, without discount; else
                                                                 an interval, as "independent"
    masses       others    normalised plausibilities of the      its belief and plausibility
                           combined mass
    ===========  ========  ====================================  ===============================

    With "masses" the probability is that of evidential classifiers (Denœux 2019, eq. 9): that of a
    single member does not change, and Dempster's rule gives the normalised product of the
    members'. It never exceeds the plausibility, but with more than two classes and much conflict
    it may be less than the belief: the lower bound is then the probability. A member gives no
    evidence about classes it does not know.

    Joint calibration of more than two classes gives no member a negative weight.

    Examples
    --------
    Three fitted models and rows they have not seen:

    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.frozen import FrozenEstimator
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from sklearn.svm import SVC
    >>> from dubito.calibration import EvidentialFusion
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> models = {"svm": SVC(), "bayes": GaussianNB(), "nearest": KNeighborsClassifier()}
    >>> fitted = [(name, FrozenEstimator(m.fit(X[:200], y[:200]))) for name, m in models.items()]
    >>> fusion = EvidentialFusion(fitted).fit(X[200:300], y[200:300])
    >>> fusion.score(X[300:], y[300:]) > 0.9
    True
    >>> bounds = fusion.predict_bounds(X[300:])
    >>> bounds.lower.shape, fusion.conflict(X[300:]).shape
    ((269, 2), (269,))

    Members that are trained, on features of their own:

    >>> members = [("size", SVC(), [0, 2, 3]), ("shape", GaussianNB(), [5, 6, 7])]
    >>> fusion = EvidentialFusion(members, cv=3).fit(X[:200], y[:200])
    >>> fusion.predict(X[200:205])
    array([1, 0, 0, 0, 1])

    Members with weights of evidence of their own, which may overlap:

    >>> from sklearn.linear_model import LogisticRegression
    >>> from dubito.evidence import EvidentialClassifier
    >>> members = [(f"C={C}", EvidentialClassifier(LogisticRegression(C=C))) for C in (0.1, 1.0)]
    >>> fusion = EvidentialFusion(members, method="masses", rule="cautious")
    >>> fusion.fit(X[:200, :2], y[:200]).predict_bounds(X[200:202, :2]).lower.round(1)
    array([[0.1, 0.7],
           [1. , 0. ]])
    """

    _combination: JointCombination | IndependentCombination | MassCombination | TotalsCombination

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "estimators": [list],
        "method": [StrOptions(set(_METHODS))],
        "rule": [StrOptions({"contour", *MASS_RULES})],
        "discount": [Interval(Real, 0, 1, closed="left")],
        "calibrator": [BaseCalibrator, StrOptions(set(CALIBRATORS)), None],
        "cv": ["cv_object", StrOptions({"disjoint"}), Hidden(StrOptions({"prefit"}))],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        estimators: list[tuple[Any, ...]],
        *,
        method: str = "joint",
        rule: str = "contour",
        discount: float = 0.0,
        calibrator: str | BaseCalibrator | None = None,
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
        """Train the members that are not frozen, and calibrate.

        Parameters
        ----------
        X : array-like of shape (n, features)
        y : array-like of shape (n,)
        sample_weight : array-like of shape (n,), optional
            Passed to calibrators, and to members whose ``fit`` takes it; for others there is a
            warning.

        Returns
        -------
        self
        """
        refuse_prefit(self.cv)
        check, fit_by = _METHODS[self.method]
        check(self)
        members = read_members(self.estimators)
        self._validate_names([member.name for member in members])
        X, labels, weight = read_rows(self, X, y, sample_weight)
        check_features(self, X, reset=True)
        self.classes_ = all_classes(labels, members)
        self.columns_ = [member.columns for member in members]
        self.members_, self._combination = fit_by(self, members, X, labels, weight)
        self._fitted_method_and_rule = self.method, self.rule
        return self

    @property
    def calibrator_(self) -> EvidentialJointCalibrator:
        """The calibrator of all members, with ``method="joint"``."""
        if isinstance(self._combination, JointCombination):
            return self._combination.calibrator
        raise AttributeError(f"method={self.method!r} has no calibrator of all members.")

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probabilities of the classes.

        Parameters
        ----------
        X : array-like
            As in `fit`.

        Returns
        -------
        ndarray of shape (n, K)
        """
        member_rows = self._member_rows(X)
        return self._combination.proba(member_rows)

    def predict_bounds(self, X: Any, level: float | None = None) -> Bounds:
        """Return lower and upper probabilities of each class, given all members.

        Parameters
        ----------
        X : array-like
            As in `fit`.
        level : float, optional
            None: belief and plausibility. A number in (0, 1), such as 0.9, with ``method="joint"``:
            bounds that contain the true probability of a class, given the members' scores, with
            about this frequency, if the form of the map is right.

        Returns
        -------
        Bounds
            Of shape (n, K).
        """
        member_rows = self._member_rows(X)
        level = check_level(level)
        if level is None:
            return self._combination.bounds(member_rows)
        if isinstance(self._combination, JointCombination):
            return self._combination.level_bounds(member_rows, level)
        raise level_error(
            self,
            f"method={self.method!r} multiplies beliefs of members as if they were independent, "
            'which no level survives. Use method="joint", or level=None.',
        )

    @available_if(_has_mass)
    def predict_mass(self, X: Any) -> MassBatch:
        """Return the combined mass functions, where the method and rule give them.

        With ``method="joint"`` for two classes; otherwise by ``rule="dempster"`` or
        ``"cautious"``, and of members with totals by any rule, up to 20 classes.

        Parameters
        ----------
        X : array-like
            As in `fit`.

        Returns
        -------
        MassBatch
        """
        member_rows = self._member_rows(X)
        return self._combination.mass(member_rows)

    def conflict(self, X: Any) -> FloatArray:
        r"""Return the conflict of the members in each row.

        The mass :math:`\kappa` of the empty set in the combination by Dempster's rule of the
        members, each calibrated alone; with ``method="masses"`` of the members' own masses. With
        ``rule="contour"``, unless all members have totals, and with ``method="joint"`` it is an
        upper bound of :math:`\kappa`, exact for two classes and for precise members without
        discount.

        Parameters
        ----------
        X : array-like
            As in `fit`.

        Returns
        -------
        ndarray of shape (n,)
            From 0, no conflict, to 1.
        """
        member_rows = self._member_rows(X)
        return self._combination.conflict(member_rows)

    def _member_rows(self, X: Any) -> MemberRows:
        """Return every member with the features it reads; raise if nothing is fitted."""
        check_is_fitted(self)
        (X,) = indexable(X)
        check_features(self, X, reset=False)
        return (
            (member, features_of(X, columns))
            for member, columns in zip(self.members_, self.columns_, strict=True)
        )

    @property
    def _named_members(self) -> list[tuple[str, Any]]:
        """The members without their columns, for nested parameters."""
        try:
            return [(name, estimator) for name, estimator, *_ in self.estimators]
        except (TypeError, ValueError):  # not a list of members: `fit` raises an error
            return self.estimators

    @_named_members.setter
    def _named_members(self, pairs: list[tuple[str, Any]]) -> None:
        self.estimators = [
            (name, estimator, *columns)
            for (name, estimator), (_, _, *columns) in zip(pairs, self.estimators, strict=True)
        ]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters, with ``deep`` also those of the members by name."""
        return self._get_params("_named_members", deep=deep)

    def set_params(self, **params: Any) -> Self:
        """Set parameters, also those of members, as in ``svm__C=1``."""
        if "estimators" in params:
            self.estimators = params.pop("estimators")
        return self._set_params("_named_members", **params)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = [get_tags(e).input_tags for _, e in self._named_members if e is not None]
        tags.input_tags.sparse = all(tag.sparse for tag in inner)
        tags.input_tags.allow_nan = all(tag.allow_nan for tag in inner)
        return tags
