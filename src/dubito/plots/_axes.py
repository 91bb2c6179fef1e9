"""Where displays draw; matplotlib is imported when somebody does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class DrawsOnAxes:
    """A display with axes and their figure."""

    def _take(self, ax: Axes | None) -> None:
        """Draw on axes that were given, or on new ones."""
        if ax is None:
            _, ax = _pyplot().subplots()
        self.ax_: Any = ax
        self.figure_: Any = ax.figure


def _pyplot() -> Any:
    try:
        import matplotlib.pyplot as plt  # noqa: PLC0415 - only drawing needs it
    except ImportError as error:
        raise ImportError('plots need matplotlib: pip install "dubito[plots]"') from error
    return plt
