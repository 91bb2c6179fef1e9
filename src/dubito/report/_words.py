"""Numbers and names as people read them."""

from __future__ import annotations

from collections import Counter
from typing import Any

from dubito.evidence._wording import short

#: Longer names are cut off.
LONGEST_NAME = 60
#: Stands where there is no number.
NOTHING = "\N{EN DASH}"


def percent(share: float | None) -> str:
    """Show a share; what is almost nothing, or almost all, does not read as that.

    >>> percent(0.1234), percent(0.0), percent(0.0001), percent(0.9999), percent(None) == NOTHING
    ('12.3%', '0%', '<0.1%', '>99.9%', True)
    """
    if share is None:
        return NOTHING
    if share in (0.0, 1.0):
        return f"{share:.0%}"
    if share < 0.0005:
        return "<0.1%"
    return ">99.9%" if share > 0.9995 else f"{share:.1%}"


def money(cost: float | None) -> str:
    """Show a cost, where an error costs 1."""
    return NOTHING if cost is None else f"{cost:.3f}"


def between(low: float | None, high: float | None) -> str:
    """Show an interval of shares."""
    return "" if low is None or high is None else f"{percent(low)} to {percent(high)}"


def cases(n: int) -> str:
    """Count cases.

    >>> cases(1), cases(12480)
    ('1 case', '12,480 cases')
    """
    return f"{n:,} case{'' if n == 1 else 's'}"


def plain(value: Any) -> float | None:
    """Return a number that JSON can hold: None for nan and for infinity."""
    number = float(value)
    return number if abs(number) < float("inf") else None


def distinct_names(names: Any) -> list[str]:
    """Return short names that differ where the names do.

    >>> distinct_names(["a", " b  c", "", "x" * 90 + "1", "x" * 90 + "2"])[:3]
    ['a', 'b c', '(empty)']
    """
    shown = [short(name, LONGEST_NAME) or "(empty)" for name in names]
    times = Counter(shown)
    return [f"{name} (no. {i})" if times[name] > 1 else name for i, name in enumerate(shown)]
