"""The arithmetic of conformal contours, against brute force."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dubito._numerics.sums_of_others import maxima_of_others
from dubito.belief import MassBatch
from dubito.conformal.contours import (
    consonant_bounds,
    coverage_sets,
    nested_masses,
    raised,
)
from dubito.conformal.p_values import p_values, sort_scores, weight_at_or_above
from dubito.conformal.scores import cumulative, margin

ROUND = st.integers(0, 4).map(lambda n: n / 4)  # few values, so that ties are frequent


@given(
    st.lists(st.tuples(ROUND, st.integers(1, 3)), min_size=1, max_size=12),
    st.lists(ROUND, min_size=1, max_size=6),
)
def test_counts_are_those_of_comparing_all_pairs(rows, queries):
    scores, weight = np.array(rows, dtype=float).T
    queries = np.array(queries)
    wanted = [weight[scores >= a].sum() for a in queries]
    np.testing.assert_allclose(weight_at_or_above(sort_scores(scores, weight), queries), wanted)
    plain = weight_at_or_above(sort_scores(scores), queries)
    np.testing.assert_array_equal(plain, [(scores >= a).sum() for a in queries])
    pi = p_values(plain, np.array(len(scores)), np.array(1.0))
    np.testing.assert_allclose(pi, (1 + plain) / (len(scores) + 1))


def test_infinite_scores_tie():
    calibration = sort_scores(np.array([np.inf, -np.inf, 0.0, np.inf]))
    np.testing.assert_array_equal(
        weight_at_or_above(calibration, np.array([np.inf, 1.0, 0.0, -np.inf])), [2, 2, 3, 4]
    )


def draw_contours(n, n_classes, seed=0):
    return np.random.default_rng(seed).integers(1, 8, (n, n_classes)) / 8


@pytest.mark.parametrize("n_classes", [2, 3, 5, 11])
def test_masses_and_bounds_are_those_of_the_raised_contour(n_classes):
    contour = draw_contours(60, n_classes)
    pi = raised(contour)
    assert (pi.max(axis=1) == 1).all()
    assert (pi >= contour).all()
    others = np.array([np.delete(row, k).max() for row in pi for k in range(n_classes)])
    np.testing.assert_array_equal(maxima_of_others(pi).ravel(), others)
    lower, upper = consonant_bounds(pi)
    focal, mass = nested_masses(pi, 10**6)
    batch = MassBatch(range(n_classes), focal, mass)
    np.testing.assert_allclose(batch.contour(), pi, atol=1e-12)
    np.testing.assert_allclose(batch.bounds().lower, lower, atol=1e-12)
    np.testing.assert_allclose(batch.bounds().upper, upper, atol=1e-12)
    for row in mass:  # consonant: the focal sets of a row are nested
        sets = focal[row > 0]
        sets = sets[np.argsort(sets.sum(axis=1))]
        assert (sets[:-1] <= sets[1:]).all()


def test_a_table_of_masses_that_is_too_large_is_refused():
    with pytest.raises(MemoryError, match="fewer rows at a time"):
        nested_masses(raised(draw_contours(100, 6)), 1000)


def test_sets_are_empty_only_when_allowed():
    contour = np.array([[0.05, 0.1, 0.1], [0.3, 0.1, 0.11], [0.02, 0.01, 0.01]])
    np.testing.assert_array_equal(
        coverage_sets(contour, 0.9, allow_empty=True),
        [[False, False, False], [True, False, True], [False, False, False]],
    )
    np.testing.assert_array_equal(
        coverage_sets(contour, 0.9, allow_empty=False),
        [[False, True, True], [True, False, True], [True, False, False]],
    )


def test_margin_is_the_largest_other_less_its_own():
    u = np.random.default_rng(0).normal(size=(20, 4))
    wanted = [[np.delete(row, k).max() - row[k] for k in range(4)] for row in u]
    np.testing.assert_allclose(margin(u), wanted)
    with np.errstate(divide="ignore"):
        sure = margin(np.log([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0]]))
    np.testing.assert_array_equal(sure, [[-np.inf, np.inf, np.inf], [0, 0, np.inf]])


@pytest.mark.parametrize("random", [False, True])
def test_cumulative_scores_sum_what_is_more_probable(random):
    rng = np.random.default_rng(0)
    counts = rng.integers(0, 4, (50, 5)) + np.array([1, 0, 0, 0, 0])
    p = counts / counts.sum(axis=1, keepdims=True)
    u = rng.random(50) if random else np.full(50, 0.5)
    wanted = [[row[row > v].sum() + f * v for v in row] for row, f in zip(p, u, strict=True)]
    np.testing.assert_allclose(cumulative(p, u if random else None), wanted, atol=1e-11)
    order = rng.permutation(5)
    np.testing.assert_array_equal(cumulative(p)[:, order], cumulative(p[:, order]))
