"""Numbers, names and sentences as the page shows them."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Any
from unicodedata import bidirectional

from dubito._wording import shorten
from dubito.metrics.descriptions import LOW_COVERAGE

if TYPE_CHECKING:
    from collections.abc import Callable

#: Confidence level of the intervals on the page, whose texts say "95%"; the default of `evaluate`.
INTERVAL_LEVEL = 0.95
#: Longer names are truncated.
LONGEST_NAME = 60
#: Unicode controls that change the direction of the text after them, removed from names.
DIRECTION_CONTROLS = dict.fromkeys([*range(0x202A, 0x202F), *range(0x2066, 0x206A)])
#: Unicode controls around a right-to-left name that keep the text after it in order.
ISOLATED = "\N{FIRST STRONG ISOLATE}", "\N{POP DIRECTIONAL ISOLATE}"
#: The bound that a strategy compares with the threshold.
BOUND_OF_STRATEGY = {"pessimistic": "lower", "optimistic": "upper"}
#: Shown in place of a number that is missing.
NO_NUMBER = "\N{EN DASH}"


def percent(fraction: float | None) -> str:
    """Return a fraction in percent; "0%" and "100%" only for exactly 0 and 1.

    >>> percent(0.1234), percent(0.0), percent(0.0001), percent(0.9999), percent(None) == NO_NUMBER
    ('12.3%', '0%', '<0.1%', '>99.9%', True)
    """
    if fraction is None:
        return NO_NUMBER
    if fraction in (0.0, 1.0):
        return f"{fraction:.0%}"
    if fraction < 0.0005:
        return "<0.1%"
    return ">99.9%" if fraction > 0.9995 else f"{fraction:.1%}"


def cost_text(cost: float | None) -> str:
    """Return a cost (an error costs 1) with three decimals; below 0.01 with two significant digits.

    >>> [cost_text(cost) for cost in (0.2, 0.0, 0.0012, 0.00034)], cost_text(None) == NO_NUMBER
    (['0.200', '0.000', '0.0012', '0.00034'], True)
    """
    if cost is None:
        return NO_NUMBER
    digits = 1 - math.floor(math.log10(cost)) if 0 < cost < 0.01 else 3
    return f"{cost:.{min(digits, 6)}f}"


def same_cost(cost: float, other: float) -> bool:
    """Return whether two costs are displayed as equal, or differ by less than 0.5%.

    >>> same_cost(0.2 * 5 / 60, 1 / 60), same_cost(0.2196, 0.2194), same_cost(0.00034, 0.00017)
    (True, True, False)
    """
    return cost_text(cost) == cost_text(other) or abs(cost - other) < 0.005 * other


def number(value: float | None) -> str:
    """Return a number that is neither a fraction nor a cost, with three decimals."""
    return NO_NUMBER if value is None else f"{value:.3f}"


def percentage_points(difference: float) -> str:
    """Return a difference between fractions, in percentage points.

    >>> percentage_points(0.1312), percentage_points(0.0004)
    ('13.1', '<0.1')
    """
    return f"{100 * difference:.1f}" if difference >= 0.0005 else "<0.1"


def interval_text(
    low: float | None, high: float | None, shown: Callable[[float], str] = percent
) -> str:
    """Return an interval as text; by default its ends are fractions in percent."""
    return "" if low is None or high is None else f"{shown(low)} to {shown(high)}"


def cases(n: int) -> str:
    """Return a number of cases as text.

    >>> cases(1), cases(12480)
    ('1 case', '12,480 cases')
    """
    return f"{n:,} case{'' if n == 1 else 's'}"


def plain(value: Any) -> float | None:
    """Return a float, or None for nan and infinity, which JSON lacks."""
    number = float(value)
    return number if abs(number) < float("inf") else None


def shown_name(name: Any) -> str:
    """Return a name on one line, truncated, that cannot reorder the text around it."""
    shown = shorten(without_direction_controls(str(name)), LONGEST_NAME) or "(empty)"
    from_right = any(bidirectional(letter) in {"R", "AL"} for letter in shown)
    return shown.join(ISOLATED) if from_right else shown


def without_direction_controls(text: str) -> str:
    """Return a text without Unicode controls that change the direction of text.

    >>> without_direction_controls("a \N{RIGHT-TO-LEFT OVERRIDE}taken for b")
    'a taken for b'
    """
    return text.translate(DIRECTION_CONTROLS)


def distinct_names(names: Any) -> list[str]:
    """Return short names, numbered where truncation made them equal.

    >>> distinct_names(["a", " b  c", "", "x" * 90 + "1", "x" * 90 + "2"])[:3]
    ['a', 'b c', '(empty)']
    """
    shown = [shown_name(name) for name in names]
    times = Counter(shown)
    return [f"{name} (no. {i})" if times[name] > 1 else name for i, name in enumerate(shown)]


def collect_summary(
    n: int,
    metrics: list[dict[str, Any]],
    declining: dict[str, Any],
    parts: list[dict[str, Any] | None],
) -> dict[str, Any]:
    """Return the sentences of the summary and the numbers in them, for the first model.

    `parts` are further results with a sentence each under "line"; None if not applicable.
    """
    right = next(row["cells"][0] for row in metrics if row["key"] == "accuracy")
    model, cost = declining["models"][0], declining["start"]
    at = declining["costs"].index(cost)
    outcome = {
        "reject_cost": cost,
        "declined": model["declined"][at],
        "declined_rows": round(model["declined"][at] * n),
        "error": model["error"][at],
        "error_low": model["low"][at],
        "error_high": model["high"][at],
        "cost": model["cost"][at],
        "error_without_declining": model["error_without_declining"],
    }
    lines = [_accuracy_line(n, right), _declined_line(n, outcome), _cost_line(outcome)]
    lines += [part["line"] for part in parts if part is not None]
    return {"lines": lines, "right": right, **outcome}


def _accuracy_line(n: int, right: dict[str, float]) -> str:
    interval = interval_text(right["low"], right["high"])
    return f"It is right in {percent(right['value'])} of {cases(n)} (95% interval: {interval})."


def _declined_line(n: int, outcome: dict[str, Any]) -> str:
    price = f"Where a mistake costs 1 and asking a person costs {outcome['reject_cost']:g}, it"
    declined = outcome["declined_rows"]
    if declined == 0:
        return f"{price} declines none of the cases."
    if declined == n:
        return f"{price} declines every case."
    return f"{price} declines {percent(outcome['declined'])} of the cases ({declined:,})."


def _cost_line(outcome: dict[str, Any]) -> str:
    # An error costs 1: without declining the mean cost is the error.
    now, never = outcome["cost"], outcome["error_without_declining"]
    if outcome["declined_rows"] == 0:
        return f"No case is declined: {percent(never)} of its answers are wrong."
    if outcome["error"] is None:
        left = "it gives no answer of its own"
    else:
        left = (
            f"of the answers it gives {percent(outcome['error'])} are wrong instead of "
            f"{percent(never)} without asking"
        )
    if same_cost(now, never):
        price = f"a case costs {cost_text(now)} on average with or without asking"
        return f"Declining does not change the mean cost: {left}, but {price}."
    price = f"a case costs {cost_text(now)} on average instead of {cost_text(never)}"
    if now < never:
        return f"Declining lowers the mean cost: {left}, and {price} ({1 - now / never:.0%} less)."
    return f"Declining raises the mean cost: {left}, but {price}."


def calibration_line(error: dict[str, float], forecast: float, right: float, *, large: bool) -> str:
    """Return a sentence on the size and the direction of the calibration error."""
    verdict = "not calibrated" if large else "only roughly calibrated"
    interval = interval_text(error["low"], error["high"], percentage_points)
    if abs(forecast - right) < error["value"] / 2:
        direction = "it is overconfident in some cases and underconfident in others"
    else:
        direction = f"it is {'over' if forecast > right else 'under'}confident"
    return (
        f"Its probabilities are {verdict}: they differ from the observed frequencies by "
        f"{percentage_points(error['value'])} percentage points on average (95% interval: "
        f"{interval}), more than chance explains. The probability of the predicted class is "
        f"{percent(forecast)} on average, and it is right in {percent(right)} of the cases: "
        f"{direction}."
    )


def coverage_sentence(requested: float, observed: dict[str, Any]) -> str:
    """Return a sentence on the coverage of sets, requested and observed."""
    interval = interval_text(observed["low"], observed["high"])
    seen = (
        f"Coverage requested {percent(requested)}, observed {percent(observed['fraction'])} of "
        f"{cases(observed['rows'])} (95% interval: {interval})"
    )
    return f"{seen}. {LOW_COVERAGE}" if observed["high"] < requested else f"{seen}."


def familiarity_line(unfamiliar: int, n: int, rate: float) -> str:
    """Return a sentence on how many rows are unlike the training rows."""
    return (
        f"{percent(unfamiliar / n)} of the cases ({cases(unfamiliar)}) are unlike those it was "
        f"trained on; of cases of the same kind, at most about {percent(rate)} would be."
    )


def slider_texts(collected: dict[str, Any]) -> dict[str, Any]:
    """Return, for every cost of the slider, the first model's sentence and all table cells."""
    declining = collected["declining"]
    first, n = declining["models"][0], collected["rows"]
    return {
        "step": declining["step"],
        "start": declining["costs"].index(declining["start"]),
        "quantity": _compared_quantity(collected["bounds"][0], first["strategy"]),
        "never": cost_text(first["error_without_declining"]),
        "words": [
            _slider_sentence(first, cost, at, n) for at, cost in enumerate(declining["costs"])
        ],
        "cells": [
            [cell for model in declining["models"] for cell in _slider_cells(model, at)]
            for at in range(len(declining["costs"]))
        ],
    }


def _compared_quantity(meaning: dict[str, Any], strategy: str) -> str:
    """Return the name of the quantity that a strategy compares with 1 - cost."""
    if strategy in BOUND_OF_STRATEGY:
        return str(meaning[BOUND_OF_STRATEGY[strategy]])
    return (
        "pignistic probability, between its bounds," if strategy == "pignistic" else "probability"
    )


def _slider_sentence(model: dict[str, Any], cost: float, at: int, n: int) -> list[str]:
    """Return the parts of the sentence: cost, threshold, declined, wrong, cost of a case."""
    declined = model["declined"][at]
    wrong = f"{percent(model['error'][at])} of the cases decided are wrong"
    interval = interval_text(model["low"][at], model["high"][at])
    return [
        f"{cost:g}",
        f"{100 * (1 - cost):g}%",
        f"{percent(declined)} ({cases(round(declined * n))})",
        f"{wrong} (95% interval: {interval})" if interval else "nothing is decided",
        cost_text(model["cost"][at]),
    ]


def _slider_cells(model: dict[str, Any], at: int) -> list[str]:
    """Return the fraction declined, the error, the cost of a case, and the saving."""
    return [
        percent(model["declined"][at]),
        percent(model["error"][at]),
        cost_text(model["cost"][at]),
        _saving(model["cost"][at], model["error_without_declining"]),
    ]


def _saving(cost: float, never: float) -> str:
    if same_cost(cost, never):
        return "the same"
    return f"{cost_text(abs(never - cost))} {'less' if cost < never else 'more'}"
