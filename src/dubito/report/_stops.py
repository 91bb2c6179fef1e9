"""What the page says at every stop of the slider, ready to be shown."""

from __future__ import annotations

from typing import Any

from dubito.report._words import between, cases, money, percent, same_cost

#: Which of the bounds a strategy goes by; "probabilistic" goes by the probability itself.
JUDGED = {"pessimistic": "lower", "optimistic": "upper"}


def slider_stops(collected: dict[str, Any]) -> dict[str, Any]:
    """Return the words of the first method's sentences, and the table cells of all, by stop."""
    rejecting = collected["rejecting"]
    first, n = rejecting["methods"][0], collected["rows"]
    return {
        "step": rejecting["step"],
        "start": rejecting["costs"].index(rejecting["start"]),
        "judged": _judged(collected["bounds"][0], first["strategy"]),
        "never": money(first["never"]),
        "words": [_words(first, cost, at, n) for at, cost in enumerate(rejecting["costs"])],
        "cells": [
            [cell for method in rejecting["methods"] for cell in _cells(method, at)]
            for at in range(len(rejecting["costs"]))
        ],
    }


def _judged(meaning: dict[str, Any], strategy: str) -> str:
    if strategy in JUDGED:
        return str(meaning[JUDGED[strategy]])
    return (
        "pignistic probability, between its bounds," if strategy == "pignistic" else "probability"
    )


def _words(method: dict[str, Any], cost: float, at: int, n: int) -> list[str]:
    """Return the cost, the threshold, what is declined, what is wrong, and the cost of a case."""
    share = method["declined"][at]
    wrong = f"{percent(method['error'][at])} of the cases decided are wrong"
    interval = between(method["low"][at], method["high"][at])
    return [
        f"{cost:g}",
        f"{100 * (1 - cost):g}%",
        f"{percent(share)} ({cases(round(share * n))})",
        f"{wrong} (95% interval: {interval})" if interval else "nothing is decided",
        money(method["cost"][at]),
    ]


def _cells(method: dict[str, Any], at: int) -> list[str]:
    """Return the share declined, the errors, the cost of a case, and what is saved."""
    return [
        percent(method["declined"][at]),
        percent(method["error"][at]),
        money(method["cost"][at]),
        _saved(method["cost"][at], method["never"]),
    ]


def _saved(cost: float, never: float) -> str:
    if same_cost(cost, never):
        return "the same"
    return f"{money(abs(never - cost))} {'less' if cost < never else 'more'}"
