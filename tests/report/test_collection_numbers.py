"""Every number of a report against plain loops over the rows, independent of dubito.

The rows are made to be awkward: probabilities in twentieths, so that costs and confidences tie and
forecasts lie on edges of bins; bounds that are not tight and whose best class is not always the
most probable one; a class that never occurs; a second model with its columns in another order.
"""

import math
from collections import Counter
from fractions import Fraction
from itertools import combinations, pairwise

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.stats import binomtest

from dubito.belief import Bounds
from dubito.decision import reject
from dubito.metrics import evaluate, reject_cost_curve
from dubito.report import collect

CLASSES = ["ash", "beech", "elm", "fir"]
N, K = 140, 4
OTHER_ORDER = [2, 0, 3, 1]


class FixedModel:
    """A model that answers with what it was given."""

    def __init__(self, classes, proba, bounds=None, sets=None):
        self.classes_, self.proba = np.array(classes), proba
        if bounds is not None:
            self.predict_bounds = lambda X: bounds[np.ravel(X)]
        if sets is not None:
            self.predict_set = lambda X: sets[np.ravel(X)]

    def predict_proba(self, X):
        return self.proba[np.ravel(X)]


@pytest.fixture(scope="module")
def rows():
    """True columns, probabilities in twentieths, bounds (not tight) around them, sets."""
    rng = np.random.default_rng(7)
    proba = rng.multinomial(20, [0.25] * 4, size=N)
    proba[::3] = rng.multinomial(20, [0.03, 0.9, 0.04, 0.03], size=len(proba[::3]))
    proba = proba / 20
    column = (proba.cumsum(axis=1) < rng.random((N, 1))).sum(axis=1).clip(0, 2)
    lower = np.floor(proba * rng.random((N, K)) * 20) / 20
    upper = np.minimum(np.ceil((proba + rng.random((N, K)) * 0.4) * 20) / 20, 1.0)
    sets = upper >= lower.max(axis=1, keepdims=True)
    return column, proba, Bounds(lower, upper), sets


@pytest.fixture(scope="module")
def collected(rows):
    return report(rows)


def report(rows, **options):
    column, proba, bounds, sets = rows
    order = OTHER_ORDER
    models = {
        "cautious": FixedModel(CLASSES, proba, bounds, sets),
        "bold": FixedModel([CLASSES[k] for k in order], (0.5 * proba + 0.125)[:, order]),
    }
    y = [CLASSES[k] for k in column]
    return collect(models, np.arange(N)[:, None], y, doubtful_rows=12, **options)


def answers(rows):
    """Probabilities and tight bounds of both models, as lists of lists."""
    _, proba, bounds, _ = rows
    lower, upper = bounds.lower.tolist(), bounds.upper.tolist()
    tight_lower, tight_upper = [], []
    for low, high in zip(lower, upper, strict=True):
        tight_lower.append([max(low[k], 1 - sum(high) + high[k]) for k in range(K)])
        tight_upper.append([min(high[k], 1 - sum(low) + low[k]) for k in range(K)])
    bold = (0.5 * proba + 0.125).tolist()
    return [(proba.tolist(), tight_lower, tight_upper), (bold, bold, bold)]


def first_largest(values):
    return values.index(max(values))


def in_bin(p, n_bins):
    """The bin of equal width of a forecast in 1/40ths, exactly."""
    return min(int(Fraction(round(p * 40), 40) * n_bins), n_bins - 1)


def ece_by_loop(forecast, happened, n_bins=15):
    total = 0.0
    for b in range(n_bins):
        inside = [i for i, p in enumerate(forecast) if in_bin(p, n_bins) == b]
        total += abs(sum(happened[i] - forecast[i] for i in inside)) / len(forecast)
    return total


def smooth_by_programme(forecast, happened):
    """The largest mean of w(p) (o - p) over |w| <= 1 with slope at most 1."""
    points = sorted(set(forecast))
    surplus = [
        sum(o - p for p, o in zip(forecast, happened, strict=True) if p == point)
        for point in points
    ]
    steps = np.zeros((2 * (len(points) - 1), len(points)))
    gaps = []
    for i, (a, b) in enumerate(pairwise(points)):
        steps[2 * i, [i, i + 1]] = [1, -1]
        steps[2 * i + 1, [i, i + 1]] = [-1, 1]
        gaps += [b - a, b - a]
    best = linprog(-np.array(surplus), A_ub=steps, b_ub=gaps, bounds=(-1, 1))
    return -best.fun / len(forecast)


def area_by_loop(sure, wrong):
    total = 0.0
    for level in set(sure):
        accepted = [w for s, w in zip(sure, wrong, strict=True) if s >= level]
        total += sure.count(level) / len(sure) * sum(accepted) / len(accepted)
    return total


def forecast_numbers(column, proba):
    top = [first_largest(p) for p in proba]
    right = [int(t == k) for t, k in zip(top, column, strict=True)]
    forecast = [p[t] for p, t in zip(proba, top, strict=True)]
    classwise = [
        ece_by_loop([p[k] for p in proba], [int(c == k) for c in column]) for k in range(K)
    ]
    n = len(column)
    return {
        "accuracy": sum(right) / n,
        "error": 1 - sum(right) / n,
        "log_loss": -sum(
            math.log(max(p[k], np.finfo(float).eps)) for p, k in zip(proba, column, strict=True)
        )
        / n,
        "brier": sum(
            (p[k] - (k == c)) ** 2 for p, c in zip(proba, column, strict=True) for k in range(K)
        )
        / n,
        "ece": ece_by_loop(forecast, right),
        "classwise_ece": sum(classwise) / K,
        "smooth_ece": smooth_by_programme(forecast, right),
        "aurc": area_by_loop(forecast, [1 - r for r in right]),
    }


def set_numbers(column, sets):
    held = [row[c] for row, c in zip(sets, column, strict=True)]
    size = [sum(row) for row in sets]
    n = len(column)
    pairs = list(zip(held, size, strict=True))
    single = [h for h, s in pairs if s == 1]

    def worth(alpha):
        return sum(alpha / s + (1 - alpha) / s**2 for h, s in pairs if h) / n

    return {
        "coverage": sum(held) / n,
        "determinacy": len(single) / n,
        "single_class_accuracy": sum(single) / len(single),
        "mean_set_size": sum(size) / n,
        "discounted_accuracy": worth(1.0),
        "u65": worth(1.6),
        "u80": worth(2.2),
    }


def test_all_metrics(rows, collected):
    column, _, _, sets = rows
    found = {
        row["key"]: [cell and cell["value"] for cell in row["cells"]]
        for row in collected["metrics"]
    }
    own = sets.tolist(), None
    for place, (proba, lower, upper) in enumerate(answers(rows)):
        members = own[place] or [[p[k] > max(p) - 1e-9 for k in range(K)] for p in proba]
        expected = forecast_numbers(column.tolist(), proba) | set_numbers(column, members)
        for key, value in expected.items():
            assert found[key][place] == pytest.approx(value, abs=1e-9), (key, place)
        width = np.mean(
            [
                high - low
                for highs, lows in zip(upper, lower, strict=True)
                for high, low in zip(highs, lows, strict=True)
            ]
        )
        assert found["mean_width"][place] == (pytest.approx(width) if place == 0 else None)
    assert len(found) == len(expected) + 1


def test_intervals_are_those_of_evaluate_and_of_counts(rows, collected):
    column, proba, bounds, sets = rows
    judged = evaluate(
        column, proba, bounds=bounds.tightened(), sets=sets, classes=range(K), random_state=0
    )
    for row in collected["metrics"]:
        assert list(row["cells"][0].values()) == pytest.approx(list(judged[row["key"]]))
    right = collected["summary"]["right"]
    exact = binomtest(round(right["value"] * N), N).proportion_ci(method="exact")
    assert (right["low"], right["high"]) == pytest.approx((exact.low, exact.high))


def declined_by_loop(strategy, proba, lower, upper, cost):
    """Rows whose every class has a risk above the cost, in 1/40ths where ties are exact."""
    surest = {
        "pessimistic": [max(row) for row in lower],
        "optimistic": [max(row) for row in upper],
        "probabilistic": [max(row) for row in proba],
    }[strategy]
    return [1 - s > cost + 1e-9 for s in surest]


@pytest.mark.parametrize("strategy", ["pessimistic", "optimistic", "probabilistic"])
def test_every_stop_of_the_slider(rows, strategy):
    column, _, bounds, _ = rows
    rejecting = report(rows, strategy=strategy)["declining"]
    assert rejecting["costs"] == pytest.approx([i / 100 for i in range(101)])
    for place, (method, known) in enumerate(zip(rejecting["models"], answers(rows), strict=True)):
        by = strategy if place == 0 else "probabilistic"
        assert method["strategy"] == by
        wrong = [first_largest(p) != c for p, c in zip(known[0], column, strict=True)]
        assert method["error_without_declining"] == pytest.approx(sum(wrong) / N)
        for at, cost in enumerate(rejecting["costs"]):
            declined = declined_by_loop(by, *known, cost)
            belief = np.array(known[0]) if by == "probabilistic" else bounds
            assert declined == reject(belief, cost, by).tolist()
            kept = [w for w, d in zip(wrong, declined, strict=True) if not d]
            assert method["declined"][at] == pytest.approx(sum(declined) / N)
            price = (sum(kept) + cost * sum(declined)) / N
            assert method["cost"][at] == pytest.approx(price)
            if not kept:
                assert method["error"][at] is method["low"][at] is method["high"][at] is None
                continue
            assert method["error"][at] == pytest.approx(sum(kept) / len(kept))
            exact = binomtest(sum(kept), len(kept)).proportion_ci(method="exact")
            limits = method["low"][at], method["high"][at]
            assert limits == pytest.approx((exact.low, exact.high))


def test_the_pignistic_strategy_is_the_metric_of_the_pignistic_probability(rows):
    column, proba, bounds, _ = rows
    method = report(rows)["declining"]["models"][0]  # the default
    assert method["strategy"] == "pignistic"
    sure = bounds.tightened().pignistic().max(axis=1)
    curve = reject_cost_curve(column, proba.argmax(axis=1), sure, costs=np.arange(101) / 100)
    np.testing.assert_allclose(method["declined"], curve.rejection)
    np.testing.assert_allclose(method["cost"], curve.mean_cost)
    for at in range(0, 101, 5):
        declined = reject(bounds.tightened(), at / 100, "pignistic")
        assert method["declined"][at] == pytest.approx(declined.mean())


def test_the_error_reject_curve_has_the_points_of_all_thresholds(rows, collected):
    column, _, bounds, _ = rows
    # To the last digit, for confidences that differ there are two thresholds.
    levels = bounds.tightened().pignistic().max(axis=1).tolist(), None
    for place, (method, known) in enumerate(
        zip(collected["declining"]["models"], answers(rows), strict=True)
    ):
        proba = known[0]
        sure = levels[place] or [max(p) for p in proba]
        wrong = [first_largest(p) != c for p, c in zip(proba, column, strict=True)]
        points = {}
        for level in sorted(set(sure)):
            kept = [w for w, s in zip(wrong, sure, strict=True) if s >= level]
            points[round(1 - len(kept) / N, 9)] = sum(kept), len(kept)
        drawn = [round(point["declined"], 9) for point in method["curve"]]
        assert drawn == sorted(points)
        for point, declined in zip(method["curve"], drawn, strict=True):
            errors, decided = points[declined]
            assert point["error"] == pytest.approx(errors / decided)
            exact = binomtest(errors, decided).proportion_ci(method="exact")
            assert (point["low"], point["high"]) == pytest.approx((exact.low, exact.high))


def test_the_summary_has_the_numbers_at_the_given_cost(rows):
    listed = report(rows, cost=0.35, strategy="pessimistic")
    summary, first = listed["summary"], listed["declining"]["models"][0]
    at = listed["declining"]["costs"].index(0.35)
    declined = declined_by_loop("pessimistic", *answers(rows)[0], 0.35)
    assert summary["declined_rows"] == sum(declined)
    assert (summary["declined"], summary["error"]) == (first["declined"][at], first["error"][at])
    assert (summary["cost"], summary["error_without_declining"]) == (
        first["cost"][at],
        first["error_without_declining"],
    )
    assert f"of the cases ({sum(declined)})." in summary["lines"][1]
    doubt = listed["doubt"]
    assert doubt["declined_wide"] + doubt["declined_others"] == sum(declined)


def assert_points(points, forecast, happened):
    """Each point is a block of the rows in order of their forecast; together they are all rows."""
    ranked = sorted(zip(forecast, happened, strict=True))
    start = 0
    for point in points:
        inside = ranked[start : start + point["rows"]]
        start += point["rows"]
        assert point["probability"] == pytest.approx(sum(p for p, _ in inside) / len(inside))
        came_true = sum(o for _, o in inside)
        assert point["frequency"] == pytest.approx(came_true / len(inside))
        exact = binomtest(came_true, len(inside)).proportion_ci(method="exact")
        assert (point["low"], point["high"]) == pytest.approx((exact.low, exact.high))
    assert start == N


def test_reliability(rows, collected):
    column = rows[0].tolist()
    reliability = collected["reliability"]
    for curve, (proba, _, _) in zip(reliability["top"], answers(rows), strict=True):
        right = [first_largest(p) == c for p, c in zip(proba, column, strict=True)]
        assert_points(curve["points"], [max(p) for p in proba], right)
    assert [one["label"] for one in reliability["classes"]] == CLASSES
    for k, one in enumerate(reliability["classes"]):
        assert one["rows"] == column.count(k)
        for curve, (proba, _, _) in zip(one["curves"], answers(rows), strict=True):
            assert_points(curve["points"], [p[k] for p in proba], [c == k for c in column])


def test_sets_and_confusions(rows, collected):
    column, proba, _, sets = rows
    sizes = [sum(row) for row in sets.tolist()]
    held = [row[c] for row, c in zip(sets.tolist(), column, strict=True)]
    for bar in collected["sets"]["bars"]:
        inside = [h for h, s in zip(held, sizes, strict=True) if s == int(bar["size"])]
        assert (bar["rows"], bar["covered"]) == (len(inside), sum(inside))
    assert sum(bar["rows"] for bar in collected["sets"]["bars"]) == N
    means = sum(sizes) / N, sizes.count(1) / N, sum(held) / N
    listed = collected["sets"]
    assert (listed["mean"], listed["single"], listed["covered"]) == pytest.approx(means)

    top = [first_largest(p) for p in proba.tolist()]
    pairs = Counter(zip(column.tolist(), top, strict=True))
    confusions = collected["confusions"]
    counts = [[pairs[truth, forecast] for forecast in range(K)] for truth in range(K)]
    assert confusions["map"] == {"labels": CLASSES, "counts": counts}
    wrong = {pair: count for pair, count in pairs.items() if pair[0] != pair[1]}
    assert [row["rows"] for row in confusions["mistaken"]] == sorted(wrong.values(), reverse=True)[
        :10
    ]
    for row in confusions["mistaken"]:
        truth, forecast = CLASSES.index(row["truth"]), CLASSES.index(row["predicted"])
        assert row["rows"] == wrong[truth, forecast]
        assert row["fraction"] == pytest.approx(wrong[truth, forecast] / (column == truth).sum())
    together = Counter(
        pair for row in sets for pair in combinations(np.flatnonzero(row).tolist(), 2)
    )
    for row in confusions["together"]:
        pair = CLASSES.index(row["first"]), CLASSES.index(row["second"])
        assert row["rows"] == together[pair]
    expected = sorted(together.values(), reverse=True)[:10]
    assert [row["rows"] for row in confusions["together"]] == expected


def test_doubt_row_by_row(rows, collected):
    column, _, _, sets = rows
    proba, lower, upper = answers(rows)[0]
    top = [first_largest(p) for p in proba]
    width = [upper[i][k] - lower[i][k] for i, k in enumerate(top)]
    others = [1 - upper[i][k] for i, k in enumerate(top)]
    doubt = collected["doubt"]
    assert doubt["mean_width"] == pytest.approx(sum(width) / N)
    assert doubt["mean_others"] == pytest.approx(sum(others) / N)
    listed = doubt["rows"]
    assert len(listed) == 12
    for row in listed:
        i = int(row["name"])
        k = top[i]
        assert (row["truth"], row["predicted"]) == (CLASSES[column[i]], CLASSES[k])
        assert row["correct"] == (k == column[i])
        assert row["probability"] == pytest.approx(proba[i][k])
        assert (row["lower"], row["upper"]) == pytest.approx((lower[i][k], upper[i][k]))
        assert (row["width"], row["others"]) == pytest.approx((width[i], others[i]))
        assert set(row["set"]) == {CLASSES[j] for j in range(K) if sets[i][j]}
        assert row["set_size"] == sets[i].sum()
    shown = [1 - lower[int(row["name"])][top[int(row["name"])]] for row in listed]
    assert shown == sorted(shown, reverse=True)
    causes = Counter(row["cause"] for row in listed)
    for cause, wide in (("wide bounds", True), ("other classes", False)):
        of_kind = [1 - lower[i][k] for i, k in enumerate(top) if (width[i] >= others[i]) == wide]
        least = sorted(of_kind, reverse=True)[: causes[cause]]
        mine = [d for d, row in zip(shown, listed, strict=True) if row["cause"] == cause]
        assert mine == pytest.approx(least)
