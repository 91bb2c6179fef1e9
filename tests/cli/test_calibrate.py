"""`dubito calibrate`: columns and classes, held-out measures, and the model file."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy.special import softmax
from sklearn.metrics import log_loss

import dubito.calibration
from dubito import saving
from dubito.calibration import AutoCalibrator
from dubito.cli.calibrate import CALIBRATOR_CLASSES


def calibrated(dubito_command, *arguments):
    """Calibrate to m.skops and return the JSON output and the saved model."""
    result = dubito_command("calibrate", *arguments, "-o", "m.skops", "--force", "--json")
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    return json.loads(result.stdout), saving.load("m.skops")


def test_the_rows_read_and_the_gain_are_printed(dubito_command, scores, in_folder):
    result = dubito_command("calibrate", "scores.csv", "--label", "y", "-o", "model.skops")
    assert result.exit_code == 0
    first, chosen, last = result.stdout.splitlines()
    assert first == (
        "Read 300 rows, 3 classes (columns cat, cow, dog). Calibrating: auto, scores taken as "
        "margin …"
    )
    assert chosen == f"Chosen: {saving.load('model.skops').model.summary_}."
    before = log_loss(scores["y"], softmax(scores[["cat", "cow", "dog"]].to_numpy(), axis=1))
    assert last.startswith(f"log loss {before:.3f} → ")
    assert last.endswith(" (5-fold cross-validation) · saved model.skops")
    assert result.stderr == ""
    assert [path.name for path in in_folder.iterdir()] == ["scores.csv", "model.skops"]


def test_the_model_is_the_calibrator_of_all_rows(dubito_command, scores):
    facts, (model, stamp) = calibrated(dubito_command, "scores.csv", "-y", "y")
    table = scores[["cat", "cow", "dog"]].to_numpy()
    same = AutoCalibrator().fit(table, scores["y"].to_numpy())
    np.testing.assert_array_equal(model.predict_proba(table), same.predict_proba(table))
    assert (stamp.kind, stamp.columns, stamp.label) == ("scores", ("cat", "cow", "dog"), "y")
    assert (stamp.method, stamp.rows) == ("auto", 300)
    assert stamp.classes == facts["classes"] == ["cat", "cow", "dog"]
    assert stamp.options == {"input": "margin", "chosen": same.summary_}
    assert facts["chosen"] == same.summary_


def test_the_numbers_are_of_rows_held_out(dubito_command, in_folder):
    """Isotonic regression overfits random labels; only held-out rows show it."""
    rng = np.random.default_rng(0)
    noise = pd.DataFrame({"score": rng.normal(size=60), "y": rng.permutation([0, 1] * 30)})
    noise.to_csv(in_folder / "noise.csv", index=False)
    facts, (model, _) = calibrated(dubito_command, "noise.csv", "-y", "y", "--method", "isotonic")
    by_heart = log_loss(noise["y"], model.predict_proba(noise["score"].to_numpy()))
    assert by_heart < np.log(2) < facts["log_loss_after"]


def test_numbers_depend_on_the_seed_alone(dubito_command, scores):  # noqa: ARG001
    runs = [
        calibrated(dubito_command, "scores.csv", "-y", "y", "--method", "vector", "--seed", seed)[0]
        for seed in (3, 3, 4)
    ]
    assert runs[0] == runs[1]
    assert runs[0]["log_loss_after"] != runs[2]["log_loss_after"]
    assert runs[0]["log_loss_before"] == runs[2]["log_loss_before"]


@pytest.mark.parametrize("method", CALIBRATOR_CLASSES)
@pytest.mark.usefixtures("two")
def test_every_method_by_name(dubito_command, method):
    facts, (model, _) = calibrated(dubito_command, "two.csv", "-y", "y", "--method", method)
    assert type(model).__name__ == CALIBRATOR_CLASSES[method]
    assert facts["method"] == method
    assert facts["log_loss_after"] < facts["log_loss_before"]


@pytest.mark.usefixtures("scores")
def test_targets_may_be_the_papers(dubito_command, refused):
    call = ("scores.csv", "-y", "y")
    paper = ("--method", "evidential-multinomial", "--targets", "smoothed")
    facts, (model, _) = calibrated(dubito_command, *call, *paper)
    assert model.targets == facts["targets"] == "smoothed"
    assert "chosen" not in facts
    result = refused("calibrate", *call, "-o", "n.skops", "--targets", "light")
    assert result == (
        "--targets goes with evidential-multinomial, evidential-logistic, evidential-joint, not "
        "with auto."
    )


def test_every_calibrator_has_a_name():
    known = {name for name in dubito.calibration.__all__ if name.endswith("Calibrator")}
    assert {name for name in CALIBRATOR_CLASSES.values() if name.endswith("Calibrator")} == known


@pytest.mark.usefixtures("two")
def test_two_classes_and_which_is_the_positive(dubito_command):
    result = dubito_command("calibrate", "two.csv", "-y", "y", "-o", "m.skops")
    assert result.stdout.startswith(
        "Read 200 rows, 2 classes (column score). Calibrating: auto, scores taken as margin, "
        "higher meaning spam …\n"
    )


@pytest.mark.usefixtures("two")
@pytest.mark.filterwarnings("default::dubito.calibration.LabelMismatchWarning")
def test_reversed_scores_are_warned_of_once(dubito_command, scores, in_folder):
    command = ["calibrate", "two.csv", "-y", "y", "--positive", "ham", "--method", "platt"]
    result = dubito_command(*command, "-o", "m.skops")
    assert result.exit_code == 0
    assert result.stderr.count("warning:") == 1
    assert "Higher must mean ham: negate the scores, or swap the classes" in result.stderr
    model, stamp = saving.load("m.skops")
    assert stamp.classes == ["spam", "ham"]
    assert model.predict_proba([[3.0]])[0, 1] < 0.5, "the scores are higher for spam all the same"

    turned = scores.rename(columns={"cat": "cow", "cow": "dog", "dog": "cat"})
    turned.to_csv(in_folder / "turned.csv", index=False)
    result = dubito_command("calibrate", "turned.csv", "-y", "y", "-o", "t.skops")
    assert result.exit_code == 0
    assert result.stderr.count("warning:") == 1
    assert "fits cat, not cow" in result.stderr


@pytest.mark.parametrize(
    ("rename", "columns"),
    [
        (str, ["a", "ab", "b"]),
        ("p_{}".format, ["p_a", "p_ab", "p_b"]),
        ("{}_score".format, ["a_score", "ab_score", "b_score"]),
        ("class a: {}!".format, ["class a: a!", "class a: ab!", "class a: b!"]),
    ],
)
def test_columns_are_named_after_classes(dubito_command, make_scores, in_folder, rename, columns):
    frame = make_scores(60, ("a", "ab", "b"))
    frame.columns = [*(rename(name) for name in frame.columns[:3]), "y"]
    frame[["y", *columns[::-1]]].to_csv(in_folder / "t.csv", index=False)
    facts, _ = calibrated(dubito_command, "t.csv", "-y", "y", "--method", "temperature")
    assert facts["columns"] == columns
    assert facts["classes"] == ["a", "ab", "b"]
    assert facts["log_loss_after"] < 0.5


@pytest.mark.usefixtures("in_folder")
@pytest.mark.parametrize("suffix", ["csv", "tsv", "csv.gz", "parquet"])
@pytest.mark.parametrize(
    ("names", "classes"),
    [
        (("2", "10", "1"), [1, 2, 10]),
        (("02", "10", "01"), ["01", "02", "10"]),
        (("yes, sir", 'a "b"'), ['a "b"', "yes, sir"]),
        (("True", "False"), ["False", "True"]),
    ],
)
def test_string_labels_in_every_kind_of_file(dubito_command, make_scores, suffix, names, classes):
    frame, path = make_scores(60, names), f"t.{suffix}"
    if suffix == "parquet":
        frame.to_parquet(path)
    else:
        frame.to_csv(path, index=False, sep="\t" if suffix == "tsv" else ",")
    facts, (_, stamp) = calibrated(dubito_command, path, "-y", "y", "--method", "temperature")
    assert facts["classes"] == stamp.classes == classes
    assert facts["columns"] == [str(name) for name in classes]


def test_labels_of_parquet_keep_their_types(dubito_command, make_scores, in_folder):
    frame = make_scores(60, ("False", "True")).assign(y=lambda t: t["y"] == "True")
    frame.to_parquet(in_folder / "t.parquet")
    facts, _ = calibrated(dubito_command, "t.parquet", "-y", "y")
    assert facts["classes"] == [False, True]


def test_columns_left_out_are_listed(dubito_command, make_scores, in_folder):
    make_scores(60, id=range(60), note="x").to_csv(in_folder / "t.csv", index=False)
    result = dubito_command("calibrate", "t.csv", "-y", "y", "-o", "m.skops")
    assert result.stderr == "note: left out: id.\n"
    facts, _ = calibrated(dubito_command, "t.csv", "-y", "y")
    assert facts["left_out"] == ["id"]
    assert facts["notes"] == ["left out: id."]


@pytest.mark.usefixtures("scores")
def test_quiet_prints_nothing(dubito_command):
    result = dubito_command("calibrate", "scores.csv", "-y", "y", "-o", "m.skops", "--quiet")
    assert result.exit_code == 0
    assert result.output == ""


def test_probabilities_must_be_declared(dubito_command, scores, in_folder):
    names = ["cat", "cow", "dog"]
    scores[names] = softmax(scores[names], axis=1)
    scores.to_csv(in_folder / "p.csv", index=False)
    result = dubito_command("calibrate", "p.csv", "-y", "y", "-o", "m.skops")
    assert "scores taken as margin" in result.stdout
    assert result.stderr == (
        "note: the scores look like probabilities but are taken as margins. If they are "
        "probabilities, say --input proba.\n"
    )
    facts, (model, _) = calibrated(dubito_command, "p.csv", "-y", "y", "--input", "proba")
    assert model.input == "proba"
    assert facts["notes"] == []
    assert facts["log_loss_before"] == pytest.approx(log_loss(scores["y"], scores[names]))


def test_log_probabilities_are_an_input(dubito_command, scores, in_folder):
    names = ["cat", "cow", "dog"]
    proba = softmax(scores[names].to_numpy(), axis=1)
    scores[names] = np.log(proba)
    scores.to_csv(in_folder / "p.csv", index=False)
    facts, (model, _) = calibrated(dubito_command, "p.csv", "-y", "y", "--input", "log_proba")
    assert model.input == facts["input"] == "log_proba"
    assert facts["log_loss_before"] == pytest.approx(log_loss(scores["y"], proba))
    same = AutoCalibrator(input="log_proba").fit(np.log(proba), scores["y"])
    found = model.predict_proba(scores[names].to_numpy())
    np.testing.assert_allclose(found, same.predict_proba(np.log(proba)), atol=1e-9)


def test_semicolons_and_decimal_commas_are_read_and_noted(dubito_command, scores, in_folder):
    scores.to_csv(in_folder / "eu.csv", index=False, sep=";", decimal=",")
    plain, _ = calibrated(dubito_command, "scores.csv", "-y", "y")
    facts, _ = calibrated(dubito_command, "eu.csv", "-y", "y")
    assert facts["notes"] == ["eu.csv is separated by semicolons, decimal commas."]
    assert facts["log_loss_after"] == pytest.approx(plain["log_loss_after"])


def test_several_classifiers_at_once(dubito_command, two, in_folder):
    two.assign(other=two["score"][::-1].to_numpy()).to_csv(in_folder / "t.csv", index=False)
    together = ("--method", "evidential-joint")
    result = dubito_command("calibrate", "t.csv", "-y", "y", "-o", "m.skops", *together)
    assert result.stdout.startswith(
        "Read 200 rows, 2 classifiers (score, other) of 2 classes. Calibrating: "
        "evidential-joint, scores taken as margin, higher meaning spam …\nlog loss "
    )
    assert " (best of 2 alone) → " in result.stdout
    assert saving.load("m.skops").stamp.columns == ("score", "other")


@pytest.mark.parametrize(
    ("rare", "folds", "words"),
    [
        (3, 3, "(3-fold cross-validation: class cow has only 3 rows) · saved m.skops"),
        (1, 0, "no held-out numbers (class cow has only 1 row) · saved m.skops"),
    ],
)
def test_a_rare_class_has_fewer_folds_and_a_note(dubito_command, scores, rare, folds, words):
    common, cows = scores[scores["y"] != "cow"], scores[scores["y"] == "cow"]
    pd.concat([common, cows[:rare]]).to_csv("t.csv", index=False)
    result = dubito_command("calibrate", "t.csv", "-y", "y", "-o", "m.skops")
    assert result.stdout.rstrip().endswith(words)
    facts, _ = calibrated(dubito_command, "t.csv", "-y", "y")
    assert facts["folds"] == folds
    assert (facts["ece_after"] is None) == (folds == 0)


@pytest.mark.usefixtures("scores")
def test_no_cross_validation_when_none_is_wanted(dubito_command):
    result = dubito_command("calibrate", "scores.csv", "-y", "y", "--cv", 0, "-o", "m.skops")
    assert result.stdout.endswith("no held-out numbers (not asked for) · saved m.skops\n")


def test_classes_without_rows_can_be_given(dubito_command, refused, scores, in_folder):
    scores = scores[scores["y"] != "cow"]
    scores.columns = ["p_cat", "p_cow", "p_dog", "y"]
    scores.to_csv(in_folder / "t.csv", index=False)
    assert refused("calibrate", "t.csv", "-y", "y", "-o", "m.skops") == (
        "no row has the label of 1 column (p_cow). Where these are scores of classes, name the "
        "classes of all columns (p_cat, p_cow, p_dog) with --classes; else choose the columns "
        "with --columns."
    )
    facts, _ = calibrated(dubito_command, "t.csv", "-y", "y", "--classes", "cat,cow,dog")
    assert facts["classes"] == ["cat", "cow", "dog"]
    facts, _ = calibrated(dubito_command, "t.csv", "-y", "y", "--columns", "p_cat,p_dog")
    assert facts["classes"] == ["cat", "dog"]


def test_classes_can_be_given_in_the_order_of_the_columns(dubito_command, scores, in_folder):
    scores.columns = ["s1", "s2", "s3", "y"]
    scores.to_csv(in_folder / "t.csv", index=False)
    facts, _ = calibrated(
        dubito_command, "t.csv", "-y", "y", "--columns", "s3,s1,s2", "--classes", "dog,cat,cow"
    )
    assert facts["columns"] == ["s3", "s1", "s2"]
    assert facts["classes"] == ["dog", "cat", "cow"]
    assert facts["log_loss_after"] < 0.5


def test_whole_numbers_stay_numbers_when_classes_are_given(
    dubito_command, make_scores, refused, in_folder
):
    frame = make_scores(60, ("1", "2", "3"))[lambda t: t["y"] != "3"]
    frame.columns = ["a", "b", "c", "y"]
    frame.to_csv(in_folder / "t.csv", index=False)
    facts, _ = calibrated(dubito_command, "t.csv", "-y", "y", "--classes", "1,2,3")
    assert facts["classes"] == [1, 2, 3]
    result = refused("calibrate", "t.csv", "-y", "y", "-o", "n.skops", "--classes", "1,2,x")
    assert result == "--classes must name labels such as 1, 2: whole numbers. It names 1, 2, x."


def test_thousands_of_classes(dubito_command, make_scores, in_folder):
    names = tuple(str(k) for k in range(1500))
    make_scores(3000, names).to_parquet(in_folder / "t.parquet")
    facts, _ = calibrated(
        dubito_command, "t.parquet", "-y", "y", "--method", "temperature", "--cv", 2
    )
    assert len(facts["classes"]) == 1500
