"""From finished rounds to the paper's table, with the published numbers beside ours."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from experiments.common.tables import (
    Estimate,
    better_and_worse,
    contrast,
    estimate,
    markdown,
    with_width,
)
from experiments.p0.protocol import METHODS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    import numpy.typing as npt

#: Our name of the paper's evidential method.
EVIDENTIAL = "inverse_cdf"

#: Columns of the second table: each method less the probabilistic one; last, the effect of order.
CONTRASTS = (
    ("`inverse_cdf`", "inverse_cdf", "probabilistic"),
    ("same, classes permuted", "inverse_cdf_permuted", "probabilistic"),
    ("`gumbel`", "gumbel", "probabilistic"),
    ("same, classes permuted", "gumbel_permuted", "probabilistic"),
    ("`envelope`", "envelope", "probabilistic"),
    ("`inverse_cdf` less permuted", "inverse_cdf", "inverse_cdf_permuted"),
)


class Published(NamedTuple):
    """A published number, and how far ours may be from it."""

    value: float
    half_width: float
    tolerance: float


Key = tuple[str, int]
Rounds = dict[str, "npt.NDArray[np.float64]"]


def summarise(results: Iterable[Mapping[str, Any]]) -> dict[Key, Rounds]:
    """Return, for each dataset and scenario, the accuracies by method: arrays over rounds."""
    gathered: dict[Key, list[Mapping[str, float]]] = {}
    for result in results:
        key = (result["dataset"], result["scenario"])
        gathered.setdefault(key, []).append(result["accuracy"])
    return {
        key: {method: np.array([one[method] for one in rounds]) for method in METHODS}
        for key, rounds in gathered.items()
    }


def read_expected(path: Path) -> dict[tuple[str, int, str], Published]:
    """Read the published numbers by dataset, scenario and method."""
    with path.open(encoding="utf-8", newline="") as lines:
        return {
            (row["dataset"], int(row["scenario"]), row["method"]): Published(
                float(row["value"]), float(row["half_width"] or "nan"), float(row["tolerance"])
            )
            for row in csv.DictReader(lines)
        }


def ours(rounds: Rounds) -> dict[str, Estimate]:
    """Return our estimates of what the paper published; the difference is paired by rounds."""
    return {
        "probabilistic": estimate(rounds["probabilistic"]),
        "evidential": estimate(rounds[EVIDENTIAL]),
        "difference": estimate(rounds[EVIDENTIAL] - rounds["probabilistic"]),
    }


def misses(
    summaries: Mapping[Key, Rounds], expected: Mapping[tuple[str, int, str], Published]
) -> list[tuple[str, int, str]]:
    """List the published numbers from which ours differ by more than the tolerance."""
    return [
        (*key, method)
        for key, rounds in summaries.items()
        for method, found in ours(rounds).items()
        if abs(found.mean - expected[*key, method].value) > expected[*key, method].tolerance
    ]


def render(
    summaries: Mapping[Key, Rounds], expected: Mapping[tuple[str, int, str], Published]
) -> str:
    """Return both tables in markdown."""
    counts = sorted({len(rounds["probabilistic"]) for rounds in summaries.values()})
    missed = set(misses(summaries, expected))
    accuracy = (
        f"Accuracy in per cent, mean of {' or '.join(map(str, counts))} rounds ± 95% interval of "
        "the mean; the difference is evidential (`inverse_cdf`) less probabilistic, ours paired by "
        "rounds. Numbers of ours in *italics* are further from the published ones than the "
        f"tolerance in `expected.csv`: {len(missed)} of {3 * len(summaries)}."
    )
    differences = (
        "Differences from the probabilistic method, paired by rounds, ± 95% interval; **bold** "
        "where the interval excludes zero."
    )
    published = _published_table(summaries, expected, missed)
    return "\n".join([accuracy, "", *published, "", differences, "", *_contrast_table(summaries)])


def _published_table(
    summaries: Mapping[Key, Rounds],
    expected: Mapping[tuple[str, int, str], Published],
    missed: set[tuple[str, int, str]],
) -> list[str]:
    methods = ("probabilistic", "evidential", "difference")
    sources = ("paper:", "ours:")
    head = ["dataset", "scenario", *(f"{source} {m}" for m in methods for source in sources)]
    lines = []
    for key, rounds in summaries.items():
        cells = [key[0], str(key[1])]
        for method, found in ours(rounds).items():
            sign = "+" if method == "difference" else ""
            published = expected[*key, method]
            mark = "*" if (*key, method) in missed else ""
            cells.append(with_width(published.value, published.half_width, sign))
            cells.append(f"{mark}{with_width(found.mean, found.half_width, sign)}{mark}")
        lines.append(cells)
    return markdown(head, lines)


def _contrast_table(summaries: Mapping[Key, Rounds]) -> list[str]:
    found = {
        key: [estimate(rounds[a] - rounds[b]) for _, a, b in CONTRASTS]
        for key, rounds in summaries.items()
    }
    lines = [[key[0], str(key[1]), *map(contrast, row)] for key, row in found.items()]
    columns = list(zip(*found.values(), strict=True))
    lines.append(["better / worse", "", *better_and_worse(columns)])
    return markdown(["dataset", "scenario", *(name for name, _, _ in CONTRASTS)], lines)
