"""Error, accuracy and fraction declined at every cost of declining (Minary et al. 2017)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from dubito._validation import TIE, as_float_array, check_choice, check_unit_interval
from dubito.metrics import RejectCostCurve, reject_cost_curve
from dubito.plots._drawing import SingleAxesDisplay
from dubito.plots._strategies import check_strategies, decide, predictions_of, read_predictions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import numpy.typing as npt
    from matplotlib.axes import Axes

    from dubito._typing import FloatArray, IntArray
    from dubito.decision.risk import Belief

#: Lines and markers distinguish the strategies without colours.
_STYLES = {
    "optimistic": ("--", "^"),
    "pessimistic": (":", "v"),
    "pignistic": ("-", "o"),
    "probabilistic": ("-.", "s"),
}
_OTHER_STYLES = (("-", "o"), ("--", "s"), ("-.", "D"), (":", "P"))
_COST, _DECLINED = "cost of declining", "fraction declined"
_ERROR, _ACCURACY = "error rate, of all rows", "accuracy among the decided"


class _PlotKind(NamedTuple):
    """A kind of plot: labels and values of both axes, and the corner for the legend."""

    xlabel: str
    ylabel: str
    x: Callable[[RejectCostCurve], FloatArray]
    y: Callable[[RejectCostCurve], FloatArray]
    corner: str = "upper right"


def _cost(curve: RejectCostCurve) -> FloatArray:
    return curve.cost


_PLOTS = {
    "error_reject": _PlotKind(
        _DECLINED, "error among the decided", lambda c: c.rejection, lambda c: 1 - c.accuracy
    ),
    "accuracy_error": _PlotKind(_ERROR, _ACCURACY, lambda c: c.error, lambda c: c.accuracy),
    "rejection": _PlotKind(_COST, _DECLINED, _cost, lambda c: c.rejection),
    "error": _PlotKind(_COST, _ERROR, _cost, lambda c: c.error, "lower right"),
    "accuracy": _PlotKind(_COST, _ACCURACY, _cost, lambda c: c.accuracy),
    "mean_cost": _PlotKind(
        _COST, "mean cost of a row", _cost, lambda c: c.mean_cost, "lower right"
    ),
}


class ErrorRejectDisplay(SingleAxesDisplay):
    r"""Error, accuracy and fraction declined as the cost of declining goes from 0 to 1.

    A row is declined when the cost of declining lies below the risk of every class (Minary et al.
    2017, 2.1). Each curve is a strategy of `dubito.decision.reject`, which says what the risk is
    computed from: "optimistic" the upper bounds, "pessimistic" the lower bounds, "pignistic" (its
    default) the pignistic probability between them, "probabilistic" the probabilities of
    ``predict_proba``. With few calibration rows they differ: at the same cost the pessimistic one
    declines more. Make one with `from_estimator` or `from_predictions`.

    ============== ======================================================================
    `kind`         what is drawn
    ============== ======================================================================
    error_reject   error among the decided rows against the fraction declined
    accuracy_error accuracy among the decided against the errors among all rows (Minary et
                   al. 2017, figures 2 and 3)
    rejection      fraction declined against the cost
    error          errors among all rows against the cost
    accuracy       accuracy among the decided against the cost
    mean_cost      error + cost x fraction declined, what a row costs on average, against the cost
    ============== ======================================================================

    The first two do not show the cost; one can be marked by ``cost=0.2``.

    Parameters
    ----------
    curves : dict of str to RejectCostCurve
        By name, as `dubito.metrics.reject_cost_curve` gives them.
    name : str, optional
        Written before the name of each curve in the legend.

    Attributes
    ----------
    curves : dict of str to RejectCostCurve
        Costs in rising order.
    ax_, figure_ : matplotlib axes and figure
        Those of the last drawing.
    lines_ : dict of str to matplotlib line
        The curves, after `plot`.
    points_ : dict of str to matplotlib line
        The marked points, after `plot` with a cost.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from dubito.belief import Bounds
    >>> from dubito.plots import ErrorRejectDisplay
    >>> bounds = Bounds([[0.7, 0.1], [0.4, 0.2], [0.1, 0.8]], [[0.9, 0.3], [0.8, 0.6], [0.2, 0.9]])
    >>> display = ErrorRejectDisplay.from_predictions(
    ...     ["no", "yes", "yes"], bounds, classes=["no", "yes"], cost=0.2, ax=Figure().subplots()
    ... )
    >>> for name, point in display.points_.items():
    ...     declined, error = point.get_xydata()[0]
    ...     print(f"{name}: {declined:.2f} declined, {error:.2f} of the rest wrong")
    optimistic: 0.00 declined, 0.33 of the rest wrong
    pessimistic: 0.67 declined, 0.00 of the rest wrong
    pignistic: 0.33 declined, 0.00 of the rest wrong
    """

    def __init__(self, *, curves: Mapping[str, RejectCostCurve], name: str | None = None) -> None:
        if not isinstance(curves, Mapping) or not curves:
            raise TypeError(f"curves must map names to curves, at least one; got {curves!r}.")
        self.curves = {str(key): _rising(curve, key) for key, curve in curves.items()}
        self.name = name

    @classmethod
    def from_estimator(  # noqa: PLR0913 - what is computed, and how it is drawn
        cls,
        estimator: Any,
        X: Any,
        y: npt.ArrayLike,
        *,
        strategies: Iterable[str] | None = None,
        costs: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
        name: str | None = None,
        ax: Axes | None = None,
        kind: str = "error_reject",
        cost: float | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the curves of a fitted classifier for rows it was not fitted on.

        Parameters
        ----------
        estimator : classifier
            Fitted, with ``predict_bounds``, ``predict_proba`` or both, and ``classes_``. The
            probabilistic strategy uses its probabilities, the others its bounds.
        X : array-like
            Rows, as the classifier takes them.
        y : array-like of shape (n,)
            Their labels.
        strategies : list of {"optimistic", "pessimistic", "pignistic", "probabilistic"}, optional
            All by default; without bounds they are the same, and "probabilistic" is drawn;
            without probabilities all but "probabilistic", which is the same as "pignistic".
        costs : array-like of shape (m,), optional
            Costs of declining in [0, 1]; by default all at which a rate changes.
        sample_weight : array-like of shape (n,), optional
            Row weights: 2 counts as the row twice, 0 as no row.
        name, ax, kind, cost, **kwargs
            As in `plot`.

        Returns
        -------
        ErrorRejectDisplay
        """
        belief, proba = predictions_of(estimator, X)
        return cls.from_predictions(
            y,
            belief,
            y_proba=proba,
            classes=estimator.classes_,
            strategies=strategies,
            costs=costs,
            sample_weight=sample_weight,
            name=name,
            ax=ax,
            kind=kind,
            cost=cost,
            **kwargs,
        )

    @classmethod
    def from_predictions(  # noqa: PLR0913 - what is computed, and how it is drawn
        cls,
        y_true: npt.ArrayLike,
        belief: Belief,
        *,
        y_proba: npt.ArrayLike | None = None,
        classes: npt.ArrayLike | None = None,
        strategies: Iterable[str] | None = None,
        costs: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
        name: str | None = None,
        ax: Axes | None = None,
        kind: str = "error_reject",
        cost: float | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the curves of predictions that were made elsewhere.

        Parameters
        ----------
        y_true : array-like of shape (n,)
            True labels.
        belief : Bounds, MassBatch or array of probabilities (n, K)
            What was predicted.
        y_proba : array-like of shape (n, K), optional
            Probabilities for the probabilistic strategy; by default `belief` itself or its
            pignistic probability.
        classes : array-like of shape (K,), optional
            Label of each column, as in ``classes_``. Without it integers in 0..K-1 are column
            numbers, and otherwise exactly K distinct labels are taken in sorted order.
        strategies, costs, sample_weight
            As in `from_estimator`.
        name, ax, kind, cost, **kwargs
            As in `plot`.

        Returns
        -------
        ErrorRejectDisplay
        """
        rows = read_predictions(y_true, belief, y_proba, classes, sample_weight)
        if costs is not None and cost is not None:
            marked = check_unit_interval(cost, "cost")
            costs = np.append(as_float_array(costs, "costs", ndim=1), marked)
        curves = {
            strategy: reject_cost_curve(
                rows.true_column, *decide(rows, strategy), costs=costs, sample_weight=rows.weight
            )
            for strategy in check_strategies(strategies, belief, y_proba)
        }
        return cls(curves=curves, name=name).plot(ax, kind=kind, cost=cost, **kwargs)

    def plot(
        self,
        ax: Axes | None = None,
        *,
        kind: str = "error_reject",
        cost: float | None = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the curves and, where a cost is given, the points they reach at it.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw; new axes by default. Several displays may be drawn on the same axes.
        kind : str, default="error_reject"
            What to draw, as listed for the class. Curves over the cost are steps; the others
            join their points by straight lines.
        cost : float in [0, 1], optional
            Mark the point of each curve at this cost of declining. If every row is declined
            there, the accuracy is undefined and not marked.
        name : str, optional
            For the legend, instead of the display's `name`.
        **kwargs
            Passed on to ``ax.plot`` for the curves.

        Returns
        -------
        ErrorRejectDisplay
            Itself.
        """
        chosen = _PLOTS[check_choice(kind, "kind", tuple(_PLOTS))]
        marked = None if cost is None else check_unit_interval(cost, "cost")
        marks = {} if marked is None else {k: _at(c, marked, k) for k, c in self.curves.items()}
        self._set_axes(ax)
        prefix = name if name is not None else self.name
        self.lines_: dict[str, Any] = {}
        self.points_: dict[str, Any] = {}
        for position, (key, curve) in enumerate(self.curves.items()):
            line, marker = _STYLES.get(key, _OTHER_STYLES[position % len(_OTHER_STYLES)])
            label = key if prefix is None else f"{prefix}, {key}"
            drawn = _steps(curve) if chosen.xlabel == _COST else curve
            style = {"linestyle": line, "label": label, **kwargs}
            (self.lines_[key],) = self.ax_.plot(chosen.x(drawn), chosen.y(drawn), **style)
            if key in marks:
                style = {"color": self.lines_[key].get_color(), "markeredgecolor": "black"}
                x, y = chosen.x(marks[key]), chosen.y(marks[key])
                (self.points_[key],) = self.ax_.plot(x, y, marker, zorder=3, **style)
        self.ax_.set(xlabel=chosen.xlabel, ylabel=chosen.ylabel)
        self._draw_legend(marked, chosen.corner)
        return self

    def _draw_legend(self, marked: float | None, corner: str) -> None:
        """Draw the legend, with the cost of the marked points as its title."""
        before = self.ax_.get_legend()
        title = "" if before is None else before.get_title().get_text()
        title = title if marked is None else f"marked: cost {marked:g}"
        # loc="best" would take seconds with a million points.
        self.ax_.legend(title=title, loc=corner)


def _rising(curve: Any, key: Any) -> RejectCostCurve:
    """Return a curve with its costs in rising order."""
    if not isinstance(curve, RejectCostCurve):
        raise TypeError(
            f"curve {key!r} must be a RejectCostCurve, as dubito.metrics.reject_cost_curve gives; "
            f"got {type(curve).__name__}."
        )
    if len(curve.cost) == 0:
        raise ValueError(f"curve {key!r} has no costs; at least one is needed.")
    order = np.argsort(curve.cost, kind="stable")
    return RejectCostCurve(*(values[order] for values in curve))


def _at(curve: RejectCostCurve, cost: float, key: str) -> RejectCostCurve:
    """Return the point of a curve at a cost: the rates of a cost hold up to the next cost."""
    position = int(np.searchsorted(curve.cost, cost + TIE, side="right")) - 1
    if position < 0:
        raise ValueError(
            f"curve {key!r} starts at the cost {curve.cost[0]:.6g}; cost={cost:g} lies before it."
        )
    return _at_costs(curve, np.array([position]), np.array([cost]))


def _steps(curve: RejectCostCurve) -> RejectCostCurve:
    """Return the curve with steps: the rates of a cost hold up to the next cost."""
    position = np.repeat(np.arange(len(curve.cost)), 2)
    return _at_costs(curve, position[:-1], curve.cost[position[1:]])


def _at_costs(curve: RejectCostCurve, position: IntArray, cost: FloatArray) -> RejectCostCurve:
    """Return the rates at some positions of a curve, with the mean cost at other costs."""
    rejection, error, accuracy = (values[position] for values in curve[1:4])
    return RejectCostCurve(cost, rejection, error, accuracy, error + cost * rejection)
