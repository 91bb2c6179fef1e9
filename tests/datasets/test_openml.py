"""The OpenML route, with `fetch_openml` replaced: its forms, and the cache it fills."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.utils import Bunch

from dubito.datasets import DatasetError, _openml, load
from dubito.datasets._records import OpenML

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
    """Replace the fetch by one that answers with the toy and notes how it was asked."""
    asked = []

    def fetch(**options):
        asked.append(options)
        return openml_copy()

    monkeypatch.setattr(_openml, "fetch_openml", fetch)
    return asked


def answer(monkeypatch, **changes):
    monkeypatch.setattr(_openml, "fetch_openml", lambda **_: openml_copy(**changes))


def test_fetched_copy_has_the_catalogues_form(calls):
    data = load("toy")
    np.testing.assert_array_equal(data.X, [[1.5, 0], [np.nan, 1], [2.5, 0], [4, 1]])
    assert data.X.flags.c_contiguous
    assert data.y.tolist() == ["b", "a", "b", "b"]
    assert data.feature_names == ["size", "mood"]
    assert data.source == "OpenML dataset 77"
    assert data.verified is False
    # pandas is no dependency, and a second cache would only take room.
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


def test_numeric_targets_become_integers(monkeypatch):
    answer(monkeypatch, target=np.array([3.0, 1.0, 3.0, 7.0]))
    table = _openml.fetch_table(OpenML(data_id=77, columns=("size",)))
    assert table.y.dtype == np.int64
    assert table.y.tolist() == [3, 1, 3, 7]
