"""Words and columns of explanations: names, numbers and claims, short and side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    AnyArray = npt.NDArray[Any]

#: Longer texts are cut off, so that the columns stay side by side.
LONGEST_VALUE, LONGEST_LABEL, LONGEST_NAME = 24, 40, 60


class Claim(NamedTuple):
    """What evidence says: how much, and for or against which class."""

    amount: str
    words: str


NOTHING = Claim("<0.01", "for or against any class")


def named_values(names: AnyArray, values: AnyArray) -> list[str]:
    """Put the values, where there are any, below one another."""
    shown = [short(name, LONGEST_NAME) for name in names]
    width = max(map(len, shown), default=0)
    return [
        name if value is None else f"{name:<{width}} = {shown_value(value)}"
        for name, value in zip(shown, values, strict=True)
    ]


def aligned(names: list[str], *claims: tuple[Claim | None, ...]) -> list[str]:
    """Put names and claims in columns; a column without claims takes no room."""
    columns = [names]
    for column in claims:
        width = max((len(claim.amount) for claim in column if claim), default=0)
        columns.append([f"{c.amount:>{width}} {c.words}" if c else "" for c in column])
    widths = [max(map(len, column), default=0) for column in columns]
    return [
        ("  " + "   ".join(f"{c:<{w}}" for c, w in zip(line, widths, strict=True) if w)).rstrip()
        for line in zip(*columns, strict=True)
    ]


def share(value: float) -> str:
    """Show a share with two digits."""
    return f"{abs(value):.2f}"  # abs: no minus before a zero


def amount(weight: float) -> str:
    """Show a weight of evidence as something added."""
    return f"+{weight:.2f}" if weight < 1e6 else f"+{weight:.3g}"


def shown_value(value: Any) -> str:
    """Show an input value: four digits of a fraction, all of a whole number, a few words."""
    if not isinstance(value, float | np.floating):
        return short(value, LONGEST_VALUE)
    number = float(value) + 0.0  # no minus before a zero
    return f"{number:.0f}" if 1e4 <= abs(number) < 1e15 else f"{number:.4g}"


def short(value: Any, longest: int) -> str:
    """Cut a long text off."""
    text = " ".join(str(value).split())
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def is_word(label: Any) -> bool:
    """Whether a label reads as a name."""
    return isinstance(label, str) and label[:1].isalpha()


def called(label: Any) -> str:
    """Name a class within a sentence: words as they are, numbers as "class 3"."""
    name = short(label, LONGEST_LABEL)
    return name if is_word(label) else f"class {name}"
