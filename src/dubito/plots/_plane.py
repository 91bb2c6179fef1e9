"""A grid over two columns of a table, the others constant, and borders between classes."""

from __future__ import annotations

from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dubito._compat import pick
from dubito._labels import label_columns
from dubito._numerics.sums_of_others import maxima_of_others
from dubito._validation import as_float_array
from dubito._wording import name_some

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from dubito._typing import AnyArray, FloatArray

#: Margin of plots beyond the data, as a fraction of their range.
_MARGIN = 0.05


class Plane(NamedTuple):
    """A grid over two columns of a table.

    x, y : (r,), its values of the two columns; names : their names; points : (n, 2), their values
    in the data; rows : a table of r² rows, with all values of the first column for each value of
    the second.
    """

    x: FloatArray
    y: FloatArray
    names: tuple[str, str]
    points: FloatArray
    rows: Any


def plane_over(X: Any, features: Sequence[Any], resolution: Any, estimator: Any) -> Plane:
    """Return a grid over two columns; the others have their mean, or most frequent value.

    The table has the type of X, and the names and the order of its columns.
    """
    if not isinstance(resolution, Integral) or resolution < 2:
        raise ValueError(f"grid_resolution must be an integer above 1. Got {resolution!r} instead.")
    columns = _columns(X)
    first, second = _positions(features, list(columns), estimator)
    names = [_column_name(key, estimator) for key in columns]
    values = list(columns.values())
    drawn = [_axis_values(values[j], names[j]) for j in (first, second)]
    x, y = (np.linspace(*span(column), resolution) for column in drawn)
    grid_x, grid_y = np.meshgrid(x, y)
    table = [_constant_column(column, grid_x.size) for column in values]
    table[first], table[second] = grid_x.ravel(), grid_y.ravel()
    points = np.column_stack(drawn)
    return Plane(x, y, (names[first], names[second]), points, _like(X, list(columns), table))


def span(values: FloatArray) -> tuple[float, float]:
    """Return the range of the finite values with a margin, never of width 0."""
    finite = values[np.isfinite(values)]
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 0.0)
    margin = _MARGIN * (high - low) if high > low else 0.5
    return low - margin, high + margin


def margins_of(classifier: Any, plane: Plane) -> FloatArray:
    """Return a margin of each class over all others, (K, r, s), above 0 where it is predicted.

    It is the probability minus the highest one of the other classes, so that borders can be
    interpolated between grid points; 1 or -1 if `predict` is not always the most probable class.
    """
    classes = np.asarray(classifier.classes_)
    column = label_columns(np.asarray(classifier.predict(plane.rows)), len(classes), classes)
    margins = np.where(column[:, None] == np.arange(len(classes)), 1.0, -1.0)
    if hasattr(classifier, "predict_proba"):
        proba = np.asarray(classifier.predict_proba(plane.rows), dtype=np.float64)
        if (proba.argmax(axis=1) == column).all():
            margins = proba - maxima_of_others(proba)
    return margins.T.reshape(len(classes), len(plane.y), len(plane.x))


def draw_borders(ax: Axes, x: FloatArray, y: FloatArray, margins: FloatArray) -> list[Any]:
    """Draw the borders of the regions of the classes; return the contour sets."""
    predicted = [margin for margin in margins if (margin > 0).any()]
    style: dict[str, Any] = {"colors": "black", "linewidths": 1.5, "linestyles": "solid"}
    # The last class needs no contour: each of its borders is also one of another class.
    return [ax.contour(x, y, margin, levels=[0], **style) for margin in predicted[:-1]]


def _columns(X: Any) -> dict[Any, Any]:
    """Return the columns by name, or by number where they have none."""
    if hasattr(X, "toarray"):
        as_float_array(X, "X", ndim=2)  # a sparse matrix: raises an error with advice
    table = X if hasattr(X, "columns") else np.asarray(X)
    if len(table.shape) != 2 or len(table) == 0:
        raise ValueError(f"X must be a table with at least one row; got shape {table.shape}.")
    if hasattr(X, "columns"):
        return {name: X[name] for name in X.columns}
    return dict(enumerate(table.T))


def _positions(features: Sequence[Any], keys: list[Any], estimator: Any) -> list[int]:
    """Return the positions of two columns given by name or number."""
    given = list(features) if not isinstance(features, str) else [features]
    names = [_column_name(key, estimator) for key in keys]
    positions = [_position(feature, keys, names) for feature in given]
    if len(positions) != 2 or None in positions or positions[0] == positions[1]:
        shown = name_some(names, shown=10, rest=", …")
        raise ValueError(
            f"features must be two different columns of X, by number from 0 to {len(keys) - 1} or "
            f"by name ({shown}). Got {features!r} instead."
        )
    return [position for position in positions if position is not None]


def _position(feature: Any, keys: list[Any], names: list[str]) -> int | None:
    if isinstance(feature, int | np.integer) and feature is not True and feature is not False:
        number = int(feature)
        return number % len(keys) if -len(keys) <= number < len(keys) else None
    return names.index(feature) if feature in names else None


def _column_name(key: Any, estimator: Any) -> str:
    """Return the name of a column in the table or the estimator, or its number."""
    if isinstance(key, str):
        return key
    names = getattr(estimator, "feature_names_in_", None)
    if names is not None and isinstance(key, Integral) and int(key) < len(names):
        return str(names[int(key)])
    return f"feature {key}"


def _axis_values(values: Any, name: str) -> FloatArray:
    numbers = _as_numbers(np.asarray(values))
    if numbers is None:
        raise TypeError(f"{name!r} does not contain numbers and cannot be an axis; choose others.")
    return numbers


def _as_numbers(values: AnyArray) -> FloatArray | None:
    """Return a column as numbers, or None; booleans do not count as numbers."""
    if values.dtype == object:
        if not all(isinstance(v, Real) and not isinstance(v, bool) for v in values):
            return None
    elif values.dtype.kind not in "iuf":
        return None
    return values.astype(np.float64)


def _constant_column(column: Any, n: int) -> Any:
    """Return a constant column: the mean, or the most frequent value.

    Integers may be codes of categories: for them it is the value nearest to the mean.
    """
    values = np.asarray(column)
    is_category = str(getattr(column, "dtype", "")).lower().startswith("categor")
    numbers = None if is_category else _as_numbers(values)
    if numbers is not None:
        finite = numbers[np.isfinite(numbers)]
        if len(finite) and values.dtype.kind in "iu":
            return np.full(n, values[np.abs(numbers - finite.mean()).argmin()])
        return np.full(n, finite.mean() if len(finite) else np.nan)
    words = np.array([str(value) for value in values])
    _, row, count = np.unique(words, return_index=True, return_counts=True)
    # Indexing, unlike building a column anew, preserves the type and the categories.
    constant = pick(column, np.full(n, row[count.argmax()]))
    return constant.reset_index(drop=True) if hasattr(constant, "reset_index") else constant


def _like(X: Any, names: list[Any], table: list[Any]) -> Any:
    """Return columns as a table of the type of X."""
    if hasattr(X, "columns"):
        return type(X)(dict(zip(names, table, strict=True)))
    numbers = all(np.asarray(column).dtype.kind == "f" for column in table)
    rows = np.empty((len(table[0]), len(table)), dtype=np.float64 if numbers else object)
    for j, column in enumerate(table):
        rows[:, j] = column
    return rows
