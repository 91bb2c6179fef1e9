"""Tasks in threads, processes and on a cluster: same results, none lost, data sent once."""

import os
import time
from functools import partial

import numpy as np
import pytest
from joblib import parallel_config
from sklearn import config_context
from threadpoolctl import threadpool_info, threadpool_limits

from dubito.dichotomies import _parallel
from dubito.dichotomies._parallel import count_tasks, one_blas_thread, plan_tasks, run_tasks

from reference.watched import (
    Parcel,
    assumes_finite,
    blas_threads,
    interrupt,
    kill,
    kill_worker,
    notes,
    once_started,
    refuse_three,
    slow_sum,
    sum_of_rows,
)

table = np.random.default_rng(0).normal(size=(500, 40))
rows = [np.arange(i, 500, 25) for i in range(25)]


# --- the plan ------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_tasks", [1, 2, 7, 40, 1000])
def test_every_node_has_one_task_and_tasks_have_similar_work(n_tasks):
    work = np.random.default_rng(n_tasks).pareto(1.0, size=300)
    tasks = plan_tasks(work, n_tasks)
    np.testing.assert_array_equal(np.sort(np.concatenate(tasks)), np.arange(300))
    length = np.array([work[task].sum() for task in tasks])
    assert (np.diff(length) <= 0).all()
    mean = work.sum() / n_tasks
    assert all(len(task) == 1 or work[task].sum() < 2 * mean for task in tasks)
    assert len(tasks) <= 2 * n_tasks + 1


def test_neighbours_stay_together():
    tasks = plan_tasks(np.ones(100), 10)
    assert all((np.diff(task) == 1).all() for task in tasks)
    assert [len(task) for task in tasks] == [10] * 10


def test_nodes_without_work_have_a_task():
    assert plan_tasks(np.empty(0), 8) == []
    np.testing.assert_array_equal(plan_tasks(np.zeros(3), 8), [[0, 1, 2]])
    assert sum(map(len, plan_tasks(np.array([0.0, 5.0, 0.0]), 8))) == 3


# --- local threads and processes -----------------------------------------------------------------


@pytest.mark.parametrize("backend", [None, "threading", "loky"])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_results_come_in_order(backend, n_jobs, tmp_path):
    with parallel_config(backend=backend) if backend else parallel_config():
        results = run_tasks(sum_of_rows, (table, Parcel(tmp_path, 1.0)), rows, n_jobs=n_jobs)
    assert [value for value, _ in results] == [table[task].sum() + 1.0 for task in rows]


def test_threads_by_default_and_more_tasks_than_jobs(tmp_path):
    results = run_tasks(sum_of_rows, (table, Parcel(tmp_path, 0.0)), rows, n_jobs=2)
    assert {pid for _, pid in results} == {os.getpid()}
    assert notes(tmp_path, "packed") == []
    assert count_tasks(2) > 2


def test_blas_uses_one_thread_inside_and_is_reset():
    with threadpool_limits(3, user_api="blas"):
        for n_jobs in (1, 2):
            found = run_tasks(blas_threads, (table,), range(4), n_jobs=n_jobs)
            assert all(pools and set(pools) == {1} for pools in found)
        with one_blas_thread, one_blas_thread:
            pass
        after = {p["num_threads"] for p in threadpool_info() if p["user_api"] == "blas"}
        assert after == {3}


def test_the_configuration_of_scikit_learn_holds_in_threads():
    with config_context(assume_finite=True):
        assert run_tasks(assumes_finite, (table,), range(3), n_jobs=2) == [True] * 3
    assert run_tasks(assumes_finite, (table,), range(3), n_jobs=2) == [False] * 3


@pytest.mark.usefixtures("default_interrupts")
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_no_task_starts_after_an_interrupt(n_jobs, tmp_path):
    once_started(tmp_path, 3, interrupt)
    with pytest.raises(KeyboardInterrupt):
        run_tasks(partial(slow_sum, tmp_path, 0.1), (table,), rows * 4, n_jobs=n_jobs)
    time.sleep(0.5)
    started = len(notes(tmp_path, "started"))
    time.sleep(0.5)
    assert len(notes(tmp_path, "started")) == started < 50


# --- a cluster -----------------------------------------------------------------------------------


def test_all_workers_work_and_the_data_are_sent_once(on_dask, tmp_path):
    parcel = Parcel(tmp_path, 1.0)
    results = run_tasks(sum_of_rows, (table, parcel), rows * 4, n_jobs=None)
    assert [value for value, _ in results] == [table[task].sum() + 1.0 for task in rows * 4]
    workers = set(on_dask.run(os.getpid).values())
    assert {pid for _, pid in results} == workers
    packed = notes(tmp_path, "packed")
    assert packed.count(os.getpid()) == 1  # to the cluster; workers send it to each other
    assert len(packed) <= 1 + len(workers)


@pytest.mark.usefixtures("on_dask")
def test_errors_of_tasks_are_raised_unchanged():
    with pytest.raises(ValueError, match="task three is refused, with 500 rows"):
        run_tasks(refuse_three, (table,), range(20), n_jobs=None)
    assert run_tasks(refuse_three, (table,), [1, 2], n_jobs=None) == [1, 2]
    assert run_tasks(refuse_three, (table,), [], n_jobs=None) == []


@pytest.mark.usefixtures("on_dask")
def test_blas_threads_and_configuration_of_workers():
    for pools in run_tasks(blas_threads, (table,), range(3), n_jobs=None):
        assert set(pools) == {1}
    with config_context(assume_finite=True):
        assert all(run_tasks(assumes_finite, (table,), range(3), n_jobs=None))


@pytest.mark.usefixtures("default_interrupts")
def test_an_interrupt_cancels_waiting_tasks(on_dask, tmp_path):
    once_started(tmp_path, 3, interrupt)
    with pytest.raises(KeyboardInterrupt):
        run_tasks(partial(slow_sum, tmp_path, 0.2), (table,), rows * 4, n_jobs=None)
    while any(on_dask.processing().values()):
        time.sleep(0.05)
    assert len(notes(tmp_path, "started")) < 50


@pytest.mark.slow
@pytest.mark.usefixtures("on_one_worker")
def test_data_lost_with_the_last_worker_are_sent_again(tmp_path):
    once_started(tmp_path, 4, kill)
    task = partial(slow_sum, tmp_path, 0.1)
    assert run_tasks(task, (table,), rows, n_jobs=None) == [table[r].sum() for r in rows]
    assert len(set(notes(tmp_path, "started"))) == 2  # the worker, and the one in its place
    assert len(notes(tmp_path, "started")) > len(
        rows
    )  # the tasks of the killed worker are repeated


@pytest.mark.usefixtures("on_one_worker")
def test_a_cluster_that_loses_all_workers_raises(monkeypatch):
    monkeypatch.setattr(_parallel, "_MAX_SENDS", 1)
    with pytest.raises(RuntimeError, match=r"2 of 2 tasks are not done: 1 times in a row"):
        run_tasks(kill_worker, (table,), [1, 2], n_jobs=None)
