"""Prior probabilities: read, checked, made reachable and widened."""

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.optimize import linprog

from dubito.discriminant.priors import prior_interval
from dubito.testing.strategies import probabilities

ABC = np.array(["a", "b", "c"])
COUNTS = np.array([10.0, 30.0, 60.0])


@st.composite
def intervals(draw):
    """Draw (K, 2) lower and upper probabilities around a probability, mostly not reachable."""
    p = draw(probabilities(max_rows=1))[0]
    below, above = draw(hnp.arrays(np.float64, (2, len(p)), elements=st.floats(0, 1)))
    return np.column_stack([p * (1 - below), p + above * (1 - p)])


def reach(lower, upper, direction):
    """Return the least value of a linear form over probabilities between bounds."""
    ones = np.ones((1, len(lower)))
    bounds = np.column_stack([np.minimum(lower, upper), upper])
    return linprog(direction, A_eq=ones, b_eq=[1.0], bounds=bounds).fun


def test_frequencies_unless_given():
    for values in prior_interval(None, 0.0, COUNTS, ABC):
        np.testing.assert_allclose(values, [0.1, 0.3, 0.6], rtol=1e-15)


def test_probabilities_are_taken_as_they_are_and_normalised():
    for values in prior_interval([0.2, 0.3, 0.500005], 0.0, COUNTS, ABC):
        np.testing.assert_allclose(values, np.array([0.2, 0.3, 0.500005]) / 1.000005, rtol=1e-15)
        assert values.sum() == pytest.approx(1, abs=1e-15)


def test_two_numbers_for_two_classes_are_probabilities():
    precise, lower, upper = prior_interval([0.2, 0.8], 0.0, COUNTS[:2], ABC[:2])
    assert precise.tolist() == lower.tolist() == upper.tolist() == [0.2, 0.8]
    precise, lower, upper = prior_interval([[0.2, 0.8], [0.2, 0.8]], 0.0, COUNTS[:2], ABC[:2])
    np.testing.assert_allclose(precise, [0.5, 0.5])
    np.testing.assert_allclose(lower, [0.2, 0.2])
    np.testing.assert_allclose(upper, [0.8, 0.8])


def test_the_imprecise_dirichlet_model_of_frequencies():
    precise, lower, upper = prior_interval(None, 2.0, COUNTS, ABC)
    np.testing.assert_allclose(precise, COUNTS / 100)
    np.testing.assert_allclose(lower, COUNTS / 102)
    np.testing.assert_allclose(upper, (COUNTS + 2) / 102)


def test_a_class_of_prior_zero_is_possible_again_with_imprecision():
    precise, lower, upper = prior_interval([0.0, 0.4, 0.6], 0.0, COUNTS, ABC)
    assert precise[0] == lower[0] == upper[0] == 0
    precise, lower, upper = prior_interval([0.0, 0.4, 0.6], 5.0, COUNTS, ABC)
    assert precise[0] == lower[0] == 0
    assert upper[0] == pytest.approx(5 / 105)


@given(table=intervals(), s=st.sampled_from([0.0, 0.5, 20.0]), n=st.integers(1, 1000))
def test_intervals_are_the_envelope_of_the_probabilities_they_allow(table, s, n):
    k = len(table)
    counts = np.full(k, n / k)
    precise, lower, upper = prior_interval(table, s, counts, np.arange(k))
    for j, sign in itertools.product(range(k), (1, -1)):
        least = reach(table[:, 0], table[:, 1], sign * np.eye(k)[j])
        expected = (n * abs(least) + (s if sign < 0 else 0.0)) / (n + s)
        assert (lower if sign > 0 else upper)[j] == pytest.approx(expected, abs=1e-7)
    assert (lower <= precise + 1e-12).all()
    assert (precise <= upper + 1e-12).all()
    assert precise.sum() == pytest.approx(1)


@given(table=intervals(), s=st.sampled_from([0.0, 3.0]))
def test_any_lower_and_any_other_upper_prior_are_attained_together(table, s):
    k = len(table)
    _, lower, upper = prior_interval(table, s, np.ones(k), np.arange(k))
    for a, b in itertools.permutations(range(k), 2):
        rest = 1 - lower[a] - upper[b]
        others = [j for j in range(k) if j not in (a, b)]
        assert lower[others].sum() - 1e-9 <= rest <= upper[others].sum() + 1e-9


@given(table=intervals(), seed=st.integers(0, 99))
def test_the_order_of_classes_does_not_matter(table, seed):
    k = len(table)
    order = np.random.default_rng(seed).permutation(k)
    counts = np.arange(1.0, k + 1)
    given_order = prior_interval(table, 1.0, counts, np.arange(k))
    other = prior_interval(table[order], 1.0, counts[order], np.arange(k)[order])
    for mine, theirs in zip(given_order, other, strict=True):
        np.testing.assert_allclose(mine[order], theirs, atol=1e-12)


def test_priors_by_label():
    by_label = {"c": 0.6, "a": 0.1, "b": 0.3}
    for priors in (by_label, pd.Series(by_label)):
        np.testing.assert_allclose(prior_interval(priors, 0.0, COUNTS, ABC)[0], [0.1, 0.3, 0.6])
    pairs = {"c": (0.5, 0.7), "b": (0.2, 0.4), "a": (0.0, 0.2)}
    _, lower, upper = prior_interval(pairs, 0.0, COUNTS, ABC)
    np.testing.assert_allclose(lower, [0, 0.2, 0.5])
    np.testing.assert_allclose(upper, [0.2, 0.4, 0.7])


def test_rounding_is_corrected():
    narrow = [[0.1, 0.1 - 1e-12], [0.3, 0.3], [0.6, 0.6 + 1e-12]]
    precise, lower, upper = prior_interval(narrow, 0.0, COUNTS, ABC)
    np.testing.assert_allclose(precise, [0.1, 0.3, 0.6], rtol=1e-9)
    assert (lower <= upper).all()
    assert (prior_interval([-1e-17, 0.4, 0.6], 0.0, COUNTS, ABC)[0] >= 0).all()


@pytest.mark.parametrize(
    ("priors", "message"),
    [
        ([0.2, 0.8], r"shape \(2,\).*classes 'a', 'b', 'c'.*\(3,\).*\(3, 2\)"),
        ([[0.2, 0.8, 0.0]] * 3, r"shape \(3, 3\)"),
        ([0.2, 0.3, 0.4], "must sum to 1; those of 'a', 'b', 'c' sum to 0.9. Divide"),
        ([-0.2, 0.6, 0.6], "class 'a' is negative, -0.2"),
        ([[0.1, 0.2], [-0.1, 0.6], [0.0, 1.0]], "class 'b' is negative, -0.1"),
        ([[0.1, 0.2], [0.1, 1.6], [0.0, 1.0]], "class 'b' is above 1, 1.6"),
        ([[0.1, 0.2], [0.1, 0.6], [0.5, 0.4]], "prior of class 'c' is 0.5, above .* 0.4"),
        ([[0.5, 0.6], [0.5, 0.6], [0.1, 0.2]], "lower priors .* sum to 1.1.* at most 1"),
        ([[0.1, 0.2], [0.1, 0.2], [0.1, 0.2]], "upper priors .* sum to 0.6.* at least 1"),
        ([0.2, np.nan, 0.8], "priors has nan in row 1"),
        ({"a": 0.5, "b": 0.5}, "priors leaves out 'c'; it must name each .* 'a', 'b', 'c'"),
        ({"a": 0.5, "b": 0.3, "c": 0.1, "d": 0.1}, "names the unknown 'd'"),
    ],
)
def test_impossible_priors_are_refused(priors, message):
    with pytest.raises(ValueError, match=message):
        prior_interval(priors, 0.0, COUNTS, ABC)


def test_many_classes_are_not_all_named():
    with pytest.raises(ValueError, match=r"those of 0, 1, 2, 3, 4 … sum to 0\.5"):
        prior_interval([0.05] * 10, 0.0, np.ones(10), np.arange(10))


def test_strings_are_no_priors():
    with pytest.raises(TypeError, match="priors must hold numbers; got 'uniform'"):
        prior_interval("uniform", 0.0, COUNTS, ABC)
