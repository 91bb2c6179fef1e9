"""ContourDisplay: the numbers drawn are those of the calibrator, and on the axes it was given."""

import sys

import numpy as np
import pytest
from matplotlib.figure import Figure

from dubito.calibration import EvidentialBinningCalibrator, EvidentialMultinomialCalibrator
from dubito.plots import ContourDisplay


@pytest.fixture
def ax():
    return Figure().subplots()


@pytest.fixture(scope="module")
def calibrator():
    rng = np.random.default_rng(0)
    y = rng.integers(4, size=80)
    return EvidentialMultinomialCalibrator().fit(rng.normal(size=(80, 4)) + 1.5 * np.eye(4)[y], y)


@pytest.fixture(scope="module")
def binary():
    rng = np.random.default_rng(1)
    y = rng.integers(2, size=60)
    return EvidentialBinningCalibrator().fit(rng.normal(size=60) + y, y)


def gaussian(scale=1.0):
    theta = np.linspace(0, 6, 241)
    return theta, np.exp(-0.5 * ((theta - 2) / scale) ** 2)


def test_the_curve_is_the_calibrators_contour_on_the_given_axes(ax, calibrator):
    display = ContourDisplay.from_estimator(calibrator, ax=ax, name="n = 80")
    assert display.ax_ is ax
    assert display.figure_ is ax.figure
    x, y = display.line_.get_data()
    assert display.line_ in ax.lines
    np.testing.assert_array_equal(y, calibrator.slope_contour(x))
    assert y.max() > 0.999
    assert max(y[0], y[-1]) < 1e-3
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["n = 80"]
    assert display.level_line_ is None


def test_several_contours_share_axes(ax):
    for scale in (1.0, 0.5):
        ContourDisplay.from_predictions(*gaussian(scale), name=f"sd {scale}", ax=ax)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["sd 1.0", "sd 0.5"]
    assert len(ax.lines) == 2


def test_a_name_at_drawing_and_line_options_take_precedence(ax):
    display = ContourDisplay(theta=[0, 1, 2], contour=[0.1, 1, 0.2], name="mine")
    assert display.plot(ax, name="yours", linestyle="--") is display
    assert display.line_.get_label() == "yours"
    assert display.line_.get_linestyle() == "--"


def test_the_level_set_is_drawn_as_a_segment(ax, calibrator):
    display = ContourDisplay.from_estimator(calibrator, ax=ax, level=0.4)
    ends, heights = display.level_line_.get_data()
    np.testing.assert_array_equal(heights, [0.4, 0.4])
    np.testing.assert_allclose(ends, calibrator.level_set(0.4), rtol=1e-3)


@pytest.mark.parametrize("gamma", [0.05, 0.5, 0.9])
def test_level_sets_of_a_known_curve(gamma):
    display = ContourDisplay(theta=gaussian()[0], contour=gaussian()[1])
    reach = np.sqrt(-2 * np.log(gamma))
    low, high = display.level_set(gamma)
    assert low == pytest.approx(max(2 - reach, 0), abs=2e-3)
    assert high == pytest.approx(2 + reach, abs=2e-3)


def test_level_sets_at_the_edges():
    display = ContourDisplay(theta=[0, 1, 2, 3], contour=[0.5, 0.9, 0.9, 0.6])
    assert display.level_set(0.2) == (0, 3)  # all of the curve is above 0.2
    assert display.level_set(1.0) == (1, 2)  # none of it reaches 1: its highest points
    assert ContourDisplay(theta=[0, 1], contour=[1, 1]).level_set(1.0) == (0, 1)


def test_a_flat_likelihood_is_drawn_flat(ax):
    flat = EvidentialMultinomialCalibrator().fit(np.zeros((3, 3)), [0, 1, 2])
    assert (ContourDisplay.from_estimator(flat, ax=ax).contour == 1).all()


def test_slopes_can_be_chosen(ax, calibrator):
    theta = [0.0, 1.0, 5.0]
    display = ContourDisplay.from_estimator(calibrator, theta=theta, ax=ax)
    np.testing.assert_array_equal(display.contour, calibrator.slope_contour(theta))


@pytest.mark.parametrize("one", [0.3, [0.3], [[0.3]]])
def test_binary_calibrators_at_one_score(ax, binary, one):
    display = ContourDisplay.from_estimator(binary, one, ax=ax, level=0.5)
    np.testing.assert_array_equal(display.contour, binary.contour([0.3], display.theta)[0])
    assert display.contour.max() == pytest.approx(1)
    assert display.theta[[0, -1]].tolist() == [0, 1]
    assert "probability" in ax.get_xlabel()


def test_regions_are_the_cumulative_softmax(ax, calibrator):
    row = np.array([0.3, -0.5, 1.0, 0.2])
    display = ContourDisplay.from_estimator(calibrator, ax=Figure().subplots())
    assert display.plot_regions(row, ax, level=0.3, z=0.6) is display
    assert display.ax_ is ax
    assert len(display.region_lines_) == 3
    theta = display.theta[137]
    softmax = np.exp(theta * row) / np.exp(theta * row).sum()
    drawn = [line.get_ydata()[137] for line in display.region_lines_]
    np.testing.assert_allclose(drawn, np.cumsum(softmax)[:-1], rtol=1e-12)
    assert [text.get_text() for text in ax.texts] == ["R1", "R2", "R3", "R4"]


def test_the_line_meets_the_classes_that_some_slope_of_the_level_set_gives(ax):
    row = np.array([1.0, 0.0, 0.9])
    display = ContourDisplay(theta=gaussian()[0], contour=gaussian()[1])
    low, high = display.level_set(0.5)
    slopes = np.linspace(low, high, 5000)[:, None]
    softmax = np.exp(slopes * row) / np.exp(slopes * row).sum(axis=1, keepdims=True)
    for z in (0.05, 0.48, 0.5, 0.55, 0.6, 0.9):
        column = (np.cumsum(softmax, axis=1) <= z).sum(axis=1)
        display.plot_regions(row, ax, level=0.5, z=z)
        assert np.flatnonzero(display.overlapped_).tolist() == np.unique(column).tolist()
    assert np.flatnonzero(display.overlapped_).tolist() == [2]
    display.plot_regions(row, ax, z=0.5)
    assert display.overlapped_ is None


def test_region_names_and_thin_regions(ax):
    display = ContourDisplay(theta=[0, 1, 2], contour=[0.2, 1, 0.2])
    display.plot_regions([0, 1, -50], ax, names=["cat", "dog", "yak"])
    assert [text.get_text() for text in ax.texts] == ["cat", "dog", "yak"]
    hidden = Figure().subplots()
    thin = ContourDisplay(theta=[1, 2], contour=[1, 0.2])
    thin.plot_regions([0, 1, -50], hidden, names=["cat", "dog", "yak"])
    assert [text.get_text() for text in hidden.texts] == ["cat", "dog"]


def test_without_axes_new_ones_are_made(monkeypatch):
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("Agg")
    before = plt.gcf()
    display = ContourDisplay(theta=[0, 1], contour=[1, 0.5]).plot()
    assert display.figure_ is not before
    plt.close("all")
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r'pip install "\.\[plots\]"'):
        ContourDisplay(theta=[0, 1], contour=[1, 0.5]).plot()


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"theta": [0, 0]}, "increasing"),
        ({"theta": [0]}, "match"),
        ({"theta": [0], "contour": [1]}, "at least two"),
        ({"contour": [1, 1.5]}, r"in \[0, 1\]"),
        ({"contour": [-0.1, 1]}, r"in \[0, 1\]"),
        ({"contour": [np.nan, 1]}, "nan"),
        ({"parameter": "angle"}, "'slope', 'probability'"),
    ],
)
def test_wrong_arrays_are_refused(wrong, words):
    with pytest.raises(ValueError, match=words):
        ContourDisplay(**{"theta": [0, 1], "contour": [0.5, 1], **wrong})


def test_wrong_estimators_and_scores_are_refused(ax, binary, calibrator):
    with pytest.raises(TypeError, match="object has no contour"):
        ContourDisplay.from_estimator(object(), ax=ax)
    with pytest.raises(ValueError, match="same for all scores"):
        ContourDisplay.from_estimator(calibrator, [1, 2, 3, 4], ax=ax)
    with pytest.raises(ValueError, match="pass scores="):
        ContourDisplay.from_estimator(binary, ax=ax)
    with pytest.raises(ValueError, match="one row; got 2"):
        ContourDisplay.from_estimator(binary, [[0.1], [0.2]], ax=ax)
    display = ContourDisplay.from_estimator(binary, 0.1, ax=ax)
    with pytest.raises(ValueError, match="θ is a probability"):
        display.plot_regions([0, 1], ax)
    with pytest.raises(ValueError, match="gamma must be"):
        display.level_set(1.5)
    with pytest.raises(ValueError, match="names has 1 rows"):
        ContourDisplay(theta=[0, 1], contour=[1, 0.5]).plot_regions([0, 1], ax, names=["a"])


def test_more_than_two_classes_against_the_rest_are_refused(ax):
    scores = np.random.default_rng(0).normal(size=(30, 3))
    calibrator = EvidentialBinningCalibrator().fit(scores, scores.argmax(axis=1))
    with pytest.raises(ValueError, match="more than two classes"):
        ContourDisplay.from_estimator(calibrator, [0, 1, 2], ax=ax)
