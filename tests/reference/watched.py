"""Objects that log events to files, for tests with several processes.

Workers of a cluster import this module. An event is an empty file in a folder known to all
processes, named after the process: "started-<pid>-<number>".
"""

import _thread
import os
import signal
import threading
import time
from pathlib import Path
from uuid import uuid4

import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.naive_bayes import GaussianNB
from threadpoolctl import threadpool_info


def note(folder, what):
    Path(folder, f"{what}-{os.getpid()}-{uuid4().hex}").touch()


def notes(folder, what):
    """Return the process ids of the logged events of a kind, one for each event."""
    return [int(path.name.split("-")[1]) for path in Path(folder).glob(f"{what}-*")]


def once_started(folder, n_tasks, act):
    """Call `act`, in a thread, with the process id of the n-th logged start."""

    def wait():
        while len(pids := notes(folder, "started")) < n_tasks:
            time.sleep(0.01)
        act(pids[-1])

    threading.Thread(target=wait, daemon=True).start()


def kill(pid):
    assert pid != os.getpid()
    os.kill(pid, signal.SIGKILL)


def interrupt(_):
    _thread.interrupt_main()


class Parcel:
    """An object that logs every pickling, that is every transfer to another process."""

    def __init__(self, folder, content):
        self.folder, self.content = folder, content

    def __reduce__(self):
        note(self.folder, "packed")
        return Parcel, (self.folder, self.content)


class SlowBayes(ClassifierMixin, BaseEstimator):
    """Slow naive Bayes that logs the start of each fit with its process id."""

    def __init__(self, folder=None, seconds=0.1):
        self.folder, self.seconds = folder, seconds

    def fit(self, X, y):
        note(self.folder, "started")
        time.sleep(self.seconds)
        self.model_ = GaussianNB().fit(X, y)
        self.classes_ = self.model_.classes_
        return self

    def predict_proba(self, X):
        return self.model_.predict_proba(X)

    def predict(self, X):
        return self.model_.predict(X)


class Heavy(ClassifierMixin, BaseEstimator):
    """A fitted model whose weights log every pickling."""

    def fit(self, folder):
        self.parcel_ = Parcel(folder, np.eye(4))
        self.classes_, self.n_features_in_ = np.arange(4), 4
        return self

    def predict_proba(self, X):
        return np.abs(X @ self.parcel_.content)


def sum_of_rows(matrix, parcel, rows):
    return float(matrix[rows].sum()) + float(parcel.content), os.getpid()


def slow_sum(folder, seconds, matrix, rows):
    note(folder, "started")
    time.sleep(seconds)
    return float(matrix[rows].sum())


def refuse_three(matrix, task):
    if task == 3:
        raise ValueError(f"task three is refused, with {len(matrix)} rows at hand")
    return task


def kill_worker(_matrix, _task):
    os.kill(os.getpid(), signal.SIGKILL)


def blas_threads(_matrix, _task):
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


def assumes_finite(_matrix, _task):
    return get_config()["assume_finite"]
