"""Fit hundreds of classes on a cluster that loses a worker, and score block by block.

The cluster is made of worker processes on this machine: ``python examples/cluster.py``. With
``--scheduler tcp://address:8786`` it is a real one, where no worker is killed.
"""

from __future__ import annotations

import argparse
import os
import signal
import threading
import time
from contextlib import nullcontext
from typing import Any

import dask.array as da
import numpy as np
from dask.distributed import Client, LocalCluster
from joblib import parallel_config
from sklearn.datasets import make_blobs

from dubito.dichotomies import NestedDichotomyClassifier
from dubito.dichotomies.distributed import score_blocks


def main() -> None:
    """Fit in this process and on the cluster, compare, and score."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scheduler", help="address of a Dask scheduler; none: workers here")
    parser.add_argument("--classes", type=int, default=300)
    settings = parser.parse_args()
    X, y = make_blobs(
        20 * settings.classes, 32, centers=settings.classes, cluster_std=4.0, random_state=0
    )
    model = NestedDichotomyClassifier(internal="platt", random_state=0)
    here = timed("here", model.fit, X, y).predict_proba(X[:100])
    own = settings.scheduler is None
    cluster = (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0")
        if own
        else nullcontext(settings.scheduler)
    )
    with cluster as address, Client(address) as client, parallel_config(backend="dask"):
        if own:
            kill_a_worker(client, after=1.0)
        timed("on the cluster", model.fit, X, y)
        print("the same probabilities:", np.array_equal(model.predict_proba(X[:100]), here))
        report_scores(model, X, y)


def timed(where: str, fit: Any, X: Any, y: Any) -> Any:
    """Fit, print the duration, and return the fitted model."""
    begin = time.perf_counter()
    fitted = fit(X, y)
    print(f"fitted {where} in {time.perf_counter() - begin:.1f} s")
    return fitted


def kill_a_worker(client: Client, after: float) -> None:
    """Kill one worker process after some seconds; the cluster starts another."""
    victim = next(iter(client.run(os.getpid).values()))
    threading.Timer(after, os.kill, (victim, signal.SIGKILL)).start()


def report_scores(model: NestedDichotomyClassifier, X: Any, y: Any) -> None:
    """Score block by block; only averages are sent back by the workers."""
    blocks = da.from_array(X, chunks=(1000, -1))
    best = score_blocks(model, blocks, method="predict_topk", k=5)
    found = best == da.from_array(y, chunks=1000)[:, None]
    first, among_five = found[:, 0].mean().compute(), found.any(axis=1).mean().compute()
    print(f"right at once: {first:.3f}; among the best five: {among_five:.3f}")


if __name__ == "__main__":
    main()
