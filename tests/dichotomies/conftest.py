"""Clusters of local worker processes for tests of parallel and distributed fits."""

import pytest
from joblib import parallel_config


def new_cluster(n_workers):
    """Return worker processes of one thread; without logs, because tests kill workers."""
    from distributed import LocalCluster  # loaded only where needed

    return LocalCluster(
        n_workers=n_workers,
        threads_per_worker=1,
        processes=True,
        dashboard_address=":0",  # any free port: several clusters may run at once
        silence_logs=50,
    )


@pytest.fixture(scope="session")
def client():
    from distributed import Client

    with new_cluster(2) as cluster, Client(cluster, set_as_default=False) as client:
        yield client


@pytest.fixture
def on_dask(client):
    with client.as_current(), parallel_config(backend="dask"):
        yield client


@pytest.fixture(scope="session")
def single_worker_client():
    from distributed import Client

    with new_cluster(1) as cluster, Client(cluster, set_as_default=False) as client:
        yield client


@pytest.fixture
def on_one_worker(single_worker_client):
    with single_worker_client.as_current(), parallel_config(backend="dask"):
        yield single_worker_client
