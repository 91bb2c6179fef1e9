"""NestedDichotomyClassifier: products along paths, log loss, depths, labels, weights, seeds."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import AdaBoostClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from dubito.dichotomies import DichotomyTree, NestedDichotomyClassifier

from reference.dichotomies import NestedDichotomy, in_pairs, node_losses, tight_logistic

STRUCTURES = [
    "clustered",
    "clustered_half",
    "centroid_pair",
    "random_pair",
    "random",
    "class_balanced",
    "data_balanced",
]
X, Y = load_digits(return_X_y=True)
X, Y = X[:500], Y[:500]
TREE = (((0, 6), (4, (9, 7))), ((8, 1), (2, (3, 5))))


def by_label(model, table):
    return dict(zip(model.classes_.tolist(), table.T, strict=True))


@pytest.fixture(scope="module", params=STRUCTURES)
def fitted(request):
    return NestedDichotomyClassifier(structure=request.param, random_state=3, internal=None).fit(
        X, Y
    )


def test_rows_sum_to_one(fitted):
    proba = fitted.predict_proba(X)
    assert proba.shape == (len(X), 10)
    assert proba.dtype == np.float64
    assert (proba > 0).all()
    np.testing.assert_allclose(proba.sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_allclose(np.exp(fitted.predict_log_proba(X)), proba, rtol=1e-12)


def test_probabilities_are_products_along_paths(fitted):
    nested = fitted.tree_.to_nested()
    by_hand = NestedDichotomy(nested, tight_logistic()).fit(X, Y).proba(X)
    found = by_label(fitted, fitted.predict_proba(X))
    for label, wanted in by_hand.items():
        np.testing.assert_allclose(found[label], wanted, atol=1e-5)


def test_log_loss_is_the_sum_of_the_losses_of_nodes(fitted):
    """Leathart et al. 2019, Proposition 1."""
    log_proba = by_label(fitted, fitted.predict_log_proba(X))
    losses = node_losses(in_pairs(fitted.tree_.to_nested()), log_proba, Y)
    assert len(losses) == 9
    total = len(Y) * log_loss(Y, fitted.predict_proba(X))
    assert sum(losses.values()) == pytest.approx(total, rel=1e-9)


def test_the_prediction_is_the_most_probable_class(fitted):
    best = fitted.classes_[fitted.predict_proba(X).argmax(axis=1)]
    np.testing.assert_array_equal(fitted.predict(X), best)
    assert fitted.score(X, Y) > 0.85


def test_probabilities_at_a_depth_are_sums_over_groups(fitted):
    tree, proba = fitted.tree_, by_label(fitted, fitted.predict_proba(X))
    for depth in range(tree.depth + 2):
        groups = tree.cut(depth)
        found = fitted.predict_proba_at_depth(X, depth)
        assert found.shape == (len(X), groups.max() + 1)
        np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-12)
        for group in range(groups.max() + 1):
            below = sum(proba[label] for label in tree.leaves[groups == group].tolist())
            np.testing.assert_allclose(found[:, group], below, rtol=1e-9)
    order = np.searchsorted(fitted.classes_, tree.leaves)
    np.testing.assert_allclose(found, fitted.predict_proba(X)[:, order], rtol=1e-12)


def test_groups_at_a_depth_with_external_calibration():
    model = NestedDichotomyClassifier(structure=TREE, external="vector", random_state=0).fit(X, Y)
    total = model.predict_proba_at_depth(X, 1)
    right = model.predict_proba(X)[:, [8, 1, 2, 3, 5]].sum(axis=1)
    np.testing.assert_allclose(total[:, 1], right, rtol=1e-9)


@pytest.mark.parametrize("depth", [-1, 1.5, "deep", None])
def test_invalid_depths_raise(fitted, depth):
    with pytest.raises((ValueError, TypeError), match="depth"):
        fitted.predict_proba_at_depth(X, depth)


@pytest.mark.parametrize(
    "structure", [TREE, DichotomyTree.from_nested(TREE)], ids=["pairs", "tree"]
)
def test_a_given_tree_is_used(structure):
    model = NestedDichotomyClassifier(structure=structure, internal=None).fit(X, Y)
    assert model.tree_ == DichotomyTree.from_nested(TREE)
    by_hand = NestedDichotomy(TREE, tight_logistic()).fit(X, Y).proba(X)
    for label, found in by_label(model, model.predict_proba(X)).items():
        np.testing.assert_allclose(found, by_hand[label], atol=1e-5)


def test_leaves_without_rows_are_omitted():
    wider = ((TREE, ("none", (10, 11))), 12)
    plain = NestedDichotomyClassifier(structure=TREE, random_state=0, internal=None).fit(X, Y)
    model = NestedDichotomyClassifier(
        structure=((TREE, (10, 11)), 12), random_state=0, internal=None
    ).fit(X, Y)
    assert model.tree_ == plain.tree_
    np.testing.assert_array_equal(model.predict_proba(X), plain.predict_proba(X))
    named = NestedDichotomyClassifier(structure=wider, random_state=0, internal=None).fit(X, Y)
    assert named.tree_.n_classes == 10
    groups = NestedDichotomyClassifier(
        structure=((0, 1, 2), (3, 4, 5, 6, 7, 8, 9)), internal=None
    ).fit(X, Y)
    assert groups.tree_ == DichotomyTree.from_nested(((0, 1, 2), (3, 4, 5, 6, 7, 8, 9)))


@pytest.mark.parametrize(
    "estimator",
    [
        GaussianNB(),
        GaussianNB(var_smoothing=1e-3),
        GaussianNB(priors=[0.5, 0.5]),
        MultinomialNB(),
        MultinomialNB(alpha=0.1, fit_prior=False),
        LinearDiscriminantAnalysis(shrinkage=0.1, solver="lsqr"),
        make_pipeline(StandardScaler(), LogisticRegression()),
    ],
    ids=lambda estimator: str(estimator)[:40],
)
def test_any_classifier_at_the_nodes(estimator):
    # No two values are equal: among equal splits a decision tree chooses by the order of rows.
    rows = X[:, 10:40] + np.random.default_rng(0).random((len(X), 30))
    model = NestedDichotomyClassifier(estimator, structure=TREE, internal=None).fit(rows, Y)
    by_hand = NestedDichotomy(TREE, estimator).fit(rows, Y).proba(rows)
    for label, found in by_label(model, model.predict_proba(rows)).items():
        np.testing.assert_allclose(found, by_hand[label], atol=1e-6)
    np.testing.assert_allclose(model.predict_proba(rows).sum(axis=1), 1.0)


@pytest.mark.parametrize(
    "estimator", [DecisionTreeClassifier(max_depth=3, random_state=0), KNeighborsClassifier(7)]
)
def test_probabilities_of_0_and_1_are_raised_to_a_floor(estimator):
    """A node that gives 0 to a training row has half its smallest positive probability as floor."""
    rows = X[:, 10:40] + np.random.default_rng(0).random((len(X), 30))
    small = np.isin(Y, np.unique(Y)[:2])
    pair = tuple(np.unique(Y)[:2].tolist())
    model = NestedDichotomyClassifier(estimator, structure=pair, internal=None).fit(
        rows[small], Y[small]
    )
    plain = estimator.fit(rows[small], Y[small]).predict_proba(rows)
    of_training_rows = plain[small]
    floor = np.clip(0.5 * of_training_rows[of_training_rows > 0].min(), 1e-16, 0.01)
    assert (of_training_rows == 0).any()
    raised = np.maximum(plain, floor)
    wanted = raised / raised.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(rows), wanted, atol=1e-12)


def test_boosted_trees():
    """AdaBoost varies by 0.05 with the order of rows, so that equality cannot be tested."""
    boosted = AdaBoostClassifier(DecisionTreeClassifier(max_depth=3), n_estimators=5)
    model = NestedDichotomyClassifier(boosted, structure=TREE, random_state=0, internal=None).fit(
        X, Y
    )
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    assert (model.predict_proba(X) > 0).all()
    assert model.score(X, Y) > 0.95


def test_every_node_has_a_seed_of_its_own():
    forest = RandomForestClassifier(5, max_features=1)
    first, second = (
        NestedDichotomyClassifier(forest, structure=TREE, random_state=seed, internal=None).fit(
            X, Y
        )
        for seed in (0, 0)
    )
    other = NestedDichotomyClassifier(forest, structure=TREE, random_state=1, internal=None).fit(
        X, Y
    )
    np.testing.assert_array_equal(first.predict_proba(X), second.predict_proba(X))
    assert (first.predict_proba(X) != other.predict_proba(X)).any()


def test_label_names_do_not_matter():
    names = np.array(list("jcfaibgehd"))

    def renamed(nested):
        return tuple(map(renamed, nested)) if isinstance(nested, tuple) else str(names[nested])

    plain = NestedDichotomyClassifier(structure=TREE, random_state=0, internal=None).fit(X, Y)
    model = NestedDichotomyClassifier(structure=renamed(TREE), random_state=0, internal=None).fit(
        X, names[Y]
    )
    assert model.classes_.tolist() == sorted(names)
    columns = np.searchsorted(model.classes_, names)
    np.testing.assert_allclose(
        model.predict_proba(X)[:, columns], plain.predict_proba(X), atol=1e-6
    )


def test_the_order_of_rows_does_not_matter():
    shuffled = np.random.default_rng(0).permutation(len(Y))
    plain = NestedDichotomyClassifier(structure=TREE, internal=None).fit(X, Y)
    model = NestedDichotomyClassifier(structure=TREE, internal=None).fit(X[shuffled], Y[shuffled])
    np.testing.assert_allclose(model.predict_proba(X), plain.predict_proba(X), atol=1e-6)


def test_swapping_sides_does_not_matter():
    def mirrored(nested):
        return tuple(map(mirrored, nested[::-1])) if isinstance(nested, tuple) else nested

    plain = NestedDichotomyClassifier(structure=TREE, internal=None).fit(X, Y)
    model = NestedDichotomyClassifier(structure=mirrored(TREE), internal=None).fit(X, Y)
    np.testing.assert_allclose(model.predict_proba(X), plain.predict_proba(X), atol=1e-6)


def test_rows_of_weight_zero_are_ignored():
    weight = np.ones(len(Y))
    weight[:400:7] = 0.0
    kept = weight > 0
    model = NestedDichotomyClassifier(random_state=0, internal="platt")
    weighted = clone(model).fit(X, Y, sample_weight=weight)
    without = model.fit(X[kept], Y[kept])
    assert weighted.tree_ == without.tree_
    np.testing.assert_allclose(weighted.predict_proba(X), without.predict_proba(X), atol=1e-6)
    with pytest.raises(ValueError, match="class 3 have weight 0"):
        model.fit(X, Y, sample_weight=np.where(Y == 3, 0.0, 1.0))


@pytest.mark.parametrize(
    "model",
    [
        NestedDichotomyClassifier(),
        NestedDichotomyClassifier(structure="random_pair", internal="isotonic"),
        NestedDichotomyClassifier(GaussianNB(), structure="random", internal="platt"),
        NestedDichotomyClassifier(DecisionTreeClassifier(), external="vector"),
        NestedDichotomyClassifier(internal="platt", external="vector", dtype=np.float32),
    ],
    ids=["plain", "pairs", "bayes", "trees", "both"],
)
def test_results_depend_on_the_seed_not_on_the_number_of_jobs(model):
    one, two, again = (
        clone(model).set_params(random_state=7, n_jobs=n_jobs).fit(X, Y) for n_jobs in (1, 2, None)
    )
    other = clone(model).set_params(random_state=8).fit(X, Y)
    assert one.tree_ == two.tree_ == again.tree_ != other.tree_
    for copy in (two, again):
        np.testing.assert_array_equal(copy.predict_proba(X), one.predict_proba(X))
    generator = clone(model).set_params(random_state=np.random.RandomState(7)).fit(X, Y)
    assert generator.predict_proba(X).shape == (len(X), 10)


@pytest.mark.parametrize("external", [None, "vector"])
@pytest.mark.parametrize("internal", [None, "platt", "isotonic"])
@pytest.mark.parametrize("form", ["dense", "sparse", "float32", "columns first"])
def test_a_row_does_not_depend_on_others(form, internal, external):
    rows = {
        "dense": X,
        "sparse": sparse.csr_matrix(X),
        "float32": X.astype(np.float32),
        "columns first": np.asfortranarray(X),
    }[form]
    model = NestedDichotomyClassifier(
        internal=internal,
        external=external,
        dtype=np.float32 if form == "float32" else None,
        random_state=0,
    ).fit(rows, Y)
    proba, log_proba = model.predict_proba(rows), model.predict_log_proba(rows)
    for i in (0, 1, 63, 64, 250, 499):
        np.testing.assert_array_equal(model.predict_proba(rows[i : i + 1])[0], proba[i])
        np.testing.assert_array_equal(model.predict_log_proba(rows[i : i + 1])[0], log_proba[i])
    np.testing.assert_array_equal(model.predict_proba(rows[3:77]), proba[3:77])


@pytest.mark.parametrize("estimator", [GaussianNB(), MultinomialNB()], ids=str)
def test_a_row_does_not_depend_on_others_for_naive_bayes(estimator):
    model = NestedDichotomyClassifier(estimator, internal="isotonic", random_state=0).fit(X, Y)
    proba = model.predict_proba(X)
    for i in (0, 7, 499):
        np.testing.assert_array_equal(model.predict_proba(X[i : i + 1])[0], proba[i])


def test_copies_and_pickles(fitted):
    again = pickle.loads(pickle.dumps(fitted))  # noqa: S301 - our own
    np.testing.assert_array_equal(again.predict_proba(X), fitted.predict_proba(X))
    copy = clone(fitted)
    assert not any(name.endswith("_") for name in vars(copy))
    np.testing.assert_array_equal(copy.fit(X, Y).predict_proba(X), fitted.predict_proba(X))


def test_prediction_does_not_change_the_model(fitted):
    before = pickle.dumps(fitted)
    fitted.predict_proba(X)
    fitted.predict_topk(X, 3)
    fitted.predict_proba_at_depth(X, 2)
    assert pickle.dumps(fitted) == before


def test_fit_does_not_change_parameters():
    estimator, tree = LogisticRegression(C=2.0), DichotomyTree.from_nested(TREE)
    model = NestedDichotomyClassifier(estimator, structure=tree, internal="platt").fit(X, Y)
    assert model.estimator is estimator
    assert model.structure is tree
    assert not hasattr(estimator, "coef_")


def test_searches_and_pipelines():
    grid = {"estimator__C": [1e-3, 1.0], "structure": ["random", "clustered"]}
    model = NestedDichotomyClassifier(LogisticRegression(), random_state=0)
    search = GridSearchCV(model, grid, cv=3, scoring="neg_log_loss").fit(X, Y)
    assert search.best_params_["structure"] == "clustered"
    assert search.predict_proba(X).shape == (len(X), 10)
    pipeline = make_pipeline(StandardScaler(), NestedDichotomyClassifier(random_state=0))
    assert cross_val_score(pipeline, X, Y, cv=3).min() > 0.7
    assert pipeline.fit(X, Y).predict_log_proba(X[:2]).shape == (2, 10)


@settings(max_examples=20)
@given(st.integers(2, 9), st.integers(0, 10_000), st.sampled_from(STRUCTURES))
def test_small_problems(n_classes, seed, structure):
    rng = np.random.default_rng(seed)
    y = np.append(np.arange(n_classes), rng.integers(n_classes, size=rng.integers(3 * n_classes)))
    rows = np.round(rng.normal(size=(len(y), 3)) + y[:, None], rng.integers(3))
    model = NestedDichotomyClassifier(structure=structure, random_state=seed, internal=None).fit(
        rows, y
    )
    proba = model.predict_proba(rows)
    np.testing.assert_allclose(logsumexp(model.predict_log_proba(rows), axis=1), 0, atol=1e-12)
    by_hand = NestedDichotomy(model.tree_.to_nested(), tight_logistic()).fit(rows, y).proba(rows)
    for label, found in by_label(model, proba).items():
        np.testing.assert_allclose(found, by_hand[label], atol=1e-5)


def test_a_chain_of_three_hundred():
    n_classes = 300
    rng = np.random.default_rng(1)
    y = np.repeat(np.arange(n_classes), 3)
    rows = rng.normal(size=(len(y), 5)) + 4 * rng.normal(size=(n_classes, 5))[y]
    chain = DichotomyTree.from_splits(np.arange(n_classes), np.ones(n_classes - 1, dtype=int))
    model = NestedDichotomyClassifier(structure=chain, internal="platt").fit(rows, y)
    assert model.tree_.depth == n_classes - 1
    np.testing.assert_allclose(model.predict_proba(rows).sum(axis=1), 1.0)
    assert model.predict_topk(rows, 4).shape == (len(y), 4)
    assert pickle.loads(pickle.dumps(model)).tree_ == chain  # noqa: S301 - our own


def test_two_thousand_classes():
    n_classes = 2_000
    rng = np.random.default_rng(2)
    y = np.repeat(np.arange(n_classes), 4)
    rows = rng.normal(size=(len(y), 12)) + 4 * rng.normal(size=(n_classes, 12))[y]
    model = NestedDichotomyClassifier(random_state=0, internal=None).fit(rows, y)
    assert model.tree_.depth <= 12
    assert model.score(rows, y) > 0.5
    np.testing.assert_allclose(model.predict_proba(rows[:50]).sum(axis=1), 1.0)
