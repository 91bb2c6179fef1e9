"""Predictions for more rows than fit in memory: block by block, local or on a Dask cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from dubito.belief import Bounds
from dubito.dichotomies._parallel import one_blas_thread

__all__ = ["score_blocks"]

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

#: Prediction methods, and the options of each that are allowed with a Dask array.
_ALLOWED_OPTIONS: dict[str, tuple[str, ...]] = {
    "predict": (),
    "predict_proba": (),
    "predict_log_proba": (),
    "predict_bounds": ("level",),
    "predict_set": ("rule", "level"),
    "predict_topk": ("k", "return_proba"),
    "predict_proba_at_depth": ("depth",),
}


def score_blocks(
    model: Any, X: Any, *, method: str = "predict_proba", client: Any = None, **settings: Any
) -> Any:
    """Return lazy predictions for rows that need not fit in memory, computed by Dask.

    Parameters
    ----------
    model : fitted estimator
        Any classifier or calibrator of dubito. It is sent to each process once, not with every
        block.
    X : dask array of shape (n, n_features), or iterable of chunks
        A Dask array must have its columns in one chunk; the number of its rows may be unknown, and
        its blocks may be sparse. A chunk is an input of `model` (an array, a CSR matrix, a data
        frame), or a ``dask.delayed`` of it, which keeps large data out of this process.
    method : str
        The method of the model: ``"predict"``, ``"predict_proba"``, ``"predict_log_proba"``,
        ``"predict_bounds"``, ``"predict_set"``, ``"predict_topk"``, ``"predict_proba_at_depth"``.
    client : distributed.Client or None
        Client that sends the model to all workers in advance, which is better for a model of more
        than ten megabytes; only this client can then compute the result. None: the model is part of
        the task graph, once.
    **settings
        Passed on to the method: ``level=``, ``rule=``, ``k=``, ``return_proba=``, ``depth=``.

    Returns
    -------
    dask array, pair of dask arrays, or list of delayed
        For a Dask array the labels (n,) or a table of n rows, chunked as the rows are;
        ``"predict_bounds"`` gives lower and upper bounds, (n, K) each, and ``return_proba`` labels
        and probabilities: pass both to one ``dask.compute``, so that each block is scored once. For
        chunks a list of delayed results of the method.

    Notes
    -----
    A worker holds the model, its current blocks and their results: store large results block by
    block (``to_zarr``, ``to_npy_stack``) or reduce them, rather than compute all into one array.
    Every row is scored by itself, so that the result does not depend on the blocks.

    Examples
    --------
    >>> import dask.array as da
    >>> from sklearn.datasets import load_iris
    >>> from dubito.dichotomies.distributed import score_blocks
    >>> from dubito.discriminant import ImpreciseGaussianDiscriminant
    >>> X, y = load_iris(return_X_y=True)
    >>> model = ImpreciseGaussianDiscriminant().fit(X, y)
    >>> proba = score_blocks(model, da.from_array(X, chunks=(40, 4)))
    >>> proba.chunks
    ((40, 40, 40, 30), (3,))
    >>> float(proba.max(axis=1).mean().compute().round(3))
    0.983
    """
    dask, arrays = _import_dask()
    check_is_fitted(model)
    if method not in _ALLOWED_OPTIONS:
        raise ValueError(f"method must be one of {', '.join(_ALLOWED_OPTIONS)}; got {method!r}.")
    getattr(model, method)  # raise here, not on a worker, if the model does not have it
    sent = dask.delayed(model if client is None else _send_ahead(client, model), traverse=False)
    if isinstance(X, arrays.Array):
        return _score_array(model, sent, _one_chunk_wide(model, X), method, settings)
    score = dask.delayed(_score, pure=False)
    return [score(sent, chunk, method, settings) for chunk in _chunks(X)]


def _import_dask() -> tuple[Any, Any]:
    try:
        import dask  # noqa: PLC0415 - an extra
        import dask.array as arrays  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise ImportError(
            'score_blocks needs dask: pip install ".[distributed]" in a checkout of dubito'
        ) from error
    return dask, arrays


def _send_ahead(client: Any, model: Any) -> Any:
    """Send the model to every worker; in a list, because scatter splits lists."""
    return client.scatter([model], broadcast=True, hash=False)[0]


def _one_chunk_wide(model: Any, X: Any) -> Any:
    """Return X if its columns are in one chunk and as many as in the fit; else raise."""
    if X.ndim == 1:
        return X[:, None]  # scores of a binary calibrator
    if X.ndim != 2:
        raise ValueError(f"X must be a table, rows by features; got {X.ndim} dimensions.")
    known = getattr(model, "n_features_in_", X.shape[1])
    if X.shape[1] != known:
        raise ValueError(
            f"X has {X.shape[1]} columns, but {type(model).__name__} was fitted on {known}."
        )
    if X.numblocks[1] > 1:
        raise ValueError(
            f"the columns of X are in {X.numblocks[1]} chunks; a model needs all at once. "
            "Use X.rechunk({1: -1}), with fewer rows to a chunk if memory is short."
        )
    return X


def _chunks(X: Any) -> Iterator[Any]:
    """Return an iterator over chunks; raise for a single table."""
    if hasattr(X, "shape") or isinstance(X, str | bytes) or not hasattr(X, "__iter__"):
        raise TypeError(
            f"X must be a Dask array or an iterable of chunks; got {type(X).__name__}. For rows in "
            "memory call the model itself; of a Dask data frame take X.to_dask_array(lengths=True)."
        )
    return iter(X)


def _score_array(model: Any, sent: Any, X: Any, method: str, settings: dict[str, Any]) -> Any:
    """Return the lazy table of results, or two tables if the method returns a pair."""
    columns, dtype = _layout(model, method, settings)
    table = X.map_blocks(
        _score_block,
        model=sent,
        method=method,
        settings=settings,
        columns=columns,
        result_dtype=dtype,  # "dtype" would be taken by map_blocks
        chunks=(X.chunks[0], (columns,)),
        meta=np.empty((0, 0), dtype),
    )
    if dtype.names:
        return tuple(table[name] for name in dtype.names)
    return table[:, 0] if method == "predict" else table


def _layout(model: Any, method: str, settings: dict[str, Any]) -> tuple[int, np.dtype[Any]]:
    """Return the number of columns of a result, and its dtype, with two fields for a pair."""
    allowed = _ALLOWED_OPTIONS[method]
    unknown = set(settings) - set(allowed)
    if unknown:
        raise TypeError(
            f"{method} over a Dask array takes {' and '.join(allowed) or 'no settings'}; "
            f"got {', '.join(sorted(unknown))}. Chunks, X.to_delayed().ravel(), allow any setting."
        )
    missing = {"predict_topk": {"k"}, "predict_proba_at_depth": {"depth"}}.get(method, set())
    if missing - set(settings):
        raise TypeError(f"{method} needs {', '.join(missing)}=; give it to score_blocks.")
    n_classes, label, number = len(model.classes_), model.classes_.dtype, np.dtype(np.float64)
    match method:
        case "predict":
            return 1, label
        case "predict_set":
            return n_classes, np.dtype(bool)
        case "predict_bounds":
            return n_classes, np.dtype([("lower", number), ("upper", number)])
        case "predict_topk":
            pair = np.dtype([("label", label), ("proba", number)])
            return settings["k"], pair if settings.get("return_proba") else label
        case "predict_proba_at_depth":
            return int(model.tree_.cut(settings["depth"]).max()) + 1, number
    return n_classes, number


def _score_block(
    rows: Any,
    *,
    model: Any,
    method: str,
    settings: dict[str, Any],
    columns: int,
    result_dtype: np.dtype[Any],
) -> npt.NDArray[Any]:
    """Return the table of results of one block, which may have no rows: models raise for none."""
    table = np.empty((rows.shape[0], columns), dtype=result_dtype)
    if not len(table):
        return table
    result = _score(model, rows, method, settings)
    if result_dtype.names:
        pair = (result.lower, result.upper) if isinstance(result, Bounds) else result
        for name, part in zip(result_dtype.names, pair, strict=True):
            table[name] = part
    else:
        table[:] = result.reshape(table.shape)
    return table


def _score(model: Any, rows: Any, method: str, settings: dict[str, Any]) -> Any:
    with one_blas_thread:
        return getattr(model, method)(rows, **settings)
