"""Copies from OpenML (`fetch_openml` replaced), and the cache files they are kept in."""

from __future__ import annotations

import dataclasses
import os

import numpy as np
import pytest
from sklearn.utils import Bunch

from dubito.datasets import DatasetError, load
from dubito.datasets.records import CATALOGUE, OpenML

pytestmark = pytest.mark.usefixtures("toy", "places")


def openml_copy(**changes):
    """The toy as `fetch_openml(as_frame=False, parser="liac-arff")` would return it.

    Categories come as their places in a list, the wanted columns in another order and with one
    that is not wanted, and labels in OpenML's own code.
    """
    parts = {
        "data": np.array([[0, 1, 1.5], [1, 0, np.nan], [2, 1, 2.5], [0, 0, 4.0]]),
        "feature_names": ["shop", "mood", "size"],
        "categories": {"shop": ["x", "y", "z"], "mood": ["1", "0"]},
        "target": np.array(["2", "1", "2", "2"], dtype=object),
    }
    return Bunch(**(parts | changes))


@pytest.fixture
def calls(monkeypatch):
    """Replace the fetch by one that returns the toy and records its arguments."""
    requested = []

    def fetch(**options):
        requested.append(options)
        return openml_copy()

    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch)
    return requested


def answer(monkeypatch, **changes):
    monkeypatch.setattr("sklearn.datasets.fetch_openml", lambda **_: openml_copy(**changes))


def test_fetched_copy_has_the_catalogues_form(calls):
    data = load("toy")
    np.testing.assert_array_equal(data.X, [[1.5, 0], [np.nan, 1], [2.5, 0], [4, 1]])
    assert data.X.flags.c_contiguous
    assert data.y.tolist() == ["b", "a", "b", "b"]
    assert data.feature_names == ["size", "mood"]
    assert data.source == "OpenML dataset 77"
    assert data.verified is False
    # pandas is no dependency, and a second cache would only take space.
    assert calls == [{"data_id": 77, "as_frame": False, "parser": "liac-arff", "cache": False}]


def test_fetched_copy_is_kept_and_read_back_exactly(places, calls):
    fetched = load("toy")
    cached = load("toy")
    assert len(calls) == 1
    assert cached.source == str(places[1] / "toy.csv.gz")
    assert cached.verified is False
    np.testing.assert_array_equal(cached.X, fetched.X)
    np.testing.assert_array_equal(cached.y, fetched.y)
    assert cached.feature_names == fetched.feature_names
    assert [file.name for file in places[1].iterdir()] == ["toy.csv.gz"]


@pytest.mark.usefixtures("calls")
def test_data_home_is_created_and_filled(places, tmp_path):
    home = tmp_path / "new" / "home"
    load("toy", data_home=home)
    assert (home / "toy.csv.gz").is_file()
    assert not list(places[1].iterdir())


def test_wrong_copy_is_refused_and_not_kept(places, monkeypatch):
    answer(monkeypatch, target=np.array(["2", "1", "1", "2"], dtype=object))
    with pytest.raises(DatasetError, match="OpenML dataset 77 is not the dataset 'toy'"):
        load("toy")
    assert not list(places[1].iterdir())


@pytest.mark.parametrize(
    "changes",
    [
        {"feature_names": ["shop", "temper", "size"]},
        {"categories": {"mood": ["low", "high"]}},
    ],
    ids=["column gone", "category not a number"],
)
def test_other_columns_are_refused(changes, monkeypatch):
    answer(monkeypatch, **changes)
    with pytest.raises(DatasetError, match="OpenML dataset 77 has other columns"):
        load("toy")


@pytest.mark.usefixtures("calls")
def test_unwritable_cache_is_explained(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("in the way", encoding="utf-8")
    with pytest.raises(DatasetError, match=r"could not be written .* data_home or DUBITO_CACHE"):
        load("toy", data_home=blocked / "home")


def test_numeric_targets_become_integers(toy, monkeypatch):
    answer(monkeypatch, target=np.array([3.0, 1.0, 3.0, 7.0]))
    changed = dataclasses.replace(
        toy,
        features=1,
        classes={1: 1, 3: 2, 7: 1},
        train_classes=(),
        mean=8 / 3,
        openml=OpenML(data_id=77, columns=("size",)),
    )
    monkeypatch.setitem(CATALOGUE, "toy", changed)
    y = load("toy").y
    assert y.dtype == np.int64
    assert y.tolist() == [3, 1, 3, 7]


@pytest.mark.usefixtures("calls")
def test_failed_write_leaves_no_file(places, monkeypatch):
    def refuse(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(DatasetError, match="could not be written"):
        load("toy")
    assert not list(places[1].iterdir())


def test_cached_numbers_read_back_bit_for_bit(toy, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 3)) * 10.0 ** rng.integers(-300, 300, (50, 3))
    X[0] = [0.1, -0.0, 1e300]
    X[1, 1] = np.nan
    names = ["a b", 'c"d', "e,f"]
    answer(monkeypatch, data=X, feature_names=names, categories={}, target=np.arange(50.0))
    changed = dataclasses.replace(
        toy,
        features=3,
        classes=dict.fromkeys(range(50), 1),
        train_classes=(),
        mean=float(np.nanmean(X)),
        text_values={"": np.nan},
        openml=OpenML(data_id=77),
    )
    monkeypatch.setitem(CATALOGUE, "toy", changed)
    fetched, cached = load("toy"), load("toy")
    assert (fetched.source, cached.source != fetched.source) == ("OpenML dataset 77", True)
    assert cached.X.tobytes() == fetched.X.tobytes() == X.tobytes()
    assert cached.feature_names == fetched.feature_names == names
    np.testing.assert_array_equal(cached.y, fetched.y)
