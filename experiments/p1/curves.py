"""From counts at each cost of rejecting to curves, and from curves to numbers with intervals.

Counts have shape (rounds, costs), weights of rounds (resamples, rounds), curves (resamples, costs).
Without weights there is one resample: the rounds as they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from experiments.common.tables import estimate
from experiments.p1.rates import COSTS, METHODS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]
    Bools = npt.NDArray[np.bool_]

#: Error rates at which curves are compared, where both curves have them.
ERROR_GRID = np.arange(0.005, 0.5, 0.005)
#: Costs that accept a smaller fraction are left out: the accuracy of very few rows is noise.
LEAST_ACCEPTED = 0.05
N_RESAMPLES = 1000


class Counts(NamedTuple):
    """Accepted rows and wrong ones among them, (rounds, costs), of `n_test` test rows each."""

    accepted: Floats
    wrong: Floats
    n_test: int


class Curve(NamedTuple):
    """Rates at each cost: wrong and rejected among all rows, right among the accepted ones."""

    error: Floats
    rejection: Floats
    accuracy: Floats


class Interval(NamedTuple):
    """A number and its 95% interval."""

    value: float
    low: float
    high: float


def gather(results: Iterable[Mapping[str, Any]], variant: str) -> dict[int, dict[str, Counts]]:
    """Return the counts by calibration size and method, of rounds with an estimate at every size.

    The same rounds for all sizes: the differences between sizes are then paired.
    """
    rounds = list(results)
    sizes = rounds[0]["counts"]
    known = [one for one in rounds if all(one["counts"][size][variant] for size in sizes)]

    def counted(size: str, method: str, what: str) -> Floats:
        listed = [one["counts"][size][variant][method][what] for one in known]
        return np.array(listed, dtype=float).reshape(len(known), len(COSTS))

    return {
        int(size): {
            method: Counts(
                counted(size, method, "accepted"),
                counted(size, method, "wrong"),
                rounds[0]["n_test"],
            )
            for method in METHODS
        }
        for size in sizes
    }


def without_estimate(results: Iterable[Mapping[str, Any]], size: int, variant: str) -> int:
    """Return in how many rounds the likelihood has no maximum."""
    return sum(one["counts"][str(size)][variant] is None for one in results)


def pooled(counts: Counts, weights: Floats | None = None) -> Curve:
    """Return the rates over the rows of all rounds; nan where no row is accepted."""
    w = _weights(counts, weights)
    accepted, wrong = w @ counts.accepted, w @ counts.wrong
    total = np.broadcast_to(counts.n_test * w.sum(axis=1, keepdims=True), accepted.shape)
    return Curve(_ratio(wrong, total), 1 - _ratio(accepted, total), 1 - _ratio(wrong, accepted))


def averaged_rates(counts: Counts, weights: Floats | None = None) -> Curve:
    """Return the same with the accuracy averaged over the rounds that accept a row."""
    some = counts.accepted > 0
    rate = np.where(some, 1 - _ratio(counts.wrong, counts.accepted), 0.0)
    w = _weights(counts, weights)
    return pooled(counts, weights)._replace(accuracy=_ratio(w @ rate, w @ some))


def _weights(counts: Counts, weights: Floats | None) -> Floats:
    return np.ones((1, len(counts.accepted))) if weights is None else weights


def _ratio(part: Floats, whole: Floats) -> Floats:
    return np.divide(part, whole, out=np.full(whole.shape, np.nan), where=whole > 0)


def in_order(methods: Mapping[str, Counts]) -> bool:
    """Return whether, at every cost of every round, pessimistic accepts least, optimistic most."""
    most, some, least = (
        methods[m].accepted for m in ("optimistic", "probabilistic", "pessimistic")
    )
    return bool((most >= some).all() and (some >= least).all())


def at_cost(counts: Counts, cost: float) -> Counts:
    """Return the counts at one cost, (rounds, 1)."""
    here = np.flatnonzero(np.isclose(COSTS, cost))
    return Counts(counts.accepted[:, here], counts.wrong[:, here], counts.n_test)


def accuracy_at(curve: Curve, grid: Floats) -> Floats:
    """Return the accuracy at given error rates: linear between costs, constant beyond the ends.

    More rows are accepted as the cost rises, so the error rises too. Of several costs with the same
    error the largest is used, which has the most rows right.
    """

    def one(error: Floats, accuracy: Floats, counts: Bools) -> Floats:
        if not counts.any():
            return np.full(len(grid), np.nan)
        rising = np.append(np.diff(error[counts]) > 0, True)
        return np.interp(grid, error[counts][rising], accuracy[counts][rising])

    rows = zip(curve.error, curve.accuracy, comparable(curve), strict=True)
    return np.array([one(*row) for row in rows])


def comparable(curve: Curve) -> Bools:
    """Return at which costs enough rows are accepted."""
    return curve.rejection <= 1 - LEAST_ACCEPTED


def common_grid(*curves: Curve) -> Floats:
    """Return the error rates of the grid that lie within the range of every curve."""
    reached = [curve.error[comparable(curve)] for curve in curves]
    if not all(len(errors) for errors in reached):
        return np.empty(0)
    low, high = max(e.min() for e in reached), min(e.max() for e in reached)
    return ERROR_GRID[(low <= ERROR_GRID) & (high >= ERROR_GRID)]


class Gap:
    """The difference in accuracy of two methods at equal error rates, in points.

    The grid of common error rates is that of the unweighted rounds, whatever weights follow.
    """

    def __init__(
        self,
        methods: Mapping[str, Counts],
        first: str,
        second: str,
        curve: Callable[..., Curve] = pooled,
    ) -> None:
        self.counts = methods[first], methods[second]
        self.curve = curve
        self.grid = common_grid(*(curve(counts) for counts in self.counts))

    def __call__(self, weights: Floats | None = None) -> Floats:
        """Return the difference at each error rate of the grid, (resamples, grid)."""
        first, second = (
            accuracy_at(self.curve(counts, weights), self.grid) for counts in self.counts
        )
        return 100 * (first - second)

    def mean(self, weights: Floats) -> Floats:
        """Return the mean over the error rates; nan where the curves have none in common."""
        return _row_means(self(weights))

    def distance(self, weights: Floats) -> Floats:
        """Return the mean absolute difference over the error rates."""
        return _row_means(np.abs(self(weights)))


def _row_means(values: Floats) -> Floats:
    return values.mean(axis=1) if values.shape[1] else np.full(len(values), np.nan)


def resampled(n_rounds: int, number: Callable[[Floats], Floats]) -> Interval:
    """Return a number of weighted rounds with its percentile interval over resampled rounds.

    With one round the interval is nan, with none the number too.
    """
    if n_rounds < 2:
        value = float(number(np.ones((1, 1)))[0]) if n_rounds else np.nan
        return Interval(value, np.nan, np.nan)
    rng = np.random.default_rng(0)
    drawn = rng.multinomial(n_rounds, np.full(n_rounds, 1 / n_rounds), size=N_RESAMPLES)
    value, *others = number(np.vstack([np.ones(n_rounds), drawn]))
    low, high = np.percentile(others, [2.5, 97.5])
    return Interval(float(value), float(low), float(high))


def averaged(values: Floats) -> Interval:
    """Return a mean over rounds with Student's interval; nan as in `resampled`."""
    if len(values) < 2:
        return Interval(float(values[0]) if len(values) else np.nan, np.nan, np.nan)
    found = estimate(values)
    low, high = found.mean - found.half_width, found.mean + found.half_width
    return Interval(found.mean, low, high)
