"""`dubito evaluate`: its numbers are the library's, and what it refuses."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression
from typer.testing import CliRunner

from dubito.cli import build_app, saved_models
from dubito.datasets import load as load_dataset
from dubito.metrics import evaluate
from dubito.saving import load, save


def wines():
    data = load_dataset("wine")
    names = np.array(["barolo", "grignolino", "barbera"])
    return pd.DataFrame(data.X, columns=data.feature_names).assign(wine=names[data.y])


@pytest.fixture(scope="module")
def wine_models(tmp_path_factory):
    """Two models of wines, trained on every other row."""
    folder = tmp_path_factory.mktemp("wine")
    wines()[::2].to_csv(folder / "train.csv", index=False)
    models = {}
    for name in ("evidential-logistic", "imprecise"):
        models[name] = folder / f"{name}.skops"
        arguments = ["train", folder / "train.csv", "-y", "wine", "-m", name, "--cv", 0]
        ran = CliRunner().invoke(build_app(), [*map(str, arguments), "-o", str(models[name])])
        assert ran.exit_code == 0, ran.output
    return models


@pytest.fixture
def unseen(in_folder):
    """The rows that the models have not seen, in test.csv."""
    frame = wines()[1::2].reset_index(drop=True)
    frame.to_csv(in_folder / "test.csv", index=False)
    return frame


def ours(path, frame, label="wine", **options):
    model, stamp = load(path)
    X = frame[list(stamp.columns)]
    X = X.to_numpy() if stamp.kind == "scores" else X
    doubt = {"bounds": model.predict_bounds(X), "sets": model.predict_set(X)}
    proba = model.predict_proba(X)
    return evaluate(frame[label], proba, **doubt, classes=stamp.classes, **options)


@pytest.mark.parametrize("rows_at_once", [None, 7])
def test_numbers_are_those_of_the_library(
    rows_at_once, wine_models, unseen, dubito_command, monkeypatch
):
    if rows_at_once:
        monkeypatch.setattr(saved_models, "chunk_rows", lambda _: rows_at_once)
    path = wine_models["imprecise"]
    result = dubito_command("evaluate", path, "test.csv", "--n-boot", 50, "--seed", 3, "--json")
    assert result.exit_code == 0, result.output
    facts = json.loads(result.stdout)
    assert (facts["rows"], facts["classes"], facts["n_boot"]) == (89, 3, 50)
    expected = ours(path, unseen, n_boot=50, random_state=3)
    found = facts["models"]["imprecise"]
    assert list(found) == list(expected)
    for key, estimate in expected.items():
        assert list(found[key].values()) == pytest.approx(list(estimate)), key


@pytest.mark.usefixtures("unseen")
def test_a_table_for_people(wine_models, dubito_command):
    result = dubito_command("evaluate", wine_models["evidential-logistic"], "test.csv")
    assert result.exit_code == 0, result.output
    head, names, *lines, bounds = result.stdout.splitlines()
    assert head == "test.csv: 89 rows, 3 classes; 95% intervals in brackets."
    assert names.split() == ["95%", "interval", "better"]
    assert bounds == "Bounds are belief and plausibility."
    assert lines[0].split(maxsplit=2)[:2] == ["right", "(accuracy)"]
    assert lines[0].endswith("higher")
    assert next(line for line in lines if "log loss" in line).endswith("lower")
    for trade_off in ("true class in the set", "classes in the set", "  sets of one class"):
        line = next(line for line in lines if trade_off in line)
        assert line.endswith(")"), "neither end is better by itself"
    assert len(lines) == 16
    assert len({line.rindex("(") for line in lines}) == 1, "brackets stand below one another"
    assert max(map(len, lines)) < 80


@pytest.mark.usefixtures("unseen")
def test_models_side_by_side(wine_models, dubito_command):
    first, second = wine_models.values()
    result = dubito_command("evaluate", first, "test.csv", "--compare", second)
    assert result.stdout.splitlines()[1].split() == [*wine_models, "better"]
    facts = json.loads(
        dubito_command("evaluate", first, "test.csv", "--compare", second, "--json").stdout
    )
    assert list(facts["models"]) == list(wine_models)


def test_without_bounds_measures_of_bounds_and_sets_are_left_out(
    saved_models, scores, dubito_command
):
    both = [
        saved_models["evidential-multinomial"],
        "scores.csv",
        "--compare",
        saved_models["plain"],
    ]
    result = dubito_command("evaluate", *both)
    assert result.exit_code == 0, result.output
    assert result.stderr == "note: plain has no bounds; measures of bounds and sets are left out.\n"
    u80 = next(line for line in result.stdout.splitlines() if line.strip().startswith("u80"))
    assert u80.split()[-2:] == ["-", "higher"]
    facts = json.loads(dubito_command("evaluate", *both, "--json").stdout)["models"]
    assert "u80" in facts["evidential-multinomial"]
    assert "u80" not in facts["plain"]
    expected = ours(saved_models["evidential-multinomial"], scores, label="y")
    assert facts["evidential-multinomial"]["u80"]["value"] == pytest.approx(expected["u80"].value)


def test_without_resamples_there_are_fewer_intervals(wine_models, unseen, dubito_command):
    result = dubito_command(
        "evaluate", wine_models["imprecise"], "test.csv", "--n-boot", 0, "--json"
    )
    loss = json.loads(result.stdout)["models"]["imprecise"]["log_loss"]
    assert loss["value"] == pytest.approx(ours(wine_models["imprecise"], unseen)["log_loss"].value)
    assert loss["low"] is loss["high"] is None


def test_a_fraction_of_no_rows_is_null(saved_models, in_folder, dubito_command):
    # Equal scores do not distinguish classes, so that no set is a single class.
    pd.DataFrame(
        {"cat": [0.0] * 4, "cow": 0.0, "dog": 0.0, "y": ["cat", "cow", "dog", "cat"]}
    ).to_csv(in_folder / "alike.csv", index=False)
    model = saved_models["evidential-multinomial"]
    facts = json.loads(dubito_command("evaluate", model, "alike.csv", "--json").stdout)
    measured = facts["models"]["evidential-multinomial"]
    assert measured["determinacy"]["value"] == 0
    assert measured["single_class_accuracy"] == {"value": None, "low": None, "high": None}
    text = dubito_command("evaluate", model, "alike.csv").stdout
    shown = next(line for line in text.splitlines() if "right in sets of one class" in line)
    assert shown.split()[-2:] == ["-", "higher"]


def test_parquet_and_another_label(wine_models, unseen, dubito_command):
    pl.DataFrame(unseen.rename(columns={"wine": "kind"}).to_dict("list")).write_parquet("t.parquet")
    path = wine_models["imprecise"]
    result = dubito_command("evaluate", path, "t.parquet", "--label", "kind", "--json")
    found = json.loads(result.stdout)["models"]["imprecise"]["accuracy"]["value"]
    assert found == pytest.approx(ours(path, unseen)["accuracy"].value)


def test_the_training_file_itself_is_noticed(wine_models, dubito_command):
    path = wine_models["imprecise"]
    result = dubito_command("evaluate", path, path.parent / "train.csv")
    assert result.exit_code == 0
    assert result.stderr.startswith(
        f"note: imprecise was trained on {path.parent / 'train.csv'} itself"
    )
    facts = json.loads(dubito_command("evaluate", path, path.parent / "train.csv", "--json").stdout)
    assert facts["trained_on_this_file"] is True


def test_one_row(wine_models, unseen, dubito_command):
    unseen[:1].to_csv("one.csv", index=False)
    result = dubito_command("evaluate", wine_models["imprecise"], "one.csv")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("one.csv: 1 row")


def test_missing_and_empty_and_unknown(wine_models, unseen, refused):
    path = wine_models["imprecise"]
    unseen.drop(columns="hue").to_csv("a.csv", index=False)
    assert refused("evaluate", path, "a.csv").startswith("column 'hue' is missing from a.csv.")
    unseen.assign(hue=np.where(np.arange(89) == 17, np.nan, 1)).to_csv("b.csv", index=False)
    assert "row 17, column 'hue'" in refused("evaluate", path, "b.csv")
    unseen.assign(wine=unseen["wine"].where(unseen.index != 5, "merlot")).to_csv(
        "c.csv", index=False
    )
    assert "'merlot' (first: row 5)" in refused("evaluate", path, "c.csv")
    assert "barbera, barolo, grignolino" in refused("evaluate", path, "c.csv")
    unseen.drop(columns="wine").to_csv("d.csv", index=False)
    message = refused("evaluate", path, "d.csv")
    assert message.startswith("column 'wine' is missing from d.csv.")
    assert refused("evaluate", path, "test.csv", "-y", "hue").startswith(
        "column 'hue' is one the model decides by"
    )
    assert "--label" in message


@pytest.mark.parametrize("command", ["evaluate", "report"])
def test_files_that_are_no_tables(command, wine_models, in_folder, refused):
    model = wine_models["imprecise"]
    assert refused(command, model, "test.csv") == "there is no file test.csv."
    (in_folder / "test.csv").touch()
    assert "test.csv is empty" in refused(command, model, "test.csv")
    (in_folder / "test.csv").write_bytes(b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR")
    assert "test.csv" in refused(command, model, "test.csv")
    (in_folder / "folder").mkdir()
    assert "folder is a folder" in refused(command, model, "folder")


@pytest.mark.parametrize("command", ["evaluate", "report"])
def test_names_without_rows(command, wine_models, unseen, refused):
    unseen[:0].to_csv("test.csv", index=False)
    message = refused(command, wine_models["imprecise"], "test.csv")
    assert message == "test.csv has column names and no rows. There is nothing to test on."


@pytest.mark.parametrize("command", ["evaluate", "report"])
def test_files_that_are_no_models(command, wine_models, unseen, in_folder, refused):
    assert "m.skops" in refused(command, "m.skops", "test.csv")  # absent
    unseen.to_csv("m.skops", index=False)
    assert "m.skops" in refused(command, "m.skops", "test.csv")  # a table
    whole = bytearray(wine_models["imprecise"].read_bytes())
    middle = len(whole) // 2
    whole[middle : middle + 200] = bytes(200)  # one bit may be of a zip field that changes nothing
    (in_folder / "m.skops").write_bytes(whole)
    assert "m.skops" in refused(command, "m.skops", "test.csv")  # damaged


@pytest.mark.parametrize("command", ["evaluate", "report"])
@pytest.mark.usefixtures("unseen")
def test_models_of_other_classes_are_not_compared(command, wine_models, saved_models, refused):
    others = ["--compare", saved_models["platt"]]
    message = refused(command, wine_models["imprecise"], "test.csv", *others)
    assert message.startswith(
        "imprecise and platt know different classes (barbera, barolo, grignolino; cat, cow, dog)."
    )


@pytest.mark.usefixtures("unseen")
def test_one_model_twice_is_not_compared(wine_models, refused):
    path = wine_models["imprecise"]
    message = refused("evaluate", path, "test.csv", "--compare", path)
    assert message == f"{path} is named twice. Compare it with another model."


def test_models_in_files_of_equal_names_are_distinguished(
    wine_models, unseen, in_folder, dubito_command
):
    (in_folder / "other").mkdir()
    X, y = unseen.drop(columns="wine"), unseen["wine"]
    save(LogisticRegression(max_iter=5000).fit(X, y), "other/imprecise.skops", label="wine")
    paths = [wine_models["imprecise"], "other/imprecise.skops"]
    result = dubito_command("evaluate", paths[0], "test.csv", "--compare", paths[1], "--json")
    assert list(json.loads(result.stdout)["models"]) == [str(path) for path in paths]


@pytest.mark.usefixtures("unseen")
def test_more_than_fits_is_refused(wine_models, refused, monkeypatch):
    monkeypatch.setattr(saved_models, "MOST_CELLS", 30)
    message = refused("evaluate", wine_models["imprecise"], "test.csv")
    assert message.startswith("test.csv has more than 10 rows, whose probabilities of 3 classes")
