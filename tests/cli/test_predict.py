"""`dubito predict`: decisions equal to the model's, in chunks, and complete files or none."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC

from dubito import saving
from dubito.cli import csv_reader, tables
from dubito.cli.decisions import set_formatter
from dubito.cli.predict import RULES, STRATEGIES
from dubito.decision import reject, rejection, rules
from dubito.discriminant import ImpreciseGaussianDiscriminant

CLASSES = ["cat", "cow", "dog"]


@pytest.fixture
def decided(dubito_command):
    """Predict to a file and return the JSON output and the table written."""

    def call(model, table, *options, name="d.csv"):
        output = dubito_command("predict", model, table, "-o", name, "--force", "--json", *options)
        assert output.exit_code == 0, output.output
        assert output.stderr == ""
        return json.loads(output.stdout), read(name)

    return call


def read(name):
    if name.endswith(".parquet"):
        return pd.read_parquet(name)
    return pd.read_csv(name, dtype={"id": str, "set": str})


def test_rules_and_strategies_are_those_of_the_library():
    assert set(RULES) == set(rules.RULES)
    assert set(STRATEGIES) == set(rejection.STRATEGIES)


def test_the_columns_are_the_outputs_of_the_model(decided, model, scores):
    facts, table = decided(model, "scores.csv", "--reject-cost", 0.2, name="d.parquet")
    fitted = saving.load(model).model
    X = scores[CLASSES].to_numpy()
    bounds = fitted.predict_bounds(X)
    sets = fitted.predict_set(X)
    rejected = reject(bounds, 0.2)
    assert table.columns.tolist() == [
        "row",
        "prediction",
        *(f"{part}_{name}" for part in ("p", "lower", "upper") for name in CLASSES),
        "set",
        "set_size",
        "rejected",
    ]
    assert table["row"].tolist() == list(range(300))
    assert table["prediction"].tolist() == fitted.predict(X).tolist()
    np.testing.assert_array_equal(table[[f"p_{c}" for c in CLASSES]], fitted.predict_proba(X))
    np.testing.assert_array_equal(table[[f"lower_{c}" for c in CLASSES]], bounds.lower)
    np.testing.assert_array_equal(table[[f"upper_{c}" for c in CLASSES]], bounds.upper)
    words = ["|".join(np.array(CLASSES)[members]) for members in sets]
    assert table["set"].tolist() == words
    assert any("|" in word for word in words), "a set of several classes should occur here"
    assert table["set_size"].tolist() == sets.sum(axis=1).tolist()
    assert table["rejected"].tolist() == rejected.tolist()
    assert facts == {
        "output": "d.parquet",
        "rows": 300,
        "classes": CLASSES,
        "bounds": True,
        "bounds_are": "belief and plausibility",
        "level": None,
        "coverage": None,
        "unfamiliar": None,
        "rejected": int(rejected.sum()),
        "rejected_share": rejected.mean(),
        "mean_set_size": sets.sum(axis=1).mean(),
        "notes": [],
    }


@pytest.mark.usefixtures("scores")
def test_the_summary_counts_rejected_rows(dubito_command, decided, model):
    facts, _ = decided(model, "scores.csv", "--reject-cost", 0.2)
    output = dubito_command("predict", model, "scores.csv", "-o", "e.csv", "--reject-cost", 0.2)
    assert output.stdout == (
        f"300 rows · belief and plausibility · {facts['rejected_share']:.1%} declined · "
        f"mean set {facts['mean_set_size']:.2f} · wrote e.csv\n"
    )
    assert output.stderr == ""
    quiet = dubito_command("predict", model, "scores.csv", "-o", "f.csv", "--quiet")
    assert quiet.output == ""


@pytest.mark.usefixtures("scores")
def test_text_has_seven_digits_and_the_order_of_bounds_survives(decided, model):
    _, exact = decided(model, "scores.csv", name="d.parquet")
    for name in ("d.csv", "d.csv.gz"):
        _, table = decided(model, "scores.csv", name=name)
        pd.testing.assert_frame_equal(table, exact, check_dtype=False, rtol=1e-6)
        for label in CLASSES:
            p, low, high = (table[f"{part}_{label}"] for part in ("p", "lower", "upper"))
            assert ((low <= p) & (p <= high)).all()
    assert max(map(len, Path("d.csv").read_text().replace("\n", ",").split(","))) < 16


@pytest.mark.usefixtures("scores")
def test_stdout_is_the_table_and_stderr_the_summary(dubito_command, decided, model):
    decided(model, "scores.csv")
    output = dubito_command("predict", model, "scores.csv")
    assert output.stdout == Path("d.csv").read_text()
    assert output.stderr.startswith("300 rows · belief and plausibility · mean set ")


@pytest.mark.parametrize("rows", [1, 7, 299, 300])
def test_chunks_change_nothing(decided, model, scores, monkeypatch, rows):
    scores.to_csv("t.csv", index=False)
    options = (model, "t.csv", "--reject-cost", 0.2)
    facts, whole = decided(*options)
    monkeypatch.setattr(csv_reader, "BLOCK_BYTES", 2**10)
    monkeypatch.setattr(tables, "CELLS", rows * (3 + 8 * 3))
    assert tables.chunk_rows(3 + 8 * 3) == rows
    told_in_chunks, in_chunks = decided(*options)
    pd.testing.assert_frame_equal(in_chunks, whole, rtol=1e-6)
    assert told_in_chunks == facts


def test_columns_may_come_in_any_order_among_others(decided, model, scores, in_folder):
    _, straight = decided(model, "scores.csv")
    scores.assign(more="x")[["dog", "more", "cat", "y", "cow"]].to_csv(
        in_folder / "t.csv", index=False
    )
    _, mixed = decided(model, "t.csv")
    pd.testing.assert_frame_equal(straight, mixed)


def test_kept_columns_stay_as_they_were(decided, refused, model, scores, in_folder):
    ids = [f"{k:05d}" for k in range(300)]
    scores.assign(id=ids, note='a "b", c', prediction=1).to_csv(in_folder / "t.csv", index=False)
    _, table = decided(model, "t.csv", "--keep", "id,note,cat")
    assert table.columns.tolist()[:5] == ["row", "id", "note", "cat", "prediction"]
    assert table["id"].tolist() == ids
    assert set(table["note"]) == {'a "b", c'}
    np.testing.assert_allclose(table["cat"], scores["cat"])
    assert refused("predict", model, "t.csv", "-o", "e.csv", "--keep", "prediction") == (
        "kept columns may not be named like a result (prediction). Rename them in the table, or "
        "leave them out of --keep."
    )
    assert refused("predict", model, "t.csv", "-o", "e.csv", "--keep", "ids").startswith(
        "column 'ids' is missing from t.csv. Did you mean 'id'?"
    )


def test_kept_columns_of_parquet_keep_their_types_in_every_chunk(
    decided, model, scores, monkeypatch
):
    numbers = pd.array([None if k > 150 else k for k in range(300)], "Int64")
    words = [None if k < 150 else "x" for k in range(300)]
    scores.assign(id=numbers, word=words).to_parquet("t.parquet")
    monkeypatch.setattr(tables, "CELLS", 10 * (3 + 8 * 3))
    _, table = decided(model, "t.parquet", "--keep", "id,word", name="d.parquet")
    assert table["id"].dropna().tolist() == list(range(151))
    assert table["word"].isna().sum() == 150


@pytest.mark.usefixtures("scores")
@pytest.mark.parametrize(
    ("without", "left"),
    [
        ("proba", ["lower", "upper", "set", "rejected"]),
        ("proba,bounds", ["set", "rejected"]),
        ("proba, bounds, set", ["rejected"]),
    ],
)
def test_what_is_not_wanted_is_left_out(decided, model, without, left):
    facts, full = decided(model, "scores.csv", "--reject-cost", 0.2)
    told_less, table = decided(model, "scores.csv", "--reject-cost", 0.2, "--without", without)
    assert told_less == facts
    names = table.columns.tolist()
    assert [
        part
        for part in ("p", "lower", "upper", "set", "rejected")
        if any(name.split("_")[0] == part for name in names)
    ] == left
    pd.testing.assert_frame_equal(table, full[names])


@pytest.mark.usefixtures("scores")
def test_rules_and_strategies_are_the_librarys(decided, model):
    strict, _ = decided(model, "scores.csv", "--reject-cost", 0.2)
    mild, _ = decided(model, "scores.csv", "--reject-cost", 0.2, "--strategy", "optimistic")
    assert mild["rejected"] < strict["rejected"]
    sets, _ = decided(model, "scores.csv", "--rule", "set_utility")
    assert sets["mean_set_size"] != strict["mean_set_size"]


@pytest.mark.usefixtures("scores")
def test_a_precise_model_has_no_bounds_and_rejects_by_its_probabilities(
    dubito_command, decided, saved_models
):
    model = saved_models["plain"]
    facts, table = decided(model, "scores.csv", "--reject-cost", 0.2)
    assert table.columns.tolist() == [
        "row",
        "prediction",
        *(f"p_{name}" for name in CLASSES),
        "rejected",
    ]
    best = table[[f"p_{name}" for name in CLASSES]].max(axis=1)
    assert table["rejected"].tolist() == (best < 0.8).tolist()
    assert facts["bounds"] is False
    assert facts["mean_set_size"] is None
    output = dubito_command("predict", model, "scores.csv", "-o", "e.csv")
    assert output.stdout == "300 rows · no bounds: this model gives none · wrote e.csv\n"


def test_rows_without_doubt_keep_the_columns_of_doubt(decided, model, in_folder):
    """Equal scores have equal probabilities without doubt: their bounds are equal."""
    (in_folder / "t.csv").write_text("cat,cow,dog\n0,0,0\n")
    facts, table = decided(model, "t.csv")
    assert facts["bounds"] is True
    assert table.loc[0, "lower_cat"] == table.loc[0, "upper_cat"]


class TestFeatures:
    """Models of features, saved by `dubito.saving`."""

    @pytest.fixture
    def flowers(self, in_folder):
        rng = np.random.default_rng(0)
        frame = pd.DataFrame(rng.normal(size=(90, 2)), columns=["width", "length"])
        frame["kind"] = np.repeat([True, False], 45)
        frame.loc[:44, "width"] += 3
        frame.to_csv(in_folder / "t.csv", index=False)
        return frame

    def save(self, estimator, frame, **options):
        X, y = frame[["width", "length"]], frame["kind"].to_numpy()
        saving.save(estimator.fit(X, y), "m.skops", label="kind", **options)
        return estimator, X

    def test_a_model_with_its_own_sets(self, decided, flowers):
        model, X = self.save(ImpreciseGaussianDiscriminant(c=20), flowers)
        facts, table = decided("m.skops", "t.csv", "--reject-cost", 0.1)
        assert facts["mean_set_size"] == model.predict_set(X).sum(axis=1).mean() > 1
        assert table["prediction"].tolist() == model.predict(X).tolist()
        assert {"p_False", "lower_True"} <= set(table.columns)
        assert "False|True" in set(table["set"])

    def test_a_plain_classifier(self, decided, flowers):
        model, X = self.save(GaussianNB(), flowers)
        _, table = decided("m.skops", "t.csv", "--reject-cost", 0.1, name="d.parquet")
        np.testing.assert_allclose(table[["p_False", "p_True"]], model.predict_proba(X))
        assert table["prediction"].tolist() == model.predict(X).tolist()

    def test_a_classifier_without_probabilities(self, decided, refused, flowers):
        model, X = self.save(LinearSVC(random_state=0), flowers)
        facts, table = decided("m.skops", "t.csv")
        assert table.columns.tolist() == ["row", "prediction"]
        assert table["prediction"].tolist() == model.predict(X).tolist()
        assert facts["rows"] == 90
        assert refused("predict", "m.skops", "t.csv", "-o", "e.csv", "--reject-cost", 1) == (
            "LinearSVC gives classes only and no probabilities, so rows cannot be declined. "
            "Leave --reject-cost out."
        )

    def test_empty_cells_are_an_error(self, refused, flowers):
        self.save(LogisticRegression(), flowers)
        flowers.loc[7, "length"] = np.nan
        flowers.to_csv("t.csv", index=False)
        assert refused("predict", "m.skops", "t.csv", "-o", "e.csv") == (
            "t.csv has 1 row with empty cells, nan or infinite numbers (first: row 7, column "
            "'length'). Drop or fill these rows first."
        )

    def test_unseen_text_values_are_noted(self, dubito_command, flowers):
        self.save(GaussianNB(), flowers, options={"values": {"width": [0.0]}})
        output = dubito_command("predict", "m.skops", "t.csv", "-o", "e.csv")
        assert output.stderr == (
            "note: 90 rows of 90 say in column 'width' what no row said when the model was "
            "fitted.\n"
        )


@pytest.mark.usefixtures("in_folder")
class TestOddTables:
    def test_one_row(self, dubito_command, model):
        Path("t.csv").write_text("cat,cow,dog\n1,2,3\n")
        output = dubito_command("predict", model, "t.csv", "-o", "d.csv")
        assert output.stdout == "1 row · belief and plausibility · mean set 1.00 · wrote d.csv\n"

    @pytest.mark.parametrize("name", ["d.csv", "d.parquet"])
    def test_no_rows_are_an_empty_table(self, decided, dubito_command, model, name):
        Path("t.csv").write_text("id,cat,cow,dog\n1,1,2,3\n")
        _, one = decided(model, "t.csv", "--keep", "id", "--reject-cost", 0, name=name)
        Path("t.csv").write_text("id,cat,cow,dog\n")
        facts, none = decided(model, "t.csv", "--keep", "id", "--reject-cost", 0, name=name)
        assert none.columns.tolist() == one.columns.tolist()
        assert len(none) == facts["rows"] == 0
        assert facts["rejected_share"] is facts["mean_set_size"] is None
        output = dubito_command("predict", model, "t.csv", "-o", "e.csv")
        assert output.stdout == "0 rows · wrote e.csv\n"

    def test_classes_named_with_the_separator_make_json_lists(self):
        sets = np.array([[True, True], [True, False], [False, True]])
        assert set_formatter(["a", "b c"])(sets).to_pylist() == ["a|b c", "a", "b c"]
        words = set_formatter(["a|b", "é"])(sets).to_pylist()
        assert words == ['["a|b", "é"]', '["a|b"]', '["é"]']
        assert set_formatter(["[1]", "2"])(sets).to_pylist()[1:] == ['["[1]"]', '["2"]']
        assert set_formatter([1, 2])(sets[:0]).to_pylist() == []

    @pytest.mark.slow
    def test_thousands_of_classes(self, dubito_command, decided, make_scores):
        names = tuple(f"c{k}" for k in range(5000))
        table = make_scores(400, names)
        table.to_parquet("t.parquet")
        call = ("calibrate", "t.parquet", "-y", "y", "--method", "temperature", "--cv", 0)
        output = dubito_command(*call, "--classes", ",".join(names), "-o", "m.skops")
        assert output.exit_code == 0
        assert "400 rows, 5,000 classes (columns c0…c4999)" in output.stdout
        table[:120].to_parquet("new.parquet")
        assert tables.chunk_rows(9 * 5000) < 120, "several chunks"
        facts, decisions = decided("m.skops", "new.parquet", name="d.parquet")
        assert decisions.shape == (120, 15004)  # with lower and upper of each class, and the set
        assert facts["rows"] == 120


class TestRefusals:
    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (["--strategy", "hopeful"], "--strategy must be one of pignistic, pessimistic,"),
            (["--rule", "maximalty"], "--rule must be one of interval_dominance, maximality,"),
            (["--reject-cost", "inf"], "--reject-cost must be a number such as 0.2. Got inf."),
            (
                ["--without", "p"],
                "--without must be one of proba, bounds, set, familiarity. Got 'p'.",
            ),
        ],
    )
    @pytest.mark.usefixtures("scores")
    def test_words_that_options_do_not_know(self, refused, model, options, message):
        assert refused("predict", model, "scores.csv", *options).startswith(message)

    @pytest.mark.usefixtures("scores")
    def test_json_and_the_table_cannot_both_be_on_stdout(self, refused, model):
        assert refused("predict", model, "scores.csv", "--json") == (
            "--json and the table cannot both go to stdout. Name a file for the table: -o FILE."
        )

    def test_a_missing_column(self, refused, model, scores, in_folder):
        scores.drop(columns="cow").to_csv(in_folder / "new.csv", index=False)
        assert refused("predict", model, "new.csv") == (
            "column 'cow' is missing from new.csv. The model was fitted on columns cat, cow, dog."
        )

    def test_nan_scores(self, refused, model, scores, in_folder):
        scores.loc[17, "cow"] = np.nan
        scores.to_csv(in_folder / "new.csv", index=False)
        assert refused("predict", model, "new.csv", "-o", "d.csv") == (
            "new.csv has 1 row with empty cells, nan or infinite numbers (first: row 17, column "
            "'cow'). Drop or fill these rows first."
        )
        assert not (in_folder / "d.csv").exists()

    @pytest.mark.usefixtures("scores")
    @pytest.mark.parametrize("content", [b"", b"PK\x03\x04 no", b"a,b\n1,2\n", bytes(range(256))])
    def test_a_file_that_is_no_model(self, refused, in_folder, content):
        (in_folder / "m.skops").write_bytes(content)
        assert "m.skops" in refused("predict", "m.skops", "scores.csv")

    @pytest.mark.usefixtures("scores")
    def test_no_model_and_no_table(self, refused, model):
        assert "no.skops" in refused("predict", "no.skops", "scores.csv")
        assert refused("predict", model, "no.csv") == "there is no file no.csv."

    @pytest.mark.usefixtures("scores")
    def test_model_and_table_in_the_wrong_order(self, refused, model):
        assert "scores.csv" in refused("predict", "scores.csv", model)

    @pytest.mark.usefixtures("scores")
    def test_outputs_that_cannot_be(self, refused, model, in_folder):
        (in_folder / "old.csv").write_text("old")
        call = ("predict", model, "scores.csv", "-o")
        assert refused(*call, "old.csv") == (
            "old.csv exists already. Add --force to overwrite it, or name another file."
        )
        assert (in_folder / "old.csv").read_text() == "old"
        assert refused(*call, "old.csv/d.csv") == "there is no folder old.csv to write d.csv into."
        assert refused(*call, "d.txt").startswith("d.txt must end in .csv, .csv.gz, .parquet")

    @pytest.mark.usefixtures("scores")
    def test_a_folder_that_may_not_be_written(self, refused, model, monkeypatch):
        def forbidden(path, mode="r", *args, **options):
            if "x" in mode:
                raise PermissionError(13, "Permission denied", str(path))
            return opened(path, mode, *args, **options)

        opened = Path.open
        monkeypatch.setattr(Path, "open", forbidden)
        assert refused("predict", model, "scores.csv", "-o", "d.csv") == (
            "d.csv could not be written: Permission denied."
        )
