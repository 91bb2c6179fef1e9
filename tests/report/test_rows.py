"""The least certain rows of a report: their doubt, their reasons, and names of all kinds."""

import json

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dubito.decision import reject
from dubito.evidence import EvidentialClassifier
from dubito.report import collect, metrics, predictions

LETTERS = np.array(["a", "b", "c", "d"], dtype=object)


@pytest.fixture(autouse=True)
def few_resamples(monkeypatch):
    """Intervals are not what these tests are about."""
    monkeypatch.setattr(metrics, "RESAMPLES", 10)


def test_doubt_is_divided_into_wide_bounds_and_other_classes(fakes):
    X, proba, column = fakes.rows(300, 4)
    model, y = fakes.cautious(LETTERS, proba, ignorance=0.15), LETTERS[column]
    doubt = collect(model, X, y, doubtful_rows=8)["doubt"]
    lower = model.predict_bounds(X).lower.max(axis=1)
    assert len(doubt["rows"]) == 8
    for row in doubt["rows"]:
        assert row["width"] + row["others"] == pytest.approx(1 - lower[int(row["name"])])
        assert row["width"] == pytest.approx(0.15)
        wide = row["width"] >= row["others"]
        assert row["cause"] == ("wide bounds" if wide else "other classes")
    # Half of each cause, each the most doubtful of its kind, and all in falling order.
    causes = [row["cause"] for row in doubt["rows"]]
    assert causes.count("wide bounds") == causes.count("other classes") == 4
    assert doubt["rows"][0]["lower"] == pytest.approx(lower.min())
    assert [row["lower"] for row in doubt["rows"]] == sorted(row["lower"] for row in doubt["rows"])
    declined = reject(model.predict_bounds(X), 0.2).sum()
    assert doubt["declined_wide"] + doubt["declined_others"] == declined


def test_where_one_cause_is_rare_the_other_fills_the_list(fakes):
    X, proba, column = fakes.rows(100, 3)
    model = fakes.cautious([0, 1, 2], proba, ignorance=0.9)
    rows = collect(model, X, column, doubtful_rows=10)["doubt"]["rows"]
    assert {row["cause"] for row in rows} == {"wide bounds"}
    assert len(rows) == 10
    assert collect(model, X, column, doubtful_rows=0)["doubt"]["rows"] == []


def test_an_evidential_classifier_gives_its_reasons():
    pd = pytest.importorskip("pandas")
    data = load_breast_cancer(as_frame=True)
    X, y = data.data.iloc[:, :5], data.target.map({0: "malignant", 1: "benign"})
    X.index = pd.Index([f"no. {i}" for i in range(len(X))])
    estimator = make_pipeline(StandardScaler(), LogisticRegression())
    model = EvidentialClassifier(estimator).fit(X[::2], y[::2])
    collected = collect(model, X[1::2], y[1::2], doubtful_rows=4)
    assert json.loads(json.dumps(collected, allow_nan=False)) == collected
    for row in collected["doubt"]["rows"]:
        one = X.loc[[row["name"]]]
        assert row["own_conflict"] == pytest.approx(model.conflict(one)[0])
        assert row["own_ignorance"] == pytest.approx(model.ignorance(one)[0])
        assert row["evidence"]["text"] == model.explain(one).text()
        names = [piece["name"] for piece in row["evidence"]["pieces"]]
        assert set(names) <= set(X.columns)
        total = sum(piece["weight"] for piece in row["evidence"]["pieces"])
        k = list(model.classes_).index(row["predicted"])
        weights = model.weights(one)[0].sum(axis=0)
        assert total == pytest.approx(weights[k] - weights[1 - k])


def test_pieces_beyond_the_longest_list_are_added_up():
    X, y = load_breast_cancer(return_X_y=True)
    estimator = make_pipeline(StandardScaler(), LogisticRegression())
    model = EvidentialClassifier(estimator).fit(X[::2], y[::2])
    for row in collect(model, X[1::2], y[1::2], doubtful_rows=4)["doubt"]["rows"]:
        evidence = row["evidence"]
        one = model.weights(X[1::2][[int(row["name"])]])[0]
        k = int(row["predicted"])
        assert len(evidence["pieces"]) == 10
        assert evidence["others"] == len(one) - 10
        listed = sum(piece["weight"] for piece in evidence["pieces"])
        assert listed + evidence["others_weight"] == pytest.approx(
            (one[:, k] - one[:, 1 - k]).sum()
        )
        assert abs(evidence["pieces"][-1]["weight"]) >= 0.005


def test_reasons_for_one_of_several_classes():
    X, y = load_iris(return_X_y=True)
    model = EvidentialClassifier(LogisticRegression(max_iter=500)).fit(X[::2], y[::2])
    for row in collect(model, X[1::2], y[1::2])["doubt"]["rows"]:
        weights = model.weights(X[1::2][[int(row["name"])]])[0][:, int(row["predicted"])]
        pieces = {piece["name"]: piece["weight"] for piece in row["evidence"]["pieces"]}
        assert pieces == pytest.approx({f"x{j}": w for j, w in enumerate(weights)})


def test_rows_of_the_same_name_go_by_their_number_in_the_table(fakes, monkeypatch):
    X, proba, column = fakes.rows(90, 3)
    model = fakes.precise([0, 1, 2], proba)
    names = ["twin" if i % 2 else f"own {i}" for i in range(89)] + ["y" * 80]
    doubt = 1 - proba.max(axis=1)
    for most in (6, 90):  # a twin that is alone in the list still has its number
        for row in collect(model, X, column, row_names=names, doubtful_rows=most)["doubt"]["rows"]:
            if row["name"].startswith("twin"):
                number = int(row["name"].removeprefix("twin (row ").removesuffix(")"))
                assert names[number] == "twin"
                assert 1 - row["lower"] == pytest.approx(doubt[number])
            else:
                assert row["name"] in names or row["name"] == "y" * 59 + "…"
    monkeypatch.setattr(predictions, "MOST_CELLS", 90)  # sample: numbers are the table's
    for row in collect(model, X, column, row_names=["twin"] * 90)["doubt"]["rows"]:
        number = int(row["name"].removeprefix("twin (row ").removesuffix(")"))
        assert 1 - row["lower"] == pytest.approx(doubt[number])


def test_names_cannot_turn_the_words_around_them_round(fakes):
    X, proba, column = fakes.rows(60, 3)
    hebrew = "\N{HEBREW LETTER ALEF}\N{HEBREW LETTER BET}"
    labels = np.array(["\u202ecod\u2066", hebrew, "ray"], dtype=object)
    models = {"\u202emine": fakes.precise(labels, proba)}
    names = [f"\u202e{i}" for i in range(60)]
    collected = collect(models, X, labels[column], title="\u202eFish", row_names=names)
    assert (collected["title"], collected["models"]) == ("Fish", ["mine"])
    # What is written from the right is kept to itself.
    assert collected["confusions"]["map"]["labels"] == ["cod", hebrew.join("\u2068\u2069"), "ray"]
    assert "\u202e" not in json.dumps(collected, ensure_ascii=False)


def test_evidence_cannot_turn_the_words_around_it_round():
    pd = pytest.importorskip("pandas")
    X, y = load_iris(return_X_y=True)
    table = pd.DataFrame(X[:, :2], columns=["\u202ewidth", "length"]).assign(more=X[:, 2])
    labels = np.array(["\u202ea", "b\u2066", "c"])[y]
    model = EvidentialClassifier(LogisticRegression(max_iter=500)).fit(table, labels)
    collected = collect(model, table, labels)
    assert "width" in collected["doubt"]["rows"][0]["evidence"]["text"]
    assert not set("\u202e\u2066") & set(json.dumps(collected, ensure_ascii=False))


def test_long_and_equal_names_stay_apart(fakes):
    X, proba, column = fakes.rows(100, len(fakes.nasty))
    labels = np.array(fakes.nasty, dtype=object)
    collected = collect(fakes.precise(labels, proba), X, labels[column])
    shown = collected["confusions"]["map"]["labels"]
    assert len(set(shown)) == len(labels)
    assert max(map(len, shown)) < 80
    assert "(empty)" in shown
