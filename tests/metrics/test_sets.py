"""Utilities, coverage and size of label sets."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from dubito.metrics import (
    AmbiguousLabelWarning,
    class_coverage,
    coverage,
    coverage_by_size,
    discounted_accuracy,
    mean_set_size,
    u65,
    u80,
    utility_discounted_accuracy,
)

ALL = [u65, u80, discounted_accuracy, coverage]
every_metric = pytest.mark.parametrize("metric", ALL, ids=lambda metric: metric.__name__)
quick = settings(deadline=None, max_examples=60)


# Column numbers drawn at random may look like labels that count from 1, which they are not.
pytestmark = pytest.mark.filterwarnings("ignore::dubito.metrics.AmbiguousLabelWarning")


@st.composite
def judged_sets(draw):
    n, k = draw(st.integers(1, 12)), draw(st.integers(2, 6))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return rng.integers(0, k, n), rng.random((n, k)) < rng.random()


@given(judged=judged_sets(), alpha=st.floats(0, 3))
@quick
def test_utility_row_by_row(judged, alpha):
    y, sets = judged
    utilities = []
    for label, row in zip(y, sets, strict=True):
        size = row.sum()
        utilities.append(alpha / size + (1 - alpha) / size**2 if row[label] else 0.0)
    score = utility_discounted_accuracy(y, sets, alpha=alpha)
    assert score == pytest.approx(np.mean(utilities), abs=1e-12)
    assert 0 <= score <= 1


@given(judged=judged_sets())
@quick
def test_named_utilities_are_nested(judged):
    y, sets = judged
    assert u65(y, sets) == utility_discounted_accuracy(y, sets, alpha=1.6)
    assert u80(y, sets) == utility_discounted_accuracy(y, sets, alpha=2.2)
    assert discounted_accuracy(y, sets) == utility_discounted_accuracy(y, sets, alpha=1)
    assert coverage(y, sets) >= u80(y, sets) >= u65(y, sets) >= discounted_accuracy(y, sets)


@given(seed=st.integers(0, 2**32 - 1), k=st.integers(2, 6))
@quick
def test_single_labels_score_their_accuracy(seed, k):
    rng = np.random.default_rng(seed)
    y, y_pred = rng.integers(0, k, (2, 17))
    accuracy = np.mean(y == y_pred)
    for metric in ALL:
        assert metric(y, np.eye(k, dtype=bool)[y_pred]) == accuracy
    assert mean_set_size(np.eye(k, dtype=bool)[y_pred]) == 1


def test_pairs_give_their_names():
    pair = [[True, True, False]]
    assert u65([0], pair) == pytest.approx(0.65)
    assert u80([0], pair) == pytest.approx(0.80)
    assert discounted_accuracy([0], pair) == 0.5
    assert coverage([0], pair) == 1
    assert mean_set_size(pair) == 2


@every_metric
def test_empty_sets_score_nothing(metric):
    assert metric([0, 1], [[False, False], [False, True]]) == 0.5
    assert metric([0, 1], np.zeros((2, 2), dtype=bool)) == 0
    assert mean_set_size(np.zeros((2, 2), dtype=bool)) == 0


@every_metric
def test_worst_and_best(metric):
    y = np.array([0, 1, 2])
    assert metric(y, np.eye(3, dtype=bool)) == 1
    assert metric(y, ~np.eye(3, dtype=bool)) == 0


def test_zeros_and_ones_will_do():
    y, sets = [0, 1], np.array([[True, True], [True, False]])
    for kind in (np.int64, np.uint8):
        assert u65(y, sets.astype(kind)) == u65(y, sets)
    assert u65(y, pd.DataFrame(sets).astype("boolean")) == u65(y, sets)
    assert mean_set_size(sets.tolist()) == 1.5


def score(sets):
    return u65([0, 1], sets)


@pytest.mark.parametrize("judge", [mean_set_size, score])
def test_what_is_no_set_is_refused(judge):
    with pytest.raises(TypeError, match=r"boolean .* got values of type float64.*decision rule"):
        judge([[0.2, 0.8], [0.5, 0.5]])
    with pytest.raises(TypeError, match="got values of type <U1"):
        judge([["a", "b"], ["a", "c"]])
    with pytest.raises(TypeError, match=r"sparse matrix: pass sets\.toarray\(\)"):
        judge(csr_array(np.eye(2)))
    with pytest.raises(ValueError, match=r"boolean \(n, K\) array.* got an array of shape \(2,\)"):
        judge([0, 1])
    with pytest.raises(ValueError, match=r"got an array of shape \(2,\)"):
        judge([{0, 1}, {1}])
    with pytest.raises(ValueError, match="rows of unequal length"):
        judge([[0, 1], [1]])
    with pytest.raises(ValueError, match=r"integers must be 0 or 1, unlike in row 1\."):
        judge([[0, 1], [2, 1]])
    with pytest.raises(ValueError, match="got no columns"):
        judge(np.empty((2, 0), dtype=bool))
    with pytest.raises(ValueError, match="has no rows"):
        mean_set_size(np.empty((0, 2), dtype=bool))


def test_rows_must_match():
    with pytest.raises(ValueError, match="y_true has 1 rows but sets has 2"):
        u80([0], [[True, False], [True, True]])
    with pytest.raises(ValueError, match="sample_weight has 1 rows but the data has 2"):
        mean_set_size([[True, False], [True, True]], sample_weight=[1])


@pytest.mark.parametrize("alpha", [-0.1, 3.1, np.nan, np.inf, "u65", None])
def test_alpha_out_of_range_is_refused(alpha):
    with pytest.raises(ValueError, match=r"alpha must be a number in \[0, 3\] .* Got "):
        utility_discounted_accuracy([0], [[True, False]], alpha=alpha)


@given(judged=judged_sets(), seed=st.integers(0, 100))
@quick
def test_coverage_by_class_and_by_size_row_by_row(judged, seed):
    y, sets = judged
    classes, n_classes = np.arange(sets.shape[1]), sets.shape[1]
    weight = np.random.default_rng(seed).integers(1, 4, len(y))
    hit, size = sets[np.arange(len(y)), y], sets.sum(axis=1)
    of_class = class_coverage(y, sets, classes=classes, sample_weight=weight)
    for k in range(n_classes):
        rows = y == k
        if rows.any():
            assert of_class[k] == pytest.approx(np.average(hit[rows], weights=weight[rows]))
        else:
            assert np.isnan(of_class[k])
    by_size = coverage_by_size(y, sets, classes=classes, sample_weight=weight)
    assert by_size.size.tolist() == sorted(set(size.tolist()))
    for s, held, fraction in zip(*by_size, strict=True):
        rows = size == s
        assert held == pytest.approx(np.average(hit[rows], weights=weight[rows]))
        assert fraction == pytest.approx(weight[rows].sum() / weight.sum())
    whole = coverage(y, sets, classes=classes, sample_weight=weight)
    assert by_size.coverage @ by_size.fraction == pytest.approx(whole)
    shown = np.bincount(y, weights=weight, minlength=n_classes)
    assert np.nan_to_num(of_class) @ shown / shown.sum() == pytest.approx(whole)


@pytest.mark.parametrize("metric", [*ALL, class_coverage, coverage_by_size])
def test_the_warning_of_ambiguous_labels_points_to_the_caller(metric):
    with pytest.warns(AmbiguousLabelWarning) as caught:
        metric([1, 2, 1], [[1, 0, 0], [0, 1, 0], [1, 0, 0]])
    assert caught[0].filename == __file__
