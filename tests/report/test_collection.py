"""`collect`: every number by its definition, for every kind of model."""

import json

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.preprocessing import StandardScaler

from dubito.calibration import (
    CalibratedClassifier,
    EvidentialFusion,
    EvidentialLogisticCalibrator,
    EvidentialMultinomialCalibrator,
)
from dubito.decision import reject
from dubito.discriminant import ImpreciseGaussianDiscriminant
from dubito.metrics import evaluate
from dubito.pipeline import CautiousPipeline, RejectClassifier, make_cautious_pipeline
from dubito.report import collect, metrics, predictions
from dubito.report.wording import slider_texts

LETTERS = np.array(["a", "b", "c", "d"], dtype=object)


def assert_plain(collected):
    """JSON takes it, without nan, and gives it back."""
    assert json.loads(json.dumps(collected, allow_nan=False)) == collected


@pytest.fixture(autouse=True)
def few_resamples(monkeypatch):
    """Intervals are not what most tests are about."""
    monkeypatch.setattr(metrics, "RESAMPLES", 10)


@pytest.fixture(scope="module")
def letters(fakes):
    """A cautious model on four classes, its rows and their labels."""
    X, proba, column = fakes.rows(300, 4)
    return fakes.cautious(LETTERS, proba, ignorance=0.15), X, LETTERS[column]


@pytest.mark.parametrize("strategy", ["pessimistic", "optimistic", "pignistic", "probabilistic"])
def test_the_slider_agrees_with_reject(letters, strategy):
    model, X, y = letters
    method = collect(model, X, y, strategy=strategy)["declining"]["models"][0]
    bounds, proba = model.predict_bounds(X), model.predict_proba(X)
    wrong = LETTERS[proba.argmax(axis=1)] != y
    for at, cost in ((0, 0.0), (7, 0.07), (20, 0.2), (63, 0.63), (100, 1.0)):
        declined = reject(proba if strategy == "probabilistic" else bounds, cost, strategy)
        assert method["declined"][at] == pytest.approx(declined.mean())
        if declined.all():
            assert method["error"][at] is None
        else:
            error = wrong[~declined].mean()
            assert method["error"][at] == pytest.approx(error)
            assert method["low"][at] <= error <= method["high"][at]
        mean = (wrong & ~declined).mean() + cost * declined.mean()
        assert method["cost"][at] == pytest.approx(mean)
    assert method["error_without_declining"] == pytest.approx(wrong.mean())


def test_the_drawn_curve_starts_with_all_rows_and_stays_short(letters):
    model, X, y = letters
    method = collect(model, X, y)["declining"]["models"][0]
    first = method["curve"][0]
    assert first["declined"] == 0
    assert first["error"] == pytest.approx(method["error_without_declining"])
    assert len(method["curve"]) <= 150


@pytest.mark.parametrize(
    ("cost", "start", "stops"), [(0.2, 0.2, 101), (0.125, 0.125, 201), (1 / 3, 0.333, 1001)]
)
def test_the_slider_reaches_the_given_cost(letters, cost, start, stops):
    model, X, y = letters
    collected = collect(model, X, y, cost=cost)
    rejecting = collected["declining"]
    assert (rejecting["start"], len(rejecting["costs"])) == (start, stops)
    assert start in rejecting["costs"]
    assert collected["summary"]["reject_cost"] == start


def test_the_summary_has_three_sentences_with_the_numbers(letters):
    model, X, y = letters
    summary = collect(model, X, y, cost=0.4)["summary"]
    right, declines, cost = summary["lines"]
    assert f"right in {summary['right']['value']:.1%} of 300 cases" in right
    assert f"declines {summary['declined']:.1%}" in declines
    before = summary["error_without_declining"]
    assert f"{summary['error']:.1%} are wrong instead of {before:.1%}" in cost
    assert summary["declined_rows"] == reject(model.predict_bounds(X), 0.4).sum()


@pytest.mark.parametrize(
    ("ignorance", "cost", "declines", "mean_cost"),
    [
        (0.95, 0.2, "declines every case.", "lowers the mean cost: it gives no answer of its own"),
        (0.95, 0.9, "declines every case.", "Declining raises the mean cost: it gives no answer"),
        (0.1, 1.0, "declines none of the cases.", "No case is declined: "),
        (0.1, 0.2, "% of the cases (", "Declining lowers the mean cost: of the answers it gives"),
    ],
)
def test_the_summary_says_what_declining_does_to_the_mean_cost(
    fakes, ignorance, cost, declines, mean_cost
):
    X, proba, column = fakes.rows(300, 4)
    model = fakes.cautious(LETTERS, proba, ignorance=ignorance)
    collected = collect(model, X, LETTERS[column], cost=cost, strategy="pessimistic")
    _, second, third = collected["summary"]["lines"]
    assert declines in second
    assert mean_cost in third


@pytest.mark.parametrize(
    ("n", "asked", "sure_and_wrong", "says"),
    [
        (60, 5, 0, "a case costs 0.017 on average with or without asking."),  # exactly
        (5000, 6, 1199, "a case costs 0.240 on average with or without asking."),  # as it reads
        (3000, 2, 0, "a case costs 0.00013 on average instead of 0.00033 (60% less)."),
    ],
)
def test_costs_displayed_as_equal_are_called_equal(fakes, n, asked, sure_and_wrong, says):
    column = np.zeros(n, dtype=int)
    column[0] = 1  # declining helps here
    column[asked : asked + sure_and_wrong] = 1
    proba = np.tile([1.0, 0.0], (n, 1))
    proba[:asked] = [0.7, 0.3]
    X = np.arange(n)[:, None]
    collected = collect(fakes.precise([0, 1], proba), X, column, cost=0.2)
    line = collected["summary"]["lines"][2]
    assert collected["summary"]["declined_rows"] == asked
    assert line.endswith(says)
    equal = "with or without" in says
    assert line.startswith("Declining does not change the mean cost: ") == equal
    assert (slider_texts(collected)["cells"][20][3] == "the same") == equal


def test_the_numbers_are_those_of_evaluate(letters, monkeypatch):
    monkeypatch.undo()
    model, X, y = letters
    bold = type(model).__mro__[1](LETTERS, model.proba)
    collected = collect({"cautious": model, "bold": bold}, X, y, random_state=3)
    expected = evaluate(
        y,
        model.predict_proba(X),
        bounds=model.predict_bounds(X),
        sets=model.predict_set(X),
        classes=LETTERS,
        random_state=3,
    )
    found = {row["key"]: row["cells"] for row in collected["metrics"]}
    assert list(found) == list(expected)
    for key, estimate in expected.items():
        assert list(found[key][0].values()) == pytest.approx(list(estimate))
    assert found["mean_width"][1] is None
    assert found["coverage"][1]["value"] == pytest.approx(found["accuracy"][1]["value"])


def test_the_best_is_marked_only_where_one_end_is_better(fakes):
    X, proba, column = fakes.rows(200, 3)
    flat = np.full_like(proba, 1 / 3)
    models = {"flat": fakes.precise([0, 1, 2], flat), "knowing": fakes.precise([0, 1, 2], proba)}
    best = {row["key"]: row["best"] for row in collect(models, X, column)["metrics"]}
    assert best["accuracy"] == best["log_loss"] == [1]
    assert best["mean_set_size"] == best["coverage"] == []


def test_confusions_and_sets_are_counted(fakes):
    proba = [[0.6, 0.3, 0.1], [0.5, 0.45, 0.05], [0.5, 0.45, 0.05], [0.0, 0.1, 0.9]]
    model = fakes.cautious(["cod", "eel", "ray"], proba, ignorance=0.2)
    collected = collect(model, np.arange(4)[:, None], ["cod", "eel", "eel", "ray"])
    sets, confusions = collected["sets"], collected["confusions"]
    assert sets["bars"] == [
        {"size": "1", "rows": 2, "covered": 2},
        {"size": "2", "rows": 2, "covered": 2},
    ]
    assert (sets["mean"], sets["single"], sets["covered"]) == (1.5, 0.5, 1.0)
    assert confusions["map"]["counts"] == [[1, 0, 0], [2, 0, 0], [0, 0, 1]]
    assert confusions["mistaken"] == [
        {"truth": "eel", "predicted": "cod", "rows": 2, "fraction": 1.0}
    ]
    assert confusions["together"] == [{"first": "cod", "second": "eel", "rows": 2}]


@pytest.mark.parametrize("empty", [slice(None), slice(0, 3)])
def test_sets_of_other_libraries_may_be_empty(fakes, empty):
    X, proba, column = fakes.rows(20, 3)
    sets = proba == proba.max(axis=1, keepdims=True)
    sets[empty] = False
    model = fakes.precise([0, 1, 2], proba)
    model.predict_set = lambda X: sets[X[:, 0]]
    bars = collect(model, X, column)["sets"]["bars"]
    assert bars[0] == {"size": "0", "rows": len(sets[empty]), "covered": 0}
    assert sum(bar["rows"] for bar in bars) == 20
    model.predict_set = lambda X: sets[X[:, 0]].astype(int)
    with pytest.raises(ValueError, match=r"predict_set of 'Precise' must give a boolean array"):
        collect(model, X, column)


def test_reliability_of_the_prediction_and_of_each_class(letters):
    model, X, y = letters
    reliability = collect(model, X, y)["reliability"]
    top = reliability["top"][0]["points"]
    assert sum(point["rows"] for point in top) == 300
    right = sum(point["rows"] * point["frequency"] for point in top) / 300
    assert right == pytest.approx((LETTERS[model.proba.argmax(axis=1)] == y).mean())
    assert [one["label"] for one in reliability["classes"]] == list(LETTERS)
    for one in reliability["classes"]:
        points = one["curves"][0]["points"]
        seen = sum(point["rows"] * point["frequency"] for point in points)
        assert seen == pytest.approx(one["rows"]) == (y == one["label"]).sum()


def test_of_many_classes_only_those_that_matter_are_shown(fakes):
    n, k = 400, 60
    rng = np.random.default_rng(0)
    column = rng.integers(k, size=n)
    column[:80] = 7
    proba = np.full((n, k), 0.5 / (k - 1))
    proba[:, 11] = 1 - proba[:, 0] * (k - 1)  # far too often
    labels = np.array([f"species {i}" for i in range(k)], dtype=object)
    collected = collect(fakes.precise(labels, proba), np.arange(n)[:, None], labels[column])
    shown = [one["label"] for one in collected["reliability"]["classes"]]
    assert len(shown) == len(set(shown)) == 12
    assert shown[0] == "species 7"
    assert "species 11" in shown
    assert collected["confusions"]["map"] is None
    assert len(collected["confusions"]["mistaken"]) == 10


@pytest.mark.parametrize("doubts", [True, False])
@pytest.mark.parametrize(
    "case", ["two classes", "one row", "one class seen", "all right", "certain", "hidden classes"]
)
def test_unusual_data(fakes, case, doubts):
    n, k = {"two classes": (80, 2), "one row": (1, 3)}.get(case, (80, 3))
    X, proba, column = fakes.rows(n, k)
    if case == "one class seen":
        column = np.zeros(n, dtype=int)
    if case == "hidden classes":
        column = column.clip(max=1)
    if case == "certain":
        proba = np.eye(k)[column]
    if case == "all right":
        column = proba.argmax(axis=1)
    model = fakes.cautious(LETTERS[:k], proba, ignorance=0.1) if doubts else None
    model = model or fakes.precise(LETTERS[:k], proba)
    collected = collect(model, X, LETTERS[column])
    assert_plain(collected)
    assert collected["has_bounds"] == [doubts]
    assert collected["doubt"]["has_bounds"] == doubts
    if case in {"all right", "certain"}:
        assert collected["confusions"]["mistaken"] == []
        assert collected["summary"]["right"]["value"] == 1
    if case == "certain" and not doubts:
        assert collected["doubt"]["rows"] == []


def test_models_with_a_table_each_and_classes_in_another_order(fakes):
    pd = pytest.importorskip("pandas")
    X, proba, column = fakes.rows(60, 4)
    index = [f"patient {i}" for i in range(60)]
    first = pd.DataFrame({"row": X[:, 0]}, index=index)
    second = pd.DataFrame({"other": 1.0, "row": X[:, 0]})
    models = {
        "forward": fakes.cautious(LETTERS, proba, ignorance=0.1),
        "backward": fakes.cautious(LETTERS[::-1], proba[:, ::-1], ignorance=0.1),
    }
    collected = collect(models, {"forward": first, "backward": second}, LETTERS[column])
    for row in collected["metrics"]:
        assert row["cells"][0] == pytest.approx(row["cells"][1])
    assert collected["doubt"]["rows"][0]["name"].startswith("patient ")


def test_same_input_same_report(letters):
    model, X, y = letters
    assert collect(model, X, y) == collect(model, X, y)
    assert collect(model, X, y) != collect(model, X, y, random_state=1)  # the resamples differ


def test_too_many_rows_are_sampled_with_a_note(letters, monkeypatch):
    model, X, y = letters
    monkeypatch.setattr(predictions, "MOST_CELLS", 400)
    collected = collect(model, X, y)
    assert (collected["rows"], collected["rows_given"]) == (100, 300)
    assert collected == collect(model, X, y)
    names = {row["name"] for row in collected["doubt"]["rows"]}
    assert any(int(name) >= 100 for name in names)  # rows keep their own names
    bounds = model.predict_bounds(X)
    for row in collected["doubt"]["rows"]:
        assert row["lower"] == pytest.approx(bounds.lower[int(row["name"])].max())


@pytest.mark.parametrize("kind", ["calibrator", "classifier", "fusion", "pipeline", "precise"])
def test_every_kind_of_model(kind):
    X, y = load_iris(return_X_y=True)
    fit, test = slice(0, None, 2), slice(1, None, 2)
    rows = X
    if kind == "calibrator":  # X is scores
        y = y == 2
        rows = X[:, 2]
        model = EvidentialLogisticCalibrator(input="margin").fit(rows[fit], y[fit])
    elif kind == "classifier":
        model = CalibratedClassifier(GaussianNB(), EvidentialMultinomialCalibrator(), cv=3)
    elif kind == "fusion":
        members = [("bayes", GaussianNB()), ("logistic", LogisticRegression(max_iter=500))]
        model = EvidentialFusion(members, method="independent", cv=3)
    elif kind == "pipeline":
        steps = [("scale", StandardScaler()), ("model", ImpreciseGaussianDiscriminant(c=1.0))]
        model = CautiousPipeline(steps)
    else:
        model = GaussianNB()
    collected = collect(model.fit(rows[fit], y[fit]), rows[test], y[test])
    assert_plain(collected)
    assert collected["has_bounds"] == [kind != "precise"]
    assert ("own_conflict" in collected["doubt"]["rows"][0]) == (kind == "fusion")
    assert collected["models"] == [type(model).__name__]


@pytest.mark.parametrize("strategy", ["pignistic", "pessimistic"])
@pytest.mark.parametrize("wrapper", ["none", "pipeline", "search"])
def test_a_model_that_declines_is_judged_by_its_own_cost_and_strategy(strategy, wrapper):
    X, y = load_iris(return_X_y=True)
    inner = CalibratedClassifier(GaussianNB(), EvidentialMultinomialCalibrator(), cv=3)
    model = RejectClassifier(inner, cost=0.1, strategy=strategy, reject_label=-1)
    if wrapper == "pipeline":
        model = make_cautious_pipeline(StandardScaler(), model)
    elif wrapper == "search":
        model = GridSearchCV(model, {"estimator__cv": [3]}, cv=2)
    model.fit(X[::2], y[::2])
    collected = collect(model, X[1::2], y[1::2])
    summary = collected["summary"]
    assert summary["reject_cost"] == 0.1
    assert collected["declining"]["models"][0]["strategy"] == strategy
    assert summary["declined_rows"] == (model.predict(X[1::2]) == -1).sum() > 0
    given = collect(model, X[1::2], y[1::2], cost=0.5, strategy="optimistic")
    assert given["summary"]["reject_cost"] == 0.5
    assert given["declining"]["models"][0]["strategy"] == "optimistic"


def test_a_cost_on_another_scale_is_not_used(letters):
    X, y = load_iris(return_X_y=True)
    loss = 10 * (1 - np.eye(3))
    priced = RejectClassifier(GaussianNB(), cost=3, loss=loss).fit(X[::2], y[::2])
    assert collect(priced, X[1::2], y[1::2])["summary"]["reject_cost"] == 0.2
    never = RejectClassifier(GaussianNB(), cost=3).fit(X[::2], y[::2])
    assert collect(never, X[1::2], y[1::2])["summary"]["reject_cost"] == 1.0
    model, X, y = letters
    assert collect(model, X, y)["summary"]["reject_cost"] == 0.2


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"strategy": "bold"}, ValueError, "strategy must be one of"),
        ({"cost": 2}, ValueError, "cost must be a number in"),
        ({"cost": True}, TypeError, "cost must be a number .* Got True"),
        ({"cost": "0.2"}, TypeError, "cost must be a number .* Got '0.2'"),
        ({"cost": float("nan")}, ValueError, "cost must be a number .* Got nan"),
        ({"title": 5}, TypeError, "title must be a text. Got 5"),
        ({"doubtful_rows": -1}, ValueError, "doubtful_rows must be a whole number, 0 or more"),
        ({"doubtful_rows": 2.5}, ValueError, "doubtful_rows must be a whole number.* Got 2.5"),
        ({"doubtful_rows": True}, ValueError, "doubtful_rows must be a whole number.* Got True"),
        ({"models": {}}, ValueError, "models is empty"),
        ({"models": object()}, TypeError, r"got object.*write_report\(models, X, y, path\)"),
        ({"models": GaussianNB()}, TypeError, "GaussianNB has no classes_.*Pass a fitted"),
        ({"models": GaussianNB}, TypeError, r"got the class GaussianNB itself.*GaussianNB\(\)"),
        ({"y": ["a", "z"] * 150}, ValueError, "labels that classes does not list: 'z'"),
        ({"y": ["a"]}, ValueError, "X has 300 rows but y has 1"),
        ({"row_names": ["a"]}, ValueError, "row_names has 1 rows but y has 300"),
        ({"X": {"other": [[0]]}}, ValueError, "X has no table for 'Cautious'"),
        ({"X": np.empty((0, 1)), "y": []}, ValueError, "there are no rows"),
    ],
)
def test_bad_input_is_refused_with_words(letters, change, error, words):
    model, X, y = letters
    given = {"models": model, "X": X, "y": y, **change}
    with pytest.raises(error, match=words):
        collect(given.pop("models"), given.pop("X"), given.pop("y"), **given)


def test_models_that_cannot_be_compared_are_refused(fakes, letters):
    model, X, y = letters
    other = fakes.precise(["a", "b"], np.full((300, 2), 0.5))
    with pytest.raises(ValueError, match="'two' knows the classes 'a', 'b', the first model"):
        collect({"one": model, "two": other}, X, y)
    mute = type("Mute", (), {"classes_": LETTERS})()
    with pytest.raises(TypeError, match=r"'mute' .* has neither predict_proba nor predict_bounds"):
        collect({"one": model, "mute": mute}, X, y)
