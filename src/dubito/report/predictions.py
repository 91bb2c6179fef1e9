"""The rows of a report, and the outputs of its models on them, in one order of the classes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dubito._bounds_meaning import bounds_meaning
from dubito._compat import pick
from dubito._labels import as_labels, label_columns
from dubito._models import has_bounds, inner_model_and_rows, is_conformal, last_model
from dubito._validation import TIE, check_proba, check_rows_match, n_rows
from dubito._wording import name_some
from dubito.belief import Bounds
from dubito.decision import choose_set
from dubito.decision.rejection import confidence_of
from dubito.metrics.evaluation import MOST_CELLS

if TYPE_CHECKING:
    import numpy.typing as npt

    from dubito._bounds_meaning import BoundsMeaning
    from dubito._typing import BoolArray, FloatArray, IntArray


@dataclass(frozen=True)
class ModelOutputs:
    """The outputs of one model: probabilities, bounds and sets, each (n, K)."""

    name: str
    estimator: Any
    X: Any
    proba: FloatArray
    bounds: Bounds
    sets: BoolArray
    has_wide_bounds: bool  # wider than rounding; else `bounds` are the probabilities
    meaning: BoundsMeaning

    @cached_property
    def predicted(self) -> IntArray:
        """Index of the most probable class of each row."""
        return np.argmax(self.proba, axis=1)

    def strategy(self, wanted: str) -> str:
        """Return the strategy in use: "probabilistic" (Chow's rule) if bounds have no width."""
        return wanted if self.has_wide_bounds else "probabilistic"

    def confidence(self, strategy: str) -> FloatArray:
        """Return the quantity that `dubito.decision.reject` compares with 1 - cost."""
        strategy = self.strategy(strategy)
        return confidence_of(self.proba if strategy == "probabilistic" else self.bounds, strategy)


@dataclass(frozen=True)
class LabelledRows:
    """The rows of a report: column of the true class, number in the given table, and name."""

    true_column: IntArray
    classes: npt.NDArray[Any]
    numbers: IntArray
    names: list[str]
    n_given: int

    def __len__(self) -> int:
        return len(self.true_column)


def models_by_name(models: Any) -> dict[str, Any]:
    """Return models by name; a single one is named after its class."""
    by_name = models if isinstance(models, Mapping) else {type(models).__name__: models}
    if not by_name:
        raise ValueError("models is empty; pass a fitted classifier, or several by name.")
    for model in by_name.values():
        if isinstance(model, type):
            raise TypeError(
                f"models must be fitted classifiers; got the class {model.__name__} itself. Fit an "
                f"instance first, as in {model.__name__}().fit(X, y)."
            )
        if not any(hasattr(model, name) for name in ("classes_", "predict", "fit")):
            raise TypeError(
                "models must be a fitted classifier, or several by name in a dict; got "
                f"{type(model).__name__}. The order of arguments is collect(models, X, y) and "
                "write_report(models, X, y, path)."
            )
    return {str(name): model for name, model in by_name.items()}


class DecliningOptions(NamedTuple):
    """The cost of declining and the strategy that a report uses by default."""

    cost: float = 0.2
    strategy: str = "pignistic"


def declining_options(model: Any) -> DecliningOptions:
    """Return the options of a `RejectClassifier`, also inside a pipeline or search, or defaults.

    Its cost is used only if errors cost 1 there too, which they do without a loss matrix.
    """
    model = last_model(model)
    if not hasattr(model, "decision_cost"):
        return DecliningOptions()
    if model.loss is not None:
        return DecliningOptions(strategy=model.strategy)
    return DecliningOptions(min(float(model.cost), 1.0), model.strategy)


def tables_by_model(X: Any, names: list[str]) -> dict[str, Any]:
    """Return the table of each model: the same for all, or one for each by name."""
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


def select_rows(
    model: Any, X: Any, y: npt.ArrayLike, row_names: Any, random_state: int
) -> tuple[LabelledRows, IntArray | None]:
    """Return the rows of a report and, if they are a sample, their numbers."""
    if not hasattr(model, "classes_"):
        raise TypeError(
            f"{type(model).__name__} has no classes_, which name the columns of its predictions. "
            "Pass a fitted classifier or calibrator."
        )
    classes = as_labels(model.classes_, "classes_")
    true_column = label_columns(as_labels(y, "y"), len(classes), classes)
    n = len(true_column)
    check_rows_match("X", n_rows(X), "y", n)
    if n == 0:
        raise ValueError("there are no rows; a report needs at least one row with its label.")
    names = _row_names(X, n, row_names)
    most = max(MOST_CELLS // len(classes), 1)
    if n <= most:
        return LabelledRows(true_column, classes, np.arange(n), names, n), None
    kept = np.sort(np.random.default_rng(random_state).choice(n, most, replace=False))
    return LabelledRows(true_column[kept], classes, kept, [names[i] for i in kept], n), kept


def model_outputs(
    name: str,
    model: Any,
    X: Any,
    classes: npt.NDArray[Any],
    *,
    level: float | None,
    coverage: float,
) -> ModelOutputs:
    """Return the outputs of one model, with columns in the order of `classes`."""
    order = _column_order(name, model, classes)
    inner, rows = inner_model_and_rows(model, X)
    level_option = {} if level is None else {"level": level}
    given: Bounds | None = inner.predict_bounds(rows, **level_option) if has_bounds(inner) else None
    if hasattr(model, "predict_proba"):
        proba = check_proba(model.predict_proba(X), f"predict_proba of {name!r}")
    elif given is not None:
        proba = given.pignistic()
    else:
        raise TypeError(
            f"{name!r} ({type(model).__name__}) has neither predict_proba nor predict_bounds. "
            "Calibrate its scores: dubito.calibration.CalibratedClassifier gives both."
        )
    if given is None or (given.width <= TIE).all():
        bounds, wide = Bounds.precise(proba), False
    else:
        bounds, wide = given.tightened(), True
    # Models without bounds may still have sets of more than one class.
    options = {"coverage": coverage} if is_conformal(inner) else level_option
    own_sets = hasattr(inner, "predict_set")
    sets = np.asarray(inner.predict_set(rows, **options)) if own_sets else choose_set(bounds)
    if sets.dtype != bool or sets.shape != proba.shape:
        raise ValueError(
            f"predict_set of {name!r} must give a boolean array of shape {proba.shape}; got "
            f"{sets.dtype} of shape {sets.shape}."
        )
    if not np.array_equal(order, np.arange(len(order))):
        bounds = Bounds(bounds.lower[:, order], bounds.upper[:, order], bounds.level)
        proba, sets = proba[:, order], sets[:, order]
    meaning = bounds_meaning(inner, level)
    return ModelOutputs(name, model, X, proba, bounds, sets, wide, meaning)


def _column_order(name: str, model: Any, classes: npt.NDArray[Any]) -> IntArray:
    own = as_labels(model.classes_, "classes_").tolist()
    position = {label: k for k, label in enumerate(own)}
    if set(position) != set(classes.tolist()):
        raise ValueError(
            f"{name!r} knows the classes {name_some(own)}, the first model "
            f"{name_some(classes.tolist())}. Models can be compared on the same classes alone."
        )
    return np.array([position[label] for label in classes.tolist()])


def _row_names(X: Any, n: int, given: Any) -> list[str]:
    """Return the names of rows: as given, else the index of a table, else numbers from 0."""
    if given is None and not hasattr(X, "iloc"):
        return [str(i) for i in range(n)]
    names = [str(name) for name in (X.index if given is None else given)]
    check_rows_match("row_names", len(names), "y", n)
    return names


def take_rows(X: Any, rows: IntArray | None) -> Any:
    """Return some rows of a table; all of them for None."""
    return X if rows is None else pick(X, rows)
