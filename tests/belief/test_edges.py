"""Edge cases of belief functions: conflict, rounding, no rows, large frames, invalid input."""

import copy
import pickle
import tracemalloc

import numba
import numpy as np
import pytest

from dubito._numerics import jit
from dubito.belief import (
    Bounds,
    Frame,
    MassBatch,
    MassFunction,
    TotalConflictError,
    _set_words,
    cautious,
    condition,
    conflict,
    conjunctive,
    dempster,
    discount,
    disjunctive,
    dubois_prade,
    jousselme_distance,
    pignistic,
    pignistic_entropy,
    plausibility_transform,
    yager,
)
from dubito.decision import maximin

FRAME = ["a", "b", "c"]


def torn():
    """Two sources that share no class, combined without normalising."""
    return conjunctive(MassFunction({"a": 1.0}, FRAME), MassFunction({"b": 1.0}, FRAME))


@pytest.mark.parametrize("measure", [pignistic, pignistic_entropy, plausibility_transform])
def test_total_conflict_is_an_error_and_never_nan(measure):
    with pytest.raises(TotalConflictError, match="row 0 combines masses with no common class"):
        measure(torn())
    assert str(torn()) == "m(∅) = 1"


def test_the_error_survives_pickling():
    with pytest.raises(TotalConflictError) as caught:
        dempster(MassFunction({"a": 1.0}, FRAME), MassFunction({"b": 1.0}, FRAME))
    again = pickle.loads(pickle.dumps(caught.value))  # noqa: S301
    assert str(again) == str(caught.value)
    assert again.rows.tolist() == [0]


def test_density_does_not_depend_on_what_else_was_used():
    batch = MassBatch.from_array(range(12), np.eye(1, 2**12, 2**12 - 1))
    for k in range(1, 21):
        Frame(range(k)).subsets()
    assert batch.is_dense


def test_contextual_discounting_at_the_largest_dense_frame():
    rates = np.zeros(20)
    rates[0] = 0.1
    sure = MassFunction({1: 1.0}, range(20))
    for source in (sure.to_batch(), sure.to_batch().dense()):
        result = discount(source, rates)[0]
        assert result.masses == pytest.approx({(1,): 0.9, (0, 1): 0.1})


def test_compiling_works_where_nothing_can_be_written(monkeypatch):
    def njit(signature=None, *, cache=False, **options):
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return numba.njit(signature, **options)

    monkeypatch.setattr(jit, "njit", njit)
    doubled = jit.compiled()(lambda x: 2 * x)
    assert doubled(3) == 6


def test_discounted_probabilities_of_a_thousand_classes_combine_in_bounded_memory():
    n_classes = 1000
    rng = np.random.default_rng(0)
    a, b = (
        discount(MassBatch.from_proba(range(n_classes), rng.dirichlet(np.ones(n_classes), 1)), 0.1)
        for _ in range(2)
    )
    tracemalloc.start()
    together = dempster(a, b)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 100e6
    # m({k}) ∝ a_k b_k + a_k b(Ω) + a(Ω) b_k
    single_a, single_b = a.bounds().lower, b.bounds().lower
    expected = single_a * single_b + 0.1 * (single_a + single_b)
    expected /= expected.sum() + 0.01
    np.testing.assert_allclose(together.bounds().lower, expected, rtol=1e-10)


def test_sets_of_more_than_sixty_four_classes_are_distinguished():
    rng = np.random.default_rng(0)
    focal = rng.random((30, 200)) < 0.5
    batch = MassBatch(
        range(200),
        np.vstack([focal, focal[:1] ^ np.eye(1, 200, 199, dtype=bool)]),
        rng.dirichlet(np.ones(31), size=2),
    )
    together = conjunctive(batch, batch)
    expected = {}
    for i, x in enumerate(batch.focal):
        for j, y in enumerate(batch.focal):
            key = (x & y).tobytes()
            expected[key] = expected.get(key, 0) + batch.mass[0, i] * batch.mass[0, j]
    assert len(together.focal) == len(expected)
    for sets, mass in zip(together.focal, together.mass[0], strict=True):
        assert mass == pytest.approx(expected[sets.tobytes()])


def test_sets_are_distinguished_when_their_keys_collide(monkeypatch):
    rng = np.random.default_rng(0)
    words = _set_words.to_words(rng.random((50, 130)) < 0.02)
    usual = _set_words.group_equal(words)
    monkeypatch.setattr(_set_words, "_hashed", lambda words: np.zeros(len(words), dtype=np.uint64))
    collided = _set_words.group_equal(words)
    values = rng.random((2, 50))
    np.testing.assert_array_equal(collided.sets, usual.sets)
    np.testing.assert_allclose(collided.add_up(values), usual.add_up(values))


def test_cautious_keeps_the_smallest_ignorance():
    m = MassFunction({"a": 1 - 1e-16, ("a", "b"): 1e-16})
    other = MassFunction({"b": 0.5, ("a", "b"): 0.5}, frame=["a", "b"])
    assert cautious(m, m)["a", "b"] == pytest.approx(1e-16)
    together = cautious(cautious(m, m), other)
    assert together.masses == pytest.approx(cautious(m, m, other).masses)


def test_cautious_of_sources_that_all_but_exclude_each_other():
    sources = [MassFunction({k: 1.0, ("a", "b", "c"): 1e-200}, FRAME) for k in FRAME]
    assert cautious(*sources).contour() == pytest.approx(np.full(3, 1 / 3))


def test_no_conflict_stays_none_despite_rounding():
    rng = np.random.default_rng(0)
    for n_classes in (3, 4, 5, 6, 8, 10):
        frame = Frame(range(n_classes))
        large = frame.subsets().sum(axis=1) > n_classes / 2  # any two of these sets meet
        a, b = (
            MassBatch(frame, frame.subsets(), large * w / (large * w).sum(axis=1, keepdims=True))
            for w in rng.random((2, 5, 2**n_classes - 1))
        )
        assert (conflict(a, b) == 0).all()
        assert maximin(conjunctive(a, b)).shape == (5,)


def test_rounded_masses_are_mended_once_and_stay_whole():
    rounded = MassBatch(FRAME, np.eye(3), [[0.3333331, 0.3333333, 0.3333331]])
    assert rounded.mass.sum() == pytest.approx(1, abs=1e-15)
    result = disjunctive(rounded, rounded, rounded)
    for again in (pickle.loads(pickle.dumps(result)), copy.deepcopy(result)):  # noqa: S301
        np.testing.assert_array_equal(again.mass, result.mass)
        assert again.is_dense == result.is_dense


def test_copies_are_the_same_to_the_last_bit():
    bounds = Bounds.precise(np.random.default_rng(0).dirichlet(np.ones(7), 100))
    subnormal = conjunctive(*2 * [MassBatch.from_proba(FRAME, [[0.5, 0.25, 0.25]]).dense()])
    for copied in (copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))):  # noqa: S301
        np.testing.assert_array_equal(copied(bounds).lower, bounds.lower)
        np.testing.assert_array_equal(copied(bounds).upper, bounds.upper)
        assert dempster(copied(subnormal)).is_dense


def test_the_callers_arrays_and_ours_are_apart():
    mass, focal = np.array([[0.5, 0.5]]), np.eye(2, dtype=bool)
    batch = MassBatch(["a", "b"], focal, mass)
    mass[0, 0], focal[0] = -3, True
    np.testing.assert_array_equal(batch.mass, [[0.5, 0.5]])
    np.testing.assert_array_equal(batch.focal, np.eye(2))
    for array in (
        dempster(batch, batch).focal,
        batch.bounds()[:1].lower,
        copy.deepcopy(batch.bounds()).upper,
    ):
        assert not array.flags.writeable


@pytest.mark.parametrize(
    "rule",
    [
        dempster,
        conjunctive,
        disjunctive,
        cautious,
        yager,
        dubois_prade,
        conflict,
        jousselme_distance,
    ],
)
def test_no_rows_combine_to_no_rows(rule):
    frame = Frame(FRAME)
    none = MassBatch(frame, frame.subsets(), np.empty((0, 7)))
    one = discount(MassFunction({"a": 1.0}, frame), 0.1)
    for pair in ((none, none), (none, one), (one, none), (none, one.to_batch().dense())):
        assert len(rule(*pair)) == 0


@pytest.mark.parametrize(
    "correct",
    [
        lambda b: discount(b, 0.1),
        lambda b: discount(b, [0.1] * 3),
        lambda b: condition(b, "a"),
        lambda b: b.dense(),
    ],
)
def test_no_rows_are_corrected_to_no_rows(correct):
    frame = Frame(FRAME)
    none = MassBatch(frame, frame.subsets(), np.empty((0, 7)))
    assert len(correct(none)) == 0
    assert none.bounds().upper.shape == (0, 3)


def test_equal_masses_are_at_distance_zero():
    m = MassFunction({(0, 2, 3): 0.04, (1, 2, 3): 0.81, (0, 1, 2, 3): 0.15}, frame=range(4))
    assert jousselme_distance(m, m) == 0


def test_few_sets_in_a_dense_batch_of_many_classes_are_combined_pair_by_pair():
    frame = range(18)
    a = MassFunction({0: 1 - 1e-5, (1, 2): 1e-5}, frame).to_batch().dense()
    b = MassFunction({1: 1 - 1e-5, (0, 2): 1e-5}, frame).to_batch().dense()
    together = dempster(a, b)[0]
    # The pairs that meet: {0}∩{0,2}, {1,2}∩{1}, and {1,2}∩{0,2} ten orders below.
    small = 1e-5 * (1 - 1e-5)
    total = 2 * small + 1e-10
    assert together.masses == pytest.approx(
        {(0,): small / total, (1,): small / total, (2,): 1e-10 / total}
    )


def test_probabilities_become_masses():
    proba = np.array([[0.2, 0.3, 0.5]], dtype=np.float32)
    batch = MassBatch.from_proba(FRAME, proba)
    np.testing.assert_allclose(batch.bounds().lower, proba, atol=1e-7)
    with pytest.raises(ValueError, match="3 columns for 2 classes"):
        MassBatch.from_proba(["a", "b"], proba)
    with pytest.raises(ValueError, match="must sum to 1"):
        MassBatch.from_proba(FRAME, [[0.2, 0.2, 0.2]])


def test_mass_functions_become_a_batch_and_back():
    frame = Frame(FRAME)
    functions = [
        MassFunction({"a": 0.4, ("a", "b"): 0.6}, frame),
        MassFunction.vacuous(frame),
        MassFunction({("b", "c"): 1.0}, frame),
    ]
    batch = MassBatch.stack(functions)
    assert [m.masses for m in batch] == [m.masses for m in functions]
    with pytest.raises(ValueError, match="all on one frame"):
        MassBatch.stack([functions[0], MassFunction({"a": 1.0})])
    with pytest.raises(ValueError, match="at least one"):
        MassBatch.stack([])
    with pytest.raises(TypeError, match="list of MassFunction"):
        MassBatch.stack([batch])


def test_series_go_by_their_labels():
    pd = pytest.importorskip("pandas")
    sure = MassFunction({"a": 1.0}, FRAME)
    rates = pd.Series([0.3, 0.0], index=["c", "b"])
    assert discount(sure, rates).masses == pytest.approx({("a",): 0.7, ("a", "c"): 0.3})
    assert MassFunction(pd.Series({"a": 0.4, "b": 0.6})).masses == {("a",): 0.4, ("b",): 0.6}
    with pytest.raises(ValueError, match="more than once"):
        discount(sure, pd.Series([0.3, 0.1], index=["c", "c"]))


def test_a_data_frame_of_rates_is_an_array():
    pd = pytest.importorskip("pandas")
    batch = MassBatch.from_proba(["a", "b"], [[1, 0], [0, 1]])
    rates = pd.DataFrame({"a": [0.1, 0.2], "b": [0.3, 0.4]})
    np.testing.assert_allclose(
        discount(batch, rates).to_array(), discount(batch, rates.to_numpy()).to_array()
    )
    with pytest.raises(ValueError, match="must equal itself"):
        Frame([pd.NA, 1])


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: MassFunction([0.5, 0.5]), "masses must map subsets.*; got list"),
        (lambda: MassFunction({}), "vacuous"),
        (lambda: MassFunction({frozenset("ab"): 1.0}), "sets have no order.*frame="),
        (lambda: MassFunction({"a": "much"}), "mass must hold numbers"),
        (lambda: MassFunction({"a": None}), "mass must hold numbers"),
        (lambda: MassBatch(FRAME, [("a", "b"), ("c",)], [[0.5, 0.5]]), "frame.to_indicator"),
        (lambda: discount(MassFunction.vacuous(FRAME), None), "rate must hold numbers; got None"),
        (lambda: discount(MassFunction.vacuous(FRAME), {"a": "x"}), "rate must hold numbers"),
        (
            lambda: pignistic(np.ones((2, 2))),
            r"got ndarray\. Probabilities are MassBatch.from_proba",
        ),
        (lambda: condition(MassFunction.vacuous(FRAME), []), "subset is empty"),
        (lambda: conjunctive(torn(), torn()).to_batch().bounds(), r"Normalise first: dempster"),
        (lambda: list(MassFunction.vacuous(FRAME)), "not iterable"),
        (lambda: MassBatch(FRAME, np.eye(3), np.ma.masked_equal([[0.5, 0.5, 0.0]], 0)), "masked"),
        (lambda: MassBatch(FRAME, np.eye(3), [[1j, 0, 0]]), "must hold numbers"),
        (lambda: Bounds.precise([["0.5", "0.5"]]), "proba must hold numbers"),
        (lambda: Bounds([[0.5, 0.5]], [[0.5, 0.5]])[None], "rows are picked by"),
        (lambda: MassFunction.vacuous(FRAME).to_batch()[None], "rows are picked by"),
    ],
)
def test_mistakes_are_explained(build, message):
    with pytest.raises((ValueError, TypeError, IndexError), match=message):
        build()


def test_bounds_can_be_tightened():
    loose = Bounds([[0.6, 0.0, 0.0]], [[1.0, 0.9, 0.3]])
    tight = loose.tightened()
    np.testing.assert_allclose(tight.upper, [[1.0, 0.4, 0.3]])
    np.testing.assert_allclose(tight.lower, [[0.6, 0.0, 0.0]])
    np.testing.assert_allclose(Bounds([[0.0, 0.0]], [[1.0, 0.3]]).tightened().lower, [[0.7, 0.0]])
