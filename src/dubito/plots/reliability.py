"""Reliability diagrams: observed frequencies against forecast probabilities, with bands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from dubito._validation import as_float_array, check_choice, check_fraction
from dubito.metrics import ReliabilityCurve
from dubito.metrics.binning import equal_width
from dubito.metrics.forecasts import read_forecasts
from dubito.metrics.reliability import chosen_event, curve_of
from dubito.plots._drawing import SingleAxesDisplay

if TYPE_CHECKING:
    import numpy.typing as npt
    from matplotlib.axes import Axes

    from dubito._typing import FloatArray
    from dubito.metrics.forecasts import Event

#: Lines and markers distinguish the curves without colours.
_STYLES = (("-", "o"), ("--", "s"), ("-.", "D"), (":", "^"))
_PERFECT = "as often as forecast"
_N_BARS = 20


class _AxisLabels(NamedTuple):
    x: str
    y: str


_EVENTS = {
    "top": _AxisLabels("probability of the predicted class", "how often it was the true one"),
    "class": _AxisLabels("forecast probability", "how often it came true"),
}


class ReliabilityDisplay(SingleAxesDisplay):
    r"""Observed frequencies of forecast events against their forecast probabilities.

    On the diagonal forecasts are calibrated; below it they are too high, above it too low. The
    band around a curve is that of `dubito.metrics.reliability_curve`: where it contains the
    diagonal, the deviation may be chance. Make one with `from_estimator` or `from_predictions`.

    Parameters
    ----------
    curves : dict of str to ReliabilityCurve
        By name, as `dubito.metrics.reliability_curve` gives them.
    histograms : dict of str to array-like, optional
        Fraction of the rows in each of some bins of equal width on [0, 1], by the same names.
    of : {"top", "class"}, default="top"
        What was forecast, for the axis labels: the predicted class, or one class.

    Attributes
    ----------
    curves : dict of str to ReliabilityCurve
        The curves.
    histograms : dict of str to ndarray
        Distribution of the forecasts.
    ax_, figure_ : matplotlib axes and figure
        Those of the last drawing.
    histogram_ax_ : matplotlib axes or None
        Those of the histograms.
    lines_ : dict of str to matplotlib line
        The curves, after `plot`.
    bands_ : dict of str to matplotlib collection
        Their bands, after `plot`, if bands are drawn.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from dubito.plots import ReliabilityDisplay
    >>> y = ["no"] * 8 + ["yes"] * 2 + ["no"] * 6 + ["yes"] * 4
    >>> display = ReliabilityDisplay.from_predictions(
    ...     y, [0.2] * 10 + [0.9] * 10, name="bold", ax=Figure().subplots()
    ... )
    >>> display.lines_["bold"].get_xydata().round(2).tolist()
    [[0.2, 0.2], [0.9, 0.4]]
    """

    def __init__(
        self,
        *,
        curves: Mapping[str, ReliabilityCurve],
        histograms: Mapping[str, npt.ArrayLike] | None = None,
        of: str = "top",
    ) -> None:
        if not isinstance(curves, Mapping) or not curves:
            raise TypeError(f"curves must map names to curves, at least one; got {curves!r}.")
        for key, curve in curves.items():
            if not isinstance(curve, ReliabilityCurve):
                raise TypeError(
                    f"curve {key!r} must be a ReliabilityCurve, as "
                    f"dubito.metrics.reliability_curve gives; got {type(curve).__name__}."
                )
        self.curves = {str(key): curve for key, curve in curves.items()}
        self.histograms = {
            str(key): as_float_array(fractions, "histograms", ndim=1)
            for key, fractions in ({} if histograms is None else histograms).items()
        }
        self.of = check_choice(of, "of", tuple(_EVENTS))

    @classmethod
    def from_estimator(  # noqa: PLR0913 - what is computed, and how it is drawn
        cls,
        estimator: Any,
        X: Any,
        y: npt.ArrayLike,
        *,
        class_: Any = None,
        n_bins: int = 15,
        strategy: str = "quantile",
        confidence_level: float = 0.95,
        sample_weight: npt.ArrayLike | None = None,
        name: str | None = None,
        ax: Axes | None = None,
        band: bool = True,
        histogram: bool | Axes = False,
        **kwargs: Any,
    ) -> Self:
        """Draw the curve of a fitted classifier for rows it was not fitted on.

        Parameters
        ----------
        estimator : classifier
            Fitted, with ``predict_proba`` and ``classes_``.
        X : array-like
            Rows, as the classifier takes them.
        y : array-like of shape (n,)
            Their labels.
        class_ : label or list of labels, optional
            Classes whose probabilities are judged, a curve for each. By default it is that of the
            predicted class, whichever it is.
        n_bins, strategy, confidence_level, sample_weight
            As in `dubito.metrics.reliability_curve`.
        name : str, optional
            For the legend; the classifier's class name by default. With `class_`, the name of
            each class follows it.
        ax, band, histogram, **kwargs
            As in `plot`.

        Returns
        -------
        ReliabilityDisplay
        """
        class_name = type(estimator).__name__
        if not (hasattr(estimator, "predict_proba") and hasattr(estimator, "classes_")):
            raise TypeError(
                f"{class_name} has no predict_proba or no classes_: a fitted classifier with "
                "probabilities is needed. dubito.calibration.CalibratedClassifier makes one of any "
                "scores, and from_predictions takes probabilities made elsewhere."
            )
        return cls.from_predictions(
            y,
            estimator.predict_proba(X),
            classes=estimator.classes_,
            class_=class_,
            n_bins=n_bins,
            strategy=strategy,
            confidence_level=confidence_level,
            sample_weight=sample_weight,
            name=class_name if name is None else name,
            ax=ax,
            band=band,
            histogram=histogram,
            **kwargs,
        )

    @classmethod
    def from_predictions(  # noqa: PLR0913 - what is computed, and how it is drawn
        cls,
        y_true: npt.ArrayLike,
        y_proba: npt.ArrayLike,
        *,
        classes: npt.ArrayLike | None = None,
        class_: Any = None,
        n_bins: int = 15,
        strategy: str = "quantile",
        confidence_level: float = 0.95,
        sample_weight: npt.ArrayLike | None = None,
        name: str | None = None,
        ax: Axes | None = None,
        band: bool = True,
        histogram: bool | Axes = False,
        **kwargs: Any,
    ) -> Self:
        """Draw the curve of probabilities that were forecast elsewhere.

        Parameters
        ----------
        y_true : array-like of shape (n,)
            True labels.
        y_proba : array-like of shape (n, K) or (n,)
            Probabilities of all classes, or of the second of two, which is then judged.
        classes : array-like of shape (K,), optional
            Label of each column, as in ``classes_``. Without it integers in 0..K-1 are column
            numbers, and otherwise exactly K distinct labels are taken in sorted order.
        class_, n_bins, strategy, confidence_level, sample_weight, name
            As in `from_estimator`; the name is "forecasts" by default.
        ax, band, histogram, **kwargs
            As in `plot`.

        Returns
        -------
        ReliabilityDisplay
        """
        level = check_fraction(confidence_level, "confidence_level")
        forecasts = read_forecasts(y_true, y_proba, classes, sample_weight)
        events = {
            key: chosen_event(forecasts, None, label, classes)
            for key, label in _class_by_curve(class_, name).items()
        }
        display = cls(
            curves={key: curve_of(e, n_bins, strategy, level) for key, e in events.items()},
            histograms={key: _histogram(event) for key, event in events.items()},
            of="top" if class_ is None and forecasts.proba.ndim == 2 else "class",
        )
        return display.plot(ax, band=band, histogram=histogram, **kwargs)

    def plot(
        self,
        ax: Axes | None = None,
        *,
        band: bool = True,
        histogram: bool | Axes = False,
        **kwargs: Any,
    ) -> Self:
        """Draw the diagonal, the curves, their bands and optionally histograms below.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw; new axes by default. Several displays may be drawn on the same axes.
        band : bool, default=True
            Whether to draw the confidence interval of each bin: a bar at each point, and the area
            between the bars.
        histogram : bool or matplotlib axes, default=False
            Whether to draw the distribution of the forecasts below, on space taken from `ax`; or
            the axes to draw it on: for a second display those of the first,
            ``histogram=first.histogram_ax_``.
        **kwargs
            Passed on to ``ax.plot`` for the curves.

        Returns
        -------
        ReliabilityDisplay
            Itself.
        """
        self._set_axes(ax)
        self.lines_: dict[str, Any] = {}
        self.bands_: dict[str, Any] = {}
        drawn = _mark_diagonal(self.ax_)
        for position, (key, curve) in enumerate(self.curves.items(), start=drawn):
            line, marker = _STYLES[position % len(_STYLES)]
            style = {"linestyle": line, "marker": marker, "markersize": 4, "label": key, **kwargs}
            (self.lines_[key],) = self.ax_.plot(curve.mean_probability, curve.frequency, **style)
            if band:
                self.bands_[key] = _draw_band(self.ax_, curve, self.lines_[key].get_color())
        labels = _EVENTS[self.of]
        self.ax_.set(xlabel=labels.x, ylabel=labels.y, xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
        self.ax_.legend(loc="upper left")
        self.histogram_ax_: Any = self._draw_histograms(histogram)
        return self

    def _draw_histograms(self, histogram: bool | Axes) -> Any:
        if histogram is False or not self.histograms:
            return None
        below = _axes_below(self.ax_) if histogram is True else histogram
        for key, fractions in self.histograms.items():
            edges = np.linspace(0, 1, len(fractions) + 1)
            line = self.lines_[key]
            style = {"color": line.get_color(), "linestyle": line.get_linestyle()}
            below.stairs(fractions, edges, **style)
            below.stairs(fractions, edges, fill=True, color=line.get_color(), alpha=0.15)
        below.set(xlabel=self.ax_.get_xlabel() or below.get_xlabel(), ylabel="fraction")
        below.set_ylim(bottom=0)
        self.ax_.set_xlabel("")
        return below


def _class_by_curve(class_: Any, name: str | None) -> dict[str, Any]:
    """Return the class of each curve by the curve's name; None is the predicted class."""
    if class_ is None:
        return {"forecasts" if name is None else name: None}
    several = isinstance(class_, list | tuple | np.ndarray)
    labels = list(class_) if several else [class_]
    if not labels:
        raise ValueError("class_ must name at least one class; got none.")
    return {str(k) if name is None else f"{name}, {k}": k for k in labels}


def _histogram(event: Event) -> FloatArray:
    """Return the fraction of rows in bins of equal width."""
    bar = equal_width(event.probability, event.weight, _N_BARS)
    return np.bincount(bar, weights=event.weight, minlength=_N_BARS) / event.weight.sum()


def _mark_diagonal(ax: Axes) -> int:
    """Draw the diagonal unless it exists, and return the number of curves already drawn."""
    before = [line.get_label() for line in ax.lines]
    if _PERFECT in before:
        return len(before) - 1
    ax.plot([0, 1], [0, 1], color="0.4", linewidth=1, linestyle=":", label=_PERFECT)
    return len(before)


def _draw_band(ax: Axes, curve: ReliabilityCurve, colour: Any) -> Any:
    x = curve.mean_probability
    ax.vlines(x, curve.lower, curve.upper, color=colour, alpha=0.5, linewidth=1)
    return ax.fill_between(x, curve.lower, curve.upper, color=colour, alpha=0.12, linewidth=0)


def _axes_below(ax: Axes) -> Any:
    """Return new axes in a strip below the given ones, with the same x axis."""
    subplot = ax.get_subplotspec()
    if subplot is None:
        raise ValueError(
            "histogram=True takes space from axes in a grid, such as those of plt.subplots(), and "
            "these stand alone. Pass the axes to draw the histogram on, as histogram=axes."
        )
    rows = subplot.subgridspec(2, 1, height_ratios=(4, 1), hspace=0.1)
    ax.set_subplotspec(rows[0])
    ax.tick_params(labelbottom=False)
    return ax.figure.add_subplot(rows[1], sharex=ax)
