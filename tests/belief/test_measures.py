import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dubito.belief import (
    Bounds,
    MassBatch,
    MassFunction,
    conflict,
    conjunctive,
    jousselme_distance,
    nonspecificity,
    pignistic,
    pignistic_entropy,
    plausibility_transform,
)
from dubito.testing.strategies import mass_batches

from reference import brute_force


@given(
    sources=st.integers(1, 4).flatmap(lambda k: st.tuples(*2 * [mass_batches(n_classes=k, rows=2)]))
)
def test_jousselme_distance_dense_listed_and_by_definition(sources):
    a, b = sources
    reverse = slice(None, None, -1)
    listed = MassBatch(b.frame, b.focal[reverse], b.mass[:, reverse])
    expected = [
        brute_force.jousselme(brute_force.as_dict(x), brute_force.as_dict(y), a.frame)
        for x, y in zip(a, b, strict=True)
    ]
    np.testing.assert_allclose(jousselme_distance(a, b), expected, atol=1e-7)
    np.testing.assert_allclose(jousselme_distance(a, listed), expected, atol=1e-7)
    for x, y, d in zip(a, b, expected, strict=True):
        assert jousselme_distance(x, y) == pytest.approx(d, abs=1e-7)


def test_jousselme_distance_counts_the_empty_set_as_a_set_of_its_own():
    a = MassFunction({(): 0.5, "a": 0.5}, frame=["a", "b"])
    b = MassFunction({"a": 1.0}, frame=["a", "b"])
    assert jousselme_distance(a, b) == pytest.approx(0.5)
    rng = np.random.default_rng(0)
    x, y = (MassBatch.from_array(range(5), rng.dirichlet(np.ones(32), size=2)) for _ in range(2))
    expected = [
        brute_force.jousselme(brute_force.as_dict(m), brute_force.as_dict(n), range(5))
        for m, n in zip(x, y, strict=True)
    ]
    np.testing.assert_allclose(jousselme_distance(x, y), expected, atol=1e-12)


def test_jousselme_distance_at_sixteen_classes_needs_no_matrix_of_pairs():
    frame = range(16)
    a = MassFunction({0: 1.0}, frame).to_batch().dense()
    b = MassFunction({tuple(frame): 1.0}, frame).to_batch().dense()
    assert jousselme_distance(a, b)[0] == pytest.approx(np.sqrt(1 - 1 / 16))


@given(batch=mass_batches())
def test_measures_lie_in_their_ranges(batch):
    k = len(batch.frame)
    assert (nonspecificity(batch) >= 0).all()
    assert (nonspecificity(batch) <= np.log2(k) + 1e-12).all()
    assert (pignistic_entropy(batch) <= np.log2(k) + 1e-12).all()
    np.testing.assert_allclose(plausibility_transform(batch).sum(axis=1), 1)
    np.testing.assert_allclose(jousselme_distance(batch, batch), 0, atol=1e-7)
    np.testing.assert_allclose(conflict(batch), 0)


def test_ignorance_and_conflict_are_distinguished():
    ignorant = MassFunction.vacuous(["a", "b"])
    torn = MassFunction({"a": 0.5, "b": 0.5})
    assert nonspecificity(ignorant) == 1
    assert nonspecificity(torn) == 0
    assert pignistic_entropy(ignorant) == pignistic_entropy(torn) == 1
    assert conflict(torn, torn) == pytest.approx(0.5)


def test_one_gives_a_float_many_an_array():
    one = MassFunction({"a": 0.5, ("a", "b"): 0.5})
    many = one.to_batch()
    for measure in (nonspecificity, pignistic_entropy, conflict):
        assert isinstance(measure(one), float)
        assert measure(many).shape == (1,)
    assert pignistic(one).shape == (2,)
    assert pignistic(many).shape == (1, 2)
    assert conflict(one, many).shape == (1,)


def test_bounds_have_probabilities_too():
    b = Bounds([[0.2, 0.0]], [[1.0, 0.8]])
    np.testing.assert_allclose(plausibility_transform(b), [[1 / 1.8, 0.8 / 1.8]])
    np.testing.assert_allclose(pignistic(b), [[0.6, 0.4]])
    assert pignistic_entropy(b).shape == (1,)


def test_conflict_of_three_sources_is_that_of_their_conjunction():
    rng = np.random.default_rng(0)
    sources = [
        MassBatch.from_array(list("abc"), np.hstack([np.zeros((4, 1)), m]))
        for m in rng.dirichlet(np.ones(7), size=(3, 4))
    ]
    np.testing.assert_allclose(conflict(*sources), conjunctive(*sources).to_array()[:, 0])
