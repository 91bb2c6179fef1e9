"""Tables of finished repetitions: paper and ours side by side, claims, further experiments."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from experiments.common.published import (
    claims_table,
    is_reproduced,
    misses_table,
    read_claims,
    read_column,
    read_expected,
)
from experiments.common.tables import (
    better_and_worse,
    contrast,
    estimate,
    markdown,
    with_width,
)
from experiments.p3 import measures
from experiments.p3.data import TABLE_1
from experiments.p3.measures import COLUMNS, by_dataset
from experiments.p3.protocol import ALPHAS, BEYOND, MODELS, TABLE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from experiments.p3.measures import Numbers, Results
    from experiments.p3.protocol import Floats

HERE = Path(__file__).resolve().parent
EXPECTED = HERE / "expected.csv"
NAMES = {
    "lda": "ILDA",
    "qda": "IQDA",
    "lda_scaled": "ILDA, scaled box",
    "qda_scaled": "IQDA, scaled box",
    "diag": "diagonal",
    "spherical": "spherical",
}


#: Values of c shown of the part `wide`.
SHOWN_CS = (0, 5, 10, 20, 25, 30, 40, 60, 80, 110)


# Table 2


def render_table(results: Mapping[str, Results]) -> str:
    """Return Table 2, numbers that are not reproduced, set sizes, and the claims."""
    found = measures.of_table(results["table"])
    reasons = read_column(EXPECTED, "reason")
    return "\n".join(
        [
            *_published(results["table"], "Table 2"),
            *("", *misses_table(_seen(found), found, reasons, _with_interval, 1)),
            *("", *_average(found)),
            *("", *_caution(results["table"])),
            *("", *_claims(found)),
        ]
    )


def _published(results: Results, title: str) -> list[str]:
    """Return the table, paper / ours, in italics where ours is further off than allowed."""
    found = measures.of_models(results)
    rounds = max(len(some) for some in by_dataset(results).values())
    expected = _seen(found)
    reproduced = sum(is_reproduced(one, found[q]) for q, one in expected.items())

    def cell(dataset: str, column: str) -> str:
        q = f"{dataset}.{column}"
        mark = "" if is_reproduced(expected[q], found[q]) else "*"
        return f"{expected[q].printed} / {mark}{_with_interval(found[q])}{mark}"

    lines = [
        [f"{TABLE_1[dataset].letter} {dataset}", *(cell(dataset, column) for column in COLUMNS)]
        for dataset in by_dataset(results)
    ]
    words = (
        f"**{title}.** Paper / ours in per cent, ours a mean of {rounds} repetitions ± its 95% "
        f"interval, in italics where it is more than a point off. {reproduced} of {len(expected)} "
        "are reproduced."
    )
    return [words, "", *markdown(["", *COLUMNS.values()], lines)]


def _seen(found: Numbers) -> dict[str, Any]:
    expected = read_expected(EXPECTED, "table")
    return {q: one for q, one in expected.items() if q in found}


def _average(found: Numbers) -> list[str]:
    """Return the printed averages beside those of the printed rows, and ours."""
    printed, means = read_expected(EXPECTED, "average"), measures.printed_means(EXPECTED)
    lines = [
        [
            words,
            printed[column].printed,
            f"{means[column]:.2f}",
            f"{printed[column].value - means[column]:+.2f}",
            _with_interval(found[f"mean.{column}"]),
        ]
        for column, words in COLUMNS.items()
    ]
    words = (
        "**The average row.** As printed, as the mean of the printed rows, and the mean of ours "
        "(of the datasets run)."
    )
    head = ["", "printed", "mean of printed rows", "printed less mean", "ours"]
    return [words, "", *markdown(head, lines)]


def _caution(results: Results) -> list[str]:
    """Return how cautious the models are with c tuned by u80: Figures 3a and 3b in numbers."""
    found = measures.of_models(results)
    shown = ("c", "size", "undecided")
    lines = []
    for dataset, rounds in by_dataset(results).items():
        for model in TABLE:
            pooled = measures.pooled(results, dataset, model)
            of = {name: float(np.nanmean(found[f"{dataset}.{model}.{name}"])) for name in shown}
            singular, unsettled = (
                sum(one["models"][model][key] for one in rounds)
                for key in ("singular", "unsettled")
            )
            lines.append(
                [
                    *(f"{TABLE_1[dataset].letter} {dataset}", NAMES[model]),
                    *(f"{of['c']:.2f}", f"{of['size']:.2f}", f"{of['undecided']:.1f}"),
                    *(_percent(pooled["covered"]), _percent(pooled["precise"])),
                    *(_uncut(rounds) if model == "qda" else "", str(singular), str(unsettled)),
                ]
            )
    words = (
        "**Caution** with c tuned by u80. Undecided: rows with more than one class, in per cent; "
        "among these, sets that contain the class (Figures 3a and 3b), and rows the precise model "
        "gets right. Nothing left out: accuracy of QDA as scikit-learn computed it in 2019. "
        "Singular: folds in which some class has no variance in some direction. Unsettled: "
        "searches for test rows stopped at the limit of subproblems, which keep a class in the set."
    )
    head = ["", "", "mean c", "mean size", "undecided", "set right", "precise right"]
    return [words, "", *markdown([*head, "nothing left out", "singular", "unsettled"], lines)]


def _percent(value: float) -> str:
    return "" if np.isnan(value) else f"{value:.1f}"


def _uncut(rounds: Results) -> str:
    return _with_interval(np.array([100 * one["right_uncut"] / one["rows"] for one in rounds]))


def _claims(found: Numbers) -> list[str]:
    known = [c for c in read_claims(HERE / "claims.csv", "table") if c.quantity in found]
    return claims_table(known, found)


# Other folds and larger c


def render_plain(results: Mapping[str, Results]) -> str:
    """Return Table 2 with folds that are not stratified."""
    return "\n".join(_published(results["plain"], "Table 2 with plain folds"))


def render_wide(results: Mapping[str, Results]) -> str:
    """Return the utilities with larger c: tuned, and at several c."""
    found = measures.of_models(results["wide"])
    datasets = list(by_dataset(results["wide"]))
    largest = measures.curve(results["wide"], datasets[0], "lda")["c"][-1]
    tuned = [
        [dataset, NAMES[model], *(_tuned(found, dataset, model, score) for score in ALPHAS)]
        for dataset in datasets
        for model in TABLE
    ]
    head = ["", "", *(f"{score}: paper / ours" for score in ALPHAS)]
    words = f"**c up to {largest:g}**, tuned: mean utilities in per cent ± 95% interval."
    blocks = [words, "", *markdown(head, tuned), "", "**Along c**: u80 / u65 in per cent.", ""]
    return "\n".join([*blocks, *_along(results["wide"], datasets)])


def _tuned(found: Numbers, dataset: str, model: str, score: str) -> str:
    q = f"{dataset}.{model}.{score}"
    return f"{_seen(found)[q].printed} / {_with_interval(found[q])}"


def _along(results: Results, datasets: Sequence[str]) -> list[str]:
    """Return mean utilities at some c."""
    lines = []
    for dataset in datasets:
        for model in TABLE:
            path = measures.curve(results, dataset, model)
            some = [int(np.argmin(np.abs(path["c"] - c))) for c in SHOWN_CS]
            means = {score: path[score].mean(axis=0)[some] for score in ALPHAS}
            texts = [f"{a:.1f} / {b:.1f}" for a, b in zip(*means.values(), strict=True)]
            lines.append([dataset, NAMES[model], *texts])
    return markdown(["", "", *(f"c = {c}" for c in SHOWN_CS)], lines)


# Beyond the paper


def render_beyond(results: Mapping[str, Results]) -> str:
    """Return other boxes and covariances, and how they differ from the paper's."""
    found = measures.of_models(results["beyond"])
    datasets = list(by_dataset(results["beyond"]))
    blocks = []
    for score, words in {"accuracy": "Accuracy", "u80": "u80", "u65": "u65"}.items():
        models = [m for m in BEYOND if score != "accuracy" or MODELS[m].get("box") != "scaled"]
        lines = [
            [dataset, *(_with_interval(found[f"{dataset}.{model}.{score}"]) for model in models)]
            for dataset in datasets
        ]
        head = ["", *(NAMES[model] for model in models)]
        blocks += ["", f"**{words}**, in per cent.", "", *markdown(head, lines)]
    if "table" in results:
        blocks += ["", *_gains(found, results["table"], datasets)]
    return "\n".join(blocks[1:])


def _gains(found: Numbers, raw: Results, datasets: Sequence[str]) -> list[str]:
    """Return u80 and u65 of the scaled box less those of the raw one."""
    theirs = measures.of_models(raw)
    pairs = {"lda_scaled": "lda", "qda_scaled": "qda"}
    columns = [(model, base, score) for model, base in pairs.items() for score in ("u80", "u65")]

    def difference(dataset: str, model: str, base: str, score: str) -> Floats:
        ours, other = found[f"{dataset}.{model}.{score}"], theirs[f"{dataset}.{base}.{score}"]
        rounds = min(len(ours), len(other))
        return ours[:rounds] - other[:rounds]

    table = [[estimate(difference(d, *column)) for column in columns] for d in datasets]
    lines = [[d, *map(contrast, row)] for d, row in zip(datasets, table, strict=True)]
    lines.append(["better / worse", *better_and_worse(list(zip(*table, strict=True)))])
    words = (
        "**Differences** from the paper's raw box, in points, paired by repetitions, ± 95% "
        "interval; **bold** where the interval excludes zero."
    )
    head = ["", *(f"{NAMES[model]}: {score}" for model, _, score in columns)]
    return [words, "", *markdown(head, lines)]


# Times


def render_times(results: Mapping[str, Results]) -> str:
    """Return the CPU time of a prediction beside the paper's."""
    printed = read_expected(EXPECTED, "times")
    lines = []
    for dataset, rounds in by_dataset(results["times"]).items():
        times = {
            model: {
                name: np.median([one["models"][model][name] for one in rounds])
                for name in ("c", "row", "alone")
            }
            for model in TABLE
        }
        ours = [
            text
            for model in times.values()
            for text in (_micro(model["row"]), _micro(model["alone"]), f"{model['c']:.2f}")
        ]
        ratio = printed[dataset].value / times["lda"]["row"]
        about = [str(TABLE_1[dataset].features), str(TABLE_1[dataset].labels)]
        rounded = f"{float(f'{ratio:.2g}'):,.0f}"
        lines.append([dataset, *about, printed[dataset].printed, *ours, rounded])
    words = (
        "**Time of a prediction**: paper's in seconds; ours CPU time in microseconds, one thread, "
        "median of rounds, c tuned by u80. Rows: many at once, each; alone: one call with one row, "
        "which is mostly validation. Machines differ, and the paper's include a solver in another "
        "process, so the last column, paper's over ILDA's of many rows, is an order of magnitude."
    )
    ours = [f"{name}: {what}" for name in ("ILDA", "IQDA") for what in ("rows", "alone", "c")]
    head = ["", "features", "labels", "paper (s)", *ours, "ratio"]
    return "\n".join([words, "", *markdown(head, lines)])


def _micro(seconds: float) -> str:
    micro = 1e6 * seconds
    return f"{micro:,.0f}" if micro >= 100 else f"{micro:.2g}"


def _with_interval(values: Floats) -> str:
    return with_width(values.mean(), estimate(values).half_width)
