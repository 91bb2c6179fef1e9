import pickle

import numpy as np
import pytest
from hypothesis import given

from dubito.belief import Bounds, Frame, MassBatch, MassFunction, dempster
from dubito.testing.strategies import bounds, mass_batches

from reference import brute_force


@given(batch=mass_batches())
def test_one_and_many_agree_with_the_definitions(batch):
    for i, one in enumerate(batch):
        by_hand = brute_force.as_dict(one)
        for subset in brute_force.subsets(batch.frame.labels):
            assert one.bel(subset) == pytest.approx(brute_force.bel(by_hand, subset))
            assert one.pl(subset) == pytest.approx(brute_force.pl(by_hand, subset))
            assert one.commonality(subset) == pytest.approx(brute_force.q(by_hand, subset))
            assert one[subset] == pytest.approx(by_hand.get(subset, 0.0))
            assert batch.bel(subset)[i] == pytest.approx(one.bel(subset))
            assert batch.pl(subset)[i] == pytest.approx(1 - one.bel(set(batch.frame) - subset))


@given(batch=mass_batches())
def test_lower_probability_upper(batch):
    b = batch.bounds()
    p = batch.pignistic()
    np.testing.assert_allclose(p.sum(axis=1), 1)
    assert (b.lower <= p + 1e-12).all()
    assert (p <= b.upper + 1e-12).all()
    np.testing.assert_allclose(b.upper, batch.contour(), atol=1e-12)


@given(b=bounds())
def test_the_pignistic_of_bounds_lies_between_them(b):
    p = b.pignistic()
    np.testing.assert_allclose(p.sum(axis=1), 1)
    assert (b.lower <= p + 1e-12).all()
    assert (p <= b.upper + 1e-12).all()


@given(batch=mass_batches(n_classes=2))
def test_the_pignistic_of_two_class_bounds_is_that_of_the_masses(batch):
    np.testing.assert_allclose(batch.bounds().pignistic(), batch.pignistic(), atol=1e-12)


def test_the_pignistic_of_bounds_is_exact_for_singletons_and_frame():
    focal = np.vstack([np.eye(4, dtype=bool), np.ones((1, 4), dtype=bool)])
    mass = np.random.default_rng(0).dirichlet(np.ones(5), size=20)
    batch = MassBatch(list("abcd"), focal, mass)
    np.testing.assert_allclose(batch.bounds().pignistic(), batch.pignistic(), atol=1e-12)


def test_dense_and_listed_forms_hold_the_same_masses():
    listed = MassBatch(list("abc"), [[1, 0, 0], [0, 1, 1]], [[0.3, 0.7]])
    dense = listed.dense()
    assert dense.is_dense
    assert not listed.is_dense
    np.testing.assert_array_equal(dense.to_array(), listed.to_array())
    assert dense.dense() is dense
    assert dense[0].masses == listed[0].masses == {("a",): 0.3, ("b", "c"): 0.7}
    again = MassBatch.from_array(list("abc"), listed.to_array())
    np.testing.assert_array_equal(again.mass, dense.mass)


def test_dense_batches_list_subsets_in_bit_mask_order():
    dense = MassFunction({"b": 0.25, ("a", "b"): 0.75}, frame=["a", "b"]).to_batch().dense()
    np.testing.assert_array_equal(dense.focal, [[1, 0], [0, 1], [1, 1]])
    np.testing.assert_array_equal(dense.mass, [[0, 0.25, 0.75]])


def test_indexing_rows():
    batch = MassBatch(list("ab"), [[1, 0], [1, 1]], [[0.3, 0.7], [0.9, 0.1], [1, 0]])
    assert len(batch) == 3
    assert len(batch[1:]) == 2
    assert batch[-1].masses == {("a",): 1.0}
    np.testing.assert_array_equal(batch[[2, 0]].mass, batch.mass[[2, 0]])
    np.testing.assert_array_equal(batch[np.array([True, False, False])].mass, batch.mass[:1])
    with pytest.raises(IndexError):
        batch[3]
    with pytest.raises(IndexError):
        batch[0, 1]
    assert len(batch.bounds()[1:]) == 2
    np.testing.assert_array_equal(batch.bounds()[1].lower, [[0.9, 0.0]])


def test_listed_focal_sets_on_a_frame_of_five_thousand_classes():
    n_classes = 5000
    focal = np.zeros((3, n_classes), dtype=bool)
    focal[0, 7], focal[1, :100], focal[2] = True, True, True
    batch = MassBatch(range(n_classes), focal, [[0.5, 0.3, 0.2]])
    b = batch.bounds()
    assert b.lower[0, 7] == pytest.approx(0.5)
    assert b.upper[0, 7] == pytest.approx(1.0)
    assert b.upper[0, 99] == pytest.approx(0.5)
    assert batch.pignistic()[0, 4999] == pytest.approx(0.2 / n_classes)
    with pytest.raises(ValueError, match="listed focal sets"):
        batch.dense()


def test_twenty_classes_dense():
    batch = MassFunction.vacuous(range(20)).to_batch().dense()
    assert batch.mass.shape == (1, 2**20 - 1)
    np.testing.assert_allclose(batch.contour(), 1)
    np.testing.assert_allclose(batch.pignistic(), 1 / 20)


def test_one_class():
    m = MassFunction({"only": 1.0})
    assert m.bel("only") == m.pl("only") == 1
    assert dempster(m, m)["only"] == 1


def test_float32_and_read_only_input():
    mass = np.random.default_rng(0).dirichlet(np.ones(7), size=50).astype(np.float32)
    mass.flags.writeable = False
    batch = MassBatch(list("abc"), Frame(["x", "y", "z"]).subsets(), mass)
    assert batch.mass.dtype == np.float64
    np.testing.assert_allclose(batch.pignistic().sum(axis=1), 1)


def test_data_frames_are_taken():
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    columns = {"{a}": [0.3, 1.0], "{a,b}": [0.7, 0.0]}
    for frame in (pd.DataFrame(columns), pl.DataFrame(columns)):
        np.testing.assert_array_equal(
            MassBatch(["a", "b"], [[1, 0], [1, 1]], frame).mass, [[0.3, 0.7], [1, 0]]
        )


def test_what_is_built_cannot_be_changed_by_accident():
    batch = MassBatch(list("ab"), [[1, 0], [1, 1]], [[0.3, 0.7]])
    with pytest.raises(ValueError, match="read-only"):
        batch.mass[0, 0] = 0
    with pytest.raises(ValueError, match="read-only"):
        batch.bounds().lower[0, 0] = 1


def test_pickling_keeps_everything():
    m = MassFunction({"a": 0.5, ("a", "b"): 0.5})
    again = pickle.loads(pickle.dumps(m))  # noqa: S301
    assert again.masses == m.masses
    assert again.frame == m.frame
    b = pickle.loads(pickle.dumps(m.to_batch().bounds()))  # noqa: S301
    np.testing.assert_array_equal(b.upper, m.to_batch().bounds().upper)


@pytest.mark.parametrize(
    ("masses", "message"),
    [
        ({}, "vacuous"),
        ({"a": 0.5}, r"sums to 0.5\). Mass not given elsewhere belongs to the whole frame"),
        ({"a": 1.5, "b": -0.5}, "must not be negative"),
        ({"a": np.nan, "b": 1.0}, "nan"),
        ({("a", "b"): 0.5, ("b", "a"): 0.5}, "lists a set twice"),
    ],
)
def test_bad_mass_functions_are_refused(masses, message):
    with pytest.raises(ValueError, match=message):
        MassFunction(masses, frame=["a", "b"])


@pytest.mark.parametrize(
    ("focal", "mass", "message"),
    [
        ([[1, 0, 1]], [[1.0]], "2 columns"),
        ([[1, 2]], [[1.0]], "boolean"),
        ([[1, 0]], [[0.5, 0.5]], "2 columns for 1 focal sets"),
        ([[1, 0]], [1.0], "2-dimensional"),
        ([[1, 0]], [["x"]], "must hold numbers; got"),
    ],
)
def test_bad_batches_are_refused(focal, mass, message):
    with pytest.raises((ValueError, TypeError), match=message):
        MassBatch(["a", "b"], focal, mass)


def test_a_subnormal_batch_is_not_dense_and_the_error_gives_the_reason():
    subnormal = MassFunction({(): 0.2, "a": 0.8}, frame=["a", "b"])
    assert subnormal[()] == pytest.approx(0.2)
    assert str(subnormal).startswith("m(∅) = 0.2")
    with pytest.raises(ValueError, match=r"empty set.*Normalise first"):
        subnormal.to_batch().dense()


@pytest.mark.parametrize(
    ("lower", "upper", "message"),
    [
        ([[0.5, 0.2]], [[0.4, 0.6]], "lower exceeds upper in row 0"),
        ([[0.8, 0.8]], [[0.9, 0.9]], "sum to more than 1"),
        ([[0.1, 0.1]], [[0.2, 0.2]], "sum to less than 1"),
        ([[-0.1, 0.1]], [[1.0, 1.0]], "outside"),
        ([[0.1, 0.1]], [[1.0, 1.0, 1.0]], "one shape"),
        ([[0.1, np.nan]], [[1.0, 1.0]], "nan in row 0"),
        ([0.1, 0.1], [1.0, 1.0], "2-dimensional"),
    ],
)
def test_bad_bounds_are_refused(lower, upper, message):
    with pytest.raises(ValueError, match=message):
        Bounds(lower, upper)


def test_rounding_in_bounds_is_cut_off():
    b = Bounds([[0.3 + 1e-9, -1e-9]], [[0.3, 1 + 1e-9]])
    assert (b.lower <= b.upper).all()
    assert b.lower.min() >= 0
    assert b.upper.max() <= 1


def test_representations_a_person_reads():
    m = MassFunction({("a", "b"): 0.4, "a": 0.6})
    assert repr(m) == "MassFunction({('a',): 0.6, ('a', 'b'): 0.4}, frame=['a', 'b'])"
    assert repr(m.to_batch()) == "MassBatch(1 row, 2 classes, 2 focal sets)"
    assert repr(m.to_batch().dense()) == "MassBatch(1 row, 2 classes, dense)"
    assert repr(m.to_batch().bounds()) == "Bounds(1 row, 2 classes, mean width 0.4)"
    assert eval(repr(m)).masses == m.masses  # noqa: S307
