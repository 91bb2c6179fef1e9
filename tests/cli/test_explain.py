"""`dubito explain`: explanations of a row by every kind of model, and errors."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from dubito.cli import build_app
from dubito.cli.recipes import DEFAULT, RECIPES
from dubito.saving import load

CERTAIN = "Its lower bound is above the upper bounds of all other classes.\n"


def flats(n=90, seed=0):
    """Flats of three kinds, which differ in size, rent and quarter."""
    rng = np.random.default_rng(seed)
    kind = rng.permutation(np.arange(n) % 3)
    quarter = np.where(rng.random(n) < 0.7, np.array(["north", "south", "port"])[kind], "north")
    size, rent = rng.normal(50 + 12 * kind, 9).round(1), rng.normal(900 + 150 * kind, 140).round()
    names = np.array(["attic", "loft", "villa"])
    return pd.DataFrame({"size": size, "rent": rent, "quarter": quarter, "kind": names[kind]})


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Train models of flats, each once."""
    folder, made = tmp_path_factory.mktemp("flats"), {}
    flats().to_csv(folder / "flats.csv", index=False)

    def model(name):
        if name not in made:
            made[name] = folder / f"{name}.skops"
            arguments = ["train", folder / "flats.csv", "-y", "kind", "-m", name, "--cv", 0]
            ran = CliRunner().invoke(build_app(), [*map(str, arguments), "-o", str(made[name])])
            assert ran.exit_code == 0, ran.output
        return made[name]

    return model


@pytest.fixture
def new(in_folder):
    """Flats not seen before, in new.csv."""
    frame = flats(40, seed=1)
    frame.to_csv(in_folder / "new.csv", index=False)
    return frame


@pytest.fixture
def explain(dubito_command):
    """Return the explanation of one row as text, and its facts."""

    def call(*arguments):
        text = dubito_command("explain", *arguments)
        assert text.exit_code == 0, text.output
        rows = json.loads(dubito_command("explain", *arguments, "--json").stdout)["rows"]
        return text.stdout, rows

    return call


@pytest.mark.parametrize("name", RECIPES)
def test_explanation_of_every_model(name, trained, new, explain):
    text, (facts,) = explain(trained(name), "new.csv", "--row", 17)
    model, stamp = load(trained(name))
    X = new[list(stamp.columns)].iloc[[17]]
    proba, bounds = model.predict_proba(X)[0], model.predict_bounds(X)
    best = int(np.argmax(proba))
    assert text.startswith(f"row 17: most probable is {stamp.classes[best]} ({proba[best]:.2f}).")
    assert facts["row"] == 17
    assert facts["prediction"] == stamp.classes[best]
    assert facts["set"] == [
        c for c, kept in zip(stamp.classes, model.predict_set(X)[0], strict=True) if kept
    ]
    by_class = {one["class"]: one for one in facts["classes"]}
    assert [label for label in stamp.classes if by_class[label]["could_be_best"]] == facts["set"]
    only = facts["set"] == [stamp.classes[best]]
    verdict = CERTAIN if only else "Could be the best answer: "
    assert verdict in text
    for k, label in enumerate(stamp.classes):
        assert by_class[label]["probability"] == pytest.approx(proba[k])
        assert by_class[label]["lower"] == pytest.approx(bounds.lower[0, k])
        assert by_class[label]["upper"] == pytest.approx(bounds.upper[0, k])
    doubt = facts["doubt"]
    assert doubt["total"] == pytest.approx(1 - bounds.lower[0, best])
    parts = doubt["between_the_bounds"] + doubt["left_to_other_classes"]
    assert parts == pytest.approx(doubt["total"])
    assert f"Doubt about {stamp.classes[best]}: " in text


@pytest.mark.usefixtures("new")
def test_the_digits_of_doubt_add_up(trained, explain):
    rows = [option for i in range(40) for option in ("--row", i)]
    text, facts = explain(trained("nested"), "new.csv", *rows)
    assert [one["row"] for one in facts] == list(range(40))
    lines = [line for line in text.splitlines() if line.startswith("Doubt about") and "=" in line]
    assert len(lines) > 20
    for line in lines:
        total, rest = line.removesuffix(".").split(": ")[1].split(" = ")
        parts = [float(part.split()[0]) for part in rest.split(" + ")]
        assert sum(parts) == pytest.approx(float(total), abs=1e-9)
        assert min(parts) >= 0


def test_the_width_of_the_bounds_is_rounded_as_ignorance_is(in_folder, dubito_command, explain):
    frame = flats(60).query("kind != 'loft'")
    frame.to_csv(in_folder / "two.csv", index=False)
    model = ("--model", "evidential-logistic")  # uncalibrated: bounds are those of the evidence
    dubito_command("train", "two.csv", "-y", "kind", "-o", "m.skops", "--cv", 0, *model)
    rows = [option for i in range(40) for option in ("--row", i)]
    text, _ = explain("m.skops", "two.csv", *rows)
    width = re.findall(r"= (\d\.\d\d) between belief and plausibility", text)
    assert len(width) > 20
    pairs = re.findall(
        r"= (\d\.\d\d) between belief.*\n(?:(?!Doubt).*\n)*?.*ignorance (\d\.\d\d)", text
    )
    assert len(pairs) == len(width)
    assert [pair for pair in pairs if pair[0] != pair[1]] == []


def test_evidential_models_give_the_evidence(trained, new, explain):
    text, (facts,) = explain(trained("evidential-logistic"), "new.csv", "--row", 3)
    model, _ = load(trained("evidential-logistic"))
    X = new[["size", "rent", "quarter"]].iloc[[3]]
    assert model.explain(X).text() in text
    assert {piece["feature"] for piece in facts["evidence"]} == {"size", "rent", "quarter"}
    weights = model.weights(X)[0]
    assert [piece["weight"] for piece in facts["evidence"]] == pytest.approx(
        weights.ravel().tolist()
    )
    assert facts["conflict"] == pytest.approx(model.conflict(X)[0])


def test_the_default_gives_calibrated_probabilities_and_the_evidence(trained, new, explain):
    text, (facts,) = explain(trained(DEFAULT), "new.csv", "--row", 3)
    model, _ = load(trained(DEFAULT))
    X = new[["size", "rent", "quarter"]].iloc[[3]]
    assert facts["classes"][0]["probability"] == pytest.approx(model.predict_proba(X).max())
    inner = model.calibrated_classifiers_[0].estimator
    assert "The evidence, before calibration (" in text
    assert inner.explain(X).text() in text
    assert facts["prediction_before_calibration"] == inner.predict(X)[0]
    assert ("Calibration makes" in text) == (inner.predict(X)[0] != facts["prediction"])
    assert [piece["weight"] for piece in facts["evidence"]] == pytest.approx(
        inner.weights(X)[0].ravel().tolist()
    )


def test_discriminants_give_critical_imprecisions(trained, new, explain):
    text, (facts,) = explain(trained("imprecise"), "new.csv", "--row", 3)
    model, stamp = load(trained("imprecise"))
    needed = model.critical_c(new[["size", "rent", "quarter"]].iloc[[3]], max_c=1000)[0]
    assert facts["imprecision"] == model[-1].c_
    for one in facts["critical_c"]:
        own = needed[stamp.classes.index(one["class"])]
        assert one["c"] == pytest.approx(own) if one["c"] is not None else own > 10 * model[-1].c_
    assert f"The model's imprecision is {model[-1].c_:.2f}." in text
    first = facts["critical_c"][0]
    assert f"could be the best answer: {first['class']} from {first['c']:.2f} on" in text


def test_nested_models_give_the_splits(trained, new, explain):
    text, (facts,) = explain(trained("nested"), "new.csv", "--row", 3)
    model, stamp = load(trained("nested"))
    proba = model.predict_proba(new[["size", "rent", "quarter"]].iloc[[3]])[0]
    probabilities = [split["probability"] for split in facts["splits"]]
    assert np.prod(probabilities) == pytest.approx(proba.max())
    assert facts["splits"][-1]["for"] == [stamp.classes[int(proba.argmax())]]
    assert f"The splits on the way to {facts['prediction']}:" in text


def test_ensembles_count_the_trees_that_agree(trained, new, explain):
    text, (facts,) = explain(trained("nested-ensemble"), "new.csv", "--row", 3)
    model, _ = load(trained("nested-ensemble"))
    X = model[:-1].transform(new[["size", "rent", "quarter"]].iloc[[3]])
    agree = sum(tree.predict(X)[0] == facts["prediction"] for tree in model[-1].estimators_)
    assert (facts["trees_that_agree"], facts["trees"]) == (agree, 10)
    assert f"{agree} of 10 trees find {facts['prediction']} most probable." in text


def test_a_fusion_gives_the_predictions_of_its_members(trained, new, explain):
    text, (facts,) = explain(trained("fusion"), "new.csv", "--row", 3)
    model, _ = load(trained("fusion"))
    X = new[["size", "rent", "quarter"]].iloc[[3]]
    assert facts["conflict"] == pytest.approx(model.conflict(X)[0])
    assert [one["member"] for one in facts["members"]] == ["svm", "bayes", "forest"]
    alone = model.members_[2].predict_proba(X)[0]
    assert facts["members"][2]["probability"] == pytest.approx(alone.max())
    assert f"Conflict between the members: {facts['conflict']:.2f} (0: none" in text


def test_values_given_by_name_are_a_row(trained, new, explain):
    by_row, (row,) = explain(trained("nested"), "new.csv", "--row", 0)
    first = new.iloc[0]
    values = [f"rent={first['rent']}", f"quarter={first['quarter']}", f"size={first['size']}"]
    by_name, (given,) = explain(trained("nested"), *values)
    assert by_name == by_row.replace("row 0:", "row as given:")
    assert {**row, "row": "as given"} == given


@pytest.mark.usefixtures("new")
def test_row_0_is_explained_by_default(trained, explain):
    text, _ = explain(trained("nested"), "new.csv")
    assert text.startswith("row 0: ")


def test_an_unseen_text_is_noticed(trained, explain):
    text, (facts,) = explain(trained("nested"), "size=60", "rent=1000", "quarter=hill")
    assert text.splitlines()[-1] == (
        "note: quarter = hill did not occur in training; it is encoded as none of the known values."
    )
    assert facts["unseen_values"] == {"quarter": "hill"}


@pytest.mark.usefixtures("scores")
def test_scores_are_explained_too(saved_models, explain):
    text, _ = explain(saved_models["evidential-multinomial"], "cat=1", "cow=0", "dog=-1")
    assert text.startswith("row as given: most probable is cat")
    text, (facts,) = explain(saved_models["plain"], "scores.csv", "--row", 2)
    assert "This model has no bounds, so the doubt cannot be divided" in text
    assert "doubt" not in facts
    assert set(facts["classes"][0]) == {"class", "probability"}


def test_a_class_is_named_as_it_is(in_folder, dubito_command, explain):
    flats().assign(kind=np.arange(90) % 7 + 1).to_csv(in_folder / "d.csv", index=False)
    assert dubito_command("train", "d.csv", "-y", "kind", "-o", "m.skops", "--cv", 0).exit_code == 0
    text, (facts,) = explain("m.skops", "d.csv")
    assert facts["prediction"] in range(1, 8)
    assert len(facts["classes"]) == 5
    assert "  and 2 less probable classes" in text


def test_values_that_do_not_fit(trained, refused):
    model = trained("nested")
    assert refused("explain", model, "size=60") == (
        "values are missing for rent, quarter. The model needs all of size, rent, quarter."
    )
    assert refused("explain", model, "size=60", "rent=1", "quartier=x").startswith(
        "the model has no column 'quartier'. Did you mean 'quarter'?"
    )
    assert refused("explain", model, "size=big", "rent=1", "quarter=x") == (
        "size=big: column 'size' takes numbers."
    )
    assert refused("explain", model, "size=1", "size=2") == (
        "'size' is given twice. Give each column one value."
    )
    assert "'rent' has no '='" in refused("explain", model, "size=1", "rent")
    assert "row as given, column 'size'" in refused(
        "explain", model, "size=", "rent=1", "quarter=x"
    )
    assert refused("explain", model, "size=1", "rent=1", "quarter=x", "--row", 1).startswith(
        "--row"
    )


def test_rows_that_are_not_there(trained, new, refused):
    model = trained("nested")
    assert refused("explain", model, "new.csv", "--row", 40) == (
        "new.csv has no row 40: its rows are 0 to 39."
    )
    new[:0].to_csv("none.csv", index=False)
    assert refused("explain", model, "none.csv") == "none.csv has no row 0: it has no rows."
    new.drop(columns="rent").to_csv("less.csv", index=False)
    assert refused("explain", model, "less.csv").startswith(
        "column 'rent' is missing from less.csv."
    )
    new.assign(rent=np.inf).to_csv("inf.csv", index=False)
    assert "row 3, column 'rent'" in refused("explain", model, "inf.csv", "--row", 3)


def test_files_that_are_no_tables_or_models(trained, new, in_folder, refused):
    assert refused("explain", trained("nested"), "nw.csv") == (
        "there is no file nw.csv. Did you mean new.csv?"
    )
    assert refused("explain", trained("nested"), 5) == "row 5 of which table? Say TABLE --row 5."
    (in_folder / "empty.csv").touch()
    assert "empty.csv is empty" in refused("explain", trained("nested"), "empty.csv")
    assert "new.csv" in refused("explain", "new.csv", "new.csv")
    assert len(new) == 40
