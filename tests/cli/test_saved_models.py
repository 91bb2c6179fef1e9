"""The columns and labels of a model in a table."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from dubito.cli.console import CliError
from dubito.cli.labels import as_classes, label_codes, label_column, true_labels
from dubito.cli.saved_models import (
    labelled_chunks,
    model_inputs,
    model_types,
    naming_file_in_errors,
)
from dubito.cli.tables import Table, refuse_missing

COLUMNS = tuple(f"c{k}" for k in range(10))


def saved(**stamp):
    """A saved model, as far as its inputs go."""
    stamp = {
        "kind": "scores",
        "columns": COLUMNS,
        "column_types": ("number",) * 10,
        "label": "y",
        "classes": ["cat", "dog"],
        "options": {},
    } | stamp
    model = SimpleNamespace(n_features_in_=len(stamp["columns"]) or 2)
    return SimpleNamespace(model=model, stamp=SimpleNamespace(**stamp))


def refusal(call, *arguments, **options):
    with pytest.raises(CliError) as caught:
        call(*arguments, **options)
    return str(caught.value)


def frame_of(**cells):
    return pd.DataFrame({name: [0.0, 1.0, 2.0] for name in COLUMNS} | cells)


def test_scores_are_an_array_in_the_models_order():
    frame = frame_of()[[*reversed(COLUMNS)]].assign(c3=[7.0, 8.0, 9.0], other="x")
    X = model_inputs(saved(), frame, path="new.csv")
    assert isinstance(X, np.ndarray)
    assert X.shape == (3, 10)
    assert X[:, 3].tolist() == [7, 8, 9]


def test_features_are_a_table_in_the_models_order():
    model = saved(kind="features", columns=("b", "a"), column_types=("text", "number"))
    frame = pd.DataFrame({"a": [1.0], "b": ["x"], "z": [0]})
    X = model_inputs(model, frame, path="new.csv")
    assert X.columns.tolist() == ["b", "a"]


def test_a_missing_column_is_named_with_those_of_the_model():
    frame = frame_of().drop(columns="c7")
    assert refusal(model_inputs, saved(), frame, path="new.csv") == (
        "column 'c7' is missing from new.csv. The model was fitted on columns c0 … c9."
    )


@pytest.mark.usefixtures("in_folder")
def test_a_misspelled_column_is_suggested_but_not_one_of_another_meaning():
    model = saved(columns=("score_1", "score_2"), column_types=("number",) * 2)
    pd.DataFrame({"score_2": [0.0], "Score1": [0.0]}).to_csv("new.csv", index=False)
    assert refusal(model_types, model, Table("new.csv")) == (
        "column 'score_1' is missing from new.csv. Did you mean 'Score1'? "
        "The model was fitted on columns score_1, score_2."
    )


@pytest.mark.usefixtures("in_folder")
def test_a_model_without_names_takes_the_numbers_of_the_table():
    model = saved(columns=(), column_types=())
    pd.DataFrame({"a": [1.0], "w": ["x"], "b": [2.0], "y": [0]}).to_csv("new.csv", index=False)
    assert model_types(model, Table("new.csv")) == {"a": "number", "b": "number"}
    pd.DataFrame({"a": [1.0], "y": [0]}).to_csv("new.csv", index=False)
    assert refusal(model_types, model, Table("new.csv")).startswith(
        "the model was fitted on 2 columns without names, but new.csv has 1 column of numbers (a)."
    )


@pytest.mark.usefixtures("in_folder")
@pytest.mark.parametrize("labels", [["cat", "dog"], [0, 1]])
def test_the_labels_of_a_table_are_no_input_of_a_model_without_names(labels):
    model = saved(columns=(), column_types=(), label=None, classes=labels)
    table = pd.DataFrame({"a": [1.0, 2.0], "said": labels, "b": [3.0, 4.0]})
    table.to_csv("new.csv", index=False)
    (chunk,) = labelled_chunks(model, "new.csv", "said")
    np.testing.assert_array_equal(chunk.X, table[["a", "b"]])
    assert chunk.y.tolist() == labels


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_scores_that_are_not_numbers_name_the_first_row(bad):
    frame = frame_of(c3=[0.0, bad, 0.0], c5=[0.0, bad, bad])
    frame.index = [100, 101, 102]
    assert refusal(model_inputs, saved(), frame, path="new.csv") == (
        "new.csv has 2 rows with empty cells, nan or infinite numbers (first: row 101, column "
        "'c3'). Drop or fill these rows first."
    )


def test_a_model_that_fills_empty_cells_gets_them():
    model = saved(
        kind="features",
        columns=("a", "b"),
        column_types=("number", "text"),
        options={"impute": True},
    )
    frame = pd.DataFrame({"a": [np.nan], "b": [None]})
    assert model_inputs(model, frame, path="new.csv").isna().all(axis=None)
    frame["a"] = np.inf
    assert "1 row with infinite numbers" in refusal(model_inputs, model, frame, path="new.csv")


def test_complete_rows_pass_and_the_same_with_a_hole_do_not():
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"], "c": [1, 2]})
    assert refuse_missing(frame, "t.csv") is None
    frame.loc[1, "b"] = None
    assert "'b'" in refusal(refuse_missing, frame, "t.csv")


@pytest.mark.parametrize(
    ("classes", "labels", "codes"),
    [
        (["cat", "dog"], ["dog", "cat", "dog"], [1, 0, 1]),
        ([0, 1], ["1", "0", "1.0"], [1, 0, 1]),
        ([0, 1], [1, 0, 1], [1, 0, 1]),
        ([False, True], ["True", "false", "TRUE"], [1, 0, 1]),
        ([False, True], [True, False, True], [1, 0, 1]),
        (["01", "1"], ["1", "01", "1"], [1, 0, 1]),
        (["no", "yes"], ["yes", "no", "yes"], [1, 0, 1]),
    ],
)
def test_labels_are_the_models_classes(classes, labels, codes):
    frame = pd.DataFrame({"y": labels})
    found = true_labels(saved(classes=classes), frame, None, path="t.csv")
    assert found.tolist() == [classes[code] for code in codes]


def test_unknown_labels_are_named_with_the_known():
    column = pd.Series(["cat", "cow", "owl", "cow"], name="y")
    assert refusal(label_codes, column, ["cat", "dog"], path="t.csv") == (
        "column 'y' of t.csv has labels that are not among the classes: 'cow', 'owl' (first: row "
        "1). The classes are cat, dog."
    )
    many = pd.Series(range(20), name="y")
    assert "'0', '1', '2', '3', '4' and 15 more" in refusal(label_codes, many, ["x"], path="t.csv")


def test_missing_labels_are_an_error():
    column = pd.Series(["cat", None, "dog", None], name="y")
    message = "column 'y' of t.csv has no label in rows 1 and 3. Drop such rows first."
    assert refusal(label_codes, column, ["cat", "dog"], path="t.csv") == message
    assert refusal(as_classes, column, "t.csv") == message


def test_the_label_column_is_given_or_from_the_stamp():
    assert label_column(saved(), None) == "y"
    assert label_column(saved(), "z") == "z"
    assert refusal(label_column, saved(label=None), None) == (
        "which column holds the true labels? Say --label COLUMN."
    )
    assert refusal(true_labels, saved(), pd.DataFrame({"z": [1]}), None, path="t.csv") == (
        "column 'y' is missing from t.csv. Say --label COLUMN."
    )


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        (["10", "9", "-1"], [10, 9, -1]),
        (["01", "02"], ["01", "02"]),
        (["1", "x"], ["1", "x"]),
        (["1.0", "2.0"], [1, 2]),
        (["1.0", "1.5"], ["1.0", "1.5"]),
        (["1", str(2**63)], ["1", str(2**63)]),
        (["1", "9" * 5000], ["1", "9" * 5000]),
        ([1.0, 1e300], [1.0, 1e300]),
        (["true", "false"], ["true", "false"]),
        ([True, False], [True, False]),
        ([1.0, 2.0], [1, 2]),
        ([3, 4], [3, 4]),
    ],
)
def test_labels_become_classes_as_they_are_written(labels, classes):
    found = as_classes(pd.Series(labels, name="y"), "t.csv").tolist()
    assert found == classes
    assert [type(label) for label in found] == [type(label) for label in classes]


def test_errors_of_a_model_name_the_file():
    def refuse():
        with naming_file_in_errors("t.csv"):
            raise ValueError("too odd")

    assert refusal(refuse) == "the model could not take the rows of t.csv: too odd"
