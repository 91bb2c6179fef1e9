"""From results of rounds to named numbers, each an array with one entry for each round."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from experiments.p4 import depths
from experiments.p4.schemes import FAMILIES, SCHEMES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from experiments.p4.protocol import Floats

    Results = Sequence[Mapping[str, Any]]
    Numbers = dict[str, Floats]

MEASURES = ("nll", "uncut", "accuracy", "ece", "fit", "score")
#: Depths over which the growth of the calibration error is measured.
GROWTH = (1, 8)
#: Depth from which the error is constant after external calibration, according to the paper.
LEVEL = 5


def grouped(results: Results, *keys: str) -> dict[tuple[str, ...], list[Mapping[str, Any]]]:
    """Return rounds grouped by the values of `keys`."""
    found: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
    for one in results:
        found.setdefault(tuple(one[key] for key in keys), []).append(one)
    return found


def of_schemes(rounds: Results) -> Numbers:
    """Return the numbers of one group of rounds, as "platt.nll"."""
    return {
        f"{scheme}.{measure}": np.array([one["schemes"][scheme][measure] for one in rounds])
        for scheme in rounds[0]["schemes"]
        for measure in MEASURES
    }


def of_tables(results: Results) -> Numbers:
    """Return the numbers of Tables 2 to 5, as "bayes.letter.platt.nll"."""
    return {
        f"{FAMILIES[base]}.{dataset}.{name}": values
        for (base, dataset), rounds in grouped(results, "base", "dataset").items()
        for name, values in of_schemes(rounds).items()
    }


# Claims about the tables


def of_claims(numbers: Numbers) -> Numbers:
    """Return gains over folds, in per cent of the baseline's NLL and in points of accuracy.

    A claim about all datasets uses the dataset with the least gain.
    """
    claims: Numbers = {}
    for family, datasets in _families(numbers).items():
        ours = [Gains(numbers, family, dataset) for dataset in datasets]
        for scheme in ours[0].schemes:
            for measure in ("nll", "accuracy"):
                gains = [one.over_baseline(scheme, measure) for one in ours]
                claims[f"{family}.{scheme}.{measure}.least"] = least(gains)
        if len(ours[0].schemes) < len(SCHEMES):
            continue
        claims[f"{family}.best.least"] = least([one.best() for one in ours])
        claims[f"{family}.both"] = _mean(one.both() for one in ours)
        claims[f"{family}.first.least"] = least([one.first("both_isotonic") for one in ours])
    return claims


class Gains:
    """Gains of the schemes on one dataset with one base learner, fold by fold."""

    def __init__(self, numbers: Numbers, family: str, dataset: str) -> None:
        self.schemes = [s for s in SCHEMES if f"{family}.{dataset}.{s}.nll" in numbers]
        self._of = {
            (scheme, measure): numbers[f"{family}.{dataset}.{scheme}.{measure}"]
            for scheme in self.schemes
            for measure in ("nll", "accuracy")
        }
        self._unit = 100 / self._of["baseline", "nll"].mean()

    def over_baseline(self, scheme: str, measure: str) -> Floats:
        """Return by how much a scheme is better than the baseline."""
        change = self._of[scheme, measure] - self._of["baseline", measure]
        return -self._unit * change if measure == "nll" else 100 * change

    def best(self) -> Floats:
        """Return by how much the best scheme's NLL is below the baseline's."""
        return self.over_baseline(self._lowest([s for s in SCHEMES if s != "baseline"]), "nll")

    def both(self) -> Floats:
        """Return by how much the best scheme with both calibrations is below the best other one."""
        both = [scheme for scheme in SCHEMES if scheme.startswith("both")]
        return self._below(self._lowest(both), [s for s in SCHEMES if s not in both])

    def first(self, scheme: str) -> Floats:
        """Return by how much a scheme's NLL is below the next best."""
        return self._below(scheme, [other for other in SCHEMES if other != scheme])

    def _below(self, scheme: str, others: Iterable[str]) -> Floats:
        other = self._lowest(others)
        return self._unit * (self._of[other, "nll"] - self._of[scheme, "nll"])

    def _lowest(self, schemes: Iterable[str]) -> str:
        return min(schemes, key=lambda scheme: float(self._of[scheme, "nll"].mean()))


def least(gains: Sequence[Floats]) -> Floats:
    """Return the gains with the smallest mean."""
    return min(gains, key=lambda values: float(values.mean()))


def _mean(gains: Iterable[Floats]) -> Floats:
    """Return the mean over datasets, in the folds that all have."""
    listed = list(gains)
    rounds = min(map(len, listed))
    return np.mean([values[:rounds] for values in listed], axis=0)


def _families(numbers: Numbers) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name in numbers:
        family, dataset, *_ = name.split(".")
        if dataset not in found.setdefault(family, []):
            found[family].append(dataset)
    return found


# Depths


def of_depths(results: Results) -> Numbers:
    """Return calibration error, accuracy and under-confidence in points, (trees, depths) each.

    Under-confidence is accuracy less mean confidence.
    """
    numbers = {}
    for scheme in depths.SCHEMES:
        bins = [[one["schemes"][scheme][d] for d in range(len(depths.DEPTHS))] for one in results]
        rows, confidence, hits = (
            np.array([[at[name] for at in tree] for tree in bins])
            for name in ("rows", "confidence", "hits")
        )
        n = rows.sum(axis=2)
        numbers |= {
            f"{scheme}.ece": 100 * np.abs(hits - confidence).sum(axis=2) / n,
            f"{scheme}.accuracy": 100 * hits.sum(axis=2) / n,
            f"{scheme}.under": 100 * (hits - confidence).sum(axis=2) / n,
        }
    return numbers


def of_depth_claims(numbers: Numbers) -> Numbers:
    """Return the numbers of the claims about Figure 3, one for each tree."""
    before, after = numbers["baseline.ece"], numbers["external.ece"]
    first, last = (depths.DEPTHS.index(depth) for depth in GROWTH)
    level = depths.DEPTHS.index(LEVEL)
    line = np.arange(first, last + 1)
    return {
        "good_at_first": 5 - before[:, 0],
        "grows": before[:, last] - before[:, first],
        "linear": np.array([100 * np.corrcoef(line, one[line])[0, 1] ** 2 for one in before]),
        "under": numbers["baseline.under"][:, -1],
        "mended": before[:, -1] - after[:, -1],
        "levels": (after[:, level] - after[:, first]) - (after[:, -1] - after[:, level]),
    }
