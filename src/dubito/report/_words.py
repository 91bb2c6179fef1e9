"""Numbers and names as people read them."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Any
from unicodedata import bidirectional

from dubito.evidence._wording import short

if TYPE_CHECKING:
    from collections.abc import Callable

#: Longer names are cut off.
LONGEST_NAME = 60
#: Characters that turn the text behind them round, and keep turned text to itself.
TURNS = dict.fromkeys([*range(0x202A, 0x202F), *range(0x2066, 0x206A)])
ISOLATED = "\N{FIRST STRONG ISOLATE}", "\N{POP DIRECTIONAL ISOLATE}"
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
    """Show a cost, where an error costs 1; of a small one, two digits that say something.

    >>> money(0.2), money(0.0), money(0.0012), money(0.00034), money(None) == NOTHING
    ('0.200', '0.000', '0.0012', '0.00034', True)
    """
    if cost is None:
        return NOTHING
    digits = 1 - math.floor(math.log10(cost)) if 0 < cost < 0.01 else 3
    return f"{cost:.{min(digits, 6)}f}"


def same_cost(cost: float, other: float) -> bool:
    """Whether two costs read as equal, or differ by what would read as 0%.

    >>> same_cost(0.2 * 5 / 60, 1 / 60), same_cost(0.2196, 0.2194), same_cost(0.00034, 0.00017)
    (True, True, False)
    """
    return money(cost) == money(other) or abs(cost - other) < 0.005 * other


def number(value: float | None) -> str:
    """Show a number that is neither a share nor a cost."""
    return NOTHING if value is None else f"{value:.3f}"


def points(difference: float) -> str:
    """Show a difference between percentages, in percentage points.

    >>> points(0.1312), points(0.0004)
    ('13.1', '<0.1')
    """
    return f"{100 * difference:.1f}" if difference >= 0.0005 else "<0.1"


def between(low: float | None, high: float | None, shown: Callable[[float], str] = percent) -> str:
    """Show an interval, of fractions unless told otherwise."""
    return "" if low is None or high is None else f"{shown(low)} to {shown(high)}"


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


def shown_name(name: Any) -> str:
    """Show a name in one line that is not too long and leaves the words around it in order."""
    shown = short(straight(str(name)), LONGEST_NAME) or "(empty)"
    from_right = any(bidirectional(letter) in {"R", "AL"} for letter in shown)
    return shown.join(ISOLATED) if from_right else shown


def straight(text: str) -> str:
    """Return a text without characters that turn text round.

    >>> straight("a \N{RIGHT-TO-LEFT OVERRIDE}taken for b")
    'a taken for b'
    """
    return text.translate(TURNS)


def distinct_names(names: Any) -> list[str]:
    """Return short names that differ where the names do.

    >>> distinct_names(["a", " b  c", "", "x" * 90 + "1", "x" * 90 + "2"])[:3]
    ['a', 'b c', '(empty)']
    """
    shown = [shown_name(name) for name in names]
    times = Counter(shown)
    return [f"{name} (no. {i})" if times[name] > 1 else name for i, name in enumerate(shown)]
