"""The sentences worth knowing: how often right, how often it doubts, what doubt buys, and more."""

from __future__ import annotations

from typing import Any

from dubito.report._words import between, cases, money, percent, same_cost


def collect_summary(
    n: int,
    numbers: list[dict[str, Any]],
    rejecting: dict[str, Any],
    parts: list[dict[str, Any] | None],
) -> dict[str, Any]:
    """Return the sentences and the numbers in them, for the first method.

    `parts` are further ones with a sentence of their own, None where there is nothing to say.
    """
    right = next(row["cells"][0] for row in numbers if row["key"] == "accuracy")
    method, cost = rejecting["methods"][0], rejecting["start"]
    at = rejecting["costs"].index(cost)
    outcome = {
        "reject_cost": cost,
        "declined": method["declined"][at],
        "declined_rows": round(method["declined"][at] * n),
        "error": method["error"][at],
        "error_low": method["low"][at],
        "error_high": method["high"][at],
        "cost": method["cost"][at],
        "never": method["never"],
    }
    lines = [_right(n, right), _doubts(n, outcome), _buys(outcome)]
    lines += [part["line"] for part in parts if part is not None]
    return {"lines": lines, "right": right, **outcome}


def _right(n: int, right: dict[str, float]) -> str:
    interval = between(right["low"], right["high"])
    return f"It is right in {percent(right['value'])} of {cases(n)} (95% interval: {interval})."


def _doubts(n: int, outcome: dict[str, Any]) -> str:
    price = f"Where a mistake costs 1 and asking a person costs {outcome['reject_cost']:g}, it"
    asked = outcome["declined_rows"]
    if asked == 0:
        return f"{price} doubts none of the cases enough to ask."
    if asked == n:
        return f"{price} doubts every case and would ask in all of them."
    return f"{price} doubts {percent(outcome['declined'])} of the cases and would ask in {asked:,}."


def _buys(outcome: dict[str, Any]) -> str:
    now, never = outcome["cost"], outcome["never"]
    if outcome["declined_rows"] == 0:
        return f"So doubt changes nothing here: {percent(never)} of its answers are wrong."
    if outcome["error"] is None:
        left = "it gives no answer of its own"
    else:
        left = (
            f"of the answers it gives {percent(outcome['error'])} are wrong instead of "
            f"{percent(never)} without asking"
        )
    if same_cost(now, never):
        price = f"a case costs {money(now)} on average with or without asking"
        return f"Doubt makes no difference to the cost at this price: {left}, but {price}."
    price = f"a case costs {money(now)} on average instead of {money(never)}"
    if now < never:
        return f"Doubt pays: {left}, and {price} ({1 - now / never:.0%} less)."
    return f"Doubt does not pay at this price: {left}, but {price}."
