"""Simulations of coverage: their truths, the reference interval, and counts."""

import csv
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT))

from experiments.validity import (  # noqa: E402
    discriminant,
    laplace,
    maps,
    more_classes,
    run,
    tables,
    trees,
    two_classes,
)
from experiments.validity.cells import Cell, Kind, Settings, Tallies, holds  # noqa: E402

from dubito.calibration import EvidentialFusion  # noqa: E402


@pytest.fixture
def rng():
    return np.random.default_rng(0)


# Truths


@pytest.mark.parametrize("case", two_classes.CASES)
def test_two_classes_have_their_prior_and_their_signal(case, rng):
    truth = two_classes.truth_of(case)
    scores = truth.scores(100_000, rng)
    proba = truth.proba(scores)
    prior = two_classes.PRIORS[case.rsplit("_", 1)[1]]
    assert proba[:, 1].mean() == pytest.approx(prior, abs=0.005)
    signal = two_classes.SIGNALS[case.split("_", 1)[1].rsplit("_", 1)[0]]
    assert (scores @ truth.slope).std() == pytest.approx(signal, rel=0.02)


def test_extreme_rows_are_as_far_as_one_in_a_thousand(rng):
    truth = two_classes.truth_of("three_weak_half")
    inverse = np.linalg.inv(truth.root)
    distance = np.linalg.norm(truth.scores(200_000, rng) @ inverse.T, axis=1)
    extreme = np.linalg.norm(truth.extremes(10, rng) @ inverse.T, axis=1)
    np.testing.assert_allclose(extreme, extreme[0])
    assert (distance > extreme[0]).mean() == pytest.approx(0.001, abs=0.0003)


@pytest.mark.parametrize("case", trees.TRUTHS)
def test_probabilities_of_a_tree_are_those_of_its_nodes(case, rng):
    truth = trees.TRUTHS[case]
    X = rng.normal(size=(5, 1))
    proba = truth.proba(X)
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    intercept, slope = truth.nodes[0]
    tree = truth.tree
    right = [label for label in range(proba.shape[1]) if tree.path(label)[0] == (0, 1)]
    np.testing.assert_allclose(proba[:, right].sum(axis=1), expit(intercept + slope * X[:, 0]))


def test_the_posterior_of_gaussian_classes_agrees_with_class_frequencies_near_a_point(rng):
    y = rng.integers(3, size=400_000)
    X = discriminant.draw(y, rng)
    point = np.array([[1.0, 0.6]])
    near = np.linalg.norm(X - point, axis=1) < 0.1
    found = np.bincount(y[near], minlength=3) / near.sum()
    np.testing.assert_allclose(found, discriminant.posterior(point)[0], atol=0.03)


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_logits_of_true_maps_are_linear_in_their_features(full, n_classes, rng):
    truth = maps.draw_softmax(n_classes, rng, full=full)
    scores = maps.draw_scores(500, n_classes, rng)
    logits = np.log(truth.proba(scores))
    logits -= logits.mean(axis=1, keepdims=True)
    features = truth.features(scores)
    features = features - features.mean(axis=1, keepdims=True)
    flat = features.reshape(-1, features.shape[2])
    coef = np.linalg.lstsq(flat, logits.ravel(), rcond=None)[0]
    np.testing.assert_allclose(flat @ coef, logits.ravel(), atol=1e-8)
    assert len(truth.precision) == features.shape[2]


def test_the_oracle_is_the_posterior_of_a_gaussian_prior(rng):
    """With a flat prior and many rows it is the Laplace interval."""
    scores = rng.normal(size=(4000, 1))
    p = expit(1.2 * scores + 0.3)
    y = (rng.random((4000, 1)) < p).astype(int).ravel()
    rows = np.array([[-1.0], [0.0], [2.0]])
    proba = [np.hstack([1 - q, q]) for q in (p, expit(1.2 * rows + 0.3))]
    features = [maps.diagonal_features(s) for s in (scores, rows)]
    lower, upper = laplace.oracle_interval(
        (features[0], proba[0]), (features[1], proba[1]), np.full(4, 1e-6), 0.9
    )
    wanted = np.subtract(*laplace.sigmoid_interval(scores, y, rows, 0.9)[::-1])
    np.testing.assert_allclose(upper - lower, wanted, rtol=0.1)
    narrower = laplace.oracle_interval(
        (features[0][:20], proba[0][:20]), (features[1], proba[1]), np.full(4, 4.0), 0.9
    )
    wider = laplace.oracle_interval(
        (features[0][:20], proba[0][:20]), (features[1], proba[1]), np.full(4, 0.1), 0.9
    )
    assert (narrower[1] - narrower[0] < wider[1] - wider[0]).all()


@pytest.mark.parametrize("case", maps.CASES)
def test_probabilities_of_every_true_map_sum_to_one(case, rng):
    _, draw, n_classes = maps.CASES[case]
    truth = draw(n_classes, rng)
    scores, y = truth.rows(50, rng)
    proba = truth.proba(scores)
    assert proba.shape == (50, n_classes)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    assert set(np.unique(y)) <= set(range(n_classes))


def test_labels_follow_their_probabilities(rng):
    proba = np.tile([0.2, 0.5, 0.3], (50_000, 1))
    drawn = np.bincount(more_classes.draw_labels(proba, rng), minlength=3) / 50_000
    np.testing.assert_allclose(drawn, proba[0], atol=0.01)


def test_three_scores_are_calibrated_as_fusion_does():
    made = two_classes.make_calibrator("three_weak_half")
    X, y = np.random.default_rng(0).normal(size=(40, 3)), np.arange(40) % 2
    members = [(str(j), LogisticRegression()) for j in range(2)]
    fusion = EvidentialFusion(members, cv=2).fit(X, y)
    used = fusion.calibrator_
    assert (used.targets, used.ridge) == (made.targets, made.ridge)


# The Laplace interval


def test_laplace_interval_agrees_with_another_estimate_and_its_curvature(rng):
    truth = two_classes.truth_of("three_medium_rare")
    scores, y = truth.rows(300, rng)
    query = truth.scores(4, rng)
    lower, upper = laplace.sigmoid_interval(scores, y, query, 0.9)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # 1e12 stands for inf in all versions
        model = LogisticRegression(C=1e12, tol=1e-10, max_iter=1000).fit(scores, y)
    p = model.predict_proba(scores)[:, 1]
    design = np.column_stack([np.ones(300), scores])
    covariance = np.linalg.inv((design * (p * (1 - p))[:, None]).T @ design)
    at = np.column_stack([np.ones(4), query])
    half = 1.6448536 * np.sqrt((at @ covariance * at).sum(axis=1))
    centre = model.decision_function(query)
    np.testing.assert_allclose(lower[:, 1], expit(centre - half), rtol=1e-4)
    np.testing.assert_allclose(upper[:, 1], expit(centre + half), rtol=1e-4)
    np.testing.assert_allclose(lower[:, 0], 1 - upper[:, 1])
    # The same model as a softmax: class 0 has utility 0.
    features, queried = np.zeros((300, 2, 4)), np.zeros((4, 2, 4))
    features[:, 1], queried[:, 1] = design, at
    for one, other in zip(
        laplace.softmax_interval(features, y, queried, 0.9), (lower, upper), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-6)


def test_separated_classes_have_no_laplace_interval():
    scores, y = np.arange(6.0)[:, None], np.array([0, 0, 0, 1, 1, 1])
    assert np.isnan(laplace.sigmoid_interval(scores, y, scores, 0.9)[0]).all()
    utilities = np.stack([-scores, scores], axis=1)
    shifted = utilities - utilities.mean(axis=0)
    assert np.isnan(laplace.softmax_interval(shifted, y, shifted, 0.9)[0]).all()


def test_a_proportion_without_one_outcome_has_no_laplace_interval():
    lower, upper = laplace.proportion_interval(np.array([0.0, 3.0]), np.array([5.0, 6.0]), 0.9)
    assert np.isnan([lower[0], upper[0]]).all()
    assert lower[1] == pytest.approx(1 - upper[1])


# Counts


def test_bounds_contain_the_truth_up_to_rounding():
    truth = np.array([0.5, 0.5, 1e-12, 0.0])
    lower = np.array([0.5 + 1e-12, 0.51, 1e-11, 0.0])
    np.testing.assert_array_equal(holds(lower, np.ones(4), truth), [True, False, False, True])


def test_errors_are_over_replicates_and_widths_over_rows():
    tallies = Tallies()
    kind = Kind("level", "typical", 0.9)
    for hits in ([True, True], [True, False], [False, False], [True, True]):
        tallies.add(kind, hits, [0.1, 0.3], [0.1, 0.1])
    (record,) = tallies.result(Cell("case", 10))["records"]
    assert record["coverage"] == pytest.approx(0.625)
    assert record["error"] == pytest.approx(np.std([1, 0.5, 0, 1], ddof=1) / 2)
    assert record["width"] == pytest.approx(0.2)
    assert record["ratio"] == pytest.approx(2)


def test_no_ratio_where_the_reference_rarely_exists():
    tallies = Tallies()
    tallies.add(Kind("level", "typical", 0.9), [True], [0.1, 0.1], [0.1, np.nan])
    assert tallies.result(Cell("case", 10))["records"][0]["ratio"] is None


def test_a_cell_with_low_coverage_gets_more_replicates():
    for hit, promise, count in [(True, 0.9, 5), (False, None, 5), (False, 0.9, 20)]:
        tallies = Tallies()
        for _ in tallies.replicates(5):
            tallies.add(Kind("level", "typical", promise), hit)
        assert tallies.result(Cell("case", 10))["records"][0]["replicates"] == count


def test_random_numbers_of_a_cell_do_not_depend_on_others():
    settings = Settings("part", 5)
    first, again, other = (settings.generator(Cell("case", n)).random() for n in (10, 10, 15))
    assert first == again != other


# Tables


def made_up(**changes):
    row = tables.Row(
        *("two_classes", "one_weak_half", 100, "level", "typical", 0.9),
        *(0.91, 0.01, 500, 0.2, 1.05),
    )
    return row._replace(**changes)


def test_coverage_is_too_low_below_the_promise_less_the_tolerance():
    assert not made_up(coverage=0.8701).is_short
    assert made_up(coverage=0.8699).is_short
    assert not made_up(coverage=0.1, promise=None).is_short


def test_a_cell_is_wide_only_with_many_rows():
    assert made_up(ratio=1.31).is_wide
    assert not made_up(ratio=1.31, n=30).is_wide
    assert not made_up(ratio=None).is_wide


def test_cells_with_low_coverage_are_marked_and_listed(monkeypatch):
    reason = {"kind": "short", "part": "two_*", "case": "*", "method": "level", "query": "*"}
    monkeypatch.setattr(tables, "read_reasons", lambda: [{**reason, "reason": "too few rows"}])
    rows = [made_up(), made_up(n=300, coverage=0.7), made_up(n=1000, ratio=1.5)]
    table = tables.render_part(rows)
    assert "| one weak half | level | typical | 0.9 | 0.910 (1.05) | **0.700** (1.05) |" in table
    assert "0.910 (**1.50**)" in table
    summary = tables.render_summary(rows)
    assert "**2 of 3** promised levels are reached" in summary
    assert "**2 of 3** intervals" in summary
    assert "| 300 | 0.9 | 0.700 ± 0.010 | 1.05 | too few rows |" in summary
    assert "| 1000 | 0.9 | 0.910 ± 0.010 | 1.50 | not known |" in summary
    assert tables.render_summary([made_up()]).count(" None.") == 2


def test_reasons_are_of_parts_that_exist():
    for reason in tables.read_reasons():
        assert reason["part"] in {*run.PARTS, "*"}
        assert reason["kind"] in {"short", "wide"}
        assert reason["reason"]


# The run


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """Run the quick cells with three replicates each."""
    out = tmp_path_factory.mktemp("validity")
    options = ["--quick", "--rounds", "3", "--out", str(out), "--quiet"]
    assert run.main(options) == 0
    return out, options


def test_all_parts_are_run_drawn_and_written(quick):
    out, _ = quick
    assert {path.stem for path in (out / "figures").iterdir()} == {
        "meaning_levels",
        "meaning_sets",
        "meaning_limits",
    }
    with (out / "validity.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert {row["part"] for row in rows} == set(run.PARTS)
    assert all(0 <= float(row["coverage"]) <= 1 for row in rows)
    assert not list(out.rglob("*.part"))


def test_a_second_run_computes_nothing_and_prints_the_same(quick, monkeypatch, capsys):
    _, options = quick
    for part in run.PARTS.values():
        monkeypatch.setattr(part.module, "run_cell", None)  # all results are stored
    assert run.main(options) == 0
    captured = capsys.readouterr().out
    for part in (*run.PARTS, "summary"):
        assert f"## {part}\n" in captured


@pytest.mark.usefixtures("without_matplotlib")
def test_without_matplotlib_the_tables_are_still_printed(quick, capsys):
    _, options = quick
    assert run.main(options) == 0
    captured = capsys.readouterr()
    assert "## summary\n" in captured.out
    assert captured.err.startswith("figures left out: they need matplotlib")
