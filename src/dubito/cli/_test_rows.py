"""Saved models and the labelled rows they are tested on, for `evaluate` and `report`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.pipeline import Pipeline

from dubito import saving
from dubito._promises import is_conformal
from dubito.belief import Bounds
from dubito.cli._console import CliError
from dubito.cli._inputs import label_column, model_inputs, model_types, told_in, truth
from dubito.cli._tables import Table, chunk_rows, listed
from dubito.cli._training_data import digest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    import numpy.typing as npt

    from dubito._checks import BoolArray, FloatArray
    from dubito.saving import Saved

#: Coverage of the sets of conformal models unless another is asked for.
DEFAULT_COVERAGE = 0.9
#: Probabilities (rows x classes) that are kept of one model: 1.2 GB with its bounds.
MOST_CELLS = 50_000_000


def load_models(paths: Sequence[Path], trust: Sequence[str]) -> dict[str, Saved]:
    """Load models and name them by their files, shortly where that tells them apart."""
    stems = [path.stem for path in paths]
    names = stems if len(set(stems)) == len(stems) else [str(path) for path in paths]
    models: dict[str, Saved] = {}
    for name, path in zip(names, paths, strict=True):
        if name in models:
            raise CliError(f"{path} is named twice. Compare it with another model.")
        models[name] = saving.load(path, trusted=trust)
    _refuse_other_classes(models)
    return models


def trained_on(models: dict[str, Saved], path: Path) -> str:
    """Say that models were trained on the very file they are tested on; nothing otherwise."""
    made_of = {name: saved.stamp.options.get("data") for name, saved in models.items()}
    own = digest(path) if any(made_of.values()) else None
    names = [name for name, data in made_of.items() if data is not None and data == own]
    if not names:
        return ""
    return (
        f"note: {', '.join(names)} was trained on {path} itself, so this tells how well it "
        "remembers, not how well it decides. Test it on rows it has not seen."
    )


def _refuse_other_classes(models: dict[str, Saved]) -> None:
    (first, own), *others = models.items()
    for name, saved in others:
        if set(saved.stamp.classes) != set(own.stamp.classes):
            raise CliError(
                f"{first} and {name} know different classes ({listed(own.stamp.classes)}; "
                f"{listed(saved.stamp.classes)}). Models can be compared on the same classes only."
            )


def gives_bounds(model: Any) -> bool:
    """Whether a model has lower and upper probabilities."""
    core = model.steps[-1][1] if isinstance(model, Pipeline) else model
    return hasattr(core, "predict_bounds")


def check_promises(model: Any, level: float | None, coverage: float | None) -> None:
    """Refuse a level or a coverage that a model cannot promise, and say what can."""
    name = type(model).__name__
    if level is not None and not gives_bounds(model):
        raise CliError(
            f"{name} gives no bounds, so none at a level. Make a model that does, as dubito "
            "calibrate does by default, or leave --level out."
        )
    if coverage is not None and not is_conformal(model):
        raise CliError(
            f"{name} has no sets with a promised coverage. Make a model that has: dubito calibrate "
            "--method conformal, or dubito train --conformal; or leave --coverage out."
        )


class Chunk(NamedTuple):
    """Some rows: what the model takes, and the true labels."""

    X: Any
    y: npt.NDArray[Any]


def labelled_chunks(
    saved: Saved, path: Path, label: str | None, *, whole: bool = False
) -> Iterator[Chunk]:
    """Yield the rows of a file as a model takes them, with their labels.

    Parameters
    ----------
    saved : Saved
        The model.
    path : Path
        CSV or Parquet.
    label : str or None
        The column of labels; by default the model's own.
    whole : bool
        Yield all rows at once.

    Yields
    ------
    Chunk
    """
    table = Table(path)
    name = label_column(saved, label)
    if name not in table.names:
        raise table.missing(name, "It should hold the true labels; --label names another column.")
    types = model_types(saved, table)
    if name in types:
        raise CliError(
            f"column {name!r} is one the model decides by, so it cannot hold the true labels. "
            "--label names the column that does."
        )
    types |= {name: "as_is"}
    if whole:
        frames = iter([table.read(list(types), types)])
    else:
        frames = table.chunks(list(types), types, chunk_rows(len(types)))
    empty = True
    for frame in frames:
        if frame.empty:
            continue
        empty = False
        y = truth(saved, frame, label, path=path)
        yield Chunk(model_inputs(saved, frame, path=path), y)
    if empty:
        raise CliError(f"{path} has column names and no rows. There is nothing to test on.")


class Answers(NamedTuple):
    """What a model answers for all rows; no bounds and sets where it has none."""

    y: npt.NDArray[Any]
    proba: FloatArray
    bounds: Bounds | None
    sets: BoolArray | None


def answers_of(
    saved: Saved,
    path: Path,
    label: str | None,
    done: Callable[[int], None],
    *,
    level: float | None = None,
    coverage: float | None = None,
) -> Answers:
    """Ask a model about all rows of a file, some at a time.

    Parameters
    ----------
    saved : Saved
        The model.
    path : Path
        CSV or Parquet.
    label : str or None
        The column of labels.
    done : callable
        Told how many rows more are done.
    level : float or None
        Confidence level of the bounds.
    coverage : float or None
        Coverage of the sets, of conformal models.

    Returns
    -------
    Answers
        Columns in the order of the model's classes.
    """
    parts: list[list[Any]] = []
    cells = 0
    cautious = gives_bounds(saved.model)
    at = {} if level is None else {"level": level}
    chosen = {"coverage": coverage or DEFAULT_COVERAGE} if is_conformal(saved.model) else at
    for chunk in labelled_chunks(saved, path, label):
        cells += len(chunk.y) * len(saved.stamp.classes)
        if cells > MOST_CELLS:
            raise CliError(
                f"{path} has more than {MOST_CELLS // len(saved.stamp.classes):,} rows, whose "
                f"probabilities of {len(saved.stamp.classes):,} classes would not fit into memory. "
                "Take a part of the rows: a sample tells as much."
            )
        with told_in(path):
            asked = [chunk.y, saved.model.predict_proba(chunk.X)]
            if cautious:
                bounds = saved.model.predict_bounds(chunk.X, **at)
                asked += [bounds.lower, bounds.upper, saved.model.predict_set(chunk.X, **chosen)]
        parts.append(asked)
        done(len(chunk.y))
    y, proba, *doubt = (np.concatenate(part) for part in zip(*parts, strict=True))
    if not cautious:
        return Answers(y, proba, None, None)
    lower, upper, sets = doubt
    return Answers(y, proba, Bounds(lower, upper, level), sets)
