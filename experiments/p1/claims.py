"""The claims of Minary et al. 2017, each as a number with an interval and a verdict."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from experiments.p1.curves import (
    Counts,
    Curve,
    Gap,
    Interval,
    at_cost,
    averaged,
    pooled,
    resampled,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]
    Methods = Mapping[str, Counts]

COST = 0.2


class Claim(NamedTuple):
    """A claim: confirmed when the interval of its number lies above -margin."""

    statement: str
    quantity: str
    margin: float
    source: str


def read_claims(path: Path) -> dict[str, Claim]:
    """Read the claims by name."""
    with path.open(encoding="utf-8", newline="") as lines:
        return {
            row["claim"]: Claim(
                row["statement"], row["quantity"], float(row["margin"]), row["source"]
            )
            for row in csv.DictReader(lines)
        }


def verdict(found: Interval, margin: float) -> str:
    """Return "confirmed", "the opposite" or "open", or "no interval" with fewer than two rounds."""
    if np.isnan(found.low):
        return "no interval"
    if found.low > -margin:
        return "confirmed"
    return "the opposite" if found.high < 0 else "open"


def more_rejected(methods: Methods, more: str, less: str) -> Interval:
    """Return how many more rows, in points, one method rejects at the cost of Figures 1 and 2."""
    return averaged(_rejected(methods[more]) - _rejected(methods[less]))


def wider_gap(few: Methods, many: Methods) -> Interval:
    """Return how much the gap of pessimistic and optimistic rejection grows with few rows."""

    def gap(methods: Methods) -> Floats:
        return _rejected(methods["pessimistic"]) - _rejected(methods["optimistic"])

    return averaged(gap(few) - gap(many))


def _rejected(counts: Counts) -> Floats:
    return 100 * (1 - at_cost(counts, COST).accepted[:, 0] / counts.n_test)


def further_points(few: Methods, many: Methods) -> Interval:
    """Return how much further the outer points of Figure 2 are apart with few rows, in points."""

    def distance(methods: Methods, weights: Floats) -> Floats:
        first, second = (
            pooled(at_cost(methods[m], COST), weights) for m in ("optimistic", "pessimistic")
        )
        apart = np.hypot(first.error - second.error, first.accuracy - second.accuracy)
        return 100 * apart[:, 0]

    return resampled(_rounds(few), lambda w: distance(few, w) - distance(many, w))


def higher_accuracy(
    methods: Methods, method: str = "pessimistic", curve: Callable[..., Curve] = pooled
) -> Interval:
    """Return a method's accuracy less the probabilistic one, averaged over equal error rates."""
    return resampled(_rounds(methods), Gap(methods, method, "probabilistic", curve).mean)


def closer_curves(few: Methods, many: Methods) -> Interval:
    """Return how much closer the evidential curves are to the probabilistic one with more rows."""
    far, near = (
        [Gap(methods, method, "probabilistic") for method in ("optimistic", "pessimistic")]
        for methods in (few, many)
    )

    def difference(weights: Floats) -> Floats:
        distances = [[gap.distance(weights) for gap in gaps] for gaps in (far, near)]
        return np.subtract(*np.mean(distances, axis=1))

    return resampled(_rounds(few), difference)


def lower_error(
    results: Iterable[Mapping[str, Any]], scheme: str, thirds: Iterable[str], rival: str
) -> Interval:
    """Return a rival's error less that of joint calibration: mean of sizes, in points."""

    def difference(error: Mapping[str, Mapping[str, float]]) -> float:
        return float(np.mean([error[third][rival] - error[third]["joint"] for third in thirds]))

    return averaged(np.array([difference(one["error"][scheme]) for one in results]))


def _rounds(methods: Methods) -> int:
    return len(methods["probabilistic"].accepted)
