"""Round trips of the six representations, and the compiled transforms against the formulas."""

import numpy as np
import pytest
from hypothesis import given

from dubito.belief import transforms
from dubito.belief._kernels import moebius, moebius_compiled
from dubito.testing.strategies import mass_batches

from reference import brute_force

PAIRS = [
    (transforms.mass_to_belief, transforms.belief_to_mass),
    (transforms.mass_to_plausibility, transforms.plausibility_to_mass),
    (transforms.mass_to_commonality, transforms.commonality_to_mass),
    (transforms.mass_to_implicability, transforms.implicability_to_mass),
]


@pytest.mark.parametrize(("there", "back"), PAIRS)
@given(batch=mass_batches())
def test_round_trip(there, back, batch):
    mass = batch.to_array()
    np.testing.assert_allclose(back(there(mass)), mass, atol=1e-13)


@given(batch=mass_batches(dogmatic=False))
def test_weights_round_trip(batch):
    mass = batch.to_array()
    weights = transforms.mass_to_weights(mass)
    np.testing.assert_allclose(transforms.weights_to_mass(weights), mass, atol=1e-10)


@given(batch=mass_batches())
def test_representations_follow_their_definitions(batch):
    mass = batch.to_array()
    frame = batch.frame
    subsets = [frozenset(frame.from_mask(mask)) for mask in range(2 ** len(frame))]
    by_hand = [dict(zip(subsets, row, strict=True)) for row in mass]
    for of, by_definition in [
        (transforms.mass_to_belief, brute_force.bel),
        (transforms.mass_to_plausibility, brute_force.pl),
        (transforms.mass_to_commonality, brute_force.q),
    ]:
        expected = [[by_definition(m, a) for a in subsets] for m in by_hand]
        np.testing.assert_allclose(of(mass), expected, atol=1e-13)


@pytest.mark.parametrize("n_classes", range(1, 9))
def test_a_subnormal_mass_survives_every_round_trip(n_classes):
    mass = np.random.default_rng(n_classes).dirichlet(np.ones(2**n_classes), size=3)
    assert (mass[:, 0] > 0).all()
    for there, back in [*PAIRS, (transforms.mass_to_weights, transforms.weights_to_mass)]:
        np.testing.assert_allclose(back(there(mass)), mass, atol=1e-10)


def test_a_simple_mass_function_has_one_weight():
    # Shafer: m(A) = 1 - exp(-w) on A = {0, 2} and the rest on the frame.
    mass = np.zeros(8)
    mass[0b101], mass[0b111] = 1 - np.exp(-1.7), np.exp(-1.7)
    weights = transforms.mass_to_weights(mass)
    expected = np.zeros(8)
    expected[0b101] = 1.7
    np.testing.assert_allclose(weights, expected, atol=1e-12)


def test_weights_add_under_dempsters_rule():
    rng = np.random.default_rng(0)
    a, b = rng.dirichlet(np.ones(15), size=(2, 5))
    a, b = (np.hstack([np.zeros((5, 1)), m]) for m in (a, b))
    combined = moebius.intersection_product(a, b)
    total = transforms.mass_to_weights(a) + transforms.mass_to_weights(b)
    np.testing.assert_allclose(transforms.mass_to_weights(combined), total, atol=1e-9)


def test_dogmatic_masses_have_no_weights_and_the_error_names_the_rows():
    mass = np.array([[0, 0.5, 0, 0.5], [0, 1, 0, 0]], dtype=float)
    with pytest.raises(ValueError, match=r"none in row 1\. Discount"):
        transforms.mass_to_weights(mass)


@pytest.mark.parametrize("shape", [(), (1,), (3,), (2, 6), (2, 0)])
def test_the_last_axis_must_list_all_subsets(shape):
    with pytest.raises(ValueError, match=r"2\^K subsets"):
        transforms.mass_to_belief(np.zeros(shape))


@pytest.mark.parametrize("n_classes", [1, 2, 3, 4, 9, 11, 12])
def test_compiled_twins_equal_the_formulas(n_classes):
    rng = np.random.default_rng(n_classes)
    a, b = rng.dirichlet(np.ones(2**n_classes), size=(2, 2))
    for sign in (1.0, -1.0):
        twin = a.copy()
        moebius_compiled.superset_rows(twin, sign)
        formula = a.copy()
        for k in range(n_classes):
            pairs = formula.reshape(-1, 2, 1 << k)
            pairs[:, 0] += sign * pairs[:, 1]
        np.testing.assert_allclose(twin, formula, atol=1e-12 * np.abs(formula).max())
    product = moebius.superset_difference(moebius.superset_sum(a) * moebius.superset_sum(b))
    twin, survived = moebius_compiled.intersection_rows(a, b)
    np.testing.assert_allclose(twin, product, atol=1e-15)
    np.testing.assert_allclose(survived, twin[:, 1:].sum(axis=1), atol=1e-15)
    exact = moebius_compiled.positive_intersection_rows(a, b)
    np.testing.assert_allclose(exact, product, atol=1e-15)


def test_large_inputs_take_the_compiled_path_with_the_same_result(monkeypatch):
    mass = np.random.default_rng(0).dirichlet(np.ones(32), size=1000)
    assert mass.size >= moebius.COMPILED_FROM
    compiled = transforms.mass_to_belief(mass)
    monkeypatch.setattr(moebius, "COMPILED_FROM", np.inf)
    np.testing.assert_allclose(compiled, transforms.mass_to_belief(mass), atol=1e-15)
