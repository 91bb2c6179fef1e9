"""Probability forecasts, and the yes-or-no events whose calibration is judged."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dubito._checks import BoolArray, FloatArray, IntArray, as_float_array, check_proba
from dubito._labels import as_labels, label_columns
from dubito.metrics._rows import counted_rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt


class Forecasts(NamedTuple):
    """True columns, probabilities (n, K) or of the second of two classes (n,), and weights."""

    column: IntArray
    proba: FloatArray
    weight: FloatArray


class Event(NamedTuple):
    """Forecast probabilities of one event, whether it happened, and the rows' weights."""

    probability: FloatArray
    happened: BoolArray
    weight: FloatArray

    @property
    def surplus(self) -> FloatArray:
        """Happened minus forecast, row by row."""
        return self.happened - self.probability


def read_forecasts(
    y: npt.ArrayLike,
    proba: npt.ArrayLike,
    classes: npt.ArrayLike | None,
    sample_weight: npt.ArrayLike | None,
) -> Forecasts:
    """Check what the user gave and match labels to columns."""
    checked = _check_forecasts(proba)
    weight, labels, checked = counted_rows(sample_weight, y=as_labels(y, "y"), proba=checked)
    n_classes = 2 if checked.ndim == 1 else checked.shape[1]
    return Forecasts(label_columns(labels, n_classes, classes), checked, weight)


def judged_event(forecasts: Forecasts) -> Event:
    """One event per row: the second class for (n,), the most probable class for (n, K)."""
    column, proba, weight = forecasts
    if proba.ndim == 1:
        return Event(proba, column == 1, weight)
    top = proba.argmax(axis=1)
    return Event(proba[np.arange(len(proba)), top], column == top, weight)


def class_events(forecasts: Forecasts) -> Iterator[Event]:
    """One event per class; of two classes the second, since the first is its mirror image."""
    column, proba, weight = forecasts
    if proba.ndim == 1:
        yield judged_event(forecasts)
        return
    n_classes = proba.shape[1]
    for k in range(1 if n_classes == 2 else 0, n_classes):
        yield Event(proba[:, k], column == k, weight)


def _check_forecasts(proba: npt.ArrayLike) -> FloatArray:
    array = as_float_array(proba, "proba", ndim=(1, 2))
    if array.ndim == 1:
        return check_proba(np.column_stack((1 - array, array)))[:, 1]
    if array.shape[1] < 2:
        raise ValueError(
            f"proba has shape {array.shape}; it needs a column for each of at least two classes. "
            "For the probability of the second of two classes pass a 1-dimensional array."
        )
    return check_proba(array)
