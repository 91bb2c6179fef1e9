"""Decision trees from a file: their tables must be in order before anybody predicts with them.

scikit-learn follows the node numbers of a tree without looking whether they exist, for it made them
itself. Those of a file are looked at here: forged ones could crash the process or read its memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Iterable

_TREE = "sklearn.tree._tree.Tree"
_PREDICTOR = "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor"

#: Types that are loaded without the user's word if `trees_are_in_order`, and their loaders.
CHECKED = {_TREE: frozenset({"TreeNode"}), _PREDICTOR: frozenset({"ObjectNode"})}


def trees_are_in_order(parts: Iterable[Any], n_trees: int) -> bool:
    """Say whether all trees among the parts of a model can be followed safely.

    `n_trees` is how many the file named. All must be found where trees belong, in classifiers that
    check the columns they are given; one hidden elsewhere is missing in the count.
    """
    from sklearn.ensemble import (  # noqa: PLC0415 - here for those who have a model already
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
            trees = [] if _members_agree(part, single) else None
        else:
            # Other ensembles look into their trees by roads of their own.
            known = isinstance(part, AdaBoostClassifier | BaggingClassifier)
            trees = None if isinstance(part, BaseEnsemble) and not known else []
        if trees is None:
            return False
        found.update(map(id, trees))
    return len(found) == n_trees


def _trees_of_one(owner: Any) -> list[Any] | None:
    """Return the tree of a decision tree, or None if it is not in order."""
    tree = vars(owner).get("tree_")
    if tree is None:  # not fitted
        return []
    n_features = _n_columns(owner)
    if _full_name(tree) != _TREE or tree.n_features != n_features or tree.node_count < 1:
        return None
    left, right = tree.children_left, tree.children_right
    return [tree] if _leads_down(left, right, tree.feature, left == -1, n_features) else None


def _trees_of_boosting(owner: Any) -> list[Any] | None:
    """Return the trees of gradient boosting, or None if one is not in order."""
    state = vars(owner)
    if "_predictors" not in state:  # not fitted
        return []
    if state.get("_in_fit") or state.get("_preprocessor") is not None:
        return None  # rows would reach the trees unchecked, or through columns of categories
    n_features = _n_columns(owner)
    trees = [tree for iteration in state["_predictors"] for tree in iteration]
    for tree in trees:
        if _full_name(tree) != _PREDICTOR or not len(nodes := tree.nodes):
            return None
        leaf = nodes["is_leaf"] != 0
        columns = nodes["left"].astype(np.int64), nodes["right"].astype(np.int64)
        if (nodes["is_categorical"] != 0).any() or not _leads_down(
            *columns, nodes["feature_idx"].astype(np.int64), leaf, n_features
        ):
            return None
    return trees


def _members_agree(forest: Any, single: tuple[type, ...]) -> bool:
    """Say whether all trees of a forest take the columns that the forest checks for them."""
    members = vars(forest).get("estimators_", [])
    n_features = _n_columns(forest) if members else -1
    return isinstance(members, list) and all(
        type(member) in single and _n_columns(member) == n_features for member in members
    )


def _leads_down(
    left: npt.NDArray[Any],
    right: npt.NDArray[Any],
    feature: npt.NDArray[Any],
    leaf: npt.NDArray[np.bool_],
    n_features: int,
) -> bool:
    """Say whether each inner node asks for a column there is and leads to later nodes.

    Trees are numbered from the root down, so a path that only rises ends in a leaf.
    """
    inner = np.flatnonzero(~leaf)
    ends = np.column_stack([left[inner], right[inner]])
    asked = feature[inner]
    return bool(
        (ends > inner[:, None]).all()
        and (ends < len(leaf)).all()
        and ((asked >= 0) & (asked < n_features)).all()
    )


def _n_columns(owner: Any) -> int:
    """Return how many columns a classifier checks its rows for, or -1 if it would not."""
    state = vars(owner)
    shadowed = any(callable(getattr(type(owner), name, None)) for name in state)
    n = state.get("n_features_in_")
    return -1 if shadowed or type(n) is not int else n


def _full_name(thing: Any) -> str:
    return f"{type(thing).__module__}.{type(thing).__qualname__}"
