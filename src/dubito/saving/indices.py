"""Validity of indices that compiled code does not check.

scipy and scikit-learn follow the node numbers of trees, the indices of sparse matrices, the counts
of support vector machines, the codes of one-hot encoders and the position of a random state without
checking them, because they computed them. In a file they may be forged, and could crash the process
or read its memory, so they are validated here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from dubito.saving.trust import TREE, TREE_PREDICTOR, full_name

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dubito._typing import AnyArray, BoolArray

#: Length of the state of a Mersenne twister.
_TWISTER = 624


def has_valid_indices(part: Any) -> bool:
    """Return whether all indices in an object are valid; True for objects without any."""
    from sklearn.preprocessing import OneHotEncoder  # noqa: PLC0415 - slow to import
    from sklearn.svm import SVC, NuSVC  # noqa: PLC0415

    if sparse.issparse(part):
        return _is_valid_matrix(part)
    if isinstance(part, np.random.RandomState):
        return 0 <= part.get_state(legacy=False)["state"]["pos"] <= _TWISTER
    if isinstance(part, SVC | NuSVC) and "support_vectors_" in vars(part):
        return _is_valid_support_vector_machine(part)
    if isinstance(part, OneHotEncoder) and "_n_features_outs" in vars(part):
        return _is_valid_encoder(part)
    return True


def _is_valid_matrix(matrix: Any) -> bool:
    try:
        matrix.check_format(full_check=True)
    except ValueError:
        return False
    return True


def _is_valid_support_vector_machine(machine: Any) -> bool:
    vectors, counts = machine.support_vectors_, np.asarray(machine._n_support)
    k, n = len(machine.classes_), vectors.shape[0]
    pairs = k * (k - 1) // 2
    coefficients = (machine.dual_coef_, machine._dual_coef_)
    is_sparse = sparse.issparse(vectors)
    return bool(
        k > 1
        and machine.kernel in ("linear", "poly", "rbf", "sigmoid")
        and machine._sparse is is_sparse
        and vectors.shape == (n, machine.n_features_in_)
        and counts.shape == (k,)
        and (counts >= 0).all()
        and counts.sum() == n
        and np.shape(machine.support_) == (n,)
        and all(array.shape == (k - 1, n) for array in coefficients)
        and all(sparse.issparse(array) is is_sparse for array in coefficients)
        and (not is_sparse or all(array.nnz == (k - 1) * n for array in coefficients))
        and np.shape(machine.intercept_) == np.shape(machine._intercept_) == (pairs,)
        and np.shape(machine._probA) == np.shape(machine._probB)
        and np.shape(machine._probA) in ((0,), (pairs,))
    )


def _is_valid_encoder(encoder: Any) -> bool:
    """Return whether each category of a column is encoded as one of the column's features."""
    widths = encoder._n_features_outs
    dropped = encoder._drop_idx_after_grouping
    grouped = getattr(encoder, "_infrequent_enabled", False)
    if not len(widths) == len(encoder.categories_) == encoder.n_features_in_:
        return False
    if dropped is not None and np.shape(dropped) != np.shape(widths):
        return False
    for column, categories in enumerate(encoder.categories_):
        codes = np.arange(len(categories))
        if grouped and (mapping := encoder._default_to_infrequent_mappings[column]) is not None:
            codes = np.asarray(mapping)
            rare = np.asarray(encoder._infrequent_indices[column])
            if codes.shape != (len(categories),) or not ((rare >= 0) & (rare < len(codes))).all():
                return False
        if dropped is not None and dropped[column] is not None:
            codes = codes[codes != dropped[column]]
            codes = codes - (codes > dropped[column])
        if not ((codes >= 0) & (codes < widths[column])).all():
            return False
    return True


def trees_are_valid(parts: Iterable[Any], n_trees: int) -> bool:
    """Return whether all trees among the parts of a model are valid.

    `n_trees` is how many the file names. All must be found in tree classifiers, which check the
    number of columns of X; a tree hidden elsewhere is missing in the count.
    """
    from sklearn.ensemble import (  # noqa: PLC0415 - slow to import
        AdaBoostClassifier,
        BaggingClassifier,
        BaseEnsemble,
        ExtraTreesClassifier,
        HistGradientBoostingClassifier,
        RandomForestClassifier,
    )
    from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier  # noqa: PLC0415

    forests = (RandomForestClassifier, ExtraTreesClassifier)
    single = (DecisionTreeClassifier, ExtraTreeClassifier)
    found: set[int] = set()
    for part in parts:
        if isinstance(part, single):
            trees = _trees_of_one(part)
        elif isinstance(part, HistGradientBoostingClassifier):
            trees = _trees_of_boosting(part)
        elif isinstance(part, forests):
            trees = [] if _trees_take_same_columns(part, single) else None
        else:
            # Other ensembles use their trees in ways that were not reviewed.
            known = isinstance(part, AdaBoostClassifier | BaggingClassifier)
            trees = None if isinstance(part, BaseEnsemble) and not known else []
        if trees is None:
            return False
        found.update(map(id, trees))
    return len(found) == n_trees


def _trees_of_one(owner: Any) -> list[Any] | None:
    """Return the tree of a decision tree classifier, or None if it is not valid."""
    tree = vars(owner).get("tree_")
    if tree is None:  # not fitted
        return []
    n_features = _n_columns(owner)
    if full_name(type(tree)) != TREE or tree.n_features != n_features or tree.node_count < 1:
        return None
    left, right = tree.children_left, tree.children_right
    return [tree] if _leads_to_leaves(left, right, tree.feature, left == -1, n_features) else None


def _trees_of_boosting(owner: Any) -> list[Any] | None:
    """Return the trees of gradient boosting, or None if one is not valid."""
    state = vars(owner)
    if "_predictors" not in state:  # not fitted
        return []
    if state.get("_in_fit") or state.get("_preprocessor") is not None:
        return None  # rows would reach the trees unchecked, or encoded by an unreviewed transformer
    n_features = _n_columns(owner)
    trees = [tree for iteration in state["_predictors"] for tree in iteration]
    for tree in trees:
        if full_name(type(tree)) != TREE_PREDICTOR or not len(nodes := tree.nodes):
            return None
        leaf = nodes["is_leaf"] != 0
        columns = nodes["left"].astype(np.int64), nodes["right"].astype(np.int64)
        if (nodes["is_categorical"] != 0).any() or not _leads_to_leaves(
            *columns, nodes["feature_idx"].astype(np.int64), leaf, n_features
        ):
            return None
    return trees


def _trees_take_same_columns(forest: Any, single: tuple[type, ...]) -> bool:
    """Return whether all trees of a forest take as many columns as the forest checks X for."""
    trees = vars(forest).get("estimators_", [])
    n_features = _n_columns(forest) if trees else -1
    return isinstance(trees, list) and all(
        type(tree) in single and _n_columns(tree) == n_features for tree in trees
    )


def _leads_to_leaves(
    left: AnyArray,
    right: AnyArray,
    feature: AnyArray,
    leaf: BoolArray,
    n_features: int,
) -> bool:
    """Return whether each inner node splits by an existing column and has later nodes as children.

    Nodes are numbered from the root down, so following larger and larger numbers ends in a leaf.
    """
    inner = np.flatnonzero(~leaf)
    ends = np.column_stack([left[inner], right[inner]])
    columns = feature[inner]
    return bool(
        (ends > inner[:, None]).all()
        and (ends < len(leaf)).all()
        and ((columns >= 0) & (columns < n_features)).all()
    )


def _n_columns(owner: Any) -> int:
    """Return the number of columns that a classifier checks X for, or -1 if it would not check."""
    state = vars(owner)
    shadowed = any(callable(getattr(type(owner), name, None)) for name in state)
    n = state.get("n_features_in_")
    return -1 if shadowed or type(n) is not int else n
