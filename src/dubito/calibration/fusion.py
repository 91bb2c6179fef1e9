"""Several classifiers, one answer."""

from __future__ import annotations

from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Self

from sklearn.base import ClassifierMixin, MetaEstimatorMixin
from sklearn.utils import get_tags, indexable
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from dubito._checks import check_level, no_level
from dubito._estimators import CautiousMixin
from dubito._rows import read_rows
from dubito._sklearn import (
    BaseComposition,
    Interval,
    StrOptions,
    check_feature_names,
    check_n_features,
    fit_context,
)
from dubito.calibration._base import BaseCalibrator
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
from dubito.calibration._members import all_classes, features_of, read_members
from dubito.calibration._two_classes import has_two_classes

if TYPE_CHECKING:
    from collections.abc import Callable

    from dubito._checks import FloatArray
    from dubito.belief import Bounds, MassBatch
    from dubito.calibration._fusion_independent import Inputs
    from dubito.calibration.evidential_joint import EvidentialJointCalibrator

#: What each method checks before anything is fitted, and how it fits.
_METHODS: dict[str, tuple[Callable[..., None], Callable[..., Any]]] = {
    "joint": (check_joint, fit_joint),
    "independent": (check_independent, fit_independent),
    "masses": (check_masses, fit_masses),
}


def _defines_mass(fusion: EvidentialFusion) -> bool:
    """Whether there are masses to ask for, as far as is known."""
    if fusion.method == "joint":
        return has_two_classes(fusion)
    combination = getattr(fusion, "_combination", None)
    return fusion.rule in MASS_RULES or isinstance(combination, TotalsCombination)


class EvidentialFusion(CautiousMixin, MetaEstimatorMixin, ClassifierMixin, BaseComposition):
    r"""Combine classifiers: one calibrated answer, with belief and plausibility.

    Parameters
    ----------
    estimators : list of (name, estimator) or (name, estimator, columns)
        The members: classifiers, fitted ones as ``FrozenEstimator(model)``, `CalibratedClassifier`,
        or None where the features are scores already. `columns` picks the features of a member, by
        number, name, slice or mask.
    method : {"joint", "independent", "masses"}, default "joint"
        "joint": one calibrator reads the scores of all members on the same held-out rows, and
        learns what each is worth beside the others (P1). "independent": each member is calibrated
        alone, then their beliefs are combined as independent evidence (P0, section II), which
        counts twice what members share. "masses": the members define mass functions themselves, as
        `dubito.evidence.EvidentialClassifier` does; they are trained on all rows, and what they
        say is combined as it is. Nothing is calibrated: `calibrator` and `cv` are refused.
    rule : {"contour", "dempster", "cautious"}, default "contour"
        How "independent" and "masses" combine. "contour": the contours multiply (P0, eq. 7), in
        O(K) per row for any number of classes. "dempster", "cautious": the members' full mass
        functions are combined, for few classes; the cautious rule counts evidence once that
        members share, and with more than two classes calibrated members need a `discount` for it.

        Members with ``totals`` of their weights of evidence that know all classes need no
        `discount` and no limit on classes: with "masses" the totals add up by Dempster's rule,
        which "contour" means there, and the cautious rule takes the largest of each.
    discount : float, default 0
        How far to doubt every member: this share of its mass goes to the whole frame before
        anything is combined. The cautious rule is defined only with some mass there, which
        calibrators of more than two classes need not leave; its answers depend on how much.
    calibrator : calibrator, optional
        By default the method's own with light targets. "joint": `EvidentialJointCalibrator`, by
        default with ``ridge="auto"``, which one you pass has only if you say so; its
        ``classes`` are set, and its ``input`` becomes "proba" for members asked for probabilities.
        "independent": `EvidentialMultinomialCalibrator`, with ``coupling="inverse_cdf"`` for the
        rules on masses, for that coupling has them; not used for a `CalibratedClassifier`, which
        brings its own.
    cv : int, splitter, iterable or "disjoint", default 5-fold, stratified
        How members that are not frozen get rows to calibrate on. Folds: scores of each fold come
        from copies trained on the others, and members for new rows are trained on all. "disjoint":
        the rows are parted among the members, each of which trains on one half of its part. The
        other halves calibrate: with "independent" each its own member, so that the members'
        evidence is independent (P0, section V); with "joint" all together, for no member has seen
        any of them (P1, section 4).
    n_jobs : int, optional
        Members and folds fitted at a time; with "independent" folds of one member.
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
    What the answers mean:

    ===========  ========  ====================================  ===============================
    method       rule      ``predict_proba``                     ``predict_bounds``
    ===========  ========  ====================================  ===============================
    joint        --        the most likely probability given     belief and plausibility from
                           the scores of all members             the likelihood of all
                                                                 coefficients
    independent  contour   normalised product of the contours    an interval sure to hold belief
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

    With "masses" the probability is that which evidential classifiers have (P2, eq. 9): one member
    is left as it is, and Dempster's rule makes the normalised product of the members'. It never
    exceeds the plausibility, but with more than two classes and much conflict may be less than the
    belief: the lower bound is then the probability. A member that has not seen some classes leaves
    them open.

    With more than two classes joint calibration gives no member a negative weight. The cost of its
    bounds grows with classes times calibration rows; where that is much, it takes the quadratic
    approximation of the likelihood by itself (``calibrator_.likelihood_`` tells).

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

    Members that weigh evidence themselves, which may overlap:

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
        "calibrator": [BaseCalibrator, None],
        "cv": ["cv_object", StrOptions({"disjoint"})],
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
        """Train the members that are not frozen, and calibrate.

        Parameters
        ----------
        X : array-like of shape (n, features)
        y : array-like of shape (n,)
        sample_weight : array-like of shape (n,), optional
            Reaches calibrators always, and members where their ``fit`` takes it; where not, a
            warning says so.

        Returns
        -------
        self
        """
        check, fit_by = _METHODS[self.method]
        check(self)
        members = read_members(self.estimators)
        self._validate_names([member.name for member in members])
        X, labels, weight = read_rows(self, X, y, sample_weight)
        self._check_features(X, reset=True)
        self.classes_ = all_classes(labels, members)
        self.columns_ = [member.columns for member in members]
        self.members_, self._combination = fit_by(self, members, X, labels, weight)
        return self

    @property
    def calibrator_(self) -> EvidentialJointCalibrator:
        """The calibrator of all members, with ``method="joint"``."""
        if isinstance(self._combination, JointCombination):
            return self._combination.calibrator
        raise AttributeError(f"method={self.method!r} has no calibrator of all members.")

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
        inputs = self._inputs(X)
        return self._combination.proba(inputs)

    def predict_bounds(self, X: Any, level: float | None = None) -> Bounds:
        """Return lower and upper probabilities of each class, given all members.

        Parameters
        ----------
        X : array-like
            As in `fit`.
        level : float, optional
            None: belief and plausibility. A number in (0, 1), as 0.9, with ``method="joint"``:
            bounds that hold the true probability given the members' scores at least so often.

        Returns
        -------
        Bounds
            Of shape (n, K).
        """
        inputs = self._inputs(X)
        level = check_level(level)
        if level is None:
            return self._combination.bounds(inputs)
        if isinstance(self._combination, JointCombination):
            return self._combination.level_bounds(inputs, level)
        raise no_level(
            self,
            f"method={self.method!r} multiplies beliefs of members as if they were independent, "
            'which no level survives. Use method="joint", or level=None.',
        )

    @available_if(_defines_mass)
    def predict_mass(self, X: Any) -> MassBatch:
        """Return mass functions, where there are any.

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
        inputs = self._inputs(X)
        return self._combination.mass(inputs)

    def conflict(self, X: Any) -> FloatArray:
        r"""Return how far the members contradict each other, row by row.

        The mass :math:`\kappa` that the combination of members, each calibrated alone, puts on the
        empty set; with ``method="masses"`` that of the members' own masses, by Dempster's rule
        also where they are combined by the cautious one. With
        ``rule="contour"``, unless all members have totals, and with ``method="joint"``, which uses
        the formula of that rule, it is a number that :math:`\kappa` cannot exceed given the
        members' bounds: exact for two classes, and for precise members without discount.

        Joint calibration has no conflict of its own, for it weighs the members against each other
        before anything is believed. There the number tells where they disagree, and is not made
        use of.

        Parameters
        ----------
        X : array-like
            As in `fit`.

        Returns
        -------
        ndarray of shape (n,)
            From 0, no conflict, to 1.
        """
        inputs = self._inputs(X)
        return self._combination.conflict(inputs)

    def _inputs(self, X: Any) -> Inputs:
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
