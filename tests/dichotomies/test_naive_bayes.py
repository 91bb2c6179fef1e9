"""Naive Bayes from sums over classes, compared with scikit-learn fitted at every node."""

from __future__ import annotations

import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.naive_bayes import GaussianNB, MultinomialNB

from dubito.dichotomies import DichotomyTree, NestedDichotomyClassifier
from dubito.dichotomies._kernels.gaussian_naive_bayes import fit_gaussian_nodes
from dubito.dichotomies._kernels.leaf_order import node_spans
from dubito.dichotomies._kernels.multinomial_naive_bayes import (
    fit_multinomial_nodes,
    smoothing_counts,
)

SEEDS = st.integers(0, 2**32 - 1)


def fit_gaussian(X, weight, offset, tree, estimator, **options):
    weight = np.ones(X.shape[0]) if weight is None else weight
    options["smoothing"] = estimator.var_smoothing
    return fit_gaussian_nodes(X, weight, offset, tree, **options)


def fit_multinomial(X, weight, offset, tree, estimator, **options):
    weight = np.ones(X.shape[0]) if weight is None else weight
    options["fit_prior"] = estimator.fit_prior
    options["alpha"] = smoothing_counts(
        estimator.alpha, X.shape[1], force_alpha=estimator.force_alpha
    )
    return fit_multinomial_nodes(X, weight, offset, tree, **options)


def draw_tree(rng, n_classes):
    """Return a tree with random splits."""
    sizes, todo = [], [n_classes]
    while todo:
        size = todo.pop()
        if size > 1:
            left = int(rng.integers(1, size))
            sizes.append(left)
            todo += [size - left, left]
    return DichotomyTree.from_splits(np.arange(n_classes), sizes)


def draw_rows(rng, counts, n_features, *, kind):
    """Return rows in leaf order, and the start of each leaf."""
    n = sum(counts)
    if kind == "gaussian":
        X = rng.normal(size=(n, n_features)) * rng.lognormal(size=n_features)
        X += np.repeat(rng.normal(size=(len(counts), n_features)), counts, axis=0)
    else:
        X = rng.poisson(rng.lognormal(sigma=1.5, size=n_features), size=(n, n_features)) * 1.0
        X *= rng.random(X.shape) < 0.5
    return X, np.concatenate(([0], np.cumsum(counts)))


def draw(seed, *, kind, weighted, fewest=1):
    rng = np.random.default_rng(seed)
    counts = rng.integers(fewest, 8, size=rng.integers(2, 9))
    X, offset = draw_rows(rng, counts, int(rng.integers(1, 7)), kind=kind)
    weight = rng.lognormal(size=len(X)) if weighted else None
    return X, weight, offset, draw_tree(rng, len(counts))


def refitted(estimator, X, rows, middle, weight):
    """Return scikit-learn's model of the two sides of a node."""
    node_weight = None if weight is None else weight[rows]
    return clone(estimator).fit(X[rows], rows >= middle, sample_weight=node_weight)


def assert_close(ours, joint, *, rtol=1e-9):
    """Compare log-odds, relative to the log-likelihoods whose difference they are."""
    theirs = joint[:, 1] - joint[:, 0]
    assert np.all(np.abs(ours - theirs) <= rtol * (1 + np.abs(joint).sum(axis=1)))


def assert_like_refits(fit, estimator, drawn, X_new, *, rtol=1e-9):
    """Compare the scores of all nodes with those of models fitted to their rows."""
    X, weight, offset, tree = drawn
    scores = fit(X, weight, offset, tree, estimator)[0].scores(X_new)
    assert scores.shape == (X_new.shape[0], tree.n_nodes)
    for t in range(tree.n_nodes):
        rows = np.arange(offset[tree.start[t]], offset[tree.stop[t]])
        model = refitted(estimator, X, rows, offset[tree.split[t]], weight)
        assert_close(scores[:, t], model.predict_joint_log_proba(X_new), rtol=rtol)


def assert_cross_like_refits(fit, estimator, drawn, n_folds, *, rtol=1e-9):
    """Compare out-of-fold scores with models fitted to the other folds of a node's rows."""
    X, weight, offset, tree = drawn
    cross = fit(X, weight, offset, tree, estimator, n_folds=n_folds)[1]
    start = node_spans(offset, tree).packed_start()
    assert len(cross) == start[-1]
    for t in range(tree.n_nodes):
        begin, middle, end = (offset[a[t]] for a in (tree.start, tree.split, tree.stop))
        packed = cross[start[t] : start[t + 1]]
        if min(middle - begin, end - middle) < 2:
            assert np.isnan(packed).all()
            continue
        rows = np.arange(begin, end)
        for fold in range(n_folds):
            held = rows % n_folds == fold
            if not held.any():
                continue
            model = refitted(estimator, X, rows[~held], middle, weight)
            assert_close(packed[held], model.predict_joint_log_proba(X[rows[held]]), rtol=rtol)


@given(SEEDS, st.booleans(), st.sampled_from([1e-9, 1e-3, 1.0]))
def test_gaussian_equals_refits(seed, weighted, smoothing):
    # The variance of a single row is epsilon only, so small that rounding errors show.
    drawn = draw(seed, kind="gaussian", weighted=weighted, fewest=1 if smoothing > 1e-9 else 2)
    X_new = np.random.default_rng(seed + 1).normal(size=(5, drawn[0].shape[1]))
    assert_like_refits(fit_gaussian, GaussianNB(var_smoothing=smoothing), drawn, X_new)


@settings(max_examples=40)
@given(SEEDS, st.booleans(), st.sampled_from([2, 3, 5]))
def test_gaussian_out_of_fold_equals_refits(seed, weighted, n_folds):
    drawn = draw(seed, kind="gaussian", weighted=weighted)
    assert_cross_like_refits(fit_gaussian, GaussianNB(var_smoothing=1e-2), drawn, n_folds)


@pytest.mark.parametrize("smoothing", [1e-9, 1e-12])
def test_the_variance_of_a_single_row_is_epsilon(smoothing):
    rng = np.random.default_rng(0)
    X, offset = draw_rows(rng, [1, 1, 3, 1], 4, kind="gaussian")
    tree = DichotomyTree.from_nested(((0, 1), (2, 3)))
    model = fit_gaussian(X, None, offset, tree, GaussianNB(var_smoothing=smoothing))[0]
    assert np.isfinite(model.scores(rng.normal(size=(9, 4)))).all()
    assert_like_refits(
        fit_gaussian, GaussianNB(var_smoothing=smoothing), (X, None, offset, tree), X
    )


def test_constant_features_have_no_effect():
    rng = np.random.default_rng(1)
    X, offset = draw_rows(rng, [4, 3, 5], 3, kind="gaussian")
    tree = DichotomyTree.from_nested((0, (1, 2)))
    constant = np.column_stack((np.full(12, 0.1), X, np.full(12, 1e8 + 0.1)))
    new = constant + rng.normal(size=constant.shape)
    new[:, [0, -1]] = constant[:, [0, -1]]
    given_rows = fit_gaussian(X, None, offset, tree, GaussianNB())[0].scores(new[:, 1:-1])
    with_more = fit_gaussian(constant, None, offset, tree, GaussianNB())[0].scores(new)
    np.testing.assert_allclose(with_more, given_rows, rtol=1e-12)


def test_nodes_without_any_variance_have_the_odds_of_their_weights():
    X = np.full((6, 2), 0.3)
    tree, offset = DichotomyTree.from_nested((0, (1, 2))), np.array([0, 1, 4, 6])
    scores = fit_gaussian(X, None, offset, tree, GaussianNB())[0].scores(X[:2] + 1)
    np.testing.assert_allclose(scores, np.log([[5 / 1, 2 / 3]] * 2), rtol=1e-15)


def test_without_smoothing_a_feature_must_vary_on_both_sides():
    rng = np.random.default_rng(2)
    X, offset = draw_rows(rng, [4, 4], 2, kind="gaussian")
    X[:4, 1] = 7.0
    tree, plain = DichotomyTree.from_nested((0, 1)), GaussianNB(var_smoothing=0)
    scores = fit_gaussian(X, None, offset, tree, plain)[0].scores(X)
    alone = fit_gaussian(X[:, :1], None, offset, tree, plain)[0].scores(X[:, :1])
    np.testing.assert_array_equal(scores, alone)


def exact_log_odds(x, left, right, smoothing):
    """Return the log-odds of one feature, with moments in exact arithmetic."""
    sides = [[Fraction(float(v)) for v in side] for side in (left, right)]
    mean, variance = zip(*map(exact_moments, sides), strict=True)
    epsilon = Fraction(smoothing) * exact_moments(sides[0] + sides[1])[1]
    away = [
        (Fraction(float(x)) - m) ** 2 / (v + epsilon) for m, v in zip(mean, variance, strict=True)
    ]
    ratio = (variance[0] + epsilon) / (variance[1] + epsilon)
    return np.log(len(right) / len(left)) + 0.5 * (np.log(float(ratio)) + float(away[0] - away[1]))


def exact_moments(values):
    mean = sum(values) / len(values)
    return mean, sum((v - mean) ** 2 for v in values) / len(values)


@pytest.mark.parametrize("shift", [0.0, 1e8, -1e12])
def test_means_far_from_zero_are_accurate_to_their_rounding(shift):
    rng = np.random.default_rng(3)
    counts = [9, 2, 5, 7]
    X = shift + np.concatenate([rng.normal(m, 1, size=(c, 1)) for m, c in enumerate(counts)])
    offset = np.concatenate(([0], np.cumsum(counts)))
    tree = DichotomyTree.from_nested(((0, 1), (2, 3)))
    scores = fit_gaussian(X, None, offset, tree, GaussianNB())[0].scores(X)
    spacing = np.spacing(abs(shift))  # the rounding error of a mean
    for t in range(3):
        left, right = (
            X[offset[a[t]] : offset[b[t]], 0]
            for a, b in ((tree.start, tree.split), (tree.split, tree.stop))
        )
        exact = [exact_log_odds(x, left, right, 1e-9) for x in X[:, 0]]
        np.testing.assert_allclose(scores[:, t], exact, rtol=1e-12, atol=1e-12 + 100 * spacing)


def test_very_large_numbers_give_finite_scores():
    X = np.array([[1.0, 0.0], [2.0, 0.0], [3.0, 0.0]])
    tree = DichotomyTree.from_nested((0, 1))
    model = fit_gaussian(X, None, np.array([0, 1, 3]), tree, GaussianNB())[0]
    far = np.array([[1e300, 0.0], [-1e300, 1e300], [0.0, 1e300]])
    assert np.isfinite(model.scores(far)).all()


@given(SEEDS, st.booleans(), st.booleans(), st.sampled_from([1e-3, 1.0, "each"]), st.booleans())
def test_multinomial_equals_refits(seed, weighted, fit_prior, alpha, as_sparse):
    X, weight, offset, tree = draw(seed, kind="counts", weighted=weighted)
    rng = np.random.default_rng(seed + 1)
    alpha = rng.lognormal(size=X.shape[1]) if alpha == "each" else alpha
    X_new = rng.poisson(1.0, size=(5, X.shape[1]))
    X, X_new = (sparse.csr_array(a) if as_sparse else a for a in (X, X_new))
    estimator = MultinomialNB(alpha=alpha, fit_prior=fit_prior)
    assert_like_refits(fit_multinomial, estimator, (X, weight, offset, tree), X_new)


@settings(max_examples=40)
@given(SEEDS, st.booleans(), st.booleans(), st.sampled_from([2, 3, 5]), st.booleans())
def test_multinomial_out_of_fold_equals_refits(seed, weighted, fit_prior, n_folds, as_sparse):
    X, weight, offset, tree = draw(seed, kind="counts", weighted=weighted)
    X = sparse.csr_array(X) if as_sparse else X
    estimator = MultinomialNB(alpha=0.3, fit_prior=fit_prior)
    assert_cross_like_refits(fit_multinomial, estimator, (X, weight, offset, tree), n_folds)


@given(SEEDS)
def test_sparse_and_dense_models_take_both_kinds_of_rows(seed):
    X, weight, offset, tree = draw(seed, kind="counts", weighted=True)
    dense = fit_multinomial(X, weight, offset, tree, MultinomialNB())[0]
    packed = fit_multinomial(sparse.csr_matrix(X), weight, offset, tree, MultinomialNB())[0]
    expected = dense.scores(X)
    for model in (dense, packed):
        for rows in (X, sparse.csr_array(X), sparse.csr_matrix(X)):
            np.testing.assert_allclose(model.scores(rows), expected, rtol=1e-9, atol=1e-10)


def test_stored_zeros_and_repeated_entries_change_nothing():
    data = np.array([1.0, 0.0, 2.0, 1.0, 3.0, 0.0])
    X = sparse.csr_array((data, [2, 0, 2, 1, 0, 1], [0, 3, 4, 6]), shape=(3, 4))
    tree, offset = DichotomyTree.from_nested((0, (1, 2))), np.array([0, 1, 2, 3])
    ours, theirs = (
        fit_multinomial(rows, None, offset, tree, MultinomialNB())[0].scores(rows)
        for rows in (X, X.toarray())
    )
    np.testing.assert_allclose(ours, theirs, rtol=1e-12)


def test_no_smoothing_gives_no_zero_probability():
    X = np.array([[3.0, 0.0, 1.0], [0.0, 2.0, 1.0], [1.0, 1.0, 0.0]])
    tree, offset = DichotomyTree.from_nested((0, (1, 2))), np.array([0, 1, 2, 3])
    for rows in (X, sparse.csr_array(X)):
        zero, smallest = (
            fit_multinomial(rows, None, offset, tree, MultinomialNB(alpha=a))[0].scores(rows)
            for a in (0.0, 1e-10)
        )
        np.testing.assert_array_equal(zero, smallest)
        assert np.isfinite(zero).all()


def test_alpha_that_is_not_forced_is_at_least_that_of_scikit_learn():
    drawn = draw(5, kind="counts", weighted=False)
    estimator = MultinomialNB(alpha=1e-12, force_alpha=False)
    with pytest.warns(UserWarning, match="alpha too small"):
        assert_like_refits(fit_multinomial, estimator, drawn, drawn[0])


def fit_either(kind, X, *rest, **options):
    """Fit the model of this kind of rows."""
    if kind == "gaussian":
        return fit_gaussian(X, *rest, GaussianNB(), **options)
    X = sparse.csr_array(X) if kind == "sparse" else X
    return fit_multinomial(X, *rest, MultinomialNB(), **options)


KINDS = pytest.mark.parametrize("kind", ["gaussian", "counts", "sparse"])


@KINDS
def test_single_precision_rows_are_added_up_in_double(kind):
    X, weight, offset, tree = draw(7, kind=kind, weighted=True)
    X = X.astype(np.float32)
    ours = fit_either(kind, X, weight, offset, tree, n_folds=3)
    theirs = fit_either(kind, X.astype(float), weight, offset, tree, n_folds=3)
    assert ours[1].dtype == np.float64
    np.testing.assert_array_equal(ours[1], theirs[1])
    np.testing.assert_array_equal(ours[0].scores(X), theirs[0].scores(X.astype(float)))


@KINDS
def test_rows_are_independent(kind):
    rng = np.random.default_rng(8)
    X, offset = draw_rows(rng, rng.integers(1, 9, size=23), 37, kind=kind)
    model = fit_either(kind, X, None, offset, draw_tree(rng, 23))[0]
    whole = model.scores(X)
    for i in range(0, len(X), 7):
        np.testing.assert_array_equal(model.scores(X[i : i + 1])[0], whole[i])
    np.testing.assert_array_equal(model.scores(np.asfortranarray(X)[::-1]), whole[::-1])


@KINDS
def test_equal_weights_of_two_are_rows_given_twice(kind):
    X, _, offset, tree = draw(9, kind=kind, weighted=False)
    weighted = fit_either(kind, X, np.full(len(X), 2.0), offset, tree)[0].scores(X)
    twice = fit_either(kind, np.repeat(X, 2, axis=0), None, 2 * offset, tree)[0].scores(X)
    np.testing.assert_allclose(weighted, twice, rtol=1e-9, atol=1e-9)


@KINDS
def test_mirrored_tree_has_opposite_log_odds(kind):
    X, weight, offset, _ = draw(10, kind=kind, weighted=True)
    n_classes = len(offset) - 1
    tree = DichotomyTree.from_splits(np.arange(n_classes), np.arange(n_classes - 1, 0, -1))
    mirrored = DichotomyTree.from_splits(np.arange(n_classes), np.ones(n_classes - 1, dtype=int))
    back = slice(None, None, -1)
    offset_back = offset[-1] - offset[back]
    ours = fit_either(kind, X, weight, offset, tree)[0].scores(X)
    theirs = fit_either(kind, X[back], weight[back], offset_back, mirrored)[0].scores(X)
    np.testing.assert_allclose(ours, -theirs, rtol=1e-9, atol=1e-9)


@KINDS
def test_one_class_has_no_nodes(kind):
    tree = DichotomyTree.from_splits([5], [])
    model, cross = fit_either(kind, np.ones((3, 2)), None, np.array([0, 3]), tree, n_folds=3)
    assert model.scores(np.ones((4, 2))).shape == (4, 0)
    assert cross.shape == (0,)


@KINDS
def test_models_can_be_pickled(kind):
    X, weight, offset, tree = draw(11, kind=kind, weighted=True)
    model = fit_either(kind, X, weight, offset, tree)[0]
    again = pickle.loads(pickle.dumps(model))  # noqa: S301 - our own
    np.testing.assert_array_equal(again.scores(X), model.scores(X))


def test_sparse_models_store_present_features_only():
    """A dense table of this model would have 4e9 numbers."""
    n_classes, n_features = 2_000, 2_000_000
    rng = np.random.default_rng(12)
    columns = rng.integers(n_features, size=5 * n_classes)
    entries = np.ones(len(columns)), columns, np.arange(0, len(columns) + 1, 5)
    X = sparse.csr_array(entries, shape=(n_classes, n_features))
    tree = DichotomyTree.from_nested(tuple(range(n_classes)))
    drawn = X, None, np.arange(n_classes + 1), tree
    model = fit_multinomial(*drawn, MultinomialNB())[0]
    assert len(model.value) <= len(columns) * tree.depth
    pair = np.flatnonzero(tree.stop - tree.start == 2)[-1]
    rows = X[tree.start[pair] : tree.stop[pair]]
    refit = MultinomialNB().fit(rows, [0, 1])
    assert_close(model.scores(rows)[:, pair], refit.predict_joint_log_proba(rows))


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (GaussianNB(var_smoothing=-1), "var_smoothing"),
        (MultinomialNB(alpha=-1), "alpha"),
        (MultinomialNB(alpha=[1.0, 1.0, 1.0]), "alpha"),
    ],
)
def test_invalid_parameters_raise_as_in_scikit_learn(estimator, message):
    with pytest.raises(ValueError, match=message):
        NestedDichotomyClassifier(estimator).fit(np.ones((4, 2)), [0, 0, 1, 1])


def test_unsuitable_rows_raise():
    X, y = np.array([[1.0], [2.0], [-3.0], [1.0]]), [0, 0, 1, 1]
    with pytest.raises(TypeError, match="dense"):
        NestedDichotomyClassifier(GaussianNB()).fit(sparse.csr_array(X), y)
    for rows in (X, sparse.csr_array(X)):
        with pytest.raises(ValueError, match="negative value -3"):
            NestedDichotomyClassifier(MultinomialNB(), internal=None).fit(rows, y)
