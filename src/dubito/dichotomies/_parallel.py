"""Work shared out among threads, processes or a cluster: the same result whoever does it.

Who computes is joblib's to say: threads, unless ``joblib.parallel_config`` names another backend.
The tasks of a Dask cluster are submitted here, not by joblib, which sends an argument to one worker
alone (tasks are lost with it), and computes in the client where a cluster has a single core. Here
every worker gets the data before the first task, and tasks carry their names only.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from joblib.parallel import get_active_backend
from sklearn import config_context, get_config
from threadpoolctl import threadpool_limits

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dubito._typing import FloatArray, IntArray

#: Tasks for each job: a job that is done early takes another, and an interrupt waits for one.
_SHARES = 8

#: How often data are sent anew after every worker that held them was lost.
_SENDINGS = 3


class OneBlasThread:
    """BLAS with one thread while anybody is inside; the first sets it, the last puts it back.

    BLAS keeps one setting for the whole process: threads that each set and put back a limit of
    their own would put back each other's.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0

    def __enter__(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._limits = threadpool_limits(1, user_api="blas")
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._limits.restore_original_limits()


one_blas_thread = OneBlasThread()


def count_tasks(n_jobs: int | None) -> int:
    """Return a good number of tasks for the jobs there are, here or on the cluster in use."""
    return _SHARES * int(effective_n_jobs(n_jobs))


def plan_tasks(work: FloatArray, n_tasks: int) -> list[IntArray]:
    """Share nodes out into about `n_tasks` tasks of like work, the longest task first.

    A node with a whole share of work is a task by itself; the others stay in their order, so that
    neighbours in the tree, whose rows are neighbours too, are done together. No task of several
    nodes has more than two shares of work.

    Examples
    --------
    >>> import numpy as np
    >>> from dubito.dichotomies._parallel import plan_tasks
    >>> plan_tasks(np.array([8.0, 3.0, 1.0, 2.0, 4.0, 2.0]), 4)
    [array([0]), array([1, 2, 3]), array([4]), array([5])]
    """
    share = work.sum() / n_tasks
    if not share > 0:
        return [np.arange(len(work))] if len(work) else []
    alone = np.flatnonzero(work >= share)
    others = np.flatnonzero(work < share)
    begins = np.cumsum(work[others]) - work[others]
    cuts = np.flatnonzero(np.diff(begins // share)) + 1
    tasks = [*alone[:, None], *(group for group in np.split(others, cuts) if len(group))]
    order = np.argsort([-work[task].sum() for task in tasks], kind="stable")
    return [tasks[i] for i in order]


def run_tasks(
    function: Callable[..., Any],
    shared: tuple[Any, ...],
    tasks: Sequence[Any],
    *,
    n_jobs: int | None,
) -> list[Any]:
    """Return ``[function(*shared, task) for task in tasks]``, computed side by side.

    Parameters
    ----------
    function : callable
        Of a module, so that other processes can import it; what it needs that is large belongs into
        `shared`. It must change nothing it is given.
    shared : tuple
        What all tasks read. Each member reaches a process once: threads share it, other processes
        map its memory, every worker of a Dask cluster gets a copy before the first task.
    tasks : sequence
        What differs; small.
    n_jobs : int or None
        As everywhere in scikit-learn; a Dask cluster uses all it has.

    Notes
    -----
    BLAS has one thread meanwhile, and scikit-learn's settings hold in every process. A task whose
    worker dies is done again by another; if all workers that held the data are lost, those that
    come after them get the data anew. An interrupt starts no other task.
    """
    call = partial(_call, function, get_config())
    backend, _ = get_active_backend(prefer="threads")
    if hasattr(getattr(backend, "client", None), "scatter"):
        return _run_on_dask(backend, call, shared, tasks)
    with one_blas_thread:
        parallel = Parallel(n_jobs=n_jobs, prefer="threads", batch_size=1)
        return list(parallel(delayed(call)(*shared, task) for task in tasks))


def _call(function: Callable[..., Any], config: dict[str, Any], *arguments: Any) -> Any:
    """Call as the process that asked would have called."""
    with one_blas_thread, config_context(**config):
        return function(*arguments)


def _run_on_dask(
    backend: Any, call: Callable[..., Any], shared: tuple[Any, ...], tasks: Sequence[Any]
) -> list[Any]:
    """Run tasks on the cluster of joblib's Dask backend, and again those whose data are lost."""
    results: dict[int, Any] = {}
    in_vain = 0
    with backend.retrieval_context():  # inside a worker: makes room for the tasks waited for
        while len(results) < len(tasks):
            missing = {i: task for i, task in enumerate(tasks) if i not in results}
            came = _send_and_collect(backend, call, shared, missing)
            in_vain = 0 if came else in_vain + 1
            if in_vain == _SENDINGS:
                raise RuntimeError(
                    f"{len(missing)} of {len(tasks)} tasks are not done: {_SENDINGS} times in a "
                    "row the cluster lost all workers that held the data. Their logs say why; "
                    "often a worker has no memory left beside its copy of the data."
                )
            results |= came
    return [results[i] for i in range(len(tasks))]


def _send_and_collect(
    backend: Any, call: Callable[..., Any], shared: tuple[Any, ...], tasks: dict[int, Any]
) -> dict[int, Any]:
    """Send the data to every worker and the tasks after them; return the results that came."""
    from distributed import CancelledError, as_completed  # noqa: PLC0415 - comes with the cluster

    backend.effective_n_jobs(None)  # waits for the first worker, and says what to do without one
    client = backend.client
    # Names by chance, not by content: data of two fits at once must not share a fate.
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
