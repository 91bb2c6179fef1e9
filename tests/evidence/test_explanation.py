"""Explanations: exact words on small examples, and promises that hold for any weights."""

import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from matplotlib.figure import Figure
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dubito.evidence import EvidentialClassifier, Explanation
from dubito.evidence.explanation_text import cause_of_doubt

TWO = ("healthy", "disease")
THREE = ("setosa", "versicolor", "virginica")


def of_two(*pairs, **settings_):
    """Explain a row of two classes from (name, weight): below 0 for healthy, above for disease."""
    signed = np.array([weight for _, weight in pairs], dtype=float)
    weights = np.stack([np.maximum(-signed, 0), np.maximum(signed, 0)], axis=1)[None]
    return Explanation(
        **{"weights": weights, "names": [name for name, _ in pairs], "classes": TWO} | settings_
    )


def last_line(explanation, row=0):
    return explanation.text(row).splitlines()[-1]


def test_two_classes_short_of_evidence():
    explanation = of_two(("age", -0.4), ("ldl", 0.15), values=np.array([[31, 7.9]], dtype=object))
    # e^0.4-1 = 0.4918 and e^0.15-1 = 0.1618; their sum and 1 make D = 1.6537
    assert explanation.text() == (
        'row 0: "healthy" plausible (0.90), belief 0.30, ignorance 0.60, conflict 0.05\n'
        "  age = 31    +0.40 for healthy\n"
        "  ldl = 7.9   +0.15 for disease\n"
        "Doubt here is lack of evidence, not conflict."
    )


def test_two_classes_in_conflict_and_yet_decided():
    explanation = of_two(("ldl", 12.25), ("blood pressure", -12.0), values=[[9.125, 110]])
    assert explanation.text() == (
        'row 0: "disease" plausible (0.56), belief 0.56, ignorance 0.00, conflict 1.00\n'
        "  ldl            = 9.125   +12.25 for disease\n"
        "  blood pressure = 110     +12.00 for healthy\n"
        "The evidence leaves one class: disease. Close behind: healthy, plausible (0.44); "
        "doubt is conflict, not lack of evidence."
    )


@pytest.mark.parametrize(
    ("weight", "cause"),
    [
        (0.0, "lack of evidence, not conflict"),
        (0.48, "lack of evidence, not conflict"),
        (0.5, "both lack of evidence and conflict"),
        (1.22, "both lack of evidence and conflict"),
        (1.25, "conflict, not lack of evidence"),
        (40.0, "conflict, not lack of evidence"),
    ],
)
def test_the_cause_of_doubt_changes_at_the_documented_weights(weight, cause):
    assert last_line(of_two(("a", weight), ("b", -weight))) == f"Doubt here is {cause}."


def test_parts_are_compared_as_they_are_shown():
    assert (
        cause_of_doubt(0.15, 0.05)
        == cause_of_doubt(0.146, 0.054)
        == "lack of evidence, not conflict"
    )
    assert (
        cause_of_doubt(0.05, 0.15)
        == cause_of_doubt(0.054, 0.146)
        == "conflict, not lack of evidence"
    )
    assert cause_of_doubt(0.144, 0.05) == "both lack of evidence and conflict"


def test_three_classes():
    explanation = Explanation(
        weights=[[[0.25, 0.5, -0.75], [-0.25, 0.125, 0.125], [2.5, -0.5, -2.0]]],
        names=["sepal", "stem", "petal"],
        classes=THREE,
        values=np.array([[5.0, None, 1.4]], dtype=object),
    )
    # Dempster's rule on the nine simple mass functions, one after the other: pl 0.9475,
    # bel 0.9092, ignorance 0.0023, conflict 0.6117
    assert explanation.text() == (
        'row 0: "setosa" plausible (0.95), belief 0.91, ignorance 0.00, conflict 0.61\n'
        "  petal = 1.4   +2.50 for setosa       +2.00 against virginica\n"
        "  sepal = 5     +0.50 for versicolor   +0.75 against virginica\n"
        "  stem          +0.12 for versicolor   +0.25 against setosa\n"
        "The evidence leaves one class: setosa. Next: versicolor, plausible (0.09)."
    )


def test_doubt_between_two_of_three_classes_is_no_ignorance_but_lack_of_evidence():
    explanation = Explanation(weights=[[[0.01, 0, -9.0]]], names=["petal"], classes=THREE)
    assert explanation.text() == (
        'row 0: "setosa" plausible (1.00), belief 0.01, ignorance 0.00, conflict 0.00\n'
        "  petal   +0.01 for setosa   +9.00 against virginica\n"
        "Doubt between setosa and versicolor is lack of evidence, not conflict: 0.99 of the belief "
        "names no single class."
    )


@pytest.mark.parametrize(
    ("weights", "between"),
    [
        ([0, 0, 0, 0, 0, 0], "all 6 classes"),
        ([0, 0.2, 0.1, 0, 0, -9], "class 1, class 2, class 0 and 2 others"),
        ([0, 0.2, 0.1, 0, -9, -9], "class 1, class 2, class 0 and class 3"),
    ],
)
def test_classes_in_doubt_are_named_by_plausibility_but_few(weights, between):
    explanation = Explanation(weights=[[weights]], names=["a"], classes=np.arange(6))
    assert last_line(explanation).startswith(f"Doubt between {between} is lack of evidence, not")


def test_smaller_pieces_are_summed_up():
    weights = [0.5, -0.25, 0.125, 0.0625, -0.03125, 0.001, 0.0]
    explanation = of_two(*zip("abcdefg", weights, strict=True), values=[range(7)])
    assert explanation.text(max_pieces=2).splitlines()[1:-1] == [
        "  a = 0      +0.50 for disease",
        "  b = 1      +0.25 for healthy",
        "  5 others   +0.19 for disease   +0.03 for healthy",
    ]
    assert explanation.text().splitlines()[5:-1] == [
        "  e = 4      +0.03 for healthy",
        "  2 others   <0.01 for or against any class",
    ]
    assert explanation.text(max_pieces=0).splitlines()[1:-1] == [
        "  7 pieces   +0.69 for disease   +0.28 for healthy"
    ]


def test_a_target_and_many_classes_are_explained_for_one_class():
    weights = np.array([[[2.0, -1.0, -1.0, 0.0], [-0.5, 0.25, 0.5, -0.25], [0.0, 3.0, -3.0, 0.0]]])
    explanation = Explanation(weights=weights, names=["a", "b", "c"], classes=list("wxyz"))
    assert explanation.text().splitlines()[1:-1] == [
        "  c   +3.00 for x",
        "  a   +1.00 against x",
        "  b   +0.25 for x",
    ]
    assert explanation.text(target="w").splitlines()[1:-1] == [
        "  a         +2.00 for w",
        "  b         +0.50 against w",
        "  1 other   <0.01 for or against w",
    ]
    with pytest.raises(ValueError, match=r"target must be one of the classes w, x, y, z\. Got 'q'"):
        explanation.text(target="q")


def test_of_two_classes_evidence_for_one_is_against_the_other():
    weights = np.array([[[0.0, 2.0], [0.5, 0.0]]])
    explanation = Explanation(weights=weights, names=["a", "b"], classes=["no", "yes"])
    assert explanation.text(target="no").splitlines()[1:-1] == [
        "  a   +2.00 against no",
        "  b   +0.50 for no",
    ]


def test_printing_shows_the_first_rows():
    explanation = Explanation(weights=np.ones((7, 1, 2)), names=["a"], classes=["x", "y"])
    parts = str(explanation).split("\n\n")
    assert parts == [*(explanation.text(i) for i in range(5)), "and 2 rows more"]
    assert str(explanation[0]) == explanation[0].text()


def test_smaller_pieces_of_three_classes():
    weights = np.array([[2, 0, -2], [1, -0.5, -0.5], [0.25, 0.25, -0.5], [-0.001, 0.001, 0]])
    explanation = Explanation(weights=[weights], names=list("abcd"), classes=THREE)
    assert explanation.text(max_pieces=1).splitlines()[1:-1] == [
        "  a          +2.00 for setosa   +2.00 against virginica",
        "  3 others   +1.25 for setosa   +1.00 against virginica",
    ]
    explanation = Explanation(weights=[weights - 2], names=list("abcd"), classes=THREE)
    assert explanation.text(max_pieces=1).splitlines()[1:-1] == [
        "  a          +4.00 against virginica",
        "  3 others   +7.00 against virginica",
    ]


def test_weights_that_would_read_zero_are_not_listed():
    explanation = of_two(("a", 1e-5), ("b", -0.0049), ("c", 1e-17))
    assert explanation.text() == (
        'row 0: "healthy" plausible (1.00), belief 0.00, ignorance 1.00, conflict 0.00\n'
        "  3 pieces   <0.01 for or against any class\n"
        "Doubt here is lack of evidence, not conflict."
    )
    assert "1 piece " in of_two(("a", 0.0)).text()


def test_the_class_named_is_the_predicted_one_even_where_rounding_makes_them_equal():
    assert of_two(("a", 1e-18)).text().startswith('row 0: "disease" plausible (1.00)')
    assert of_two(("a", -1e-18)).text().startswith('row 0: "healthy" plausible (1.00)')


def test_a_model_without_features_has_a_short_explanation():
    explanation = Explanation(weights=np.zeros((1, 0, 2)), names=[], classes=TWO)
    assert len(explanation.text().splitlines()) == 2


@pytest.mark.parametrize(
    ("label", "shown"),
    [
        ("healthy", '"healthy" plausible'),
        (3, "class 3 plausible"),
        (2.5, "class 2.5 plausible"),
        ("3", "class 3 plausible"),
        (True, "class True plausible"),
        ("x" * 99, f'"{"x" * 39}…" plausible'),
    ],
)
def test_labels_of_any_kind(label, shown):
    others = {str: "z", bool: False}.get(type(label), 9)
    explanation = Explanation(weights=[[[9, 0]]], names=["a"], classes=[label, others])
    assert explanation.text().startswith(f"row 0: {shown}")
    named = shown.removesuffix(" plausible").strip('"')
    assert explanation.text().splitlines()[1] == f"  a   +9.00 for {named}"
    assert (
        last_line(explanation) == f"The evidence leaves one class: {named.removeprefix('class ')}."
    )


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (31, "31"),
        (31.0, "31"),
        (np.float32(7.9), "7.9"),
        (0.123456, "0.1235"),
        (-0.0, "0"),
        (20240131.0, "20240131"),
        (123456.7, "123457"),
        (1e-7, "1e-07"),
        (1e20, "1e+20"),
        (np.nan, "nan"),
        (True, "True"),
        ("male", "male"),
        ("a long\nstory about something", "a long story about some…"),
    ],
)
def test_values_of_any_kind(value, shown):
    explanation = of_two(("a", 1.0), values=np.array([[value]], dtype=object))
    assert explanation.text().splitlines()[1] == f"  a = {shown}   +1.00 for disease"


@pytest.mark.parametrize(
    ("rows", "shown"),
    [
        (None, "row 1: "),
        (pd.Index([17, 18]), "row 18: "),
        (pd.Index(["anna", "bert"]), "row bert: "),
        (pd.MultiIndex.from_tuples([("a", 1), ("b", 2)]), "row ('b', 2): "),
        ([("a", 1), ("b", 2)], "row ('b', 2): "),
        (pd.to_datetime(["2024-01-01", "2024-01-02"]).to_numpy("datetime64[D]"), "row 2024-01-02"),
    ],
)
def test_rows_keep_their_labels(rows, shown):
    explanation = Explanation(weights=np.ones((2, 1, 2)), names=["a"], classes=TWO, rows=rows)
    for text in (
        explanation.text(1),
        explanation.text(-1),
        explanation[1].text(),
        explanation[[False, True]].text(),
    ):
        assert text.startswith(shown)
    assert [one.text() for one in explanation] == [explanation.text(0), explanation.text(1)]
    for frame in (pd.DataFrame(explanation.table), pl.DataFrame(explanation.table)):
        assert frame.shape == (4, 6)
    assert pl.DataFrame(explanation.table)["row"].dtype != pl.Object


def test_the_table_is_tidy():
    weights = np.array([[[1.0, -1.0, 0.0], [0.5, 0.0, -0.5]], [[2.0, 0.0, -2.0], [0.0, 0.0, 0.0]]])
    explanation = Explanation(
        weights=weights, names=["a", "b"], classes=THREE, values=[[1.5, 2.5], [3.5, 4.5]]
    )
    frame = explanation.to_pandas()
    assert list(frame) == ["row", "feature", "value", "class", "weight", "support"]
    assert frame["row"].tolist() == [0] * 6 + [1] * 6
    assert frame["feature"].tolist() == ["a", "a", "a", "b", "b", "b"] * 2
    assert frame["value"].tolist() == [1.5] * 3 + [2.5] * 3 + [3.5] * 3 + [4.5] * 3
    assert frame["class"].tolist() == list(THREE) * 4
    assert frame["weight"].tolist() == weights.ravel().tolist()
    np.testing.assert_allclose(frame["support"], 1 - np.exp(-np.abs(weights.ravel())))
    kinds = pl.DataFrame(explanation.table).dtypes
    assert kinds == [pl.Int64, pl.String, pl.Float64, pl.String, pl.Float64, pl.Float64]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([[1, None]], [1.0, np.nan]),
        ([[None, None]], [np.nan, np.nan]),
        ([[True, False]], [True, False]),
        ([[3, "male"]], ["3", "male"]),
        ([[None, "male"]], ["", "male"]),
        ([[2**70, 1]], [str(2**70), "1"]),
    ],
)
def test_values_in_the_table_are_numbers_or_strings(values, expected):
    explanation = of_two(("a", 1), ("b", 2), values=np.array(values, dtype=object))
    for column in (explanation.table["value"], pl.DataFrame(explanation.table)["value"].to_list()):
        np.testing.assert_array_equal(column[::2], expected)


def test_no_rows():
    explanation = Explanation(weights=np.zeros((0, 2, 3)), names=["a", "b"], classes=THREE)
    assert len(explanation) == 0
    assert repr(explanation) == "Explanation(0 rows, 2 pieces of evidence, 3 classes)"
    assert all(len(column) == 0 for column in explanation.table.values())
    with pytest.raises(IndexError, match="there is no row 0: 0 rows explained"):
        explanation.text()


def test_errors_say_what_to_do(monkeypatch):
    explanation = of_two(("a", 1.0))
    with pytest.raises(IndexError, match="there is no row 3: 1 row explained"):
        explanation.text(3)
    with pytest.raises(TypeError, match=r"row must be a whole number. Got 'anna' instead"):
        explanation.text("anna")
    with pytest.raises(ValueError, match=r"max_pieces must be 0 or more. Got -1 instead"):
        explanation.text(max_pieces=-1)
    with pytest.raises(TypeError, match="max_pieces must be a whole number"):
        explanation.text(max_pieces=None)
    with pytest.raises(ValueError, match=r"names must have shape \(1,\) to go with weights of"):
        Explanation(weights=[[[1.0, 0.0]]], names=["a", "b"], classes=TWO)
    with pytest.raises(ValueError, match=r"values must have shape \(1, 1\).*got \(1, 2\)"):
        Explanation(weights=[[[1.0, 0.0]]], names=["a"], classes=TWO, values=[[1, 2]])
    with pytest.raises(ValueError, match="weights has nan in row 0"):
        of_two(("a", np.nan))
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"pip install pandas, or use the columns of \.table"):
        explanation.to_pandas()


def test_of_a_classifier():
    data = load_iris(as_frame=True)
    y = np.array(THREE)[data.target]
    table = data.data.set_axis([f"flower {i}" for i in range(150)])
    model = make_pipeline(StandardScaler(), LogisticRegression(C=0.1))
    ev = EvidentialClassifier(model).fit(table, y)
    explanation = ev.explain(table)
    np.testing.assert_allclose(explanation.bounds.upper, ev.predict_bounds(table).upper, rtol=1e-10)
    held = np.minimum(explanation.bounds.lower, ev.predict_proba(table))
    np.testing.assert_allclose(held, ev.predict_bounds(table).lower, rtol=1e-10)
    np.testing.assert_allclose(explanation.conflict, ev.conflict(table), rtol=1e-10)
    np.testing.assert_allclose(explanation.ignorance, ev.ignorance(table), rtol=1e-10)
    np.testing.assert_array_equal(explanation.table["value"][::3], table.to_numpy().ravel())
    predicted = ev.predict(table)
    for i in (0, 50, 77, 149):
        assert explanation.text(i).startswith(f'row flower {i}: "{predicted[i]}" plausible')
    assert "petal width (cm)  = 0.2 " in explanation.text()


def test_a_row_is_drawn_as_a_waterfall():
    weights = [[[1.0, 0.0], [0.0, 0.5]], [[0.0, 2.0], [0.0, 0.25]]]
    explanation = Explanation(weights=weights, names=["a", "b"], classes=["no", "yes"])
    display = explanation.plot(1, max_pieces=5, ax=Figure().subplots())
    np.testing.assert_allclose(display.view.weight, [2.0, 0.25])
    assert display.view.classes[display.view.target] == "yes"
    other = explanation.plot(target="no", ax=Figure().subplots())
    np.testing.assert_allclose(other.view.weight, [1.0, -0.5])
    with pytest.raises(IndexError, match="there is no row 2"):
        explanation.plot(2)
