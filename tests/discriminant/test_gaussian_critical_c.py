"""The least imprecision at which a class becomes possible, scores along c, and the choice of c."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import KFold, RepeatedKFold, StratifiedKFold

from dubito.metrics import coverage, mean_set_size, u65, u80

from reference.discriminant import ImpreciseGaussians, draw_between, draw_classes
from reference.published import published

KINDS = ["tied", "full", "diag", "spherical"]
OPTIONS = {
    "scaled": {"box": "scaled"},
    "raw": {"box": "raw"},
    "standard_error": {"box": "standard_error"},
    "Dirichlet": {"box": "scaled", "prior_imprecision": 2.0},
    "intervals": {"priors": [[0.1, 0.5], [0.2, 0.3], [0.3, 0.5]]},
    "covariance": {"box": "scaled", "covariance_imprecision": 2.0},
}


def draw(seed, n_features, n_rows, counts=(7, 9, 12)):
    rng = np.random.default_rng([seed, n_features])
    counts = np.add(counts, n_features)
    X, y = draw_classes(rng, n_features, counts, condition=10 ** rng.uniform(0, 4))
    X = X / np.median(X.std(axis=0))
    return X, y, draw_between(rng, X, y, n_rows)


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_critical_c_is_the_root_that_enumeration_finds(kind, options):
    entered = []
    for n_features in (1, 2, 4):
        X, y, rows = draw(KINDS.index(kind), n_features, 4)
        model = published(covariance_type=kind, **OPTIONS[options]).fit(X, y)
        reference = ImpreciseGaussians(X, y, covariance_type=kind, **OPTIONS[options])
        expected = np.array([reference.critical_c(x) for x in rows])
        ours = model.critical_c(rows)
        np.testing.assert_allclose(ours, expected, rtol=1e-7, atol=1e-9)
        np.testing.assert_array_equal(ours == 0, expected == 0)
        entered.extend(expected[expected > 0])
    assert len(entered) > 10


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("p", [6, 9, 12])
def test_enumerated_sets_on_both_sides(kind, p):
    X, y, rows = draw(3 + KINDS.index(kind), p, 5)
    model = published(covariance_type=kind, box="scaled").fit(X, y)
    reference = ImpreciseGaussians(X, y, covariance_type=kind, box="scaled")
    critical = model.critical_c(rows)
    assert np.isfinite(critical).all()
    np.testing.assert_array_equal(critical.min(axis=1), 0)
    for x, row in zip(rows, critical, strict=True):
        for k in np.flatnonzero(row):
            assert not reference.at(row[k] * (1 - 1e-7)).maximal(x)[k]
            assert reference.at(row[k] * (1 + 1e-7)).maximal(x)[k]
    np.testing.assert_array_equal(critical == 0, [reference.at(0.0).maximal(x) for x in rows])


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_sets_are_those_of_critical_c(kind, options):
    X, y, rows = draw(11 + KINDS.index(kind), 14, 60, counts=(5, 9, 30))
    model = published(covariance_type=kind, **OPTIONS[options]).fit(X, y)
    critical = model.critical_c(rows)
    between = np.quantile(critical[critical > 0], [0.02, 0.2, 0.4, 0.6, 0.8, 0.95])
    sizes = set()
    for c in [0.0, *between * (1 + 1e-6)]:
        other = clone(model).set_params(c=c).fit(X, y)
        sets = other.predict_set(rows, "maximality")
        np.testing.assert_array_equal(sets, critical <= c)
        np.testing.assert_allclose(other.critical_c(rows), critical, rtol=1e-9, atol=1e-12)
        sizes |= set(sets.sum(axis=1))
    assert sizes == {1, 2, 3}


@pytest.mark.parametrize("kind", KINDS)
def test_what_needs_more_than_the_limit_is_infinite(kind):
    X, y, rows = draw(20, 8, 40)
    model = published(covariance_type=kind, box="scaled").fit(X, y)
    critical = model.critical_c(rows)
    limit = np.median(critical[critical > 0])
    limited = model.critical_c(rows, max_c=limit)
    np.testing.assert_array_equal(np.isinf(limited), critical > limit)
    within = critical <= limit
    np.testing.assert_allclose(limited[within], critical[within], rtol=1e-9, atol=1e-12)
    precise = clone(model).set_params(c=0.0).fit(X, y).predict_set(rows, "maximality")
    np.testing.assert_array_equal(model.critical_c(rows, max_c=0.0), np.where(precise, 0, np.inf))


def scores_by_hand(y, sets, weight=None):
    return [
        u65(y, sets, sample_weight=weight),
        u80(y, sets, sample_weight=weight),
        mean_set_size(sets, sample_weight=weight),
        coverage(y, sets, sample_weight=weight),
    ]


def as_table(path):
    return np.column_stack([path.u65, path.u80, path.mean_set_size, path.coverage])


@pytest.mark.parametrize("kind", KINDS)
def test_a_path_has_the_scores_of_the_sets(kind):
    X, y, _ = draw(30, 5, 1)
    weight = np.random.default_rng(0).integers(1, 4, size=len(y))
    model = published(covariance_type=kind, box="scaled").fit(X, y)
    cs = np.array([0.0, 0.3, 1.0, 2.5, 7.0, 20.0])
    sets = [clone(model).set_params(c=c).fit(X, y).predict_set(X, "maximality") for c in cs]
    path = model.c_path(X, y, cs)
    np.testing.assert_array_equal(path.c, cs)
    np.testing.assert_allclose(as_table(path), [scores_by_hand(y, s) for s in sets], rtol=1e-12)
    assert (np.diff(path.mean_set_size) >= 0).all()
    assert (np.diff(path.coverage) >= -1e-12).all()
    assert path.mean_set_size[0] < path.mean_set_size[-1]
    weighted = model.c_path(X, y, cs, sample_weight=weight)
    np.testing.assert_allclose(
        as_table(weighted), [scores_by_hand(y, s, weight) for s in sets], rtol=1e-12
    )
    repeated = model.c_path(np.repeat(X, weight, axis=0), np.repeat(y, weight), cs)
    np.testing.assert_allclose(as_table(weighted), as_table(repeated), rtol=1e-12)


def test_the_default_path_is_the_papers_grid():
    X, y, _ = draw(31, 3, 1)
    names = np.array(["ash", "beech", "cedar"])[y]
    model = published().fit(X, names)
    path = model.c_path(X, names)
    assert path.c[0] == 0
    assert path.c[1] == pytest.approx(0.01)
    assert path.c[-1] == pytest.approx(5.5)
    assert (np.diff(path.c) > 0).all()
    assert all(part.shape == path.c.shape for part in path)
    np.testing.assert_allclose(path.u65[0], (model.predict(X) == names).mean())
    sets = clone(model).set_params(c=path.c[100]).fit(X, names).predict_set(X, "maximality")
    assert path.u80[100] == pytest.approx(u80(names, sets, classes=model.classes_))


def sets_across_folds(model, X, y, folds, c):
    """Return the sets of every row by the model that has not seen it."""
    sets = np.zeros((len(y), len(np.unique(y))), dtype=bool)
    for train, test in folds.split(X, y):
        sets[test] = (
            clone(model).set_params(c=c).fit(X[train], y[train]).predict_set(X[test], "maximality")
        )
    return sets


@pytest.mark.parametrize("scoring", ["u65", "u80"])
@pytest.mark.parametrize("kind", KINDS)
def test_c_is_chosen_by_cross_validated_utility(kind, scoring):
    X, y, rows = draw(40, 4, 20, counts=(20, 25, 30))
    model = published(covariance_type=kind, box="scaled", c="auto", scoring=scoring).fit(X, y)
    path = model.c_path_
    values = getattr(path, scoring)
    assert model.c_ in path.c
    assert model.c_ == path.c[np.flatnonzero(np.isclose(values, values.max(), rtol=1e-12))[0]]
    for c in (0.0, model.c_, path.c[len(path.c) // 2]):
        sets = sets_across_folds(model, X, y, StratifiedKFold(5), c)
        i = np.flatnonzero(path.c == c)[0]
        np.testing.assert_allclose(as_table(path)[i], scores_by_hand(y, sets), rtol=1e-12)
    plain = clone(model).set_params(c=float(model.c_)).fit(X, y)
    assert not hasattr(plain, "c_path_")
    np.testing.assert_array_equal(
        model.predict_set(rows, "maximality"), plain.predict_set(rows, "maximality")
    )
    np.testing.assert_array_equal(model.half_widths_, plain.half_widths_)


@pytest.mark.parametrize("score", [u65, u80])
@pytest.mark.parametrize("kind", KINDS)
def test_no_c_of_the_whole_grid_is_better(kind, score):
    """A path may end early, but only where no larger c can win."""
    for seed, distance in enumerate([0.3, 1.0, 2.0, 4.0]):
        rng = np.random.default_rng([seed, KINDS.index(kind)])
        X, y = draw_classes(rng, 3, (12, 15, 20), condition=10, distance=distance)
        model = published(covariance_type=kind, box="scaled", c="auto", scoring=score.__name__).fit(
            X, y
        )
        critical = np.empty((len(y), 3))
        for train, test in StratifiedKFold(5).split(X, y):
            fold = clone(model).set_params(c=1.0).fit(X[train], y[train])
            critical[test] = fold.critical_c(X[test])
        grid = np.arange(551) / 100
        scores = np.array([score(y, critical <= c) for c in grid])
        assert model.c_ == grid[np.flatnonzero(scores >= scores.max() - 1e-12)[0]]
        path = getattr(model.c_path_, score.__name__)
        np.testing.assert_allclose(path, scores[: len(path)], rtol=1e-12)


def test_folds_of_ones_own():
    X, y, _ = draw(41, 3, 1, counts=(20, 25, 30))
    folds = KFold(4, shuffle=True, random_state=0)
    model = published(c="auto", box="scaled", cv=folds).fit(X, y)
    i = len(model.c_path_.c) // 3
    sets = sets_across_folds(model, X, y, folds, model.c_path_.c[i])
    np.testing.assert_allclose(as_table(model.c_path_)[i], scores_by_hand(y, sets), rtol=1e-12)
    three = published(c="auto", box="scaled", cv=3).fit(X, y)
    sets = sets_across_folds(three, X, y, StratifiedKFold(3), 0.0)
    assert three.c_path_.u80[0] == pytest.approx(u80(y, sets))


def test_repeated_folds_count_every_time():
    X, y, _ = draw(42, 3, 1, counts=(12, 15, 20))
    folds = RepeatedKFold(n_splits=3, n_repeats=2, random_state=0)
    model = published(c="auto", box="scaled", cv=folds).fit(X, y)
    i = len(model.c_path_.c) // 3
    sets, truth = [], []
    for train, test in folds.split(X, y):
        fold = clone(model).set_params(c=model.c_path_.c[i]).fit(X[train], y[train])
        sets.append(fold.predict_set(X[test], "maximality"))
        truth.append(y[test])
    expected = scores_by_hand(np.concatenate(truth), np.concatenate(sets))
    np.testing.assert_allclose(as_table(model.c_path_)[i], expected, rtol=1e-12)


def test_listed_c_are_tried_and_no_others():
    X, y, _ = draw(43, 3, 1, counts=(20, 25, 30))
    listed = [4.0, 0.5, 2.0]
    model = published(c=listed, box="scaled").fit(X, y)
    tried = model.c_path_.c  # up to where no larger one can win
    np.testing.assert_array_equal(tried, sorted(listed)[: len(tried)])
    assert model.c_ in tried
    auto = published(c="auto", box="scaled").fit(X, y).c_path_
    both = np.intersect1d(tried, auto.c)
    assert len(both) > 0
    ours, theirs = (as_table(p)[np.searchsorted(p.c, both)] for p in (model.c_path_, auto))
    np.testing.assert_allclose(ours, theirs, rtol=1e-12)


def test_a_path_does_not_outlive_its_fit():
    X, y, _ = draw(44, 2, 1)
    model = published(c="auto").fit(X, y)
    assert not hasattr(model.set_params(c=1.0).fit(X, y), "c_path_")


def test_classes_too_rare_for_the_folds():
    rng = np.random.default_rng(6)
    X, y = rng.normal(size=(40, 2)), np.repeat([0, 1, 2], [20, 19, 1])
    model = published(c="auto").fit(X, y)
    # The only row of its class is judged by models that have never seen the class.
    assert model.c_path_.coverage.max() < 1
    assert model.predict_set(X, "maximality").shape == (40, 3)


def test_caution_pays_where_classes_overlap():
    rng = np.random.default_rng(5)
    y = np.repeat([0, 1], 12)
    X = rng.normal(size=(24, 2)) + 0.8 * y[:, None]
    model = published(c="auto", scoring="u80").fit(X, y)
    assert model.c_ > 0
    assert model.c_path_.u80.max() > model.c_path_.u80[0]
