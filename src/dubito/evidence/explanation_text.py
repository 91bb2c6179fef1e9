"""The text of one explained row: the conclusion, the pieces of evidence in columns, the doubt."""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dubito._numerics.softmax import softmax_in_place
from dubito._wording import counted, join_some, shorten, shown_value
from dubito.decision import interval_dominance

if TYPE_CHECKING:
    from dubito._typing import AnyArray, FloatArray
    from dubito.evidence.explanation import Explanation

#: Weights below this would be shown as 0.00.
SMALLEST_SHOWN = 0.005
#: Of the two causes of doubt, lack of evidence and conflict, one is named alone if it is this many
#: times the other.
CLEARLY_MORE = 3
#: Classes listed one by one in a sentence; with more classes, only one is explained by default.
MAX_CLASSES_NAMED = 3
#: Longer labels of classes and rows are shortened to this many characters.
LONGEST_LABEL = 40
#: Longer names of pieces are shortened to this many characters.
LONGEST_NAME = 60


class Statement(NamedTuple):
    """A weight of evidence as text, and for or against which class it is."""

    amount: str
    direction: str


def text_of_row(explanation: Explanation, i: int, *, column: int | None, max_pieces: int) -> str:
    """Return row i in words: the conclusion, its largest weights, and the doubt.

    The weights are those of all classes, or of the class of a column.
    """
    pieces = _piece_lines(explanation, i, column, max_pieces)
    return "\n".join([_headline(explanation, i), *pieces, _doubt(explanation, i)])


def by_plausibility(explanation: Explanation, i: int) -> AnyArray:
    """Return the columns of the classes, most plausible first; ties by total weight."""
    return np.lexsort((-explanation.weights[i].sum(axis=0), -explanation.bounds.upper[i]))


def _headline(explanation: Explanation, i: int) -> str:
    best = by_plausibility(explanation, i)[0]
    label = explanation.classes[best]
    shown = f'"{_class_name(label)}"' if _is_word(label) else _class_name(label)
    lower, upper = explanation.bounds
    return (
        f"row {shorten(explanation.rows[i], LONGEST_LABEL)}: "
        f"{shown} plausible ({_two_digits(upper[i, best])}), "
        f"belief {_two_digits(lower[i, best])}, "
        f"ignorance {_two_digits(explanation.ignorance[i])}, "
        f"conflict {_two_digits(explanation.conflict[i])}"
    )


def _weights_of_column(weights: FloatArray, k: int) -> FloatArray:
    """Return the weights (pieces, K) of one class, with zeros elsewhere.

    Of two classes, evidence for one is evidence against the other.
    """
    alone = np.zeros_like(weights)
    alone[:, k] = weights[:, k] - (weights[:, 1 - k] if weights.shape[1] == 2 else 0.0)
    return alone


def _piece_lines(
    explanation: Explanation, i: int, column: int | None, max_pieces: int
) -> list[str]:
    """Return a line for each of the largest pieces, and one for the sum of the others."""
    weights, about = explanation.weights[i], "any class"
    if column is not None:
        weights = _weights_of_column(weights, column)
        about = _class_name(explanation.classes[column])
    # Shown if the sums over the remaining pieces are below `SMALLEST_SHOWN`.
    negligible = Statement("<0.01", f"for or against {about}")
    most = check_integer(max_pieces, "max_pieces")
    if most < 0:
        raise ValueError(f"max_pieces must be 0 or more. Got {max_pieces!r} instead.")
    size = np.abs(weights).max(axis=1, initial=0.0)
    order = np.argsort(-size, kind="stable")
    n_shown = min(int((size >= SMALLEST_SHOWN).sum()), most)
    shown, rest = order[:n_shown], order[n_shown:]
    names = _named_values(explanation.names[shown], explanation.values[i, shown])
    statements = [_statements(weights[[p]], explanation.classes) for p in shown]
    if len(rest):
        names.append(counted(len(rest), "other" if n_shown else "piece"))
        statements.append(_statements(weights[rest], explanation.classes, otherwise=negligible))
    return _aligned(names, *zip(*statements, strict=True))


def _statements(
    weights: FloatArray, classes: AnyArray, *, otherwise: Statement | None = None
) -> tuple[Statement | None, Statement | None]:
    """Return the largest weight for a class and against one, or for each of two classes."""
    plus, minus = signed_sums(weights, axis=0)
    best = int(np.argmax(plus))
    word = "against" if minus.any() else "for"
    # Without evidence against any class, two classes are named, with the evidence for each.
    other = minus if minus.any() else np.where(np.arange(len(plus)) == best, 0.0, plus)
    first = _statement(plus, classes, best, "for")
    second = _statement(other, classes, int(np.argmax(other)), word)
    if first is None:  # a single statement goes in the first column
        first, second = second or otherwise, None
    return first, second


def _statement(weights: FloatArray, classes: AnyArray, k: int, word: str) -> Statement | None:
    if weights[k] < SMALLEST_SHOWN:
        return None
    amount = f"+{weights[k]:.2f}" if weights[k] < 1e6 else f"+{weights[k]:.3g}"
    return Statement(amount, f"{word} {_class_name(classes[k])}")


def _doubt(explanation: Explanation, i: int) -> str:
    """Return a sentence about the classes that remain possible and the cause of the doubt."""
    order = by_plausibility(explanation, i)
    left = order[_possible(explanation, i)[order]]
    lack = max(1 - explanation.bounds.lower[i].sum(), 0.0)
    cause = cause_of_doubt(lack, explanation.conflict[i])
    if len(left) == 1:
        label = shorten(explanation.classes[left[0]], LONGEST_LABEL)
        second = _second_class(explanation, i, order, cause)
        return f"The evidence leaves one class: {label}.{second}"
    if len(explanation.classes) == 2:
        return f"Doubt here is {cause}."
    return (
        f"Doubt between {_joined(explanation.classes, left)} is {cause}: {_two_digits(lack)} of "
        "the belief names no single class."
    )


def _possible(explanation: Explanation, i: int) -> AnyArray:
    """Return which classes `EvidentialClassifier.predict_set` leaves, (K,)."""
    plus, minus = explanation.totals
    bounds = explanation.bounds[i].including(softmax_in_place(plus[[i]] - minus[[i]]))
    return interval_dominance(bounds)[0]


def _second_class(explanation: Explanation, i: int, order: AnyArray, cause: str) -> str:
    """Return a sentence about the second class, with the cause of doubt if it is close."""
    upper = explanation.bounds.upper[i, order]
    if len(order) < 2 or upper[1] < SMALLEST_SHOWN:
        return ""
    label = explanation.classes[order[1]]
    second = f"{_class_name(label)}, plausible ({_two_digits(upper[1])})"
    if CLEARLY_MORE * upper[1] < upper[0]:
        return f" Next: {second}."
    return f" Close behind: {second}; doubt is {cause}."


def cause_of_doubt(lack: float, conflict: float) -> str:
    """Return in words whether lack of evidence, conflict, or both cause the doubt."""
    # Compared as integers, in hundredths: in floats 0.15 is not three times 0.05.
    lack_part, conflict_part = (round(100 * float(_two_digits(part))) for part in (lack, conflict))
    if lack_part >= CLEARLY_MORE * conflict_part:
        return "lack of evidence, not conflict"
    if conflict_part >= CLEARLY_MORE * lack_part:
        return "conflict, not lack of evidence"
    return "both lack of evidence and conflict"


def _joined(classes: AnyArray, left: AnyArray) -> str:
    if len(left) == len(classes):
        return f"all {len(left)} classes"
    return join_some([_class_name(classes[k]) for k in left], "and", shown=MAX_CLASSES_NAMED)


def signed_sums(weights: FloatArray, *, axis: int) -> tuple[FloatArray, FloatArray]:
    """Return the total weights for each class and against it."""
    return np.maximum(weights, 0.0).sum(axis=axis), np.maximum(-weights, 0.0).sum(axis=axis)


def check_integer(value: Any, name: str) -> int:
    """Return an integer parameter, or raise an error that names it."""
    if not isinstance(value, Integral):
        raise TypeError(f"{name} must be a whole number. Got {value!r} instead.")
    return int(value)


def _named_values(names: AnyArray, values: AnyArray) -> list[str]:
    """Return names in one width with their values, where there are any."""
    shown = [shorten(name, LONGEST_NAME) for name in names]
    width = max(map(len, shown), default=0)
    return [
        name if value is None else f"{name:<{width}} = {shown_value(value)}"
        for name, value in zip(shown, values, strict=True)
    ]


def _aligned(names: list[str], *statements: tuple[Statement | None, ...]) -> list[str]:
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


def _two_digits(value: float) -> str:
    return f"{abs(value):.2f}"  # abs: no minus sign before a rounded zero


def _is_word(label: Any) -> bool:
    return isinstance(label, str) and label[:1].isalpha()


def _class_name(label: Any) -> str:
    """Return a class as part of a sentence: words as they are, numbers as "class 3"."""
    name = shorten(label, LONGEST_LABEL)
    return name if _is_word(label) else f"class {name}"
