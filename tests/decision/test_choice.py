import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dubito.belief import Bounds, MassBatch, MassFunction
from dubito.decision import hurwicz, maximax, maximin, minimax_regret, owa, pignistic_choice
from dubito.decision.risk import as_belief, risk_bounds
from dubito.testing.strategies import mass_batches, probabilities

from reference import brute_force

ALL_RULES = [maximin, maximax, hurwicz, pignistic_choice, minimax_regret, owa]


def losses(n_classes, n_acts=None):
    acts = st.integers(1, 4) if n_acts is None else st.just(n_acts)
    return acts.flatmap(
        lambda a: hnp.arrays(np.float64, (a, n_classes), elements=st.integers(-3, 5).map(float))
    )


@given(batch=mass_batches(n_classes=3), loss=losses(3))
def test_risks_follow_the_definition(batch, loss):
    lower, upper, _ = risk_bounds(batch, loss)
    for i, one in enumerate(batch):
        by_hand = brute_force.as_dict(one)
        for a, row in enumerate(loss):
            gamble = dict(zip(batch.frame.labels, row, strict=True))
            opposite = {label: -value for label, value in gamble.items()}
            assert lower[i, a] == pytest.approx(brute_force.lower_expectation(by_hand, gamble))
            assert upper[i, a] == pytest.approx(-brute_force.lower_expectation(by_hand, opposite))


@given(batch=mass_batches())
def test_no_loss_means_zero_one_loss(batch):
    zero_one = 1 - np.eye(len(batch.frame))
    for rule in ALL_RULES:
        np.testing.assert_array_equal(rule(batch), rule(batch, zero_one))


@given(p=probabilities())
def test_all_rules_agree_on_precise_probabilities(p):
    best = p.max(axis=1)
    for rule in ALL_RULES:
        chosen = rule(p)
        np.testing.assert_allclose(p[np.arange(len(p)), chosen], best, atol=1e-12)


@given(batch=mass_batches(n_classes=3), loss=losses(3))
def test_hurwicz_and_owa_run_from_optimist_to_pessimist(batch, loss):
    np.testing.assert_array_equal(hurwicz(batch, loss, alpha=1), maximin(batch, loss))
    np.testing.assert_array_equal(hurwicz(batch, loss, alpha=0), maximax(batch, loss))
    np.testing.assert_array_equal(owa(batch, loss, optimism=0), maximin(batch, loss))
    np.testing.assert_array_equal(owa(batch, loss, optimism=1), maximax(batch, loss))
    np.testing.assert_array_equal(owa(batch, loss, optimism=0.5), pignistic_choice(batch, loss))


@given(batch=mass_batches(n_classes=3), loss=losses(3, n_acts=3))
def test_bounds_are_never_bolder_than_the_masses_behind_them(batch, loss):
    lower, upper, _ = risk_bounds(batch, loss)
    wider_lower, wider_upper, _ = risk_bounds(batch.bounds(), loss)
    assert (wider_lower <= lower + 1e-12).all()
    assert (wider_upper >= upper - 1e-12).all()


@given(batch=mass_batches(n_classes=2), loss=losses(2))
def test_two_class_bounds_say_all_the_masses_say(batch, loss):
    for rule in ALL_RULES:
        np.testing.assert_array_equal(rule(batch.bounds(), loss), rule(batch, loss))


def test_bounds_with_a_loss_against_a_linear_programme():
    from scipy.optimize import linprog

    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(5), size=30)
    bounds = Bounds(p * rng.uniform(0, 1, p.shape), np.minimum(p * rng.uniform(1, 3, p.shape), 1))
    loss = rng.normal(size=(4, 5))
    lower, upper, _ = risk_bounds(bounds, loss)
    for i in range(30):
        between = list(zip(bounds.lower[i], bounds.upper[i], strict=True))
        for a in range(4):
            low = linprog(loss[a], A_eq=np.ones((1, 5)), b_eq=[1], bounds=between)
            high = linprog(-loss[a], A_eq=np.ones((1, 5)), b_eq=[1], bounds=between)
            assert lower[i, a] == pytest.approx(low.fun)
            assert upper[i, a] == pytest.approx(-high.fun)


def test_minimax_regret_differs_from_maximin():
    ignorant = MassFunction.vacuous(["rain", "sun"])
    loss = [[0, 10], [8, 9]]  # the second act is safe, the first regrets little
    assert maximin(ignorant, loss).tolist() == [1]
    assert minimax_regret(ignorant, loss).tolist() == [0]


def test_ties_go_to_the_first_act_whatever_the_rounding():
    p = np.array([[0.1 + 0.2, 0.3, 0.4 - 0.1, 0.1]])
    assert len({*p[0, :3]}) > 1
    for rule in ALL_RULES:
        assert rule(p / p.sum()).tolist() == [0]


def test_owa_weights_have_the_given_orness_and_largest_entropy():
    from dubito.decision.choice import entropic_weights

    for size in (2, 3, 7):
        rank = np.arange(size)
        for optimism in (0.01, 0.3, 0.5, 0.77, 0.999):
            w = entropic_weights(size, optimism)
            assert w.sum() == pytest.approx(1)
            assert w @ (1 - rank / (size - 1)) == pytest.approx(optimism)
            ratios = w[1:] / w[:-1]
            np.testing.assert_allclose(ratios, ratios[0])  # geometric: the stationarity condition


def test_a_forbidden_act_does_not_blur_the_others():
    forbidden = [1e12, 1e12]
    assert pignistic_choice([[0.1, 0.9]], [[0, 1], [1, 0], forbidden]).tolist() == [1]
    assert maximin([[0.4999, 0.5001]], [[0, 1], [1, 0], forbidden]).tolist() == [1]
    assert maximin([[1.0, 0.0]], [[1, 0], [0, 1e12]]).tolist() == [1]


@given(batch=mass_batches(n_classes=3), loss=losses(3), scale=st.sampled_from([1e-200, 1e-9, 1e15]))
def test_the_unit_of_the_loss_is_immaterial(batch, loss, scale):
    for rule in ALL_RULES:
        np.testing.assert_array_equal(rule(batch, loss * scale), rule(batch, loss))


def test_owa_with_many_classes_solves_each_size_once():
    n_classes = 2000
    m = MassFunction({0: 0.4, (1, 2): 0.3, tuple(range(n_classes)): 0.3}, range(n_classes))
    assert owa(m, optimism=0.3).tolist() == [0]
    assert owa(m, optimism=1e-300).tolist() == maximin(m).tolist()


def test_float32_and_rounded_probabilities_are_taken_as_they_are_meant():
    p = np.random.default_rng(0).dirichlet(np.ones(1000), size=20).astype(np.float32)
    for rule in ALL_RULES:
        np.testing.assert_array_equal(rule(p), p.argmax(axis=1))
    assert maximin([[0.6 + 5e-6, 0.4]]).tolist() == [0]


def test_five_thousand_classes():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(5000), size=3)
    for rule in ALL_RULES:
        np.testing.assert_array_equal(rule(p), p.argmax(axis=1))


def test_bad_input_is_refused():
    p = [[0.5, 0.5]]
    with pytest.raises(ValueError, match=r"2 columns, one per class; got shape \(1, 3\)"):
        maximin(p, [[1, 2, 3]])
    with pytest.raises(ValueError, match="nan"):
        maximin(p, [[1, np.nan]])
    with pytest.raises(ValueError, match=r"alpha must be a number in \[0, 1\]. Got 2"):
        hurwicz(p, alpha=2)
    with pytest.raises(ValueError, match="optimism"):
        owa(p, optimism="much")
    with pytest.raises(ValueError, match=r"must sum to 1; not so in row 0 \(row 0 sums to 0.9\)"):
        maximax([[0.5, 0.4]])
    with pytest.raises(TypeError, match=r"belief must be Bounds, a MassBatch.*; got NoneType"):
        maximin(None)
    with pytest.raises(ValueError, match="loss must be a plain array; got rows of unequal length"):
        maximin(p, [[0, 1], [1]])
    with pytest.raises(ValueError, match="empty set"):
        maximin(MassFunction({(): 0.5, "a": 0.5}, frame=["a", "b"]))


def test_single_mass_functions_and_lists_are_taken():
    assert isinstance(as_belief(MassFunction({"a": 1.0})), MassBatch)
    assert isinstance(as_belief([[1.0]]), Bounds)
    assert maximin(MassFunction({"b": 0.6, ("a", "b"): 0.4}, ["a", "b"])).tolist() == [1]
