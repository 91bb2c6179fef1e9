"""Weights of evidence to masses and bounds: by definition, in decimals, and by identities."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.special import softmax

from dubito.belief import Bounds, Frame, cautious, dempster, plausibility_transform
from dubito.evidence import (
    bounds_from_weights,
    conflict_from_weights,
    ignorance_from_weights,
    mass_from_weights,
)

from reference import evidence

FUNCTIONS = [
    bounds_from_weights,
    mass_from_weights,
    conflict_from_weights,
    ignorance_from_weights,
]
#: Smaller floats may have few digits left, because they are near the end of the range.
SMALLEST = 1e-290
SCALES = [1e-300, 1e-12, 1e-9, 1e-5, 0.01, 0.5, 3, 20, 37, 100, 350, 690, 710, 745, 800, 1e4]


@st.composite
def weights(draw, *, n_classes=(2, 6), scales=SCALES):
    """One row of weights for and against, of mixed sizes or all of one; often 0."""
    k = draw(st.integers(*n_classes))
    some = draw(st.lists(st.sampled_from([0.0, *scales]), min_size=1, max_size=3))
    size = draw(st.lists(st.sampled_from(some), min_size=2 * k, max_size=2 * k))
    part = draw(st.lists(st.floats(0.5, 2), min_size=2 * k, max_size=2 * k))
    return (np.array(size) * part).reshape(2, 1, k)


def assert_exact(ours, exact, rel=1e-10):
    """Relative agreement of every number, however small, down to the end of the floats."""
    exact = np.array([float(x) for x in exact])
    ours = np.asarray(ours)
    assert ours.shape == exact.shape
    assert (ours >= 0).all()
    tiny = exact < SMALLEST
    assert (ours[tiny] < 1.1 * SMALLEST).all()
    np.testing.assert_allclose(ours[~tiny], exact[~tiny], rtol=rel, atol=0)


def assert_row_exact(w_plus, w_minus, exact, rel=1e-10):
    bounds = bounds_from_weights(w_plus, w_minus)
    assert isinstance(bounds, Bounds)
    assert_exact(bounds.lower[0], exact.lower, rel)
    assert_exact(bounds.upper[0], exact.upper, rel)
    assert_exact(ignorance_from_weights(w_plus, w_minus), [exact.ignorance], rel)
    assert_exact(conflict_from_weights(w_plus, w_minus), [exact.conflict], rel)


@given(row=weights())
@settings(max_examples=400)
@example(row=np.zeros((2, 1, 4)))
@example(row=np.full((2, 1, 6), 1e4))
@example(row=np.array([[[0.0, 0.0, 0.0]], [[800.0, 900.0, 1e4]]]))
@example(row=np.array([[[1e-12, 0.0]], [[1e-12, 0.0]]]))
def test_everything_follows_the_definition(row):
    w_plus, w_minus = row
    exact = evidence.belief(w_plus[0], w_minus[0])
    assert_row_exact(w_plus, w_minus, exact)
    batch = mass_from_weights(w_plus, w_minus)
    assert batch.is_dense
    assert_exact(batch.mass[0], exact.mass)


@given(row=weights(n_classes=(2, 5)))
def test_the_two_references_agree(row):
    w_plus, w_minus = row[:, 0]
    one, other = evidence.belief(w_plus, w_minus), evidence.belief_of_many(w_plus, w_minus)
    for name in ("lower", "upper", "ignorance", "conflict"):
        pairs = zip(np.ravel(getattr(one, name)), np.ravel(getattr(other, name)), strict=True)
        assert all(a == b or abs(a / b - 1) < 1e-20 for a, b in pairs)


@pytest.mark.parametrize("n_classes", [1_000, 5_000])
@pytest.mark.parametrize("size", [1e-9, 1e-3, 0.1, 1.0, 30.0, 800.0, 1e4, "mixed"])
def test_many_classes_are_as_exact(n_classes, size):
    rng = np.random.default_rng(n_classes)
    w = rng.exponential(size=(2, 1, n_classes))
    w *= rng.choice([0, *SCALES], size=w.shape) if size == "mixed" else size
    assert_row_exact(*w, evidence.belief_of_many(*w[:, 0]))


@pytest.mark.parametrize("n_classes", [3, 30, 1_000])
@pytest.mark.parametrize("side", ["for", "against"])
def test_evidence_of_one_side_alone(n_classes, side):
    rng = np.random.default_rng(0)
    w = np.zeros((2, 1, n_classes))
    w[side == "against"] = rng.exponential(size=n_classes) * rng.choice([1e-6, 1, 50], n_classes)
    assert_row_exact(*w, evidence.belief_of_many(*w[:, 0]))


@given(row=weights(scales=[1e-9, 1.0, 1e6]))
def test_weights_of_a_million(row):
    # Floats near 1e6 are 1e-10 apart, so differences of such weights are not more accurate.
    w_plus, w_minus = row
    exact = evidence.belief(w_plus[0], w_minus[0])
    assert_row_exact(w_plus, w_minus, exact, rel=1e-9)
    assert_exact(mass_from_weights(w_plus, w_minus).mass[0], exact.mass, rel=1e-9)


@pytest.mark.parametrize("n_classes", [2, 3, 12, 20, 2_000])
@pytest.mark.parametrize("huge", [1e4, 1e6, 1e300])
def test_huge_weights_neither_overflow_nor_warn(n_classes, huge):
    # Warnings are errors in the whole test run.
    rng = np.random.default_rng(0)
    drawn = rng.choice([0.0, 1.0, huge], size=(2, 200 if n_classes < 20 else 3, n_classes))
    drawn[:, 0] = huge
    bounds = bounds_from_weights(*drawn)
    for values in (conflict_from_weights(*drawn), ignorance_from_weights(*drawn)):
        assert ((values >= 0) & (values <= 1)).all()
    assert ((bounds.lower >= 0) & (bounds.lower <= bounds.upper) & (bounds.upper <= 1)).all()
    np.testing.assert_allclose(bounds.upper[0], bounds.upper[0, 0])
    if n_classes <= 12:
        batch = mass_from_weights(*drawn)
        assert (batch.mass >= 0).all()
        np.testing.assert_allclose(batch.mass.sum(axis=1), 1, rtol=1e-12)


@given(row=weights())
def test_masses_sum_to_one_and_give_the_bounds(row):
    batch, bounds = mass_from_weights(*row), bounds_from_weights(*row)
    assert batch.mass.sum() == pytest.approx(1, rel=1e-12)
    np.testing.assert_allclose(batch.bounds().lower, bounds.lower, rtol=1e-10, atol=SMALLEST)
    np.testing.assert_allclose(batch.bounds().upper, bounds.upper, rtol=1e-10, atol=SMALLEST)
    np.testing.assert_allclose(
        batch.mass[:, -1], ignorance_from_weights(*row), rtol=1e-10, atol=SMALLEST
    )


@given(row=weights(scales=[s for s in SCALES if s < 1e4]))
def test_the_plausibility_transform_is_softmax(row):
    # The logits themselves are rounded at 800: hence 1e-11 there, and 1e-12 for weights up to 100.
    w_plus, w_minus = row
    precision = 1e-12 if row.max() < 100 else 1e-11
    upper = bounds_from_weights(w_plus, w_minus).upper
    proba = softmax(w_plus - w_minus, axis=1)
    np.testing.assert_allclose(
        upper / upper.sum(axis=1, keepdims=True), proba, rtol=precision, atol=SMALLEST
    )
    np.testing.assert_allclose(
        plausibility_transform(mass_from_weights(w_plus, w_minus)), proba, atol=1e-12
    )


@given(row=weights())
def test_belief_and_plausibility_about_the_probability(row):
    w_plus, w_minus = row
    proba = softmax(w_plus - w_minus, axis=1)
    bounds = bounds_from_weights(w_plus, w_minus)
    assert (bounds.upper >= proba * (1 - 1e-11)).all()
    if row.shape[2] == 2:
        assert (bounds.lower <= proba + 1e-11).all()


def test_belief_may_exceed_the_plausibility_transform():
    # A fact of the transform, for three classes and more: strong evidence for a class and as much
    # against it cancel in the probability, not in the belief.
    w_plus, w_minus = [[3.0, 0.0, 0.0]], [[3.0, 0.0, 0.0]]
    proba = softmax(np.subtract(w_plus, w_minus), axis=1)[0, 0]
    exact = evidence.belief(w_plus[0], w_minus[0])
    assert float(exact.lower[0]) > proba
    assert bounds_from_weights(w_plus, w_minus).lower[0, 0] > proba


@given(row=weights(), seed=st.integers(0, 1_000))
def test_permuting_the_classes_permutes_everything(row, seed):
    n_classes = row.shape[2]
    order = np.random.default_rng(seed).permutation(n_classes)
    moved = row[:, :, order]
    before, after = bounds_from_weights(*row), bounds_from_weights(*moved)
    np.testing.assert_allclose(after.lower, before.lower[:, order], rtol=1e-11, atol=SMALLEST)
    np.testing.assert_allclose(after.upper, before.upper[:, order], rtol=1e-11, atol=SMALLEST)
    for function in (conflict_from_weights, ignorance_from_weights):
        np.testing.assert_allclose(function(*moved), function(*row), rtol=1e-11, atol=SMALLEST)
    one = mass_from_weights(*row)[0]
    other = mass_from_weights(*moved, classes=order.tolist())[0]
    for subset in one.masses:
        assert other[subset] == pytest.approx(one[subset], rel=1e-11, abs=SMALLEST)


def test_rows_do_not_touch_each_other():
    rng = np.random.default_rng(0)
    w = rng.choice([0, 1e-9, 0.3, 2, 800], size=(2, 5_000, 7)) * rng.uniform(size=(2, 5_000, 7))
    together, batch = bounds_from_weights(*w), mass_from_weights(*w)
    apart = [(conflict_from_weights(*w), ignorance_from_weights(*w))]
    for i in (0, 17, 4_999):
        row = w[:, [i]]
        np.testing.assert_array_equal(bounds_from_weights(*row).lower[0], together.lower[i])
        np.testing.assert_array_equal(bounds_from_weights(*row).upper[0], together.upper[i])
        np.testing.assert_array_equal(mass_from_weights(*row).mass[0], batch.mass[i])
        for function, all_rows in zip(FUNCTIONS[2:], apart[0], strict=True):
            np.testing.assert_array_equal(function(*row), all_rows[[i]])


def test_the_weakest_weight_is_seen():
    # A conflict of 1e-18 and supports of 1e-9 are numbers, not rounding.
    w = [[1e-9, 0.0, 1e-9]]
    assert conflict_from_weights(w, [[0.0, 0.0, 0.0]])[0] == pytest.approx(1e-18, rel=1e-8)
    assert bounds_from_weights(w, [[0.0, 0.0, 0.0]]).lower[0] == pytest.approx([1e-9, 0, 1e-9])


@pytest.mark.parametrize("n_classes", [2, 3, 20, 3_000])
def test_no_evidence_is_vacuous(n_classes):
    nothing = np.zeros((2, n_classes))
    bounds = bounds_from_weights(nothing, nothing)
    np.testing.assert_array_equal(bounds.lower, 0)
    np.testing.assert_array_equal(bounds.upper, 1)
    np.testing.assert_array_equal(conflict_from_weights(nothing, nothing), 0)
    np.testing.assert_array_equal(ignorance_from_weights(nothing, nothing), 1)
    if n_classes <= 20:
        batch = mass_from_weights(nothing, nothing)
        np.testing.assert_array_equal(batch.mass[:, :-1], 0)
        np.testing.assert_array_equal(batch.mass[:, -1], 1)


@pytest.mark.parametrize("n_classes", [3, 4])
@given(data=st.data())
def test_adding_weights_is_dempster_and_the_maximum_is_cautious(n_classes, data):
    # With two classes the complement of one is the other, and only the sum remains to be compared.
    mild = weights(n_classes=(n_classes, n_classes), scales=[0.01, 0.5, 2.0])
    one, other = data.draw(mild), data.draw(mild)
    a, b = mass_from_weights(*one), mass_from_weights(*other)
    added = mass_from_weights(*(one + other))
    np.testing.assert_allclose(dempster(a, b).to_array(), added.to_array(), atol=1e-12)
    most = mass_from_weights(*np.maximum(one, other))
    np.testing.assert_allclose(cautious(a, b).to_array(), most.to_array(), atol=1e-9)


def test_two_classes_follow_the_papers_equations():
    # Denœux 2019, eq. 20-22, as printed; w+ is for the first class there.
    rng = np.random.default_rng(0)
    w_first, w_second = rng.exponential(size=(2, 50))
    s_first, s_second = 1 - np.exp(-w_first), 1 - np.exp(-w_second)
    kappa = s_first * s_second
    w_plus, w_minus = np.column_stack([w_first, w_second]), np.zeros((50, 2))
    expected = [s_first * (1 - s_second), s_second * (1 - s_first), (1 - s_first) * (1 - s_second)]
    np.testing.assert_allclose(conflict_from_weights(w_plus, w_minus), kappa, rtol=1e-12)
    np.testing.assert_allclose(
        mass_from_weights(w_plus, w_minus).mass, np.transpose(expected / (1 - kappa)), rtol=1e-12
    )
    swapped = np.zeros((50, 2)), np.column_stack([w_second, w_first])
    np.testing.assert_allclose(
        mass_from_weights(*swapped).mass, mass_from_weights(w_plus, w_minus).mass, rtol=1e-12
    )


def test_classes_name_the_frame():
    batch = mass_from_weights([[1.0, 0.0, 0.0]], [[0.0, 0.0, 2.0]], classes=["a", "b", "c"])
    assert batch.frame == Frame(["a", "b", "c"])
    assert batch[0]["a"] == batch.bounds().lower[0, 0]
    assert mass_from_weights([[1.0, 0.0]], [[0.0, 2.0]]).frame == Frame([0, 1])
    with pytest.raises(ValueError, match=r"classes.*2.*3|3.*classes.*2"):
        mass_from_weights([[1.0, 0.0, 0.0]], [[0.0, 0.0, 2.0]], classes=["a", "b"])


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize(
    "given_as",
    [
        lambda w: w.tolist(),
        pd.DataFrame,
        np.asfortranarray,
        lambda w: np.repeat(w, 2, axis=0)[::2],
        lambda w: np.repeat(w, 2, axis=1)[:, ::2],
        lambda w: w[::-1].copy()[::-1],
        lambda w: w.astype(np.float32),
        lambda w: w.astype(object),
    ],
    ids=["lists", "pandas", "fortran", "rows", "columns", "backwards", "float32", "objects"],
)
def test_any_array_will_do(function, given_as):
    w = np.random.default_rng(0).integers(0, 64, size=(2, 6, 4)) / 8  # exact in float32
    w.flags.writeable = False
    ours, expected = function(given_as(w[0]), given_as(w[1])), function(w[0], w[1])
    for name in ("lower", "upper", "mass"):
        if hasattr(expected, name):
            ours_part, part = getattr(ours, name), getattr(expected, name)
            assert ours_part.dtype == np.float64
            np.testing.assert_array_equal(ours_part, part)
    if isinstance(expected, np.ndarray):
        assert ours.dtype == np.float64
        np.testing.assert_array_equal(ours, expected)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_what_is_given_is_left_alone(function):
    w = np.random.default_rng(0).exponential(size=(2, 6, 4))
    kept = w.copy()
    function(*w)
    np.testing.assert_array_equal(w, kept)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_no_rows_give_no_rows(function):
    result = function(np.zeros((0, 3)), np.zeros((0, 3)))
    assert len(result) == 0


FINE = np.ones((3, 2))
BAD = {
    "negative": (np.array([[1, 1], [1, -0.5], [1, 1]]), r"w_\w+.*(negative|-0\.5).*row 1"),
    "nan": (np.array([[1, 1], [1, np.nan], [1, 1]]), r"w_\w+ has nan in row 1"),
    "infinite": (np.array([[1, 1], [1, np.inf], [1, 1]]), r"w_\w+ has infinite values in row 1"),
    "rows": (np.ones((4, 2)), r"\((4|3), 2\).*\((4|3), 2\)|has (3|4) rows"),
    "columns": (np.ones((3, 3)), r"\(3, (2|3)\).*\(3, (2|3)\)"),
    "one row as 1-D": (np.ones(2), r"w_\w+ must be 2-dimensional; got an array of shape \(2,\)"),
    "3-D": (np.ones((3, 2, 1)), r"w_\w+ must be 2-dimensional; got an array of shape \(3, 2, 1\)"),
    "ragged": ([[1, 1], [1]], r"w_\w+ must be a plain array; got rows of unequal length"),
}


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("case", BAD)
def test_bad_weights_are_refused_by_name(function, side, case):
    bad, message = BAD[case]
    pair = (bad, FINE) if side == 0 else (FINE, bad)
    with pytest.raises(ValueError, match=message) as caught:
        function(*pair)
    assert ("w_plus", "w_minus")[side] in str(caught.value)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_strings_are_refused(function):
    with pytest.raises(TypeError, match="w_plus must hold numbers"):
        function([["a", "b"]], [[1.0, 1.0]])


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("n_classes", [0, 1])
def test_fewer_than_two_classes_are_refused(function, n_classes):
    with pytest.raises(ValueError, match=rf"(two|2) classes.*{n_classes}|{n_classes}.*(two|2)"):
        function(np.ones((3, n_classes)), np.ones((3, n_classes)))


def test_masses_of_many_classes_are_refused_with_a_way_out():
    w = np.ones((2, 21))
    with pytest.raises(ValueError, match=r"20 classes.*21.*bounds_from_weights|21.*20.*bounds_f"):
        mass_from_weights(w, w)
    assert len(bounds_from_weights(w, w)) == 2


def test_masses_of_twenty_classes():
    rng = np.random.default_rng(0)
    w = rng.exponential(0.3, size=(2, 1, 20))
    batch = mass_from_weights(*w)
    assert batch.mass.sum() == pytest.approx(1, rel=1e-12)
    exact = evidence.belief_of_many(*w[:, 0])
    assert_exact(batch.bounds().lower[0], exact.lower)
    assert_exact(batch.bounds().upper[0], exact.upper)
    assert batch.mass[0, -1] == pytest.approx(float(exact.ignorance), rel=1e-10)
