"""`load`: the places it searches, its checks, and its errors."""

from __future__ import annotations

import dataclasses
import gzip

import numpy as np
import pytest
from sklearn.datasets import load_iris

from dubito.datasets import DatasetError, load
from dubito.datasets.records import CATALOGUE

pytestmark = pytest.mark.usefixtures("toy", "places")


def replace_toy(monkeypatch, toy, **changes):
    monkeypatch.setitem(CATALOGUE, "toy", dataclasses.replace(toy, **changes))


def test_a_file_becomes_arrays(places, toy_bytes):
    (places[0] / "toy.csv.gz").write_bytes(toy_bytes)
    data = load("toy")
    np.testing.assert_array_equal(data.X, [[1.5, 0], [np.nan, 1], [2.5, 0], [4, 1]])
    assert data.X.dtype == np.float64
    assert data.X.flags.c_contiguous
    assert data.y.tolist() == ["b", "a", "b", "b"]
    assert data.feature_names == ["size", "mood"]
    assert data.class_names == ["a", "b"]
    assert {part: rows.tolist() for part, rows in data.split.items()} == {
        "train": [0, 1, 2],
        "test": [3],
    }
    assert data.groups is None
    assert data.verified is True
    assert (data.name, data.licence, data.origin) == ("toy", "none", "the toy shop")
    assert data.description == "A toy. Mind the gap."
    assert data.source == str(places[0] / "toy.csv.gz")


@pytest.mark.parametrize("name", ["iris", "wine"])
def test_scikit_learn_comes_first(name, places):
    for folder in places:
        (folder / f"{name}.csv.gz").write_bytes(b"never read")
    data = load(name)
    assert data.source == "scikit-learn"
    assert data.verified is True
    assert data.y.dtype.kind == "i"
    assert data.class_names == [0, 1, 2]


def test_iris_is_scikit_learns():
    raw = load_iris()
    data = load("iris")
    np.testing.assert_array_equal(data.X, raw.data)
    np.testing.assert_array_equal(data.y, raw.target)
    assert "setosa" in data.description


def test_data_folder_comes_before_cache(places, toy_bytes):
    for folder in places:
        (folder / "toy.csv.gz").write_bytes(toy_bytes)
    assert load("toy").source == str(places[0] / "toy.csv.gz")


@pytest.mark.parametrize("value", [None, ""])
def test_cache_is_used_when_data_folder_is_unset(value, places, toy_bytes, monkeypatch):
    if value is None:
        monkeypatch.delenv("DUBITO_DATA")
    else:
        monkeypatch.setenv("DUBITO_DATA", value)
    (places[1] / "toy.csv.gz").write_bytes(toy_bytes)
    assert load("toy").source == str(places[1] / "toy.csv.gz")


def test_data_home_comes_before_dubito_cache(places, toy_bytes, tmp_path):
    (tmp_path / "toy.csv.gz").write_bytes(toy_bytes)
    (places[1] / "toy.csv.gz").write_bytes(b"never read")
    assert load("toy", data_home=tmp_path).source == str(tmp_path / "toy.csv.gz")


@pytest.mark.parametrize(
    ("variable", "folder"),
    [("XDG_CACHE_HOME", "dubito"), ("LOCALAPPDATA", "dubito"), ("HOME", ".cache/dubito")],
)
def test_default_cache_folder(variable, folder, toy_bytes, tmp_path, monkeypatch):
    for other in ("DUBITO_DATA", "DUBITO_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(other, raising=False)
    monkeypatch.setenv(variable, str(tmp_path))
    file = tmp_path / folder / "toy.csv.gz"
    file.parent.mkdir(parents=True)
    file.write_bytes(toy_bytes)
    assert load("toy").source == str(file)


def test_another_checksum_with_right_counts_is_unverified(places, toy_bytes):
    again = gzip.compress(gzip.decompress(toy_bytes), compresslevel=1, mtime=5)
    assert again != toy_bytes
    (places[0] / "toy.csv.gz").write_bytes(again)
    data = load("toy")
    assert data.verified is False
    assert data.y.tolist() == ["b", "a", "b", "b"]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("size,mood,target\n1.5,Low,b\n,High,a\n2.5,Low,b\n", "rows: expected 4, found 3"),
        (
            "size,mood,age,target\n1.5,Low,1,b\n,High,2,a\n2.5,Low,3,b\n4,High,4,b\n",
            "features: expected 2, found 3",
        ),
        (
            "size,mood,target\n1.5,Low,b\n,High,a\n2.5,Low,c\n4,High,b\n",
            "rows per class: expected {'a': 1, 'b': 3}, found {'a': 1, 'b': 2, 'c': 1}",
        ),
        (
            "size,mood,target\n1.5,Low,b\n3,High,a\n2.5,Low,b\n4,High,b\n",
            "missing values: expected 1, found 0",
        ),
        (
            "size,mood,target\n1.5,Low,b\n4,High,b\n2.5,Low,b\n,High,a\n",
            "training rows per class: expected {'a': 1, 'b': 2}, found {'b': 3}",
        ),
        (
            "size,mood,target\n150,Low,b\n,High,a\n250,Low,b\n400,High,b\n",
            "mean of all values: expected 1.42857, found 114.571",
        ),
    ],
    ids=["rows", "features", "classes", "missing", "order", "scale"],
)
def test_wrong_counts_are_refused(text, complaint, places):
    (places[0] / "toy.csv.gz").write_bytes(gzip.compress(text.encode()))
    with pytest.raises(DatasetError) as refusal:
        load("toy")
    assert complaint in str(refusal.value)
    assert "the toy shop" in str(refusal.value)


@pytest.mark.parametrize("damage", ["truncated", "garbled", "not gzip", "empty", "not text"])
def test_damaged_files_are_named(damage, places, toy_bytes):
    file = places[0] / "toy.csv.gz"
    middle = len(toy_bytes) // 2
    file.write_bytes(
        {
            "truncated": toy_bytes[:-12],
            "garbled": toy_bytes[:middle] + bytes(8) + toy_bytes[middle + 8 :],
            "not gzip": b"size,mood,target\n1,2,a\n",
            "empty": b"",
            "not text": gzip.compress(b"\xff\xfe\x00"),
        }[damage]
    )
    with pytest.raises(DatasetError) as refusal:
        load("toy")
    assert str(file) in str(refusal.value)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "last column is 'target'"),
        ("1,2,b\n3,4,a\n", "it begins with '1,2,b'"),
        ("size,mood,target\n", "no data"),
        ("size,mood,target\n1,Low,b\n1,a\n", "cannot be read"),
        ("size,mood,target\n1,Middling,b\n", "cannot be read"),
        ("size,mood,target\n1,b\n2,a\n", "names 2 features"),
    ],
)
def test_unreadable_tables_are_explained(text, complaint, places):
    (places[0] / "toy.csv.gz").write_bytes(gzip.compress(text.encode()))
    with pytest.raises(DatasetError, match=r"toy\.csv\.gz") as refusal:
        load("toy")
    assert complaint in str(refusal.value)


def test_windows_line_ends_and_a_last_blank_line_are_read(places, toy_bytes):
    text = gzip.decompress(toy_bytes).replace(b"\n", b"\r\n") + b"\r\n"
    (places[0] / "toy.csv.gz").write_bytes(gzip.compress(text))
    assert load("toy").X.shape == (4, 2)


def test_missing_dataset_error_lists_places_and_advice(places):
    with pytest.raises(DatasetError) as refusal:
        load("toy")
    message = str(refusal.value)
    for place in (*places, "OpenML dataset 77", "the tests have no network"):
        assert str(place) in message
    for advice in ("set DUBITO_DATA", "toy.csv.gz", "the toy shop", "the toy mirror"):
        assert advice in message


def test_missing_dataset_without_openml(toy, monkeypatch):
    monkeypatch.delenv("DUBITO_DATA")
    replace_toy(monkeypatch, toy, openml=None)
    with pytest.raises(DatasetError) as refusal:
        load("toy")
    assert "DUBITO_DATA: not set" in str(refusal.value)
    assert "no copy there is known" in str(refusal.value)


@pytest.mark.parametrize(
    ("name", "suggestion"), [("Iris", "'iris'"), ("wine-quality-red", "'winequality_red'")]
)
def test_unknown_name_suggests_and_lists(name, suggestion):
    with pytest.raises(ValueError, match="unknown dataset") as refusal:
        load(name)
    assert f"Did you mean {suggestion}" in str(refusal.value)
    assert "australian, dermatology" in str(refusal.value)


def test_name_far_from_all_is_not_guessed():
    with pytest.raises(ValueError, match=r"unknown dataset 'zzz'\. Known: australian"):
        load("zzz")


def test_name_must_be_a_string():
    with pytest.raises(TypeError, match="name must be a string; got int"):
        load(3)


def test_groups_are_read_from_beside_the_file(toy, places, toy_bytes, monkeypatch):
    replace_toy(monkeypatch, toy, groups_file="toy_groups.csv")
    (places[0] / "toy.csv.gz").write_bytes(toy_bytes)
    assert load("toy").groups is None
    groups = places[0] / "toy_groups.csv"
    groups.write_text("split,speaker\nTrain,Ann\nTrain,Bob\nTrain,Ann\nTest,Cy\n", encoding="utf-8")
    assert load("toy").groups.tolist() == ["Ann", "Bob", "Ann", "Cy"]


@pytest.mark.parametrize("text", ["speaker\nAnn\nBob\n", "person\nAnn\nBob\nAnn\nCy\n"])
def test_groups_that_do_not_fit_are_refused(text, toy, places, toy_bytes, monkeypatch):
    replace_toy(monkeypatch, toy, groups_file="toy_groups.csv")
    (places[0] / "toy.csv.gz").write_bytes(toy_bytes)
    (places[0] / "toy_groups.csv").write_text(text, encoding="utf-8")
    with pytest.raises(DatasetError, match="column 'speaker' and 4 rows"):
        load("toy")
