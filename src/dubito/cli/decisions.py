"""Decisions on rows as columns of a table: class, probabilities, bounds, set, and declined or not.

The columns and counts of declined rows are called "rejected", as in `dubito.decision.reject`.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from dubito._bounds_meaning import bounds_meaning
from dubito._models import has_bounds, is_conformal, is_novelty_aware
from dubito._validation import DEFAULT_COVERAGE
from dubito._wording import counted, name_ends
from dubito.belief import Bounds
from dubito.cli.console import CliError
from dubito.cli.saved_models import (
    check_level_and_coverage,
    model_inputs,
    model_types,
    naming_file_in_errors,
)
from dubito.cli.tables import Table, chunk_rows
from dubito.decision import choose_set, reject

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd

    from dubito._typing import BoolArray, FloatArray
    from dubito.cli.writer import TableWriter
    from dubito.saving import Saved


#: Separator of the classes of a set, unless the name of a class contains it.
SEPARATOR = "|"


@dataclass(frozen=True)
class PredictOptions:
    """The options of `dubito predict`.

    Parameters
    ----------
    cost : float or None
        Cost of declining a row; None if all rows are decided.
    strategy : str
        Strategy of `dubito.decision.reject`.
    rule : str or None
        Rule for sets; None is interval dominance, as in every model's `predict_set`.
    level : float or None
        Confidence level of the bounds; None: belief and plausibility.
    coverage : float or None
        Coverage of the sets of a conformal model.
    keep : list of str
        Columns to copy from the table.
    without : frozenset of str
        Outputs to leave out: "proba", "bounds", "set", "familiarity".
    single_precision : bool
        Write seven digits, which is enough for text.
    """

    cost: float | None = None
    strategy: str = "pignistic"
    rule: str | None = None
    level: float | None = None
    coverage: float | None = None
    keep: list[str] = field(default_factory=list)
    without: frozenset[str] = frozenset()
    single_precision: bool = False


class DecisionMaker:
    """Computes the output columns of chunks of rows, and counts declined and unfamiliar rows.

    Parameters
    ----------
    saved : Saved
        The model and its stamp.
    options : PredictOptions
        What to compute.
    """

    def __init__(self, saved: Saved, options: PredictOptions) -> None:
        self.saved, self.options = saved, options
        self.classes = saved.stamp.classes
        self.n_rows = self.rejected = self.unfamiliar = 0
        #: Sum of the sizes of all sets.
        self.total_set_size = 0
        #: Text column -> rows with a value that was not in the training rows.
        self.unseen: Counter[str] = Counter()
        self._class_names = pa.array(self.classes)
        self._format_sets = set_formatter(self.classes)
        self.has_proba = hasattr(saved.model, "predict_proba")
        self.has_bounds = has_bounds(saved.model)
        check_level_and_coverage(saved.model, options.level, options.coverage)
        self.meaning = bounds_meaning(saved.model, options.level)
        #: Coverage of the sets; None for sets without a chosen coverage.
        self.coverage: float | None = None
        if is_conformal(saved.model) and options.rule is None:
            self.coverage = options.coverage or DEFAULT_COVERAGE
        self.has_familiarity = is_novelty_aware(saved.model)
        if options.cost is not None and not self.has_proba:
            raise CliError(
                f"{type(saved.model).__name__} gives classes only and no probabilities, so rows "
                "cannot be declined. Leave --reject-cost out."
            )

    def columns(self, X: Any) -> dict[str, Any]:
        """Return the output columns for inputs of the model, and update the counts."""
        model, options = self.saved.model, self.options
        if not self.has_proba:
            self.n_rows += len(X)
            return {"prediction": pa.array(model.predict(X).tolist(), self._class_names.type)}
        proba = self._proba(X)
        bounds = self._bounds(X) if self.has_bounds else None
        self.n_rows += len(proba)
        columns = {"prediction": self._class_names.take(pa.array(proba.argmax(axis=1)))}
        if "proba" not in options.without:
            columns |= self._class_columns("p_", proba)
        if bounds is not None and "bounds" not in options.without:
            if options.level is not None:
                columns["level"] = np.full(len(proba), options.level)
            columns |= self._class_columns("lower_", bounds.lower)
            columns |= self._class_columns("upper_", bounds.upper)
        if bounds is not None:
            sets = self._sets(X, bounds)
            sizes = sets.sum(axis=1)
            self.total_set_size += int(sizes.sum())
            if "set" not in options.without:
                columns |= {"set": self._format_sets(sets), "set_size": sizes}
        if self.has_familiarity:
            columns |= self._familiarity(X)
        if options.cost is not None:
            columns["rejected"] = self._rejected(proba, bounds, options.cost)
            self.rejected += int(columns["rejected"].sum())
        return columns

    def count_unseen_values(self, frame: pd.DataFrame) -> None:
        """Count the cells of text columns whose values were not in the training rows."""
        for name, known in self.saved.stamp.options.get("values", {}).items():
            if name in frame.columns:
                new = frame[name].notna() & ~frame[name].isin(known)
                self.unseen[name] += int(new.sum())

    def notes(self) -> list[str]:
        """Return notes on values that were not in the training rows."""
        return [
            f"{counted(rows, 'row')} of {self.n_rows:,} say in column {name!r} what no row said "
            "when the model was fitted."
            for name, rows in self.unseen.items()
            if rows
        ]

    def summary(self) -> str:
        """Return the counts of decisions as one line."""
        parts = ["1 row" if self.n_rows == 1 else f"{self.n_rows:,} rows"]
        if self.has_bounds and self.n_rows:
            parts.append(self.meaning.both)
        if self.options.cost is not None and self.n_rows:
            parts.append(f"{self.rejected / self.n_rows:.1%} declined")
        if self.has_bounds and self.n_rows:
            coverage = "" if self.coverage is None else f" at coverage {self.coverage:g}"
            parts.append(f"mean set {self.total_set_size / self.n_rows:.2f}{coverage}")
        if self.has_familiarity and self.n_rows:
            parts.append(f"{self.unfamiliar:,} unlike the rows it was trained on")
        if not self.has_bounds:
            parts.append("no bounds: this model gives none")
        return " · ".join(parts)

    def as_dict(self) -> dict[str, Any]:
        """Return the counts of decisions for the JSON output."""
        fraction = (
            self.rejected / self.n_rows if self.n_rows and self.options.cost is not None else None
        )
        size = self.total_set_size / self.n_rows if self.n_rows and self.has_bounds else None
        return {
            "rows": self.n_rows,
            "classes": self.classes,
            "bounds": self.has_bounds,
            "bounds_are": self.meaning.both if self.has_bounds else None,
            "level": self.options.level,
            "coverage": self.coverage,
            "unfamiliar": self.unfamiliar if self.has_familiarity else None,
            "rejected": None if self.options.cost is None else self.rejected,
            "rejected_share": fraction,
            "mean_set_size": size,
            "notes": self.notes(),
        }

    def _proba(self, X: Any) -> FloatArray:
        if not len(X):
            return np.empty((0, len(self.classes)))
        return np.asarray(self.saved.model.predict_proba(X))

    def _bounds(self, X: Any) -> Bounds:
        if not len(X):
            empty = np.empty((0, len(self.classes)))
            return Bounds(empty, empty)
        if self.options.level is None:
            return self.saved.model.predict_bounds(X)
        return self.saved.model.predict_bounds(X, level=self.options.level)

    def _sets(self, X: Any, bounds: Bounds) -> BoolArray:
        model, rule = self.saved.model, self.options.rule
        if self.coverage is not None and len(X):
            return model.predict_set(X, coverage=self.coverage)
        if not len(X) or rule != "maximality":
            return choose_set(bounds, rule)  # as `predict_set`, without computing the bounds again
        # Some models need more than their bounds for maximality.
        level = {} if self.options.level is None else {"level": self.options.level}
        return model.predict_set(X, rule=rule, **level)

    def _familiarity(self, X: Any) -> dict[str, Any]:
        model = self.saved.model
        familiarity = np.asarray(model.familiarity(X)) if len(X) else np.empty(0)
        self.unfamiliar += int((familiarity < model.rate).sum())
        if "familiarity" in self.options.without:
            return {}
        return {
            "familiarity": familiarity.astype(
                np.float32 if self.options.single_precision else float
            )
        }

    def _rejected(self, proba: FloatArray, bounds: Bounds | None, cost: float) -> BoolArray:
        if not len(proba):
            return np.empty(0, bool)
        strategy = self.options.strategy
        if bounds is None or strategy == "probabilistic":  # Chow's rule
            return reject(proba, cost, "probabilistic")
        return reject(bounds, cost, strategy)

    def _class_columns(self, prefix: str, values: FloatArray) -> dict[str, Any]:
        # Columns contiguous in memory are written without copies.
        table = np.asfortranarray(
            values, dtype=np.float32 if self.options.single_precision else np.float64
        )
        return {f"{prefix}{name}": table[:, k] for k, name in enumerate(self.classes)}


def decide_table(
    decider: DecisionMaker, table: Table, writer: TableWriter, advance: Callable[[int], None]
) -> None:
    """Write the decisions on all rows of a table.

    Parameters
    ----------
    decider : DecisionMaker
        The model and the options.
    table : Table
        The rows.
    writer : TableWriter
        Writes the output table.
    advance : callable
        Called with the number of rows of each chunk.
    """
    keep = decider.options.keep
    types = model_types(decider.saved, table)
    read_as = dict.fromkeys(keep, "as_is") | types
    rows = chunk_rows(len(types) + 8 * len(decider.classes))
    empty = True
    for frame in table.chunks(list(read_as), read_as, rows):
        X = model_inputs(decider.saved, frame[list(types)], path=table.path)
        decider.count_unseen_values(frame)
        with naming_file_in_errors(table.path):
            decided = decider.columns(X)
        writer.write(_row_columns(frame, keep, decided))
        empty = False
        advance(len(frame))
    if empty:  # write the column names all the same
        frame = table.read(list(read_as), read_as)
        writer.write(_row_columns(frame, keep, decider.columns(frame[list(types)])))


def _row_columns(frame: Any, keep: list[str], decided: dict[str, Any]) -> dict[str, Any]:
    """Return row numbers, copied columns and decisions, in this order."""
    clashes = [name for name in keep if name in decided or name == "row"]
    if clashes:
        raise CliError(
            f"kept columns may not be named like a result ({name_ends(clashes)}). Rename them in "
            "the table, or leave them out of --keep."
        )
    kept = {name: pa.array(frame[name], from_pandas=True) for name in keep}
    return {"row": frame.index.to_numpy(), **kept, **decided}


def set_formatter(classes: list[Any]) -> Callable[[BoolArray], pa.Array]:
    """Return a function that writes sets as a|b, or as JSON lists if a class name has | or "["."""
    names = [str(name) for name in classes]
    if any(SEPARATOR in name or name.startswith("[") for name in names):
        alone = [json.dumps([name], ensure_ascii=False) for name in classes]

        def join(members: list[int]) -> str:
            return json.dumps([classes[k] for k in members], ensure_ascii=False)
    else:
        alone = names

        def join(members: list[int]) -> str:
            return SEPARATOR.join([names[k] for k in members])

    def format_sets(sets: BoolArray) -> pa.Array:
        texts = np.asarray(alone, dtype=object)[sets.argmax(axis=1)]
        several = np.flatnonzero(sets.sum(axis=1) > 1)
        members = np.split(sets[several].nonzero()[1], sets[several].sum(axis=1).cumsum()[:-1])
        texts[several] = [join(indices.tolist()) for indices in members[: len(several)]]
        return pa.array(texts, pa.string())

    return format_sets
