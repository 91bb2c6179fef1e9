import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dubito.belief import (
    Frame,
    MassBatch,
    MassFunction,
    TotalConflictError,
    cautious,
    conflict,
    conjunctive,
    dempster,
    disjunctive,
    dubois_prade,
    plausibility_transform,
    yager,
)
from dubito.testing.strategies import mass_batches

from reference import brute_force

RULES = {
    "conjunctive": (conjunctive, brute_force.conjunctive),
    "disjunctive": (disjunctive, brute_force.disjunctive),
    "dubois_prade": (dubois_prade, brute_force.dubois_prade),
}


@st.composite
def pairs(draw, **options):
    """Two dense batches that fit together."""
    n_classes, rows = draw(st.integers(1, 5)), draw(st.integers(1, 3))
    options = {"n_classes": n_classes, "rows": rows, **options}
    return draw(mass_batches(**options)), draw(mass_batches(**options))


def assert_same_masses(batch, expected, atol=1e-12):
    for one, by_hand in zip(batch, expected, strict=True):
        for subset in brute_force.subsets(batch.frame.labels):
            assert one[subset] == pytest.approx(by_hand.get(subset, 0.0), abs=atol)


def listed(batch):
    """The same masses, with the focal sets in another order, so that nothing is dense."""
    order = np.arange(len(batch.focal))[::-1]
    extra = np.zeros((1, len(batch.frame)), dtype=bool)
    focal = np.vstack([batch.focal[order], extra])
    return MassBatch(
        batch.frame, focal, np.hstack([batch.mass[:, order], np.zeros((len(batch), 1))])
    )


@pytest.mark.parametrize("rule", RULES)
@given(sources=pairs())
def test_dense_listed_and_single_follow_the_definition(rule, sources):
    ours, by_definition = RULES[rule]
    a, b = sources
    expected = [
        by_definition(brute_force.as_dict(x), brute_force.as_dict(y))
        for x, y in zip(a, b, strict=True)
    ]
    assert_same_masses(ours(a, b), expected)
    assert_same_masses(ours(listed(a), listed(b)), expected)
    for x, y, by_hand in zip(a, b, expected, strict=True):
        assert_same_masses(ours(x, y).to_batch(), [by_hand])


@given(sources=pairs(dogmatic=False))
def test_dempster_and_yager_follow_the_definition(sources):
    a, b = sources
    singles = [(brute_force.as_dict(x), brute_force.as_dict(y)) for x, y in zip(a, b, strict=True)]
    assert_same_masses(dempster(a, b), [brute_force.dempster(x, y) for x, y in singles])
    assert yager(a, b).is_dense
    assert dempster(a, b).is_dense
    assert_same_masses(yager(a, b), [brute_force.yager(x, y, a.frame) for x, y in singles])
    assert_same_masses(yager(listed(a), b), [brute_force.yager(x, y, a.frame) for x, y in singles])


@pytest.mark.parametrize("rule", [dempster, conjunctive, disjunctive, cautious])
@given(
    sources=st.integers(1, 4).flatmap(
        lambda k: st.tuples(*3 * [mass_batches(n_classes=k, rows=2, dogmatic=False)])
    )
)
@settings(max_examples=50)
def test_commutative_and_associative(rule, sources):
    a, b, c = sources
    together = rule(a, b, c).to_array()
    np.testing.assert_allclose(rule(c, a, b).to_array(), together, atol=1e-9)
    np.testing.assert_allclose(rule(a, rule(b, c)).to_array(), together, atol=1e-9)


@given(batch=mass_batches())
def test_the_vacuous_mass_function_changes_nothing(batch):
    nothing_known = MassFunction.vacuous(batch.frame)
    np.testing.assert_allclose(dempster(batch, nothing_known).to_array(), batch.to_array())
    np.testing.assert_allclose(conjunctive(nothing_known, batch).to_array(), batch.to_array())


@given(batch=mass_batches(dogmatic=False))
def test_cautious_is_idempotent_and_dempster_is_not(batch):
    np.testing.assert_allclose(cautious(batch, batch).to_array(), batch.to_array(), atol=1e-9)


@given(sources=pairs(dogmatic=False))
def test_the_contour_of_dempster_is_the_normalised_product(sources):
    a, b = sources
    product = plausibility_transform(a) * plausibility_transform(b)
    product /= product.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(plausibility_transform(dempster(a, b)), product, atol=1e-12)


@given(sources=pairs(), seed=st.integers(0, 1000))
def test_permuting_the_classes_permutes_the_result(sources, seed):
    a, b = sources
    order = np.random.default_rng(seed).permutation(len(a.frame))
    frame = Frame([a.frame.labels[k] for k in order])

    def permuted(batch):
        return MassBatch(frame, batch.focal[:, order], batch.mass)

    for rule in (conjunctive, disjunctive, dubois_prade):
        result = rule(permuted(a), permuted(b))
        assert_same_masses(result, [brute_force.as_dict(m) for m in rule(a, b)])


def test_cautious_rule_of_denoeux_2008():
    # Provenance: the two mass functions of Denœux (2008), Artificial Intelligence 172, weights
    # worked out by hand: w1(ab) = 2/5, w1(bc) = 2/7, w1(b) = 7/4; w2(bc) = 3/7, w2(b) = 7/10;
    # the smaller ones are 2/5, 2/7 and 7/10, which combine to the masses below.
    m1 = MassFunction({("a", "b"): 0.3, ("b", "c"): 0.5, ("a", "b", "c"): 0.2})
    m2 = MassFunction({"b": 0.3, ("b", "c"): 0.4, ("a", "b", "c"): 0.3}, frame=["a", "b", "c"])
    expected = {("b",): 0.6, ("a", "b"): 0.12, ("b", "c"): 0.2, ("a", "b", "c"): 0.08}
    assert cautious(m1, m2).masses == pytest.approx(expected)


def test_zadehs_example():
    # Provenance: Zadeh (1979). Two doctors, almost total conflict: κ = 0.9999.
    first = MassFunction(
        {"meningitis": 0.99, "tumour": 0.01}, ["meningitis", "concussion", "tumour"]
    )
    second = MassFunction({"concussion": 0.99, "tumour": 0.01}, first.frame)
    assert conflict(first, second) == pytest.approx(0.9999)
    assert dempster(first, second).masses == pytest.approx({("tumour",): 1.0})
    assert yager(first, second).bel("tumour") == pytest.approx(0.0001)
    assert dubois_prade(first, second).pl("tumour") == pytest.approx(0.0199)


def test_evtools_agrees():
    conversions = pytest.importorskip("evtools.conversions")
    rng = np.random.default_rng(0)
    for n_classes in (2, 3, 5, 8):
        frame = Frame(range(n_classes))
        a, b = (
            MassBatch(frame, frame.subsets(), rng.dirichlet(np.ones(2**n_classes - 1), size=1))
            for _ in range(2)
        )
        q = conversions.mtoq(a.to_array()[0]) * conversions.mtoq(b.to_array()[0])
        np.testing.assert_allclose(conjunctive(a, b).to_array()[0], conversions.qtom(q), atol=1e-14)
        w = np.minimum(*(conversions.mtow(m.to_array()[0]) for m in (a, b)))
        theirs = conversions.wtom(w)
        theirs[0] = 0.0  # theirs keeps the conflict, ours is normalised
        ours = cautious(a, b).to_array()[0]
        np.testing.assert_allclose(ours, theirs / theirs.sum(), atol=1e-10)


def test_total_conflict_names_the_rows():
    frame = Frame(["a", "b"])
    a = MassBatch(frame, [[1, 0], [0, 1]], [[1, 0], [0.5, 0.5], [0, 1], [1, 0], [1, 0], [1, 0]])
    b = MassFunction({"b": 1.0}, frame)
    message = r"rows 0, 3, 4 and 5 combine masses with no common class \(conflict 1\)\. Discount"
    for source in (a, a.dense()):
        with pytest.raises(TotalConflictError, match=message) as caught:
            dempster(source, b)
        assert caught.value.rows.tolist() == [0, 3, 4, 5]
    with pytest.raises(TotalConflictError, match="the sources combine"):
        dempster(MassFunction({"a": 1.0}, frame), b)
    assert conflict(MassFunction({"a": 1.0}, frame), b) == 1


@pytest.mark.parametrize("n_classes", [4, 6, 10])
def test_almost_total_conflict_is_resolved_to_relative_precision(n_classes):
    # Both sources are all but certain, of different classes; 1e-12 of each is spread out.
    rng = np.random.default_rng(n_classes)
    frame = Frame(range(n_classes))
    tiny = 1e-12
    sources = []
    for k in (0, 1):
        mass = tiny * rng.dirichlet(np.ones(2**n_classes - 1))
        mass[(1 << k) - 1] += 1 - tiny
        sources.append(MassBatch(frame, frame.subsets(), mass[None, :]))
    dense = dempster(*sources)
    assert conflict(*sources)[0] == pytest.approx(1, abs=1e-11)
    exact = brute_force.dempster(*(brute_force.as_dict(s[0]) for s in sources))
    for subset, mass in exact.items():
        assert dense[0][subset] == pytest.approx(mass, rel=1e-12)


def test_evidence_of_many_sources_does_not_underflow():
    m = MassFunction({"a": 1e-5, "b": 1 - 1e-5}, frame=["a", "b"])
    n = MassFunction({"a": 1 - 1e-5, "b": 1e-5}, frame=["a", "b"])
    combined = dempster(*100 * [m, n])
    assert combined["a"] == pytest.approx(0.5)


def test_listed_sets_on_a_large_frame_stay_listed():
    labels = range(200)
    a = MassFunction({(0, 1, 2): 0.5, tuple(labels): 0.5}, labels)
    b = MassFunction({(2, 3): 0.8, tuple(labels): 0.2}, labels)
    assert dempster(a, b).masses == pytest.approx(
        {(2,): 0.4, (2, 3): 0.4, (0, 1, 2): 0.1, tuple(labels): 0.1}
    )
    assert dubois_prade(a, b).masses == pytest.approx(dempster(a, b).masses)
    with pytest.raises(ValueError, match="20 classes"):
        cautious(a, b)


def test_many_listed_sets_are_combined_densely_and_agree():
    rng = np.random.default_rng(0)
    frame = Frame(range(6))
    a, b = (
        MassBatch(frame, frame.subsets()[::-1], rng.dirichlet(np.ones(63), size=2))
        for _ in range(2)
    )
    result = dempster(a, b)
    expected = [
        brute_force.dempster(brute_force.as_dict(x), brute_force.as_dict(y))
        for x, y in zip(a, b, strict=True)
    ]
    assert_same_masses(result, expected)


def test_one_row_serves_all_rows():
    rng = np.random.default_rng(0)
    frame = Frame(list("abc"))
    batch = MassBatch(frame, frame.subsets(), rng.dirichlet(np.ones(7), size=1000))
    one = MassFunction({"a": 0.3, ("a", "b", "c"): 0.7}, frame)
    together = dempster(batch, one)
    assert len(together) == 1000
    for i in (0, 999):
        np.testing.assert_allclose(
            together[i].to_batch().to_array(), dempster(batch[i], one).to_batch().to_array()
        )


def test_k20_dense_combines():
    frame = Frame(range(20))
    a = MassFunction({0: 0.4, tuple(frame): 0.6}, frame).to_batch().dense()
    b = MassFunction({(0, 1): 0.5, (2, 3): 0.2, tuple(frame): 0.3}, frame).to_batch().dense()
    together = dempster(a, b)
    assert together[0][0] == pytest.approx(0.4 * 0.8 / 0.92)
    assert together.mass.sum() == pytest.approx(1)


def test_mismatched_sources_are_refused():
    m = MassFunction({"a": 1.0}, frame=["a", "b"])
    with pytest.raises(ValueError, match="share one frame"):
        dempster(m, MassFunction({"a": 1.0}, frame=["b", "a"]))
    with pytest.raises(ValueError, match=r"same number of rows, or one; got \[2, 3\]"):
        dempster(MassBatch(["a"], [[1]], np.ones((2, 1))), MassBatch(["a"], [[1]], np.ones((3, 1))))
    with pytest.raises(TypeError, match="each its own argument; got list"):
        dempster([m, m])
    with pytest.raises(TypeError, match="at least one"):
        conjunctive()
    with pytest.raises(ValueError, match="some mass on the whole frame"):
        cautious(m, m)
    with pytest.raises(ValueError, match="without mass on the empty set"):
        dubois_prade(MassFunction({(): 0.5, "a": 0.5}, m.frame), m)
