"""Regions of two features by the predicted set of classes (Denœux 2019, figures 8d and 12)."""

from __future__ import annotations

from itertools import cycle
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from dubito._labels import as_labels, label_columns
from dubito._validation import as_float_array, check_rows_match
from dubito.plots._drawing import (
    BESIDE_AXES,
    HATCHES,
    SingleAxesDisplay,
    class_colours,
    new_axes,
    pale,
    set_colour,
    set_name,
)
from dubito.plots._plane import draw_borders, margins_of, plane_over

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt
    from matplotlib.axes import Axes

    from dubito._typing import BoolArray, FloatArray
    from dubito.decision.rules import SetRule

_HATCH_COLOUR = "0.45"
#: Markers distinguish the points of the classes without colours.
_MARKERS = ("o", "^", "s", "D", "v", "P", "X", "p")
#: The legend names at most this many regions, the largest.
_MOST_NAMED = 12


class DecisionRegionDisplay(SingleAxesDisplay):
    """The regions of a plane in which a cautious classifier predicts each set of classes.

    Where the evidence supports no single class enough, a rule such as interval dominance keeps
    several (Denœux 2019, 5.1.2): regions of single classes are plain, those of larger sets
    are hatched. A line shows where the predicted class changes.

    Make one with `from_estimator`.

    Parameters
    ----------
    x, y : array-like of shape (s,) and (r,)
        Values of the two features, increasing.
    sets : boolean array-like of shape (r, s, K)
        The set predicted at each point; never empty.
    margins : array-like of shape (K, r, s), optional
        Margin of each class over all others, above 0 where it is predicted: the borders of the
        classes are drawn where it is 0.
    classes : array-like of shape (K,), optional
        What the columns are called; their numbers by default.
    names : (str, str), default ("feature 0", "feature 1")
        What the axes are called.
    points : array-like of shape (n, 2), optional
        Rows to be drawn.
    labels : array-like of shape (n,), optional
        Their classes.

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure
        Those of the last drawing.
    regions_ : dict of str to matplotlib contour set
        The regions, by the name of the set.
    boundary_ : list of matplotlib contour sets
        The line between predicted classes.
    points_ : list of matplotlib collections
        The rows, one collection per class.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from dubito.evidence import EvidentialClassifier
    >>> from dubito.plots import DecisionRegionDisplay
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> petals = X[["petal length (cm)", "petal width (cm)"]]
    >>> ev = EvidentialClassifier(LogisticRegression()).fit(petals, load_iris().target_names[y])
    >>> display = DecisionRegionDisplay.from_estimator(
    ...     ev, petals, grid_resolution=50, ax=Figure().subplots()
    ... )
    >>> for name in display.regions_:
    ...     print(name)
    {setosa}
    {versicolor}
    {virginica}
    {setosa, versicolor}
    {versicolor, virginica}
    """

    def __init__(
        self,
        *,
        x: npt.ArrayLike,
        y: npt.ArrayLike,
        sets: npt.ArrayLike,
        margins: npt.ArrayLike | None = None,
        classes: npt.ArrayLike | None = None,
        names: tuple[str, str] = ("feature 0", "feature 1"),
        points: npt.ArrayLike | None = None,
        labels: npt.ArrayLike | None = None,
    ) -> None:
        self.x, self.y = as_float_array(x, "x", ndim=1), as_float_array(y, "y", ndim=1)
        self.sets = _check_sets(sets, (len(self.y), len(self.x)))
        n_classes = self.sets.shape[2]
        self.margins = None if margins is None else as_float_array(margins, "margins", ndim=3)
        if self.margins is not None and self.margins.shape[1:] != self.sets.shape[:2]:
            raise ValueError(
                f"margins must have the shape {self.sets.shape[:2]} of the grid for each class; "
                f"got {self.margins.shape}."
            )
        self.classes = np.arange(n_classes) if classes is None else np.asarray(classes)
        check_rows_match("classes", len(self.classes), "the last axis of sets", n_classes)
        self.names = names
        # Missing values are allowed: a pipeline may impute them.
        self.points = None if points is None else np.asarray(points, dtype=np.float64)
        self.labels = None if labels is None else as_labels(labels, "labels")
        if self.points is not None and self.labels is not None:
            check_rows_match("labels", len(self.labels), "points", len(self.points))

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        y: npt.ArrayLike | None = None,
        features: Sequence[int | str] = (0, 1),
        rule: SetRule = None,
        grid_resolution: int = 200,
        boundary: bool = True,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the regions of a fitted classifier.

        Parameters
        ----------
        estimator : classifier
            Fitted, with ``predict_set``, ``predict`` and ``classes_``, as all classifiers of
            dubito have.
        X : array-like of shape (n, features), or data frame
            Rows whose range the axes cover.
        y : array-like of shape (n,), optional
            Their labels: with them, the rows are drawn as points.
        features : two of int or str, default (0, 1)
            The columns of X to draw. All other columns are constant: at their mean in X (for
            integers the value in X nearest to it), or their most frequent value if they are
            categories or not numbers.
        rule : str or callable, optional
            Passed on to ``predict_set``; interval dominance by default.
        grid_resolution : int, default 200
            Points along each axis. The classifier predicts their square.
        boundary : bool, default True
            Whether to draw the line between the classes that ``predict`` gives.
        ax, **kwargs
            As in `plot`.

        Returns
        -------
        DecisionRegionDisplay
        """
        for method in ("predict_set", "classes_"):
            if not hasattr(estimator, method):
                raise TypeError(
                    f"{type(estimator).__name__} has no {method}. Pass a fitted classifier that "
                    "decides for sets, such as dubito.calibration.CalibratedClassifier."
                )
        plane = plane_over(X, features, grid_resolution, estimator)
        sets = np.asarray(estimator.predict_set(plane.rows, rule=rule))
        display = cls(
            x=plane.x,
            y=plane.y,
            sets=sets.reshape(len(plane.y), len(plane.x), -1),
            margins=margins_of(estimator, plane) if boundary else None,
            classes=estimator.classes_,
            names=plane.names,
            points=None if y is None else plane.points,
            labels=y,
        )
        return display.plot(ax=ax, **kwargs)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> Self:
        """Draw the regions, the boundary and the points, where there are any.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Axes to draw on; by default new ones. The legend is to their right: a figure made
            with ``layout="constrained"`` has space for it.
        **kwargs
            Passed on to ``ax.scatter`` for the points.

        Returns
        -------
        DecisionRegionDisplay
            Itself.
        """
        self._set_axes(ax if ax is not None else new_axes())
        self.regions_: dict[str, Any] = {}
        handles = self._draw_regions()
        self.boundary_: list[Any] = []
        if self.margins is not None:
            self.boundary_ = draw_borders(self.ax_, self.x, self.y, self.margins)
        self.points_ = self._draw_points(kwargs)
        limits = {"xlim": (self.x[0], self.x[-1]), "ylim": (self.y[0], self.y[-1])}
        self.ax_.set(xlabel=self.names[0], ylabel=self.names[1], **limits)
        self._draw_legend(handles)
        return self

    def _draw_regions(self) -> list[Any]:
        """Fill the region of each set that occurs, small sets first; return legend handles."""
        from matplotlib.patches import Patch  # noqa: PLC0415 - drawing only

        handles: list[Any] = []
        hatches = cycle(HATCHES)
        distinct, fractions = _distinct(self.sets)
        least = np.sort(fractions)[-_MOST_NAMED:][0]
        for inside, fraction in zip(distinct, fractions, strict=True):
            region = (self.sets == inside).all(axis=2).astype(float)
            name = set_name(inside, self.classes)
            # The whole frame is white: grey may be mistaken for the colour of a class.
            fill = np.ones(3) if inside.all() else pale(set_colour(inside))
            hatch = next(hatches) if inside.sum() > 1 else None
            self.regions_[name] = self.ax_.contourf(
                self.x, self.y, region, levels=[0.5, 1.5], colors=[fill], hatches=[hatch]
            )
            self.regions_[name].set_edgecolor(_HATCH_COLOUR)
            if fraction >= least:
                style: dict[str, Any] = {"facecolor": fill, "edgecolor": _HATCH_COLOUR}
                handles.append(Patch(label=name, hatch=hatch, **style))
        return handles

    def _draw_legend(self, handles: list[Any]) -> None:
        """Draw the legend beside the axes: the regions fill them."""
        from matplotlib.lines import Line2D  # noqa: PLC0415 - drawing only

        unnamed = len(self.regions_) - len(handles)
        if unnamed:
            handles.append(Line2D([], [], linestyle="none", label=f"and {unnamed} smaller regions"))
        if self.boundary_:
            handles.append(Line2D([], [], color="black", label="border of predict"))
        if self.labels is not None:
            handles += self.points_
        style = {"handleheight": 1.2, "fontsize": "small" if len(handles) > 15 else None}
        self.ax_.legend(handles=handles, **style, **BESIDE_AXES)

    def _draw_points(self, options: dict[str, Any]) -> list[Any]:
        if self.points is None:
            return []
        if self.labels is None:
            return [self.ax_.scatter(*self.points.T, **{"s": 12, "color": "0.2", **options})]
        drawn = []
        column = label_columns(self.labels, len(self.classes), self.classes)
        for k, colour in enumerate(class_colours(len(self.classes))):
            in_class = self.points[column == k]
            style = {"s": 12, "marker": _MARKERS[k % len(_MARKERS)], "linewidths": 0.3}
            style |= {"color": [colour], "edgecolors": "black", "label": str(self.classes[k])}
            drawn.append(self.ax_.scatter(*in_class.T, **{**style, **options}))
        return drawn


def _check_sets(sets: npt.ArrayLike, shape: tuple[int, int]) -> BoolArray:
    checked = np.asarray(sets)
    if checked.dtype != bool or checked.ndim != 3 or checked.shape[:2] != shape:
        raise ValueError(
            f"sets must be boolean with one set for each point of the grid, so of shape "
            f"({shape[0]}, {shape[1]}, K); got {checked.dtype} of shape {checked.shape}."
        )
    if not checked.any(axis=2).all():
        raise ValueError("sets has empty ones; each point needs at least one class.")
    return checked


def _distinct(sets: BoolArray) -> tuple[BoolArray, FloatArray]:
    """Return the sets that occur and their fractions, small sets first, then in class order."""
    rows = sets.reshape(-1, sets.shape[2])
    distinct, count = np.unique(rows, axis=0, return_counts=True)
    order = np.argsort(distinct[::-1].sum(axis=1), kind="stable")
    return distinct[::-1][order], count[::-1][order] / len(rows)
