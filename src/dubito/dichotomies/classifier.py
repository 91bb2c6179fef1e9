"""Nested dichotomies: a tree of binary models for thousands of classes (Leathart et al. 2019)."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.metaestimators import available_if

from dubito._compat import HasMethods, Interval, StrOptions, fit_context
from dubito._validation import check_level
from dubito.dichotomies._calibrators import (
    Calibrators,
    as_calibrators,
    best_external,
    fit_external,
    held_out_rows,
    is_auto,
)
from dubito.dichotomies._kernels.holdout import Holdout, hold_out
from dubito.dichotomies._kernels.tree_paths import group_sums
from dubito.dichotomies._many_classes import ManyClassesMixin, require_bounds, vacuous_bounds
from dubito.dichotomies._node_models import check_node_model, has_probabilities
from dubito.dichotomies._parallel import in_row_chunks
from dubito.dichotomies._structures import STRUCTURES, make_tree
from dubito.dichotomies._training_rows import ClassRows, read_class_rows
from dubito.dichotomies._tree_model import TreeModel, fit_tree_model
from dubito.dichotomies.tree import DichotomyTree

if TYPE_CHECKING:
    import numpy.typing as npt
    from numpy.random import Generator

    from dubito._typing import BoolArray, FloatArray, IntArray
    from dubito.calibration.base import BaseCalibrator
    from dubito.decision.rules import SetRule


class NestedDichotomyClassifier(ManyClassesMixin, ClassifierMixin, BaseEstimator):
    r"""A binary tree over the classes, with a binary model at each node.

    The probability of a class is the product of the node probabilities on its path,

    .. math:: p(c\mid x)=\prod_{t\in\text{path}(c)}\sigma(\pm z_t(x)),

    with :math:`z_t` the log-odds of the right side of node t (Leathart et al. 2019, eq. 3), so that
    the log loss of a row is the sum of those of its nodes (their Proposition 1). A fit takes about
    as many passes over the rows as the tree is deep, where one-vs-rest takes as many as there are
    classes.

    Parameters
    ----------
    estimator : classifier, default=None
        The model of a node. None is logistic regression by solvers made for many small problems,
        and so is a ``LogisticRegression`` with an L2 penalty: both reach scikit-learn's optimum.
        The nodes of ``GaussianNB`` and ``MultinomialNB`` are computed from sums over classes. Of
        any other classifier each node gets a clone.
    structure : str, DichotomyTree or nested tuples, default="auto"
        How the classes are split. "clustered": halves of classes close to each other, by 2-means
        on class means; "clustered_half": the same in a random half of the features;
        "centroid_pair": to the nearer of the means of two random classes; "random_pair": by a
        model of two random classes; "random": all splits are equally likely, as in Leathart et al.
        2019; "class_balanced" and "data_balanced": random halves of the classes, or of the rows.
        "auto" is "clustered" for a single tree; in an ensemble "centroid_pair" up to 200 classes
        and "clustered_half" beyond. Or a tree of labels, for example a taxonomy: its leaves without
        rows are omitted.
    internal : "auto", None, calibrator or its name, default="auto"
        Calibration of each node, fitted to out-of-fold log-odds; names are those of
        `CalibratedClassifier`, as "platt". An evidential calibrator gives bounds. "auto": Platt's
        sigmoids, if they lower the log loss of held-out rows.
    external : "auto", None, calibrator or its name, default="auto"
        Calibration of the whole tree, fitted to log-probabilities of held-out rows, as "vector".
        "auto": one slope, ``EvidentialMultinomialCalibrator``, which gives the bounds. If only one
        of `internal` and `external` is given, the other is None: None, "platt", "isotonic" and
        "vector" are the schemes of Leathart et al. 2019, tables 4 and 5.
    cv : int, default=3
        Number of folds of internal calibration.
    holdout_size : "auto" or float, default="auto"
        Fraction of the rows held out for external calibration; the tree is fitted without them.
        "auto" is a tenth for a calibrator that is named. For the default it is all rows in five
        folds below 1,000 rows, otherwise a tenth, at most 1,000 rows; up to 20,000 rows the tree
        is then fitted again to all of them.
    dtype : dtype, default=None
        float32 or float64 for node models; None is that of the rows. float32 halves the memory and
        is faster; log-odds of nodes are then correct to about three digits.
    n_jobs : int, default=None
        Number of joblib jobs for fits and predictions: threads, unless ``joblib.parallel_config``
        sets another backend. It does not change results.
    random_state : int, RandomState or None, default=None
        Seed of the tree, folds, held-out rows, and estimators.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        Labels, in the order of the columns.
    tree_ : DichotomyTree
        The tree.
    internal_ : object
        Calibration maps of the nodes.
    external_ : calibrator or None
        The fitted external calibrator. None also if "auto" finds fewer than 20 rows to hold out,
        for example if every class has a single row; all bounds are then 0 and 1.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of features, if X has them.

    See Also
    --------
    NestedDichotomyEnsemble : the mean of several trees.

    Notes
    -----
    Folds of internal calibration take every `cv`-th row in the order of the leaves, so
    that they have both sides of every node in proportion. A node with a single row on a side is not
    calibrated, and its bounds are 0 and 1. Leathart et al. 2019 use three folds as well.

    Rows are held out in proportion to the classes, never the last row of one. Classes without a
    held-out row are shrunk towards the others by `VectorCalibrator`; plain vector scaling would
    give them probability 0.

    The default bounds are those of the external slope, which some hundred rows determine well:
    they are narrow enough for decisions. With an evidential `internal` only, the bounds of a class
    are products of the bounds of its nodes. They are exact, because nodes vary independently and a
    path has each node once; with many classes and few rows each they leave most rows undecided. At
    a confidence level each node has bounds at :math:`1-(1-\text{level})/d`, with d the depth of the
    tree, so that all bounds on a path hold together at the level, and with them their product. The
    level refers to the probability given the scores, if the form of the calibration map is right.

    References
    ----------
    T. Leathart, E. Frank, B. Pfahringer and G. Holmes (2019). On the calibration of nested
    dichotomies for large multiclass tasks.

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
        "cv": [Interval(Integral, 2, None, closed="left")],
        "holdout_size": [StrOptions({"auto"}), Interval(Real, 0, 1, closed="neither")],
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
        cv: int = 3,
        holdout_size: str | float = "auto",
        dtype: npt.DTypeLike | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.structure = structure
        self.internal = internal
        self.external = external
        self.cv = cv
        self.holdout_size = holdout_size
        self.dtype = dtype
        self.n_jobs = n_jobs
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Build the tree, fit its nodes, and calibrate them.

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
        self._calibrators()  # raises for bad calibrators, before rows are read
        finite = self._ensure_all_finite()
        return self._fit_rows(
            read_class_rows(self, X, y, sample_weight, dtype=self.dtype, ensure_all_finite=finite)
        )

    def _calibrators(self) -> Calibrators:
        return as_calibrators(self.internal, self.external, self.estimator)

    def _fit_rows(self, rows: ClassRows) -> Self:
        """Fit to checked rows; `fit` and `NestedDichotomyEnsemble` call it."""
        calibrators = self._calibrators()
        check_node_model(self.estimator, calibrators.internal)
        self._both_auto, self._gives_bounds = calibrators.both_auto, calibrators.give_bounds
        self._floored = not calibrators.both_auto
        self.classes_, self._row_format = rows.classes, rows.row_format
        seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
        holdout_rng, *final_rngs = np.random.default_rng(seed).spawn(3)
        holdout = self._hold_out(calibrators, rows, holdout_rng)
        final = replace(rows, weight=holdout.final_weight(rows.weight))
        self.tree_, self._tree_model = self._grow_and_fit(final, calibrators, *final_rngs)
        self.external_: BaseCalibrator | None = None
        if holdout.parts:
            self._calibrate(calibrators, rows, holdout, holdout_rng)
        elif calibrators.both_auto:
            self._tree_model = self._candidates(self._tree_model, calibrators)[-1]
        self.internal_ = self._tree_model.maps
        return self

    def _calibrate(
        self, calibrators: Calibrators, rows: ClassRows, holdout: Holdout, rng: Generator
    ) -> None:
        """Fit the external calibrator, and choose between calibrated and uncalibrated nodes.

        With ``holdout.refit`` tree and nodes are fitted once more without each part of the held-out
        rows: by default five more fits below 1,000 rows, one up to 20,000.
        """
        log_probas: list[list[FloatArray]] = []  # of each part of the held-out rows, and candidate
        for part in holdout.parts:
            model = self._tree_model
            if holdout.refit:
                _, model = self._grow_and_fit(rows.without(part), calibrators, *rng.spawn(2))
            log_probas.append(
                [
                    in_row_chunks(one.log_proba, rows.X[part], len(rows.classes), self.n_jobs)
                    for one in self._candidates(model, calibrators)
                ]
            )
        held_out, external = held_out_rows(rows, holdout), calibrators.external
        scores = [np.concatenate(of_parts) for of_parts in zip(*log_probas, strict=True)]
        assert external is not None  # noqa: S101 - rows are held out only for it
        if calibrators.both_auto:
            best, self.external_ = best_external(external, scores, held_out)
            self._tree_model = self._candidates(self._tree_model, calibrators)[best]
        else:
            self.external_ = fit_external(external, scores[0], held_out, floored=self._floored)

    def _candidates(self, model: TreeModel, calibrators: Calibrators) -> list[TreeModel]:
        """Return the models to choose from, with calibrated and if possible uncalibrated nodes."""
        needed = self.estimator is not None and not has_probabilities(self.estimator)
        if needed or not calibrators.both_auto:
            return [model]
        return [model, model.without_maps()]

    def _hold_out(self, calibrators: Calibrators, rows: ClassRows, rng: Generator) -> Holdout:
        """Return the rows that the external calibrator is fitted to."""
        if calibrators.external is None:
            return Holdout([])
        size = self.holdout_size
        if is_auto(size) and not calibrators.both_auto:
            size = 0.1
        holdout = hold_out(rows.codes, rows.weight, size, rng)
        if holdout.parts or calibrators.both_auto:
            return holdout
        raise ValueError(
            f"no row can be set aside for external calibration: holdout_size={size} of "
            f"{len(rows.codes)} rows, of which each of {len(self.classes_)} classes keeps one. "
            "Give more rows, a larger holdout_size, or external=None."
        )

    def _grow_and_fit(
        self, rows: ClassRows, calibrators: Calibrators, tree_rng: Generator, row_rng: Generator
    ) -> tuple[DichotomyTree, TreeModel]:
        """Return a tree over the classes, and its model fitted to the rows."""
        tree = make_tree(self.structure, rows, self.estimator, tree_rng)
        model = fit_tree_model(
            tree,
            rows,
            self.estimator,
            calibrators.internal,
            n_folds=self.cv,
            n_jobs=self.n_jobs,
            rng=row_rng,
        )
        return tree, model

    def _proba_before_external(self, X: Any) -> FloatArray:
        return self._tree_model.proba(X)

    def _log_proba_before_external(self, X: Any) -> FloatArray:
        return self._tree_model.log_proba(X)

    def _bounds_without_external(self, X: Any, level: float | None) -> FloatArray:
        if self._both_auto:
            return vacuous_bounds(X.shape[0], len(self.classes_))
        return self._tree_model.bounds(X, level)

    def _top(self, X: Any, k: int) -> FloatArray:
        search = self._tree_model.search_top(X, k) if self.external_ is None else None
        if search is None:
            return super()._top(X, k)
        columns, best, done = search
        found = np.stack([columns, np.exp(best)], axis=1)
        if not done.all():
            found[~done] = super()._top(X[~done], k)
        return found

    def predict_proba_at_depth(self, X: Any, depth: int) -> FloatArray:
        """Return probabilities of groups of classes, with the tree cut off at a depth.

        At depth 1 the groups are the two sides of the root, at the full depth every class is a
        group (Leathart et al. 2019, Figure 3).

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
        group[self._tree_model.order] = self.tree_.cut(depth)
        return self._in_chunks(partial(self._group_proba, group=group), X)

    def _group_proba(self, X: Any, group: IntArray) -> FloatArray:
        return group_sums(self._proba(X), group)

    def _require_bounds(self) -> None:
        fitted = hasattr(self, "_gives_bounds")
        if not (self._gives_bounds if fitted else self._calibrators().give_bounds):
            raise AttributeError(
                f"internal={self.internal!r} gives no bounds; use an evidential calibrator, as in "
                "internal=EvidentialLogisticCalibrator(), or an external one."
            )

    @available_if(require_bounds)
    def predict_set(
        self, X: Any, rule: SetRule = None, *, level: float | None = None, **options: Any
    ) -> BoolArray:
        """Return the classes that remain possible, by a rule on the bounds.

        The sets have no guaranteed coverage; those of `dubito.conformal.ConformalClassifier` have.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, p)
        rule : str or callable, default "interval_dominance"
            A rule of `dubito.decision` by name ("interval_dominance", "maximality",
            "e_admissibility", "weak_dominance", "set_utility") or a function of the bounds.
            "maximality" uses the bounds of the nodes, which say more than those of the classes: it
            keeps the classes that no other exceeds for all node probabilities within their bounds;
            exactly, in time linear in the number of classes. Its sets are subsets of the default
            ones. Two classes are compared below the node that splits them, whatever the
            probability of reaching it, even 0.
        level : float, optional
            The confidence level of the bounds, as in `predict_bounds`. It is not that of the set.
        **options
            Passed on to the rule, as in ``loss=L``; with any option, or with an external
            calibrator as by default, "maximality" uses the bounds of the classes.

        Returns
        -------
        ndarray of bool, shape (n, K)
            No row is empty; columns as in ``classes_``.
        """
        by_nodes = isinstance(rule, str) and rule == "maximality" and not options
        if by_nodes:
            self._fitted_classes()
            if self.external_ is None and not self._both_auto:
                return self._in_chunks(
                    partial(self._tree_model.maximal, level=check_level(level)), X
                )
        return super().predict_set(X, rule, level=level, **options)

    def _ensure_all_finite(self) -> bool | str:
        """Return which rows `fit` accepts, as in scikit-learn's `validate_data`."""
        allow_nan = self.estimator is not None and get_tags(self.estimator).input_tags.allow_nan
        return "allow-nan" if allow_nan else True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if self.estimator is not None:
            tags.input_tags = get_tags(self.estimator).input_tags
        else:
            tags.input_tags.sparse = True
        return tags
