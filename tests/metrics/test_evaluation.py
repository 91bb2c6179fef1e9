"""All metrics at once: values equal those of the single metrics, limits have their coverage."""

import math
import tracemalloc
from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest
from sklearn.datasets import load_iris
from sklearn.metrics import accuracy_score, brier_score_loss, log_loss
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.svm import LinearSVC

from dubito.belief import Bounds
from dubito.discriminant import ImpreciseGaussianDiscriminant
from dubito.metrics import (
    AmbiguousLabelWarning,
    Estimate,
    aurc,
    bootstrap,
    brier_decomposition,
    classwise_calibration_error,
    coverage,
    discounted_accuracy,
    evaluate,
    expected_calibration_error,
    mean_set_size,
    smooth_calibration_error,
    u65,
    u80,
)
from dubito.metrics.evaluation import forecast_metrics
from dubito.metrics.forecasts import read_forecasts

seeds = st.integers(0, 2**32 - 1)
approx = partial(pytest.approx, rel=0, abs=1e-15)
quick = settings(deadline=None, max_examples=30)
NAMES = """accuracy error log_loss brier ece classwise_ece smooth_ece aurc coverage determinacy
single_class_accuracy mean_set_size discounted_accuracy u65 u80 mean_width"""
SHARES = ["accuracy", "error", "coverage", "determinacy", "single_class_accuracy"]
WORDS = np.array(["cod", "eel", "ray", "sole", "tuna"])


def draw(seed, n=40, k=3, *, grain=4):
    """Labels, forecasts with ties, bounds around them, sets of them and weights."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, grain, (n, k)) + np.eye(k, dtype=int)[rng.integers(0, k, n)]
    proba = counts / counts.sum(axis=1, keepdims=True)
    bounds = Bounds(proba * rng.random((n, 1)), proba + (1 - proba) * rng.random((n, k)))
    sets = proba >= rng.random((n, 1)) * 0.6
    weight = rng.integers(0, 3, n)
    weight[0] = 1
    return rng.integers(0, k, n), proba, bounds, sets, weight


def one_by_one(y, proba, *, bounds, sets, classes, weight):
    """The same numbers, each by its own function."""
    both = np.column_stack((1 - proba, proba)) if proba.ndim == 1 else proba
    y_pred = np.asarray(classes)[both.argmax(axis=1)]
    how = {"classes": classes, "sample_weight": weight}
    single = sets.sum(axis=1) == 1
    return {
        "ece": expected_calibration_error(y, proba, **how),
        "classwise_ece": classwise_calibration_error(y, proba, **how),
        "smooth_ece": smooth_calibration_error(y, proba, **how),
        "aurc": aurc(y, y_pred, both.max(axis=1), sample_weight=weight),
        "coverage": coverage(y, sets, **how),
        "single_class_accuracy": coverage(
            y[single], sets[single], classes=classes, sample_weight=weight[single]
        ),
        "mean_set_size": mean_set_size(sets, sample_weight=weight),
        "discounted_accuracy": discounted_accuracy(y, sets, **how),
        "u65": u65(y, sets, **how),
        "u80": u80(y, sets, **how),
        "accuracy": approx(np.average(y == y_pred, weights=weight)),
        "error": approx(np.average(y != y_pred, weights=weight)),
        "determinacy": approx(np.average(single, weights=weight)),
        "mean_width": approx(np.average(bounds.width.mean(axis=1), weights=weight)),
    }


@pytest.mark.parametrize("k", [2, 3, 5])
@pytest.mark.parametrize("weighted", [False, True])
def test_values_are_exactly_those_of_the_single_metrics(k, weighted):
    y, proba, bounds, sets, weight = draw(1, k=k)
    weight = weight if weighted else np.ones(len(y))
    labels, classes = WORDS[y], WORDS[:k]
    judged = evaluate(
        labels, proba, bounds=bounds, sets=sets, classes=classes, sample_weight=weight, n_boot=3
    )
    assert list(judged) == NAMES.split()
    expected = one_by_one(labels, proba, bounds=bounds, sets=sets, classes=classes, weight=weight)
    for name, value in expected.items():
        assert judged[name].value == value, name
    counted = weight > 0
    brier = brier_decomposition(labels, proba, classes=classes, sample_weight=weight).brier
    assert judged["brier"].value == pytest.approx(brier, abs=1e-12)
    loss = log_loss(labels[counted], proba[counted], labels=classes, sample_weight=weight[counted])
    assert judged["log_loss"].value == pytest.approx(loss, abs=1e-12)
    right = accuracy_score(labels, classes[proba.argmax(axis=1)], sample_weight=weight)
    assert judged["accuracy"].value == pytest.approx(right, abs=1e-12)


def test_one_probability_of_two():
    y, proba, bounds, sets, _ = draw(2, k=2)
    p = proba[:, 1]
    given_rows = {"bounds": bounds, "sets": sets, "classes": WORDS[:2]}
    judged = evaluate(WORDS[y], p, **given_rows, n_boot=3)
    expected = one_by_one(WORDS[y], p, **given_rows, weight=np.ones(len(y)))
    for name, value in expected.items():
        assert judged[name].value == value, name
    assert judged["brier"].value == pytest.approx(brier_score_loss(y, p), abs=1e-12)
    assert judged["log_loss"].value == pytest.approx(log_loss(y, p), abs=1e-12)
    # The calibration of a probability is judged as such, that of two columns by the larger one.
    both = evaluate(y, proba, n_boot=3)
    assert both["ece"].value == expected_calibration_error(y, proba)
    for name in ("accuracy", "log_loss", "brier", "classwise_ece"):
        assert both[name].value == pytest.approx(judged[name].value, abs=1e-12)


@given(seed=seeds, k=st.integers(2, 5), grain=st.sampled_from([2, 4, 1000]))
@quick
def test_a_resample_has_the_metrics_of_its_rows(seed, k, grain):
    # Statistics of the resampled weights equal those of the drawn rows.
    y, proba, _, _, weight = draw(seed, n=30, k=k, grain=grain)
    rng = np.random.default_rng(seed)
    drawn = rng.integers(30, size=(30, 4))
    counts = np.stack([np.bincount(rows, minlength=30) for rows in drawn.T], axis=1)
    weight = weight + 1.0
    metrics = forecast_metrics(read_forecasts(y, proba, range(k), weight))
    names = ["log_loss", "brier", "ece", "classwise_ece", "smooth_ece", "aurc"]
    for name in names:
        metric = metrics[name]
        values = metric.statistic(counts * weight[:, None])
        values = metric.residuals.error(values) if name.endswith("ece") else values
        for value, rows in zip(values, drawn.T, strict=True):
            again = evaluate(
                y[rows], proba[rows], classes=range(k), sample_weight=weight[rows], n_boot=0
            )
            assert value == pytest.approx(again[name].value, abs=1e-9), name


def test_a_forecast_on_an_edge_is_in_the_same_bin_for_resamples():
    proba, y = [[1 / 15, 2 / 15, 12 / 15], [0.05, 0.05, 0.9]], [0, 1]
    residuals = forecast_metrics(read_forecasts(y, proba, range(3), None))[
        "classwise_ece"
    ].residuals
    together = residuals.error(residuals.mean(np.ones((2, 1))))[0]
    assert together == pytest.approx(classwise_calibration_error(y, proba, classes=range(3)))


@given(seed=seeds, k=st.integers(2, 4))
@quick
def test_limits_hold_the_value(seed, k):
    y, proba, bounds, sets, weight = draw(seed, n=15, k=k)
    judged = evaluate(
        y,
        proba,
        bounds=bounds,
        sets=sets,
        classes=range(k),
        sample_weight=weight,
        n_boot=20,
        random_state=seed,
    )
    for name, estimate in judged.items():
        assert isinstance(estimate, Estimate)
        assert all(type(number) is float for number in estimate)
        if name == "single_class_accuracy" and math.isnan(estimate.value):
            assert all(math.isnan(number) for number in estimate)
            continue
        assert estimate.low <= estimate.value <= estimate.high, name
        assert estimate.low >= 0
        if name not in ("log_loss", "brier", "mean_set_size"):
            assert estimate.high <= 1 + 1e-12


def test_fractions_have_exact_limits():
    y, proba, _, sets, _ = draw(4)
    judged = evaluate(y, proba, sets=sets, confidence_level=0.9, n_boot=1)
    n = {name: len(y) for name in SHARES}
    n["single_class_accuracy"] = int((sets.sum(axis=1) == 1).sum())
    for name in SHARES:
        value, low, high = judged[name]
        exact = binomtest(round(value * n[name]), n[name]).proportion_ci(0.9, method="exact")
        assert (low, high) == pytest.approx((exact.low, exact.high), abs=1e-9)


def test_all_right_is_not_taken_for_certain():
    judged = evaluate([0, 1] * 15, np.array([0.1, 0.9] * 15), n_boot=50)
    assert judged["accuracy"] == pytest.approx((1, 0.025 ** (1 / 30), 1))
    assert judged["error"] == pytest.approx((0, 0, 1 - 0.025 ** (1 / 30)))
    # All rows have the same loss, so resampling shows no spread.
    assert judged["log_loss"] == pytest.approx((-math.log(0.9),) * 3)


def test_the_mean_of_rows_has_the_limits_of_the_normal_distribution():
    rng = np.random.default_rng(0)
    p = rng.uniform(0.2, 0.8, 4000)
    y = (rng.random(4000) < p).astype(int)
    value, low, high = evaluate(y, p, n_boot=800)["brier"]
    spread = 1.96 * ((y - p) ** 2).std() / math.sqrt(4000)
    # 800 resamples give a 97.5% quantile to about a tenth of the spread.
    assert low == pytest.approx(value - spread, abs=0.15 * spread)
    assert high == pytest.approx(value + spread, abs=0.15 * spread)


SHARPENED = {"calibrated": 1.0, "overconfident": 2.0}


def sample(kind, n, seed):
    """Labels and forecasts; the true probabilities are those of a calibrated forecaster."""
    rng = np.random.default_rng(seed)
    z = 1.5 * rng.normal(size=(n, 3))
    true, forecast = (np.exp(c * z) for c in (1.0, SHARPENED[kind]))
    true, forecast = (
        true / true.sum(axis=1, keepdims=True),
        forecast / forecast.sum(axis=1, keepdims=True),
    )
    return (true.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).clip(0, 2), forecast


@pytest.mark.slow
@pytest.mark.parametrize("kind", SHARPENED)
def test_limits_hold_the_truth_about_as_often_as_they_say(kind):
    # The true value is that on very many rows; that of calibrated forecasts is known.
    truth = {
        name: one.value for name, one in evaluate(*sample(kind, 300_000, 999), n_boot=0).items()
    }
    if kind == "calibrated":
        truth |= dict.fromkeys(("ece", "classwise_ece", "smooth_ece"), 0.0)
    held = dict.fromkeys(truth, 0)
    for seed in range(100):
        for name, one in evaluate(*sample(kind, 300, seed), n_boot=40, random_state=seed).items():
            held[name] += one.low <= truth[name] <= one.high
    # Of 100 intervals 95 should contain the true value; 89 or less occur by chance 1 time in 100.
    assert min(held.values()) >= 87, held


def test_percentiles_of_resampled_errors_would_never_hold_the_truth():
    # Why calibration errors have limits of their own: see the notes of `evaluate`.
    y, proba = sample("calibrated", 400, 0)
    forecasts = read_forecasts(y, proba, None, None)
    residuals = forecast_metrics(forecasts)["ece"].residuals
    rng = np.random.default_rng(0)
    drawn = bootstrap.resample({"ece": residuals.mean}, np.ones(400), 200, rng)["ece"]
    errors = residuals.error(drawn)
    assert np.quantile(errors, 0.025) > 0.02
    judged = evaluate(y, proba)
    assert judged["ece"].low == 0
    assert np.median(errors) > 1.2 * judged["ece"].value


def test_the_seed_decides_and_more_confidence_is_wider():
    y, proba, bounds, sets, _ = draw(7, n=80)
    given_rows = {"bounds": bounds, "sets": sets, "n_boot": 40}
    first = evaluate(y, proba, **given_rows)
    assert evaluate(y, proba, **given_rows) == first
    assert evaluate(y, proba, **given_rows, random_state=1) != first
    by_generator = evaluate(y, proba, **given_rows, random_state=np.random.default_rng(0))
    assert by_generator == first
    legacy = [
        evaluate(y, proba, **given_rows, random_state=np.random.RandomState(3)) for _ in range(2)
    ]
    assert legacy[0] == legacy[1]
    wide = evaluate(y, proba, **given_rows, confidence_level=0.99)
    for name in first:
        assert wide[name].low <= first[name].low
        assert wide[name].high >= first[name].high


def test_weights_in_any_unit_and_blocks_of_any_size(monkeypatch):
    y, proba, bounds, sets, weight = draw(8)
    given_rows = {"bounds": bounds, "sets": sets, "classes": range(3), "n_boot": 30}
    judged = evaluate(y, proba, **given_rows, sample_weight=weight)
    monkeypatch.setattr(bootstrap, "_CHUNK_ENTRIES", 100)  # three resamples at a time
    again = evaluate(y, proba, **given_rows, sample_weight=weight / 3)
    for name, estimate in judged.items():
        assert again[name] == pytest.approx(estimate, abs=1e-9), name
    kept = weight > 0
    fewer = evaluate(
        y[kept],
        proba[kept],
        bounds=bounds[kept],
        sets=sets[kept],
        classes=range(3),
        n_boot=30,
        sample_weight=weight[kept],
    )
    assert fewer == evaluate(y, proba, **given_rows, sample_weight=weight)


def test_without_resamples_there_are_values():
    y, proba, bounds, sets, _ = draw(9)
    judged = evaluate(y, proba, bounds=bounds, sets=sets, n_boot=0)
    for name, (value, low, high) in judged.items():
        assert math.isfinite(value)
        assert math.isnan(low) == math.isnan(high) == (name not in SHARES)


def test_classes_without_rows_are_no_matter():
    _, proba, _, _, _ = draw(10, k=5)
    y = WORDS[np.zeros(len(proba), dtype=int)]
    judged = evaluate(y, proba, classes=WORDS, n_boot=5)
    assert judged["classwise_ece"].value == classwise_calibration_error(y, proba, classes=WORDS)


def test_an_impossible_label_costs_much_but_not_everything():
    judged = evaluate([1, 0], [0.0, 0.5], n_boot=5)
    assert judged["log_loss"].value == pytest.approx(log_loss([1, 0], [0.0, 0.5]))
    assert 18 < judged["log_loss"].value < 19


def test_one_row_and_equal_rows():
    judged = evaluate(["b"], [[0.7, 0.3]], classes=["a", "b"], sets=[[True, True]], n_boot=5)
    assert judged["accuracy"] == pytest.approx((0, 0, 0.975))
    assert judged["ece"].value == pytest.approx(0.7)
    assert judged["coverage"].value == 1
    assert math.isnan(judged["single_class_accuracy"].value)
    certain = evaluate([0, 1, 1], [0.0, 1.0, 1.0], n_boot=5)
    for name in ("ece", "classwise_ece", "smooth_ece", "aurc", "brier"):
        assert certain[name] == (0, 0, 0)


def test_tables_will_do():
    y, proba, _, sets, _ = draw(11)
    expected = evaluate(WORDS[y], proba, sets=sets, classes=WORDS[:3], n_boot=5)
    there = evaluate(
        pd.Series(WORDS[y], index=range(5, 45)),
        pd.DataFrame(proba),
        sets=pd.DataFrame(sets),
        classes=WORDS[:3].tolist(),
        n_boot=5,
    )
    for name, estimate in expected.items():
        assert there[name] == pytest.approx(estimate, abs=1e-12)


def test_memory_grows_with_the_rows_not_with_the_resamples():
    rng = np.random.default_rng(0)
    n, k = 2_000, 400
    proba = rng.dirichlet(np.full(k, 0.05), n)
    y = rng.integers(0, k, n)
    tracemalloc.start()
    evaluate(y, proba, n_boot=100)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # Rows times classes is 6.4 MB, and with resamples it would be 640.
    assert peak < 100e6


@pytest.mark.parametrize(
    ("wrong", "error", "words"),
    [
        ({"y_true": ["cod", "hen"]}, ValueError, "labels that classes does not list: 'hen'"),
        ({"y_true": ["cod"]}, ValueError, "y_true has 1 rows but y_proba has 2"),
        ({"sets": [[True, False]]}, ValueError, "y_true has 2 rows but sets has 1"),
        ({"sets": [[True]] * 2}, ValueError, "sets has 1 columns but y_proba has 2 classes"),
        ({"sets": [[0.2, 0.8]] * 2}, TypeError, "sets must be a boolean"),
        ({"bounds": [[0.2, 0.8]] * 2}, TypeError, "bounds must be dubito.belief.Bounds.*got list"),
        ({"bounds": Bounds([[0, 0]], [[1, 1]])}, ValueError, "y_true has 2 rows but bounds has 1"),
        (
            {"bounds": Bounds([[0, 0, 0]] * 2, [[1, 1, 1]] * 2)},
            ValueError,
            "bounds has 3 columns but y_proba has 2 classes",
        ),
        ({"n_boot": -1}, ValueError, "n_boot must be an integer of at least 0. Got -1"),
        ({"n_boot": 2.5}, ValueError, "Got 2.5"),
        ({"n_boot": True}, ValueError, "Got True"),
        ({"confidence_level": 95}, ValueError, "confidence_level must be a number between 0 and 1"),
        ({"y_proba": [0.2, math.nan]}, ValueError, "y_proba has nan in row 1"),
        ({"sample_weight": [1]}, ValueError, "sample_weight has 1 rows"),
    ],
)
def test_wrong_input_is_refused(wrong, error, words):
    given_well = {"y_true": ["cod", "eel"], "y_proba": [0.2, 0.8], "classes": ["cod", "eel"]}
    with pytest.raises(error, match=words):
        evaluate(**{**given_well, **wrong})


def test_a_warning_about_labels_points_at_its_caller_and_comes_once():
    sets = [[True, False, False]] * 2
    with pytest.warns(AmbiguousLabelWarning) as caught:
        evaluate([1, 2], [[0.2, 0.3, 0.5]] * 2, sets=sets, n_boot=2)
    assert [warning.filename for warning in caught] == [__file__]


def test_a_model_is_evaluated_by_its_own_predictions():
    X, y = load_iris(return_X_y=True)
    model = ImpreciseGaussianDiscriminant().fit(X[::2], WORDS[y[::2]])
    rows, labels = X[1::2], WORDS[y[1::2]]
    expected = evaluate(
        labels,
        model.predict_proba(rows),
        bounds=model.predict_bounds(rows),
        sets=model.predict_set(rows),
        classes=model.classes_,
        n_boot=5,
    )
    assert evaluate(model, rows, labels, n_boot=5) == expected
    in_pipeline = make_pipeline(FunctionTransformer(), model)
    assert evaluate(in_pipeline, rows, labels, n_boot=5) == expected
    plain = GaussianNB().fit(X[::2], y[::2])
    assert "mean_width" not in evaluate(plain, rows, y[1::2], n_boot=0)
    with pytest.raises(TypeError, match="rows X and their true labels y; got no y"):
        evaluate(model, rows)
    with pytest.raises(TypeError, match="got no X and no y"):
        evaluate(model)
    with pytest.raises(TypeError, match=r"got the class GaussianNB itself.*GaussianNB\(\)\.fit"):
        evaluate(GaussianNB, rows, labels)
    with pytest.raises(TypeError, match=r"evaluate\(y_true, y_proba\) needs .* single ndarray"):
        evaluate(labels)
    with pytest.raises(TypeError, match="LinearSVC has no predict_proba"):
        evaluate(LinearSVC().fit(X, y), X, y)
    with pytest.raises(TypeError, match="needs a fitted classifier first"):
        evaluate(labels, model.predict_proba(rows), labels)
