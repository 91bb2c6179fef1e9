"""From finished rounds of the multiclass experiment to its tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from experiments.common.tables import better_and_worse, contrast, estimate, markdown, with_width
from experiments.p1.multiclass import METHODS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import numpy.typing as npt

    Key = tuple[str, int]
    Rounds = dict[str, npt.NDArray[np.float64]]

#: Our main method: the most probable class, default targets.
OURS = "joint_smoothed"
#: Methods that "best or equal" compares with: two columns of P0.
RIVALS = ("probabilistic", "inverse_cdf")
CONTRASTS = (
    ("joint less probabilistic", OURS, "probabilistic"),
    ("joint less `inverse_cdf`", OURS, "inverse_cdf"),
    ("joint less each alone on all rows", OURS, "all_rows"),
    ("light less smoothed", "joint_light", OURS),
)


def summarise(results: Iterable[Mapping[str, Any]]) -> dict[str, dict[Key, Rounds]]:
    """Return the accuracies by kernel choice, dataset, scenario and method: arrays over rounds."""
    gathered: dict[str, dict[Key, list[Mapping[str, float]]]] = {}
    for one in results:
        cells = gathered.setdefault(one["svm"], {})
        cells.setdefault((one["dataset"], one["scenario"]), []).append(one["accuracy"])
    return {
        svm: {
            key: {method: np.array([one[method] for one in rounds]) for method in METHODS}
            for key, rounds in cells.items()
        }
        for svm, cells in gathered.items()
    }


def render(results: Iterable[Mapping[str, Any]]) -> str:
    """Return the tables, two for each kernel choice."""
    rounds = list(results)
    blocks = [_render(svm, cells) for svm, cells in summarise(rounds).items()]
    return "\n\n".join([*blocks, _plausible(rounds), _same_classifiers(rounds)])


def best_or_equal(cells: Mapping[Key, Rounds]) -> tuple[int, int]:
    """Return in how many cells the joint mean is best (to 0.05), and significantly worse."""
    differences = [[rounds[OURS] - rounds[rival] for rival in RIVALS] for rounds in cells.values()]
    best = sum(all(d.mean() > -0.05 for d in pair) for pair in differences)
    worse = sum(any(e.significant and e.mean < 0 for e in map(estimate, p)) for p in differences)
    return best, worse


def _render(svm: str, cells: Mapping[Key, Rounds]) -> str:
    rounds = max(len(found[OURS]) for found in cells.values())
    best, worse = best_or_equal(cells)
    accuracy = (
        f"**Machines: `{svm}`.** Accuracy in per cent, mean of {rounds} rounds ± 95% interval of "
        "the mean. Probabilistic and `inverse_cdf` are P0's columns; each alone on all rows: P0's "
        "probabilistic method, with every classifier calibrated on the rows the joint one sees. "
        "The joint mean (smoothed) is best or equal, to a tenth of a point, among P0's columns in "
        f"{best} of {len(cells)} cells, and clearly below one of them in {worse}."
    )
    differences = (
        "Differences, paired by rounds, ± 95% interval; **bold** where the interval excludes zero."
    )
    contrasts = _contrasts(cells)
    return "\n".join([accuracy, "", *_accuracies(cells), "", differences, "", *contrasts])


def _accuracies(cells: Mapping[Key, Rounds]) -> list[str]:
    columns = {
        "probabilistic": "probabilistic",
        "`inverse_cdf`": "inverse_cdf",
        "each alone on all rows": "all_rows",
        "joint, smoothed": OURS,
        "joint, light": "joint_light",
    }
    lines = [
        [
            *map(str, key),
            *(with_width(*estimate(rounds[method])) for method in columns.values()),
        ]
        for key, rounds in cells.items()
    ]
    return markdown(["dataset", "scenario", *columns], lines)


def _contrasts(cells: Mapping[Key, Rounds]) -> list[str]:
    found = {
        key: [estimate(rounds[a] - rounds[b]) for _, a, b in CONTRASTS]
        for key, rounds in cells.items()
    }
    lines = [[*map(str, key), *map(contrast, row)] for key, row in found.items()]
    columns = list(zip(*found.values(), strict=True))
    lines.append(["better / worse", "", *better_and_worse(columns)])
    return markdown(["dataset", "scenario", *(name for name, _, _ in CONTRASTS)], lines)


def _plausible(results: Sequence[Mapping[str, Any]]) -> str:
    measured = [one["upper"] for one in results if one["upper"]]
    total = {key: sum(one[key] for one in measured) for key in measured[0]}
    return (
        f"**Most plausible class.** On {total['rows']} test rows of {len(measured)} rounds it "
        f"differs from the most probable one on {total['differ']}; right are "
        f"{total['right_plausible']} and {total['right_probable']}."
    )


def _same_classifiers(results: Sequence[Mapping[str, Any]]) -> str:
    same = sum(one["alone"] == one["alone_p0"] for one in results)
    return (
        "**Same classifiers.** The mean accuracy of the ten classifiers by themselves equals that "
        f"of P0's round to the last digit in {same} of {len(results)} rounds."
    )
