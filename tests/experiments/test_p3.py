"""Rounds of the reproduction of Carranza Alarcón and Destercke 2019: rows, folds, counts."""

import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT))

from experiments.p3 import data, protocol, times, uncut  # noqa: E402
from experiments.p3.protocol import Cell, Settings  # noqa: E402

from dubito.discriminant import ImpreciseGaussianDiscriminant  # noqa: E402
from dubito.metrics import coverage, mean_set_size, u65, u80  # noqa: E402

SETTINGS = Settings("table", ("lda", "qda"), folds=3, inner_folds=3)


def three_classes(n=24, seed=0):
    """Return rows of three classes that overlap."""
    rng = np.random.default_rng(seed)
    centres = [[0, 0, 0], [1.5, 0, 1], [0, 2, -1]]
    X = np.vstack([rng.normal(centre, 1, size=(n, 3)) for centre in centres])
    return X, np.repeat(np.arange(3), n)


@pytest.fixture
def few_rows(monkeypatch):
    """Replace every dataset by a small one."""
    for module in (protocol, times):
        monkeypatch.setattr(module, "rows_of", lambda _: three_classes())


# Rows


@pytest.mark.data
@pytest.mark.parametrize("name", data.DATASETS)
def test_datasets_are_those_of_table_1_but_for_dermatology(name):
    X, y = data.rows_of(name)
    printed = data.TABLE_1[name]
    rows = 358 if name == "dermatology" else printed.rows
    assert (X.shape, y.max() + 1) == ((rows, printed.features), printed.labels)
    assert np.isfinite(X).all()
    assert np.bincount(y).min() >= 10  # as many as there are folds


# Counts


def some_critical(n=60, n_classes=4, seed=0):
    rng = np.random.default_rng(seed)
    critical = rng.exponential(2, size=(n, n_classes))
    critical[rng.random(critical.shape) < 0.2] = np.inf
    precise = rng.integers(n_classes, size=n)
    critical[np.arange(n), precise] = 0
    return critical, rng.integers(n_classes, size=n), precise


@pytest.mark.parametrize("c", [0.0, 0.5, 3.0])
def test_counts_along_c_are_those_of_the_sets(c):
    critical, truth, precise = some_critical()
    found = {name: value[1] for name, value in _along(critical, truth, precise, c).items()}
    sets, n = critical <= c, len(truth)
    assert found["u65"] / n == pytest.approx(u65(truth, sets))
    assert found["u80"] / n == pytest.approx(u80(truth, sets))
    assert found["covered"] / n == pytest.approx(coverage(truth, sets))
    assert found["size"] / n == pytest.approx(mean_set_size(sets))
    several = sets.sum(axis=1) > 1
    assert found["undecided"] == several.sum()
    assert found["undecided_covered"] == sets[np.arange(n), truth][several].sum()
    assert found["undecided_precise"] == np.sum(precise[several] == truth[several])


def _along(critical, truth, precise, c):
    return protocol.along(critical, truth, precise, np.array([0.1, c, 9.0]))


def test_the_utility_of_a_precise_model_is_its_accuracy():
    critical, truth, precise = some_critical()
    found = protocol.along(critical, truth, precise, np.array([0.0]))
    right = np.sum(precise == truth)
    assert found["u65"] == found["u80"] == found["covered"] == right
    assert found["undecided"] == 0


def test_the_best_c_are_all_of_them_and_above_zero():
    c = np.array([0.0, 0.1, 0.2, 0.3, 0.4])
    utility = np.array([0.9, 0.7, 0.8, 0.6, 0.8 - 1e-15])
    assert protocol.best(c, utility).tolist() == [False, False, True, False, True]


# A fold


@pytest.mark.parametrize("model", protocol.MODELS)
def test_counts_of_a_fold_are_those_of_predict_set(model):
    train, test = three_classes(30), three_classes(20, seed=1)
    found = protocol.evaluate(model, train, test, SETTINGS, 0)
    utility = protocol.scored(model, train, SETTINGS, 0)["u80"]
    best = protocol.CS[protocol.best(protocol.CS, utility)]
    assert found["c"]["u80"] == pytest.approx(best.mean())
    n = len(test[1])

    def worth(measure, c):
        return n * measure(test[1], _fixed(model, c).fit(*train).predict_set(test[0], "maximality"))

    assert found["tuned"]["u80"]["u80"] == pytest.approx(np.mean([worth(u80, c) for c in best]))
    for c, total in list(zip(found["grid"], found["path"]["u65"], strict=True))[::20]:
        assert total == pytest.approx(worth(u65, c))
    right = np.sum(_fixed(model, 1.0).fit(*train).predict(test[0]) == test[1])
    assert found["path"]["u65"][0] == found["right"] == right


def _fixed(model, c):
    return ImpreciseGaussianDiscriminant(
        **{"box": "raw", "shrinkage": None, **protocol.MODELS[model]},
        c=c,
        divisor="unbiased",
        n_jobs=1,
    )


@pytest.mark.parametrize("score", protocol.ALPHAS)
def test_cross_validated_utilities_are_those_of_the_tuned_estimator(score):
    X, y = three_classes(30)
    utility = protocol.scored("lda", (X, y), SETTINGS, 0)[score]
    auto = _fixed("lda", "auto").set_params(scoring=score, cv=SETTINGS.splitter(3, 0)).fit(X, y)
    path = auto.c_path_
    np.testing.assert_allclose(getattr(path, score), utility[: len(path.c)], atol=1e-12)
    assert auto.c_ == 0 or protocol.best(protocol.CS, utility)[auto.c_ == protocol.CS]


# A repetition


def test_a_repetition_counts_every_row_once(few_rows):  # noqa: ARG001
    found = protocol.run_cell(Cell("iris", 0), SETTINGS)
    assert (found["rows"], found["features"]) == (72, 3)
    assert 40 < found["right_uncut"] <= 72
    for one in found["models"].values():
        for score, counts in one["tuned"].items():
            assert len(one["c"][score]) == 3
            assert counts["covered"] <= 72 <= counts["size"]
            assert counts["undecided_precise"] <= counts["undecided_covered"]
        assert one["path"]["u80"][0] == one["right"]
        assert len(one["grid"]) == len(one["path"]["u65"]) == 111
        assert (one["singular"], one["unsettled"]) == (0, 0)
    again = protocol.run_cell(Cell("iris", 0), SETTINGS)
    other = protocol.run_cell(Cell("iris", 1), SETTINGS)
    assert again["models"] == found["models"] != other["models"]


def test_singular_classes_are_counted(monkeypatch):
    X, y = three_classes()
    X[y == 1, 2] = 7.0
    monkeypatch.setattr(protocol, "rows_of", lambda _: (X, y))
    found = protocol.run_cell(Cell("forest", 0), SETTINGS)["models"]
    assert (found["lda"]["singular"], found["qda"]["singular"]) == (0, 3)


def test_names_of_rounds_are_unique():
    work = protocol.cells(3, data.DATASETS)
    assert len({cell.name for cell in work}) == len(work) == 27
    assert all("3" in cell.words for cell in work if cell.round == 2)


def test_settings_that_change_numbers_have_other_descriptions():
    full = Settings("table")
    assert (full.folds, full.quick().folds) == (10, 3)
    changed = [
        full.quick(),
        Settings("table", protocol.BEYOND),
        Settings("table", stratified=False),
        Settings("table", c_factor=20),
        Settings("table", seed=1),
    ]
    assert all(one.described() != full.described() for one in changed)
    assert set(protocol.TABLE) | set(protocol.BEYOND) == set(protocol.MODELS)


def test_plain_folds_do_not_keep_the_proportions_of_classes():
    _, y = three_classes()
    counts = {
        stratified: [
            np.bincount(y[held], minlength=3).tolist()
            for _, held in Settings("", stratified=stratified).splitter(3, 0).split(y, y)
        ]
        for stratified in (True, False)
    }
    assert counts[True] == [[8, 8, 8]] * 3 != counts[False]


def test_c_factor_extends_the_grid_of_c():
    rows = three_classes(30)
    wide = Settings("wide", folds=3, inner_folds=3, c_factor=20)
    grid = protocol.evaluate("lda", rows, rows, wide, 0)["grid"]
    assert [grid[0], grid[1], grid[-1]] == pytest.approx([0, 1, 110])


# Precise model and times


def test_without_singular_classes_both_discriminants_agree():
    X, y = three_classes(40)
    X_test, _ = three_classes(200, seed=1)
    ours = _fixed("qda", 0.0).fit(X, y).predict(X_test)
    np.testing.assert_array_equal(uncut.predict((X, y), X_test), ours)


def test_with_a_singular_class_rounding_errors_decide():
    X, y = three_classes(40)
    X[y == 1, 2] = X[y == 1, 0] + X[y == 1, 1]  # a class in a plane
    X_test, truth = three_classes(200, seed=1)
    X_test[truth == 1, 2] = X_test[truth == 1, 0] + X_test[truth == 1, 1]
    found = uncut.predict((X, y), X_test)
    # A row is of class 1 if and only if it lies in the plane.
    np.testing.assert_array_equal(found == 1, truth == 1)


def test_times_are_measured_by_row_and_by_call(few_rows, monkeypatch):  # noqa: ARG001
    monkeypatch.setattr(times, "LEAST", 0.002)
    settings = times.Settings().quick()
    found = times.run_cell(Cell("iris", 0), settings)
    assert list(found["models"]) == ["lda", "qda"]
    for one in found["models"].values():
        assert 0 < one["row"] < one["alone"] < 1
        assert 0 <= one["c"] <= 5.5


def test_a_call_is_timed_at_least_once(monkeypatch):
    calls = []
    monkeypatch.setattr(times, "LEAST", 0.0)
    assert times.seconds(lambda: calls.append(1)) >= 0
    assert len(calls) == 2  # one of them to compile
