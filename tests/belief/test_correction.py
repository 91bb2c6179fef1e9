import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dubito.belief import (
    Frame,
    MassBatch,
    MassFunction,
    TotalConflictError,
    condition,
    dempster,
    discount,
)
from dubito.testing.strategies import mass_batches

from reference import brute_force

RATE = st.sampled_from([0.0, 0.1, 0.5, 1.0])


@given(batch=mass_batches(), rate=RATE)
def test_discounting_moves_mass_to_the_frame(batch, rate):
    result = discount(batch, rate).to_array()
    expected = (1 - rate) * batch.to_array()
    expected[:, -1] += rate
    np.testing.assert_allclose(result, expected, atol=1e-15)
    assert discount(batch, rate).is_dense


def test_rates_by_row_are_a_column():
    batch = MassBatch(["a", "b"], [[1, 0]], [[1.0], [1.0]])
    result = discount(batch, np.array([[0.0], [0.3]]))
    np.testing.assert_allclose(result.bounds().lower[:, 0], [1.0, 0.7])


@given(batch=mass_batches(), data=st.data())
def test_contextual_discounting_dense_listed_and_by_definition(batch, data):
    rates = np.array([data.draw(RATE) for _ in batch.frame])
    by_label = dict(zip(batch.frame.labels, rates, strict=True))
    dense = discount(batch, rates)
    assert dense.is_dense
    for i, one in enumerate(batch):
        expected = brute_force.contextual_discount(brute_force.as_dict(one), by_label)
        listed = discount(one, by_label)
        for subset in brute_force.subsets(batch.frame.labels):
            assert dense[i][subset] == pytest.approx(expected.get(subset, 0.0), abs=1e-14)
            assert listed[subset] == pytest.approx(expected.get(subset, 0.0), abs=1e-14)


def test_evtools_agrees_on_contextual_discounting():
    corrections = pytest.importorskip("evtools.corrections")
    dsvector = pytest.importorskip("evtools.dsvector")
    mass = np.random.default_rng(0).dirichlet(np.ones(7))
    frame = ["a", "b", "c"]
    theirs = corrections.contextual_discount(
        dsvector.DSVector.from_dense(frame, np.append(0, mass), kind=dsvector.Kind.M),
        {frozenset("a"): 0.9, frozenset("b"): 0.6, frozenset("c"): 0.8},
    )
    ours = discount(MassBatch(frame, Frame(frame).subsets(), mass[None, :]), [0.1, 0.4, 0.2])
    np.testing.assert_allclose(ours.to_array()[0], theirs.dense, atol=1e-14)


def test_contextual_rates_per_row():
    batch = MassBatch(["a", "b"], [[1, 0]], [[1.0], [1.0]])
    result = discount(batch, [[0.0, 0.2], [0.0, 0.6]])
    np.testing.assert_allclose(result.bounds().upper[:, 1], [0.2, 0.6])


def test_contextual_discounting_on_a_large_frame():
    m = MassFunction({0: 1.0}, frame=range(1000))
    result = discount(m, {5: 0.5, 999: 0.1})
    assert result.masses == pytest.approx(
        {(0,): 0.45, (0, 5): 0.45, (0, 999): 0.05, (0, 5, 999): 0.05}
    )
    with pytest.raises(ValueError, match=r"more than 2\^20 focal sets"):
        discount(m, np.full(1000, 0.5))


@pytest.mark.parametrize(
    ("rate", "message"),
    [
        (1.5, r"\[0, 1\]"),
        (np.nan, "nan"),
        ([0.1, 0.2], r"2 entries for 3 classes.*rate\[:, None\]"),
        ({"z": 0.1}, "'z' is not in the frame"),
        (np.zeros((5, 3)), r"got shape \(5, 3\)"),
    ],
)
def test_bad_rates_are_refused(rate, message):
    with pytest.raises(ValueError, match=message):
        discount(MassFunction.vacuous(["a", "b", "c"]), rate)


@given(batch=mass_batches(n_classes=3, dogmatic=False))
def test_conditioning_is_combining_with_certainty(batch):
    sure = MassFunction({("a", "c"): 1.0}, batch.frame)
    ours = condition(batch, ["a", "c"])
    np.testing.assert_allclose(ours.to_array(), dempster(batch, sure).to_array(), atol=1e-12)
    np.testing.assert_allclose(ours.bel(["a", "c"]), 1)


def test_conditioning_on_the_impossible():
    m = MassFunction({"a": 1.0}, frame=["a", "b"])
    with pytest.raises(TotalConflictError):
        condition(m, "b")
    batch = MassBatch(["a", "b"], [[1, 0], [0, 1]], [[0.5, 0.5], [1.0, 0.0]])
    with pytest.raises(TotalConflictError, match="row 1"):
        condition(batch, "b")
