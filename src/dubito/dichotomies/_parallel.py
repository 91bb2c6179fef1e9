"""Tasks that run in threads, processes or on a cluster, with the same result.

joblib chooses the backend: threads, unless ``joblib.parallel_config`` names another one. The tasks
of a Dask cluster are submitted here, not by joblib, which sends an argument to a single worker
(if that worker dies, tasks are lost), and computes in the client if a cluster has a single core.
Here every worker gets the data before the first task, and tasks refer to them by name.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from functools import cache, partial
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from joblib.parallel import get_active_backend
from sklearn import config_context, get_config
from threadpoolctl import ThreadpoolController

from dubito._numerics.row_subsets import row_chunks

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from dubito._typing import FloatArray, IntArray

#: Number of tasks per job: jobs finish at about the same time, and an interrupt waits for one task.
_TASKS_PER_JOB = 8

#: Times in a row that data are sent without any result, as all workers that held them were lost.
_MAX_SENDS = 3

#: Number of log-odds in a chunk of rows: 32 MiB.
_CHUNK_ENTRIES = 2**22


@cache
def _loaded_libraries() -> ThreadpoolController:
    """Return the libraries with threads; kept, as the search for them takes as long as a fit."""
    return ThreadpoolController()


class OneBlasThread:
    """Context in which BLAS uses one thread: the first entry sets it, the last exit resets it.

    BLAS has one setting for the whole process: if each thread set and reset a limit of its own,
    they would reset each other's.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._n_entered = 0

    def __enter__(self) -> None:
        with self._lock:
            if self._n_entered == 0:
                self._limits = _loaded_libraries().limit(limits=1, user_api="blas")
            self._n_entered += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._n_entered -= 1
            if self._n_entered == 0:
                self._limits.restore_original_limits()


one_blas_thread = OneBlasThread()


def count_tasks(n_jobs: int | None) -> int:
    """Return the number of tasks for the available jobs, local or on the cluster in use."""
    return _TASKS_PER_JOB * int(effective_n_jobs(n_jobs))


def plan_tasks(work: FloatArray, n_tasks: int) -> list[IntArray]:
    """Return about `n_tasks` groups of nodes of similar work, the largest first.

    A node with at least the mean work of a task is a task by itself. The others stay in their
    order, so that a task has neighbours in the tree, whose rows are neighbours too. No task of
    several nodes has more than twice the mean work.

    Examples
    --------
    >>> import numpy as np
    >>> from dubito.dichotomies._parallel import plan_tasks
    >>> plan_tasks(np.array([8.0, 3.0, 1.0, 2.0, 4.0, 2.0]), 4)
    [array([0]), array([1, 2, 3]), array([4]), array([5])]
    """
    mean = work.sum() / n_tasks
    if not mean > 0:
        return [np.arange(len(work))] if len(work) else []
    alone = np.flatnonzero(work >= mean)
    others = np.flatnonzero(work < mean)
    begins = np.cumsum(work[others]) - work[others]
    boundaries = np.flatnonzero(np.diff(begins // mean)) + 1
    tasks = [*alone[:, None], *(group for group in np.split(others, boundaries) if len(group))]
    order = np.argsort([-work[task].sum() for task in tasks], kind="stable")
    return [tasks[i] for i in order]


def run_tasks(
    function: Callable[..., Any],
    shared: tuple[Any, ...],
    tasks: Sequence[Any],
    *,
    n_jobs: int | None,
) -> list[Any]:
    """Return ``[function(*shared, task) for task in tasks]``, computed in parallel.

    Parameters
    ----------
    function : callable
        Defined in a module, so that other processes can import it. Large arguments belong in
        `shared`. It must not change its arguments.
    shared : tuple
        Arguments common to all tasks. Each is sent to a process once: threads share it, other
        processes map its memory, every worker of a Dask cluster gets a copy before the first task.
    tasks : sequence
        The last argument of each call; small.
    n_jobs : int or None
        As in scikit-learn; a Dask cluster uses all its workers.

    Notes
    -----
    BLAS uses one thread meanwhile, and scikit-learn's configuration holds in every process. A task
    whose worker dies is repeated by another; if all workers with the data are lost, the data are
    sent again to new ones. After an interrupt no further task starts.
    """
    call = partial(_call, function, get_config())
    backend, _ = get_active_backend(prefer="threads")
    if hasattr(getattr(backend, "client", None), "scatter"):
        return _run_on_dask(backend, call, shared, tasks)
    with one_blas_thread:
        parallel = Parallel(n_jobs=n_jobs, prefer="threads", batch_size=1)
        return list(parallel(delayed(call)(*shared, task) for task in tasks))


def _call(function: Callable[..., Any], config: dict[str, Any], *arguments: Any) -> Any:
    """Call a function with the scikit-learn configuration of the calling process."""
    with one_blas_thread, config_context(**config):
        return function(*arguments)


def _run_on_dask(
    backend: Any, call: Callable[..., Any], shared: tuple[Any, ...], tasks: Sequence[Any]
) -> list[Any]:
    """Run tasks on the cluster of joblib's Dask backend; repeat those whose data are lost."""
    results: dict[int, Any] = {}
    failed_sends = 0
    with backend.retrieval_context():  # inside a worker: frees its slot for the new tasks
        while len(results) < len(tasks):
            missing = {i: task for i, task in enumerate(tasks) if i not in results}
            arrived = _send_and_collect(backend, call, shared, missing)
            failed_sends = 0 if arrived else failed_sends + 1
            if failed_sends == _MAX_SENDS:
                raise RuntimeError(
                    f"{len(missing)} of {len(tasks)} tasks are not done: {_MAX_SENDS} times in a "
                    "row the cluster lost all workers that held the data. Their logs say why; "
                    "often a worker has no memory left beside its copy of the data."
                )
            results |= arrived
    return [results[i] for i in range(len(tasks))]


def _send_and_collect(
    backend: Any, call: Callable[..., Any], shared: tuple[Any, ...], tasks: dict[int, Any]
) -> dict[int, Any]:
    """Send the data to every worker, then the tasks; return the results that arrive."""
    from distributed import CancelledError, as_completed  # noqa: PLC0415 - an extra

    backend.effective_n_jobs(None)  # waits for the first worker; raises an explained error if none
    client = backend.client
    # Random names, not hashes of the content: two simultaneous fits must not share their data,
    # which are released when one of them ends.
    sent = client.scatter(list(shared), broadcast=True, hash=False)
    waiting = {
        client.submit(
            call, *sent, task, key=f"dubito-{uuid4().hex}", pure=False, **backend.submit_kwargs
        ): i
        for i, task in tasks.items()
    }
    results = {}
    try:
        for future in as_completed(list(waiting)):  # type: ignore[no-untyped-call]
            number = waiting.pop(future)
            with suppress(CancelledError):  # by the scheduler: the data it needs are lost
                results[number] = future.result()
    finally:
        client.cancel(list(waiting))  # after an error or an interrupt
    return results


def in_row_chunks(
    function: Callable[[Any], npt.NDArray[Any]], X: Any, n_classes: int, n_jobs: int | None
) -> npt.NDArray[Any]:
    """Return `function(X)`, computed in chunks of rows that bound the memory.

    `function` must treat each row by itself.
    """
    n = X.shape[0]
    slices = list(row_chunks(n, n_classes, _CHUNK_ENTRIES))
    if len(slices) == 1:
        return function(X)
    if effective_n_jobs(n_jobs) > 1:
        parts = iter(run_tasks(_call_on_rows, (X, function), slices, n_jobs=n_jobs))
    else:
        parts = (function(X[rows]) for rows in slices)
    first = next(parts)
    out = np.empty((n, *first.shape[1:]), first.dtype)
    out[slices[0]] = first
    for rows, part in zip(slices[1:], parts, strict=True):
        out[rows] = part
    return out


def _call_on_rows(
    X: Any, function: Callable[[Any], npt.NDArray[Any]], rows: slice
) -> npt.NDArray[Any]:
    return function(X[rows])
