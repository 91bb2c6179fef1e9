"""Nested dichotomies: a tree of two-way decisions between thousands of classes (P4)."""

from __future__ import annotations

from functools import partial
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state, get_tags

from dubito._compat import HasMethods, Interval, StrOptions, fit_context
from dubito._validation import check_level
from dubito.base import offered_if
from dubito.calibration.base import is_evidential
from dubito.decision.rules import choose_set
from dubito.dichotomies._auto import Calibrators, is_auto, read_calibrators
from dubito.dichotomies._class_rows import ClassRows, read_class_rows
from dubito.dichotomies._estimator_nodes import has_probabilities
from dubito.dichotomies._external import as_scores, best_external, fit_external, held_rows
from dubito.dichotomies._growth import STRUCTURES, make_tree
from dubito.dichotomies._holdout import Aside, plan_aside, rows_aside
from dubito.dichotomies._kernels.tree_paths import group_sums
from dubito.dichotomies._many_classes import ManyClassesMixin, know_nothing, require_bounds
from dubito.dichotomies._top import can_search, search_top
from dubito.dichotomies._tree_fit import check_node_model, fit_tree_model
from dubito.dichotomies._tree_model import TreeModel, over_rows
from dubito.dichotomies.tree import DichotomyTree

if TYPE_CHECKING:
    import numpy.typing as npt
    from numpy.random import Generator

    from dubito._typing import BoolArray, FloatArray, IntArray
    from dubito.calibration.base import BaseCalibrator
    from dubito.decision.rules import SetRule


class NestedDichotomyClassifier(ManyClassesMixin, ClassifierMixin, BaseEstimator):
    r"""A tree over the classes, with a model at each node that tells its two halves apart.

    The probability of a class is the product of the nodes' on its path,

    .. math:: p(c\mid x)=\prod_{t\in\text{path}(c)}\sigma(\pm z_t(x)),

    with :math:`z_t` the log-odds of the right side of node t, so that the log loss of a row is the
    sum of its nodes' (P4, Proposition 1). A fit costs about as many passes over the rows as the
    tree is deep, where a flat model costs as many as there are classes.

    Parameters
    ----------
    estimator : classifier, default=None
        The model of a node. None is logistic regression by solvers made for many small problems,
        and so is a ``LogisticRegression`` with a ridge: both are at scikit-learn's optimum. The
        nodes of ``GaussianNB`` and ``MultinomialNB`` are had from sums over classes. Of any other
        classifier each node gets a clone.
    structure : str, DichotomyTree or nested tuples, default="auto"
        How classes are parted. "clustered": halves of classes that lie near each other, by
        2-means on class means; "clustered_half": the same in a random half of the features;
        "centroid_pair": to the nearer of the means of two random classes; "random_pair": by a
        model of two random classes; "random": any split is as likely as any other (P4);
        "class_balanced" and "data_balanced": random halves of the classes, or of the rows.
        "auto" is "clustered" for a tree by itself; in an ensemble, where trees gain by being
        different, "centroid_pair" up to 200 classes and "clustered_half" beyond. Or a tree of
        labels, say a taxonomy: its leaves without rows are left out.
    internal : "auto", None, "platt", "isotonic" or calibrator, default="auto"
        Calibration of each node, on log-odds out of fold. An evidential calibrator gives bounds.
        "auto": Platt's sigmoids, where rows held out have a lower log loss with them.
    external : "auto", None, "vector" or calibrator, default="auto"
        Calibration of the whole, on the log-probabilities of rows that a tree has not seen.
        "auto": one slope, ``EvidentialMultinomialCalibrator``, which gives the bounds.
        Where one of `internal` and `external` is named, the other left at "auto" is None: of
        None, "platt" and "vector" each asks for one of P4's schemes.
    internal_cv : int, default=3
        Folds for internal calibration.
    external_size : "auto" or float, default="auto"
        Part of the rows that is set aside for external calibration; the tree does without. "auto"
        is a tenth for a calibrator that is named. For the default it is all rows in five folds
        below 1,000 rows, then a tenth, and 1,000 rows at most; up to 20,000 rows the tree is
        fitted again to all of them.
    dtype : dtype, default=None
        float32 or float64 to compute node models with; None is that of the rows. float32 takes half
        of the memory and less time; log-odds of nodes are then right to about three digits.
    n_jobs : int, default=None
        Jobs for fits and predictions, by joblib: threads, unless ``joblib.parallel_config`` says
        otherwise. It changes no result.
    random_state : int, RandomState or None, default=None
        Decides the tree, folds, rows set aside, and seeds of estimators.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        Labels, in the order of columns.
    tree_ : DichotomyTree
        The tree.
    internal_ : object
        Calibration maps of the nodes.
    external_ : calibrator or None
        The fitted external calibrator. None also where "auto" finds fewer than 20 rows to hold
        out, as where every class has a single row; all bounds are 0 and 1 then.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of features, where X has them.

    See Also
    --------
    NestedDichotomyEnsemble : several trees, whose errors cancel.

    Notes
    -----
    Folds of internal calibration hold every `internal_cv`-th row in the order of the leaves, so
    that both sides of every node are in each fold in proportion. A node with a single row on a
    side is left as it is, and its bounds are 0 and 1. P4 uses three folds, as here.

    Rows are set aside in proportion to the classes, never the last of one; classes without a row
    among them are shrunken towards the others by `VectorCalibrator`, where plain vector scaling
    would drive them to probability zero.

    Bounds by default are those of the slope of the whole, known well from some hundred rows: they
    serve decisions. With an evidential `internal` alone bounds of a class are products of its
    nodes' bounds. They are exact: nodes are free in their intervals, and a path meets each once;
    but with many classes and few rows in each they leave most rows undecided. At a confidence
    level each node has bounds at :math:`1-(1-\text{level})/d`, with d the depth of the tree, so
    that all nodes of a path hold their probabilities at the level; the product then holds that of
    the class. The promise is that of the calibrators: of the probability given the scores, where
    the form of the map is right; not of what other models would know of the row.

    References
    ----------
    T. Leathart, E. Frank, B. Pfahringer and G. Holmes, "On the calibration of nested dichotomies
    for large multiclass tasks" (P4).

    Examples
    --------
    >>> from dubito.datasets import make_many_classes
    >>> from dubito.dichotomies import NestedDichotomyClassifier
    >>> X, y = make_many_classes(3000, n_classes=40, n_features=20, random_state=0)
    >>> model = NestedDichotomyClassifier(random_state=0).fit(X[:2000], y[:2000])
    >>> bounds = model.predict_bounds(X[2000:])
    >>> bounds.lower.shape
    (1000, 40)
    >>> model.predict_topk(X[2000:], 3).shape
    (1000, 3)
    >>> model.tree_.depth
    6
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "estimator": [HasMethods(["fit", "predict"]), None],
        "structure": [StrOptions(set(STRUCTURES)), DichotomyTree, tuple, list],
        "internal": "no_validation",
        "external": "no_validation",
        "internal_cv": [Interval(Integral, 2, None, closed="left")],
        "external_size": [StrOptions({"auto"}), Interval(Real, 0, 1, closed="neither")],
        "dtype": "no_validation",
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
    }

    def __init__(  # noqa: PLR0913
        self,
        estimator: Any = None,
        *,
        structure: Any = "auto",
        internal: Any = "auto",
        external: Any = "auto",
        internal_cv: int = 3,
        external_size: str | float = "auto",
        dtype: npt.DTypeLike | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.structure = structure
        self.internal = internal
        self.external = external
        self.internal_cv = internal_cv
        self.external_size = external_size
        self.dtype = dtype
        self.n_jobs = n_jobs
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Grow the tree, fit its nodes, and calibrate them.

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
        return self._fit_rows(self._read(self, X, y, sample_weight))

    def _read(self, owner: Any, X: Any, y: Any, sample_weight: Any) -> ClassRows:
        """Check the rows for this tree, or for the ensemble it belongs to."""
        self._calibrators()
        return read_class_rows(owner, X, y, sample_weight, dtype=self.dtype, **self._reading())

    def _calibrators(self) -> Calibrators:
        return read_calibrators(self.internal, self.external, self.estimator)

    def _fit_rows(self, rows: ClassRows) -> Self:
        """Fit on rows that have been checked."""
        calibrators = self._calibrators()
        check_node_model(self.estimator, calibrators.internal)
        self.classes_, self._features = rows.classes, rows.kind
        chance = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
        aside_rng, *final_rngs = np.random.default_rng(chance).spawn(3)
        aside = self._set_aside(calibrators, rows, aside_rng)
        self.tree_, self._model = self._grow(aside.inside(rows), calibrators, *final_rngs)
        self.external_: BaseCalibrator | None = None
        if aside.parts:
            self._calibrate(calibrators, rows, aside, aside_rng)
        elif calibrators.by_default:
            self._model = self._variants(self._model, calibrators)[-1]
        self.internal_ = self._model.maps
        return self

    def _calibrate(
        self, calibrators: Calibrators, rows: ClassRows, aside: Aside, rng: Generator
    ) -> None:
        """Fit the external calibrator, and choose between nodes calibrated and as they are."""
        parts: list[list[FloatArray]] = []
        for part in aside.parts:
            model = self._model
            if aside.refit:
                _, model = self._grow(rows.without(part), calibrators, *rng.spawn(2))
            X, n_classes = rows.X[part], len(rows.classes)
            variants = self._variants(model, calibrators)
            parts.append([over_rows(one.log_proba, X, n_classes, self.n_jobs) for one in variants])
        held, external = held_rows(rows, aside), calibrators.external
        scores = [np.concatenate(of_parts) for of_parts in zip(*parts, strict=True)]
        assert external is not None  # noqa: S101 - rows are set aside for it
        if calibrators.by_default:
            best, self.external_ = best_external(external, scores, held)
            self._model = self._variants(self._model, calibrators)[best]
        else:
            self.external_ = fit_external(external, scores[0], held, cut=True)

    def _variants(self, model: TreeModel, calibrators: Calibrators) -> list[TreeModel]:
        """Return the models that are chosen from: where nodes need not be calibrated, both."""
        needed = self.estimator is not None and not has_probabilities(self.estimator)
        if needed or not calibrators.by_default:
            return [model]
        return [model, model.without_maps()]

    def _set_aside(self, calibrators: Calibrators, rows: ClassRows, rng: Generator) -> Aside:
        """Return the rows that the external calibrator is fitted on."""
        if calibrators.external is None:
            return Aside([])
        if calibrators.by_default and is_auto(self.external_size):
            return plan_aside(rows, rng)
        size = 0.1 if is_auto(self.external_size) else float(self.external_size)
        aside = rows_aside(rows, size, rng)
        if aside.any():
            return Aside([aside])
        if calibrators.by_default:
            return Aside([])
        raise ValueError(
            f"no row can be set aside for external calibration: external_size={size} of "
            f"{len(aside)} rows, of which each of {len(self.classes_)} classes keeps one. Give "
            "more rows, a larger external_size, or external=None."
        )

    def _grow(
        self, data: ClassRows, calibrators: Calibrators, tree_rng: Generator, row_rng: Generator
    ) -> tuple[DichotomyTree, TreeModel]:
        """Return a tree over the classes, and its nodes fitted to the rows."""
        tree = make_tree(self.structure, data, self.estimator, tree_rng)
        model = fit_tree_model(
            tree,
            data,
            self.estimator,
            calibrators.internal,
            n_folds=self.internal_cv,
            n_jobs=self.n_jobs,
            rng=row_rng,
        )
        return tree, model

    def _scores(self, X: Any) -> FloatArray:
        """Return what the external calibrator is told of rows."""
        assert self.external_ is not None  # noqa: S101 - asked only where there is one
        cut = not self._calibrators().by_default
        return as_scores(self.external_, self._model.log_proba(X), cut=cut)

    def _proba(self, X: Any) -> FloatArray:
        if self.external_ is None:
            return self._model.proba(X)
        return self.external_.predict_proba(self._scores(X))

    def _log_proba(self, X: Any) -> FloatArray:
        if self.external_ is None:
            return self._model.log_proba(X)
        return self.external_.predict_log_proba(self._scores(X))

    def _top(self, k: int, X: Any) -> FloatArray:
        model = self._model
        if self.external_ is not None or not can_search(model, k):
            return super()._top(k, X)
        columns, best, done = search_top(model, X, k)
        found = np.stack([columns, np.exp(best)], axis=1)
        if not done.all():
            found[~done] = super()._top(k, X[~done])
        return found

    def predict_proba_at_depth(self, X: Any, depth: int) -> FloatArray:
        """Return probabilities of the groups of classes into which a cut parts the tree.

        The tree is cut off at a depth: at depth 1 the groups are the two sides of the root, and
        beyond the last leaf every class is one (P4, Figure 3).

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, p)
        depth : int
            Not negative.

        Returns
        -------
        ndarray of shape (n, groups)
            Rows sum to 1. Groups are numbered as in ``tree_.cut(depth)``, from left to right.
        """
        self._fitted_classes()
        group = np.empty(len(self.classes_), dtype=np.intp)
        group[self._model.order] = self.tree_.cut(depth)
        return self._over_rows(partial(self._group_proba, group), X)

    def _group_proba(self, group: IntArray, X: Any) -> FloatArray:
        return group_sums(self._proba(X), group)

    def _require_bounds(self) -> None:
        internal, external, _ = self._calibrators()
        if external is not None or (internal is not None and is_evidential(internal)):
            return
        raise AttributeError(
            f"internal={self.internal!r} gives no bounds; use an evidential calibrator, as in "
            "internal=EvidentialLogisticCalibrator(), or an external one."
        )

    def _both_bounds(self, level: float | None, X: Any) -> FloatArray:
        if self.external_ is not None:
            bounds = self.external_.predict_bounds(self._scores(X), level=level)
            return np.stack([*bounds], axis=1)
        if self._calibrators().by_default:
            return know_nothing(X.shape[0], len(self.classes_))
        return self._model.bounds(X, level)

    @offered_if(require_bounds)
    def predict_set(
        self, X: Any, rule: SetRule = None, *, level: float | None = None, **options: Any
    ) -> BoolArray:
        """Return the classes that remain possible.

        The set promises no coverage: how often it holds the label is not controlled.
        `dubito.conformal.ConformalClassifier` makes sets for which it is.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, p)
        rule : str or callable, default "interval_dominance"
            A rule of `dubito.decision` by name ("interval_dominance", "maximality",
            "e_admissibility", "weak_dominance", "set_utility") or a function of the bounds.
            "maximality" is decided in the tree, which says more than the bounds of classes do: the
            classes that no other is more probable than whatever the nodes are within their bounds;
            exact, in time linear in the number of classes, and no larger than the default sets. Two
            classes are compared below the node that parts them: how probable they both are on the
            way to it does not matter, even where it may be nothing.
        level : float, optional
            The confidence level of the bounds, as in `predict_bounds`. It is not that of the set.
        **options
            Passed on to a rule on bounds, as in ``loss=L``; with any, or with an external
            calibrator as by default, "maximality" goes by the bounds of classes.

        Returns
        -------
        ndarray of bool, shape (n, K)
            Never an empty row; columns as in ``classes_``.
        """
        named = isinstance(rule, str) and rule == "maximality"
        in_tree = named and self._calibrators().external is None
        if in_tree and not options:
            return self._over_rows(partial(self._maximal, check_level(level)), X)
        return choose_set(self.predict_bounds(X, level=level), rule, **options)

    def _maximal(self, level: float | None, X: Any) -> BoolArray:
        return self._model.maximal(X, level)

    def _reading(self) -> dict[str, Any]:
        allow_nan = self.estimator is not None and get_tags(self.estimator).input_tags.allow_nan
        return {"ensure_all_finite": "allow-nan" if allow_nan else True}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if self.estimator is not None:
            tags.input_tags = get_tags(self.estimator).input_tags
        else:
            tags.input_tags.sparse = True
        return tags
