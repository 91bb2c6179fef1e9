"""Clusters of worker processes on this machine, for tests of work that is shared out."""

import pytest
from joblib import parallel_config


def new_cluster(n_workers):
    """Worker processes of one thread; quiet, as deaths are meant here."""
    from distributed import LocalCluster  # other tests need not load it

    return LocalCluster(
        n_workers=n_workers,
        threads_per_worker=1,
        processes=True,
        dashboard_address=":0",  # any free port: several clusters at once
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
def lone_client():
    from distributed import Client

    with new_cluster(1) as cluster, Client(cluster, set_as_default=False) as client:
        yield client


@pytest.fixture
def on_one_worker(lone_client):
    with lone_client.as_current(), parallel_config(backend="dask"):
        yield lone_client
