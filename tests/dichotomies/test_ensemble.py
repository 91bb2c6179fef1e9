"""NestedDichotomyEnsemble: geometric mean with a temperature, or arithmetic mean."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB

from dubito.calibration import EvidentialLogisticCalibrator, TemperatureCalibrator
from dubito.decision import interval_dominance
from dubito.dichotomies import NestedDichotomyClassifier, NestedDichotomyEnsemble

from reference.dichotomies import RowRecorder

X, Y = load_digits(return_X_y=True)
TRAIN, REST = np.arange(0, 1797, 3), np.arange(1, 1797, 3)


def mean_log(model, rows):
    return np.mean([tree.predict_log_proba(rows) for tree in model.estimators_], axis=0)


@pytest.fixture(scope="module")
def geometric():
    return NestedDichotomyEnsemble(n_estimators=3, random_state=0).fit(X[TRAIN], Y[TRAIN])


@pytest.fixture(scope="module")
def arithmetic():
    model = NestedDichotomyEnsemble(
        NestedDichotomyClassifier(internal=None),
        n_estimators=3,
        pooling="arithmetic",
        external=None,
        random_state=0,
    )
    return model.fit(X[TRAIN], Y[TRAIN])


def test_geometric_pooling(geometric):
    proba = geometric.predict_proba(X[REST])
    wanted = softmax(mean_log(geometric, X[REST]) / geometric.temperature_, axis=1)
    np.testing.assert_allclose(proba, wanted, rtol=1e-9)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    np.testing.assert_allclose(
        geometric.predict_log_proba(X[REST]),
        log_softmax(mean_log(geometric, X[REST]) / geometric.temperature_, axis=1),
        rtol=1e-9,
        atol=1e-12,
    )


def test_arithmetic_pooling(arithmetic):
    proba = arithmetic.predict_proba(X[REST])
    wanted = np.mean([tree.predict_proba(X[REST]) for tree in arithmetic.estimators_], axis=0)
    np.testing.assert_allclose(proba, wanted, rtol=1e-9)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    np.testing.assert_allclose(arithmetic.predict_log_proba(X[REST]), np.log(wanted), rtol=1e-9)


@pytest.mark.parametrize("name", ["geometric", "arithmetic"])
def test_methods_of_ensembles(name, request):
    model = request.getfixturevalue(name)
    proba = model.predict_proba(X[REST])
    np.testing.assert_array_equal(model.classes_, np.arange(10))
    np.testing.assert_array_equal(model.predict(X[REST]), proba.argmax(axis=1))
    np.testing.assert_array_equal(model.predict_topk(X[REST], 1)[:, 0], proba.argmax(axis=1))
    assert model.n_features_in_ == 64
    assert len(model.estimators_) == 3
    assert len({tree.tree_ for tree in model.estimators_}) == 3
    assert model.score(X[REST], Y[REST]) > 0.9
    for i in (0, 40, 598):
        np.testing.assert_array_equal(model.predict_proba(X[REST][i : i + 1])[0], proba[i])
    again = pickle.loads(pickle.dumps(model))  # noqa: S301 - our own
    np.testing.assert_array_equal(again.predict_proba(X[REST]), proba)


def test_the_mean_of_trees_is_better_than_one(geometric, arithmetic):
    one = np.mean(
        [log_loss(Y[REST], tree.predict_proba(X[REST])) for tree in arithmetic.estimators_]
    )
    for model in (geometric, arithmetic):
        assert log_loss(Y[REST], model.predict_proba(X[REST])) < 0.8 * one


def test_a_given_temperature():
    for temperature in (1.0, 0.4):
        model = NestedDichotomyEnsemble(n_estimators=2, temperature=temperature, random_state=1)
        model.fit(X[TRAIN], Y[TRAIN])
        assert model.temperature_ == pytest.approx(temperature)
        wanted = softmax(mean_log(model, X[REST]) / temperature, axis=1)
        np.testing.assert_allclose(model.predict_proba(X[REST]), wanted, rtol=1e-9)


def make_noisy(n=960, n_classes=12, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    rows = rng.normal(size=(n, 6)) + 1.3 * rng.normal(size=(n_classes, 6))[y]
    return np.column_stack([np.arange(n), rows]), y


def test_the_temperature_minimises_the_loss_of_held_out_rows():
    rows, labels = make_noisy()
    RowRecorder.fitted_rows.clear()
    model = NestedDichotomyEnsemble(
        NestedDichotomyClassifier(RowRecorder(), structure="random"),
        n_estimators=3,
        holdout_size=0.25,
        random_state=0,
    ).fit(rows, labels)
    held = np.setdiff1d(np.arange(len(labels)), list(frozenset.union(*RowRecorder.fitted_rows)))
    assert (np.bincount(labels[held]) == 20).all()
    pooled = mean_log(model, rows[held])

    def loss(temperature):
        return log_loss(labels[held], softmax(pooled / temperature, axis=1))

    best = minimize_scalar(loss, bounds=(0.01, 10), method="bounded", options={"xatol": 1e-10})
    assert loss(model.temperature_) < loss(1.0)
    assert loss(model.temperature_) < best.fun + 1e-4
    # Not exactly the minimum: the calibrator adds a quarter of a row of unknown label.
    calibrator = TemperatureCalibrator(input="logits").fit(pooled, labels[held])
    assert model.temperature_ == pytest.approx(1 / calibrator.slope_, rel=1e-6)


def test_seeds_and_jobs():
    base = NestedDichotomyEnsemble(n_estimators=3)
    one, two, again = (
        clone(base).set_params(random_state=4, n_jobs=n_jobs).fit(X[TRAIN], Y[TRAIN])
        for n_jobs in (1, 2, None)
    )
    other = clone(base).set_params(random_state=5).fit(X[TRAIN], Y[TRAIN])
    for model in (two, again):
        np.testing.assert_array_equal(model.predict_proba(X[REST]), one.predict_proba(X[REST]))
    assert (other.predict_proba(X[REST]) != one.predict_proba(X[REST])).any()


def test_more_trees_begin_with_the_same_ones():
    few, more = (
        NestedDichotomyEnsemble(n_estimators=n, random_state=0).fit(X[TRAIN], Y[TRAIN])
        for n in (2, 3)
    )
    assert [tree.tree_ for tree in few.estimators_] == [tree.tree_ for tree in more.estimators_[:2]]


@pytest.mark.parametrize("pooling", ["geometric", "arithmetic"])
def test_any_nodes_and_sparse_rows(pooling):
    for estimator in (
        NestedDichotomyClassifier(internal="platt", external="vector"),
        NestedDichotomyClassifier(GaussianNB(), internal="isotonic", structure="random_pair"),
        NestedDichotomyClassifier(LogisticRegression(C=0.01), dtype=np.float32),
    ):
        model = NestedDichotomyEnsemble(estimator, n_estimators=2, pooling=pooling, random_state=0)
        assert model.fit(X[TRAIN], Y[TRAIN]).score(X[REST], Y[REST]) > 0.7
        assert not hasattr(estimator, "tree_")
    thin = sparse.csr_matrix(X)
    model = NestedDichotomyEnsemble(n_estimators=2, pooling=pooling, random_state=0)
    model.fit(thin[TRAIN], Y[TRAIN])
    np.testing.assert_allclose(model.predict_proba(thin), model.predict_proba(X), rtol=1e-6)


def test_a_given_tree_makes_equal_trees():
    tree = tuple(range(10))
    model = NestedDichotomyEnsemble(
        NestedDichotomyClassifier(structure=tree), n_estimators=2, temperature=1.0, random_state=0
    ).fit(X[TRAIN], Y[TRAIN])
    single = NestedDichotomyClassifier(structure=tree, internal=None).fit(X[TRAIN], Y[TRAIN])
    np.testing.assert_allclose(
        model.predict_proba(X[REST]), single.predict_proba(X[REST]), atol=1e-6
    )


def test_weights():
    count = np.arange(len(TRAIN)) % 3
    model = NestedDichotomyEnsemble(
        NestedDichotomyClassifier(structure=tuple(range(10))), temperature=1.0, n_estimators=2
    )
    weighted = clone(model).fit(X[TRAIN], Y[TRAIN], sample_weight=count)
    repeated = model.fit(np.repeat(X[TRAIN], count, axis=0), np.repeat(Y[TRAIN], count))
    np.testing.assert_allclose(
        weighted.predict_proba(X[REST]), repeated.predict_proba(X[REST]), atol=1e-5
    )


def test_one_row_for_each_class():
    for options in ({"temperature": 1.0}, {"pooling": "arithmetic"}):
        model = NestedDichotomyEnsemble(n_estimators=2, random_state=0, **options)
        proba = model.fit(np.eye(6), np.arange(6)).predict_proba(np.eye(6))
        np.testing.assert_allclose(proba.sum(axis=1), 1.0)
        assert (proba.argmax(axis=1) == np.arange(6)).all()
    # No row can be held out, so no temperature is fitted.
    assert NestedDichotomyEnsemble(n_estimators=2).fit(np.eye(6), np.arange(6)).temperature_ == 1.0


def test_another_classifier_is_that_of_the_nodes():
    bare, named = (
        NestedDichotomyEnsemble(estimator, n_estimators=2, random_state=0).fit(X[TRAIN], Y[TRAIN])
        for estimator in (GaussianNB(), NestedDichotomyClassifier(GaussianNB()))
    )
    np.testing.assert_array_equal(bare.predict_proba(X[REST]), named.predict_proba(X[REST]))


def test_means_of_bounds():
    single = NestedDichotomyClassifier(internal=EvidentialLogisticCalibrator())
    model = NestedDichotomyEnsemble(
        single, n_estimators=2, pooling="arithmetic", external=None, random_state=0
    ).fit(X[TRAIN], Y[TRAIN])
    rows = X[REST[:100]]
    bounds, proba = model.predict_bounds(rows), model.predict_proba(rows)
    parts = [tree.predict_bounds(rows) for tree in model.estimators_]
    np.testing.assert_allclose(bounds.lower, np.mean([b.lower for b in parts], axis=0), atol=1e-12)
    np.testing.assert_allclose(bounds.upper, np.mean([b.upper for b in parts], axis=0), atol=1e-12)
    assert (bounds.lower <= proba + 1e-12).all()
    assert (proba <= bounds.upper + 1e-12).all()
    sets = model.predict_set(rows, rule="interval_dominance")
    np.testing.assert_array_equal(sets, interval_dominance(bounds))
    assert model.predict_set(rows).any(axis=1).all()
    alone = model.predict_bounds(rows[3:4])
    np.testing.assert_array_equal(alone.lower[0], bounds.lower[3])


@pytest.mark.parametrize(
    ("model", "word"),
    [
        (NestedDichotomyEnsemble(temperature=1.0), 'external="auto"'),
        (
            NestedDichotomyEnsemble(
                NestedDichotomyClassifier(internal=EvidentialLogisticCalibrator()),
                external=None,
                temperature=0.5,
            ),
            'external="auto"',
        ),
        (
            NestedDichotomyEnsemble(
                NestedDichotomyClassifier(internal=None), pooling="arithmetic", external=None
            ),
            "vidential",
        ),
    ],
    ids=["default", "geometric", "precise"],
)
@pytest.mark.parametrize("method", ["predict_bounds", "predict_set"])
def test_methods_of_bounds_are_absent_without_bounds(model, word, method):
    assert not hasattr(model, method)
    with pytest.raises(AttributeError) as caught:
        getattr(model, method)
    assert word in f"{caught.value} {caught.value.__cause__}"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"pooling": "median"}, "'pooling' parameter.*'median'"),
        ({"n_estimators": 0}, "'n_estimators' parameter.*Got 0"),
        ({"temperature": -1.0}, "'temperature' parameter.*Got -1.0"),
        ({"temperature": "warm"}, "'temperature' parameter.*'warm'"),
        ({"holdout_size": 1.0}, "'holdout_size' parameter.*Got 1.0"),
        ({"estimator": "tree"}, "'estimator' parameter.*'tree'"),
        ({"pooling": "arithmetic", "temperature": 2.0}, "temperature=2.0 is that of a geometric"),
    ],
    ids=str,
)
def test_invalid_parameters_raise(options, words):
    with pytest.raises((ValueError, TypeError), match=words):
        NestedDichotomyEnsemble(**options).fit(X[TRAIN], Y[TRAIN])


def test_searches():
    model = NestedDichotomyEnsemble(
        NestedDichotomyClassifier(LogisticRegression()), n_estimators=2, random_state=0
    )
    grid = {"estimator__estimator__C": [1e-4, 1.0], "pooling": ["geometric", "arithmetic"]}
    search = GridSearchCV(model, grid, cv=2, scoring="neg_log_loss").fit(X[TRAIN], Y[TRAIN])
    assert search.best_params_["estimator__estimator__C"] in (1e-4, 1.0)
    assert np.isfinite(search.best_score_)
