"""Probability forecasts, and the binary events whose calibration is measured."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dubito._labels import as_labels, label_columns
from dubito._validation import as_float_array, check_proba, drop_zero_weights
from dubito._wording import name_some
from dubito.belief import Frame

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from dubito._typing import AnyArray, BoolArray, FloatArray, IntArray


class Forecasts(NamedTuple):
    """Checked probabilities, with the true labels."""

    true_column: IntArray  # (n,) of the true label
    proba: FloatArray  # (n, K), or (n,): of the second of two classes
    weight: FloatArray  # (n,) sample weights
    labels: AnyArray  # (n,) true labels

    @property
    def n_classes(self) -> int:
        """The number of classes."""
        return 2 if self.proba.ndim == 1 else self.proba.shape[1]


class Event(NamedTuple):
    """Forecast probabilities of one event, whether it happened, and the rows' weights."""

    probability: FloatArray
    happened: BoolArray
    weight: FloatArray

    @property
    def residual(self) -> FloatArray:
        """Outcome (1 or 0) minus forecast, of each row."""
        return self.happened - self.probability


def read_forecasts(
    y_true: npt.ArrayLike,
    y_proba: npt.ArrayLike,
    classes: npt.ArrayLike | None,
    sample_weight: npt.ArrayLike | None,
) -> Forecasts:
    """Return the checked forecasts, with the column of each row's label."""
    checked = _check_forecasts(y_proba)
    weight, labels, checked = drop_zero_weights(
        sample_weight, y_true=as_labels(y_true, "y_true"), y_proba=checked
    )
    n_classes = 2 if checked.ndim == 1 else checked.shape[1]
    return Forecasts(label_columns(labels, n_classes, classes, "y_true"), checked, weight, labels)


def top_event(forecasts: Forecasts) -> Event:
    """Return the event "the second class" for (n,), "the most probable class" for (n, K)."""
    true_column, proba, weight, _ = forecasts
    if proba.ndim == 1:
        return Event(proba, true_column == 1, weight)
    top = proba.argmax(axis=1)
    return Event(proba[np.arange(len(proba)), top], true_column == top, weight)


def class_events(forecasts: Forecasts) -> Iterator[Event]:
    """Yield the event of each class; of two classes, whose probabilities sum to 1, the second."""
    n_classes = forecasts.n_classes
    for k in range(1 if n_classes == 2 else 0, n_classes):
        yield class_event(forecasts, k)


def class_event(forecasts: Forecasts, k: int) -> Event:
    """Return the event "the label is class k"."""
    true_column, proba, weight, _ = forecasts
    if proba.ndim == 1:
        return Event(proba if k == 1 else 1 - proba, true_column == k, weight)
    return Event(proba[:, k], true_column == k, weight)


def column_of(label: Any, forecasts: Forecasts, classes: npt.ArrayLike | None) -> int:
    """Return the column of the class `label`."""
    if classes is not None:
        given: Any = classes.labels if isinstance(classes, Frame) else classes
        listed = as_labels(given, "classes").tolist()
        known = {name: k for k, name in enumerate(listed)}
    else:
        known = dict(zip(forecasts.labels.tolist(), forecasts.true_column.tolist(), strict=True))
        if all(name == k for name, k in known.items()):
            # Labels are column numbers: all are known, also those without rows.
            known = {k: k for k in range(forecasts.n_classes)}
    if not isinstance(label, Hashable) or label not in known:
        names = name_some(sorted(known, key=known.__getitem__), shown=10)
        raise ValueError(f"class_ must be one of the classes {names}. Got {label!r} instead.")
    return known[label]


def _check_forecasts(y_proba: npt.ArrayLike) -> FloatArray:
    array = as_float_array(y_proba, "y_proba", ndim=(1, 2))
    if array.ndim == 1:
        return check_proba(np.column_stack((1 - array, array)), "y_proba")[:, 1]
    if array.shape[1] < 2:
        raise ValueError(
            f"y_proba has shape {array.shape}; it needs a column for each of at least two classes. "
            "For the probability of the second of two classes pass a 1-dimensional array."
        )
    return check_proba(array, "y_proba")
