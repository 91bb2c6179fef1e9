"""The best few of many classes."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np

from dubito.dichotomies._linear_nodes import DenseLinearNodes

if TYPE_CHECKING:
    from dubito._typing import BoolArray, FloatArray, IntArray
    from dubito.dichotomies._tree_model import TreeModel

#: Part of the nodes that a search may open: beyond it all of them cost less at once.
_PART = 8


def top_columns(values: FloatArray, k: int) -> tuple[IntArray, FloatArray]:
    """Return the columns of the k greatest values of each row and these, the greatest first.

    Of equal values the earlier column comes first.
    """
    from dubito.dichotomies._kernels.top_classes_compiled import top_of_rows  # noqa: PLC0415 - slow to import

    best, columns = np.empty((len(values), k)), np.empty((len(values), k), dtype=np.int64)
    top_of_rows(np.ascontiguousarray(values), best, columns)
    return columns, best


def can_search(model: TreeModel, k: int) -> bool:
    """Say whether the best classes can be found without scoring every node."""
    linear = isinstance(model.nodes, DenseLinearNodes) and model.maps.affine is not None
    return linear and len(model.order) // _PART > 4 * k


def search_top(model: TreeModel, X: FloatArray, k: int) -> tuple[IntArray, FloatArray, BoolArray]:
    """Return the k best columns of each row, their log-probabilities, and which rows are done.

    Rows whose probability is spread over many classes are not: all their nodes cost less at once.
    """
    from dubito.dichotomies._kernels.top_classes_compiled import best_first_of_rows  # noqa: PLC0415

    nodes = cast("DenseLinearNodes", model.nodes)
    affine = cast("tuple[FloatArray, FloatArray]", model.maps.affine)
    shape = nodes.intercept.shape
    best, columns = np.zeros((len(X), k)), np.zeros((len(X), k), dtype=np.int64)
    budget = len(model.order) // _PART
    done = best_first_of_rows(
        np.ascontiguousarray(X - nodes.shift, dtype=nodes.coef.dtype),
        (nodes.coef, nodes.intercept, *(np.broadcast_to(a, shape).copy() for a in affine)),
        (model.left, model.right, model.order),
        budget,
        best,
        columns,
    )
    return columns, best, done
