"""DecisionRegionDisplay: the regions drawn are those that predict_set decides for."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from matplotlib.figure import Figure
from matplotlib.path import Path
from scipy.sparse import csr_array
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.svm import LinearSVC

from dubito.calibration import CalibratedClassifier, EvidentialMultinomialCalibrator
from dubito.datasets import make_gaussian_trio
from dubito.evidence import EvidentialClassifier
from dubito.plots import DecisionRegionDisplay

FISH = np.array(["cod", "eel", "ray"])


@pytest.fixture
def ax():
    return Figure().subplots()


@pytest.fixture(scope="module")
def rows():
    X, y = make_gaussian_trio(150, random_state=0)
    return X, FISH[y]


@pytest.fixture(scope="module")
def evidential(rows):
    return EvidentialClassifier(LogisticRegression()).fit(*rows)


class Recorder:
    """A classifier of two classes that keeps the rows it predicts."""

    classes_ = np.array(["low", "high"])

    def predict_set(self, X, rule=None):
        self.rows, self.rule = X, rule
        return np.ones((len(X), 2), dtype=bool)

    def predict(self, X):
        first = np.asarray(X)[:, 0].astype(float)
        return self.classes_[(first > first.mean()).astype(int)]


def inside(contours, points):
    """Return which points a filled region holds: inside an odd number of its outlines."""
    outlines = [Path(one) for path in contours.get_paths() for one in path.to_polygons()]
    return np.sum([one.contains_points(points) for one in outlines], axis=0) % 2 == 1


def grid(display):
    return np.column_stack([axis.ravel() for axis in np.meshgrid(display.x, display.y)])


@pytest.mark.parametrize("rule", [None, "maximality", lambda bounds: bounds.upper > 0.25])
def test_regions_hold_the_points_whose_set_they_are(ax, evidential, rows, rule):
    display = DecisionRegionDisplay.from_estimator(
        evidential, rows[0], rule=rule, grid_resolution=60, ax=ax
    )
    points = grid(display)
    sets = evidential.predict_set(points, rule=rule)
    np.testing.assert_array_equal(display.sets.reshape(-1, 3), sets)
    names = [", ".join(FISH[kept]) for kept in sets]
    assert len(display.regions_) == len(set(names)) > 3
    # The edges of the axes are edges of regions: points on them are neither inside nor outside.
    away = (np.abs(points - points.mean(axis=0)) < 0.499 * np.ptp(points, axis=0)).all(axis=1)
    for name, region in display.regions_.items():
        wanted = np.array([("all" if n.count(",") == 2 else f"{{{n}}}") == name for n in names])
        np.testing.assert_array_equal(inside(region, points[away]), wanted[away])


def test_small_sets_come_first_and_larger_ones_are_hatched(ax, evidential, rows):
    display = DecisionRegionDisplay.from_estimator(evidential, rows[0], grid_resolution=60, ax=ax)
    names = list(display.regions_)
    assert names[:3] == ["{cod}", "{eel}", "{ray}"]
    assert names[-1] == "all"
    assert all(name.count(",") == 1 for name in names[3:-1])
    for name, region in display.regions_.items():
        assert (region.hatches == [None]) == (name.count(",") == 0 and name != "all")
    legend = [text.get_text() for text in ax.get_legend().get_texts()]
    assert legend == [*names, "border of predict"]


def test_the_line_is_where_the_two_best_classes_are_as_good(ax, evidential, rows):
    display = DecisionRegionDisplay.from_estimator(evidential, rows[0], grid_resolution=80, ax=ax)
    predicted = evidential.predict(grid(display)).reshape(80, 80)
    np.testing.assert_array_equal(FISH[display.margins.argmax(axis=0)], predicted)
    assert len(display.boundary_) == 2
    step = max(np.abs(np.diff(display.margins, axis=axis)).max() for axis in (1, 2))
    for line in display.boundary_:
        vertices = np.vstack([path.vertices for path in line.get_paths()])
        assert len(vertices) > 50
        best = np.sort(evidential.predict_proba(vertices), axis=1)
        apart = best[:, -1] - best[:, -2]
        assert np.median(apart) < 1e-3
        assert apart.max() < step  # where three classes meet, the line bends between points


def test_without_probabilities_the_line_runs_between_the_points(ax):
    X = np.array([[0.0, 0.0], [10.0, 1.0]])
    display = DecisionRegionDisplay.from_estimator(Recorder(), X, grid_resolution=23, ax=ax)
    assert set(np.unique(display.margins)) == {-1, 1}
    (line,) = display.boundary_
    across = np.vstack([path.vertices for path in line.get_paths()])[:, 0]
    # The mean is the point in the middle, which counts as low.
    np.testing.assert_allclose(across, display.x[11:13].mean())


def test_probabilities_that_disagree_with_predict_are_not_used(ax):
    class Cautious(Recorder):
        def predict_proba(self, X):
            return np.tile([0.9, 0.1], (len(X), 1))

    X = np.array([[0.0, 0.0], [10.0, 1.0]])
    display = DecisionRegionDisplay.from_estimator(Cautious(), X, grid_resolution=10, ax=ax)
    assert set(np.unique(display.margins)) == {-1, 1}


def test_no_line_where_it_is_not_wanted_or_nothing_changes(ax, evidential, rows):
    off = DecisionRegionDisplay.from_estimator(
        evidential, rows[0], boundary=False, grid_resolution=20, ax=ax
    )
    assert off.boundary_ == []
    assert off.margins is None
    corner = rows[0][:1] + np.array([[6, -6]])
    one = DecisionRegionDisplay.from_estimator(evidential, corner, grid_resolution=5, ax=ax)
    assert list(one.regions_) == ["{ray}"]
    assert one.boundary_ == []
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["{ray}"]


def test_rows_with_labels_are_drawn_class_by_class(ax, evidential, rows):
    X, y = rows
    display = DecisionRegionDisplay.from_estimator(
        evidential, X, y=y, grid_resolution=20, ax=ax, s=5
    )
    for label, points in zip(FISH, display.points_, strict=True):
        np.testing.assert_array_equal(points.get_offsets(), X[y == label])
        assert points.get_sizes().tolist() == [5]
    legend = [text.get_text() for text in ax.get_legend().get_texts()]
    assert legend[-3:] == ["cod", "eel", "ray"]


def test_points_without_labels_are_drawn_alike(ax):
    sets = np.ones((2, 2, 2), dtype=bool)
    points = [[0.5, 0.5], [np.nan, 0.1]]
    display = DecisionRegionDisplay(x=[0, 1], y=[0, 1], sets=sets, points=points).plot(ax)
    np.testing.assert_array_equal(display.points_[0].get_offsets()[0], [0.5, 0.5])
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["{0, 1}"]


def test_other_columns_are_held_and_frames_keep_their_columns(ax):
    frame = pd.DataFrame(
        {
            "age": [20, 40, 60],
            "town": pd.Categorical(["Ulm", "Bern", "Bern"], categories=["Bern", "Rom", "Ulm"]),
            "dose": [1.0, np.nan, 5.0],
            "ldl": [3.0, 5.0, 4.0],
            "smokes": [True, False, True],
            "ward": [1, 2, 9],
            "code": pd.Categorical([7, 1, 7]),
        },
        index=[7, 8, 9],
    )
    recorder = Recorder()
    display = DecisionRegionDisplay.from_estimator(
        recorder, frame, features=("ldl", "age"), grid_resolution=4, ax=ax, rule="maximality"
    )
    assert recorder.rule == "maximality"
    assert list(recorder.rows.columns) == list(frame.columns)
    np.testing.assert_allclose(recorder.rows[["ldl", "age"]], grid(display))
    assert (recorder.rows["dose"] == 3).all()
    assert (recorder.rows["town"] == "Bern").all()
    assert recorder.rows["town"].dtype == frame["town"].dtype
    assert recorder.rows["smokes"].all()
    assert (recorder.rows["ward"] == 2).all()  # nearest to the mean, which is no ward
    assert (recorder.rows["code"] == 7).all()
    assert display.x[[0, -1]] == pytest.approx([2.9, 5.1])
    assert display.y[[0, -1]] == pytest.approx([18, 62])
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("ldl", "age")


def test_polars_frames_and_plain_arrays_alike(ax):
    table = np.array([[1.0, 10.0, 5.0], [3.0, 20.0, 6.0], [5.0, 60.0, 13.0]])
    frame = pl.DataFrame(table, schema=["a", "b", "c"])
    recorder = Recorder()
    DecisionRegionDisplay.from_estimator(
        recorder, frame, features=["c", 0], grid_resolution=3, ax=ax
    )
    assert isinstance(recorder.rows, pl.DataFrame)
    by_name = recorder.rows.to_numpy()
    display = DecisionRegionDisplay.from_estimator(
        recorder, table, features=(-1, 0), grid_resolution=3, ax=ax
    )
    np.testing.assert_array_equal(recorder.rows, by_name)
    assert (recorder.rows[:, 1] == 30).all()
    np.testing.assert_array_equal(recorder.rows[:, [2, 0]], grid(display))
    assert ax.get_xlabel() == "feature 2"


def test_arrays_of_words_and_numbers_keep_both(ax):
    table = np.array([[1, "x", 2.0], [2, "y", 3.0], [4, "y", 4.0]], dtype=object)
    recorder = Recorder()
    DecisionRegionDisplay.from_estimator(recorder, table, features=(0, 2), grid_resolution=3, ax=ax)
    assert recorder.rows.dtype == object
    assert (recorder.rows[:, 1] == "y").all()
    with pytest.raises(TypeError, match="'feature 1' does not contain numbers"):
        DecisionRegionDisplay.from_estimator(recorder, table, features=(0, 1), ax=ax)


def test_names_come_from_the_estimator_where_the_table_has_none(ax, rows):
    clf = EvidentialClassifier(LogisticRegression())
    clf.fit(pd.DataFrame(rows[0], columns=["left", "right"]), rows[1])
    with pytest.warns(UserWarning, match="feature names"):  # scikit-learn's own
        DecisionRegionDisplay.from_estimator(
            clf, rows[0], features=("right", "left"), grid_resolution=3, ax=ax
        )
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("right", "left")


def test_pipelines_that_fill_gaps_and_encode_words(ax):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(60, 2)), columns=["a", "b"])
    frame["c"] = np.where(rng.random(60) < 0.7, "often", "seldom")
    y = np.where(frame["a"] + rng.normal(size=60) > 0, "yes", "no")
    frame.loc[3, "a"] = np.nan
    encode = make_column_transformer((OneHotEncoder(), ["c"]), remainder=SimpleImputer())
    clf = EvidentialClassifier(make_pipeline(encode, LogisticRegression())).fit(frame, y)
    display = DecisionRegionDisplay.from_estimator(clf, frame, y=y, grid_resolution=20, ax=ax)
    held = pd.DataFrame(grid(display), columns=["a", "b"]).assign(c="often")
    np.testing.assert_array_equal(display.sets.reshape(-1, 2), clf.predict_set(held))


def test_any_classifier_of_dubito(ax, rows):
    calibrated = CalibratedClassifier(LinearSVC(), EvidentialMultinomialCalibrator(), cv=3)
    calibrated.fit(rows[0][:40], rows[1][:40])
    display = DecisionRegionDisplay.from_estimator(calibrated, rows[0], grid_resolution=30, ax=ax)
    np.testing.assert_array_equal(
        display.sets.reshape(-1, 3), calibrated.predict_set(grid(display))
    )
    assert display.ax_ is ax
    assert display.figure_ is ax.figure


def test_a_constant_feature_gets_a_width(ax):
    display = DecisionRegionDisplay.from_estimator(
        Recorder(), [[2.0, 1.0], [2.0, 3.0]], grid_resolution=5, ax=ax
    )
    assert display.x[[0, -1]].tolist() == [1.5, 2.5]


def test_the_legend_names_the_largest_regions_and_counts_the_others(ax):
    sets = np.array([[int(bit) for bit in f"{mask:04b}"] for mask in range(1, 16)], dtype=bool)
    wide = np.repeat(sets, np.arange(1, 16), axis=0)[None]
    wide = np.repeat(wide, 2, axis=0)
    display = DecisionRegionDisplay(x=np.arange(120), y=[0, 1], sets=wide, classes=list("abcd"))
    display.plot(ax)
    assert len(display.regions_) == 15
    legend = [text.get_text() for text in ax.get_legend().get_texts()]
    assert legend[-1] == "and 3 smaller regions"
    assert set(display.regions_) - set(legend) == {"{d}", "{c}", "{c, d}"}


def test_new_axes_leave_space_for_the_legend():
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("Agg")
    display = DecisionRegionDisplay(x=[0, 1], y=[0, 1], sets=np.ones((2, 2, 2), bool)).plot()
    display.figure_.canvas.draw()
    box = display.ax_.get_legend().get_window_extent()
    assert box.x1 <= display.figure_.bbox.x1
    assert box.x0 >= display.ax_.get_window_extent().x1
    plt.close("all")


@pytest.mark.parametrize(
    ("features", "shown"),
    [((0,), "Got"), ((0, 0), "two different"), ((0, 2), "from 0 to 1"), ("ab", "Got 'ab'"),
     (("feature 0", "c"), "'feature 0', 'feature 1'"), ((0, True), "two different")],
)  # fmt: skip
def test_wrong_features_are_refused(ax, rows, evidential, features, shown):
    with pytest.raises(ValueError, match=shown):
        DecisionRegionDisplay.from_estimator(evidential, rows[0], features=features, ax=ax)


def test_wrong_input_is_refused(ax, rows, evidential):
    X, y = rows
    with pytest.raises(TypeError, match="LogisticRegression has no predict_set"):
        DecisionRegionDisplay.from_estimator(LogisticRegression(), X, ax=ax)
    with pytest.raises(ValueError, match=r"grid_resolution must be an integer above 1\. Got 1"):
        DecisionRegionDisplay.from_estimator(evidential, X, grid_resolution=1, ax=ax)
    with pytest.raises(TypeError, match="toarray"):
        DecisionRegionDisplay.from_estimator(evidential, csr_array(X), ax=ax)
    with pytest.raises(ValueError, match="at least one row"):
        DecisionRegionDisplay.from_estimator(evidential, X[:0], ax=ax)
    with pytest.raises(ValueError, match="labels has 3 rows but points has 150"):
        DecisionRegionDisplay.from_estimator(evidential, X, y=y[:3], grid_resolution=2, ax=ax)
    with pytest.raises(ValueError, match="'hake'"):
        DecisionRegionDisplay.from_estimator(
            evidential, X, y=np.where(y == "cod", "hake", y), grid_resolution=2, ax=ax
        )


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"sets": np.ones((2, 2, 2))}, "boolean"),
        ({"sets": np.ones((3, 2, 2), bool)}, r"\(2, 2, K\)"),
        ({"sets": np.zeros((2, 2, 2), bool)}, "empty"),
        ({"margins": np.zeros((2, 3, 2))}, "margins must have the shape"),
        ({"classes": ["a"]}, "classes has 1 rows"),
    ],
)
def test_wrong_arrays_are_refused(wrong, words):
    with pytest.raises(ValueError, match=words):
        DecisionRegionDisplay(
            **{"x": [0, 1], "y": [0, 1], "sets": np.ones((2, 2, 2), bool), **wrong}
        )
