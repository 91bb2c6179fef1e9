"""Internal and external calibration of nested dichotomies, and bounds of evidential nodes."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logsumexp
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.naive_bayes import GaussianNB, MultinomialNB

from dubito.calibration import (
    BetaCalibrator,
    EvidentialBinningCalibrator,
    EvidentialIsotonicCalibrator,
    EvidentialLogisticCalibrator,
    EvidentialMultinomialCalibrator,
    IsotonicCalibrator,
    PlattCalibrator,
    TemperatureCalibrator,
    VectorCalibrator,
)
from dubito.decision import interval_dominance, set_utility
from dubito.dichotomies import NestedDichotomyClassifier

from reference.dichotomies import (
    NestedDichotomy,
    RowRecorder,
    class_bounds,
    in_pairs,
    leaves,
    maximal,
    node_log_odds,
    nodes,
    tight_logistic,
)

TREE = ((0, (1, 2)), (3, (4, 5)))
EVIDENTIAL = [EvidentialLogisticCalibrator(), EvidentialIsotonicCalibrator()]
DIGITS, DIGIT = load_digits(return_X_y=True)
TRAIN, REST = np.arange(0, 1797, 2), np.arange(1, 1797, 2)


def identical_within_classes(seed=0, counts=(7, 5, 4, 2, 9, 6)):
    """Return rows that are identical within each class.

    The folds of a fit are then known although the order of rows within a class is random.
    """
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(len(counts)), counts)
    points = 1.5 * rng.normal(size=(len(counts), 4))
    return points[y], y, 2 * rng.normal(size=(40, 4))


def by_label(model, table):
    return dict(zip(model.classes_.tolist(), table.T, strict=True))


@pytest.fixture
def fitted_rows():
    RowRecorder.fitted_rows.clear()
    yield RowRecorder.fitted_rows
    RowRecorder.fitted_rows.clear()


def numbered_rows(n=90, n_classes=4, seed=0):
    """Return rows with their own number in the first column, and labels."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % n_classes)
    X = rng.normal(size=(n, 3)) + 1.2 * rng.normal(size=(n_classes, 3))[y]
    return np.column_stack([np.arange(n), X]), y


@pytest.mark.parametrize("n_folds", [2, 3, 5, 10])
@pytest.mark.parametrize(
    ("internal", "calibrator"),
    [
        ("platt", PlattCalibrator()),
        ("isotonic", IsotonicCalibrator()),
        (IsotonicCalibrator(smoothing=0.5), IsotonicCalibrator(smoothing=0.5)),
        (PlattCalibrator(ridge=1.0), PlattCalibrator(ridge=1.0)),
        (BetaCalibrator(input="logits"), BetaCalibrator(input="logits")),
        *((calibrator, calibrator) for calibrator in EVIDENTIAL),
    ],
    ids=str,
)
@pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])
def test_nodes_are_calibrated_on_out_of_fold_scores(internal, calibrator, n_folds, weighted):
    X, y, new = identical_within_classes()
    weight = np.linspace(0.5, 2, 6)[y] if weighted else None
    model = NestedDichotomyClassifier(structure=TREE, internal=internal, cv=n_folds)
    model.fit(X, y, sample_weight=weight)
    by_hand = NestedDichotomy(TREE, tight_logistic(), calibrator=calibrator, n_folds=n_folds)
    by_hand.fit(X, y, weight)
    for rows in (X, new):
        wanted = by_hand.proba(rows)
        for label, found in by_label(model, model.predict_proba(rows)).items():
            np.testing.assert_allclose(found, wanted[label], atol=2e-5)


@pytest.mark.parametrize("n_folds", [2, 3, 4])
def test_folds_are_balanced_on_every_side_of_every_node(fitted_rows, n_folds):
    X, y = numbered_rows()
    NestedDichotomyClassifier(
        RowRecorder(), structure=((0, 1), (2, 3)), internal="platt", cv=n_folds, random_state=0
    ).fit(X, y)
    seen = list(fitted_rows)
    assert len(seen) == 3 * (1 + n_folds)
    for _, left, right in nodes(((0, 1), (2, 3))):
        whole = frozenset(np.flatnonzero(np.isin(y, left + right)).tolist())
        labels = set(left + right)
        own = [rows for rows in seen if {int(y[i]) for i in rows} == labels]
        left_out = [whole - rows for rows in own if rows != whole]
        assert own.count(whole) == 1
        assert len(left_out) == n_folds
        assert sorted(i for rows in left_out for i in rows) == sorted(whole)
        for side in (left, right):
            sizes = [sum(int(y[i]) in side for i in rows) for rows in left_out]
            assert max(sizes) - min(sizes) <= 1


def test_node_maps_equal_fitted_calibrators(fitted_rows):
    X, y = numbered_rows()
    tree = ((0, 1), (2, 3))
    model = NestedDichotomyClassifier(
        RowRecorder(), structure=tree, internal=PlattCalibrator(), random_state=0
    ).fit(X, y)
    log_proba = by_label(model, model.predict_log_proba(X))
    found = node_log_odds(tree, log_proba)
    seen = list(fitted_rows)
    for name, left, right in nodes(tree):
        whole = np.flatnonzero(np.isin(y, left + right))
        event = np.isin(y[whole], right)
        scores = np.full(len(y), np.nan)
        for rows in seen:
            out = np.setdiff1d(whole, list(rows))
            if {int(y[i]) for i in rows} == {*left, *right} and len(out):
                kept = np.setdiff1d(whole, out)
                part = tight_logistic().fit(X[kept, 1:], np.isin(y[kept], right))
                scores[out] = part.decision_function(X[out, 1:])
        calibrator = PlattCalibrator().fit(scores[whole], event)
        node = tight_logistic().fit(X[whole, 1:], event)
        proba = calibrator.predict_proba(node.decision_function(X[:, 1:]))
        np.testing.assert_allclose(
            found[name], np.log(proba[:, 1] / proba[:, 0]), rtol=1e-5, atol=1e-5
        )


class RefittedBayes(GaussianNB):
    """Naive Bayes that is refitted at every node: the fast fit is for the class itself only."""


class RefittedCounts(MultinomialNB):
    """Multinomial naive Bayes that is refitted at every node."""


class RefittedLogistic(LogisticRegression):
    """Logistic regression that is refitted at every node."""


@pytest.mark.parametrize(
    ("fast", "refitted"),
    [
        (GaussianNB(var_smoothing=1), RefittedBayes(var_smoothing=1)),
        (MultinomialNB(alpha=0.5), RefittedCounts(alpha=0.5)),
        (LogisticRegression(C=0.01), RefittedLogistic(C=0.01, tol=1e-10, max_iter=10_000)),
    ],
    ids=["bayes", "counts", "logistic"],
)
@pytest.mark.parametrize("internal", ["platt", "isotonic", EvidentialLogisticCalibrator()], ids=str)
def test_fast_fits_equal_refits(fast, refitted, internal):
    # Small pixel values: no probability of naive Bayes rounds to 0 or 1.
    rows, labels = DIGITS[:200, 2:20] / 8, DIGIT[:200]
    options = {"internal": internal, "external": None, "random_state": 5, "structure": "random"}
    first = NestedDichotomyClassifier(fast, **options).fit(rows, labels)
    second = NestedDichotomyClassifier(refitted, **options).fit(rows, labels)
    assert first.tree_ == second.tree_
    np.testing.assert_allclose(first.predict_proba(rows), second.predict_proba(rows), atol=1e-4)


def test_nodes_with_a_side_of_one_row_are_not_calibrated():
    X, y, new = identical_within_classes(counts=(7, 1, 4, 1, 1, 6))
    calibrator = EvidentialLogisticCalibrator()
    for internal, by in (("platt", PlattCalibrator()), (calibrator, calibrator)):
        model = NestedDichotomyClassifier(structure=TREE, internal=internal).fit(X, y)
        by_hand = NestedDichotomy(TREE, tight_logistic(), calibrator=by).fit(X, y)
        assert set(by_hand.maps) == {"", "L"}
        for label, found in by_label(model, model.predict_proba(new)).items():
            np.testing.assert_allclose(found, by_hand.proba(new)[label], atol=2e-5)
    bounds = model.predict_bounds(new)
    np.testing.assert_array_equal(bounds.lower[:, 1:6], 0.0)  # below nodes with bounds 0 and 1
    assert (bounds.lower[:, 0] > 0).all()
    wanted = class_bounds(by_hand.pair, by_hand.intervals(new))
    np.testing.assert_allclose(bounds.upper[:, 5], wanted[5][1], atol=2e-5)


def test_no_class_becomes_impossible():
    rows = np.array([-3.0, -2.0, -1.0, 1.0, 2.0, 3.0])[:, None]
    sure = NestedDichotomyClassifier(internal=IsotonicCalibrator(smoothing=0), structure=(0, 1))
    proba = sure.fit(rows, [0, 0, 0, 1, 1, 1]).predict_proba(rows)
    np.testing.assert_allclose(proba.min(axis=1), 1 / (2 * (6 + 1)))
    digits = NestedDichotomyClassifier(
        GaussianNB(), internal=IsotonicCalibrator(smoothing=0), random_state=0
    ).fit(DIGITS[TRAIN], DIGIT[TRAIN])
    assert (digits.predict_proba(DIGITS[REST]) > 0).all()
    assert log_loss(DIGIT[REST], digits.predict_proba(DIGITS[REST])) < 2


@pytest.mark.parametrize("size", [0.1, 0.3])
def test_external_calibration_uses_held_out_rows(fitted_rows, size):
    X, y = numbered_rows(200, 5)
    tree = ((0, 1), (2, (3, 4)))
    model = NestedDichotomyClassifier(
        RowRecorder(), structure=tree, external="vector", holdout_size=size, random_state=0
    ).fit(X, y)
    used = np.array(sorted(max(fitted_rows, key=len)))
    held = np.setdiff1d(np.arange(len(y)), used)
    fraction = np.bincount(y[held], minlength=5) / np.bincount(y)
    assert (np.abs(fraction - size) <= 1 / np.bincount(y)).all()
    assert len(held) == pytest.approx(size * len(y), abs=1)
    bare = NestedDichotomyClassifier(RowRecorder(), structure=tree, internal=None).fit(
        X[used], y[used]
    )
    calibrator = VectorCalibrator(input="logits").fit(bare.predict_log_proba(X[held]), y[held])
    wanted = calibrator.predict_proba(bare.predict_log_proba(X))
    np.testing.assert_allclose(model.predict_proba(X), wanted, atol=1e-6)
    np.testing.assert_allclose(model.predict_log_proba(X), np.log(wanted), atol=1e-5)


@pytest.mark.parametrize("external", [VectorCalibrator(), TemperatureCalibrator()], ids=str)
def test_external_calibrators(external):
    model = NestedDichotomyClassifier(external=external, random_state=0).fit(DIGITS, DIGIT)
    assert type(model.external_) is type(external)
    np.testing.assert_allclose(model.predict_proba(DIGITS).sum(axis=1), 1.0)
    assert model.score(DIGITS, DIGIT) > 0.9


def test_classes_without_held_out_rows_have_positive_probability():
    rng = np.random.default_rng(1)
    y = np.repeat(np.arange(30), rng.integers(1, 4, size=30))
    X = rng.normal(size=(len(y), 5)) + 3 * rng.normal(size=(30, 5))[y]
    for internal in (None, "platt", "isotonic"):
        for size in (0.05, 0.5):
            model = NestedDichotomyClassifier(
                internal=internal, external="vector", holdout_size=size, random_state=0
            ).fit(X, y)
            assert model.tree_.n_classes == 30
            log_proba = model.predict_log_proba(X)
            assert np.isfinite(log_proba).all()
            np.testing.assert_allclose(logsumexp(log_proba, axis=1), 0, atol=1e-9)


def test_calibration_improves_overconfident_nodes():
    """Leathart et al. 2019, tables 4 and 5: every scheme beats plain naive Bayes."""
    loss = {}
    for internal in (None, "platt", "isotonic"):
        for external in (None, "vector"):
            model = NestedDichotomyClassifier(
                GaussianNB(),
                structure="random",
                internal=internal,
                external=external,
                random_state=2,
            ).fit(DIGITS[TRAIN], DIGIT[TRAIN])
            proba = np.maximum(model.predict_proba(DIGITS[REST]), 1e-300)
            loss[internal, external] = log_loss(DIGIT[REST], proba)
    worst = loss.pop((None, None))
    assert all(better < 0.8 * worst for better in loss.values())
    assert loss["isotonic", "vector"] < loss[None, "vector"]


@pytest.mark.parametrize(
    "internal", [*EVIDENTIAL, EvidentialLogisticCalibrator(targets="smoothed")], ids=str
)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_bounds_equal_enumeration_of_interval_ends(internal, seed):
    X, y, new = identical_within_classes(seed)
    model = NestedDichotomyClassifier(structure=TREE, internal=internal).fit(X, y)
    by_hand = NestedDichotomy(TREE, tight_logistic(), calibrator=internal).fit(X, y)
    intervals = by_hand.intervals(new)
    wanted, kept = (f(in_pairs(TREE), intervals) for f in (class_bounds, maximal))
    bounds, sets = model.predict_bounds(new), model.predict_set(new, "maximality")
    for label in leaves(in_pairs(TREE)):
        np.testing.assert_allclose(bounds.lower[:, label], wanted[label][0], atol=2e-5)
        np.testing.assert_allclose(bounds.upper[:, label], wanted[label][1], atol=2e-5)
        # If a node above has a bound of 0, both labels are impossible at some interval ends.
        clear = np.all([interval[0] > 1e-9 for interval in intervals.values()], axis=0)
        clear &= np.all([interval[1] < 1 - 1e-9 for interval in intervals.values()], axis=0)
        np.testing.assert_array_equal(sets[clear, label], kept[label][clear])
    if (
        getattr(internal, "targets", None) == "smoothed"
    ):  # with light targets bounds are 0 or 1 more often
        assert clear.mean() > 0.5


@pytest.fixture(scope="module", params=[*EVIDENTIAL, EvidentialBinningCalibrator()], ids=str)
def cautious(request):
    model = NestedDichotomyClassifier(internal=request.param, random_state=0)
    return model.fit(DIGITS[TRAIN[:400]], DIGIT[TRAIN[:400]])


def test_probabilities_lie_within_bounds(cautious):
    rows = DIGITS[REST[:200]]
    proba, bounds = cautious.predict_proba(rows), cautious.predict_bounds(rows)
    assert (bounds.lower <= proba + 1e-12).all()
    assert (proba <= bounds.upper + 1e-12).all()
    assert bounds.width.max() > 0.01
    assert bounds.lower.shape == (200, 10)


def test_sets(cautious):
    rows = DIGITS[REST[:200]]
    bounds, sets = cautious.predict_bounds(rows), cautious.predict_set(rows, "maximality")
    best = cautious.predict_proba(rows).argmax(axis=1)
    assert sets[np.arange(200), best].all()
    by_intervals = interval_dominance(bounds)
    assert (sets <= by_intervals).all()
    np.testing.assert_array_equal(cautious.predict_set(rows), by_intervals)
    np.testing.assert_array_equal(
        cautious.predict_set(rows, rule="interval_dominance"), by_intervals
    )
    np.testing.assert_array_equal(
        cautious.predict_set(rows, rule="set_utility", utility="u80"), set_utility(bounds, "u80")
    )
    np.testing.assert_array_equal(cautious.predict_set(rows, rule=interval_dominance), by_intervals)
    with pytest.raises(ValueError, match="rule"):
        cautious.predict_set(rows, rule="majority")


def test_bounds_of_a_row_do_not_depend_on_others(cautious):
    rows = DIGITS[REST[:60]]
    bounds, sets = cautious.predict_bounds(rows), cautious.predict_set(rows)
    for i in (0, 31, 59):
        alone = cautious.predict_bounds(rows[i : i + 1])
        np.testing.assert_array_equal(alone.lower[0], bounds.lower[i])
        np.testing.assert_array_equal(alone.upper[0], bounds.upper[i])
        np.testing.assert_array_equal(cautious.predict_set(rows[i : i + 1])[0], sets[i])


def test_more_rows_narrow_the_bounds():
    few, many = (
        NestedDichotomyClassifier(
            structure=tuple(range(10)), internal=EvidentialLogisticCalibrator(), random_state=0
        ).fit(DIGITS[TRAIN[:n]], DIGIT[TRAIN[:n]])
        for n in (100, 890)
    )
    rows = DIGITS[REST]
    assert many.predict_bounds(rows).width.mean() < 0.7 * few.predict_bounds(rows).width.mean()


def test_bounds_of_an_external_calibrator():
    model = NestedDichotomyClassifier(
        external=EvidentialMultinomialCalibrator(), holdout_size=0.2, random_state=0
    ).fit(DIGITS[TRAIN], DIGIT[TRAIN])
    rows = DIGITS[REST[:50]]
    bounds, proba = model.predict_bounds(rows), model.predict_proba(rows)
    assert (bounds.lower <= proba + 1e-9).all()
    assert (proba <= bounds.upper + 1e-9).all()
    assert bounds.width.max() > 0.01
    assert model.predict_set(rows, rule="interval_dominance").any(axis=1).all()


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"internal": None}, "internal"),
        ({"internal": "platt"}, "internal"),
        ({"internal": IsotonicCalibrator()}, "internal"),
    ],
    ids=str,
)
@pytest.mark.parametrize("method", ["predict_bounds", "predict_set"])
def test_methods_of_bounds_are_absent_without_bounds(options, word, method):
    model = NestedDichotomyClassifier(**options)
    assert not hasattr(model, method)
    with pytest.raises(AttributeError) as caught:
        getattr(model, method)
    message = f"{caught.value} {caught.value.__cause__}"
    assert word in message
    assert "vidential" in message
