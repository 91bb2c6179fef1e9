"""Logistic regression at every node, by solvers made for many small problems."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression

from dubito._numerics.row_subsets import row_chunks
from dubito.dichotomies._parallel import count_tasks, plan_tasks, run_tasks

if TYPE_CHECKING:
    from dubito._typing import FloatArray, IntArray
    from dubito.dichotomies._kernels.leaf_order import LeafRows, Spans
    from dubito.dichotomies.tree import DichotomyTree

#: Parameters of `LogisticRegression` that may have any value here: the optimum does not depend on
#: them, or they are passed on to the solvers.
_ANY_VALUE = {
    "C", "fit_intercept", "solver", "tol", "max_iter", "n_jobs", "random_state", "verbose",
    "warm_start",
}  # fmt: skip
#: Newton decrement at which a step is the last: the error after it is about the decrement's square.
_TOLERANCE = {np.dtype(np.float64): 1e-5, np.dtype(np.float32): 1e-2}
#: Largest number of entries of dense rows, or of coefficients, that are copied at a time.
_CHUNK_ENTRIES = 2**18
#: Number of rows in a product with dense coefficients. The last block is filled up with zeros:
#: rounding depends on the shape of a product, and must not depend on the batch that a row is in.
_BLOCK_ROWS = 32


@dataclass(frozen=True)
class DenseLinearNodes:
    """Linear nodes with dense coefficients: log-odds are ``(x - shift) @ coef.T + intercept``."""

    coef: FloatArray
    intercept: FloatArray
    shift: FloatArray

    def scores(self, X: FloatArray) -> FloatArray:
        """Return the log-odds of the right side of every node, (n, nodes)."""
        out = np.empty((len(X), len(self.intercept)))
        block = np.zeros((_BLOCK_ROWS, len(self.shift)))
        for nodes in row_chunks(len(self.coef), len(self.shift), _CHUNK_ENTRIES):
            # float32 too: single-precision products round by the position in the block.
            coef = self.coef[nodes].astype(np.float64, copy=False).T
            for rows in row_chunks(len(X), 1, _BLOCK_ROWS):
                n = rows.stop - rows.start
                block[:n] = X[rows] - self.shift
                block[n:] = 0.0
                out[rows, nodes] = (block @ coef)[:n]
        out += self.intercept
        return out


@dataclass(frozen=True)
class SparseLinearNodes:
    """Linear nodes with sparse coefficients, of the features present at each: CSR, (p, nodes)."""

    coef: sp.csr_array
    intercept: FloatArray

    def scores(self, X: Any) -> FloatArray:
        """Return the log-odds of the right side of every node, (n, nodes)."""
        from dubito.dichotomies._kernels.sparse_scores_compiled import sparse_scores  # noqa: PLC0415 - loads numba

        out = np.empty((X.shape[0], len(self.intercept)))
        coef = self.coef
        sparse_scores(
            X.indptr, X.indices, X.data, coef.indptr, coef.indices, coef.data, self.intercept, out
        )
        return out


@dataclass(frozen=True)
class LogisticSettings:
    """Parameters of the logistic regressions of all nodes."""

    C: float = 1.0
    fit_intercept: bool = True


def plain_logistic(estimator: Any) -> LogisticSettings | None:
    """Return the parameters of a logistic regression that can be fitted here, else None.

    It must have an L2 penalty on all coefficients except the intercept: every such solver of
    scikit-learn has the same optimum.
    """
    if estimator is None:
        return LogisticSettings()
    if type(estimator) is not LogisticRegression:
        return None
    given, default = estimator.get_params(), LogisticRegression().get_params()
    if given.get("penalty") == "l2":
        given["penalty"] = default.get("penalty")
    plain = all(given[name] == default[name] for name in given if name not in _ANY_VALUE)
    penalises_intercept = given["solver"] == "liblinear" and given["fit_intercept"]
    if not plain or penalises_intercept or not 0 < given["C"] < np.inf:
        return None
    return LogisticSettings(float(given["C"]), bool(given["fit_intercept"]))


@dataclass(frozen=True)
class _StandardisedRows:
    """Dense rows in leaf order, standardised, with a column of ones for the intercept."""

    X: FloatArray
    shift: FloatArray
    scale: FloatArray
    penalty: FloatArray


def fit_logistic_nodes(
    rows: LeafRows,
    tree: DichotomyTree,
    settings: LogisticSettings,
    *,
    n_folds: int,
    n_jobs: int | None,
) -> tuple[DenseLinearNodes | SparseLinearNodes, FloatArray]:
    """Return the fitted nodes, and out-of-fold log-odds of their rows, packed node by node.

    With `n_folds` 0 there are no such log-odds.
    """
    spans = rows.spans(tree)
    fit = _fit_sparse_nodes if sp.issparse(rows.source) else _fit_dense_nodes
    model, out_of_fold = fit(rows, spans, settings, n_folds, n_jobs)
    _check_finite(model.intercept, out_of_fold, spans)
    return model, out_of_fold


def _check_finite(intercept: FloatArray, out_of_fold: FloatArray, spans: Spans) -> None:
    """Raise if a fit failed: out-of-fold scores may be nan only if a side has a single row."""
    failed = ~np.isfinite(intercept)
    if len(out_of_fold):
        sums = np.add.reduceat(out_of_fold, spans.packed_start()[:-1])
        failed |= ~np.isfinite(sums) & ~spans.has_single_row
    if failed.any():
        raise FloatingPointError(
            f"logistic regression failed at {failed.sum()} of {len(failed)} nodes, the first with "
            f"{spans.sizes[np.argmax(failed)]} rows; are there features or weights of extreme "
            "size? StandardScaler often helps."
        )


def _fit_dense_nodes(
    rows: LeafRows, spans: Spans, settings: LogisticSettings, n_folds: int, n_jobs: int | None
) -> tuple[DenseLinearNodes, FloatArray]:
    standard = _standardise(rows, has_intercept=settings.fit_intercept)
    weight = rows.weight * settings.C
    shared = (standard.X, weight, standard.penalty, *spans)
    tasks = plan_tasks(spans.sizes.astype(np.float64), count_tasks(n_jobs))
    common = (settings.fit_intercept, _TOLERANCE[standard.X.dtype], n_folds)
    done = run_tasks(_fit_dense_task, shared, [(task, *common) for task in tasks], n_jobs=n_jobs)

    w = np.empty((len(spans.start), standard.X.shape[1]))
    for task, (fitted, _) in zip(tasks, done, strict=True):
        w[task] = fitted
    out_of_fold = _unpack([c for _, c in done], tasks, spans) if n_folds else np.empty(0)
    p = len(standard.scale)
    coef = (w[:, :p] / standard.scale).astype(standard.X.dtype)
    intercept = w[:, p] if settings.fit_intercept else np.zeros(len(w))
    return DenseLinearNodes(coef, intercept, standard.shift), out_of_fold


def _fit_dense_task(  # noqa: PLR0917 - shared arrays come one by one
    X: FloatArray,
    weight: FloatArray,
    penalty: FloatArray,
    start: IntArray,
    split: IntArray,
    stop: IntArray,
    task: tuple[IntArray, bool, float, int],
) -> tuple[FloatArray, FloatArray]:
    """Return the coefficients of some nodes, and their out-of-fold log-odds, packed."""
    from dubito.dichotomies._kernels.logistic_node_compiled import fit_dense_node  # noqa: PLC0415 - loads numba

    nodes, has_intercept, tolerance, n_folds = task
    fitted, out_of_fold = [], []
    for node in nodes:
        a, m, b = int(start[node]), int(split[node]), int(stop[node])
        settings = penalty, has_intercept, tolerance
        w, scores, _, _ = fit_dense_node(X[a:b], (a, m - a), weight[a:b], settings, n_folds)
        fitted.append(w)
        out_of_fold.append(scores)
    return np.array(fitted), np.concatenate(out_of_fold)


def _standardise(rows: LeafRows, *, has_intercept: bool) -> _StandardisedRows:
    """Return dense rows in leaf order, standardised in blocks so that only one copy is made.

    Features are centred only with an intercept, which absorbs the shift. Scaling changes the
    penalty, which is rescaled to compensate.
    """
    source = rows.source
    n, p = len(rows.index), source.shape[1]
    X = np.empty((n, p + has_intercept), source.dtype)
    shift = source.mean(axis=0, dtype=np.float64) if has_intercept else np.zeros(p)
    squares = np.zeros(p)
    chunks = list(row_chunks(n, max(p, 1), _CHUNK_ENTRIES))
    for chunk in chunks:
        block = source[rows.index[chunk]] - shift
        with np.errstate(over="ignore"):
            squares += (block * block).sum(axis=0)
        X[chunk, :p] = block
    if not np.isfinite(squares).all():
        raise ValueError(
            f"X has values of up to {np.abs(source).max():.1e}, whose squares are not finite; "
            "logistic nodes need features on another scale, as StandardScaler gives them."
        )
    spread = np.sqrt(squares / n)
    # The spread of a constant feature is the rounding error of its mean.
    scale = np.where(spread > 16 * np.finfo(np.float64).eps * np.abs(shift), spread, 1.0)
    scale[scale == 0] = 1.0
    for chunk in chunks:
        X[chunk, :p] /= scale
    penalty = 1 / scale**2
    if has_intercept:
        X[:, p] = 1.0
        penalty = np.append(penalty, 0.0)
    return _StandardisedRows(X, shift, scale, penalty)


def _fit_sparse_nodes(
    rows: LeafRows, spans: Spans, settings: LogisticSettings, n_folds: int, n_jobs: int | None
) -> tuple[SparseLinearNodes, FloatArray]:
    p = rows.source.shape[1]
    tasks, done = _run_sparse_tasks(rows, spans, settings, n_folds, n_jobs)
    out_of_fold = _unpack([group[2] for group in done], tasks, spans) if n_folds else np.empty(0)
    intercept = np.empty(len(spans.start))
    fitted: list[Any] = [None] * len(intercept)
    for task in tasks:
        coefs, intercepts, _ = done.pop(0)
        intercept[task] = intercepts
        for node, coef in zip(task, coefs, strict=True):
            fitted[node] = coef
    return SparseLinearNodes(_by_column(fitted, p), intercept), out_of_fold


def _run_sparse_tasks(
    rows: LeafRows, spans: Spans, settings: LogisticSettings, n_folds: int, n_jobs: int | None
) -> tuple[list[IntArray], list[Any]]:
    """Return the nodes of each task, and the fits of each task."""
    X = rows.gather()
    entries = X.indptr[spans.stop] - X.indptr[spans.start]
    # A node without entries costs time as well.
    tasks = plan_tasks((entries + spans.sizes).astype(np.float64), count_tasks(n_jobs))
    # Unsigned indices: numba omits the test for negative ones.
    indices = X.indices.astype(np.uint32)
    shared = (X.indptr, indices, X.data, rows.weight * settings.C, *spans)
    common = (X.shape[1], settings.fit_intercept, _TOLERANCE[X.dtype], n_folds)
    return tasks, run_tasks(
        _fit_sparse_task, shared, [(task, *common) for task in tasks], n_jobs=n_jobs
    )


def _by_column(fitted: list[Any], p: int) -> sp.csr_array:
    """Return the coefficients of all nodes as one CSR array, (p, nodes).

    Those of each node are released once they are copied, to limit peak memory.
    """
    from dubito.dichotomies._kernels.sparse_scores_compiled import put_by_column  # noqa: PLC0415 - loads numba

    counts = np.zeros(p, dtype=np.int64)
    for columns, _ in fitted:
        counts[columns] += 1
    indptr = np.concatenate([[0], np.cumsum(counts)])
    nodes = np.empty(indptr[-1], dtype=np.int32)
    coef = np.empty(indptr[-1], dtype=fitted[0][1].dtype)
    free = indptr[:-1].copy()
    for node, (columns, values) in enumerate(fitted):
        put_by_column(columns, values, node, free, (nodes, coef))
        fitted[node] = None
    return sp.csr_array((coef, nodes, indptr), shape=(p, len(fitted)))


def _fit_sparse_task(  # noqa: PLR0917
    indptr: IntArray,
    indices: IntArray,
    data: FloatArray,
    weight: FloatArray,
    start: IntArray,
    split: IntArray,
    stop: IntArray,
    task: tuple[IntArray, int, bool, float, int],
) -> tuple[list[Any], FloatArray, FloatArray]:
    """Return columns and coefficients, intercepts, and out-of-fold log-odds of some nodes."""
    from dubito.dichotomies._kernels.logistic_node_compiled import fit_sparse_node  # noqa: PLC0415 - loads numba

    nodes, p, has_intercept, tolerance, n_folds = task
    local_index = np.full(p, -1, np.int32)
    fitted, intercepts, out_of_fold = [], [], []
    for node in nodes:
        a, m, b = int(start[node]), int(split[node]), int(stop[node])
        of_node = slice(indptr[a], indptr[b])
        node_indptr = (indptr[a : b + 1] - indptr[a]).astype(np.uintp)
        entries = node_indptr, indices[of_node], data[of_node]
        present, w, scores, _, _ = fit_sparse_node(
            entries, (a, m - a), weight[a:b], (has_intercept, tolerance), n_folds, local_index
        )
        fitted.append((present, w[:-1].astype(data.dtype)))
        intercepts.append(w[-1])
        out_of_fold.append(scores)
    return fitted, np.array(intercepts), np.concatenate(out_of_fold)


def _unpack(out_of_fold: list[FloatArray], tasks: list[IntArray], spans: Spans) -> FloatArray:
    """Return the out-of-fold log-odds of all tasks in the order of the nodes."""
    start = spans.packed_start()
    out = np.empty(start[-1])
    for scores, task in zip(out_of_fold, tasks, strict=True):
        ends = np.cumsum(spans.sizes[task])
        for node, end in zip(task, ends, strict=True):
            size = spans.sizes[node]
            out[start[node] : start[node] + size] = scores[end - size : end]
    return out
