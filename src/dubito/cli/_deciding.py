"""The work of `dubito predict`: what a model says about rows, as columns of a table."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from dubito._checks import counted
from dubito._promises import bounds_meaning, is_conformal, is_novelty_aware
from dubito.belief import Bounds
from dubito.cli._console import CliError
from dubito.cli._inputs import model_inputs, model_types, told_in
from dubito.cli._tables import Table, chunk_rows, listed
from dubito.cli._test_rows import DEFAULT_COVERAGE, check_promises, gives_bounds
from dubito.decision import choose_set, reject

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt
    import pandas as pd

    from dubito.cli._writer import TableWriter
    from dubito.saving import Saved

    Sets = npt.NDArray[np.bool_]

#: What stands between the classes of a set, unless a class is named with it.
BETWEEN = "|"


@dataclass(frozen=True)
class Settings:
    """What the command line asks for.

    Parameters
    ----------
    cost : float or None
        Cost of rejecting; None: nothing is rejected.
    strategy : str
        Which risk counts for rejecting.
    rule : str or None
        Rule for sets; None is interval dominance, as in every model's `predict_set`.
    level : float or None
        Confidence level of the bounds; None: belief and plausibility.
    coverage : float or None
        Coverage of the sets of a conformal model.
    keep : list of str
        Columns to copy.
    without : frozenset of str
        "proba", "bounds", "set", "familiarity": what not to write.
    short : bool
        Write seven digits, as for text.
    """

    cost: float | None = None
    strategy: str = "pignistic"
    rule: str | None = None
    level: float | None = None
    coverage: float | None = None
    keep: list[str] = field(default_factory=list)
    without: frozenset[str] = frozenset()
    short: bool = False


class Decider:
    """Makes columns of what a model says, chunk by chunk, and counts.

    Parameters
    ----------
    saved : Saved
        The model and its stamp.
    settings : Settings
        What to say.
    """

    def __init__(self, saved: Saved, settings: Settings) -> None:
        self.saved, self.settings = saved, settings
        self.classes = saved.stamp.classes
        self.rows = self.rejected = self.in_sets = self.unfamiliar = 0
        #: Text column -> rows with a word that was not there when the model was fitted.
        self.strange: Counter[str] = Counter()
        self._names = pa.array(self.classes)
        self._in_set = _set_words(self.classes)
        self.has_proba = hasattr(saved.model, "predict_proba")
        self.has_bounds = gives_bounds(saved.model)
        check_promises(saved.model, settings.level, settings.coverage)
        self.meaning = bounds_meaning(saved.model, settings.level)
        #: Coverage that the sets promise; None where they promise none.
        self.coverage: float | None = None
        if is_conformal(saved.model) and settings.rule is None:
            self.coverage = settings.coverage or DEFAULT_COVERAGE
        self.knows_familiar = is_novelty_aware(saved.model)
        if settings.cost is not None and not self.has_proba:
            raise CliError(
                f"{type(saved.model).__name__} gives classes only, no probabilities to weigh the "
                "cost of rejecting with. Leave --reject-cost out."
            )

    def columns(self, X: Any) -> dict[str, Any]:
        """Return the columns for rows as the model takes them."""
        model, wanted = self.saved.model, self.settings
        if not self.has_proba:
            self.rows += len(X)
            return {"prediction": pa.array(model.predict(X).tolist(), self._names.type)}
        proba = self._proba(X)
        bounds = self._bounds(X) if self.has_bounds else None
        self.rows += len(proba)
        columns = {"prediction": self._names.take(pa.array(proba.argmax(axis=1)))}
        if "proba" not in wanted.without:
            columns |= self._numbers("p_", proba)
        if bounds is not None and "bounds" not in wanted.without:
            if wanted.level is not None:
                columns["level"] = np.full(len(proba), wanted.level)
            columns |= self._numbers("lower_", bounds.lower)
            columns |= self._numbers("upper_", bounds.upper)
        if bounds is not None:
            sets = self._sets(X, bounds)
            sizes = sets.sum(axis=1)
            self.in_sets += int(sizes.sum())
            if "set" not in wanted.without:
                columns |= {"set": self._in_set(sets), "set_size": sizes}
        if self.knows_familiar:
            columns |= self._familiarity(X)
        if wanted.cost is not None:
            columns["rejected"] = self._rejected(proba, bounds, wanted.cost)
            self.rejected += int(columns["rejected"].sum())
        return columns

    def look_for_new_words(self, frame: pd.DataFrame) -> None:
        """Count the cells of text columns that say what no row said when the model was fitted."""
        for name, known in self.saved.stamp.options.get("values", {}).items():
            if name in frame.columns:
                new = frame[name].notna() & ~frame[name].isin(known)
                self.strange[name] += int(new.sum())

    def notes(self) -> list[str]:
        """Say what else whoever reads the decisions should know."""
        return [
            f"{counted(rows, 'row')} of {self.rows:,} say in column {name!r} what no row said when "
            "the model was fitted."
            for name, rows in self.strange.items()
            if rows
        ]

    def summary(self) -> str:
        """Say in one line what was decided."""
        parts = ["1 row" if self.rows == 1 else f"{self.rows:,} rows"]
        if self.has_bounds and self.rows:
            parts.append(self.meaning.both)
        if self.settings.cost is not None and self.rows:
            parts.append(f"{self.rejected / self.rows:.1%} rejected")
        if self.has_bounds and self.rows:
            promised = "" if self.coverage is None else f" at coverage {self.coverage:g}"
            parts.append(f"mean set {self.in_sets / self.rows:.2f}{promised}")
        if self.knows_familiar and self.rows:
            parts.append(f"{self.unfamiliar:,} unlike the rows it was trained on")
        if not self.has_bounds:
            parts.append("no bounds: this model gives none")
        return " · ".join(parts)

    def described(self) -> dict[str, Any]:
        """Return what was decided, as plain values."""
        share = self.rejected / self.rows if self.rows and self.settings.cost is not None else None
        size = self.in_sets / self.rows if self.rows and self.has_bounds else None
        return {
            "rows": self.rows,
            "classes": self.classes,
            "bounds": self.has_bounds,
            "bounds_are": self.meaning.both if self.has_bounds else None,
            "level": self.settings.level,
            "coverage": self.coverage,
            "unfamiliar": self.unfamiliar if self.knows_familiar else None,
            "rejected": None if self.settings.cost is None else self.rejected,
            "rejected_share": share,
            "mean_set_size": size,
            "notes": self.notes(),
        }

    def _proba(self, X: Any) -> npt.NDArray[np.float64]:
        if not len(X):
            return np.empty((0, len(self.classes)))
        return np.asarray(self.saved.model.predict_proba(X))

    def _bounds(self, X: Any) -> Bounds:
        if not len(X):
            nothing = np.empty((0, len(self.classes)))
            return Bounds(nothing, nothing)
        if self.settings.level is None:
            return self.saved.model.predict_bounds(X)
        return self.saved.model.predict_bounds(X, level=self.settings.level)

    def _sets(self, X: Any, bounds: Bounds) -> Sets:
        model, rule = self.saved.model, self.settings.rule
        if self.coverage is not None and len(X):
            return model.predict_set(X, coverage=self.coverage)
        if not len(X) or rule != "maximality":
            return choose_set(bounds, rule)  # what every model does, its bounds being known
        # Some models decide maximality by more than their bounds.
        level = {} if self.settings.level is None else {"level": self.settings.level}
        return model.predict_set(X, rule=rule, **level)

    def _familiarity(self, X: Any) -> dict[str, Any]:
        model = self.saved.model
        familiarity = np.asarray(model.familiarity(X)) if len(X) else np.empty(0)
        self.unfamiliar += int((familiarity < model.rate).sum())
        if "familiarity" in self.settings.without:
            return {}
        return {"familiarity": familiarity.astype(np.float32 if self.settings.short else float)}

    def _rejected(
        self, proba: npt.NDArray[np.float64], bounds: Bounds | None, cost: float
    ) -> npt.NDArray[np.bool_]:
        if not len(proba):
            return np.empty(0, bool)
        strategy = self.settings.strategy
        if bounds is None or strategy == "probabilistic":  # Chow's rule
            return reject(proba, cost, "probabilistic")
        return reject(bounds, cost, strategy)

    def _numbers(self, prefix: str, values: npt.NDArray[np.float64]) -> dict[str, Any]:
        # Columns that lie one after the other in memory are written without a copy of each.
        table = np.asfortranarray(values, dtype=np.float32 if self.settings.short else np.float64)
        return {f"{prefix}{name}": table[:, k] for k, name in enumerate(self.classes)}


def decide_table(
    decider: Decider, table: Table, writer: TableWriter, advance: Callable[[int], None]
) -> None:
    """Decide on all rows of a table.

    Parameters
    ----------
    decider : Decider
        The model and what is asked of it.
    table : Table
        The rows.
    writer : TableWriter
        Where decisions go.
    advance : callable
        Told how many rows are done.
    """
    keep = decider.settings.keep
    kinds = model_types(decider.saved, table)
    read = dict.fromkeys(keep, "as_is") | kinds
    done = 0
    for frame in table.chunks(list(read), read, rows=_rows_at_once(decider, len(kinds))):
        X = model_inputs(decider.saved, frame[list(kinds)], path=table.path)
        decider.look_for_new_words(frame)
        with told_in(table.path):
            decided = decider.columns(X)
        writer.write(_row_columns(frame, keep, decided))
        done += len(frame)
        advance(len(frame))
    if not done:
        frame = table.read(list(read), read)
        writer.write(_row_columns(frame, keep, decider.columns(frame[list(kinds)])))


def _rows_at_once(decider: Decider, inputs: int) -> int:
    return chunk_rows(inputs + 8 * len(decider.classes))


def _row_columns(frame: Any, keep: list[str], decided: dict[str, Any]) -> dict[str, Any]:
    """Put the rows' numbers and the kept columns first."""
    taken = [name for name in keep if name in decided or name == "row"]
    if taken:
        raise CliError(
            f"kept columns may not be named like a result ({listed(taken)}). Rename them in the "
            "table, or leave them out of --keep."
        )
    kept = {name: pa.array(frame[name], from_pandas=True) for name in keep}
    return {"row": frame.index.to_numpy(), **kept, **decided}


def _set_words(classes: list[Any]) -> Callable[[Sets], pa.Array]:
    """Return what writes sets: a|b, or JSON lists where a class is named with | or from [ on."""
    texts = [str(name) for name in classes]
    if any(BETWEEN in text or text.startswith("[") for text in texts):
        alone = [json.dumps([name], ensure_ascii=False) for name in classes]

        def join(members: list[int]) -> str:
            return json.dumps([classes[k] for k in members], ensure_ascii=False)
    else:
        alone = texts

        def join(members: list[int]) -> str:
            return BETWEEN.join([texts[k] for k in members])

    def words(sets: Sets) -> pa.Array:
        first = np.asarray(alone, dtype=object)[sets.argmax(axis=1)]
        several = np.flatnonzero(sets.sum(axis=1) > 1)
        members = np.split(sets[several].nonzero()[1], sets[several].sum(axis=1).cumsum()[:-1])
        first[several] = [join(part.tolist()) for part in members[: len(several)]]
        return pa.array(first, pa.string())

    return words
