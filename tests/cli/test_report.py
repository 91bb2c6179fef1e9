"""`dubito report`: the page is written, and its main lines are printed."""

import json
import os
import re
from importlib import util

import pytest
from sklearn.linear_model import LogisticRegression

from dubito import RejectClassifier
from dubito.report import collect
from dubito.saving import load, save


@pytest.fixture
def model(saved_models):
    return saved_models["evidential-multinomial"]


def test_three_lines_and_the_path_of_the_page_are_printed(model, scores, in_folder, dubito_command):
    result = dubito_command(
        "report", model, "scores.csv", "-o", "r.html", "--title", "Three animals"
    )
    assert result.exit_code == 0, result.output
    *lines, where = result.stdout.splitlines()
    X = scores[["cat", "cow", "dog"]].to_numpy()
    assert lines == collect(load(model).model, X, scores["y"])["summary"]["lines"]
    assert len(lines) == 3
    assert where == f"Report: {in_folder / 'r.html'} (open it in a browser)"
    page = (in_folder / "r.html").read_text(encoding="utf-8")
    assert "<html" in page
    assert "Three animals" in page


@pytest.mark.usefixtures("scores")
def test_the_cost_of_asking_is_passed_on(model, dubito_command):
    result = dubito_command("report", model, "scores.csv", "--reject-cost", 0.05, "--json")
    facts = json.loads(result.stdout)
    assert facts["file"] == "report.html"
    assert facts["reject_cost"] == 0.05
    assert facts["rows"] == 300
    assert "costs 0.05" in facts["lines"][1]


def test_a_model_that_declines_brings_its_cost(scores, dubito_command):
    X, y = scores[["cat", "cow", "dog"]], scores["y"]
    model = RejectClassifier(LogisticRegression(), cost=0.05, reject_label="none").fit(X, y)
    save(model, "own.skops", columns=list(X), kind="features", label="y")
    result = dubito_command("report", "own.skops", "scores.csv", "--json")
    assert result.exit_code == 0, result.output
    facts = json.loads(result.stdout)
    assert facts["reject_cost"] == 0.05
    assert facts["declined_rows"] == (model.predict(X) == "none").sum()
    result = dubito_command(
        "report", "own.skops", "scores.csv", "--reject-cost", 0.3, "--json", "--force"
    )
    assert json.loads(result.stdout)["reject_cost"] == 0.3


def test_rows_are_called_by_a_column(model, make_scores, in_folder, dubito_command, refused):
    make_scores(60, id=[f"{k:04d}-x" for k in range(60)]).to_csv("t.csv", index=False)
    assert dubito_command("report", model, "t.csv", "--names", "id").exit_code == 0
    page = (in_folder / "report.html").read_text(encoding="utf-8")
    assert len(set(re.findall(r"\d{4}-x", page))) >= 20
    assert refused("report", model, "t.csv", "--names", "ids", "--force").startswith(
        "column 'ids' is missing from t.csv. Did you mean 'id'?"
    )


@pytest.mark.usefixtures("scores")
def test_models_side_by_side(model, saved_models, in_folder, dubito_command):
    result = dubito_command("report", model, "scores.csv", "--compare", saved_models["platt"])
    assert result.exit_code == 0, result.output
    page = (in_folder / "report.html").read_text(encoding="utf-8")
    assert "evidential-multinomial" in page
    assert "platt" in page


@pytest.mark.usefixtures("scores")
def test_it_never_overwrites_without_force(model, in_folder, refused, dubito_command):
    (in_folder / "report.html").write_text("mine", encoding="utf-8")
    assert refused("report", model, "scores.csv") == (
        "report.html exists already. Add --force to overwrite it, or name another file."
    )
    assert (in_folder / "report.html").read_text(encoding="utf-8") == "mine"
    assert dubito_command("report", model, "scores.csv", "--force").exit_code == 0
    assert "<html" in (in_folder / "report.html").read_text(encoding="utf-8")


@pytest.mark.usefixtures("scores")
def test_an_unwritable_folder_is_reported_first(model, refused, monkeypatch):
    arguments = ["report", model, "scores.csv", "-o"]
    assert refused(*arguments, "no/r.html") == "there is no folder no to write r.html into."
    monkeypatch.setattr(os, "access", lambda _, mode: mode != os.W_OK)
    assert "may not be written to" in refused(*arguments, "r.html")


@pytest.mark.usefixtures("scores")
def test_without_the_extra_the_error_names_what_to_install(model, refused, monkeypatch):
    find = util.find_spec
    monkeypatch.setattr(util, "find_spec", lambda name: None if name == "altair" else find(name))
    assert refused("report", model, "scores.csv") == (
        'a report needs altair, which is not installed: pip install ".[report]" in a '
        "checkout of dubito"
    )


@pytest.mark.usefixtures("scores")
def test_a_cost_beyond_a_mistake_is_refused(model, dubito_command):
    result = dubito_command("report", model, "scores.csv", "--reject-cost", 1.5)
    assert result.exit_code == 2
    assert "--reject-cost" in result.stderr


def test_bad_rows(model, scores, refused, in_folder):
    scores.drop(columns="cow").to_csv("a.csv", index=False)
    assert refused("report", model, "a.csv").startswith("column 'cow' is missing from a.csv.")
    scores.assign(y="fox").to_csv("b.csv", index=False)
    assert "'fox'" in refused("report", model, "b.csv")
    scores.assign(cow=scores["cow"].where(scores.index != 17)).to_csv("c.csv", index=False)
    assert "row 17, column 'cow'" in refused("report", model, "c.csv")
    assert not (in_folder / "report.html").exists()
