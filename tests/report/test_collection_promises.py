"""Levels of bounds, coverage of sets and unfamiliar rows in a report."""

import json
import re
from collections import Counter

import numpy as np
import pytest
from scipy.stats import binomtest
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dubito import NotSupportedError
from dubito.belief import Bounds
from dubito.evidence import EvidentialClassifier
from dubito.metrics.descriptions import LOW_COVERAGE
from dubito.report import collect, metrics
from dubito.report.wording import percent

CLASSES = np.array(["ash", "beech", "elm"], dtype=object)
N = 150


@pytest.fixture(autouse=True)
def few_resamples(monkeypatch):
    """Intervals by resamples are not what these tests are about."""
    monkeypatch.setattr(metrics, "RESAMPLES", 10)


@pytest.fixture
def rows(fakes):
    return fakes.rows(N, 3, seed=4)


class Levelled:
    """Answers with bounds that are the wider, the higher their level."""

    def __init__(self, proba):
        self.classes_, self.proba = CLASSES, proba

    def predict_proba(self, X):
        return self.proba[np.ravel(X)]

    def predict_bounds(self, X, level=None):
        proba, width = self.predict_proba(X), 0.1 if level is None else level / 3
        return Bounds(proba * (1 - width), 1 - (1 - proba) * (1 - width), level)

    def predict_set(self, X, level=None):
        bounds = self.predict_bounds(X, level)
        return bounds.upper >= bounds.lower.max(axis=1, keepdims=True)


class Conformal(Levelled):
    """Sets of classes whose p-value, here their probability, exceeds 1 - coverage."""

    class_conditional = False
    _bounds_meaning = "conformal"

    def predict_contour(self, X):
        return self.predict_proba(X)

    def predict_set(self, X, coverage):
        contour = self.predict_contour(X)
        return (contour > 1 - coverage) | (contour == contour.max(axis=1, keepdims=True))


class Aware(Levelled):
    """Has familiarities: row i is as familiar as i / N, in another order."""

    rate = 0.2

    def familiarity(self, X):
        return (np.ravel(X) * 7 % N + 1) / (N + 1)


def test_the_level_is_beside_every_bound(rows):
    X, proba, column = rows
    model = Levelled(proba)
    plain, levelled = (collect(model, X, CLASSES[column], level=level) for level in (None, 0.9))
    for collected, level in ((plain, None), (levelled, 0.9)):
        bounds = model.predict_bounds(X, level)
        assert collected["bounds"][0]["level"] == level
        for row in collected["doubt"]["rows"]:
            i = int(row["name"])
            k = proba[i].argmax()
            assert row["lower"] == pytest.approx(bounds.lower[i, k])
            assert row["upper"] == pytest.approx(bounds.upper[i, k])
        sizes = model.predict_set(X, level).sum(axis=1)
        assert collected["sets"]["mean"] == pytest.approx(sizes.mean())
        assert json.loads(json.dumps(collected, allow_nan=False)) == collected
    assert levelled["sets"]["mean"] > plain["sets"]["mean"]
    assert plain["coverage"] is plain["familiarity"] is None
    assert len(plain["summary"]["lines"]) == 3


def test_words_on_the_page_name_belief_or_the_level(rows):
    pytest.importorskip("altair", reason="the extra is not installed: pip install .[report]")
    from dubito.report import render

    X, proba, column = rows
    page = render(collect(Levelled(proba), X, CLASSES[column]))
    assert "decides where a class has a pignistic probability, between its bounds, of at" in page
    page = render(collect(Levelled(proba), X, CLASSES[column], strategy="pessimistic"))
    assert "decides where a class has a belief of at least" in page
    assert "They have no confidence level" in page
    assert "level 0." not in re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)
    insured = collect(Levelled(proba), X, CLASSES[column], level=0.9, strategy="pessimistic")
    page = render(insured)
    assert "has a lower bound (level 0.9) of at least" in page
    assert (
        "They contain the true probability of a class, given its scores, in about 90% of the cases"
        in page
    )
    assert "elief" not in re.sub(r"<(script|style).*?</\1>", "", page, flags=re.DOTALL)


#: Evidence is about the values of a row, and bounds about the model: neither counts rows.
FALSE = ("too few", "like this one", "should lie between", "such cases, and they", "more data")


@pytest.mark.parametrize("level", [None, 0.9])
def test_no_page_claims_that_evidence_counts_cases(rows, level):
    pytest.importorskip("altair", reason="the extra is not installed: pip install .[report]")
    from dubito.report import render

    X, proba, column = rows
    pages = [render(collect(Levelled(proba), X, CLASSES[column], level=level))]
    if level is None:
        data, target = load_breast_cancer(return_X_y=True)
        model = EvidentialClassifier(make_pipeline(StandardScaler(), LogisticRegression()))
        model.fit(data[::2], target[::2])
        # The average patient: no value is evidence for a class.
        average = np.vstack([data[::2].mean(axis=0), data[1:40:2]])
        truth = np.append(0, target[1:40:2])
        pages.append(render(collect(model, average, truth)))
    for page in pages:
        text = re.sub(r"<(script|style).*?</\1>", "", page, flags=re.DOTALL)
        assert [words for words in FALSE if words in text] == []
        assert "Neither part counts cases" in text


def test_a_model_without_levels_refuses_with_the_way_out():
    X, y = load_breast_cancer(return_X_y=True)
    model = EvidentialClassifier(make_pipeline(StandardScaler(), LogisticRegression()))
    model.fit(X[::2], y[::2])
    with pytest.raises(NotSupportedError, match=r"no bounds at a confidence level.*Use"):
        collect(model, X[1::2], y[1::2], level=0.9)


@pytest.mark.parametrize("level", [90, "0.9", 0, True])
def test_levels_and_coverages_are_fractions(rows, level):
    X, proba, column = rows
    with pytest.raises(ValueError, match=r"level must be None.*between 0 and 1"):
        collect(Levelled(proba), X, CLASSES[column], level=level)
    with pytest.raises(ValueError, match=r"coverage must be a number between 0 and 1.* Got"):
        collect(Conformal(proba), X, CLASSES[column], coverage=level)


@pytest.mark.parametrize("coverage", [0.5, 0.97])
def test_coverage_promised_and_observed(rows, coverage):
    X, proba, column = rows
    collected = collect(Conformal(proba), X, CLASSES[column], coverage=coverage)
    found = collected["coverage"]
    sets = []
    for p in proba.tolist():
        kept = {k for k in range(3) if p[k] > 1 - coverage}
        sets.append(kept or {p.index(max(p))})
    held = [c in kept for c, kept in zip(column.tolist(), sets, strict=True)]
    exact = binomtest(sum(held), N).proportion_ci(method="exact")
    observed = found["observed"]
    assert (found["requested"], observed["covered"], observed["rows"]) == (coverage, sum(held), N)
    assert (observed["low"], observed["high"]) == pytest.approx((exact.low, exact.high))
    assert found["mean_set_size"] == pytest.approx(np.mean([len(kept) for kept in sets]))
    seen = Counter(column.tolist())
    caught = Counter(c for c, is_in in zip(column.tolist(), held, strict=True) if is_in)
    fractions = [one["fraction"] for one in found["classes"]]
    assert fractions == sorted(caught[k] / seen[k] for k in seen)
    for one in found["classes"]:
        k = CLASSES.tolist().index(one["label"])
        assert (one["covered"], one["rows"]) == (caught[k], seen[k])
    assert collected["summary"]["lines"][3] == found["line"]
    assert f"requested {percent(coverage)}, observed {percent(sum(held) / N)}" in found["line"]
    assert LOW_COVERAGE not in found["line"]
    assert exact.high >= coverage


def test_coverage_below_chance_limits_is_reported(rows):
    X, proba, column = rows
    found = collect(Conformal(proba), X, CLASSES[(column + 1) % 3], coverage=0.9)["coverage"]
    assert found["observed"]["high"] < 0.9
    assert found["line"].endswith(f"). {LOW_COVERAGE}")


def test_unfamiliar_rows_are_counted_and_the_least_familiar_listed(rows):
    X, proba, column = rows
    model = Aware(proba)
    collected = collect(model, X, CLASSES[column], doubtful_rows=9)
    found, familiarity = collected["familiarity"], model.familiarity(X).tolist()
    strange = [i for i, u in enumerate(familiarity) if u < 0.2]
    assert (found["unfamiliar"], found["fraction"]) == (len(strange), len(strange) / N)
    right = (proba.argmax(axis=1) == column).tolist()
    others = [i for i in range(N) if i not in strange]
    assert found["accuracy_unfamiliar"] == pytest.approx(np.mean([right[i] for i in strange]))
    assert found["accuracy_familiar"] == pytest.approx(np.mean([right[i] for i in others]))
    expected = sorted(range(N), key=familiarity.__getitem__)[:9]
    assert [int(row["name"]) for row in found["rows"]] == expected
    for row in found["rows"]:
        i = int(row["name"])
        k = proba[i].argmax()
        assert row["familiarity"] == familiarity[i]
        assert (row["predicted"], row["truth"]) == (CLASSES[k], CLASSES[column[i]])
        assert (row["correct"], row["probability"]) == (right[i], proba[i, k])
        bounds = model.predict_bounds([i])
        assert row["lower"] == pytest.approx(bounds.lower[0, k])
        assert row["upper"] == pytest.approx(bounds.upper[0, k])
    assert collected["summary"]["lines"][3] == found["line"]


def test_where_all_rows_are_familiar_none_is_listed(rows):
    X, proba, column = rows
    model = Aware(proba)
    model.familiarity = lambda X: np.full(len(X), 0.5)
    found = collect(model, X, CLASSES[column])["familiarity"]
    assert (found["unfamiliar"], found["rows"], found["accuracy_unfamiliar"]) == (0, [], None)


def test_the_page_has_a_place_for_coverage_and_for_unfamiliar_rows(rows):
    pytest.importorskip("altair", reason="the extra is not installed: pip install .[report]")
    from dubito.report import render

    X, proba, column = rows
    places = {
        name: set(re.findall(r'<section id="(coverage|familiarity)"', render(collected)))
        for name, collected in (
            ("plain", collect(Levelled(proba), X, CLASSES[column])),
            ("conformal", collect(Conformal(proba), X, CLASSES[column])),
            ("aware", collect(Aware(proba), X, CLASSES[column])),
        )
    }
    assert places == {"plain": set(), "conformal": {"coverage"}, "aware": {"familiarity"}}
