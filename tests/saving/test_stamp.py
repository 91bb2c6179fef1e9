"""The stamp of a model is read back unchanged: columns, classes, options."""

from __future__ import annotations

import json
from collections import OrderedDict

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.naive_bayes import GaussianNB

from dubito.calibration import CalibratedClassifier, EvidentialJointCalibrator, PlattCalibrator
from dubito.saving import ModelFileError, Saved, Stamp, load, read_stamp, save
from dubito.testing.calibrators import draw_scores
from saving.forging import forge, members_of

SCORES = [-2.0, -1.0, 0.5, 3.0]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.skops"


def platt(labels=("no", "no", "yes", "yes")):
    return PlattCalibrator().fit(SCORES, labels)


def bayes(n_columns=3):
    rows = np.random.default_rng(0).normal(size=(20, n_columns))
    return GaussianNB().fit(rows, np.resize([0, 1], 20))


def test_all_given_fields_are_read_back(path):
    given = {
        "columns": {"town": "text", "age": "number", "größe": "number"},
        "label": "krank?",
        "method": "bayes",
        "rows": np.int64(20),
        "options": {"impute": True, "seed": 3, "names": ["a", None], "deep": {"x": 0.1}},
    }
    stamp = save(bayes(), path, **given)
    assert stamp == read_stamp(path) == load(path).stamp
    assert stamp.columns == ("town", "age", "größe")
    assert stamp.column_types == ("text", "number", "number")
    assert (stamp.label, stamp.method, stamp.rows) == ("krank?", "bayes", 20)
    assert stamp.options == given["options"]
    assert stamp.kind == "features"


def test_the_stamp_is_readable_text_in_the_file(path):
    save(platt(), path, columns=["score"], kind="scores")
    raw = json.loads(members_of(path)["dubito.json"])
    assert raw["columns"] == ["score"]
    assert raw["classes"] == ["no", "yes"]


def test_saved_is_a_pair(path):
    stamp = save(platt(), path)
    saved = load(path)
    assert isinstance(saved, Saved)
    model, again = saved
    assert isinstance(again, Stamp)
    assert again == stamp
    assert isinstance(model, PlattCalibrator)


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        (["no", "no", "yes", "yes"], ["no", "yes"]),
        (np.array([3, 3, 10**15, 10**15]), [3, 10**15]),
        ([1.0, 1.0, 2.0, 2.0], [1.0, 2.0]),
        ([False, False, True, True], [False, True]),
        (np.array(["a", "a", "b", "b"], dtype=object), ["a", "b"]),
        (pd.Series(["a", "a", "b", "b"], dtype="category"), ["a", "b"]),
        (np.array([1, 1, 2, 2], dtype=np.int8), [1, 2]),
        (["01", "01", "1", "1"], ["01", "1"]),
        (["nein", "nein", "ja\n", "ja\n"], ["ja\n", "nein"]),
    ],
)
def test_classes_keep_their_kind(path, labels, classes):
    model = platt(labels)
    save(model, path)
    loaded = load(path)
    assert loaded.stamp.classes == classes
    assert [type(label) for label in loaded.stamp.classes] == [type(label) for label in classes]
    assert loaded.model.classes_.dtype == model.classes_.dtype
    np.testing.assert_array_equal(loaded.model.classes_, model.classes_)


@pytest.mark.parametrize(
    "odd",
    [
        np.array(["2020-01-01", "2021-01-01"], dtype="datetime64[D]"),
        np.array([b"no", b"yes"]),
        np.array([0.0, np.nan]),
        np.array([None, "yes"], dtype=object),
        [np.array([0, 1]), np.array([0, 1])],
    ],
)
def test_classes_that_no_file_can_hold_are_refused(path, odd):
    model = platt()
    model.classes_ = odd
    with pytest.raises(ModelFileError, match=r"text, numbers or True and False.*y\.astype\(str\)"):
        save(model, path)


@pytest.mark.parametrize(
    "model", [PlattCalibrator(), LinearRegression(), CalibratedClassifier(), 3]
)
def test_what_is_no_fitted_classifier_is_refused(path, model):
    with pytest.raises(ModelFileError, match="Fit it before saving"):
        save(model, path)
    assert not path.exists()


def test_columns_are_those_the_model_was_fitted_with(path):
    table = pd.DataFrame({"b": SCORES, "a": [1.0, 2.0, 1.0, 0.0]})
    save(GaussianNB().fit(table, [0, 0, 1, 1]), path)
    assert read_stamp(path).columns == ("b", "a")
    assert read_stamp(path).column_types == ("number", "number")
    save(bayes(), path, force=True)
    assert read_stamp(path).columns == ()


@pytest.mark.parametrize(
    "columns", [["a", "b", "c"], ("a", "b", "c"), OrderedDict(a="number", b="number", c="number")]
)
def test_columns_may_be_a_list_or_a_dict(path, columns):
    assert save(bayes(), path, columns=columns).columns == ("a", "b", "c")


def test_columns_may_come_one_by_one(path):
    assert save(bayes(), path, columns=(name for name in "abc")).columns == ("a", "b", "c")


@pytest.mark.parametrize(
    ("columns", "error", "match"),
    [
        ("abc", TypeError, "list of names"),
        (["a", "b"], ValueError, "2 names, but the model was fitted on 3"),
        (["a", "b", "a"], ValueError, "different names"),
        (["a", "b", 3], TypeError, "named by text; got 3"),
        ({"a": "number", "b": "text", "c": "image"}, ValueError, r"columns\['c'\] must be one of"),
    ],
)
def test_columns_that_make_no_sense(path, columns, error, match):
    with pytest.raises(error, match=match):
        save(bayes(), path, columns=columns)
    assert not path.exists()


def test_a_joint_calibrator_has_a_column_for_each_class_of_each_classifier(path):
    scores = np.stack([draw_scores(40, 3, seed=seed)[0] for seed in range(2)], axis=1)
    model = EvidentialJointCalibrator().fit(scores, draw_scores(40, 3)[1])
    stamp = save(model, path, kind="scores", columns=[f"c{j}" for j in range(6)])
    assert len(stamp.columns) == 6


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"kind": "pictures"}, "kind must be one of"),
        ({"label": 3}, "label must be text or None"),
        ({"method": b"x"}, "method must be text or None"),
        ({"rows": "many"}, "rows must be how many"),
        ({"rows": -1}, "rows must be how many"),
        ({"rows": True}, "rows must be how many"),
        ({"options": {"x": np.float64(1).astype(np.float32)}}, "plain JSON values"),
        ({"options": {"x": float("nan")}}, "plain JSON values"),
        ({"options": {"x": {1, 2}}}, "plain JSON values"),
        ({"options": {"x": (1, 2)}}, "plain JSON values"),
        ({"options": {1: 2}}, "plain JSON values"),
    ],
)
def test_invalid_fields_are_errors(path, options, match):
    with pytest.raises((TypeError, ValueError), match=match):
        save(platt(), path, **options)
    assert not path.exists()


def test_options_are_a_copy(path):
    options = {"columns": ["a"]}
    stamp = save(platt(), path, options=options)
    options["columns"].append("b")
    assert stamp.options == {"columns": ["a"]}


@pytest.mark.parametrize(
    "fields",
    [
        {"classes": [1, 0]},
        {"classes": ["0", "1"]},
        {"classes": [0, 1, 2]},
        {"classes": [False, True]},
        {"columns": ["a"], "column_types": ["number"]},
    ],
)
def test_a_stamp_of_another_model_is_refused(fields, path):
    """Outputs read by the classes of the stamp would be assigned to wrong classes."""
    save(bayes(), path, columns=["a", "b", "c"])
    forge(path, stamp=lambda stamp: stamp.update(fields))
    with pytest.raises(ModelFileError, match="other classes or columns than its model"):
        load(path)


@pytest.mark.parametrize(
    "fields",
    [
        {"rows": -5},
        {"classes": []},
        {"classes": [0.0, float("nan")]},
        {"classes": [0.0, float("inf")]},
        {"columns": ["a", "a", "b"]},
        {"dubito": "9\x1b[31m. All is well"},
        {"versions": {"numpy": "2\n"}},
    ],
)
def test_a_stamp_that_no_save_writes_is_refused(fields, path):
    save(bayes(), path, columns=["a", "b", "c"])
    forge(path, stamp=lambda stamp: stamp.update(fields))
    with pytest.raises(ModelFileError, match=f"no valid {next(iter(fields))}"):
        read_stamp(path)


def test_a_writer_that_is_none_is_not_repeated(path):
    save(bayes(), path)
    forge(path, stamp=lambda stamp: stamp.update(format=99, dubito="9\x1b[31m\n"))
    with pytest.raises(ModelFileError, match="written by an unknown dubito"):
        read_stamp(path)
