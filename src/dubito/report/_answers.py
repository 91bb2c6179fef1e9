"""What the models of a report answer for its rows, on one order of classes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from dubito._checks import BoolArray, FloatArray, IntArray, check_proba, check_rows_match
from dubito._labels import as_labels, label_columns
from dubito._promises import bounds_meaning, is_conformal
from dubito._sklearn import pick
from dubito.belief import Bounds
from dubito.decision import choose_set
from dubito.decision._risk import TIE

if TYPE_CHECKING:
    import numpy.typing as npt

    from dubito._promises import BoundsMeaning

#: A report looks at no more probabilities (rows x classes) than this: 400 MB for each model.
MOST_CELLS = 50_000_000


@dataclass(frozen=True)
class Answers:
    """The answers of one model: probabilities, bounds and sets, each (n, K)."""

    name: str
    model: Any
    X: Any
    proba: FloatArray
    bounds: Bounds
    sets: BoolArray
    has_bounds: bool
    meaning: BoundsMeaning

    @cached_property
    def predicted(self) -> IntArray:
        """The most probable class of each row, by column."""
        return np.argmax(self.proba, axis=1)

    def strategy(self, asked: str) -> str:
        """Without bounds all strategies are Chow's rule: decide where the probability suffices."""
        return asked if self.has_bounds else "probabilistic"

    def confidence(self, strategy: str) -> FloatArray:
        """Return what `dubito.decision.reject` compares with 1 - cost."""
        strategy = self.strategy(strategy)
        if strategy == "probabilistic":
            return self.proba.max(axis=1)
        if strategy == "pignistic":
            return self.bounds.pignistic().max(axis=1)
        bounds = self.bounds.lower if strategy == "pessimistic" else self.bounds.upper
        return np.clip(bounds.max(axis=1), 0.0, 1.0)


@dataclass(frozen=True)
class Rows:
    """The rows of a report: true classes by column, numbers in the given table, and names."""

    column: IntArray
    classes: npt.NDArray[Any]
    numbers: IntArray
    names: list[str]
    n_given: int

    def __len__(self) -> int:
        return len(self.column)


def named_models(models: Any) -> dict[str, Any]:
    """Return models by name: a single one is called after its class."""
    if not isinstance(models, Mapping):
        return {type(models).__name__: models}
    if not models:
        raise ValueError("models is empty; pass a fitted classifier, or several by name.")
    return {str(name): model for name, model in models.items()}


def named_tables(X: Any, names: list[str]) -> dict[str, Any]:
    """Return the table of each model: one for all, or one for each by name."""
    if not isinstance(X, Mapping):
        return dict.fromkeys(names, X)
    tables = {str(name): table for name, table in X.items()}
    missing = [name for name in names if name not in tables]
    if missing:
        raise ValueError(
            f"X has no table for {missing[0]!r}; it has tables for "
            f"{', '.join(map(repr, tables)) or 'no model'}. Pass one table for all models, or one "
            "for each by name."
        )
    return {name: tables[name] for name in names}


def read_rows(
    model: Any, X: Any, y: npt.ArrayLike, row_names: Any, random_state: int
) -> tuple[Rows, IntArray | None]:
    """Return the rows a report looks at and, where they are a sample, their numbers."""
    if not hasattr(model, "classes_"):
        raise TypeError(
            f"{type(model).__name__} has no classes_, which name the columns of its predictions. "
            "Pass a fitted classifier or calibrator."
        )
    classes = as_labels(model.classes_, "classes_")
    column = label_columns(as_labels(y, "y"), len(classes), classes)
    n = len(column)
    check_rows_match("X", _n_rows(X), "y", n)
    if n == 0:
        raise ValueError("there are no rows; a report needs at least one row with its label.")
    names = _row_names(X, n, row_names)
    most = max(MOST_CELLS // len(classes), 1)
    if n <= most:
        return Rows(column, classes, np.arange(n), names, n), None
    kept = np.sort(np.random.default_rng(random_state).choice(n, most, replace=False))
    return Rows(column[kept], classes, kept, [names[i] for i in kept], n), kept


def ask(
    name: str,
    model: Any,
    X: Any,
    classes: npt.NDArray[Any],
    *,
    level: float | None = None,
    coverage: float = 0.9,
) -> Answers:
    """Ask one model, and put its columns into the order of `classes`."""
    order = _order(name, model, classes)
    at = {} if level is None else {"level": level}
    bounds: Bounds | None = (
        model.predict_bounds(X, **at) if hasattr(model, "predict_bounds") else None
    )
    if hasattr(model, "predict_proba"):
        proba = check_proba(model.predict_proba(X), f"predict_proba of {name!r}")
    elif bounds is not None:
        proba = bounds.pignistic()
    else:
        raise TypeError(
            f"{name!r} ({type(model).__name__}) has neither predict_proba nor predict_bounds. "
            "Calibrate its scores: dubito.calibration.CalibratedClassifier gives both."
        )
    if bounds is None or (bounds.width <= TIE).all():
        known, has_bounds = Bounds.precise(proba), False
    else:
        known, has_bounds = bounds.tightened(), True
    # One class each where there are no bounds: models may still have sets of their own.
    asked = {"coverage": coverage} if is_conformal(model) else at
    own_sets = hasattr(model, "predict_set")
    sets = np.asarray(model.predict_set(X, **asked)) if own_sets else choose_set(known)
    if sets.dtype != bool or sets.shape != proba.shape:
        raise ValueError(
            f"predict_set of {name!r} must give a boolean array of shape {proba.shape}; got "
            f"{sets.dtype} of shape {sets.shape}."
        )
    if not np.array_equal(order, np.arange(len(order))):
        known = Bounds(known.lower[:, order], known.upper[:, order], known.level)
        proba, sets = proba[:, order], sets[:, order]
    meaning = bounds_meaning(model, level)
    return Answers(name, model, X, proba, known, sets, has_bounds, meaning)


def _order(name: str, model: Any, classes: npt.NDArray[Any]) -> IntArray:
    own = as_labels(model.classes_, "classes_").tolist()
    place = {label: k for k, label in enumerate(own)}
    if set(place) != set(classes.tolist()):
        raise ValueError(
            f"{name!r} knows the classes {_few(own)}, the first model {_few(classes.tolist())}. "
            "Models can be compared on the same classes alone."
        )
    return np.array([place[label] for label in classes.tolist()])


def _few(labels: list[Any]) -> str:
    shown = ", ".join(repr(label) for label in labels[:5])
    return f"{shown} and {len(labels) - 5} more" if len(labels) > 5 else shown


def _n_rows(X: Any) -> int:
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def _row_names(X: Any, n: int, given: Any) -> list[str]:
    """Return what rows are called: as said, else by a table's index, else by number from 0."""
    if given is None and not hasattr(X, "iloc"):
        return [str(i) for i in range(n)]
    names = [str(name) for name in (X.index if given is None else given)]
    check_rows_match("row_names", len(names), "y", n)
    return names


def picked(X: Any, rows: IntArray | None) -> Any:
    """Return some rows of a table, all of them for None."""
    return X if rows is None else pick(X, rows)
