"""Parts of messages: lists of a few names or rows, counts with their plural, shortened values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

#: Longer texts among the values of a row are cut off.
_LONGEST_VALUE = 24


def name_some(
    names: Sequence[Any],
    *,
    shown: int = 5,
    show: Callable[[Any], str] = repr,
    rest: str = " and {} more",
) -> str:
    """Return the first few names, separated by commas, and how many more there are.

    >>> name_some(["a", "b", "c"], shown=2)
    "'a', 'b' and 1 more"
    >>> name_some(range(20), shown=3, rest=", …")
    '0, 1, 2, …'
    """
    words = ", ".join(show(name) for name in names[:shown])
    return words if len(names) <= shown else words + rest.format(len(names) - shown)


def name_rows(rows: npt.ArrayLike, *, shown: int = 3) -> str:
    """Return the numbers of a few rows as a phrase.

    >>> name_rows([7])
    'row 7'
    >>> name_rows([3, 41, 50, 51, 52])
    'rows 3, 41, 50 and 2 others'
    """
    numbers = [int(r) for r in np.atleast_1d(np.asarray(rows))]
    if len(numbers) == 1:
        return f"row {numbers[0]}"
    if len(numbers) > shown + 1:
        return f"rows {name_some(numbers, shown=shown, rest=' and {} others')}"
    return f"rows {', '.join(map(str, numbers[:-1]))} and {numbers[-1]}"


def counted(n: int, what: str) -> str:
    """Return a number with its noun, in the plural where it is not 1.

    >>> counted(1, "row"), counted(2, "class")
    ('1 row', '2 classes')
    """
    plural = "es" if what.endswith(("s", "ch")) else "s"
    return f"{n} {what}{'' if n == 1 else plural}"


def shorten(value: Any, longest: int) -> str:
    r"""Return a value as text on one line, cut off with "…" where it is longer than allowed.

    >>> shorten("a long\nstory", 8)
    'a long …'
    """
    text = " ".join(str(value).split())
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def shown_value(value: Any) -> str:
    """Return an input value as text: fractions with four digits, whole numbers with all.

    >>> shown_value(0.123456), shown_value(123456.0), shown_value("red")
    ('0.1235', '123456', 'red')
    """
    if not isinstance(value, float | np.floating):
        return shorten(value, _LONGEST_VALUE)
    number = float(value) + 0.0  # no minus before a zero
    return f"{number:.0f}" if 1e4 <= abs(number) < 1e15 else f"{number:.4g}"
