"""Rates over the cost of declining: by definition, and as `reject` decides."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dubito.belief import Bounds
from dubito.decision import maximax, maximin, pignistic_choice, reject
from dubito.decision.risk import TIE
from dubito.metrics import error_reject_curve, reject_cost, reject_cost_curve
from dubito.testing.strategies import bounds, probabilities

seeds = st.integers(0, 2**32 - 1)
quick = settings(deadline=None, max_examples=60)


def assert_same(one, other):
    for actual, expected in zip(one, other, strict=True):
        np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-12)


def rates(y, y_pred, accepted, cost, weight):
    """All rates at one cost, from the rows accepted."""
    total, kept = weight.sum(), weight[accepted].sum()
    wrong = weight[accepted & (y != y_pred)].sum()
    rejection = 1 - kept / total
    accuracy = np.nan if kept == 0 else 1 - wrong / kept
    return cost, rejection, wrong / total, accuracy, wrong / total + cost * rejection


@given(seed=seeds, n=st.integers(1, 30), grain=st.sampled_from([3, 10, 49]))
@quick
def test_every_point_by_its_definition(seed, n, grain):
    # Confidence and cost are fractions of the grain, so ties are exact in whole numbers.
    rng = np.random.default_rng(seed)
    y, y_pred = rng.integers(0, 3, (2, n))
    confidence, weight = rng.integers(0, grain + 1, n), rng.random(n) + 0.01
    costs = rng.permutation(grain + 1)
    curve = reject_cost_curve(
        y, y_pred, confidence / grain, costs=costs / grain, sample_weight=weight
    )
    for point, cost in zip(zip(*curve, strict=True), costs, strict=True):
        accepted = grain - confidence <= cost
        assert_same(point, rates(y, y_pred, accepted, cost / grain, weight))


def costs_around(risk, rng):
    """Costs at the risks, on both sides of them, where ties begin, and before."""
    near = [risk, np.nextafter(risk, 0), np.nextafter(risk, 1), risk - TIE, risk - 3e-13]
    apart = [risk - 3e-12, risk + 3e-12, rng.random(20), np.linspace(0, 1, 11)]
    return np.unique(np.clip(np.concatenate([*near, *apart]), 0, 1))


def assert_decided_alike(belief, strategy, chosen, confidence, rng):
    y = rng.integers(0, confidence.shape[1], len(confidence))
    sure = confidence.max(axis=1)
    costs = costs_around(1 - sure, rng)
    curve = reject_cost_curve(y, chosen, sure, costs=costs)
    weight = np.ones(len(y))
    for point, cost in zip(zip(*curve, strict=True), costs, strict=True):
        accepted = ~reject(belief, cost, strategy)
        assert_same(point, rates(y, chosen, accepted, cost, weight))


@given(known=bounds(), seed=seeds)
@quick
def test_bounds_are_accepted_as_reject_decides(known, seed):
    rng = np.random.default_rng(seed)
    assert_decided_alike(known, "optimistic", maximax(known), known.tightened().upper, rng)
    assert_decided_alike(known, "pessimistic", maximin(known), known.tightened().lower, rng)


@given(proba=probabilities(), seed=seeds)
@quick
def test_probabilities_are_accepted_as_reject_decides(proba, seed):
    rng = np.random.default_rng(seed)
    sums_to_one = Bounds.precise(proba)
    again = Bounds.precise(sums_to_one.pignistic())  # rounding may move the last digit
    for strategy, known in (("pessimistic", sums_to_one), ("pignistic", again)):
        assert_decided_alike(proba, strategy, pignistic_choice(proba), known.upper, rng)


def test_the_strategies_of_the_paper_on_many_rows():
    rng = np.random.default_rng(0)
    proba, doubt = rng.dirichlet([1, 1, 1], 60), rng.random((60, 1))
    known = Bounds(proba * (1 - doubt), proba * (1 - doubt) + doubt)
    tight, precise = known.tightened(), Bounds.precise(Bounds.precise(proba).pignistic())
    for belief, strategy, confidence in (
        (known, "optimistic", tight.upper),
        (known, "pessimistic", tight.lower),
        (proba, "pignistic", precise.upper),
    ):
        chosen = confidence.argmax(axis=1)
        assert_decided_alike(belief, strategy, chosen, confidence, rng)


def test_a_tie_is_the_same_here_and_in_decisions():
    assert reject_cost.TIE == TIE
    tenths = np.arange(11) / 10
    for k, confidence in enumerate(tenths):
        curve = reject_cost_curve([0], [0], [confidence], costs=tenths)
        assert curve.rejection.tolist() == [1] * (10 - k) + [0] * (k + 1)


@given(seed=seeds, n=st.integers(1, 30), grain=st.sampled_from([4, 1000]))
@quick
def test_between_the_default_costs_no_rate_changes(seed, n, grain):
    rng = np.random.default_rng(seed)
    y, y_pred = rng.integers(0, 2, (2, n))
    confidence = rng.integers(0, grain + 1, n) / grain
    curve = reject_cost_curve(y, y_pred, confidence)
    assert curve.cost.tolist() == sorted({0.0, 1.0, *(1 - confidence).tolist()})
    between = curve.cost[:-1] + rng.random(len(curve.cost) - 1) * np.diff(curve.cost) * 0.999
    inside = reject_cost_curve(y, y_pred, confidence, costs=between)
    for name in ("rejection", "error", "accuracy"):
        np.testing.assert_array_equal(getattr(inside, name), getattr(curve, name)[:-1])
    changes = np.diff(curve.rejection) != 0
    assert changes[:-1].all()  # at every cost but 0 and 1 some row comes in


@given(seed=seeds, n=st.integers(1, 30))
@quick
def test_cheaper_rejection_rejects_more_and_errs_less(seed, n):
    rng = np.random.default_rng(seed)
    y, y_pred = rng.integers(0, 2, (2, n))
    confidence = rng.integers(0, 6, n) / 5
    curve = reject_cost_curve(y, y_pred, confidence, sample_weight=rng.random(n) + 0.01)
    assert (np.diff(curve.rejection) <= 0).all()
    assert (np.diff(curve.error) >= 0).all()
    assert (curve.rejection >= 0).all()
    accuracy = curve.accuracy[curve.rejection < 1]
    assert ((accuracy >= 0) & (accuracy <= 1)).all()
    assert not np.isnan(accuracy).any()


@given(proba=probabilities(), seed=seeds)
@quick
def test_where_probabilities_are_right_a_row_costs_the_smaller_of_risk_and_cost(proba, seed):
    # Every class is true as often as its probability says (Chow 1970).
    n, k = proba.shape
    y, y_pred = np.tile(np.arange(k), n), np.repeat(proba.argmax(axis=1), k)
    sure = proba.max(axis=1)
    costs = np.random.default_rng(seed).random(7)
    curve = reject_cost_curve(
        y, y_pred, np.repeat(sure, k), costs=costs, sample_weight=proba.ravel()
    )
    best = np.minimum(1 - sure[:, None], costs).mean(axis=0)
    np.testing.assert_allclose(curve.mean_cost, best, atol=1e-11)


@given(seed=seeds, n=st.integers(1, 20))
@quick
def test_it_agrees_with_the_curve_over_confidence(seed, n):
    rng = np.random.default_rng(seed)
    y, y_pred = rng.integers(0, 2, (2, n))
    confidence = rng.integers(0, 9, n) / 8
    ranked = error_reject_curve(y, y_pred, confidence)
    curve = reject_cost_curve(y, y_pred, confidence, costs=1 - ranked.threshold)
    assert_same(
        curve[1:4], (ranked.rejection, ranked.error * (1 - ranked.rejection), 1 - ranked.error)
    )


@given(seed=seeds, n=st.integers(1, 20), unit=st.sampled_from([1, 0.1, 1e6]))
@quick
def test_weights_are_repetitions_in_any_unit_and_order(seed, n, unit):
    rng = np.random.default_rng(seed)
    y, y_pred = rng.integers(0, 3, (2, n))
    confidence, weight = rng.integers(0, 6, n) / 5, rng.integers(0, 4, n)
    weight[rng.integers(n)] = 2
    rows = rng.permutation(np.repeat(np.arange(n), weight))
    weighted = reject_cost_curve(y, y_pred, confidence, sample_weight=weight * unit)
    assert_same(weighted, reject_cost_curve(y[rows], y_pred[rows], confidence[rows]))


def test_both_ends():
    y, y_pred, confidence = [0, 1, 1, 0], [0, 1, 0, 0], [0.9, 0.8, 0.6, 0.7]
    curve = reject_cost_curve(y, y_pred, confidence)
    assert [curve.cost[0], curve.rejection[0], curve.error[0], curve.mean_cost[0]] == [0, 1, 0, 0]
    assert np.isnan(curve.accuracy[0])
    assert [curve.cost[-1], curve.rejection[-1], curve.error[-1]] == [1, 0, 0.25]
    assert [curve.accuracy[-1], curve.mean_cost[-1]] == [0.75, 0.25]
    certain = reject_cost_curve([0, 1], [0, 0], [1.0, 1.0])
    assert [values.tolist() for values in certain] == [
        [0, 1],
        [0, 0],
        [0.5] * 2,
        [0.5] * 2,
        [0.5] * 2,
    ]


def test_no_costs_no_points():
    assert [len(values) for values in reject_cost_curve([0], [0], [0.5], costs=[])] == [0] * 5


def test_words_and_tables():
    y = pd.Series(["ham", "spam", "ham"], index=[5, 6, 7])
    curve = reject_cost_curve(
        y, ["ham", "ham", "ham"], pd.Series([0.9, 0.6, 0.7]), costs=(0.35, 0.5)
    )
    np.testing.assert_allclose(curve.error, [0, 1 / 3])
    np.testing.assert_allclose(curve.rejection, [1 / 3, 0])


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"confidence": [0.5, 1.5]}, r"\[0, 1\].*goes from 0.5 to 1.5.*error_reject_curve takes"),
        ({"confidence": [-2.0, 1.0]}, "goes from -2 to 1"),
        ({"confidence": [0.5]}, "y_true has 2 rows but confidence has 1"),
        ({"confidence": [0.5, np.nan]}, "confidence has nan in row 1"),
        ({"costs": [0.2, 1.2, -1]}, r"costs must lie in \[0, 1\].*rows 1 and 2 \(1.2\)"),
        ({"costs": 0.2}, "costs must be 1-dimensional"),
        ({"costs": [np.nan]}, "costs has nan"),
        ({"y_pred": [0]}, "y_true has 2 rows but y_pred has 1"),
        ({"sample_weight": [0, 0]}, "all zero"),
        ({"y_true": [], "y_pred": [], "confidence": []}, "y_true has no rows"),
    ],
)
def test_unfit_input_is_refused(wrong, words):
    given_well = {"y_true": [0, 1], "y_pred": [0, 1], "confidence": [0.5, 0.6]}
    with pytest.raises(ValueError, match=words):
        reject_cost_curve(**{**given_well, **wrong})


def test_words_for_numbers_are_refused():
    with pytest.raises(TypeError, match="same kind of labels"):
        reject_cost_curve(["a", "b"], [0, 1], [0.5, 0.6])
    with pytest.raises(TypeError, match="same kind of labels"):
        reject_cost_curve(np.array(["a", "b"], dtype=object), [0, 1], [0.5, 0.6])


def test_rounding_above_one_is_mended():
    curve = reject_cost_curve([0], [0], [1 + 1e-12], costs=[0.0])
    assert curve.rejection.tolist() == [0]
