"""Levels of bounds, coverage of sets and unfamiliar rows, from the command line."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.frozen import FrozenEstimator
from typer.testing import CliRunner

from dubito.cli import build_app
from dubito.metrics import coverage
from dubito.pipeline import CautiousPipeline, RejectClassifier
from dubito.saving import load, save


def run(*arguments):
    ran = CliRunner().invoke(build_app(), [str(a) for a in arguments])
    assert ran.exit_code == 0, ran.output
    return ran


def measurements(n, *, seed=0):
    """Two numbers and a text that distinguish three kinds of fish."""
    rng = np.random.default_rng(seed)
    kind = rng.permutation(np.arange(n) % 3)
    frame = pd.DataFrame(rng.normal(2.0 * np.eye(3)[kind][:, :2], 1.0), columns=["long", "wide"])
    frame["sea"] = np.where(rng.random(n) < 0.6, np.array(["north", "south", "black"])[kind], "x")
    return frame.assign(fish=np.array(["cod", "eel", "ray"])[kind])


@pytest.fixture(scope="module")
def fish(tmp_path_factory):
    """A folder with training and test rows, some of the latter far off, and models."""
    folder = tmp_path_factory.mktemp("fish")
    measurements(240).to_csv(folder / "train.csv", index=False)
    test = measurements(150, seed=1)
    test.loc[:9, ["long", "wide"]] += 50.0
    test.to_csv(folder / "test.csv", index=False)
    for name, flags in {
        "plain": ["--model", "evidential-logistic"],
        "aware": ["--novelty"],
        "sets": ["--conformal"],
        "both": ["--novelty", "--conformal"],
    }.items():
        arguments = ["train", folder / "train.csv", "-y", "fish", "--cv", 0]
        run(*arguments, *flags, "-o", folder / f"{name}.skops")
    return folder


@pytest.fixture(scope="module")
def unseen(fish):
    return pd.read_csv(fish / "test.csv")


def decided(model, table, *options):
    """Return the Parquet table of `predict`, its printed line, and its JSON."""
    target = model.with_name("decided.parquet")
    output = run("predict", model, table, "-o", target, "--force", *options).stdout
    facts = json.loads(
        run("predict", model, table, "-o", target, "--force", "--json", *options).stdout
    )
    return pd.read_parquet(target), output, facts


@pytest.mark.parametrize("method", ["evidential-logistic", "evidential-isotonic"])
def test_bounds_at_a_level(two, in_folder, method):
    model = in_folder / "model.skops"
    run("calibrate", "two.csv", "-y", "y", "--cv", 0, "--method", method, "-o", model)
    table, output, facts = decided(model, "two.csv", "--level", 0.9)
    assert list(table.columns) == [
        *("row", "prediction", "p_ham", "p_spam", "level"),
        *("lower_ham", "lower_spam", "upper_ham", "upper_spam", "set", "set_size"),
    ]
    assert set(table["level"]) == {0.9}
    fitted, _ = load(model)
    scores = two[["score"]].to_numpy()
    bounds, plain = fitted.predict_bounds(scores, level=0.9), fitted.predict_bounds(scores)
    np.testing.assert_array_equal(table[["lower_ham", "lower_spam"]], bounds.lower)
    np.testing.assert_array_equal(table[["upper_ham", "upper_spam"]], bounds.upper)
    sets = fitted.predict_set(scores, level=0.9)
    assert table["set_size"].tolist() == sets.sum(axis=1).tolist()
    assert "bounds at level 0.9" in output
    assert (facts["level"], facts["bounds_are"]) == (0.9, "bounds at level 0.9")
    belief, _, facts = decided(model, "two.csv")
    np.testing.assert_array_equal(belief[["lower_ham", "lower_spam"]], plain.lower)
    assert "level" not in belief
    assert facts["level"] is None


def test_every_command_takes_the_level(two, in_folder):
    model = in_folder / "model.skops"
    run("calibrate", "two.csv", "-y", "y", "--cv", 0, "-o", model)
    fitted, _ = load(model)
    bounds = fitted.predict_bounds(two[["score"]].to_numpy(), level=0.8)
    output = run("evaluate", model, "two.csv", "--level", 0.8, "--n-boot", 0)
    assert "Bounds are bounds at level 0.8." not in output.stdout  # not repeated
    assert "Bounds are at level 0.8." in output.stdout
    facts = json.loads(
        run("evaluate", model, "two.csv", "--level", 0.8, "--n-boot", 0, "--json").stdout
    )
    assert facts["level"] == 0.8
    width = facts["models"]["model"]["mean_width"]["value"]
    assert width == pytest.approx(bounds.width.mean())
    output = run("explain", model, "two.csv", "--row", 3, "--level", 0.8).stdout
    assert "lower at 0.8  upper at 0.8" in output
    assert "between lower bound (level 0.8) and upper bound (level 0.8)" in output
    (facts,) = json.loads(
        run("explain", model, "two.csv", "--row", 3, "--level", 0.8, "--json").stdout
    )["rows"]
    best = facts["classes"][0]
    k = ["ham", "spam"].index(best["class"])
    assert (best["lower"], best["upper"]) == pytest.approx((bounds.lower[3, k], bounds.upper[3, k]))


def test_models_without_levels_have_an_error_with_advice(fish, refused):
    for command in ("predict", "evaluate", "explain"):
        output = refused(command, fish / "plain.skops", fish / "test.csv", "--level", 0.9)
        assert output.startswith("EvidentialClassifier has no bounds at a confidence level: ")
        assert "dubito train with its default" in output


def test_conformal_sets_keep_the_coverage_and_the_bounds_their_name(fish, unseen):
    model = fish / "sets.skops"
    fitted, stamp = load(model)
    X = unseen[list(stamp.columns)]
    for given in (None, 0.7):
        options = [] if given is None else ["--coverage", given]
        table, output, facts = decided(model, fish / "test.csv", *options)
        sets = fitted.predict_set(X, coverage=given or 0.9)
        assert table["set_size"].tolist() == sets.sum(axis=1).tolist()
        assert facts["coverage"] == (given or 0.9)
        assert f"mean set {sets.sum(axis=1).mean():.2f} at coverage {given or 0.9}" in output
        assert "conformal belief and plausibility" in output
    table, output, facts = decided(model, fish / "test.csv", "--rule", "maximality")
    assert facts["coverage"] is None
    assert "coverage" not in output


def test_evaluate_prints_coverage_promised_and_observed(fish, unseen):
    model = fish / "sets.skops"
    fitted, stamp = load(model)
    output = run("evaluate", model, fish / "test.csv", "--coverage", 0.8, "--n-boot", 0).stdout
    facts = json.loads(
        run("evaluate", model, fish / "test.csv", "--coverage", 0.8, "--n-boot", 0, "--json").stdout
    )["coverage"]["sets"]
    sets = fitted.predict_set(unseen[list(stamp.columns)], coverage=0.8)
    y = unseen["fish"].to_numpy()
    observed = coverage(y, sets, classes=fitted.classes_)
    assert facts["promised"] == 0.8
    assert facts["observed"] == pytest.approx(observed)
    by_class = {k: coverage(y[y == k], sets[y == k], classes=fitted.classes_) for k in set(y)}
    assert facts["worst_observed"] == pytest.approx(min(by_class.values()))
    assert by_class[facts["worst_class"]] == pytest.approx(min(by_class.values()))
    assert f"coverage requested 80.0%, observed {observed:.1%}" in output


@pytest.mark.parametrize("name", ["aware", "both"])
def test_unfamiliar_rows_are_counted(fish, unseen, name):
    model = fish / f"{name}.skops"
    fitted, stamp = load(model)
    familiarity = fitted.familiarity(unseen[list(stamp.columns)])
    table, output, facts = decided(model, fish / "test.csv", "--reject-cost", 0.2)
    np.testing.assert_allclose(table["familiarity"], familiarity, rtol=1e-6)  # seven digits
    assert (table["familiarity"][:10] < 0.02).all()
    assert table.columns[-2:].tolist() == ["familiarity", "rejected"]
    strange = int((familiarity < 0.02).sum())
    assert facts["unfamiliar"] == strange >= 10
    assert f"{strange} unlike the rows it was trained on" in output
    assert table["rejected"][:10].all()
    without, _, _ = decided(model, fish / "test.csv", "--without", "familiarity")
    assert "familiarity" not in without
    output = run("explain", model, fish / "test.csv", "--row", 3, "--row", 77).stdout
    assert "unlike the rows it was trained on, so that its bounds are widened" in output
    assert "The evidence, before calibration (" in output  # the reasons of the model inside


def test_wrappers_of_a_novelty_aware_model_count_unfamiliar_rows(fish, unseen):
    aware, stamp = load(fish / "aware.skops")
    rows = unseen[list(stamp.columns)]
    types = dict(zip(stamp.columns, stamp.column_types, strict=True))
    reject = RejectClassifier(FrozenEstimator(aware)).fit(rows, unseen["fish"])
    pipeline = CautiousPipeline([("aware", aware)])
    for name, model in {"reject": reject, "pipeline": pipeline}.items():
        save(model, fish / f"{name}.skops", columns=types, label="fish")
        table, output, _ = decided(fish / f"{name}.skops", fish / "test.csv")
        np.testing.assert_allclose(table["familiarity"], aware.familiarity(rows), rtol=1e-6)
        assert "unlike the rows it was trained on" in output
        output = run("explain", fish / f"{name}.skops", fish / "test.csv", "--row", 3).stdout
        assert "unlike the rows it was trained on, so that its bounds are widened" in output


@pytest.mark.parametrize("name", ["aware", "both"])
def test_the_report_has_their_places(fish, name):
    pytest.importorskip("altair", reason="the extra is not installed: pip install .[report]")
    page = fish / f"{name}.html"
    output = run("report", fish / f"{name}.skops", fish / "test.csv", "-o", page).stdout
    text = page.read_text(encoding="utf-8")
    assert 'id="familiarity"' in text
    assert ('id="coverage"' in text) == (name == "both")
    assert "are unlike those it was trained on" in output
    assert ("Coverage requested 90.0%" in output) == (name == "both")


@pytest.mark.parametrize("table", ["two.csv", "scores.csv"])
@pytest.mark.parametrize("method", ["conformal", "venn-abers"])
@pytest.mark.usefixtures("two", "scores")
def test_scores_can_be_calibrated_with_coverage(in_folder, table, method):
    model = in_folder / "model.skops"
    ran = run("calibrate", table, "-y", "y", "--method", method, "-o", model)
    assert f"Calibrating: {method}" in ran.stdout
    options = ["--coverage", 0.9] if method == "conformal" else []
    written, output, _ = decided(model, table, *options)
    words = {"conformal": "conformal belief and plausibility", "venn-abers": "Venn-Abers"}
    assert words[method] in output
    truth = pd.read_csv(table)["y"]
    held = [label in kept.split("|") for label, kept in zip(truth, written["set"], strict=True)]
    assert np.mean(held) > (0.85 if method == "conformal" else 0.5)


@pytest.mark.usefixtures("two")
def test_which_class_is_positive_survives_conformal_sets(in_folder):
    model = in_folder / "model.skops"
    options = ["--method", "conformal", "--positive", "spam", "--cv", 0]
    run("calibrate", "two.csv", "-y", "y", *options, "-o", model)
    first, *_ = decided(model, "two.csv")
    flipped = pd.read_csv("two.csv").assign(score=lambda t: -t["score"])
    flipped.to_csv("flipped.csv", index=False)
    run(
        "calibrate",
        "flipped.csv",
        "-y",
        "y",
        *options[:2],
        "--positive",
        "ham",
        "-o",
        model,
        "--force",
    )
    second, *_ = decided(model, "flipped.csv")
    assert first["prediction"].tolist() == second["prediction"].tolist()
    np.testing.assert_allclose(first["p_spam"], second["p_spam"], atol=1e-6)
    assert first["set_size"].tolist() == second["set_size"].tolist()


def test_training_prints_the_observed_coverage(fish, in_folder):
    output = run(
        *("train", fish / "train.csv", "-y", "fish", "--conformal", "--cv", 3),
        *("--model", "evidential-logistic", "-o", in_folder / "model.skops"),
    ).stdout
    assert "with conformal sets …" in output
    assert "Coverage of the sets: requested 90.0%, observed " in output
