"""MassDisplay: the level curves drawn are those of the classifier's masses."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from dubito.belief import Frame, MassBatch
from dubito.calibration import CalibratedClassifier, EvidentialMultinomialCalibrator
from dubito.datasets import make_gaussian_trio
from dubito.evidence import EvidentialClassifier
from dubito.plots import MassDisplay

FISH = np.array(["cod", "eel", "ray"])


@pytest.fixture(scope="module")
def rows():
    X, y = make_gaussian_trio(200, random_state=0)
    return X, FISH[y]


@pytest.fixture(scope="module")
def trio(rows):
    return EvidentialClassifier(LogisticRegression()).fit(*rows)


@pytest.fixture(scope="module")
def pair(rows):
    X, y = rows
    frame = pd.DataFrame(X, columns=["wide", "long"]).assign(heavy=X[:, 0] + X[:, 1] ** 2)
    return EvidentialClassifier(LogisticRegression()).fit(frame, y == "ray"), frame


def grid(display):
    return np.column_stack([axis.ravel() for axis in np.meshgrid(display.x, display.y)])


def axes(n):
    return Figure().subplots(1, n)


def vertices(curves):
    """Pairs of a level and the points on its curves."""
    paths = zip(curves.levels, curves.get_paths(), strict=True)
    return [(level, path.vertices) for level, path in paths]


@pytest.mark.parametrize("quantity", ["mass", "belief", "plausibility"])
def test_values_are_those_of_the_masses(trio, rows, quantity):
    sets = [["cod"], "ray", ["cod", "eel"], ["eel", "ray"], ["cod", "eel", "ray"]]
    display = MassDisplay.from_estimator(
        trio, rows[0], focal=sets, quantity=quantity, grid_resolution=20, ax=axes(5)
    )
    masses = trio.predict_mass(grid(display))
    for inside, values in zip(display.focal, display.level, strict=True):
        labels = FISH[inside].tolist()
        expected = {
            "mass": masses.mass[:, (masses.focal == inside).all(axis=1)][:, 0],
            "belief": masses.bel(labels),
            "plausibility": masses.pl(labels),
        }[quantity]
        np.testing.assert_allclose(values.ravel(), expected, atol=1e-15)
    symbol = {"mass": "m", "belief": "Bel", "plausibility": "Pl"}[quantity]
    titles = [ax.get_title().split(",")[0] for ax in display.axes_]
    assert titles[:2] == [f"{symbol}({{cod}})", f"{symbol}({{ray}})"]


def test_the_curves_are_where_the_masses_have_their_level(trio, rows):
    display = MassDisplay.from_estimator(trio, rows[0], grid_resolution=150, ax=axes(7))
    drawn = 0
    for column, curves in enumerate(display.curves_):
        values = display.level[column]
        wanted = [lev for lev in np.arange(1, 10) / 10 if values.min() < lev < values.max()]
        if curves is None:
            assert wanted == []
            continue
        np.testing.assert_allclose(curves.levels, wanted)
        inside = display.focal[column]
        for level, points in vertices(curves):
            batch = trio.predict_mass(points)
            mass = batch.mass[:, (batch.focal == inside).all(axis=1)][:, 0]
            # Masses bend where a weight changes sign; elsewhere a cell is nearly straight.
            assert np.median(np.abs(mass - level)) < 1e-3
            assert np.abs(mass - level).max() < 0.02
            drawn += len(points)
    assert drawn > 1000


def test_all_sets_of_three_classes_are_drawn_small_ones_first(trio, rows):
    display = MassDisplay.from_estimator(trio, rows[0], grid_resolution=10, ax=axes(7))
    assert display.focal.sum(axis=1).tolist() == [1, 1, 1, 2, 2, 2, 3]
    np.testing.assert_allclose(display.level.sum(axis=0), 1)
    assert display.axes_[-1].get_title().startswith("m(all)")


@pytest.mark.parametrize(("n_classes", "sizes"), [(2, [1, 1, 2]), (4, [1, 1, 1, 1, 4])])
def test_of_other_numbers_of_classes_single_ones_and_the_frame(n_classes, sizes):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(80, 2)), rng.integers(n_classes, size=80)
    clf = EvidentialClassifier(LogisticRegression()).fit(X, y)
    masses = MassDisplay.from_estimator(clf, X, grid_resolution=5, ax=axes(len(sizes)))
    assert masses.focal.sum(axis=1).tolist() == sizes
    beliefs = MassDisplay.from_estimator(
        clf, X, quantity="belief", grid_resolution=5, ax=axes(n_classes)
    )
    assert beliefs.focal.sum(axis=1).tolist() == sizes[:-1]


def test_conflict_is_drawn_broken_on_the_axes_of_the_frame(pair):
    clf, frame = pair
    ax = axes(3)
    display = MassDisplay.from_estimator(
        clf, frame, features=("long", "heavy"), conflict=True, grid_resolution=80, ax=ax
    )
    assert display.conflict.max() > 0.3
    assert display.conflict_curves_.axes is ax[2]
    assert display.conflict_curves_.linestyles == "dashed"
    for level, points in vertices(display.conflict_curves_):
        rows = pd.DataFrame({"wide": frame["wide"].mean(), "long": points[:, 0]})
        rows["heavy"] = points[:, 1]
        np.testing.assert_allclose(clf.conflict(rows), level, atol=0.01)
    assert ax[2].get_title() == "m({False, True})\nbroken lines: conflict"
    only = MassDisplay.from_estimator(
        clf, frame, focal=[True, False], conflict=True, grid_resolution=30, ax=axes(2)
    )
    assert only.conflict_curves_.axes is only.axes_[1]


def test_other_columns_are_held_at_their_mean(pair):
    clf, frame = pair
    display = MassDisplay.from_estimator(
        clf, frame, features=(2, 0), focal=[True], grid_resolution=12, ax=axes(1)
    )
    points = grid(display)
    rows = pd.DataFrame({"wide": points[:, 1], "long": frame["long"].mean(), "heavy": points[:, 0]})
    np.testing.assert_allclose(display.level[0].ravel(), clf.predict_mass(rows).mass[:, 1])
    assert (display.axes_[0].get_xlabel(), display.axes_[0].get_ylabel()) == ("heavy", "wide")


def test_borders_of_the_predicted_classes(trio, rows):
    display = MassDisplay.from_estimator(
        trio, rows[0], focal=["cod", "eel"], boundary=True, grid_resolution=60, ax=axes(2)
    )
    assert [line.axes for line in display.boundaries_] == list(np.repeat(display.axes_, 2))
    predicted = trio.predict(grid(display)).reshape(60, 60)
    np.testing.assert_array_equal(FISH[display.margins.argmax(axis=0)], predicted)


def test_masses_of_other_classifiers_do_as_well(rows):
    X, y = rows
    calibrator = EvidentialMultinomialCalibrator(coupling="inverse_cdf")
    clf = CalibratedClassifier(LinearSVC(), calibrator, cv=3).fit(X[:60], y[:60])
    display = MassDisplay.from_estimator(clf, X, grid_resolution=6, ax=axes(7))
    dense = clf.predict_mass(grid(display)).dense()
    for inside, values in zip(display.focal, display.level, strict=True):
        expected = dense.mass[:, (dense.focal == inside).all(axis=1)][:, 0]
        np.testing.assert_allclose(values.ravel(), expected, atol=1e-15)


def test_sets_that_are_not_focal_have_no_mass():
    class Sure:
        classes_ = np.array(["a", "b"])

        def predict_mass(self, X):
            return MassBatch(["a", "b"], [[1, 0]], np.ones((len(X), 1)))

    display = MassDisplay.from_estimator(Sure(), [[0, 0], [1, 1]], grid_resolution=3, ax=axes(3))
    np.testing.assert_array_equal(display.level[:, 0, 0], [1, 0, 0])
    assert display.curves_ == [None, None, None]


def test_masses_of_many_classes_are_computed_in_blocks(monkeypatch):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(130, 2)), np.arange(130) % 13
    clf = EvidentialClassifier(LogisticRegression()).fit(X, y)
    whole = clf.predict_mass
    sizes = []

    def watched(rows):
        sizes.append(len(rows))
        return whole(rows)

    monkeypatch.setattr(clf, "predict_mass", watched)
    display = MassDisplay.from_estimator(
        clf, pd.DataFrame(X).to_numpy(), focal=[3, [1, 2]], grid_resolution=25, ax=axes(2)
    )
    assert len(sizes) > 1
    assert max(sizes) * 2**13 <= 2**22
    batch = whole(grid(display))
    frame = Frame(range(13))
    for values, labels in zip(display.level, [3, [1, 2]], strict=True):
        at = (batch.focal == frame.to_indicator(labels)).all(axis=1)
        np.testing.assert_allclose(values.ravel(), batch.mass[:, at][:, 0], rtol=1e-12)


def test_levels_and_styles_can_be_chosen_and_low_sets_say_so():
    values = np.array([[[0.0, 0.2], [0.3, 0.04]], [[0.0, 0.01], [0.03, 0.04]]])
    display = MassDisplay(x=[0, 1], y=[0, 1], level=values, focal=[[1, 0], [0, 1]])
    display.plot(axes(2), levels=[0.25, 0.15], linestyles="dotted")
    assert display.curves_[0].levels.tolist() == [0.15, 0.25]
    assert display.curves_[0].linestyles == "dotted"
    assert display.curves_[1] is None
    assert [ax.get_title() for ax in display.axes_] == ["m({0})", "m({1}), at most 0.04"]


def test_new_axes_stand_four_to_a_row():
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("Agg")
    focal = Frame(list("abc")).subsets()
    values = np.random.default_rng(0).random((7, 3, 3))
    display = MassDisplay(x=[0, 1, 2], y=[0, 1, 2], level=values, focal=focal).plot()
    assert len(display.figure_.axes) == 7
    left = [ax.get_ylabel() != "" for ax in display.axes_]
    assert left == [True, False, False, False, True, False, False]
    below = [ax.get_xlabel() != "" for ax in display.axes_]
    assert below == [False, False, False, True, True, True, True]
    plt.close("all")


def test_given_axes_are_used(trio, rows):
    single = Figure().subplots()
    display = MassDisplay.from_estimator(trio, rows[0], focal=["cod"], grid_resolution=5, ax=single)
    assert display.axes_.tolist() == [single]
    assert display.figure_ is single.figure
    square = Figure().subplots(2, 2)
    four = MassDisplay(
        x=[0, 1], y=[0, 1], level=np.zeros((4, 2, 2)), focal=Frame(list("abc")).subsets()[:4]
    ).plot(square)
    assert four.axes_.tolist() == square.ravel().tolist()
    with pytest.raises(ValueError, match="each of the 4 sets; got 3"):
        four.plot(axes(3))


def test_wrong_input_is_refused(trio, rows):
    X, y = rows
    with pytest.raises(TypeError, match="LogisticRegression has no predict_mass"):
        MassDisplay.from_estimator(LogisticRegression(), X)
    calibrator = EvidentialMultinomialCalibrator(coupling="inverse_cdf")
    calibrated = CalibratedClassifier(LinearSVC(), calibrator, cv=3).fit(X, y)
    with pytest.raises(TypeError, match="CalibratedClassifier has no conflict"):
        MassDisplay.from_estimator(calibrated, X, conflict=True)
    with pytest.raises(ValueError, match="quantity must be one of 'mass'"):
        MassDisplay.from_estimator(trio, X, quantity="weight")
    with pytest.raises(ValueError, match="'hake' is not in the frame"):
        MassDisplay.from_estimator(trio, X, focal=["hake"])
    with pytest.raises(ValueError, match="at least one set"):
        MassDisplay.from_estimator(trio, X, focal=[])


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"level": np.zeros((1, 2, 2))}, "level has 1 rows but focal has 2"),
        ({"level": np.zeros((2, 2, 3))}, r"level must have the shape \(2, 2\)"),
        ({"conflict": np.zeros((3, 2))}, r"conflict must have the shape \(2, 2\)"),
        ({"margins": np.zeros((2, 2, 1))}, r"margins must have the shape \(2, 2\)"),
        ({"classes": list("abc")}, "classes has 3 rows"),
        ({"quantity": "doubt"}, "'plausibility'"),
    ],
)
def test_wrong_arrays_are_refused(wrong, words):
    right = {"x": [0, 1], "y": [0, 1], "level": np.zeros((2, 2, 2)), "focal": np.eye(2)}
    with pytest.raises(ValueError, match=words):
        MassDisplay(**{**right, **wrong})
