"""Parts of messages: lists of a few names or rows, counts with their plural, shortened values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

#: Longest text of a value in a row; longer ones are shortened.
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


def name_ends(names: Sequence[Any], *, shown: int = 8, gap: str = " … ") -> str:
    """Return names separated by commas; if there are more than `shown`, the first and the last.

    >>> name_ends(["a", "", "b"]), name_ends(range(100)), name_ends([])
    ('a, (no name), b', '0 … 99', 'none')
    """
    if not names:
        return "none"
    if len(names) > shown:
        return f"{names[0]}{gap}{names[-1]}"
    return ", ".join(str(name) or "(no name)" for name in names)


def join_some(names: Sequence[Any], word: str, *, shown: int = 3) -> str:
    """Return the first few names as a phrase, with a word before the last or the others.

    >>> join_some(["a"], "or"), join_some("abcd", "or"), join_some("abcde", "and")
    ('a', 'a, b, c or d', 'a, b, c and 2 others')
    """
    words = [str(name) for name in names]
    if len(words) > shown + 1:
        words[shown:] = [f"{len(words) - shown} others"]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} {word} {words[-1]}"


def name_rows(rows: npt.ArrayLike, *, shown: int = 3) -> str:
    """Return the numbers of a few rows as a phrase.

    >>> name_rows([7]), name_rows([4, 7])
    ('row 7', 'rows 4 and 7')
    >>> name_rows([3, 41, 50, 51, 52])
    'rows 3, 41, 50 and 2 others'
    """
    numbers = np.atleast_1d(np.asarray(rows)).astype(int).tolist()
    return f"row{'' if len(numbers) == 1 else 's'} {join_some(numbers, 'and', shown=shown)}"


def counted(n: int, what: str) -> str:
    """Return a number with its noun, in the plural where it is not 1.

    >>> counted(1, "row"), counted(2, "class")
    ('1 row', '2 classes')
    """
    plural = "es" if what.endswith(("s", "ch")) else "s"
    return f"{n} {what}{'' if n == 1 else plural}"


def shorten(value: Any, longest: int) -> str:
    r"""Return a value as text on one line, at most `longest` characters, the last then "…".

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
