"""Formatting of explanations: names, numbers and statements in aligned columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from dubito._wording import shorten, shown_value

if TYPE_CHECKING:
    from dubito._typing import AnyArray

#: Longer texts are shortened to keep the columns narrow.
LONGEST_LABEL, LONGEST_NAME = 40, 60


class Statement(NamedTuple):
    """A weight of evidence as text, and for or against which class it is."""

    amount: str
    direction: str


NOTHING = Statement("<0.01", "for or against any class")


def named_values(names: AnyArray, values: AnyArray) -> list[str]:
    """Return names with their values, where there are any, aligned."""
    shown = [shorten(name, LONGEST_NAME) for name in names]
    width = max(map(len, shown), default=0)
    return [
        name if value is None else f"{name:<{width}} = {shown_value(value)}"
        for name, value in zip(shown, values, strict=True)
    ]


def aligned(names: list[str], *statements: tuple[Statement | None, ...]) -> list[str]:
    """Return lines of names and statements in columns; empty columns are left out."""
    columns = [names]
    for column in statements:
        width = max((len(statement.amount) for statement in column if statement), default=0)
        columns.append([f"{c.amount:>{width}} {c.direction}" if c else "" for c in column])
    widths = [max(map(len, column), default=0) for column in columns]
    return [
        ("  " + "   ".join(f"{c:<{w}}" for c, w in zip(line, widths, strict=True) if w)).rstrip()
        for line in zip(*columns, strict=True)
    ]


def two_digits(value: float) -> str:
    """Return a number in [0, 1] with two digits."""
    return f"{abs(value):.2f}"  # abs: no minus before a zero


def amount(weight: float) -> str:
    """Return a weight of evidence with a plus sign."""
    return f"+{weight:.2f}" if weight < 1e6 else f"+{weight:.3g}"


def is_word(label: Any) -> bool:
    """Return whether a label reads as a name."""
    return isinstance(label, str) and label[:1].isalpha()


def class_name(label: Any) -> str:
    """Return a class as part of a sentence: words as they are, numbers as "class 3"."""
    name = shorten(label, LONGEST_LABEL)
    return name if is_word(label) else f"class {name}"
