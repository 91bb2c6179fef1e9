"""Rounds of the reproduction of Minary et al. 2017: rows, classifiers, and counts."""

import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT))

from experiments.common.store import Store  # noqa: E402
from experiments.p0 import protocol as p0  # noqa: E402
from experiments.p1 import comparison, data, frontiers, multiclass, rates  # noqa: E402
from experiments.p1.data import Cell  # noqa: E402

from dubito.belief import Bounds  # noqa: E402
from dubito.calibration import EvidentialLogisticCalibrator  # noqa: E402
from dubito.datasets import make_gaussian_pair, make_waveform  # noqa: E402

KERNEL = data.KERNELS["linear"]


# Rows and classifiers


def test_simulated_rows_depend_on_the_seed_only():
    X, y = data.draw("simulated", (0, 1), n_simulated=50)
    again, _ = data.draw("simulated", (0, 1), n_simulated=50)
    other, _ = data.draw("simulated", (0, 2), n_simulated=50)
    assert X.shape == (50, 2)
    assert set(y) == {0, 1}
    np.testing.assert_array_equal(X, again)
    assert not np.allclose(X, other)


def test_real_rows_are_permuted(monkeypatch):
    table = np.arange(12.0).reshape(6, 2)
    bunch = SimpleNamespace(X=table, y=np.array(["b", "g", "g", "b", "g", "b"]))
    monkeypatch.setattr(data, "load", lambda _: bunch)
    X, y = data.draw("ionosphere", (0, 0), n_simulated=99)
    order = (X[:, 0] / 2).astype(int)
    assert sorted(order) == list(range(6))
    assert order.tolist() != list(range(6))
    np.testing.assert_array_equal(y, (bunch.y == "g")[order])


def test_each_classifier_is_trained_on_its_own_block_only():
    blocks = data.blocks((10, 12))
    assert [(b[0], b[-1]) for b in blocks] == [(0, 9), (10, 21)]
    X, y = make_gaussian_pair(40, random_state=0)
    scores = data.joint_scores(X, y, blocks, KERNEL)
    assert scores.shape == (40, 2)
    # Other labels outside the blocks change nothing; in a block they change its classifier alone.
    outside, inside = y.copy(), y.copy()
    outside[22:] = 1 - y[22:]
    inside[12] = 1 - y[12]
    np.testing.assert_array_equal(data.joint_scores(X, outside, blocks, KERNEL), scores)
    changed = data.joint_scores(X, inside, blocks, KERNEL)
    np.testing.assert_array_equal(changed[:, 0], scores[:, 0])
    assert not np.allclose(changed[:, 1], scores[:, 1])


def test_a_block_of_one_class_makes_a_constant_score():
    X, y = make_gaussian_pair(30, random_state=0)
    y[:10] = 0
    np.testing.assert_array_equal(data.joint_scores(X, y, data.blocks((10,)), KERNEL), -1)


# Rounds of Figures 2 and 3


def test_counts_follow_the_definition_of_rejecting():
    bounds = Bounds([[0.7, 0.1], [0.2, 0.5]], [[0.9, 0.3], [0.5, 0.8]])
    truth = np.array([0, 0])  # the second row is wrong
    for strategy, support in {"optimistic": bounds.upper, "pessimistic": bounds.lower}.items():
        found = rates.counts_at_costs(bounds, strategy, support, truth)
        best = support.max(axis=1)
        for cost, accepted, wrong in zip(rates.COSTS, *found.values(), strict=True):
            enough = best >= 1 - cost - 1e-9
            assert (accepted, wrong) == (enough.sum(), enough[1])


def test_a_round_of_the_simulated_data():
    result = rates.run_cell(Cell("simulated", "rbf", 0), rates.Settings())
    assert result["n_test"] == 100
    assert list(result["counts"]) == ["200", "45", "15"]
    for variants in result["counts"].values():
        smoothed = variants["smoothed"]
        accepted = {m: np.array(smoothed[m]["accepted"]) for m in rates.METHODS}
        assert accepted["probabilistic"][-1] == accepted["pessimistic"][-1] == 100  # R_rej = 1
        assert (accepted["optimistic"] >= accepted["probabilistic"]).all()
        assert (accepted["probabilistic"] >= accepted["pessimistic"]).all()
    at_020 = 20
    gap = {
        size: np.subtract(
            *(
                result["counts"][size]["smoothed"][m]["accepted"][at_020]
                for m in ("optimistic", "pessimistic")
            )
        )
        for size in ("200", "15")
    }
    assert gap["15"] > gap["200"] > 0


def test_calibration_and_test_rows_follow_the_training_rows():
    cell, settings = Cell("simulated", "rbf", 3), rates.Settings()
    scored = rates.scores_of(cell, settings)
    _, y = rates.rows_of(cell, settings)
    np.testing.assert_array_equal(scored.labels, y[90:290])
    np.testing.assert_array_equal(scored.truth, y[290:])
    assert scored.calibration.shape == (200, 3)
    assert scored.test.shape == (100, 3)


def test_separated_rows_have_no_raw_estimate_and_one_class_has_a_smoothed_one():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 10)
    scored = rates.Scored(
        rng.normal(size=(20, 3)) + 9 * y[:, None], y, rng.normal(size=(5, 3)), y[:5]
    )
    assert rates.calibrated_counts(scored, 20, rates.VARIANTS["raw"]) is None
    assert rates.calibrated_counts(scored, 10, rates.VARIANTS["raw"]) is None
    for variant in ("smoothed", "ridge"):
        assert rates.calibrated_counts(scored, 20, rates.VARIANTS[variant])
    assert rates.calibrated_counts(scored, 10, rates.VARIANTS["smoothed"])


# The comparison


def test_sizes_of_the_comparison():
    assert comparison.sizes_of("fixed", 100) == ((30, 30, 100), (15, 15, 15))
    assert comparison.sizes_of("growing", 50) == ((30, 30, 50), (30, 30, 50))


def test_independent_calibration_multiplies_contours_and_probabilities():
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=60)
    scores = rng.normal(size=(60, 3)) + y[:, None]
    rows = data.blocks((12, 14, 16))
    test = np.arange(42, 60)
    found = comparison.supports_of(scores, y, rows, test)
    assert sorted(found) == sorted(comparison.METHODS)
    fitted = [
        EvidentialLogisticCalibrator(targets="smoothed").fit(scores[r, j], y[r])
        for j, r in enumerate(rows)
    ]
    upper = np.prod([f.predict_bounds(scores[test, j]).upper for j, f in enumerate(fitted)], axis=0)
    proba = np.prod([f.predict_proba(scores[test, j]) for j, f in enumerate(fitted)], axis=0)
    ratio = found["independent"] / upper  # Dempster's rule divides by one less the conflict
    np.testing.assert_allclose(ratio[:, 0], ratio[:, 1], rtol=1e-9)
    np.testing.assert_allclose(found["independent_probabilistic"], proba, rtol=1e-9)
    np.testing.assert_array_equal(found["joint"].argmax(axis=1).shape, (18,))


def test_sizes_that_leave_too_few_test_rows_are_left_out(monkeypatch):
    X, y = make_gaussian_pair(270, random_state=0)
    monkeypatch.setattr(comparison, "draw", lambda *_, **__: (X, y))
    cell, settings = Cell("heart", "linear", 0), comparison.Settings()
    assert comparison.errors_of(cell, settings, "growing", 100) == {}
    found = comparison.errors_of(cell, settings, "growing", 50)
    assert set(found) == set(comparison.METHODS)
    assert all(0 < error < 50 for error in found.values())


# Multiclass


@pytest.fixture
def waveform(monkeypatch):
    """P0's protocol on a little simulated data in place of a file."""
    X, y = make_waveform(p0.N_TRAIN + 40, random_state=0)
    monkeypatch.setattr(p0, "load", lambda _: SimpleNamespace(X=X, y=y))


def test_all_classifiers_score_rows_that_trained_none_of_them(waveform):  # noqa: ARG001
    cell, settings = multiclass.Cell("waveform", 2, "libsvm", 0), multiclass.Settings()
    scores = multiclass.scores_of(cell, settings)
    assert scores.calibration.shape == (500, 10, 3)
    assert scores.test.shape == (40, 10, 3)
    same = p0.Cell("waveform", 2, 0)
    drawn = p0.draw(same, p0.Settings("libsvm"))
    halves = list(p0.parts(drawn, p0.SCENARIOS[2]))
    trained = np.concatenate([fit for fit, _ in halves])
    held_out = np.concatenate([rows for _, rows in halves])
    assert not set(trained) & set(held_out)
    assert not set(drawn.test) & {*trained, *held_out}
    np.testing.assert_array_equal(scores.labels, drawn.y[held_out])
    # On its own part each classifier has the scores of P0.
    first = next(p0.classifiers(drawn, p0.SCENARIOS[2], p0.SVMS["libsvm"]))
    n = len(halves[0][1])
    np.testing.assert_allclose(scores.calibration[:n, 0], first.validation, rtol=1e-12)
    np.testing.assert_allclose(scores.test[:, 0], first.test, rtol=1e-12)


def test_a_round_uses_the_stored_round_of_p0(waveform, tmp_path, monkeypatch):  # noqa: ARG001
    monkeypatch.setattr(multiclass, "N_UPPER", 3)
    settings = multiclass.Settings(p0_results=tmp_path)
    cell = multiclass.Cell("waveform", 1, "libsvm", 0)
    result = multiclass.run_cell(cell, settings)
    kept = Store(tmp_path, p0.Settings("libsvm")).read(p0.Cell("waveform", 1, 0))
    assert result["alone"] == kept["alone"] == result["alone_p0"]
    for method in multiclass.FROM_P0:
        assert result["accuracy"][method] == kept["accuracy"][method]
    assert set(result["accuracy"]) == set(multiclass.METHODS)
    assert result["accuracy"]["joint_smoothed"] > result["alone"]
    assert result["upper"]["rows"] == 3
    # The stored round of P0 is read, not run; a round of other classifiers is rejected.
    monkeypatch.setattr(p0, "run_cell", None)
    assert multiclass.p0_round(cell, settings) == kept
    kept["kernels"][0] = [None, 5.0]
    Store(tmp_path, p0.Settings("libsvm")).write(p0.Cell("waveform", 1, 0), kept)
    with pytest.raises(RuntimeError, match="not those trained here"):
        multiclass.run_cell(cell, settings)


def test_each_alone_multiplies_calibrated_probabilities():
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=80)
    scores = rng.normal(size=(80, 2, 3)) + np.eye(3)[y][:, None]
    made = multiclass.Scores(scores[:60], y[:60], scores[60:], y[60:], [])
    total = multiclass.each_alone(made)
    alone = [
        multiclass.EvidentialMultinomialCalibrator(targets="smoothed").fit(scores[:60, j], y[:60])
        for j in range(2)
    ]
    product = np.prod([one.predict_proba(scores[60:, j]) for j, one in enumerate(alone)], axis=0)
    proba = np.exp(total) / np.exp(total).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(proba, product / product.sum(axis=1, keepdims=True), rtol=1e-9)


# Figure 1


def test_frontiers_are_further_apart_with_fewer_examples(monkeypatch):
    monkeypatch.setattr(frontiers, "LINES", np.linspace(-4, 4, 9))
    frontiers.margins.cache_clear()
    rejected = {size: frontiers.rejected_percent(size, "smoothed") for size in frontiers.SIZES}
    for found in rejected.values():
        assert found["optimistic"] < found["probabilistic"] < found["pessimistic"]
    gap = {size: found["pessimistic"] - found["optimistic"] for size, found in rejected.items()}
    assert gap[15] > gap[200]
    frontiers.margins.cache_clear()
