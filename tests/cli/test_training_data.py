"""Which rows and columns `dubito train` learns from, and which it refuses."""

import json

import numpy as np
import pandas as pd
import pytest

from dubito.cli.training_data import TrainingData, split_training_data
from dubito.saving import load


@pytest.fixture
def data(in_folder):
    """80 patients in data.csv, and the table."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.normal(50, 10, 80).round(1), "ldl": rng.normal(5, 1, 80)})
    frame = frame.assign(city=["Rome", "Pisa", "Bari", "Bari"] * 20, y=["ill", "well"] * 40)
    frame.to_csv(in_folder / "data.csv", index=False)
    return frame


def write(frame, name="data.csv"):
    frame.to_csv(name, index=False)


def test_useless_columns_are_left_out_and_listed(data, dubito_command):
    more = {"id": range(1, 81), "name": [f"p{i}" for i in range(80)], "site": "north", "gap": None}
    write(data.assign(**more))
    result = dubito_command("train", "data.csv", "-y", "y", "-o", "m.skops", "--cv", 0)
    assert result.stdout.splitlines()[1] == (
        "Left out: column 'site' holds one value only, 'gap' is empty, 'id' counts the rows, "
        "'name' holds 80 different texts. (--columns names the columns to use.)"
    )
    assert load("m.skops").stamp.columns == ("age", "ldl", "city")


def test_columns_named_are_used(data, dubito_command):
    write(data.assign(id=range(80), name=[f"p{i}" for i in range(80)]))
    options = ["-y", "y", "-o", "m.skops", "--cv", 0, "--columns", "id,name,a*"]
    result = dubito_command("train", "data.csv", *options)
    assert "Left out" not in result.stdout
    assert load("m.skops").stamp.columns == ("id", "name", "age")


@pytest.mark.usefixtures("in_folder")
def test_without_a_column_to_learn_from(refused):
    write(pd.DataFrame({"id": range(30), "y": [0, 1] * 15}))
    message = refused("train", "data.csv", "-y", "y", "-o", "m.skops")
    assert message == (
        "data.csv has no column to learn from besides 'y': 'id' counts the rows. --columns names "
        "the columns to use."
    )


def test_empty_cells_are_refused_with_counts(data, refused):
    data.loc[[3, 4], "age"] = np.nan
    data.loc[7, "city"] = None
    write(data)
    message = refused("train", "data.csv", "-y", "y", "-o", "m.skops")
    assert message.startswith(
        "data.csv has empty cells: 'age' in 2 of 80 rows, 'city' in 1 of 80 rows. Fill them"
    )
    assert "--impute" in message


def test_infinite_numbers_are_refused(data, refused):
    data.loc[5, "ldl"] = np.inf
    write(data)
    message = refused("train", "data.csv", "-y", "y", "-o", "m.skops", "--impute")
    assert "infinite numbers (first: row 5, column 'ldl')" in message


@pytest.mark.usefixtures("data")
def test_the_target_must_be_there(refused):
    assert refused("train", "data.csv", "-o", "m.skops") == (
        "which column holds the classes? Say --target COLUMN. The columns are age, ldl, city, y."
    )
    message = refused("train", "data.csv", "--target", "citi", "-o", "m.skops")
    assert message.startswith("column 'citi' is missing from data.csv. Did you mean 'city'?")


def test_a_target_with_gaps_is_refused(data, refused):
    data.loc[[2, 9], "y"] = None
    write(data)
    message = refused("train", "data.csv", "-y", "y", "-o", "m.skops")
    assert message == "column 'y' of data.csv has no label in rows 2 and 9. Drop such rows first."


def test_one_class_is_refused(data, refused):
    write(data.assign(y="ill"))
    message = refused("train", "data.csv", "-y", "y", "-o", "m.skops")
    assert message.startswith("column 'y' of data.csv has one class only, 'ill', in 80 rows.")


def test_measurements_are_no_classes(data, refused, dubito_command):
    arguments = ["train", "data.csv", "-y", "age", "--columns", "ldl", "-o", "m.skops"]
    assert "looks like a measurement and not like classes" in refused(*arguments)
    write(data.assign(age=range(100, 180)))
    assert "80 different numbers from 100 to 179 in 80 rows" in refused(*arguments)
    write(data.assign(age=np.arange(80) % 4 / 2))  # few fractions are names
    assert dubito_command(*arguments, "--cv", 0).exit_code == 0
    assert load("m.skops").stamp.classes == ["0.0", "0.5", "1.0", "1.5"]


@pytest.mark.usefixtures("in_folder")
def test_many_numbers_are_classes_with_as_classes(refused, dubito_command):
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(60), 3)
    write(pd.DataFrame({"a": rng.normal(y), "b": rng.normal(size=180), "y": y}))
    arguments = ["train", "data.csv", "-y", "y", "-m", "nested", "-o", "m.skops"]
    assert "--as-classes" in refused(*arguments)
    assert dubito_command(*arguments, "--as-classes", "--cv", 2).exit_code == 0
    assert load("m.skops").stamp.classes == list(range(60))


def test_rows_set_aside_are_not_trained_on(data, in_folder, dubito_command):
    data = data.assign(code=["007", "7"] * 40)  # text that a number would spoil
    data.loc[3, "y"] = "rare"
    write(data)
    result = dubito_command(
        "train", "data.csv", "-y", "y", "-o", "m.skops", "--set-aside", "test.csv"
    )
    assert result.exit_code == 0, result.output
    tested = pd.read_csv("test.csv", dtype=str)
    whole = pd.read_csv("data.csv", dtype=str)
    assert list(tested.columns) == list(whole.columns)
    assert len(tested) == pytest.approx(0.3 * 80, abs=1)
    assert set(tested["y"]) == {"ill", "well"}  # the only row of a class stays
    assert set(map(tuple, tested.to_numpy())) <= set(map(tuple, whole.to_numpy()))
    assert result.stdout.startswith(f"Read {80 - len(tested)} rows")
    assert f"Set aside {len(tested)} rows that it has not seen: test.csv." in result.stdout
    assert load("m.skops").stamp.rows == 80 - len(tested)
    again = dubito_command("evaluate", "m.skops", "test.csv", "--json")
    assert json.loads(again.stdout)["trained_on_this_file"] is False
    assert sorted(file.name for file in in_folder.iterdir()) == ["data.csv", "m.skops", "test.csv"]


def test_set_aside_takes_a_row_of_each_class_and_never_the_last():
    y = np.array(["a"] * 50 + ["b"] * 2 + ["c"])
    rows = TrainingData(pd.DataFrame({"x": np.arange(53.0)}), y, {"x": "number"}, {})
    for fraction in (0.01, 0.5, 0.99):
        kept, aside = split_training_data(rows, fraction, seed=0)
        assert set(y[aside]) == {"a", "b"}
        assert set(kept.y) == {"a", "b", "c"}
        assert sorted([*kept.X["x"], *aside]) == list(range(53))
        np.testing.assert_array_equal(kept.y, y[kept.X["x"].astype(int)])


def test_files_that_would_overwrite_each_other_are_refused(data, refused):
    arguments = ["train", "data.csv", "-y", "y", "--force", "-o"]
    assert refused(*arguments, "data.csv").startswith("data.csv is named twice")
    assert refused(*arguments, "m.skops", "--set-aside", "./m.skops").startswith(
        "m.skops is named twice"
    )
    assert refused(*arguments, "m.skops", "--set-aside", "data.csv").startswith(
        "data.csv is named twice"
    )
    write(data, "test.csv")
    assert refused(*arguments[:-2], "-o", "m.skops", "--set-aside", "test.csv").startswith(
        "test.csv exists already."
    )


@pytest.mark.usefixtures("in_folder")
def test_nothing_can_be_set_aside(refused):
    write(pd.DataFrame({"a": [1.0, 2, 4], "y": ["u", "v", "w"]}))
    message = refused("train", "data.csv", "-y", "y", "-o", "m.skops", "--set-aside", "t.csv")
    assert message.startswith("no row can be set aside")
