"""Masses, beliefs and plausibilities over two features (Denœux 2019, figures 8 and 10)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from dubito._numerics.row_subsets import row_chunks
from dubito._validation import as_float_array, check_choice, check_rows_match
from dubito.belief import Frame
from dubito.plots._drawing import pyplot, set_colour, set_name
from dubito.plots._plane import draw_borders, margins_of, plane_over

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy.typing as npt
    from matplotlib.axes import Axes

    from dubito._typing import AnyArray, BoolArray, FloatArray
    from dubito.belief import MassBatch
    from dubito.belief.frame import Subset

#: Symbols of the quantities, in the titles.
_SYMBOLS = {"mass": "m", "belief": "Bel", "plausibility": "Pl"}
#: Default heights of the level curves.
_HEIGHTS = tuple(np.arange(1, 10) / 10)
#: Largest number of masses computed at a time: rows of the grid times subsets of the classes.
_CHUNK_ENTRIES = 2**22
#: Axes per row of a new figure.
_PER_ROW = 4


class MassDisplay:
    r"""Level curves of masses, beliefs or plausibilities over two features, one axes per set.

    Masses on single classes are high where evidence supports them, masses on larger sets where it
    does not distinguish their classes; :math:`m(\Theta)` is ignorance. Conflict, drawn as broken
    lines on the axes of :math:`\Theta`, is high where pieces of evidence support different classes
    (Denœux 2019, figures 8 and 10). Make one with `from_estimator`.

    Parameters
    ----------
    x, y : array-like of shape (s,) and (r,)
        Values of the two features, increasing.
    level : array-like of shape (F, r, s)
        Values of `quantity` (masses, beliefs or plausibilities), in [0, 1], for each set; not a
        confidence level.
    focal : boolean array-like of shape (F, K)
        The sets.
    quantity : {"mass", "belief", "plausibility"}, default "mass"
        What the values of `level` are.
    conflict : array-like of shape (r, s), optional
        The degree of conflict.
    margins : array-like of shape (K, r, s), optional
        Margin of each class over all others, above 0 where it is predicted: the borders of the
        classes are drawn where it is 0.
    classes : array-like of shape (K,), optional
        What the columns are called; their numbers by default.
    names : (str, str), default ("feature 0", "feature 1")
        What the axes are called.

    Attributes
    ----------
    axes_ : ndarray of matplotlib axes, shape (F,)
        Those of the last drawing, set by set.
    figure_ : matplotlib figure
    curves_ : list of matplotlib contour sets
        The level curves, set by set.
    conflict_curves_ : matplotlib contour set or None
        The broken lines.
    boundaries_ : list of matplotlib contour sets
        The borders between predicted classes, on all axes.

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from sklearn.linear_model import LogisticRegression
    >>> from dubito.datasets import make_gaussian_pair
    >>> from dubito.evidence import EvidentialClassifier
    >>> from dubito.plots import MassDisplay
    >>> X, y = make_gaussian_pair(200, random_state=0)
    >>> ev = EvidentialClassifier(LogisticRegression()).fit(X, y)
    >>> display = MassDisplay.from_estimator(
    ...     ev, X, conflict=True, grid_resolution=30, ax=Figure().subplots(1, 3)
    ... )
    >>> [ax.get_title() for ax in display.axes_]
    ['m({0})', 'm({1})', 'm({0, 1})\nbroken lines: conflict']
    >>> display.level.shape, bool(np.allclose(display.level.sum(axis=0), 1))
    ((3, 30, 30), True)
    """

    def __init__(  # noqa: PLR0913 - what is drawn, and what it is called
        self,
        *,
        x: npt.ArrayLike,
        y: npt.ArrayLike,
        level: npt.ArrayLike,
        focal: npt.ArrayLike,
        quantity: str = "mass",
        conflict: npt.ArrayLike | None = None,
        margins: npt.ArrayLike | None = None,
        classes: npt.ArrayLike | None = None,
        names: tuple[str, str] = ("feature 0", "feature 1"),
    ) -> None:
        self.x, self.y = as_float_array(x, "x", ndim=1), as_float_array(y, "y", ndim=1)
        self.level = as_float_array(level, "level", ndim=3)
        self.focal = np.asarray(focal, dtype=bool)
        check_rows_match("level", len(self.level), "focal", len(self.focal))
        self.quantity = check_choice(quantity, "quantity", tuple(_SYMBOLS))
        self.conflict = None if conflict is None else as_float_array(conflict, "conflict", ndim=2)
        self.margins = None if margins is None else as_float_array(margins, "margins", ndim=3)
        shape = len(self.y), len(self.x)
        for name in ("level", "conflict", "margins"):
            array = getattr(self, name)
            if array is not None and array.shape[-2:] != shape:
                raise ValueError(
                    f"{name} must have the shape {shape} of the grid; got {array.shape}."
                )
        n_classes = self.focal.shape[1]
        self.classes = np.arange(n_classes) if classes is None else np.asarray(classes)
        check_rows_match("classes", len(self.classes), "the columns of focal", n_classes)
        self.names = names

    @classmethod
    def from_estimator(  # noqa: PLR0913 - what is computed, and how it is drawn
        cls,
        estimator: Any,
        X: Any,
        *,
        features: Sequence[int | str] = (0, 1),
        focal: Iterable[Subset] | None = None,
        quantity: str = "mass",
        conflict: bool = False,
        grid_resolution: int = 100,
        boundary: bool = False,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Draw masses, beliefs or plausibilities of a fitted classifier over two features.

        Parameters
        ----------
        estimator : classifier
            Fitted, with ``predict_mass`` and ``classes_``, as
            `dubito.evidence.EvidentialClassifier` has.
        X : array-like of shape (n, features), or data frame
            Rows whose range the axes cover.
        features : two of int or str, default (0, 1)
            The columns of X to draw. All other columns are constant: at their mean in X (for
            integers the value in X nearest to it), or their most frequent value if they are
            categories or not numbers.
        focal : list of labels or of lists of labels, optional
            The sets to draw. By default every class and, for masses, the whole frame; of three
            classes, all subsets.
        quantity : {"mass", "belief", "plausibility"}, default "mass"
            What to draw of them. Belief and plausibility of the whole frame are 1 everywhere.
        conflict : bool, default False
            Whether to draw ``estimator.conflict`` as broken lines on the axes of the whole frame,
            or on the last where that is not drawn.
        grid_resolution : int, default 100
            Points along each axis. The classifier predicts their square.
        boundary : bool, default False
            Whether to draw the border between the classes that ``predict`` gives.
        ax, **kwargs
            As in `plot`.

        Returns
        -------
        MassDisplay
        """
        _check_classifier(estimator, conflict=conflict)
        check_choice(quantity, "quantity", tuple(_SYMBOLS))
        frame = Frame(estimator.classes_)
        sets = _focal_sets(frame, focal, quantity)
        plane = plane_over(X, features, grid_resolution, estimator)
        shape = len(plane.y), len(plane.x)
        parts = [
            _measure(estimator.predict_mass(plane.rows[rows]), sets, quantity)
            for rows in row_chunks(len(plane.rows), 2 ** len(frame), _CHUNK_ENTRIES)
        ]
        display = cls(
            x=plane.x,
            y=plane.y,
            level=np.hstack(parts).reshape(-1, *shape),
            focal=sets,
            quantity=quantity,
            conflict=np.reshape(estimator.conflict(plane.rows), shape) if conflict else None,
            margins=margins_of(estimator, plane) if boundary else None,
            classes=estimator.classes_,
            names=plane.names,
        )
        return display.plot(ax=ax, **kwargs)

    def plot(
        self,
        ax: Any = None,
        *,
        levels: npt.ArrayLike = _HEIGHTS,
        **kwargs: Any,
    ) -> Self:
        """Draw the level curves of each set on axes of its own.

        Parameters
        ----------
        ax : matplotlib axes or array of them, optional
            Axes to draw on, as many as there are sets; by default new ones, four to a row.
        levels : array-like, default (0.1, 0.2, ..., 0.9)
            Which curves to draw, the same for all sets. The title of a set whose values are all
            lower states their maximum.
        **kwargs
            Passed on to ``ax.contour`` for the curves.

        Returns
        -------
        MassDisplay
            Itself.
        """
        heights = np.unique(as_float_array(levels, "levels", ndim=1))
        self.axes_ = _axes(ax, len(self.focal))
        self.figure_ = self.axes_[0].figure
        self.curves_ = [
            self._draw_set(axes, values, inside, heights, kwargs)
            for axes, values, inside in zip(self.axes_, self.level, self.focal, strict=True)
        ]
        self.conflict_curves_ = None
        if self.conflict is not None:
            self.conflict_curves_ = self._draw_conflict(self.conflict, heights)
        self.boundaries_: list[Any] = []
        if self.margins is not None:
            for axes in self.axes_:
                self.boundaries_ += draw_borders(axes, self.x, self.y, self.margins)
        if ax is None:
            _label_outer(self.axes_)
        return self

    def _draw_set(
        self,
        ax: Axes,
        values: FloatArray,
        inside: BoolArray,
        heights: FloatArray,
        options: dict[str, Any],
    ) -> Any:
        from matplotlib.colors import LinearSegmentedColormap  # noqa: PLC0415 - drawing only

        shades = LinearSegmentedColormap.from_list("", ["white", tuple(set_colour(inside))])
        boundaries = np.concatenate([[-np.inf], heights, [np.inf]])
        lowest = np.concatenate([[0.0], heights])  # lowest value in each filled band
        ax.contourf(self.x, self.y, values, boundaries, colors=shades(0.8 * lowest))
        title = f"{_SYMBOLS[self.quantity]}({set_name(inside, self.classes)})"
        if values.max() < heights[0]:
            title += f", at most {values.max():.2g}"
        ax.set(xlabel=self.names[0], ylabel=self.names[1], title=title)
        style = {"colors": "0.25", "linewidths": 0.8, **options}
        return self._draw_curves(ax, values, heights, style)

    def _draw_curves(
        self, ax: Axes, values: FloatArray, heights: FloatArray, style: dict[str, Any]
    ) -> Any:
        """Draw the labelled level curves within the range of the values; None if there are none."""
        reached = heights[(heights > values.min()) & (heights < values.max())]
        if len(reached) == 0:
            return None
        curves = ax.contour(self.x, self.y, values, reached, **style)
        ax.clabel(curves, fmt="%g", fontsize="small")
        return curves

    def _draw_conflict(self, conflict: FloatArray, heights: FloatArray) -> Any:
        whole = np.flatnonzero(self.focal.all(axis=1))
        ax = self.axes_[whole[0] if len(whole) else -1]
        style = {"colors": "#D55E00", "linestyles": "dashed", "linewidths": 1.2}
        ax.set_title(f"{ax.get_title()}\nbroken lines: conflict")
        return self._draw_curves(ax, conflict, heights, style)


def _axes(ax: Any, n: int) -> AnyArray:
    """Return one axes per set: those given, or new ones."""
    if ax is not None:
        given = np.atleast_1d(np.asarray(ax, dtype=object)).ravel()
        if len(given) != n:
            raise ValueError(f"ax must have one axes for each of the {n} sets; got {len(given)}.")
        return given
    columns = min(n, _PER_ROW)
    rows = -(-n // columns)
    size = (3.2 * columns, 3.2 * rows)
    style = {"sharex": True, "sharey": True, "squeeze": False, "layout": "constrained"}
    _, grid = pyplot().subplots(rows, columns, figsize=size, **style)
    for spare in grid.ravel()[n:]:
        spare.remove()
    return grid.ravel()[:n]


def _label_outer(axes: AnyArray) -> None:
    """Remove the axis labels except in the first column and at the bottom of each column."""
    for i, ax in enumerate(axes):
        if i % _PER_ROW:
            ax.set_ylabel("")
        if i + _PER_ROW < len(axes):
            ax.set_xlabel("")
        else:
            ax.tick_params(labelbottom=True)


def _focal_sets(frame: Frame, focal: Iterable[Subset] | None, quantity: str) -> BoolArray:
    """Return the given sets, or by default those that `MassDisplay.from_estimator` names."""
    if focal is not None:
        given = [frame.to_indicator(subset) for subset in focal]
        if not given:
            raise ValueError("focal must list at least one set of classes; got none.")
        return np.array(given)
    if len(frame) == 3:
        sets = frame.subsets()
        sets = sets[np.argsort(sets.sum(axis=1), kind="stable")]
    else:
        sets = np.vstack([np.eye(len(frame), dtype=bool), np.ones(len(frame), dtype=bool)])
    return sets if quantity == "mass" else sets[~sets.all(axis=1)]


def _measure(batch: MassBatch, sets: BoolArray, quantity: str) -> FloatArray:
    """Return mass, belief or plausibility of some sets, (F, n)."""
    if quantity == "mass":
        return np.array(
            [batch.mass[:, (batch.focal == inside).all(axis=1)].sum(axis=1) for inside in sets]
        )
    measure = batch.bel if quantity == "belief" else batch.pl
    return np.array([measure(inside) for inside in sets])


def _check_classifier(classifier: Any, *, conflict: bool) -> None:
    needed = ("predict_mass", "classes_", "conflict") if conflict else ("predict_mass", "classes_")
    for method in needed:
        try:
            getattr(classifier, method)
        except AttributeError as error:  # stays the cause: its message may give the reason
            raise TypeError(
                f"{type(classifier).__name__} has no {method}. Pass a fitted classifier with "
                "masses, such as dubito.evidence.EvidentialClassifier."
            ) from error
