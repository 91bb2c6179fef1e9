"""Rounds of the reproduction of Leathart et al. 2019: rows, base learners, schemes, counts."""

import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.metrics import log_loss

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT))

from experiments.common.published import read_claims  # noqa: E402
from experiments.p4 import (  # noqa: E402
    boosting,
    data,
    depths,
    fit_cache,
    measures,
    protocol,
    run,
    schemes,
)
from experiments.p4.boosting import RealAdaBoost  # noqa: E402

from dubito.datasets import DatasetError  # noqa: E402
from dubito.dichotomies import NestedDichotomyClassifier  # noqa: E402
from dubito.metrics import expected_calibration_error  # noqa: E402

CLAIMS = ROOT / "experiments" / "p4" / "claims.csv"


# Rows


@pytest.mark.data
@pytest.mark.parametrize("name", data.DATASETS)
def test_datasets_are_those_of_table_1_but_for_a_feature_of_micromass(name):
    X, y = data.rows_of(name)
    printed = data.TABLE_1[name]
    features = 1300 if name == "micromass" else printed.features
    assert (X.shape, y.max() + 1) == ((printed.rows, features), printed.classes)
    assert X.min() >= 0  # multinomial naive Bayes takes them
    assert np.bincount(data.rows_of(name, per_class=7).y).tolist() == [7] * printed.classes


@pytest.mark.data
def test_every_class_of_sector_is_in_both_parts():
    fit, held = data.sector()
    assert (fit.X.shape, held.X.shape) == ((865, 55197), (961, 55197))
    assert set(fit.y) == set(held.y) == set(range(105))


def test_the_error_names_the_missing_file_of_sector(monkeypatch, tmp_path):
    monkeypatch.setenv("DUBITO_DATA", str(tmp_path))
    with pytest.raises(DatasetError, match=r"sector_partial\.npz, is not in .* Set DUBITO_DATA"):
        data.sector()


@pytest.mark.parametrize("sparse", [False, True])
def test_every_class_of_a_simulated_problem_has_training_rows(sparse):
    problem = data.Problem(rows=60, classes=25, features=40, sparse=sparse, test_rows=20)
    fit, held = data.simulate(problem, 3)
    assert (fit.X.shape, held.X.shape) == ((40, 40), (20, 40))
    assert set(held.y) <= set(fit.y) == set(range(fit.y.max() + 1))
    again = data.simulate(problem, 3)
    assert (again[1].y == held.y).all()
    assert abs(again[0].X - fit.X).max() == 0


# Base learners


def two_classes(n=200):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    return X, (X[:, 0] * X[:, 1] + 0.5 * rng.normal(size=n) > 0).astype(int)


def test_log_odds_of_boosted_trees_are_the_mean_of_the_trees():
    X, y = two_classes()
    model = RealAdaBoost(n_estimators=5).fit(X, y)
    odds = []
    for tree in model.trees_:
        p = np.clip(tree.predict_proba(X.astype(np.float32))[:, 1], boosting.LEAST, None)
        odds.append(np.log(p) - np.log(np.clip(1 - p, boosting.LEAST, None)))
    np.testing.assert_allclose(model.decision_function(X), np.mean(odds, axis=0), atol=1e-9)
    proba = model.predict_proba(X)
    np.testing.assert_allclose(np.log(proba[:, 1] / proba[:, 0]), model.decision_function(X))
    assert (model.predict(X) == proba.argmax(axis=1)).all()


def test_weights_balance_the_classes_in_every_leaf_of_the_last_tree():
    """With weights e^(-y h), both classes have the same weight in every leaf of the tree of h."""
    X, y = two_classes()
    model = RealAdaBoost(n_estimators=1, max_depth=2).fit(X, y)
    leaf = model.trees_[0].apply(X.astype(np.float32))
    weight = np.exp(-(2 * y - 1) * model.decision_function(X) / 2)
    for at in np.unique(leaf):
        left, right = (weight[(leaf == at) & (y == side)].sum() for side in (0, 1))
        assert left == pytest.approx(right, rel=1e-6) or min(left, right) == 0


def test_more_trees_fit_better_and_boosting_ends_at_a_tree_without_errors():
    X, y = two_classes()
    losses = [
        np.exp(-(2 * y - 1) * m * RealAdaBoost(n_estimators=m).fit(X, y).decision_function(X) / 2)
        for m in (1, 4, 16)
    ]
    assert losses[0].mean() > losses[1].mean() > losses[2].mean()
    model = RealAdaBoost(n_estimators=9).fit(X, (X[:, 0] > 0).astype(int))
    assert len(model.trees_) == 1


def test_cached_fits_do_not_change_the_results_of_schemes(some_rows):
    rows = some_rows()

    def all_schemes(base):
        return [
            schemes.dichotomies(base, scheme, 3, n_trees=3).fit(*rows).predict_proba(rows.X)
            for scheme in schemes.SCHEMES
        ]

    with fit_cache.cached_fits() as fits:
        shared = all_schemes("boosting")
        # Three nodes, each fitted to all rows and to three folds; with and without a hold-out.
        assert len(fits) == 2 * 3 * 4
    assert not fits
    plain = NestedDichotomyClassifier(
        RealAdaBoost(n_estimators=3), structure="random", random_state=3
    )
    for proba, options in zip(shared, schemes.SCHEMES.values(), strict=True):
        again = plain.set_params(internal=None, external=None).set_params(**options).fit(*rows)
        np.testing.assert_array_equal(again.predict_proba(rows.X), proba)


# Schemes


def test_all_sizes_of_the_left_group_are_equally_likely():
    trees = [schemes.uniform_left_sizes(np.arange(5), seed) for seed in range(400)]
    sizes = np.bincount([tree.left_sizes[0] for tree in trees], minlength=5)
    assert sizes[0] == 0
    assert (np.abs(sizes[1:] - 100) < 40).all()
    assert all(set(tree.leaves) == set(range(5)) for tree in trees)


@pytest.mark.parametrize("scheme", schemes.SCHEMES)
def test_redone_schemes_average_over_folds(scheme, some_rows):
    rows = some_rows()
    model = schemes.redone("multinomial", scheme, 0, np.arange(4)).fit(*rows)
    inside = "internal" in schemes.SCHEMES[scheme]
    assert inside == isinstance(getattr(model.estimator, "estimator", None), CalibratedClassifierCV)
    assert (model.external_ is not None) == ("external" in schemes.SCHEMES[scheme])
    assert model.internal is None


def test_probabilities_0_and_1_of_full_trees_are_kept(some_rows):
    """A wrong row costs the log of the lower bound, and a right one nothing."""
    rows, held = some_rows(), some_rows(seed=1)
    model = schemes.redone("tree", "baseline", 0, np.arange(4)).fit(*rows)
    found = protocol.measured(model.predict_log_proba(held.X), held.y)
    assert found["accuracy"] < 1
    assert found["nll"] == pytest.approx(-np.log(protocol.LEAST) * (1 - found["accuracy"]))


def test_schemes_and_bases_have_names():
    assert set(schemes.HEADINGS) == set(schemes.SCHEMES)
    assert set(schemes.FAMILIES) == set(schemes.BASE_NAMES)
    assert set(schemes.FAMILIES.values()) == set(schemes.FAMILY_NAMES)


# A fold


def test_ten_folds_are_a_repetition_and_the_next_has_other_folds(some_rows):
    y = some_rows(n=20).y
    settings = protocol.Settings("x", ("logistic",))
    held = [protocol.fold_of(y, number, settings)[1] for number in range(20)]
    assert sorted(np.concatenate(held[:10])) == list(range(80))
    assert sorted(np.concatenate(held[10:])) == list(range(80))
    assert held[0].tolist() != held[10].tolist()


def test_log_loss_has_the_lower_bound_of_2019():
    proba = np.array([[1.0, 0.0, 0.0], [0.2, 0.5, 0.3], [0.1, 0.1, 0.8]])
    y = np.array([1, 1, 0])
    with np.errstate(divide="ignore"):
        found = protocol.measured(np.log(proba), y)
    cut = np.clip(proba, 1e-15, None)
    expected = log_loss(y, cut / cut.sum(axis=1, keepdims=True), labels=[0, 1, 2])
    assert found["nll"] == pytest.approx(expected, abs=1e-9)
    assert found["uncut"] == np.inf
    assert found["accuracy"] == pytest.approx(1 / 3)


def without_times(found):
    return {
        scheme: {name: value for name, value in one.items() if name not in {"fit", "score"}}
        for scheme, one in found["schemes"].items()
    }


@pytest.mark.usefixtures("few_rows_of_p4")
@pytest.mark.parametrize("base", schemes.FAMILIES)
def test_a_fold_is_repeatable(base):
    part = "redone" if base in run.PARTS["redone"].settings.bases else "described"
    settings = run.PARTS[part].settings.quick()
    cell = protocol.Cell("letter", base, 1)
    found = protocol.run_cell(cell, settings)
    expected = schemes.TABLES_2_3 if base == "liblinear" else tuple(schemes.SCHEMES)
    assert tuple(found["schemes"]) == expected
    assert found["rows"] == 24
    assert without_times(protocol.run_cell(cell, settings)) == without_times(found)
    other = protocol.run_cell(cell._replace(round=2), settings)
    assert without_times(other) != without_times(found)


def test_settings_that_change_numbers_have_other_descriptions():
    for name, part in run.PARTS.items():  # sector is small already
        same = part.settings.quick().described() == part.settings.described()
        assert same == (name == "sector")
    full = protocol.Settings("x", ("tree",))
    assert protocol.Settings("x", ("tree",), as_redone=True).described() != full.described()
    assert protocol.Settings("x", ("tree",), seed=1).described() != full.described()


def test_names_of_rounds_are_unique():
    for part in run.PARTS.values():
        work = part.settings.work(3, part.datasets)
        assert len({cell.name for cell in work}) == len(work) == len({c.words for c in work})


# Depths


def test_the_calibration_error_of_bins_is_that_of_the_library():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet([0.4] * 6, size=300)
    y = rng.integers(6, size=300)
    bins = depths.binned(proba.max(axis=1), proba.argmax(axis=1) == y)
    rounds = [{"schemes": dict.fromkeys(depths.SCHEMES, [bins] * len(depths.DEPTHS))}]
    found = measures.of_depths(rounds)
    expected = expected_calibration_error(y, proba, n_bins=protocol.N_BINS)
    assert found["baseline.ece"][0, 3] == pytest.approx(100 * expected)
    accuracy = np.mean(proba.argmax(axis=1) == y)
    assert found["external.accuracy"][0, 0] == pytest.approx(100 * accuracy)
    assert found["baseline.under"][0, 0] == pytest.approx(
        100 * (accuracy - proba.max(axis=1).mean())
    )


def test_a_tree_cut_off_at_depth_1_is_its_root_and_below_its_depth_the_whole_tree(some_rows):
    rows = some_rows(n_classes=6)
    model = schemes.dichotomies("gaussian", "baseline", 0).fit(*rows)
    side = {label: model.tree_.path(label)[0][1] for label in range(6)}
    assert depths.group_of_class(model, 1).tolist() == [side[label] for label in range(6)]
    whole = depths.at_depth(model, rows, 12)
    assert sum(whole["hits"]) == np.sum(model.predict(rows.X) == rows.y)
    assert sum(whole["confidence"]) == pytest.approx(model.predict_proba(rows.X).max(axis=1).sum())


def test_claims_about_depths_follow_their_definition():
    depth = np.arange(1, 13)
    before = np.array([2.0 * depth, 3.0 * depth])
    after = np.minimum(depth, 5) * np.ones((2, 1))
    numbers = {"baseline.ece": before, "external.ece": after, "baseline.under": before}
    found = measures.of_depth_claims(numbers)
    assert found["linear"].tolist() == pytest.approx([100, 100])
    assert found["grows"].tolist() == [14, 21]
    assert found["good_at_first"].tolist() == [3, 2]
    assert found["mended"].tolist() == [19, 31]
    assert found["levels"].tolist() == [4, 4]
    assert {claim.quantity for claim in read_claims(CLAIMS, "depths")} == set(found)
