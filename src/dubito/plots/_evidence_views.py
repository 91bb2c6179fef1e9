"""Three views of evidence: plain arrays, each with a method that draws them on axes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dubito.plots._drawing import BESIDE_AXES, DASHES, class_colours, pale, set_colour

if TYPE_CHECKING:
    from dubito._typing import BoolArray, FloatArray, IntArray

_GREY = "0.4"
#: Largest height of the strip of ticks of one class, as a fraction of the axes.
_MAX_STRIP = 0.04
#: Largest height of the strips of all classes together.
_MAX_STRIPS = 0.2
#: Height of the margin between strips and curves.
_STRIP_MARGIN = 0.03


class Waterfall(NamedTuple):
    """Weights of evidence of one row, the largest first, and the classes they support.

    names : what each bar is called; weight : (p,), above 0 for the target; target : its column;
    classes : (K,); headline : the conclusion in words.
    """

    names: tuple[str, ...]
    weight: FloatArray
    target: int
    classes: tuple[Any, ...]
    headline: str

    @property
    def sides(self) -> tuple[str, str]:
        """What bars to the left and bars to the right are evidence for or against."""
        of_two = len(self.classes) == 2
        left = f"for {self.classes[1 - self.target]}" if of_two else f"against {self._target_name}"
        return left, f"for {self._target_name}"

    @property
    def _target_name(self) -> str:
        return str(self.classes[self.target])

    def draw(self, ax: Any, options: dict[str, Any]) -> dict[str, Any]:
        """Draw the bars, each beginning where the last one ended, and their sum; return them."""
        ends = np.cumsum(self.weight)
        rows = np.arange(len(ends) + 1)
        start = np.append(ends - self.weight, 0.0)
        width = np.append(self.weight, ends[-1])
        bars = ax.barh(rows, width, left=start, **{"color": self._colours(), **options})
        for row, end in enumerate(ends):
            ax.plot([end, end], [row + 0.4, row + 0.6], color=_GREY, linewidth=0.8)
        ax.bar_label(bars, [f"{w:+.2f}" for w in width], padding=3, fontsize="small")
        ax.axvline(0, color="black", linewidth=0.8)
        ax.axhline(len(ends) - 0.5, color="0.8", linewidth=0.8)
        ax.set_yticks(rows, [*self.names, "together"])
        low, high = min(ends.min(), 0.0), max(ends.max(), 0.0)
        margin = 0.2 * ((high - low) or 1.0)  # for the numbers beside the bars
        ax.set(xlim=(low - margin, high + margin), ylim=(len(ends) + 0.5, -0.5))
        ax.set_xlabel(_arrows(self.sides))
        ax.set_title(self.headline, loc="left", fontsize="medium")
        return {"bars_": bars}

    def _colours(self) -> list[Any]:
        hues = class_colours(len(self.classes))
        right = hues[self.target]
        left = hues[1 - self.target] if len(self.classes) == 2 else pale(right)
        return [*(right if w >= 0 else left for w in self.weight), _GREY]


class WeightCurves(NamedTuple):
    """Weights of one piece of evidence against its value.

    value : (t,); weight : (t, L), one line for two classes, one per class otherwise; cutoffs :
    for each line the values at which it changes sign; points : (n,), values of rows;
    column : (n,), their classes, or None; classes : (K,); label : name of the value.
    """

    value: FloatArray
    weight: FloatArray
    cutoffs: tuple[FloatArray, ...]
    points: FloatArray
    column: IntArray | None
    classes: tuple[Any, ...]
    label: str

    def draw(self, ax: Any, options: dict[str, Any]) -> dict[str, Any]:
        """Draw the lines, their cut-offs and ticks for the rows; return them."""
        binary = self.weight.shape[1] == 1
        names = ["weight"] if binary else [str(label) for label in self.classes]
        colours = ["black"] if binary else list(class_colours(len(self.classes)))
        lines, cutoff_lines = [], []
        ax.axhline(0, color="0.7", linewidth=0.8)
        for weight, cutoffs, name, colour in zip(
            self.weight.T, self.cutoffs, names, colours, strict=True
        ):
            style = {"color": colour, "label": name, **options}
            lines += ax.plot(self.value, weight, **style)
            for cutoff in cutoffs:
                style = {"color": colour, "linestyle": ":", "label": f"cut-off {cutoff:.4g}"}
                cutoff_lines.append(ax.axvline(cutoff, **style))
        ticks = self._draw_ticks(ax, binary=binary)
        ylabel = "weight of evidence (below 0: against)"
        if binary:
            ylabel = _arrows((f"for {self.classes[0]}", f"for {self.classes[1]}"))
        ax.set(xlabel=self.label, ylabel=ylabel, xlim=self.value[[0, -1]])
        # With more than two classes the ticks need no entry: they have the colours of the lines.
        handles = [*lines, *cutoff_lines, *ticks] if binary else lines
        ax.legend(handles=handles, markerscale=2, **BESIDE_AXES)
        return {"lines_": lines, "cutoff_lines_": cutoff_lines, "ticks_": ticks}

    def _draw_ticks(self, ax: Any, *, binary: bool) -> list[Any]:
        """Draw the rows along the lower edge; of two classes, the second along the upper."""
        n_classes = len(self.classes) if self.column is not None else 1
        strip = min(_MAX_STRIP, _MAX_STRIPS / n_classes)
        above = int(binary and n_classes == 2)  # number of strips along the upper edge
        below = n_classes - above
        self._set_limits(ax, strip * below + _STRIP_MARGIN, strip * above + _STRIP_MARGIN)
        jitter = np.random.default_rng(0).uniform(0.2, 0.8, len(self.points)) * strip
        ticks = []
        for k in range(n_classes):
            in_class = slice(None) if self.column is None else self.column == k
            base = 1 - strip if above and k == 1 else k * strip
            style = {"marker": "|", "markersize": 100 * strip + 1, "linestyle": "none"}
            style["color"] = _GREY if self.column is None else class_colours(n_classes)[k]
            style["label"] = "rows" if self.column is None else f"rows of {self.classes[k]}"
            style["transform"] = ax.get_xaxis_transform()  # heights as fractions of the axes
            ticks += ax.plot(self.points[in_class], base + jitter[in_class], alpha=0.6, **style)
        return ticks

    def _set_limits(self, ax: Any, below: float, above: float) -> None:
        """Set the limits so that fractions below and above the lines stay free for the ticks."""
        low, high = min(self.weight.min(), 0.0), max(self.weight.max(), 0.0)
        height = ((high - low) or 1.0) / (1 - below - above)
        ax.set_ylim(low - below * height, high + above * height)


class MassCurves(NamedTuple):
    """Masses that one piece of evidence alone gives to sets, against its value.

    value : (t,); mass : (t, F); focal : (F, K), all False where other sets are joined; names :
    what each set is called; label : name of the value.
    """

    value: FloatArray
    mass: FloatArray
    focal: BoolArray
    names: tuple[str, ...]
    label: str

    def draw(self, ax: Any, options: dict[str, Any]) -> dict[str, Any]:
        """Draw single classes solid, larger sets broken, the whole frame dotted; return lines."""
        lines = []
        dashes = iter(DASHES * len(self.names))
        for mass, inside, name in zip(self.mass.T, self.focal, self.names, strict=True):
            style: dict[str, Any] = {"linestyle": "-"}
            if inside.all():
                style["linestyle"] = ":"
            elif inside.sum() != 1:
                style["linestyle"] = next(dashes)
            style["color"] = set_colour(inside) if inside.any() else "0.7"
            lines += ax.plot(self.value, mass, **{**style, "label": name, **options})
        limits = {"xlim": self.value[[0, -1]], "ylim": (-0.02, 1.02)}
        ax.set(xlabel=self.label, ylabel="mass", **limits)
        ax.legend(**BESIDE_AXES)
        return {"lines_": lines}


def _arrows(sides: tuple[str, str]) -> str:
    return f"← {sides[0]}     weight of evidence     {sides[1]} →"
