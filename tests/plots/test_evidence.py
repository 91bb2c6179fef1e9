"""EvidenceDisplay: what is drawn are the weights and masses of the model, piece by piece."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from scipy.sparse import csr_array
from scipy.special import logit
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import SplineTransformer, StandardScaler

from dubito.datasets import load, make_gaussian_trio
from dubito.evidence import EvidentialClassifier, Explanation
from dubito.plots import EvidenceDisplay

FISH = np.array(["cod", "eel", "ray"])


@pytest.fixture
def ax():
    return Figure().subplots()


@pytest.fixture(scope="module")
def patients():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal([45, 5], [12, 1.5], size=(200, 2)), columns=["age", "ldl"])
    risk = 0.1 * (X["age"] - 45) + 0.5 * (X["ldl"] - 5) + rng.logistic(size=200)
    return X, np.where(risk > 0, "ill", "well")


@pytest.fixture(scope="module")
def two(patients):
    return EvidentialClassifier(LogisticRegression()).fit(*patients)


@pytest.fixture(scope="module")
def fish():
    X, y = make_gaussian_trio(200, random_state=0)
    return np.column_stack([X, X**2]), FISH[y]


@pytest.fixture(scope="module")
def three(fish):
    return EvidentialClassifier(LogisticRegression()).fit(*fish)


@pytest.fixture(scope="module")
def splines(patients):
    model = make_pipeline(SplineTransformer(), LogisticRegression())
    return EvidentialClassifier(model, groups="input").fit(*patients)


def explanation_of(weights, **options):
    weights = np.asarray(weights, dtype=float)[None]
    names = [f"p{j}" for j in range(weights.shape[1])]
    return Explanation(weights=weights, names=names, **options)


def bars(display):
    """Names, left ends and widths of the bars, from top to bottom."""
    names = [tick.get_text() for tick in display.ax_.get_yticklabels()]
    found = sorted(display.bars_, key=lambda bar: bar.get_y())
    return names, [bar.get_x() for bar in found], [bar.get_width() for bar in found]


def labels(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_bars_begin_where_the_last_one_ended(ax):
    weights = [[0.0, 0.5], [2.0, 0.0], [0.0, 0.25], [0.0, 1.0]]
    values = [[31, "red", None, 7.93456]]
    explained = explanation_of(weights, classes=["well", "ill"], values=values)
    display = EvidenceDisplay.from_explanation(explained, ax=ax)
    names, start, width = bars(display)
    assert names == ["p1 = red", "p3 = 7.935", "p0 = 31", "p2", "together"]
    np.testing.assert_allclose(width, [-2, 1, 0.5, 0.25, -0.25])
    np.testing.assert_allclose(start, [0, -2, -1, -0.5, 0])
    assert display.ax_ is ax
    assert ax.get_ylim()[0] > ax.get_ylim()[1]  # the first bar is at the top
    assert ax.get_xlabel().startswith("← for well")
    assert ax.get_xlabel().endswith("for ill →")
    assert [text.get_text() for text in ax.texts] == ["-2.00", "+1.00", "+0.50", "+0.25", "-0.25"]


def test_the_title_names_the_prediction(ax):
    explained = explanation_of([[0.92, 0.0], [0.0, 0.15]], classes=["well", "ill"])
    EvidenceDisplay.from_explanation(explained, ax=ax)
    title = ax.get_title(loc="left")
    # By hand: m(ill) = e^-0.92 (1 - e^-0.15) / D, m(all) = e^-1.07 / D, D = 1 - conflict.
    conflict = (1 - np.exp(-0.92)) * (1 - np.exp(-0.15))
    belief = np.exp(-0.92) * (1 - np.exp(-0.15)) / (1 - conflict)
    ignorance = np.exp(-1.07) / (1 - conflict)
    assert title == (
        f"ill: belief {belief:.2f}, plausibility {belief + ignorance:.2f}\n"
        f"ignorance {ignorance:.2f}, conflict {conflict:.2f}"
    )


def test_the_other_of_two_classes_can_be_the_target(ax):
    explained = explanation_of([[0.0, 0.5], [2.0, 0.0]], classes=["well", "ill"])
    display = EvidenceDisplay.from_explanation(explained, target="well", ax=ax)
    np.testing.assert_allclose(bars(display)[2], [2, -0.5, 1.5])
    assert ax.get_xlabel().endswith("for well →")
    assert ax.get_title(loc="left").startswith("well:")


def test_of_more_classes_one_is_shown_for_and_against(ax):
    weights = [[1.0, -0.5, -0.5], [-0.2, -0.4, 0.6]]
    explained = explanation_of(weights, classes=FISH)
    display = EvidenceDisplay.from_explanation(explained, ax=ax)
    np.testing.assert_allclose(bars(display)[2], [1, -0.2, 0.8])  # cod is the most plausible
    assert ax.get_xlabel().startswith("← against cod")
    other = EvidenceDisplay.from_explanation(explained, target="ray", ax=Figure().subplots())
    np.testing.assert_allclose(bars(other)[2], [0.6, -0.5, 0.1])


def test_small_pieces_are_joined(ax):
    weights = np.zeros((6, 2))
    weights[:, 1] = [0.1, 0.6, 0.2, 0.5, 0.3, 0.4]
    weights[[0, 2], :] = weights[[0, 2], ::-1]
    explained = explanation_of(weights, classes=["a", "b"])
    names, start, width = bars(EvidenceDisplay.from_explanation(explained, max_pieces=3, ax=ax))
    assert names == ["p1", "p3", "p5", "the other 3", "together"]
    np.testing.assert_allclose(width, [0.6, 0.5, 0.4, 0.3 - 0.2 - 0.1, 1.5], atol=1e-12)
    np.testing.assert_allclose(start, [0, 0.6, 1.1, 1.5, 0], atol=1e-12)
    # One piece is not joined with itself.
    full = EvidenceDisplay.from_explanation(explained, max_pieces=5, ax=Figure().subplots())
    assert bars(full)[0] == ["p1", "p3", "p5", "p4", "p2", "p0", "together"]


def test_together_the_bars_reach_the_log_odds(ax, two, patients):
    for row in range(5):
        X = patients[0][row : row + 1]
        display = EvidenceDisplay.from_estimator(two, X, ax=ax)
        assert bars(display)[2][-1] == pytest.approx(logit(two.predict_proba(X)[0, 1]))
    named = {f"{name} = {X[name].iloc[0]:.4g}" for name in ("age", "ldl")}
    assert set(bars(display)[0]) == {*named, "together"}


def test_of_more_classes_they_reach_the_output_less_the_mean(ax, three, fish):
    X = fish[0][:1]
    display = EvidenceDisplay.from_estimator(three, X, ax=ax)
    outputs = three.estimator_.decision_function(X)[0]
    best = outputs.argmax()
    assert bars(display)[2][-1] == pytest.approx(outputs[best] - outputs.mean())
    plus, minus = three.totals(X)
    assert bars(display)[2][-1] == pytest.approx(plus[0, best] - minus[0, best])


def test_numbers_stand_inside_the_picture(ax):
    explained = explanation_of([[0.0, 3.0], [5.0, 0.0]], classes=[0, 1])
    EvidenceDisplay.from_explanation(explained, ax=ax).figure_.canvas.draw()
    frame = ax.get_window_extent()
    for text in ax.texts:
        box = text.get_window_extent()
        assert frame.x0 <= box.x0 < box.x1 <= frame.x1
    nothing = explanation_of(np.zeros((2, 2)), classes=[0, 1])
    assert bars(EvidenceDisplay.from_explanation(nothing, ax=ax))[2] == [0, 0, 0]


def test_long_names_are_cut(ax):
    words = {"names": ["x" * 80], "values": [["y" * 80]]}
    explained = Explanation(weights=[[[0.0, 1.0]]], classes=[0, 1], **words)
    name = bars(EvidenceDisplay.from_explanation(explained, ax=ax))[0][0]
    assert len(name) < 70
    assert name.count("…") == 2


@pytest.mark.parametrize("piece", [0, 1, "age", "ldl", -1])
def test_the_line_is_the_weight_and_the_cutoff_where_it_changes_sides(ax, two, patients, piece):
    X, y = patients
    display = EvidenceDisplay.from_estimator(two, X, kind="weight", piece=piece, y=y, ax=ax)
    j = {"age": 0, "ldl": 1, -1: 1}.get(piece, piece)
    (line,) = display.lines_
    value, weight = line.get_data()
    signed = two.weights(X)[:, j, 1] - two.weights(X)[:, j, 0]
    np.testing.assert_allclose(np.interp(X.iloc[:, j], value, weight), signed, atol=1e-12)
    (cut,) = display.cutoff_lines_
    np.testing.assert_allclose(cut.get_xdata(), two.model_.cutoffs[j, 0])
    assert ax.get_xlabel() == ["age", "ldl"][j]
    assert ax.get_ylabel().startswith("← for ill")
    assert ax.get_ylabel().endswith("for well →")


def test_ticks_are_the_rows_second_class_above(ax, two, patients):
    X, y = patients
    display = EvidenceDisplay.from_estimator(two, X, kind="weight", piece="ldl", y=y, ax=ax)
    for label, ticks in zip(["ill", "well"], display.ticks_, strict=True):
        x, height = ticks.get_data()
        np.testing.assert_array_equal(x, X["ldl"][y == label])
        assert len(np.unique(height)) == len(height)
        assert (height < 0.05).all() if label == "ill" else (height > 0.95).all()
    cutoff = two.model_.cutoffs[1, 0]
    assert labels(ax) == ["weight", f"cut-off {cutoff:.4g}", "rows of ill", "rows of well"]
    low, high = ax.get_ylim()
    lines = display.view.weight
    assert low + 0.05 * (high - low) < lines.min()
    assert high - 0.05 * (high - low) > lines.max()


def test_without_labels_all_rows_are_below(ax, two, patients):
    display = EvidenceDisplay.from_estimator(two, patients[0], kind="weight", piece="ldl", ax=ax)
    (ticks,) = display.ticks_
    np.testing.assert_array_equal(ticks.get_xdata(), patients[0]["ldl"])
    assert (ticks.get_ydata() < 0.05).all()
    assert labels(ax)[-1] == "rows"


def test_of_more_classes_each_has_a_line(ax, three, fish):
    X, y = fish
    display = EvidenceDisplay.from_estimator(three, X, kind="weight", piece=2, y=y, ax=ax)
    assert [line.get_label() for line in display.lines_] == FISH.tolist()
    for k, line in enumerate(display.lines_):
        drawn = np.interp(X[:, 2], *line.get_data())
        np.testing.assert_allclose(drawn, three.weights(X)[:, 2, k], atol=1e-12)
        np.testing.assert_array_equal(display.ticks_[k].get_xdata(), X[y == FISH[k], 2])
    low, high = display.view.value[[0, -1]]
    shown = [cut for cut in three.model_.cutoffs[2] if low < cut < high]
    assert len(shown) >= 1
    np.testing.assert_allclose([cut.get_xdata()[0] for cut in display.cutoff_lines_], shown)
    assert labels(ax) == FISH.tolist()


def test_behind_transformers_the_value_is_what_enters_the_last_layer(ax, patients):
    X, y = patients
    scaled = EvidentialClassifier(make_pipeline(StandardScaler(), LogisticRegression())).fit(X, y)
    display = EvidenceDisplay.from_estimator(scaled, X, kind="weight", piece="age", ax=ax)
    np.testing.assert_array_equal(display.ticks_[0].get_xdata(), scaled.features(X)[:, 0])
    assert ax.get_xlabel() == "age (as it enters the last layer)"
    (cut,) = display.cutoff_lines_
    np.testing.assert_allclose(cut.get_xdata(), scaled.model_.cutoffs[0, 0])


def test_hidden_units_and_sparse_features(ax, fish):
    X, y = fish
    net = EvidentialClassifier(MLPClassifier((5,), random_state=0, max_iter=2000)).fit(X, y)
    display = EvidenceDisplay.from_estimator(net, X, kind="mass", piece=3, ax=ax)
    phi = net.features(X)[:, 3]
    drawn = np.interp(phi, display.view.value, display.view.mass[:, 0])
    expected = net.piece_mass(X, 3).mass[:, 0]
    np.testing.assert_allclose(drawn, expected, atol=1e-3)
    dense = EvidentialClassifier(LogisticRegression()).fit(X, y)
    sparse = EvidentialClassifier(LogisticRegression()).fit(csr_array(X), y)
    a = EvidenceDisplay.from_estimator(dense, X, kind="weight", piece=1, ax=ax).view
    b = EvidenceDisplay.from_estimator(sparse, csr_array(X), kind="weight", piece=1, ax=ax).view
    np.testing.assert_allclose(a.weight, b.weight, atol=1e-4)
    np.testing.assert_array_equal(a.points, b.points)


@pytest.mark.data
def test_figure_6_of_the_paper(ax):
    heart = load("saheart")
    X = pd.DataFrame(heart.X, columns=heart.feature_names)[["age", "ldl"]]
    clf = EvidentialClassifier(LogisticRegression(C=np.inf, tol=1e-8)).fit(X, heart.y)
    for piece, cutoff in [("age", 49.67), ("ldl", 6.868)]:
        display = EvidenceDisplay.from_estimator(clf, X, kind="weight", piece=piece, ax=ax)
        assert display.cutoff_lines_[0].get_xdata()[0] == pytest.approx(cutoff, abs=0.005)
        assert display.cutoff_lines_[0].get_label() == f"cut-off {cutoff}"


def test_masses_of_two_classes_are_one_less_the_exponential(ax, two, patients):
    display = EvidenceDisplay.from_estimator(two, patients[0], kind="mass", piece="age", ax=ax)
    assert labels(ax) == ["{ill}", "{well}", "{ill, well}"]
    value = display.view.value
    phi = np.column_stack([value, np.zeros(len(value))])
    against, for_it = two.model_.weights(phi)[:, 0].T
    drawn = [line.get_ydata() for line in display.lines_]
    np.testing.assert_allclose(drawn[0], 1 - np.exp(-against), atol=1e-12)
    np.testing.assert_allclose(drawn[1], 1 - np.exp(-for_it), atol=1e-12)
    np.testing.assert_allclose(drawn[2], np.exp(-against - for_it), atol=1e-12)
    assert display.lines_[2].get_linestyle() == ":"
    assert drawn[2].max() == pytest.approx(1)  # at the cut-off the piece has weight 0


def test_masses_of_three_classes_are_those_of_the_piece(ax, three, fish):
    X = fish[0]
    display = EvidenceDisplay.from_estimator(three, X, kind="mass", piece=0, ax=ax)
    names = ["{cod}", "{eel}", "{ray}", "{cod, eel}", "{cod, ray}", "{eel, ray}", "all"]
    assert labels(ax) == names
    np.testing.assert_allclose(display.view.mass.sum(axis=1), 1)
    batch = three.piece_mass(X, 0)
    for line, inside in zip(display.lines_, display.view.focal, strict=True):
        expected = batch.mass[:, (batch.focal == inside).all(axis=1)][:, 0]
        drawn = np.interp(X[:, 0], *line.get_data())
        np.testing.assert_allclose(drawn, expected, atol=1e-3)


def test_of_many_sets_the_smallest_are_joined(ax):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(100, 2)), rng.integers(4, size=100)
    X[:, 0] += y
    clf = EvidentialClassifier(LogisticRegression()).fit(X, y)
    display = EvidenceDisplay.from_estimator(clf, X, kind="mass", piece=0, ax=ax)
    view = display.view
    assert view.names[-1] == "the other 9"
    assert len(display.lines_) == 7
    np.testing.assert_allclose(view.mass.sum(axis=1), 1)
    phi = np.column_stack([view.value, np.zeros(len(view.value))])
    batch = clf.model_.piece_mass(phi, 0)
    top = batch.mass.max(axis=0)
    kept = [(batch.focal == inside).all(axis=1).argmax() for inside in view.focal[:-1]]
    assert set(kept) == set(np.argsort(-top)[:6])
    np.testing.assert_allclose(view.mass[:, :-1], batch.mass[:, kept])


@pytest.mark.parametrize("kind", ["weight", "mass"])
def test_groups_of_one_input_are_drawn_against_it(ax, splines, patients, kind):
    X = patients[0]
    display = EvidenceDisplay.from_estimator(splines, X, kind=kind, piece="ldl", ax=ax)
    view = display.view
    order = np.argsort(X["ldl"])
    np.testing.assert_array_equal(view.value, X["ldl"].to_numpy()[order])
    assert ax.get_xlabel() == "ldl"
    if kind == "mass":
        np.testing.assert_allclose(view.mass, splines.piece_mass(X, "ldl").mass[order], atol=1e-15)
        return
    weight = splines.weights(X)[order, 1]
    np.testing.assert_allclose(view.weight[:, 0], weight[:, 1] - weight[:, 0])
    sides = np.sign(view.weight[:, 0])
    changes = np.flatnonzero(sides[1:] != sides[:-1])
    assert len(changes) == len(display.cutoff_lines_) >= 1
    for cut, i in zip(view.cutoffs[0], changes, strict=True):
        assert view.value[i] <= cut <= view.value[i + 1]


def test_single_features_among_groups_are_drawn(ax, fish):
    X, y = fish
    grouped = EvidentialClassifier(LogisticRegression(), groups=["a", "b", "a", "c"]).fit(X, y)
    display = EvidenceDisplay.from_estimator(grouped, X, kind="weight", piece="c", ax=ax)
    drawn = np.interp(X[:, 3], *display.lines_[1].get_data())
    np.testing.assert_allclose(drawn, grouped.weights(X)[:, 2, 1], atol=1e-12)
    with pytest.raises(ValueError, match="'a' joins several features"):
        EvidenceDisplay.from_estimator(grouped, X, kind="mass", piece="a", ax=ax)


def test_a_group_needs_two_values(ax, splines, patients):
    with pytest.raises(ValueError, match="at least two"):
        EvidenceDisplay.from_estimator(splines, patients[0][:1], kind="weight", piece=0, ax=ax)


def test_options_reach_the_artists(ax, two, patients):
    X = patients[0]
    display = EvidenceDisplay.from_estimator(two, X[:1], ax=ax, height=0.3)
    assert display.bars_[0].get_height() == 0.3
    options = {"kind": "weight", "piece": 0, "linewidth": 4}
    assert EvidenceDisplay.from_estimator(two, X, ax=ax, **options).lines_[0].get_linewidth() == 4


def test_the_only_piece_need_not_be_named_and_one_row_gives_a_width(ax, patients):
    X, y = patients[0][["ldl"]], patients[1]
    clf = EvidentialClassifier(LogisticRegression()).fit(X, y)
    view = EvidenceDisplay.from_estimator(clf, X[:1], kind="weight", ax=ax).view
    np.testing.assert_allclose(view.value[[0, -1]], X["ldl"].iloc[0] + np.array([-0.5, 0.5]))
    assert ax.get_xlabel() == "ldl"


def test_new_axes_have_space_for_names_and_legends(two, patients):
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("Agg")
    fall = EvidenceDisplay.from_estimator(two, patients[0][:1])
    fall.figure_.canvas.draw()
    assert fall.ax_.get_tightbbox().x0 >= 0
    thirty = explanation_of(np.ones((30, 2)) * [0, 1], classes=[0, 1])
    many = EvidenceDisplay.from_explanation(thirty, max_pieces=30)
    assert many.figure_.get_figheight() > 2 * fall.figure_.get_figheight()
    line = EvidenceDisplay.from_estimator(two, patients[0], kind="weight", piece=0)
    line.figure_.canvas.draw()
    assert line.ax_.get_legend().get_window_extent().x1 <= line.figure_.bbox.x1
    plt.close("all")


def test_wrong_input_is_refused(ax, two, patients):
    X, y = patients
    draw = EvidenceDisplay.from_estimator
    with pytest.raises(ValueError, match="one row; got 200"):
        draw(two, X, ax=ax)
    with pytest.raises(ValueError, match="kind must be one of 'waterfall', 'weight', 'mass'"):
        draw(two, X, kind="bars", ax=ax)
    with pytest.raises(ValueError, match="leave piece out"):
        draw(two, X[:1], piece="age", ax=ax)
    with pytest.raises(ValueError, match=r"\('ill', 'well'\)\. Got 'dead'"):
        draw(two, X[:1], target="dead", ax=ax)
    with pytest.raises(ValueError, match="max_pieces must be a whole number above 0"):
        draw(two, X[:1], max_pieces=0, ax=ax)
    for piece in (None, 2, "sbp"):
        with pytest.raises(ValueError, match=rf"\('age', 'ldl'\)\. Got {piece!r}"):
            draw(two, X, kind="weight", piece=piece, ax=ax)
    with pytest.raises(ValueError, match="y has 3 rows but X has 200"):
        draw(two, X, kind="weight", piece="age", y=y[:3], ax=ax)
    with pytest.raises(ValueError, match="labels that classes does not list: 'dead'"):
        draw(two, X, kind="weight", piece="age", y=np.where(y == "ill", "dead", y), ax=ax)
    with pytest.raises(TypeError, match="LogisticRegression has no explain"):
        draw(LogisticRegression(), X[:1], ax=ax)
    with pytest.raises(TypeError, match="has no model_"):
        draw(EvidentialClassifier(LogisticRegression()), X[:1], ax=ax)
