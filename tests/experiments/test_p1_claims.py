"""Curves and claims of Minary et al. 2017, on made-up numbers."""

import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT))

from experiments.p1 import claims, curves, rates  # noqa: E402
from experiments.p1.curves import Counts, Interval  # noqa: E402


def made_up(confidence, wrong, shift=0.0, n_rounds=12):
    """Return the counts of rounds whose rows have these confidences, some of them wrong."""
    accepted = np.array(
        [(confidence + shift >= 1 - cost - 1e-9).astype(float) for cost in rates.COSTS]
    )
    one = accepted.sum(axis=1), (accepted * wrong).sum(axis=1)
    return Counts(*(np.tile(c, (n_rounds, 1)) for c in one), len(confidence))


GOOD = np.linspace(0.5, 0.99, 40)
WRONG_LOW = (np.arange(40) < 10).astype(float)  # the least confident rows are wrong
WRONG_EVEN = (np.arange(40) % 4 == 0).astype(float)


def test_rates_of_rounds_together_and_averaged_over_rounds():
    counts = Counts(np.array([[1.0, 4.0], [0.0, 2.0]]), np.array([[0.0, 1.0], [0.0, 1.0]]), 4)
    together, mean = curves.pooled(counts), curves.averaged_rates(counts)
    np.testing.assert_allclose(together.error, [[0, 2 / 8]])
    np.testing.assert_allclose(together.rejection, [[7 / 8, 2 / 8]])
    np.testing.assert_allclose(together.accuracy, [[1, 4 / 6]])
    np.testing.assert_allclose(mean.accuracy, [[1, (3 / 4 + 1 / 2) / 2]])
    only_second = curves.pooled(counts, np.array([[0.0, 1.0]]))
    np.testing.assert_allclose(only_second.accuracy, [[np.nan, 0.5]])
    twice = curves.pooled(counts, np.array([[2.0, 2.0]]))
    np.testing.assert_allclose(twice.accuracy, together.accuracy)


def test_accuracy_at_an_error_rate_is_interpolated_between_costs():
    curve = curves.Curve(
        np.array([[0.0, 0.0, 0.1, 0.3]]),
        np.array([[0.97, 0.5, 0.4, 0.0]]),
        np.array([[0.0, 1.0, 0.9, 0.7]]),
    )
    found = curves.accuracy_at(curve, np.array([0.0, 0.05, 0.2, 0.4]))
    np.testing.assert_allclose(found, [[1.0, 0.95, 0.8, 0.7]])
    # The first point accepts 3% of the rows: too few to count.
    assert curves.comparable(curve).tolist() == [[False, True, True, True]]
    other = curve._replace(error=np.array([[0.0, 0.02, 0.1, 0.2]]))
    grid = curves.common_grid(curve, other)
    assert (grid[0], grid[-1]) == (pytest.approx(0.02), pytest.approx(0.2))
    assert curves.common_grid(curve, curve._replace(rejection=np.ones((1, 4)))).size == 0


def test_rounds_without_an_estimate_are_left_out_at_every_size():
    def one(raw_at_15):
        counted = {m: {"accepted": [1] * 101, "wrong": [0] * 101} for m in rates.METHODS}
        return {
            "n_test": 5,
            "counts": {"45": {"raw": counted}, "15": {"raw": counted if raw_at_15 else None}},
        }

    results = [one(True), one(False), one(True)]
    found = curves.gather(results, "raw")
    assert [len(found[size]["optimistic"].accepted) for size in (45, 15)] == [2, 2]
    assert curves.without_estimate(results, 15, "raw") == 1
    assert curves.without_estimate(results, 45, "raw") == 0
    nothing = curves.gather([one(False)], "raw")
    assert np.isnan(claims.higher_accuracy(nothing[15])).all()
    assert np.isnan(claims.more_rejected(nothing[15], "pessimistic", "optimistic")).all()


def test_rejecting_wrong_rows_first_gives_a_higher_accuracy_at_equal_error():
    methods = {
        "probabilistic": made_up(GOOD, WRONG_EVEN),
        "pessimistic": made_up(GOOD, WRONG_LOW),
        "optimistic": made_up(GOOD, WRONG_EVEN, shift=0.2),
    }
    assert claims.higher_accuracy(methods).low > 5
    # The same order at other costs is the same curve.
    same = claims.higher_accuracy(methods, "optimistic")
    assert abs(same.value) < 1.5
    averaged = claims.higher_accuracy(methods, curve=curves.averaged_rates)
    assert averaged == pytest.approx(claims.higher_accuracy(methods))  # all rounds are alike


def test_signs_of_gaps_and_distances():
    def trio(apart, better=0.0):
        wrong = WRONG_LOW if better else WRONG_EVEN
        return {
            "probabilistic": made_up(GOOD, WRONG_EVEN),
            "optimistic": made_up(GOOD, WRONG_EVEN, shift=apart),
            "pessimistic": made_up(GOOD, wrong, shift=-apart),
        }

    wide, narrow = trio(0.15), trio(0.02)
    assert claims.more_rejected(wide, "pessimistic", "probabilistic").value == pytest.approx(
        30, abs=3
    )
    assert claims.more_rejected(wide, "probabilistic", "optimistic").value == pytest.approx(
        30, abs=3
    )
    assert claims.wider_gap(wide, narrow).low > 0 > claims.wider_gap(narrow, wide).high
    assert claims.further_points(trio(0.1), narrow).low > 0
    assert claims.closer_curves(trio(0.1, better=1), narrow).low > 0
    assert claims.closer_curves(narrow, trio(0.1, better=1)).high < 0
    assert curves.in_order(wide)
    assert not curves.in_order({**wide, "optimistic": wide["pessimistic"]})


def test_errors_are_paired_by_rounds():
    luck = np.random.default_rng(0).normal(scale=5, size=10)
    results = [
        {
            "error": {
                "fixed": {
                    "10": {"joint": 25 + e, "independent": 28 + e},
                    "30": {"joint": 20 + e, "independent": 21 + e + 0.01 * i},
                }
            }
        }
        for i, e in enumerate(luck)
    ]
    found = claims.lower_error(results, "fixed", ["30"], "independent")
    assert found.value == pytest.approx(1.045)
    assert found.high - found.low < 0.1
    both = claims.lower_error(results, "fixed", ["10", "30"], "independent")
    assert both.value == pytest.approx((3 + 1.045) / 2)


@pytest.mark.parametrize(
    ("low", "high", "margin", "verdict"),
    [
        (0.1, 0.5, 0, "confirmed"),
        (-0.1, 0.5, 0, "open"),
        (-0.1, 0.5, 0.25, "confirmed"),
        (-0.5, -0.1, 0.25, "the opposite"),
        (-0.2, -0.1, 0.25, "confirmed"),
        (0.0, 0.0, 0, "open"),
        (np.nan, np.nan, 0, "no interval"),
    ],
)
def test_verdicts(low, high, margin, verdict):
    assert claims.verdict(Interval((low + high) / 2, low, high), margin) == verdict


def test_intervals_of_resampled_rounds_agree_with_students():
    values = np.random.default_rng(1).normal(size=60)
    found = curves.resampled(60, lambda w: w @ values / w.sum(axis=1))
    theirs = curves.averaged(values)
    assert found.value == pytest.approx(theirs.value)
    assert found.low == pytest.approx(theirs.low, abs=0.06)
    assert found.high == pytest.approx(theirs.high, abs=0.06)
