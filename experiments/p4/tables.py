"""Tables of finished rounds: paper and ours side by side, claims, and many classes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from experiments.common.published import (
    claims_table,
    is_reproduced,
    misses_table,
    read_claims,
    read_column,
    read_expected,
)
from experiments.common.tables import markdown
from experiments.p4 import depths, measures
from experiments.p4.many import POOLINGS
from experiments.p4.schemes import BASE_NAMES, FAMILIES, FAMILY_NAMES, HEADINGS, SCHEMES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from experiments.common.published import Expected
    from experiments.p4.measures import Numbers, Results
    from experiments.p4.protocol import Floats

HERE = Path(__file__).resolve().parent
EXPECTED = HERE / "expected.csv"
CLAIMS = HERE / "claims.csv"
#: Quantities reported for trees over many classes, and to how many digits.
REPORTED = {
    "nll": ("NLL", 3),
    "accuracy": ("Accuracy", 3),
    "ece": ("ECE", 3),
    "fit": ("CPU seconds of a fit (the first fit of a run loads compiled code)", 1),
}
TITLES = {"nll": "NLL (Tables 2 and 4)", "accuracy": "Accuracy (Tables 3 and 5)"}


# Tables 2 to 5


def render_described(results: Mapping[str, Results]) -> str:
    """Return the tables with base learners as the paper describes them."""
    return _tables(results["described"], "described")


def render_boosted(results: Mapping[str, Results]) -> str:
    """Return the same for boosted trees, which take longest."""
    return _tables(results["boosted"], "described")


def render_redone(results: Mapping[str, Results]) -> str:
    """Return the tables with base learners as inferred from the published numbers."""
    return _tables(results["redone"], "redone")


def _tables(results: Results, column: str) -> str:
    found = measures.of_tables(results)
    blocks = [_reproduced(found)]
    for measure, title in TITLES.items():
        blocks += ["", f"**{title}.**", "", *_side_by_side(results, found, measure)]
    reasons = read_column(EXPECTED, column)
    blocks += ["", *misses_table(_seen(found), found, reasons, _with_sd, 3)]
    blocks += ["", *_uncut(results), "", *_claims(found)]
    return "\n".join(blocks)


def _seen(found: Numbers) -> dict[str, Expected]:
    return {q: one for q, one in read_expected(EXPECTED, "table").items() if q in found}


def _reproduced(found: Numbers) -> str:
    expected = _seen(found)
    reproduced = {q: is_reproduced(one, found[q]) for q, one in expected.items()}
    parts = [
        f"{FAMILY_NAMES[family].lower()} {sum(of)} of {len(of)}"
        for family in FAMILY_NAMES
        if (of := [ok for q, ok in reproduced.items() if q.startswith(f"{family}.")])
    ]
    return (
        "Paper / ours, means of folds with their standard deviations, ours in italics where the "
        "means differ by more than half of the paper's standard deviation and more than 0.01. "
        f"**{sum(reproduced.values())} of {len(reproduced)} are reproduced**: {', '.join(parts)}."
    )


def _side_by_side(results: Results, found: Numbers, measure: str) -> list[str]:
    """Return a table, a line for each base learner and dataset."""
    expected, spreads = _seen(found), read_column(EXPECTED, "sd")
    lines = []
    for (base, dataset), rounds in measures.grouped(results, "base", "dataset").items():
        cells = []
        for scheme in SCHEMES:
            q = f"{FAMILIES[base]}.{dataset}.{scheme}.{measure}"
            if q not in found:
                cells.append("")
                continue
            ours = _with_sd(found[q])
            if q not in expected:
                cells.append(f"- / {ours}")
                continue
            mark = "" if is_reproduced(expected[q], found[q]) else "*"
            cells.append(f"{expected[q].printed} ({spreads[q]}) / {mark}{ours}{mark}")
        lines.append([f"{BASE_NAMES[base]}: {dataset}", str(len(rounds)), *cells])
    return markdown(["", "folds", *HEADINGS.values()], lines)


def _uncut(results: Results) -> list[str]:
    """Return log losses without the lower bound, calibration errors, and CPU time."""
    lines = []
    for (base, dataset), rounds in measures.grouped(results, "base", "dataset").items():
        of = measures.of_schemes(rounds)
        cells = [
            f"{_short(of[f'{s}.uncut'].mean())} / {of[f'{s}.ece'].mean():.3f}"
            if s in rounds[0]["schemes"]
            else ""
            for s in SCHEMES
        ]
        seconds = np.mean([one["seconds"] for one in rounds])
        lines.append([f"{BASE_NAMES[base]}: {dataset}", *cells, f"{seconds:.1f}"])
    words = (
        "**Without the bound**: our NLL without the lower bound 1e-15 / expected calibration "
        "error; and CPU seconds of a fold with all six schemes."
    )
    return [words, "", *markdown(["", *HEADINGS.values(), "seconds"], lines)]


def _claims(found: Numbers) -> list[str]:
    numbers = measures.of_claims(found)
    claims = [claim for family in FAMILY_NAMES for claim in read_claims(CLAIMS, family)]
    return claims_table([claim for claim in claims if claim.quantity in numbers], numbers)


# Many classes


def render_sector(results: Mapping[str, Results]) -> str:
    """Return the schemes on the available part of sector, and the paper's on all of it."""
    return "\n".join([*_schemes_of(results["sector"]), "", *_ensembles_of(results["sector"])])


def render_synthetic(results: Mapping[str, Results]) -> str:
    """Return the schemes and the ensembles on the simulated problems."""
    found = results["synthetic"]
    return "\n".join([*_schemes_of(found), "", *_ensembles_of(found)])


def _schemes_of(results: Results) -> list[str]:
    """Return the measures of single trees with each scheme, and those of the paper."""
    printed = read_expected(EXPECTED, "sector")
    trees = [one for one in results if one["structure"] != "ensemble"]
    blocks = []
    for measure, (title, digits) in REPORTED.items():
        lines = []
        for key, rounds in measures.grouped(trees, "dataset", "base", "structure").items():
            dataset, base, structure = key
            of = measures.of_schemes(rounds)
            cells = [_with_sd(of[f"{s}.{measure}"], digits=digits) for s in SCHEMES]
            name = f"{dataset}: {BASE_NAMES[base]}, {structure}"
            lines.append([name, str(len(rounds)), *cells])
            family = f"{FAMILIES[base]}.{dataset}"
            theirs = [printed.get(f"{family}.{s}.{measure}") for s in SCHEMES]
            if structure == "random" and any(theirs):
                cells = [one.printed if one else "-" for one in theirs]
                lines.append([f"{dataset}: {FAMILIES[base]}, the paper on all rows", "10", *cells])
        head = ["", "trees", *HEADINGS.values()]
        blocks += ["", f"**{title}** (standard deviation).", "", *markdown(head, lines)]
    return blocks[1:]


def _ensembles_of(results: Results) -> list[str]:
    """Return the measures of five clustered trees with each pooling."""
    lines = []
    for key, rounds in measures.grouped(results, "dataset", "structure").items():
        dataset, structure = key
        if structure != "ensemble":
            continue
        of = measures.of_schemes(rounds)
        for pooling in POOLINGS:
            numbers = [_with_sd(of[f"{pooling}.{m}"]) for m in ("nll", "accuracy", "ece")]
            seconds = _with_sd(of[f"{pooling}.fit"], digits=1)
            lines.append([dataset, pooling, str(len(rounds)), *numbers, seconds])
    head = ["", "pooling", "ensembles", "NLL", "accuracy", "ECE", "CPU seconds of a fit"]
    return ["**Ensembles** of five clustered trees.", "", *markdown(head, lines)]


# Figure 3


def render_depths(results: Mapping[str, Results]) -> str:
    """Return Figure 3 in numbers, and the claims about it."""
    found = measures.of_depths(results["depths"])
    lines = [
        [str(depth), *(_with_sd(found[f"{s}.{m}"][:, at], digits=1) for s, m in _columns())]
        for at, depth in enumerate(depths.DEPTHS)
    ]
    deepest = [one["depth"] for one in results["depths"]]
    classes = results["depths"][0]["classes"]
    words = (
        f"**Figure 3 in numbers**, in points: {len(deepest)} random trees over "
        f"{classes:,} classes, {min(deepest)} to {max(deepest)} deep. Under-confident by: "
        "accuracy less mean confidence."
    )
    head = ["depth", *(f"{HEADINGS[s]}: {_WORDS[m]}" for s, m in _columns())]
    numbers = measures.of_depth_claims(found)
    claims = claims_table(read_claims(CLAIMS, "depths"), numbers)
    return "\n".join([words, "", *markdown(head, lines), "", *claims])


_WORDS = {"accuracy": "accuracy", "ece": "ECE", "under": "under-confident by"}


def _columns() -> list[tuple[str, str]]:
    return [(scheme, measure) for scheme in depths.SCHEMES for measure in _WORDS]


def _with_sd(values: Floats, *, digits: int = 3) -> str:
    """Return a mean and, with several rounds, their standard deviation as text."""
    sd = f" ({values.std(ddof=1):.{min(digits, 2)}f})" if len(values) > 1 else ""
    return f"{values.mean():.{digits}f}{sd}"


def _short(value: float) -> str:
    return f"{value:.3f}" if value < 100 else f"{float(f'{value:.3g}'):,.0f}"
