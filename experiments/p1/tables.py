"""From finished rounds of the binary experiments to tables, one for each figure and claim."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from experiments.common.tables import contrast, estimate, markdown, with_width
from experiments.p1 import claims as c
from experiments.p1 import frontiers
from experiments.p1.comparison import SCHEMES
from experiments.p1.curves import (
    Counts,
    Gap,
    Interval,
    at_cost,
    averaged_rates,
    gather,
    in_order,
    pooled,
    without_estimate,
)
from experiments.p1.data import SIMULATED
from experiments.p1.rates import METHODS, VARIANTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    Results = list[dict[str, Any]]
    Claims = Mapping[str, c.Claim]


NO_VALUE = "-"


class Group(NamedTuple):
    """Dataset and kernel: rounds of the same pair are averaged."""

    dataset: str
    kernel: str


class Finding(NamedTuple):
    """One measurement of a claim: a cell of the claim's table."""

    claim: str
    row: str
    column: str
    found: Interval


def by_group(results: Iterable[Mapping[str, Any]]) -> dict[Group, Results]:
    """Return the rounds by dataset and kernel."""
    groups: dict[Group, Results] = {}
    for one in results:
        groups.setdefault(Group(one["dataset"], one["kernel"]), []).append(dict(one))
    return groups


# Figures 2 and 3


def render_rates(results: Iterable[Mapping[str, Any]], claims: Claims) -> str:
    """Return the tables of Figures 2 and 3 and of the claims about them."""
    groups = by_group(results)
    rounds = max(len(found) for found in groups.values())
    counts = {
        (group, variant): gather(found, variant)
        for group, found in groups.items()
        for variant in VARIANTS
    }
    figure_1 = (
        "**Figure 1.** Fraction of the drawn square that is rejected at R_rej = 0.2, in per cent: "
        "one draw of the simulated data, RBF kernel."
    )
    figure_2 = (
        f"**Figure 2.** Simulated data at R_rej = 0.2, {rounds} rounds, in per cent. Error rate: "
        "wrong rows of all; accuracy: right rows of the accepted, of all rounds together / mean of "
        "the rounds that accept a row (their number, where not all)."
    )
    figure_3 = (
        "**Figure 3.** Accuracy less that of the probabilistic method at equal error rates, in "
        "points, R_rej from 0 to 1: mean over the error rates (each half per cent) that both "
        "curves reach with at least 5% of the rows accepted, which are in brackets for the "
        "pessimistic strategy, and 95% interval from resampled rounds. Raw: over the rounds with "
        "an estimate."
    )
    all_methods = [methods for sizes in counts.values() for methods in sizes.values()]
    ordered = (
        "**Order.** In all rounds together, optimistic accepts no fewer and pessimistic no more "
        f"rows than probabilistic at every cost in {sum(map(in_order, all_methods))} of "
        f"{len(all_methods)} combinations of dataset, kernel, targets and examples."
    )
    missing = (
        "**No estimate.** Rounds in which raw targets (eq. 5) have no maximum-likelihood estimate, "
        f"of {rounds}."
    )
    return "\n".join(
        [
            *(figure_1, "", *_figure_1(), ""),
            *(figure_2, "", *_figure_2(counts), ""),
            *(figure_3, "", *_figure_3(counts), ""),
            *(ordered, ""),
            *(missing, "", *_missing(groups), ""),
            _claim_tables(_rate_findings(counts), claims),
        ]
    )


def _figure_1() -> list[str]:
    lines = []
    for variant in frontiers.VARIANTS:
        for size in frontiers.SIZES:
            rejected = frontiers.rejected_percent(size, variant)
            lines.append([variant, str(size), *(f"{rejected[method]:.1f}" for method in METHODS)])
    return markdown(["targets", "examples", *METHODS], lines)


def _figure_2(counts: Mapping[Any, Any]) -> list[str]:
    lines = []
    for (group, variant), sizes in counts.items():
        if group.dataset != SIMULATED:
            continue
        for size, methods in sizes.items():
            points = [_point(at_cost(methods[method], c.COST)) for method in METHODS]
            cells = [cell for point in points for cell in point]
            lines.append([variant, group.kernel, str(size), *cells])
    lines.sort(key=lambda line: list(VARIANTS).index(line[0]))
    rates = ("rejected", "error", "accuracy")
    head = ["targets", "kernel", "examples", *(f"{m}: {rate}" for m in METHODS for rate in rates)]
    return markdown(head, lines)


def _point(counts: Counts) -> list[str]:
    if not len(counts.accepted):
        return [NO_VALUE] * 3
    curve, rates = pooled(counts), averaged_rates(counts)
    some = int(np.sum(counts.accepted > 0))
    few = f" ({some})" if some < len(counts.accepted) else ""
    accuracy = f"{100 * curve.accuracy.item():.1f} / {100 * rates.accuracy.item():.1f}{few}"
    rejection, error = 100 * curve.rejection.item(), 100 * curve.error.item()
    return [f"{rejection:.1f}", f"{error:.1f}", accuracy if some else NO_VALUE]


def _figure_3(counts: Mapping[Any, Any]) -> list[str]:
    lines = []
    for group in dict.fromkeys(group for group, _ in counts):
        for size in counts[group, "smoothed"]:
            cells = []
            for variant in VARIANTS:
                methods = counts[group, variant][size]
                pessimistic = c.higher_accuracy(methods)
                cells.append(f"{_interval(pessimistic)}{_range(methods)}")
                cells.append(_interval(c.higher_accuracy(methods, "optimistic")))
            lines.append([group.dataset, group.kernel, str(size), *cells])
    head = [f"{v}: {m}" for v in VARIANTS for m in ("pessimistic", "optimistic")]
    return markdown(["dataset", "kernel", "examples", *head], lines)


def _range(methods: Mapping[str, Counts]) -> str:
    if not len(methods["probabilistic"].accepted):
        return ""
    grid = Gap(methods, "pessimistic", "probabilistic").grid
    return f" (error {100 * grid[0]:.1f} to {100 * grid[-1]:.1f})" if len(grid) else ""


def _missing(groups: Mapping[Group, Results]) -> list[str]:
    sizes = (200, 45, 15)
    lines = [
        [
            *group,
            *(
                str(without_estimate(found, size, "raw")) if str(size) in found[0]["counts"] else ""
                for size in sizes
            ),
        ]
        for group, found in groups.items()
    ]
    return markdown(["dataset", "kernel", *(f"{size} examples" for size in sizes)], lines)


def _rate_findings(counts: Mapping[Any, Any]) -> list[Finding]:
    return [
        Finding(claim, f"{group.dataset} ({group.kernel})", column, found)
        for (group, variant), sizes in counts.items()
        for claim, column, found in _findings_of(variant, sizes)
    ]


def _findings_of(
    variant: str, sizes: Mapping[int, Mapping[str, Counts]]
) -> Iterator[tuple[str, str, Interval]]:
    for size, methods in sizes.items():
        column = f"{variant}, {size} examples"
        yield "1a", column, c.more_rejected(methods, "probabilistic", "optimistic")
        yield "1b", column, c.more_rejected(methods, "pessimistic", "probabilistic")
    if 200 in sizes:
        yield "2a", variant, c.wider_gap(sizes[15], sizes[200])
        yield "2b", variant, c.further_points(sizes[15], sizes[200])
    yield "3", variant, c.higher_accuracy(sizes[15])
    rates = c.higher_accuracy(sizes[15], curve=averaged_rates)
    yield "3", f"{variant}, rates averaged", rates
    yield "4", variant, c.closer_curves(sizes[15], sizes[45])


# Comparison with independent calibration


def render_comparison(results: Iterable[Mapping[str, Any]], claims: Claims) -> str:
    """Return the table of errors and that of the claim about them."""
    groups = by_group(results)
    rounds = max(len(found) for found in groups.values())
    errors = (
        f"**Errors** in per cent, {rounds} rounds: joint / independent with Dempster's rule / the "
        "same with each classifier calibrated on the rows of all three."
    )
    probabilities = (
        "**Probabilities in place of masses**, multiplied: independent error less joint, paired by "
        "rounds, ± 95% interval; **bold** where the interval excludes zero."
    )
    found = list(_comparison_findings(groups))
    return "\n".join(
        [
            *(errors, "", *_errors(groups), ""),
            _claim_tables(found, claims),
            *("", probabilities, "", *_probabilities(groups)),
        ]
    )


def _errors(groups: Mapping[Group, Results]) -> list[str]:
    def cell(found: Results, scheme: str, third: str) -> str:
        if third not in found[0]["error"][scheme]:
            return ""
        means = [
            np.mean([one["error"][scheme][third][method] for one in found])
            for method in ("joint", "independent", "independent_all")
        ]
        return " / ".join(f"{mean:.1f}" for mean in means)

    return _by_third(groups, cell)


def _probabilities(groups: Mapping[Group, Results]) -> list[str]:
    def cell(found: Results, scheme: str, third: str) -> str:
        if third not in found[0]["error"][scheme]:
            return ""
        errors = [one["error"][scheme][third] for one in found]
        rival, ours = "independent_probabilistic", "joint_probabilistic"
        return contrast(estimate(np.array([error[rival] - error[ours] for error in errors])))

    return _by_third(groups, cell)


def _by_third(groups: Mapping[Group, Results], cell: Any) -> list[str]:
    thirds = _thirds(groups)
    lines = [
        [*group, scheme, *(cell(found, scheme, third) for third in thirds)]
        for group, found in groups.items()
        for scheme in SCHEMES
    ]
    head = ["dataset", "kernel", "calibration rows", *(f"third: {third}" for third in thirds)]
    return markdown(head, lines)


def _thirds(groups: Mapping[Group, Results]) -> list[str]:
    first = next(iter(groups.values()))[0]
    return list(first["error"][SCHEMES[0]])


def _comparison_findings(groups: Mapping[Group, Results]) -> Iterator[Finding]:
    for group, found in groups.items():
        for scheme in SCHEMES:
            row = f"{group.dataset} ({group.kernel}), {scheme}"
            thirds = list(found[0]["error"][scheme])
            for rival in ("independent", "independent_all"):
                yield Finding("6a", row, rival, c.lower_error(found, scheme, thirds, rival))
                for third in thirds:
                    alone = c.lower_error(found, scheme, [third], rival)
                    yield Finding("6b", row, f"{rival}, third: {third}", alone)


# Claims


def _claim_tables(findings: Sequence[Finding], claims: Claims) -> str:
    blocks = []
    for name in dict.fromkeys(finding.claim for finding in findings):
        about = [finding for finding in findings if finding.claim == name]
        blocks.append("\n".join(_claim_table(name, claims[name], about)))
    return "\n\n".join(blocks)


def _claim_table(name: str, claim: c.Claim, findings: Sequence[Finding]) -> list[str]:
    rows = list(dict.fromkeys(finding.row for finding in findings))
    columns = list(dict.fromkeys(finding.column for finding in findings))
    cells = {(f.row, f.column): _marked(f.found, claim.margin) for f in findings}
    lines = [[row, *(cells.get((row, column), "") for column in columns)] for row in rows]
    tally = Counter(c.verdict(finding.found, claim.margin) for finding in findings)
    counted = ", ".join(f"{verdict}: {count}" for verdict, count in tally.most_common())
    margin = f" Differences down to -{claim.margin:g} count as equal." if claim.margin else ""
    words = (
        f"**Claim {name}.** {claim.statement} Measured: {claim.quantity}; mean and 95% interval, "
        f"**bold** where the interval confirms it, *italics* where it says the opposite.{margin} "
        f"Of {len(findings)} cells, {counted}."
    )
    return [words, "", *markdown(["", *columns], lines)]


def _marked(found: Interval, margin: float) -> str:
    marks = {"confirmed": "**", "the opposite": "*"}
    mark = marks.get(c.verdict(found, margin), "")
    return f"{mark}{_interval(found)}{mark}"


def _interval(found: Interval) -> str:
    if np.isnan(found.value):
        return NO_VALUE
    value, low, high = (with_width(v, np.inf, "+", digits=2) for v in found)
    return value if np.isnan(found.low) else f"{value} [{low}, {high}]"
