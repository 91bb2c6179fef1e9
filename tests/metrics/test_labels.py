"""Columns of labels."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from dubito import metrics
from dubito.belief import Bounds, Frame
from dubito.metrics import coverage, expected_calibration_error


def columns(y, k, classes=None):
    """Return the column of each label: the one class that covers it."""

    def covers(row, column):
        sets = np.ones((len(y), k), dtype=bool)
        sets[row] = np.arange(k) == column
        return coverage(y, sets, classes=classes) == 1

    return [next(j for j in range(k) if covers(i, j)) for i in range(len(y))]


@pytest.mark.parametrize(
    ("y", "k", "expected"),
    [
        ([0, 2, 2], 4, [0, 2, 2]),  # column numbers, though not all are seen
        ([1, 2, 3], 3, [0, 1, 2]),  # 3 is no column number, and three labels fill three columns
        ([10, -5], 2, [1, 0]),
        ([0.0, 2.0, 1.0], 3, [0, 2, 1]),
        ([0.5, 0.1], 2, [1, 0]),
        ([-1, 1], 2, [0, 1]),
        ([True, False], 2, [1, 0]),
        (["b", "a", "b"], 2, [1, 0, 1]),
        (np.array([1, 0], dtype=object), 2, [1, 0]),
        (np.array([1, 0], dtype=np.uint8), 2, [1, 0]),
        (pd.Series([1, 0], dtype="Int64"), 2, [1, 0]),
        (pd.Series(["b", "a"], index=[7, 7]), 2, [1, 0]),
        (pl.Series(["b", "a"], dtype=pl.Categorical), 2, [1, 0]),
    ],
)
def test_evident_columns(y, k, expected):
    assert columns(y, k) == expected


def test_classes_set_the_columns():
    assert columns([0, 1], 2, [1, 0]) == [1, 0]
    assert columns(["x"], 3, np.array(["z", "y", "x"])) == [2]
    assert columns(pd.Series(["x", "z"]), 3, pl.Series(["z", "y", "x"])) == [2, 0]
    assert columns([1.0, 2.0], 2, [2, 1]) == [1, 0]
    assert columns([True], 2, np.array([False, True])) == [1]


def test_binary_probabilities_are_of_the_second_class():
    p = [0.9, 0.1]
    assert expected_calibration_error([1, -1], p) == pytest.approx(0.1)
    assert expected_calibration_error(["yes", "no"], p) == pytest.approx(0.1)
    assert expected_calibration_error(["yes", "no"], p, classes=["yes", "no"]) == pytest.approx(0.9)
    assert expected_calibration_error([1, 1], [1.0, 1.0]) == 0


def test_unclear_columns_are_refused():
    with pytest.raises(ValueError, match=r"1 distinct labels \('a'\) for 2 columns.*Pass classes="):
        columns(["a", "a"], 2)
    with pytest.raises(ValueError, match=r"4 distinct labels .* for 3 columns"):
        columns([5, 6, 7, 8], 3)
    with pytest.raises(ValueError, match=r"unclear.*Pass classes="):
        columns(np.array(["a", 1], dtype=object), 2)
    with pytest.raises(ValueError, match="and 3 more"):
        columns(list("abcdefgh"), 2)


def test_wrong_classes_are_refused():
    with pytest.raises(ValueError, match=r"does not list: 'd'\. classes lists 'a', 'b'"):
        columns(["a", "d", "d"], 2, ["a", "b"])
    with pytest.raises(ValueError, match=r"does not list: '1'\. classes lists 0, 1"):
        columns(["1"], 2, [0, 1])
    with pytest.raises(ValueError, match="each label once; repeated: 'a'"):
        columns(["a"], 3, ["a", "b", "a"])
    with pytest.raises(ValueError, match=r"classes lists 2 labels \('a', 'b'\) for 3 columns"):
        columns(["a"], 3, ["a", "b"])
    with pytest.raises(ValueError, match="classes must hold one label per row"):
        columns(["a"], 2, [["a", "b"]])


@pytest.mark.parametrize(
    "y",
    [
        [0.0, np.nan],
        np.array(["a", None], dtype=object),
        pd.Series(["a", None]),
        pd.Series([1, None], dtype="Int64"),
        np.array([1, pd.NA], dtype=object),
        pl.Series(["a", None]),
        np.array(["2024-01-01", "NaT"], dtype="datetime64[D]"),
    ],
)
def test_missing_labels_are_refused(y):
    with pytest.raises(ValueError, match=r"y_true has no label in row 1\. Drop"):
        columns(y, 2)


def test_labels_of_rows_of_weight_zero_are_ignored():
    sets = [[True, False], [False, True], [True, True]]
    y, weight = ["a", "b", "?"], [1, 1, 0]
    assert coverage(y, sets, sample_weight=weight) == coverage(["a", "b"], sets[:2]) == 1
    assert coverage(y, sets, classes=["a", "b"], sample_weight=weight) == 1


def test_labels_that_may_count_from_one_are_warned_about():
    sets = [[1, 0, 0], [0, 1, 0], [1, 0, 0]]
    with pytest.warns(
        metrics.AmbiguousLabelWarning, match=r"labels 1..2 and is taken.*pass classes="
    ):
        assert metrics.u80([1, 2, 1], sets) == 0
    assert metrics.u80([1, 2, 1], sets, classes=[1, 2, 3]) == 1
    assert metrics.u80([1, 1], [[0, 1], [0, 1]]) == 1  # two classes are 0 and 1


def test_a_missing_label_among_strings_is_refused():
    with pytest.raises(ValueError, match="y_true has no label in row 1"):
        metrics.coverage(["a", float("nan")], [[1, 0], [0, 1]])


def test_labels_of_mixed_types_keep_their_types():
    sets = [[1, 0], [0, 1]]
    assert metrics.coverage([1, "a"], sets, classes=[1, "a"]) == 1
    assert metrics.coverage(np.array([1, "a"], dtype=object), sets, classes=[1, "a"]) == 1


def test_a_frame_is_accepted_as_classes():
    assert metrics.coverage(["b"], [[0, 1, 0]], classes=Frame(["a", "b", "c"])) == 1


def test_bounds_are_refused_as_sets():
    with pytest.raises(TypeError, match=r"got Bounds\. A decision rule makes sets of it"):
        metrics.coverage([0], Bounds([[0.5, 0.5]], [[0.5, 0.5]]))
