"""Binary trees over points by balanced 2-means, applied recursively."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from dubito._typing import IntArray

#: Balanced 2-means converges in about ten rounds, unless ties or rounding prevent it.
_MAX_ROUNDS = 50


def balanced_tree(
    points: Any, rng: np.random.Generator, *, n_starts: int = 1
) -> tuple[IntArray, IntArray]:
    r"""Return the tree that halves the points of each node by balanced 2-means.

    A node starts from two of its points drawn at random. In each round its points are sorted by
    :math:`x^\top(m_1-m_2)`; :math:`m_1` becomes the mean of the upper half (sizes differ by at most
    one), :math:`m_2` that of the others, until nothing changes. Ties are broken at random.

    Parameters
    ----------
    points : ndarray or CSR of shape (K, p)
        The points, at least one.
    rng : Generator
        Draws the starts, and the order among equal points.
    n_starts : int, default=1
        Starts at each node, of which the one with the least squared distances to means is kept.

    Returns
    -------
    order : ndarray of int, shape (K,)
        The points as leaves from left to right.
    left_sizes : ndarray of int, shape (K-1,)
        The number of leaves on the left of each node, nodes in preorder.
    """
    from dubito.dichotomies._kernels.balanced_means_compiled import grow_balanced  # noqa: PLC0415 - loads numba

    n, width = points.shape
    order = rng.permutation(n).astype(np.int64)
    draws = rng.random((max(n - 1, 0), n_starts, 2))
    sizes = grow_balanced(_as_rows(points), np.zeros(width), order, draws, _MAX_ROUNDS)
    return order.astype(np.intp, copy=False), sizes.astype(np.intp, copy=False)


def _as_rows(points: Any) -> tuple[npt.NDArray[Any], ...]:
    """Return data, column indices and row starts as in CSR; dense points have no column indices."""
    if hasattr(points, "indptr"):
        data = points.data.astype(np.float64, copy=False)
        # Unsigned: numba tests the sign of signed indices at every entry.
        return data, points.indices.astype(np.uint32), points.indptr.astype(np.int64)
    data = np.ascontiguousarray(points, dtype=np.float64).ravel()
    starts = np.arange(len(points) + 1, dtype=np.int64) * points.shape[1]
    return data, np.empty(0, np.uint32), starts
