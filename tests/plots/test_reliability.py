"""ReliabilityDisplay: what is drawn is what `reliability_curve` gives."""

import subprocess
import sys

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from dubito.metrics import AmbiguousLabelWarning, ReliabilityCurve, reliability_curve
from dubito.plots import ReliabilityDisplay

LABELS = np.array(["cod", "eel", "ray"])


@pytest.fixture
def ax():
    return Figure().subplots()


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=300)
    return rng.normal(size=(300, 2)) + np.array([[0, 0], [2, 0], [0, 2]])[y], LABELS[y]


@pytest.fixture(scope="module")
def classifier(rows):
    return LogisticRegression().fit(rows[0][:40], rows[1][:40])


def assert_drawn(display, key, curve):
    drawn = np.column_stack((curve.mean_probability, curve.frequency))
    np.testing.assert_array_equal(display.lines_[key].get_xydata(), drawn)
    for one, other in zip(display.curves[key], curve, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("strategy", ["quantile", "uniform"])
def test_the_curve_of_the_predicted_class(strategy, classifier, rows, ax):
    X, y = rows[0][40:], rows[1][40:]
    weight = np.random.default_rng(1).random(260)
    how = {"n_bins": 6, "strategy": strategy, "confidence_level": 0.8, "sample_weight": weight}
    display = ReliabilityDisplay.from_estimator(classifier, X, y, ax=ax, **how)
    proba = classifier.predict_proba(X)
    assert_drawn(display, "LogisticRegression", reliability_curve(y, proba, **how))
    assert (display.ax_, display.figure_) == (ax, ax.figure)
    assert ax.get_xlabel() == "probability of the predicted class"
    assert display.histogram_ax_ is None
    there = ReliabilityDisplay.from_predictions(y, proba, name="here", ax=ax, **how)
    assert_drawn(there, "here", display.curves["LogisticRegression"])


def test_several_classes(classifier, rows, ax):
    X, y = rows[0][40:], rows[1][40:]
    options = {"class_": ["ray", "cod"], "n_bins": 5}
    display = ReliabilityDisplay.from_estimator(classifier, X, y, name="LR", ax=ax, **options)
    proba = classifier.predict_proba(X)
    assert list(display.curves) == ["LR, ray", "LR, cod"]
    assert_drawn(display, "LR, ray", reliability_curve(y, proba, class_="ray", n_bins=5))
    assert_drawn(display, "LR, cod", reliability_curve(y, proba, class_="cod", n_bins=5))
    assert ax.get_xlabel() == "forecast probability"
    one = ReliabilityDisplay.from_predictions(y, proba, class_="eel", ax=Figure().subplots())
    assert_drawn(one, "eel", reliability_curve(y, proba, class_="eel"))


def test_the_probability_of_the_second_of_two(ax):
    y, p = [0, 1, 1, 0, 1], [0.1, 0.8, 0.7, 0.4, 0.9]
    display = ReliabilityDisplay.from_predictions(y, p, ax=ax)
    assert_drawn(display, "forecasts", reliability_curve(y, p))
    assert ax.get_ylabel() == "how often it came true"


def test_the_band_is_that_of_the_curve(classifier, rows, ax):
    X, y = rows[0][40:], rows[1][40:]
    display = ReliabilityDisplay.from_estimator(classifier, X, y, ax=ax, n_bins=4)
    curve = display.curves["LogisticRegression"]
    corners = display.bands_["LogisticRegression"].get_paths()[0].vertices
    x = curve.mean_probability
    for edge in (curve.lower, curve.upper):
        for point in np.column_stack((x, edge)):
            assert np.isclose(corners, point).all(axis=1).any()
    bars = ax.collections[0].get_segments()
    expected = [
        [[a, low], [a, high]] for a, low, high in zip(x, curve.lower, curve.upper, strict=True)
    ]
    np.testing.assert_allclose(bars, expected)
    without = ReliabilityDisplay.from_estimator(
        classifier, X, y, band=False, ax=Figure().subplots()
    )
    assert without.bands_ == {}
    assert not without.ax_.collections


def test_two_displays_share_axes_one_diagonal_and_one_histogram(classifier, rows):
    X, y = rows[0][40:], rows[1][40:]
    figure = Figure()
    ax = figure.subplots()
    first = ReliabilityDisplay.from_estimator(classifier, X, y, name="a", ax=ax, histogram=True)
    bold = classifier.predict_proba(X) ** 3
    bold /= bold.sum(axis=1, keepdims=True)
    second = ReliabilityDisplay.from_predictions(
        y, bold, name="b", ax=ax, histogram=first.histogram_ax_
    )
    assert [line.get_label() for line in ax.lines] == ["as often as forecast", "a", "b"]
    legend = [text.get_text() for text in ax.get_legend().get_texts()]
    assert legend == ["as often as forecast", "a", "b"]
    assert first.lines_["a"].get_linestyle() != second.lines_["b"].get_linestyle()
    assert second.histogram_ax_ is first.histogram_ax_
    assert len(figure.axes) == 2
    beneath, above = first.histogram_ax_.get_position(), ax.get_position()
    assert beneath.y1 < above.y0
    assert first.histogram_ax_.get_xlabel() == "probability of the predicted class"
    assert ax.get_xlabel() == ""


def test_the_histogram_is_the_fraction_of_rows(ax):
    display = ReliabilityDisplay.from_predictions(
        [0, 1, 1, 0], [0.02, 0.5, 0.53, 1.0], sample_weight=[1, 1, 1, 2], ax=ax, histogram=True
    )
    fractions = np.zeros(20)
    fractions[[0, 10, 19]] = [0.2, 0.4, 0.4]
    np.testing.assert_allclose(display.histograms["forecasts"], fractions)
    heights, edges, _ = display.histogram_ax_.patches[0].get_data()
    np.testing.assert_allclose(heights, fractions)
    np.testing.assert_allclose(edges, np.linspace(0, 1, 21))


def test_it_can_be_drawn_from_curves_alone_and_on_lone_axes():
    curve = reliability_curve([0, 1], [0.2, 0.7])
    display = ReliabilityDisplay(curves={"a": curve}, of="class")
    figure = Figure()
    lone = figure.add_axes((0, 0, 1, 1))
    assert display.plot(lone, histogram=True).histogram_ax_ is None  # none is known
    with_shares = ReliabilityDisplay(curves={"a": curve}, histograms={"a": [0.5, 0.5]})
    with pytest.raises(ValueError, match=r"these stand alone.*histogram=axes"):
        with_shares.plot(lone, histogram=True)
    beneath = figure.add_axes((0, 0, 1, 0.2))
    assert with_shares.plot(lone, histogram=beneath).histogram_ax_ is beneath


def test_what_is_passed_on_and_what_comes_out(classifier, rows, ax):
    display = ReliabilityDisplay.from_estimator(
        classifier, *rows, ax=ax, color="red", linestyle=":", histogram=True
    )
    line = display.lines_["LogisticRegression"]
    assert (line.get_color(), line.get_linestyle()) == ("red", ":")
    FigureCanvasAgg(ax.figure).draw()


def test_without_axes_new_ones_are_made(monkeypatch):
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("Agg")
    before = plt.gcf()
    display = ReliabilityDisplay.from_predictions([0, 1], [0.2, 0.7], histogram=True)
    assert display.figure_ is not before
    plt.close("all")
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r'pip install "\.\[plots\]"'):
        display.plot()


def test_wrong_curves_are_refused():
    with pytest.raises(TypeError, match="must map names to curves"):
        ReliabilityDisplay(curves={})
    with pytest.raises(TypeError, match=r"'a' must be a ReliabilityCurve.*got tuple"):
        ReliabilityDisplay(curves={"a": (0, 1)})
    with pytest.raises(ValueError, match="of must be one of 'top', 'class'"):
        ReliabilityDisplay(curves={"a": ReliabilityCurve(*np.empty((7, 0)))}, of="all")


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"confidence_level": 2}, "confidence_level must be a number between 0 and 1"),
        ({"class_": []}, "class_ must name at least one class"),
        ({"class_": "hen"}, "Got 'hen' instead"),
        ({"n_bins": 0}, "n_bins must be an integer of at least 1"),
        ({"y_true": ["cod"]}, "y_true has 1 rows but y_proba has 2"),
    ],
)
def test_wrong_predictions_are_refused(wrong, words, ax):
    given_well = {"y_true": ["cod", "eel"], "y_proba": [[0.7, 0.3], [0.4, 0.6]], "ax": ax}
    with pytest.raises(ValueError, match=words):
        ReliabilityDisplay.from_predictions(**{**given_well, **wrong})
    assert ax.lines[:] == []


def test_wrong_estimators_are_refused(rows, ax):
    with pytest.raises(TypeError, match=r"LinearSVC has no predict_proba.*CalibratedClassifier"):
        ReliabilityDisplay.from_estimator(LinearSVC().fit(*rows), *rows, ax=ax)
    with pytest.raises(TypeError, match=r"LogisticRegression has no predict_proba or no classes_"):
        ReliabilityDisplay.from_estimator(LogisticRegression(), *rows, ax=ax)


def test_a_warning_about_labels_points_at_its_caller(ax):
    with pytest.warns(AmbiguousLabelWarning) as caught:
        ReliabilityDisplay.from_predictions([1, 2], [[0.2, 0.3, 0.5]] * 2, ax=ax)
    assert caught[0].filename == __file__


def test_importing_the_display_does_not_load_matplotlib():
    code = "import sys, dubito.plots.reliability; print('matplotlib' in sys.modules)"
    ran = subprocess.run(  # noqa: S603
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    )
    assert ran.stdout == "False\n"
