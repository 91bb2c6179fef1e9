"""A toy dataset in the catalogue, empty places to look for it, and no network."""

from __future__ import annotations

import gzip
from hashlib import sha256
from urllib.error import URLError

import pytest

from dubito.datasets.records import CATALOGUE, Dataset, OpenML

TOY_CSV = "size,mood,target\n1.5,Low,b\n,High,a\n2.5,Low,b\n4,High,b\n"


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    def refuse(**_):
        raise URLError("the tests have no network")

    monkeypatch.setattr("sklearn.datasets.fetch_openml", refuse)


@pytest.fixture
def toy_bytes():
    return gzip.compress(TOY_CSV.encode())


@pytest.fixture
def toy(monkeypatch, toy_bytes):
    """A dataset with a missing value, text cells, an official split and text labels."""
    dataset = Dataset(
        name="toy",
        title="A toy",
        paper="P0",
        features=2,
        classes={"a": 1, "b": 3},
        train_classes=(1, 2),
        missing=1,
        mean=10 / 7,
        sha256=sha256(toy_bytes).hexdigest(),
        origin="the toy shop",
        mirror="the toy mirror",
        licence="none",
        text_values={"": float("nan"), "Low": 0.0, "High": 1.0},
        openml=OpenML(data_id=77, columns=("size", "mood"), labels={"1": "a", "2": "b"}),
        notes="Mind the gap.",
    )
    monkeypatch.setitem(CATALOGUE, "toy", dataset)
    return dataset


@pytest.fixture
def places(tmp_path, monkeypatch):
    """An empty data folder and an empty cache, the only places to look in."""
    data, cache = tmp_path / "data", tmp_path / "cache"
    data.mkdir()
    cache.mkdir()
    monkeypatch.setenv("DUBITO_DATA", str(data))
    monkeypatch.setenv("DUBITO_CACHE", str(cache))
    return data, cache
