"""How measures are called, which way is better, and how they are put side by side."""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dubito.metrics import Estimate

HIGHER, LOWER, NEITHER = "higher", "lower", ""


class Measure(NamedTuple):
    """A measure in words (up to 26 letters: two models then fit side by side on 80 columns)."""

    words: str
    better: str
    is_share: bool = False


#: In the order they are shown.
MEASURES = {
    "accuracy": Measure("right (accuracy)", HIGHER, is_share=True),
    "error": Measure("wrong (error)", LOWER, is_share=True),
    "log_loss": Measure("log loss", LOWER),
    "brier": Measure("Brier score", LOWER),
    "ece": Measure("calibration error (ECE)", LOWER),
    "classwise_ece": Measure("calibration error by class", LOWER),
    "smooth_ece": Measure("calibration error, smooth", LOWER),
    "coverage": Measure("true class in the set", HIGHER, is_share=True),
    "mean_set_size": Measure("classes in the set, mean", LOWER),
    "determinacy": Measure("sets of one class", HIGHER, is_share=True),
    "single_class_accuracy": Measure("right in sets of one class", HIGHER, is_share=True),
    "discounted_accuracy": Measure("discounted accuracy", HIGHER),
    "u65": Measure("u65", HIGHER),
    "u80": Measure("u80", HIGHER),
    "mean_width": Measure("width of the bounds, mean", NEITHER),
    "aurc": Measure("error of those kept (AURC)", LOWER),
}


def measure_of(key: str) -> Measure:
    """Return a measure by its key; one that is not listed is called by its key."""
    return MEASURES.get(key, Measure(key.replace("_", " "), NEITHER))


def as_plain(estimates: Mapping[str, Estimate]) -> dict[str, dict[str, float | None]]:
    """Return estimates as JSON can hold them: None for what is not defined."""
    return {
        key: {part: _finite(value) for part, value in estimate._asdict().items()}
        for key, estimate in estimates.items()
    }


def show(estimates: Mapping[str, Mapping[str, Estimate]], keys: Sequence[str] = ()) -> str:
    """Return a table of the measures of one model or several, as wide as the terminal allows.

    Parameters
    ----------
    estimates : mapping of name to estimates
        One column for each name.
    keys : sequence of str
        The measures to show; all by default.

    Returns
    -------
    str
    """
    found = dict.fromkeys(key for one in estimates.values() for key in one)
    known = [*(key for key in MEASURES if key in found), *(k for k in found if k not in MEASURES)]
    shown = [key for key in known if not keys or key in keys]
    columns = [_column(shown, one) for one in estimates.values()]
    words = ["", *(measure_of(key).words for key in shown)]
    better = ["better", *(measure_of(key).better for key in shown)]
    names = list(estimates) if len(estimates) > 1 else ["95% interval"]
    numbers = [[name, *column] for name, column in zip(names, columns, strict=True)]
    return side_by_side(list(zip(words, *numbers, better, strict=True)))


def _column(keys: Sequence[str], estimates: Mapping[str, Estimate]) -> list[str]:
    """Return values with their intervals, brackets below one another."""
    cells = [_cell(key, estimates.get(key)) for key in keys]
    width = max(len(value) for value, _ in cells)
    return [f"{value:<{width}} {interval}".rstrip() for value, interval in cells]


def side_by_side(rows: Sequence[Sequence[str]]) -> str:
    """Return cells in columns, the first row being their names: drawn by rich on a terminal."""
    if sys.stdout.isatty():
        return _drawn(rows)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = (
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        for row in rows
    )
    return "\n".join(f"  {line}".rstrip() for line in lines)


def _drawn(rows: Sequence[Sequence[str]]) -> str:
    from rich.console import Console as Screen  # noqa: PLC0415 - only where it is seen
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    head, *body = rows
    table = Table(box=None, pad_edge=False, padding=(0, 1))
    for name in head:
        table.add_column(Text(name), overflow="fold")
    for row in body:
        table.add_row(*map(Text, row))
    screen = Screen()
    with screen.capture() as capture:
        screen.print(table)
    return capture.get().rstrip("\n")


def _cell(key: str, estimate: Estimate | None) -> tuple[str, str]:
    """Return a value and its interval in brackets, as far as they are defined."""
    if estimate is None or _finite(estimate.value) is None:
        return "-", ""
    is_share = measure_of(key).is_share
    value, low, high = (100 * part if is_share else part for part in estimate)
    digits, unit = (1, "%") if is_share else (3, "")
    if _finite(low) is None or _finite(high) is None:
        return f"{value:.{digits}f}{unit}", ""
    return f"{value:.{digits}f}{unit}", f"({low:.{digits}f}-{high:.{digits}f}{unit})"


def _finite(value: Any) -> float | None:
    return float(value) if math.isfinite(value) else None
