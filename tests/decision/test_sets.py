"""Set-valued decisions: dominance, admissibility, set utilities, rejection."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from dubito.belief import Bounds, Frame, MassBatch, MassFunction
from dubito.decision import (
    admissibility,
    e_admissibility,
    interval_dominance,
    maximality,
    maximax,
    maximin,
    owa,
    pignistic_choice,
    reject,
    set_utility,
    weak_dominance,
)
from dubito.testing.strategies import bounds, mass_batches, probabilities

SET_RULES = [interval_dominance, maximality, e_admissibility, weak_dominance]


def random_losses(seed, n_acts, n_classes):
    return np.random.default_rng(seed).integers(0, 6, size=(n_acts, n_classes)).astype(float)


@given(batch=mass_batches(n_classes=3), seed=st.integers(0, 999), acts=st.integers(1, 5))
@settings(max_examples=60)
def test_sets_are_nested_and_never_empty(batch, seed, acts):
    for belief in (batch, batch.bounds()):
        for loss in (None, random_losses(seed, acts, 3)):
            kept = {rule: rule(belief, loss) for rule in SET_RULES}
            assert all(sets.any(axis=1).all() for sets in kept.values())
            assert (kept[e_admissibility] <= kept[maximality]).all()
            assert (kept[maximality] <= kept[interval_dominance]).all()
            assert (kept[weak_dominance] <= kept[interval_dominance]).all()
            rows = np.arange(len(batch))
            assert kept[e_admissibility][rows, pignistic_choice(belief, loss)].all()
            assert kept[interval_dominance][rows, maximin(belief, loss)].all()
            assert kept[interval_dominance][rows, maximax(belief, loss)].all()


@given(p=probabilities())
def test_precise_probabilities_keep_exactly_the_most_probable(p):
    best = p >= p.max(axis=1, keepdims=True) - 1e-12
    for rule in SET_RULES:
        np.testing.assert_array_equal(rule(p), best)


@pytest.mark.parametrize("n_classes", [2, 3, 7, 1000])
def test_a_uniform_distribution_keeps_everything(n_classes):
    p = np.full((2, n_classes), 1 / n_classes)
    p[1] = np.cumsum(p[1]) - np.concatenate([[0], np.cumsum(p[1])[:-1]])  # equal up to rounding
    for rule in SET_RULES:
        assert rule(p / p.sum(axis=1, keepdims=True)).all()


def test_ignorance_keeps_everything():
    ignorant = MassFunction.vacuous(["a", "b", "c"])
    for rule in SET_RULES:
        assert rule(ignorant).all()
        assert rule(ignorant.to_batch().bounds()).all()


@given(batch=mass_batches(n_classes=3), seed=st.integers(0, 999))
@settings(max_examples=30)
def test_permuting_the_classes_permutes_the_sets(batch, seed):
    order = np.random.default_rng(seed).permutation(3)
    labels = [batch.frame.labels[k] for k in order]
    permuted = MassBatch(labels, batch.focal[:, order], batch.mass)
    for rule in SET_RULES:
        np.testing.assert_array_equal(rule(permuted), rule(batch)[:, order])
        np.testing.assert_array_equal(rule(permuted.bounds()), rule(batch.bounds())[:, order])


def best_for_some_probability(batch, row, loss, act):
    """E-admissibility by its definition, over P with P(A) ≥ Bel(A) for every subset A."""
    k = len(batch.frame)
    above, least = [], []
    for size in range(1, k + 1):
        for subset in combinations(range(k), size):
            above.append(-np.isin(np.arange(k), subset).astype(float))
            least.append(-batch.bel([batch.frame.labels[i] for i in subset])[row])
    for other in loss:
        above.append(loss[act] - other)
        least.append(0.0)
    result = linprog(
        np.zeros(k), A_ub=above, b_ub=np.array(least) + 1e-9, A_eq=np.ones((1, k)), b_eq=[1]
    )
    return result.status == 0


@given(batch=mass_batches(n_classes=3, rows=2), seed=st.integers(0, 999))
@settings(max_examples=40)
def test_e_admissibility_of_masses_follows_the_definition(batch, seed):
    for loss in (None, 1 - np.eye(3), random_losses(seed, 4, 3)):
        ours = e_admissibility(batch, loss)
        matrix = 1 - np.eye(3) if loss is None else loss
        for row in range(len(batch)):
            for act in range(len(matrix)):
                assert ours[row, act] == best_for_some_probability(batch, row, matrix, act)


@given(b=bounds())
@settings(max_examples=60)
def test_e_admissibility_of_bounds_closed_form_against_the_programme(b):
    closed = e_admissibility(b)
    programme = e_admissibility(b, 1 - np.eye(b.lower.shape[1]))
    np.testing.assert_array_equal(closed, programme)


def test_e_admissibility_of_bounds_that_no_mass_function_has():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(4), size=200)
    b = Bounds(p * rng.uniform(0, 1, p.shape), np.minimum(p * rng.uniform(1, 2, p.shape), 1))
    np.testing.assert_array_equal(e_admissibility(b), e_admissibility(b, 1 - np.eye(4)))
    assert (e_admissibility(b) != interval_dominance(b)).any()


@given(batch=mass_batches(n_classes=5, rows=2))
@settings(max_examples=30)
def test_e_admissibility_of_masses_closed_form_against_the_programme(batch):
    np.testing.assert_array_equal(e_admissibility(batch), e_admissibility(batch, 1 - np.eye(5)))


@given(batch=mass_batches(n_classes=4, rows=2), seed=st.integers(0, 999))
@settings(max_examples=30)
def test_e_admissibility_by_cuts_and_by_allocation_agree(batch, seed):
    loss = random_losses(seed, 5, 4)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(admissibility, "_LISTED_UP_TO", 0)
        by_shares = e_admissibility(batch, loss)
    np.testing.assert_array_equal(e_admissibility(batch, loss), by_shares)


def test_e_admissibility_on_a_frame_too_large_to_list():
    m = MassFunction({0: 0.4, (1, 2): 0.3, tuple(range(1000)): 0.3}, range(1000))
    kept = e_admissibility(m)[0]
    # 0 may have 0.4 to 0.7, 1 or 2 up to 0.6, any other class at most 0.3 against 0.4 for 0
    assert np.flatnonzero(kept).tolist() == [0, 1, 2]


@pytest.mark.parametrize("scale", [1e-200, 1e-9, 1.0, 1e20])
def test_the_unit_of_the_loss_is_immaterial(scale):
    ignorant = Bounds([[0, 0]], [[1, 1]])
    hedge = scale * np.array([[0, 1], [1, 0], [0.6, 0.6]])
    assert e_admissibility(ignorant, hedge).tolist() == [[True, True, False]]
    assert maximality(ignorant, hedge).tolist() == [[True, True, True]]


def test_a_forbidden_act_does_not_blur_the_others():
    ignorant = Bounds([[0, 0]], [[1, 1]])
    hedge = [[0, 1], [1, 0], [0.501, 0.501], [1e12, 1e12]]
    assert e_admissibility(ignorant, hedge).tolist() == [[True, True, False, False]]
    assert reject([[0.45, 0.55]], 0.4, loss=[[0, 1], [1, 0], [1e12, 1e12]]).all()


@pytest.mark.parametrize("huge", [1e6, 1e12, 1e100])
def test_losses_in_impossible_classes_do_not_count(huge):
    loss = [[0, 1, huge], [1, 0, huge], [0.6, 0.6, 0]]
    frame = ["a", "b", "c"]
    for belief in (Bounds([[0, 0, 0]], [[1, 1, 0]]), MassFunction({("a", "b"): 1.0}, frame)):
        assert e_admissibility(belief, loss).tolist() == [[True, True, False]]
    by_shares = MassFunction({(0, 1): 1.0}, frame=range(18))
    wide = np.hstack([np.array(loss)[:, :2], np.repeat(np.array(loss)[:, 2:], 16, axis=1)])
    assert e_admissibility(by_shares, wide).tolist() == [[True, True, False]]


def test_exact_ties_between_bounds_survive_rounding():
    bounds = Bounds([[0, 1 / 9, 2 / 9, 5 / 36, 0]], [[1 / 18, 2 / 9, 4 / 9, 5 / 18, 1e-5]])
    loss = np.array([[0, 0, 0, 0, 1], [0, 0, 0, 0, 0]])
    for scale in (1, 1e20):
        assert maximax(bounds, scale * loss).tolist() == [0]
        for rule in (interval_dominance, maximality, e_admissibility):
            assert rule(bounds, scale * loss).all()


@pytest.mark.parametrize("rule", SET_RULES)
def test_an_empty_set_listed_without_mass_is_nothing(rule):
    loss = [[0, 1], [1, 0]]
    listed = MassBatch(["a", "b"], [[0, 0], [1, 0], [1, 1]], [[0, 0.5, 0.5]])
    plain = MassBatch(["a", "b"], [[1, 0], [1, 1]], [[0.5, 0.5]])
    np.testing.assert_array_equal(rule(listed, loss), rule(plain, loss))
    np.testing.assert_array_equal(rule(listed), rule(plain))
    assert owa(listed, loss).tolist() == owa(plain, loss).tolist()
    assert reject(listed, 0.4, "pessimistic", loss=loss).all()


@pytest.mark.parametrize("rule", SET_RULES)
def test_float32_probabilities_keep_their_best_class(rule):
    p = np.random.default_rng(0).dirichlet(np.ones(10), size=500).astype(np.float32)
    np.testing.assert_array_equal(rule(p).sum(axis=1), 1)
    assert rule([[0.3333333] * 3]).all()


@given(batch=mass_batches(n_classes=3), seed=st.integers(0, 999))
def test_bounds_mean_the_same_with_and_without_a_zero_one_matrix(batch, seed):
    loose = np.random.default_rng(seed).uniform(0, 0.3, size=(2, len(batch), 3))
    tight = batch.bounds()
    lower, upper = np.maximum(tight.lower - loose[0], 0), np.minimum(tight.upper + loose[1], 1)
    for b in (tight, Bounds(lower, upper)):
        for rule in SET_RULES:
            np.testing.assert_array_equal(rule(b), rule(b, 1 - np.eye(3)))


def test_maximality_with_a_loss_by_definition():
    rng = np.random.default_rng(1)
    mass = rng.dirichlet(np.ones(7) / 3, size=50)
    batch = MassBatch(list("abc"), Frame(["a", "b", "c"]).subsets(), mass)
    loss = rng.normal(size=(4, 3))
    expected = np.ones((50, 4), dtype=bool)
    for a in range(4):
        for b in range(4):
            gain = loss[a] - loss[b]
            lower = sum(mass[:, f] * gain[inside].min() for f, inside in enumerate(batch.focal))
            expected[:, a] &= ~(lower > 1e-12)
    np.testing.assert_array_equal(maximality(batch, loss), expected)
    assert (expected != interval_dominance(batch, loss)).any()


def test_set_rules_at_five_thousand_classes():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.full(5000, 0.01), size=4)
    b = Bounds(0.9 * p, np.minimum(0.9 * p + 0.1, 1))
    assert (e_admissibility(b) <= interval_dominance(b)).all()
    assert interval_dominance(b).any(axis=1).all()
    assert set_utility(p).any(axis=1).all()


# Set utilities


def best_set_by_enumeration(p, g):
    sets = [s for r in range(1, len(p) + 1) for s in combinations(range(len(p)), r)]
    return max(g(len(s)) * sum(p[list(s)]) for s in sets)


@pytest.mark.parametrize("name", ["u65", "u80"])
@given(p=probabilities(n_classes=5))
def test_the_best_set_is_the_best_of_all_subsets(name, p):
    alpha = {"u65": 1.6, "u80": 2.2}[name]

    def g(size):
        return alpha / size + (1 - alpha) / size**2

    assert g(2) == pytest.approx({"u65": 0.65, "u80": 0.8}[name])
    for row, chosen in zip(p, set_utility(p, name), strict=True):
        earned = g(chosen.sum()) * row[chosen].sum()
        assert earned == pytest.approx(best_set_by_enumeration(row, g))
        by_function = set_utility(row[None, :], g)[0]
        np.testing.assert_array_equal(by_function, chosen)
        np.testing.assert_array_equal(
            set_utility(row[None, :], [g(s) for s in range(1, 6)])[0], chosen
        )


def test_any_size_utility_even_one_that_grows():
    p = [[0.4, 0.35, 0.25]]
    assert set_utility(p, [1, 1, 1]).all()
    assert set_utility(p, [1, 0, 0]).sum() == 1
    with pytest.raises(ValueError, match="must not be negative"):
        set_utility(p, lambda size: -size)


def test_beliefs_enter_through_their_pignistic_probability():
    m = MassFunction({"a": 0.2, ("b", "c"): 0.8})
    np.testing.assert_array_equal(set_utility(m), set_utility(m.pignistic()[None, :]))


def test_classes_equal_up_to_rounding_enter_in_their_order():
    w = np.array([0, 4, 2, 3, 1, 1, 0, 1, 3, 1, 3, 3, 3, 3, 1, 3])
    batch = MassBatch.from_array(range(4), w[None, :] / w.sum())
    p = batch.pignistic()[0]
    assert p[0] == pytest.approx(p[3], abs=1e-15)
    assert set_utility(batch, [1, 0, 0, 0]).argmax() == pignistic_choice(batch)[0] == 0


def test_bad_utilities_are_refused():
    with pytest.raises(ValueError, match="'u65', 'u80', a function"):
        set_utility([[1.0]], "u70")
    with pytest.raises(ValueError, match=r"each size 1..2; got 3"):
        set_utility([[0.5, 0.5]], [1, 1, 1])


# Rejection


@given(b=bounds(), cost=st.sampled_from([0.0, 0.1, 0.3, 0.5, 1.0]))
def test_rejection_by_its_definition(b, cost):
    for strategy, best in [
        ("optimistic", b.upper),
        ("pessimistic", b.lower),
        ("pignistic", b.pignistic()),
    ]:
        expected = best.max(axis=1) < 1 - cost - 1e-12
        np.testing.assert_array_equal(reject(b, cost, strategy), expected)
    assert (reject(b, cost, "optimistic") <= reject(b, cost, "pessimistic")).all()


@given(batch=mass_batches())
def test_rejection_grows_as_it_gets_cheaper(batch):
    costs = [1.0, 0.6, 0.3, 0.1, 0.0]
    for strategy in ("optimistic", "pessimistic", "pignistic"):
        rejected = [reject(batch, cost, strategy).sum() for cost in costs]
        assert rejected == sorted(rejected)
        assert rejected[0] == 0


def test_a_tie_is_decided_whatever_the_rounding():
    assert 1 - 0.7 > 0.3  # in floating point
    assert not reject([[0.7, 0.3]], cost=0.3).any()


def test_rejection_with_a_loss_matrix():
    loss = [[0, 10], [1, 0]]
    p = [[0.5, 0.5], [0.05, 0.95]]
    assert reject(p, cost=0.4, loss=loss).tolist() == [True, False]


def test_bad_rejection_is_refused():
    with pytest.raises(ValueError, match=r"'pignistic', 'probabilistic'\. Got 'brave'"):
        reject([[1.0]], 0.1, "brave")
    with pytest.raises(ValueError, match="cost must not be negative"):
        reject([[1.0]], -0.1)
    with pytest.raises(ValueError, match="nan"):
        reject([[1.0]], np.nan)


def test_no_rows_give_no_decisions():
    nothing = Bounds(np.empty((0, 3)), np.empty((0, 3)))
    for rule in SET_RULES:
        assert rule(nothing).shape == (0, 3)
    assert set_utility(np.empty((0, 3))).shape == (0, 3)
    assert reject(nothing, 0.1).shape == (0,)
    assert maximin(nothing).shape == (0,)
