"""Bounds of nested dichotomies at a confidence level: by definition, and by simulation."""

import pickle

import dask.array as dask_array
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.preprocessing import StandardScaler

from dubito.calibration import (
    EvidentialBinningCalibrator,
    EvidentialIsotonicCalibrator,
    EvidentialLogisticCalibrator,
)
from dubito.datasets import make_many_classes
from dubito.decision import interval_dominance
from dubito.dichotomies import NestedDichotomyClassifier, NestedDichotomyEnsemble
from dubito.dichotomies.distributed import score_blocks
from dubito.pipeline import CautiousPipeline
from dubito.saving import load, save

from reference.packed_nodes import QUERIES, Packed, gaussian_nodes

EVIDENTIAL = [
    EvidentialLogisticCalibrator(targets="light"),
    EvidentialLogisticCalibrator(targets="smoothed"),
    EvidentialIsotonicCalibrator(),
    EvidentialIsotonicCalibrator(exact=True),
    EvidentialBinningCalibrator(n_bins=3),
]
SIDE = st.lists(st.tuples(st.integers(-8, 8), st.integers(1, 3)), min_size=2, max_size=12)
OVERLAPPING = [([(-8, 1), (3, 2)], [(-5, 1), (8, 1), (7, 1)])]
CONSTANT = [([(1, 1), (1, 2)], [(1, 1), (1, 1), (1, 3)])]

X, Y = make_many_classes(600, n_classes=9, n_features=6, random_state=0)


def widened(maps, queries, level):
    """Return the bounds of nodes, widened to contain the estimate as those of a calibrator are."""
    lower, upper = maps.level_bounds(queries, level)
    proba = expit(maps.log_odds(queries))
    return np.minimum(lower, proba), np.maximum(upper, proba)


@pytest.mark.parametrize("calibrator", EVIDENTIAL, ids=repr)
@pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
def test_nodes_have_the_bounds_of_a_calibrator(calibrator, level):
    packed = gaussian_nodes([20, 60, 300], gap=0.6)
    lower, upper = widened(packed.fit(calibrator), packed.queries, level)
    for t, one in enumerate(packed.by_hand(calibrator)):
        bounds = one.predict_bounds(QUERIES, level=level)
        np.testing.assert_allclose(lower[:, t], bounds.lower[:, 1], atol=1e-7)
        np.testing.assert_allclose(upper[:, t], bounds.upper[:, 1], atol=1e-7)
        assert (bounds.width[3:9, 1] > 0.01).all()


@pytest.mark.filterwarnings(
    "ignore::dubito.calibration.MisfitWarning"
)  # rows do not follow the model
@pytest.mark.parametrize("calibrator", EVIDENTIAL, ids=repr)
@settings(max_examples=10)
@given(nodes=st.lists(st.tuples(SIDE, SIDE), min_size=1, max_size=2))
@example(nodes=OVERLAPPING)
@example(nodes=CONSTANT)
@example(nodes=[([(-8, 1), (-6, 2)], [(5, 1), (8, 1), (7, 1)])])
@example(nodes=[([(5, 1), (8, 1)], [(-8, 1), (-6, 2)])])
def test_nodes_of_few_rows_have_no_narrower_bounds_than_a_calibrator(calibrator, nodes):
    # At the rows next to a threshold that separates the sides the end of a cut jumps; a table has
    # the wider bound there.
    packed = Packed(nodes)
    lower, upper = widened(packed.fit(calibrator), packed.queries, 0.9)
    for t, one in enumerate(packed.by_hand(calibrator)):
        bounds = one.predict_bounds(QUERIES, level=0.9)
        assert (lower[:, t] <= bounds.lower[:, 1] + 1e-6).all()
        assert (upper[:, t] >= bounds.upper[:, 1] - 1e-6).all()
        assert np.median(np.abs(lower[:, t] - bounds.lower[:, 1])) < 1e-6
        assert np.median(np.abs(upper[:, t] - bounds.upper[:, 1])) < 1e-6


@pytest.mark.parametrize("calibrator", EVIDENTIAL, ids=repr)
def test_nodes_without_scores_have_bounds_0_and_1(calibrator):
    packed = gaussian_nodes([6, 1, 9])
    packed.out_of_fold[packed.start[1] : packed.start[2]] = np.nan
    extreme = np.array([-np.inf, -1e308, -800.0, 0.0, 800.0, 1e308, np.inf])
    lower, upper = packed.fit(calibrator).level_bounds(np.repeat(extreme[:, None], 3, axis=1), 0.9)
    assert (lower[:, 1] == 0).all()
    assert (upper[:, 1] == 1).all()
    assert ((lower >= 0) & (lower <= upper) & (upper <= 1)).all()


@pytest.fixture(scope="module", params=EVIDENTIAL, ids=repr)
def tree(request):
    return NestedDichotomyClassifier(internal=request.param, random_state=0).fit(X[:400], Y[:400])


def test_bounds_of_classes_are_products_along_the_path(tree):
    rows = X[400:440]
    maps, level = tree.internal_, 1 - (1 - 0.8) / tree.tree_.depth
    scores = tree._tree_model.nodes.scores(rows)
    lower, upper = widened(maps, scores, level)
    bounds = tree.predict_bounds(rows, level=0.8)
    for column, label in enumerate(tree.classes_.tolist()):
        low, high = np.ones(len(rows)), np.ones(len(rows))
        for node, side in tree.tree_.path(label):
            low *= lower[:, node] if side else 1 - upper[:, node]
            high *= upper[:, node] if side else 1 - lower[:, node]
        np.testing.assert_allclose(bounds.lower[:, column], low, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(bounds.upper[:, column], high, rtol=1e-9, atol=1e-12)
    assert bounds.level == 0.8


def test_bounds_include_the_probability_and_widen_with_the_level(tree):
    rows = X[400:]
    proba, inner = tree.predict_proba(rows), None
    for level in (0.5, 0.8, 0.95):
        bounds = tree.predict_bounds(rows, level=level)
        assert (bounds.lower <= proba + 1e-12).all()
        assert (proba <= bounds.upper + 1e-12).all()
        if inner is not None:
            assert (bounds.lower <= inner.lower + 1e-9).all()
            assert (bounds.upper >= inner.upper - 1e-9).all()
        inner = bounds


def test_sets_use_the_level(tree):
    rows = X[400:]
    by_bounds = tree.predict_set(rows, "interval_dominance", level=0.9)
    bounds = tree.predict_bounds(rows, level=0.9)
    np.testing.assert_array_equal(by_bounds, interval_dominance(bounds))
    np.testing.assert_array_equal(tree.predict_set(rows, level=0.9), by_bounds)
    in_tree = tree.predict_set(rows, "maximality", level=0.9)
    assert (in_tree <= by_bounds).all()
    assert (tree.predict_set(rows, "maximality", level=0.5) <= in_tree).all()
    assert in_tree.any(axis=1).all()
    with pytest.raises(ValueError, match="level must be None"):
        tree.predict_set(rows, level=1.0)


def test_single_rows_and_copies_have_the_same_bounds(tree):
    rows = X[400:430]
    bounds = tree.predict_bounds(rows, level=0.9)
    np.testing.assert_allclose(tree.predict_bounds(rows[7:8], level=0.9).lower, bounds.lower[7:8])
    copy = pickle.loads(pickle.dumps(tree))  # noqa: S301 - our own
    np.testing.assert_array_equal(copy.predict_bounds(rows, level=0.9).upper, bounds.upper)


def test_a_saved_tree_has_the_same_bounds(tree, tmp_path):
    bounds = tree.predict_bounds(X[:20], level=0.9)
    save(tree, tmp_path / "tree.skops")
    again = load(tmp_path / "tree.skops").model.predict_bounds(X[:20], level=0.9)
    np.testing.assert_array_equal(again.lower, bounds.lower)
    np.testing.assert_array_equal(again.upper, bounds.upper)


def test_blocks_of_rows_use_the_level(tree):
    rows = dask_array.from_array(X[:40], chunks=(15, X.shape[1]))
    lower, _ = score_blocks(tree, rows, method="predict_bounds", level=0.9)
    np.testing.assert_allclose(lower.compute(), tree.predict_bounds(X[:40], level=0.9).lower)
    sets = score_blocks(tree, rows, method="predict_set", level=0.9)
    np.testing.assert_array_equal(sets.compute(), tree.predict_set(X[:40], level=0.9))


def test_bounds_at_a_level_are_those_of_the_external_calibrator():
    model = NestedDichotomyClassifier(
        external=EvidentialIsotonicCalibrator(), holdout_size=0.3, random_state=0
    ).fit(X, Y)
    bounds = model.predict_bounds(X[:20], level=0.9)
    scores = np.maximum(model._tree_model.log_proba(X[:20]), np.log(1e-16))
    expected = model.external_.predict_bounds(scores, level=0.9)
    np.testing.assert_array_equal(bounds.lower, expected.lower)
    assert bounds.level == 0.9


def test_trees_of_an_ensemble_use_the_bonferroni_level():
    ensemble = NestedDichotomyEnsemble(
        NestedDichotomyClassifier(internal=EvidentialBinningCalibrator(), structure="random"),
        n_estimators=3,
        pooling="arithmetic",
        external=None,
        random_state=0,
    ).fit(X, Y)
    bounds = ensemble.predict_bounds(X[:30], level=0.7)
    each = [tree.predict_bounds(X[:30], level=0.9) for tree in ensemble.estimators_]
    np.testing.assert_allclose(bounds.lower, np.mean([one.lower for one in each], axis=0))
    np.testing.assert_allclose(bounds.upper, np.mean([one.upper for one in each], axis=0))
    proba = ensemble.predict_proba(X[:30])
    assert (bounds.lower <= proba + 1e-12).all()
    assert (proba <= bounds.upper + 1e-12).all()


def test_a_pipeline_uses_the_level():
    internal = EvidentialBinningCalibrator()
    alone = NestedDichotomyClassifier(internal=internal, random_state=0)
    piped = CautiousPipeline([("scale", StandardScaler()), ("model", alone)]).fit(X, Y)
    scaled = StandardScaler().fit_transform(X)
    expected = alone.fit(scaled, Y).predict_bounds(scaled, level=0.9)
    got = piped.predict_bounds(X, level=0.9)
    np.testing.assert_allclose(got.lower, expected.lower)
    assert got.level == 0.9
    np.testing.assert_array_equal(
        piped.predict_set(X, level=0.9), alone.predict_set(scaled, level=0.9)
    )


class Given(ClassifierMixin, BaseEstimator):
    """A node model whose log-odds are the first feature: it has no estimation error."""

    def fit(self, X, y):
        self.classes_, self.n_features_in_ = np.unique(y), X.shape[1]
        return self

    def decision_function(self, X):
        return X[:, 0]

    def predict(self, X):
        return self.classes_[(X[:, 0] > 0).astype(int)]


#: Slope and intercept of the log-odds of the right side at each node of a tree over six classes.
TREE = (((0, 1), 2), (3, (4, 5)))
LINES = {
    "root": (1.5, 0.2),
    "left": (-1.0, -0.3),
    "01": (2.0, 1.0),
    "right": (0.8, -0.5),
    "45": (-2.5, 1.5),
}


def true_proba(x, rising):
    """Return P(k | x), (n, 6), if the sides of every node are logistic."""
    lines = {name: (abs(a) if rising else a, b) for name, (a, b) in LINES.items()}
    q = {name: expit(slope * x + intercept) for name, (slope, intercept) in lines.items()}
    left, right = 1 - q["root"], q["root"]
    return np.column_stack(
        [
            left * (1 - q["left"]) * (1 - q["01"]),
            left * (1 - q["left"]) * q["01"],
            left * q["left"],
            right * (1 - q["right"]),
            right * q["right"] * (1 - q["45"]),
            right * q["right"] * q["45"],
        ]
    )


@pytest.mark.parametrize(
    ("calibrator", "n"),
    [
        (EvidentialLogisticCalibrator(), 60),
        (EvidentialLogisticCalibrator(), 250),
        (EvidentialIsotonicCalibrator(exact=True), 250),
    ],
    ids=str,
)
def test_frequency_with_which_bounds_include_the_true_probability(calibrator, n):
    rng = np.random.default_rng(5)
    rising = isinstance(calibrator, EvidentialIsotonicCalibrator)
    model = NestedDichotomyClassifier(Given(), structure=TREE, internal=calibrator, random_state=0)
    inside = []
    for _ in range(25):
        x = rng.normal(size=(n + 20, 1))
        truth = true_proba(x[:, 0], rising)
        y = (truth.cumsum(axis=1)[:, :5] < rng.uniform(size=(n + 20, 1))).sum(axis=1)
        if len(np.unique(y[:n])) < 6:
            continue
        lower, upper = model.fit(x[:n], y[:n]).predict_bounds(x[n:], level=0.9)
        inside.append(((lower <= truth[n:] + 1e-9) & (truth[n:] <= upper + 1e-9)).mean())
    assert len(inside) >= 20
    # Up to three nodes, each at the level 1 - 0.1 / 3: at least 0.9 together.
    assert np.mean(inside) >= 0.87
