"""What all metrics have in common: weights, row order, containers, errors."""

import math
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dubito.metrics import (
    aurc,
    brier_decomposition,
    classwise_calibration_error,
    coverage,
    discounted_accuracy,
    error_reject_curve,
    expected_calibration_error,
    mean_set_size,
    smooth_calibration_error,
    u65,
    u80,
    utility_discounted_accuracy,
)

FORECAST_METRICS = {
    "ece": expected_calibration_error,
    "ece-quantile": partial(expected_calibration_error, strategy="quantile", n_bins=4),
    "classwise": classwise_calibration_error,
    "classwise-quantile": partial(classwise_calibration_error, strategy="quantile", n_bins=3),
    "smooth": smooth_calibration_error,
    "brier": brier_decomposition,
    "brier-quantile": partial(brier_decomposition, strategy="quantile", n_bins=3),
}
SET_METRICS = {
    "uda": partial(utility_discounted_accuracy, alpha=1.3),
    "u65": u65,
    "u80": u80,
    "discounted": discounted_accuracy,
    "coverage": coverage,
}
RANKING_METRICS = {"curve": error_reject_curve, "aurc": aurc}

forecast_metrics = pytest.mark.parametrize(
    "metric", FORECAST_METRICS.values(), ids=FORECAST_METRICS
)
set_metrics = pytest.mark.parametrize("metric", SET_METRICS.values(), ids=SET_METRICS)
ranking_metrics = pytest.mark.parametrize("metric", RANKING_METRICS.values(), ids=RANKING_METRICS)
quick = settings(deadline=None, max_examples=40)


@st.composite
def problems(draw, *, min_classes=2):
    """Labels, forecasts and weights; coarse grids and whole weights make ties and edges common."""
    n = draw(st.integers(1, 10))
    k = draw(st.integers(min_classes, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    grain = draw(st.sampled_from([2, 5, 1000]))
    counts = rng.integers(0, grain, (n, k)) + np.eye(k, dtype=int)[rng.integers(0, k, n)]
    weight = rng.integers(0, 4, n)
    weight[rng.integers(n)] = 2
    return {
        "y": rng.integers(0, k, n),
        "proba": counts / counts.sum(axis=1, keepdims=True),
        "weight": weight,
        "rng": rng,
        "classes": np.arange(k),
    }


def assert_same(actual, expected):
    for one, other in zip(np.atleast_1d(actual), np.atleast_1d(expected), strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-12)


def scored_inputs(problem):
    """Sets, predictions and confidences for the same rows."""
    rng, proba = problem["rng"], problem["proba"]
    sets = proba >= rng.random((len(proba), 1))
    return sets, proba.argmax(axis=1), proba.max(axis=1)


@forecast_metrics
@given(problem=problems())
@quick
def test_weights_are_repetitions_of_forecasts(metric, problem):
    y, proba, weight = problem["y"], problem["proba"], problem["weight"]
    rows = np.repeat(np.arange(len(y)), weight)
    score = partial(metric, classes=problem["classes"])
    assert_same(score(y, proba, sample_weight=weight), score(y[rows], proba[rows]))


@forecast_metrics
@given(problem=problems(), unit=st.sampled_from([0.1, 1 / 3, 1e6]))
@quick
def test_the_unit_of_weights_is_immaterial(metric, problem, unit):
    # Tenths are inexact in binary: their sums must not push a row over the edge of a bin.
    y, proba, weight = problem["y"], problem["proba"], problem["weight"]
    score = partial(metric, classes=problem["classes"])
    scaled = score(y, proba, sample_weight=weight * unit)
    assert_same(scaled, score(y, proba, sample_weight=weight))


@set_metrics
@given(problem=problems())
@quick
def test_weights_are_repetitions_of_sets(metric, problem):
    y, weight = problem["y"], problem["weight"]
    sets, _, _ = scored_inputs(problem)
    rows = np.repeat(np.arange(len(y)), weight)
    score = partial(metric, classes=problem["classes"])
    assert_same(score(y, sets, sample_weight=weight), score(y[rows], sets[rows]))
    assert_same(mean_set_size(sets, sample_weight=weight), mean_set_size(sets[rows]))


@ranking_metrics
@given(problem=problems())
@quick
def test_weights_are_repetitions_of_ranked_rows(metric, problem):
    y, weight = problem["y"], problem["weight"]
    _, y_pred, confidence = scored_inputs(problem)
    rows = np.repeat(np.arange(len(y)), weight)
    repeated = metric(y[rows], y_pred[rows], confidence[rows])
    assert_same(metric(y, y_pred, confidence, sample_weight=weight), repeated)


@given(problem=problems())
@quick
def test_the_order_of_rows_is_immaterial(problem):
    y, proba, weight, classes = (problem[key] for key in ("y", "proba", "weight", "classes"))
    sets, y_pred, confidence = scored_inputs(problem)
    order = problem["rng"].permutation(len(y))
    moved = {"sample_weight": weight[order]}
    for metric in FORECAST_METRICS.values():
        there = metric(y[order], proba[order], classes=classes, **moved)
        assert_same(metric(y, proba, classes=classes, sample_weight=weight), there)
    for metric in SET_METRICS.values():
        there = metric(y[order], sets[order], classes=classes, **moved)
        assert_same(metric(y, sets, classes=classes, sample_weight=weight), there)
    for metric in RANKING_METRICS.values():
        there = metric(y[order], y_pred[order], confidence[order], **moved)
        assert_same(metric(y, y_pred, confidence, sample_weight=weight), there)


@given(seed=st.integers(0, 2**32 - 1), k=st.integers(2, 6))
@quick
def test_the_order_of_classes_is_immaterial(seed, k):
    rng = np.random.default_rng(seed)
    proba = rng.dirichlet(np.ones(k), 20)
    names = np.array([f"class {j}" for j in range(k)])
    y = names[rng.integers(0, k, 20)]
    sets = proba > 1 / k
    order = rng.permutation(k)
    for metric in FORECAST_METRICS.values():
        there = metric(y, proba[:, order], classes=names[order])
        assert_same(metric(y, proba, classes=names), there)
    for metric in SET_METRICS.values():
        there = metric(y, sets[:, order], classes=names[order])
        assert_same(metric(y, sets, classes=names), there)


@given(problem=problems())
@quick
def test_scores_lie_between_zero_and_one(problem):
    y, proba, classes = problem["y"], problem["proba"], problem["classes"]
    sets, y_pred, confidence = scored_inputs(problem)
    scores = [m(y, sets, classes=classes) for m in SET_METRICS.values()]
    scores += [aurc(y, y_pred, confidence)]
    scores += [
        metric(y, proba, classes=classes)
        for name, metric in FORECAST_METRICS.items()
        if not name.startswith("brier")
    ]
    assert all(type(score) is float for score in scores)
    assert all(-1e-12 <= score <= 1 + 1e-12 for score in scores)


WORDS = ["cat", "dog", "cat", "eel", "dog", "eel", "cat"]
PROBA = np.random.default_rng(5).dirichlet(np.ones(3), 7)
ODD_INDEX = [9, 3, 3, 1, 0, 7, 5]


def read_only(array):
    array = np.array(array)
    array.flags.writeable = False
    return array


CONTAINERS = {
    "lists": (list, np.ndarray.tolist),
    "read-only": (read_only, read_only),
    "objects": (partial(np.array, dtype=object), read_only),
    "pandas": (
        partial(pd.Series, index=ODD_INDEX),
        lambda a: pd.DataFrame(a, index=range(1, 8), columns=list("abc")),
    ),
    "pandas-categories": (partial(pd.Series, dtype="category"), pd.DataFrame),
    "polars": (pl.Series, lambda a: pl.DataFrame(a, schema=["a", "b", "c"])),
    "fortran": (np.array, np.asfortranarray),
}


@pytest.mark.parametrize("container", CONTAINERS)
def test_any_container_will_do(container):
    of_labels, of_table = CONTAINERS[container]
    numbers = np.unique(WORDS, return_inverse=True)[1]
    sets, confidence = PROBA > 0.3, PROBA.max(axis=1)
    predicted = np.array(["cat", "dog", "eel"])[PROBA.argmax(axis=1)]
    for metric in FORECAST_METRICS.values():
        assert_same(metric(of_labels(WORDS), of_table(PROBA)), metric(numbers, PROBA))
    for metric in SET_METRICS.values():
        assert_same(metric(of_labels(WORDS), of_table(sets)), metric(numbers, sets))
    for metric in RANKING_METRICS.values():
        there = metric(of_labels(WORDS), of_labels(predicted), read_only(confidence))
        assert_same(metric(np.array(WORDS), predicted, confidence), there)


def test_boolean_labels_are_two_classes():
    y, p = np.array([True, False, True, True]), np.array([0.7, 0.2, 0.6, 0.4])
    for metric in FORECAST_METRICS.values():
        assert_same(metric(y, p), metric(y.astype(int), p))
    assert coverage(y, [[False, True]] * 4) == 0.75


def test_single_precision_costs_single_precision():
    for metric in FORECAST_METRICS.values():
        exact, rounded = metric(WORDS, PROBA), metric(WORDS, PROBA.astype(np.float32))
        np.testing.assert_allclose(rounded, exact, atol=1e-6)


def test_thousands_of_classes():
    rng = np.random.default_rng(0)
    n, k = 40, 5000
    proba = rng.dirichlet(np.full(k, 0.01), n).astype(np.float32)
    y = rng.integers(0, k, n)
    onehot = np.zeros((n, k))
    onehot[np.arange(n), y] = 1
    brier = ((proba - onehot) ** 2).sum(axis=1).mean()
    assert brier_decomposition(y, proba).brier == pytest.approx(brier, abs=1e-6)
    one_bin = np.abs((proba - onehot).mean(axis=0)).mean()
    assert classwise_calibration_error(y, proba, n_bins=1) == pytest.approx(one_bin, abs=1e-6)
    everything = np.ones((n, k), dtype=bool)
    assert u80(y, everything) == pytest.approx(2.2 / k - 1.2 / k**2)


@forecast_metrics
def test_forecasts_out_of_order_are_refused(metric):
    with pytest.raises(ValueError, match="y_true has 2 rows but y_proba has 3"):
        metric([0, 1], [0.1, 0.2, 0.3])
    with pytest.raises(ValueError, match=r"y_true has no rows; a metric needs at least one"):
        metric([], np.empty((0, 2)))
    with pytest.raises(ValueError, match=r"y_proba has nan in row 1\. Drop or impute"):
        metric([0, 1], [0.1, math.nan])
    with pytest.raises(ValueError, match="y_proba has infinite values in row 0"):
        metric([0, 1], [math.inf, 0.1])
    with pytest.raises(ValueError, match=r"y_proba must lie in \[0, 1\]; not so in row 1"):
        metric([0, 1], [0.1, 1.5])
    with pytest.raises(ValueError, match=r"must sum to 1; not so in row 0 .*sums to 1\.2"):
        metric([0, 1], [[0.6, 0.6], [0.5, 0.5]])
    with pytest.raises(ValueError, match=r"at least two classes.*1-dimensional"):
        metric([0, 1], [[1.0], [1.0]])
    with pytest.raises(ValueError, match="y_proba must be 1-dimensional or 2-dimensional"):
        metric([0, 1], np.ones((2, 1, 1)))
    with pytest.raises(TypeError, match="y_proba must hold numbers; got"):
        metric([0, 1], ["likely", "unlikely"])
    with pytest.raises(TypeError, match="y_proba must hold numbers; got an array with 'likely'"):
        metric([0, 1] * 10, np.array(["likely", "unlikely"] * 10))
    with pytest.raises(ValueError, match="y_true must hold one label per row"):
        metric([[0], [1]], [0.1, 0.2])
    with pytest.raises(ValueError, match="sample_weight has 1 rows"):
        metric([0, 1], [0.1, 0.2], sample_weight=[1])
    with pytest.raises(ValueError, match="sample_weight must not be negative, as in row 1"):
        metric([0, 1], [0.1, 0.2], sample_weight=[1, -1])
    with pytest.raises(ValueError, match="all zero"):
        metric([0, 1], [0.1, 0.2], sample_weight=[0, 0])


@pytest.mark.parametrize(
    "metric", [expected_calibration_error, classwise_calibration_error, brier_decomposition]
)
def test_impossible_bins_are_refused(metric):
    for n_bins in (0, -3, 2.5, True, "ten", None):
        with pytest.raises(ValueError, match=r"n_bins must be an integer of at least 1\. Got"):
            metric([0, 1], [0.1, 0.2], n_bins=n_bins)
    with pytest.raises(ValueError, match=r"strategy must be one of .*'quantile'\. Got 'kmeans'"):
        metric([0, 1], [0.1, 0.2], strategy="kmeans")
