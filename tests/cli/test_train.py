"""`dubito train`: its output, its errors, and measures of rows not seen in training."""

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_info, threadpool_limits

import dubito
from dubito.cli import recipes
from dubito.cli import train as train_command
from dubito.cli.console import Console
from dubito.cli.cross_validation import stratified_folds
from dubito.cli.recipes import RECIPES, Recipe
from dubito.metrics import evaluate
from dubito.saving import load


def patients(n, seed=0):
    """Two columns of numbers, one of text, and labels that follow them with some noise."""
    rng = np.random.default_rng(seed)
    city = rng.choice(["Rome", "Pisa", "Bari"], n)
    frame = pd.DataFrame(
        {"age": rng.normal(50, 10, n).round(1), "ldl": rng.normal(5, 1, n).round(2)}
    )
    risk = (frame["age"] - 50) / 10 + (frame["ldl"] - 5) + (city == "Rome") + rng.logistic(size=n)
    return frame.assign(city=city, y=np.where(risk > 0.3, "ill", "well"))


@pytest.fixture(autouse=True)
def small_forests(monkeypatch):
    """Ten trees are as good as a hundred here."""

    def forest(table):
        return RandomForestClassifier(10, random_state=table.seed)

    monkeypatch.setattr(recipes, "random_forest", forest)


@pytest.fixture
def data(in_folder):
    """80 patients in data.csv, and the table."""
    frame = patients(80)
    frame.to_csv(in_folder / "data.csv", index=False)
    return frame


def write(frame, name="data.csv"):
    frame.to_csv(name, index=False)


def test_the_rows_read_and_the_measures_are_printed(data, dubito_command):
    result = dubito_command("train", "data.csv", "--target", "y", "-o", "m.skops")
    assert result.exit_code == 0, result.output
    first, second, third, *_ = result.stdout.splitlines()
    assert first == (
        "Read 80 rows, 3 columns (2 of numbers, 1 of text), 2 classes in column 'y' (ill, well)."
    )
    assert second.startswith("Training calibrated-logistic (")
    assert third == "On rows a model had not seen (5 folds):"
    assert "right (accuracy)" in result.stdout
    assert "u80" in result.stdout
    assert "95% interval" in result.stdout
    assert result.stdout.splitlines()[-1] == "Next: dubito predict m.skops NEW.csv -o decisions.csv"
    model, stamp = load("m.skops")
    assert dict(zip(stamp.columns, stamp.column_types, strict=True)) == {
        "age": "number",
        "ldl": "number",
        "city": "text",
    }
    assert (stamp.kind, stamp.label, stamp.method, stamp.rows) == (
        "features", "y", "calibrated-logistic", 80
    )  # fmt: skip
    assert stamp.classes == ["ill", "well"]
    chosen = model.calibrated_classifiers_[0].calibrator.summary_
    assert f"Calibration: {chosen}." in result.stdout.splitlines()
    assert stamp.options["calibration"] == chosen
    X = data[["age", "ldl", "city"]]
    for level in (None, 0.9):
        bounds, proba = model.predict_bounds(X, level=level), model.predict_proba(X)
        assert ((bounds.lower <= proba) & (proba <= bounds.upper)).all()
    assert model.explain(X[:1]).names.tolist() == ["age", "ldl", "city"]


@pytest.mark.parametrize("name", RECIPES)
def test_every_model_takes_raw_tables_and_has_bounds(name, data, dubito_command):
    options = ["--model", name, "--cv", 2, "--json", "-o", "m.skops"]
    result = dubito_command("train", "data.csv", "-y", "y", *options)
    assert result.exit_code == 0, result.output
    facts = json.loads(result.stdout)
    assert facts["model"] == name
    assert facts["folds"] == 2
    measured = facts["cross_validation"]
    assert measured["accuracy"]["value"] > 0.5
    assert 1 <= measured["mean_set_size"]["value"] <= 2
    model, _ = load("m.skops")
    X = data[["age", "ldl", "city"]].assign(city="Oslo")  # never seen
    bounds, proba = model.predict_bounds(X), model.predict_proba(X)
    assert np.isfinite(proba).all()
    assert (bounds.lower <= bounds.upper + 1e-12).all()
    assert model.predict_set(X).any(axis=1).all()


def test_the_numbers_are_those_of_models_that_have_not_seen_the_rows(data, dubito_command):
    options = [
        "-m",
        "evidential-logistic",
        "--columns",
        "age,ldl",
        "--cv",
        4,
        "--seed",
        3,
        "--json",
        "-o",
        "m.skops",
    ]
    measured = json.loads(dubito_command("train", "data.csv", "-y", "y", *options).stdout)
    X, y = data[["age", "ldl"]], data["y"].to_numpy()
    proba = np.empty((80, 2))
    for train, test in stratified_folds(y, 4, seed=3):
        model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000))
        proba[test] = model.fit(X.iloc[train], y[train]).predict_proba(X.iloc[test])
    ours = evaluate(y, proba, classes=["ill", "well"])
    for key in ("accuracy", "log_loss", "ece"):
        assert measured["cross_validation"][key]["value"] == pytest.approx(ours[key].value)


@pytest.mark.usefixtures("in_folder")
def test_random_labels_do_not_get_a_high_accuracy(dubito_command):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(60, 200)), columns=[f"c{j}" for j in range(200)])
    write(frame.assign(y=rng.permutation(np.arange(60) % 2)))
    result = dubito_command("train", "data.csv", "-y", "y", "-o", "m.skops", "--json")
    accuracy = json.loads(result.stdout)["cross_validation"]["accuracy"]["value"]
    model, _ = load("m.skops")
    assert (model.predict(frame) == pd.read_csv("data.csv")["y"]).all()  # it has memorised them
    assert accuracy < 0.75


def test_folds_leave_no_class_unknown_and_judge_each_row_once():
    y = np.array(["a"] * 7 + ["b"] * 2 + ["once"] + ["c"] * 4)
    folds = stratified_folds(y, 5, seed=0)
    assert len(folds) == 5
    for train, test in folds:
        assert set(y[train]) == set(y)
        assert not set(train) & set(test)
        assert "once" not in y[test]
    judged = np.concatenate([test for _, test in folds])
    assert sorted(judged) == [i for i in range(len(y)) if y[i] != "once"]


@pytest.mark.parametrize("name", RECIPES)
def test_impute_fills_them_and_so_does_the_model(name, data, dubito_command):
    data.loc[[3, 4], "age"] = np.nan
    data.loc[7, "city"] = None
    write(data)
    options = ["-y", "y", "-o", "m.skops", "--impute", "--cv", 0, "-m", name]
    assert dubito_command("train", "data.csv", *options).exit_code == 0
    model, stamp = load("m.skops")
    assert stamp.options["impute"] is True
    X = data[["age", "ldl", "city"]]
    filled = X.assign(age=X["age"].fillna(X["age"].median()))
    np.testing.assert_allclose(model.predict_proba(X), model.predict_proba(filled))
    result = dubito_command("predict", "m.skops", "data.csv", "-o", "out.csv")
    assert result.exit_code == 0, result.output


@pytest.mark.usefixtures("in_folder")
@pytest.mark.parametrize("labels", [[3, 7], [True, False], ["a b", "è"]], ids=str)
def test_labels_keep_their_type_from_parquet(labels, dubito_command):
    rng = np.random.default_rng(0)
    y = [labels[i % 2] for i in range(40)]
    pl.DataFrame({"a": rng.normal(size=40), "b": np.arange(40) % 2, "y": y}).write_parquet(
        "d.parquet"
    )
    result = dubito_command("train", "d.parquet", "-y", "y", "-o", "m.skops", "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["classes"] == sorted(labels)
    assert json.loads(result.stdout)["cross_validation"]["accuracy"]["value"] == 1
    assert load("m.skops").stamp.classes == sorted(labels)
    assert dubito_command("evaluate", "m.skops", "d.parquet").exit_code == 0


@pytest.mark.usefixtures("in_folder")
def test_a_class_with_one_row_is_noted(dubito_command):
    frame = patients(40)
    frame.loc[3, "y"] = "rare"
    write(frame)
    result = dubito_command(
        "train", "data.csv", "-y", "y", "-m", "imprecise-quadratic", "-o", "m.skops"
    )
    assert result.exit_code == 0, result.output
    assert (
        "Classes with one row: rare. They are learnt from, but cannot be tested." in result.stdout
    )
    # Warnings of the model are one note, after the progress bar.
    assert result.stderr.count("note: ") == 1
    assert "class 'rare' without spread of its own" in result.stderr
    assert load("m.skops").stamp.classes == ["ill", "rare", "well"]


@pytest.mark.usefixtures("in_folder")
def test_one_row_of_each_class(dubito_command, refused):
    write(pd.DataFrame({"a": [1.0, 2, 4], "y": ["u", "v", "w"]}))
    arguments = ["train", "data.csv", "-y", "y", "-o", "m.skops"]
    result = dubito_command(*arguments)
    assert "Not measured: no class has two rows" in result.stdout
    assert "none is left to calibrate on: probabilities are those of logistic" in result.stderr
    message = _last_line(dubito_command(*arguments, "--force", "-m", "calibrated-svm"))
    assert message.startswith("error: calibrated-svm sets rows aside for calibration or tuning")
    assert refused(*arguments) == (
        "m.skops exists already. Add --force to overwrite it, or name another file."
    )


@pytest.mark.usefixtures("in_folder")
@pytest.mark.parametrize("name", RECIPES)
def test_six_rows_are_enough(name, dubito_command):
    write(pd.DataFrame({"a": [1.0, 2, 4, 5, 7, 9], "b": list("uvuvww"), "y": [0, 0, 0, 1, 1, 1]}))
    result = dubito_command("train", "data.csv", "-y", "y", "-o", "m.skops", "-m", name)
    assert result.exit_code == 0, result.output
    assert "(3 folds)" in result.stdout


@pytest.mark.usefixtures("data")
def test_an_unknown_model_error_lists_the_known_ones(refused):
    message = refused("train", "data.csv", "-y", "y", "-m", "nestd", "-o", "m.skops")
    assert message.startswith("there is no model 'nestd'. Did you mean nested? The models are cali")


@pytest.mark.usefixtures("data")
def test_missing_required_options_are_errors(refused):
    assert refused("train", "data.csv", "-y", "y") == ("no output file given. Say -o model.skops.")
    assert refused("train", "data.csv", "-y", "y", "-o", "m.skops", "--cv", 1).startswith("--cv 1")


@pytest.mark.usefixtures("data")
def test_an_unwritable_output_is_reported_first(refused, monkeypatch):
    arguments = ["train", "data.csv", "-y", "y", "-o"]
    assert refused(*arguments, "no/m.skops") == "there is no folder no to write m.skops into."
    assert refused(*arguments, ".") == ". is a folder. Name a file to write."
    monkeypatch.setattr(os, "access", lambda _, mode: mode != os.W_OK)
    assert "may not be written to" in refused(*arguments, "m.skops")


@pytest.mark.usefixtures("in_folder")
@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "data.csv is empty"),
        (b"a,b,y\n", "data.csv has column names and no rows"),
        (b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", "data.csv"),
        (b"a,a,y\n1,2,u\n2,1,v\n", "several columns named a"),
        (b"a,b,y\n1,2,u\n2,1\n", "data.csv"),
    ],
    ids=["empty", "header", "binary", "twins", "ragged"],
)
def test_files_that_are_no_tables(content, words, in_folder, refused):
    (in_folder / "data.csv").write_bytes(content)
    assert words in refused("train", "data.csv", "-y", "y", "-o", "m.skops")
    assert not (in_folder / "m.skops").exists()


@pytest.mark.usefixtures("in_folder")
def test_no_file_and_a_folder(in_folder, refused):
    assert refused("train", "data.csv", "-y", "y", "-o", "m.skops") == "there is no file data.csv."
    (in_folder / "data.csv").mkdir()
    assert "is a folder" in refused("train", "data.csv", "-y", "y", "-o", "m.skops")


@pytest.mark.usefixtures("data")
def test_interrupted_it_writes_nothing(dubito_command, monkeypatch, in_folder):
    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(train_command, "fit_and_measure", stop)
    result = dubito_command("train", "data.csv", "-y", "y", "-o", "m.skops")
    assert result.exit_code == 130
    assert result.stderr.startswith("interrupted: no")
    assert [file.name for file in in_folder.iterdir()] == ["data.csv"]


@pytest.mark.parametrize(("rows", "threads"), [(train_command.ROWS_FOR_THREADS, 2), (100, 1)])
def test_small_work_stays_on_one_thread(rows, threads):
    class Watched:
        def fit(self, *_):
            pools = threadpool_info()
            self.threads = {p["num_threads"] for p in pools if p["user_api"] == "openmp"}
            return self

    data = SimpleNamespace(X=None, y=np.zeros(rows))
    with threadpool_limits(2, user_api="openmp"):
        fitted, *_ = train_command.fit_and_measure(
            lambda _: Watched(), data, 0, 0, Console(quiet=True)
        )
    assert fitted.threads == {threads}


@pytest.mark.usefixtures("data")
def test_quiet_prints_nothing(dubito_command):
    result = dubito_command("train", "data.csv", "-y", "y", "-o", "m.skops", "--quiet", "--cv", 0)
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")


@pytest.mark.usefixtures("data")
def test_a_model_that_must_compile_has_a_note(dubito_command, monkeypatch, tmp_path):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "none"))
    options = ["-y", "y", "-o", "m.skops", "--cv", 0, "--force", "-m", "evidential-logistic"]
    assert "compiled when first used" in dubito_command("train", "data.csv", *options).stderr
    (tmp_path / "none").mkdir()
    (tmp_path / "none" / "evidence_weights_compiled.bounds.nbi").touch()
    assert dubito_command("train", "data.csv", *options).stderr == ""


def test_slow_models_have_notes(monkeypatch):
    monkeypatch.setattr(Recipe, "compiles_first", lambda _: False)
    assert RECIPES["calibrated-svm"].slow_notes(20_000, 200) == []
    assert RECIPES["calibrated-svm"].slow_notes(50_000, 2) == [
        "50,000 rows take long; calibrated-boosting is quicker."
    ]
    assert RECIPES["fusion"].slow_notes(100, 1000) == [
        "1,000 classes take long; nested is made for many."
    ]
    assert RECIPES["nested"].slow_notes(10**6, 10**4) == []


def _last_line(result):
    assert result.exit_code == 2
    return result.stderr.splitlines()[-1]


@pytest.mark.parametrize("name", RECIPES)
def test_kernels_of_a_model_are_named_as_their_files(name):
    compiled = [path.stem for path in Path(dubito.__file__).parent.rglob("*_compiled.py")]
    for stem in RECIPES[name].kernels:
        assert any(stem in file for file in compiled), stem


@pytest.mark.slow
@pytest.mark.usefixtures("data")
@pytest.mark.parametrize("name", RECIPES)
def test_kernels_of_a_model_are_those_that_training_uses(name):
    """Otherwise the note on their compilation would be printed every time."""
    program = """
import sys
from dubito.cli import main
try:
    main()
except SystemExit as end:
    assert not end.code, end
for key, module in list(sys.modules.items()):
    if key.endswith("_compiled"):
        if any(getattr(kernel, "signatures", None) for kernel in vars(module).values()):
            print(key.rpartition(".")[2])
"""
    options = ["-y", "y", "-m", name, "--cv", "2", "-o", "m.skops", "--quiet"]
    command = [sys.executable, "-c", program, "train", "data.csv", *options]
    done = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603
    used = done.stdout.split()
    for stem in RECIPES[name].kernels:
        assert any(stem in kernel for kernel in used), (stem, used)
