"""ErrorRejectDisplay: what is drawn is what `reject` and the rules decide."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from dubito.belief import Bounds, MassBatch
from dubito.calibration import (
    CalibratedClassifier,
    EvidentialMultinomialCalibrator,
)
from dubito.decision import maximax, maximin, pignistic_choice, reject
from dubito.decision.rejection import STRATEGIES
from dubito.metrics import AmbiguousLabelWarning, RejectCostCurve, reject_cost_curve
from dubito.plots import ErrorRejectDisplay

KINDS = ["error_reject", "accuracy_error", "rejection", "error", "accuracy", "mean_cost"]
LABELS = np.array(["cod", "eel", "ray"])
COSTS = np.concatenate([np.linspace(0, 1, 21), [0.123, 0.4567]])


@pytest.fixture
def ax():
    return Figure().subplots()


@pytest.fixture(scope="module")
def rows():
    """Features and labels; the first 40 to fit on."""
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=300)
    return rng.normal(size=(300, 2)) + np.array([[0, 0], [2, 0], [0, 2]])[y], LABELS[y]


@pytest.fixture(scope="module")
def classifier(rows):
    X, y = rows
    calibrated = CalibratedClassifier(LinearSVC(), EvidentialMultinomialCalibrator(), cv=3)
    return calibrated.fit(X[:40], y[:40])


def decided(classifier, X, strategy, cost):
    """Labels and decided rows, by the public functions."""
    bounds, proba = classifier.predict_bounds(X), classifier.predict_proba(X)
    if strategy == "probabilistic":
        return classifier.classes_[pignistic_choice(proba)], ~reject(proba, cost)
    rules = {"optimistic": maximax, "pessimistic": maximin, "pignistic": pignistic_choice}
    return classifier.classes_[rules[strategy](bounds)], ~reject(bounds, cost, strategy)


def point(kind, y, y_pred, accepted, cost):
    """Where the picture should be at one cost."""
    wrong = accepted & (y != y_pred)
    error, rejection = wrong.mean(), 1 - accepted.mean()
    accuracy = 1 - wrong.sum() / accepted.sum() if accepted.any() else np.nan
    return {
        "error_reject": (rejection, 1 - accuracy),
        "accuracy_error": (error, accuracy),
        "rejection": (cost, rejection),
        "error": (cost, error),
        "accuracy": (cost, accuracy),
        "mean_cost": (cost, error + cost * rejection),
    }[kind]


@pytest.mark.parametrize("kind", KINDS)
def test_marked_points_are_what_reject_decides(kind, classifier, rows):
    X, y = rows[0][40:], rows[1][40:]
    display = ErrorRejectDisplay.from_estimator(classifier, X, y, ax=Figure().subplots())
    assert list(display.curves) == list(STRATEGIES)
    for cost in COSTS:
        display.plot(Figure().subplots(), kind=kind, cost=cost)
        for strategy, mark in display.points_.items():
            expected = point(kind, y, *decided(classifier, X, strategy, cost), cost)
            np.testing.assert_allclose(mark.get_xydata()[0], expected, atol=1e-12)


@pytest.mark.parametrize("kind", ["rejection", "error", "accuracy", "mean_cost"])
def test_over_the_cost_the_whole_line_is_what_reject_decides(kind, classifier, rows, ax):
    X, y = rows[0][40:], rows[1][40:]
    display = ErrorRejectDisplay.from_estimator(classifier, X, y, ax=ax, kind=kind)
    for strategy, line in display.lines_.items():
        x, height = line.get_data()
        assert (np.diff(x) >= 0).all()
        assert x[[0, -1]].tolist() == [0, 1]
        for cost in np.random.default_rng(3).random(30):
            _, expected = point(kind, y, *decided(classifier, X, strategy, cost), cost)
            np.testing.assert_allclose(np.interp(cost, x, height), expected, atol=1e-12)


@pytest.mark.parametrize("kind", ["error_reject", "accuracy_error"])
def test_the_line_joins_the_points_of_all_costs(kind, classifier, rows, ax):
    X, y = rows[0][40:], rows[1][40:]
    display = ErrorRejectDisplay.from_estimator(classifier, X, y, ax=ax, kind=kind)
    for strategy, line in display.lines_.items():
        drawn = line.get_xydata()
        curve = display.curves[strategy]
        for cost, actual in list(zip(curve.cost, drawn, strict=True))[::17]:
            expected = point(kind, y, *decided(classifier, X, strategy, cost), cost)
            np.testing.assert_allclose(actual, expected, atol=1e-12)


def test_the_pessimistic_strategy_declines_most_and_the_optimistic_least(classifier, rows, ax):
    display = ErrorRejectDisplay.from_estimator(
        classifier, rows[0][40:], rows[1][40:], costs=COSTS, ax=ax
    )
    declined = {strategy: curve.rejection for strategy, curve in display.curves.items()}
    for middle in ("pignistic", "probabilistic"):
        assert (declined["optimistic"] <= declined[middle]).all()
        assert (declined[middle] <= declined["pessimistic"]).all()
    assert (declined["optimistic"] < declined["pessimistic"]).any()


def test_any_scikit_learn_classifier_has_the_probabilistic_curve(rows, ax):
    X, y = rows
    model = LogisticRegression().fit(X[:40], y[:40])
    display = ErrorRejectDisplay.from_estimator(model, X[40:], y[40:], ax=ax)
    proba = model.predict_proba(X[40:])
    expected = reject_cost_curve(y[40:], model.predict(X[40:]), proba.max(axis=1))
    assert list(display.curves) == ["probabilistic"]
    np.testing.assert_allclose(display.curves["probabilistic"], expected, atol=1e-12)
    with pytest.raises(ValueError, match=r"pessimistic strategy needs bounds.*predict_bounds"):
        ErrorRejectDisplay.from_estimator(model, X, y, strategies=["pessimistic"], ax=ax)


def test_a_classifier_without_bounds_has_one_curve(rows, ax):
    X, y = rows
    precise = LogisticRegression().fit(X[:40], y[:40])
    display = ErrorRejectDisplay.from_estimator(precise, X[40:], y[40:], ax=ax)
    assert list(display.curves) == ["probabilistic"]
    with pytest.raises(ValueError, match="needs bounds"):
        ErrorRejectDisplay.from_estimator(
            precise, X[40:], y[40:], ax=ax, strategies=["probabilistic", "pessimistic"]
        )


class OnlyBounds:
    """A classifier with bounds and no probabilities."""

    classes_ = np.array(["a", "b"])

    def predict_bounds(self, X):
        return Bounds([[0.2, 0.4]] * len(X), [[0.6, 0.8]] * len(X))


def test_without_probabilities_the_pignistic_ones_are_used(ax):
    display = ErrorRejectDisplay.from_estimator(OnlyBounds(), [[0], [0]], ["a", "b"], ax=ax)
    assert list(display.curves) == ["optimistic", "pessimistic", "pignistic"]
    np.testing.assert_allclose(display.curves["pignistic"].cost, [0, 0.4, 1])
    np.testing.assert_allclose(display.curves["optimistic"].cost, [0, 0.2, 1])
    np.testing.assert_allclose(display.curves["pessimistic"].cost, [0, 0.6, 1])


def test_a_tie_is_marked_as_decided(ax):
    # 1 - 0.7 is a little more than 0.3.
    display = ErrorRejectDisplay.from_predictions([0], [[0.7, 0.3]], ax=ax, kind="rejection")
    display.plot(ax, kind="rejection", cost=0.3)
    assert display.points_["probabilistic"].get_xydata().tolist() == [[0.3, 0.0]]
    display.plot(ax, kind="rejection", cost=0.3 - 1e-9)
    assert display.points_["probabilistic"].get_ydata().tolist() == [1.0]


def test_a_marked_cost_joins_the_costs_that_are_given(ax):
    bounds = Bounds([[0.5, 0.1], [0.2, 0.6]], [[0.9, 0.5], [0.4, 0.8]])
    display = ErrorRejectDisplay.from_predictions(
        [0, 0], bounds, costs=[0.9, 0.1], cost=0.2, kind="rejection", ax=ax
    )
    optimist = display.curves["optimistic"]
    assert optimist.cost.tolist() == [0.1, 0.2, 0.9]
    assert optimist.rejection.tolist() == [0.5, 0.0, 0.0]
    assert display.points_["optimistic"].get_xydata().tolist() == [[0.2, 0.0]]
    with pytest.raises(ValueError, match=r"'optimistic' starts at the cost 0\.1; cost=0\.05"):
        display.plot(ax, cost=0.05)


def test_masses_bring_their_classes_and_pignistic_probability(ax):
    masses = MassBatch(["x", "y"], [[1, 0], [1, 1]], [[0.5, 0.5], [0.2, 0.8]])
    display = ErrorRejectDisplay.from_predictions(["y", "x"], masses, ax=ax, costs=[0.3, 0.55])
    assert display.curves["optimistic"].error.tolist() == [0.5, 0.5]
    assert display.curves["pessimistic"].rejection.tolist() == [1, 0.5]
    assert display.curves["pignistic"].rejection.tolist() == [0.5, 0]


def test_each_strategy_names_its_own_class(ax):
    bounds = Bounds([[0.3, 0.2, 0.1]], [[0.4, 0.6, 0.5]])
    for column, strategy in enumerate(("pessimistic", "optimistic", "probabilistic")):
        display = ErrorRejectDisplay.from_predictions(
            [column], bounds, y_proba=[[0.3, 0.3, 0.4]], classes=[0, 1, 2], ax=ax, costs=[1.0]
        )
        right = [name for name, curve in display.curves.items() if curve.error[0] == 0]
        pignistic = bounds.pignistic().argmax() == column
        assert set(right) == {strategy, *(["pignistic"] if pignistic else [])}


def test_of_probabilities_the_pignistic_curve_is_the_probabilistic_one(ax):
    display = ErrorRejectDisplay.from_predictions(
        [0, 0, 1],
        [[0.7, 0.3], [0.4, 0.6], [0.2, 0.8]],
        strategies=["pignistic", "probabilistic"],
        ax=ax,
    )
    pignistic, probabilistic = display.curves.values()
    np.testing.assert_array_equal(pignistic, probabilistic)


def test_loose_bounds_are_read_as_reject_reads_them(ax):
    # Each of the first two has at least 0.3, so the other one has at most 0.7.
    high = Bounds([[0.3, 0.3, 0.0]], [[0.9, 0.9, 0.2]])
    display = ErrorRejectDisplay.from_predictions([0], high, ax=ax)
    np.testing.assert_allclose(display.curves["optimistic"].cost, [0, 0.3, 1])
    low = Bounds([[0.0, 0.0]], [[0.3, 0.9]])  # the second has 0.7 at least
    display = ErrorRejectDisplay.from_predictions([1], low, ax=ax)
    np.testing.assert_allclose(display.curves["pessimistic"].cost, [0, 0.3, 1])


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 12))
@settings(deadline=None, max_examples=15)
def test_weights_are_repetitions(seed, n):
    rng = np.random.default_rng(seed)
    proba, doubt = rng.dirichlet([1, 1, 1], n), rng.integers(0, 3, (n, 1)) / 4
    bounds = Bounds(proba * (1 - doubt), proba * (1 - doubt) + doubt)
    y, weight = rng.integers(0, 3, n), rng.integers(0, 4, n)
    weight[rng.integers(n)] = 2
    rows = np.repeat(np.arange(n), weight)
    shared = {"ax": Figure().subplots(), "classes": [0, 1, 2], "strategies": "optimistic"}
    weighted = ErrorRejectDisplay.from_predictions(y, bounds, sample_weight=weight, **shared)
    repeated = ErrorRejectDisplay.from_predictions(y[rows], bounds[rows], **shared)
    np.testing.assert_allclose(
        weighted.curves["optimistic"], repeated.curves["optimistic"], atol=1e-12
    )


def test_rows_of_no_weight_may_have_labels_that_no_column_has(ax):
    proba = [[0.7, 0.3], [0.4, 0.6]]
    display = ErrorRejectDisplay.from_predictions(
        ["a", "?"], proba, classes=["a", "b"], sample_weight=[1, 0], ax=ax
    )
    assert display.curves["probabilistic"].error.max() == 0


def test_it_draws_on_the_given_axes_and_strategies_differ_without_colour(classifier, rows, ax):
    display = ErrorRejectDisplay.from_estimator(classifier, *rows, ax=ax, cost=0.2, name="SVM")
    assert display.ax_ is ax
    assert display.figure_ is ax.figure
    assert len({line.get_linestyle() for line in display.lines_.values()}) == 4
    assert len({line.get_color() for line in display.lines_.values()}) == 4
    assert len({mark.get_marker() for mark in display.points_.values()}) == 4
    for strategy, mark in display.points_.items():
        assert mark.get_color() == display.lines_[strategy].get_color()
    legend = ax.get_legend()
    names = [f"SVM, {strategy}" for strategy in display.curves]
    assert [text.get_text() for text in legend.get_texts()] == names
    assert legend.get_title().get_text() == "marked: cost 0.2"
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("fraction declined", "error among the decided")


def test_several_displays_share_axes(ax):
    curve = reject_cost_curve([0, 1], [0, 0], [0.9, 0.6])
    first = ErrorRejectDisplay(curves={"forest": curve, "neighbours": curve})
    second = ErrorRejectDisplay(curves={"probabilistic": curve}, name="mine")
    assert first.plot(ax, cost=0.2, kind="error") is first
    second.plot(ax, kind="error", name="yours", linewidth=3)
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert texts == ["forest", "neighbours", "yours, probabilistic"]
    assert ax.get_legend().get_title().get_text() == "marked: cost 0.2"
    assert len({line.get_linestyle() for line in first.lines_.values()}) == 2
    assert second.lines_["probabilistic"].get_linewidth() == 3
    assert second.points_ == {}


@pytest.mark.parametrize("kind", KINDS)
def test_where_all_is_rejected_the_picture_has_a_gap(kind, ax):
    proba = [[0.7, 0.3], [0.4, 0.6]]
    display = ErrorRejectDisplay.from_predictions([0, 0], proba, ax=ax, kind=kind, cost=0.1)
    FigureCanvasAgg(display.figure_).draw()  # a warning would be an error
    missing = kind in {"error_reject", "accuracy_error", "accuracy"}
    assert np.isnan(display.points_["probabilistic"].get_ydata()[0]) == missing
    assert np.isfinite(display.lines_["probabilistic"].get_ydata()[-1])


def test_the_curves_given_are_kept_in_the_order_of_their_costs():
    given_curve = reject_cost_curve([0, 1], [0, 0], [0.9, 0.6], costs=[0.5, 0.2])
    display = ErrorRejectDisplay(curves={"a": given_curve})
    assert display.curves["a"].cost.tolist() == [0.2, 0.5]
    assert display.curves["a"].error.tolist() == [0.0, 0.5]
    assert given_curve.cost.tolist() == [0.5, 0.2]


def test_without_axes_new_ones_are_made(monkeypatch):
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("Agg")
    before = plt.gcf()
    display = ErrorRejectDisplay.from_predictions([0], [[0.7, 0.3]])
    assert display.figure_ is not before
    plt.close("all")
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r'pip install "\.\[plots\]"'):
        display.plot()


def test_wrong_curves_are_refused():
    with pytest.raises(TypeError, match="must map names to curves"):
        ErrorRejectDisplay(curves={})
    with pytest.raises(TypeError, match="must map names to curves"):
        ErrorRejectDisplay(curves=[1])
    with pytest.raises(TypeError, match=r"'a' must be a RejectCostCurve.*got tuple"):
        ErrorRejectDisplay(curves={"a": (0, 1)})
    with pytest.raises(ValueError, match="'a' has no costs"):
        ErrorRejectDisplay(curves={"a": RejectCostCurve(*np.empty((5, 0)))})


PROBA = np.array([[0.7, 0.3], [0.4, 0.6]])


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"kind": "reject"}, "kind must be one of 'error_reject', 'accuracy_error'"),
        ({"cost": 1.2}, r"cost must be a number in \[0, 1\]"),
        ({"cost": -1, "costs": [0.5]}, r"cost must be a number in \[0, 1\]"),
        ({"costs": [0.5, 2]}, r"costs must lie in \[0, 1\]"),
        ({"costs": [[0.5]], "cost": 0.1}, "costs must be 1-dimensional"),
        ({"strategies": ["bold"]}, "'pignistic', 'probabilistic'. Got 'bold'"),
        ({"strategies": []}, "at least one of optimistic, pessimistic, pignistic, probabilistic"),
        ({"strategies": "optimistic"}, "optimistic strategy needs bounds"),
        ({"y_true": [0]}, "y_true has 1 rows but belief has 2"),
        ({"y_true": ["a", "c"], "classes": ["a", "b"]}, "does not list: 'c'"),
        ({"y_proba": PROBA[:1]}, "y_proba has 1 rows but belief has 2"),
        ({"y_proba": [[0.2, 0.3, 0.5]] * 2}, "y_proba has 3 columns but belief has 2 classes"),
        ({"belief": [0.7, 0.4]}, "2-dimensional"),
    ],
)
def test_wrong_predictions_are_refused(wrong, words, ax):
    given_well = {"y_true": [0, 1], "belief": PROBA, "ax": ax}
    with pytest.raises(ValueError, match=words):
        ErrorRejectDisplay.from_predictions(**{**given_well, **wrong})
    assert ax.lines[:] == []


def test_a_warning_about_labels_points_at_its_caller(ax):
    with pytest.warns(AmbiguousLabelWarning) as caught:
        ErrorRejectDisplay.from_predictions([1, 2], [[0.2, 0.3, 0.5]] * 2, ax=ax)
    assert caught[0].filename == __file__


def test_wrong_estimators_are_refused(rows, ax):
    X, y = rows
    with pytest.raises(TypeError, match=r"LinearSVC has neither.*CalibratedClassifier"):
        ErrorRejectDisplay.from_estimator(LinearSVC().fit(X, y), X, y, ax=ax)
    with pytest.raises(TypeError, match=r"LogisticRegression has no classes_.*fitted"):
        ErrorRejectDisplay.from_estimator(LogisticRegression(), X, y, ax=ax)


def test_importing_the_display_does_not_load_matplotlib():
    code = "import sys, dubito.plots.error_reject; print('matplotlib' in sys.modules)"
    ran = subprocess.run(  # noqa: S603
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    )
    assert ran.stdout == "False\n"
