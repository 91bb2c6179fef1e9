"""Saved models: loading them, the columns they take, labelled rows, and their outputs."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dubito import saving
from dubito._models import has_bounds, is_conformal
from dubito._validation import DEFAULT_COVERAGE
from dubito._wording import counted, name_ends
from dubito.belief import Bounds
from dubito.cli.console import CliError
from dubito.cli.labels import label_column, true_labels
from dubito.cli.tables import Table, chunk_rows, refuse_missing
from dubito.cli.training_data import digest
from dubito.metrics.evaluation import MOST_CELLS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    import numpy.typing as npt
    import pandas as pd

    from dubito._typing import BoolArray, FloatArray
    from dubito.saving import Saved


def load_models(paths: Sequence[Path], trust: Sequence[str]) -> dict[str, Saved]:
    """Return models by name: the stems of their files, or the whole paths if stems are equal."""
    stems = [path.stem for path in paths]
    names = stems if len(set(stems)) == len(stems) else [str(path) for path in paths]
    models: dict[str, Saved] = {}
    for name, path in zip(names, paths, strict=True):
        if name in models:
            raise CliError(f"{path} is named twice. Compare it with another model.")
        models[name] = saving.load(path, trusted=trust)
    _refuse_other_classes(models)
    return models


def training_file_note(models: dict[str, Saved], path: Path) -> str:
    """Return a note if models were trained on the file they are tested on; else empty."""
    training_digests = {name: saved.stamp.options.get("data") for name, saved in models.items()}
    test_digest = digest(path) if any(training_digests.values()) else None
    names = [
        name for name, data in training_digests.items() if data is not None and data == test_digest
    ]
    if not names:
        return ""
    return (
        f"note: {', '.join(names)} was trained on {path} itself, so these numbers are too "
        "good. Use rows it was not trained on."
    )


def _refuse_other_classes(models: dict[str, Saved]) -> None:
    (first, own), *others = models.items()
    for name, saved in others:
        if set(saved.stamp.classes) != set(own.stamp.classes):
            raise CliError(
                f"{first} and {name} know different classes ({name_ends(own.stamp.classes)}; "
                f"{name_ends(saved.stamp.classes)}). Models can be compared on the same classes "
                "only."
            )


def check_level_and_coverage(model: Any, level: float | None, coverage: float | None) -> None:
    """Raise an error for a level or a coverage that a model does not support."""
    name = type(model).__name__
    if level is not None and not has_bounds(model):
        raise CliError(
            f"{name} gives no bounds, so none at a level. Make a model that does, as dubito "
            "calibrate does by default, or leave --level out."
        )
    if coverage is not None and not is_conformal(model):
        raise CliError(
            f"{name} has no sets with a chosen coverage. Make a model that has: dubito calibrate "
            "--method conformal, or dubito train --conformal; or leave --coverage out."
        )


class LabelledChunk(NamedTuple):
    """Some rows: the inputs of the model, and the true labels."""

    X: Any
    y: npt.NDArray[Any]


def labelled_chunks(
    saved: Saved, path: Path, label: str | None, *, whole: bool = False
) -> Iterator[LabelledChunk]:
    """Yield the rows of a file as inputs of a model, with their labels.

    Parameters
    ----------
    saved : Saved
        The model.
    path : Path
        CSV or Parquet.
    label : str or None
        The column of labels; by default the one the model was fitted with.
    whole : bool
        Yield all rows at once.

    Yields
    ------
    LabelledChunk
    """
    table = Table(path)
    name = label_column(saved, label)
    if name not in table.names:
        raise table.missing(name, "It should hold the true labels; --label names another column.")
    types = model_types(saved, table, label=name)
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
        y = true_labels(saved, frame, label, path=path)
        yield LabelledChunk(model_inputs(saved, frame.drop(columns=name), path=path), y)
    if empty:
        raise CliError(f"{path} has column names and no rows. There is nothing to test on.")


class LabelledOutputs(NamedTuple):
    """True labels and the outputs of a model for all rows; None for bounds and sets it lacks."""

    y: npt.NDArray[Any]
    proba: FloatArray
    bounds: Bounds | None
    sets: BoolArray | None


def compute_outputs(
    saved: Saved,
    path: Path,
    label: str | None,
    advance: Callable[[int], None],
    *,
    level: float | None = None,
    coverage: float | None = None,
) -> LabelledOutputs:
    """Return the outputs of a model for all rows of a file, computed in chunks.

    Parameters
    ----------
    saved : Saved
        The model.
    path : Path
        CSV or Parquet.
    label : str or None
        The column of labels.
    advance : callable
        Called with the number of rows of each chunk.
    level : float or None
        Confidence level of the bounds.
    coverage : float or None
        Coverage of the sets, of conformal models.

    Returns
    -------
    LabelledOutputs
        Columns in the order of the model's classes.
    """
    parts: list[list[Any]] = []
    cells = 0
    bounded = has_bounds(saved.model)
    for chunk in labelled_chunks(saved, path, label):
        cells += len(chunk.y) * len(saved.stamp.classes)
        if cells > MOST_CELLS:
            raise CliError(
                f"{path} has more than {MOST_CELLS // len(saved.stamp.classes):,} rows, whose "
                f"probabilities of {len(saved.stamp.classes):,} classes would not fit into memory. "
                "Take a random sample of the rows."
            )
        with naming_file_in_errors(path):
            part = [chunk.y, saved.model.predict_proba(chunk.X)]
            if bounded:
                bounds, sets = bounds_and_sets(saved.model, chunk.X, level, coverage)
                part += [bounds.lower, bounds.upper, sets]
        parts.append(part)
        advance(len(chunk.y))
    y, proba, *rest = (np.concatenate(part) for part in zip(*parts, strict=True))
    if not bounded:
        return LabelledOutputs(y, proba, None, None)
    lower, upper, sets = rest
    return LabelledOutputs(y, proba, Bounds(lower, upper, level), sets)


def bounds_and_sets(
    model: Any, X: Any, level: float | None = None, coverage: float | None = None
) -> tuple[Bounds, BoolArray]:
    """Return the bounds of rows at a level, and the sets: of a conformal model with a coverage."""
    level_option = {} if level is None else {"level": level}
    conformal = is_conformal(model)
    set_options = {"coverage": coverage or DEFAULT_COVERAGE} if conformal else level_option
    bounds = model.predict_bounds(X, **level_option)
    return bounds, np.asarray(model.predict_set(X, **set_options))


def model_types(saved: Saved, table: Table, *, label: str | None = None) -> dict[str, str]:
    """Return the columns that a model takes, in its order, and the type each is read as.

    Parameters
    ----------
    saved : Saved
        The model and its stamp.
    table : Table
        The table that has these columns.
    label : str or None
        Its column of true labels, which no model takes; by default that of the stamp.

    Returns
    -------
    dict of str to str
        For `Table.read` and `Table.chunks`: name to "number" or "text".
    """
    stamp = saved.stamp
    if not stamp.columns:
        return _unnamed_columns(saved, table, label or stamp.label)
    for name in stamp.columns:
        if name not in table.names:
            raise table.missing(name, _fitted_on(stamp.columns), stamp.columns)
    return dict(zip(stamp.columns, stamp.column_types, strict=True))


def model_inputs(saved: Saved, frame: pd.DataFrame, *, path: str | Path) -> Any:
    """Return the inputs of the model's methods: an array of scores, or a table of features.

    Parameters
    ----------
    saved : Saved
        The model and its stamp.
    frame : DataFrame
        Rows with at least the columns of the model.
    path : str or Path
        Where they come from, for messages.

    Returns
    -------
    ndarray or DataFrame
        Scores (n, columns), or a table of the columns the model was fitted on.

    Raises
    ------
    CliError
        If a column is missing, or a cell that the model needs.
    """
    stamp = saved.stamp
    names = list(stamp.columns) or list(frame.columns)
    for name in names:
        if name not in frame.columns:
            raise CliError(f"column {name!r} is missing from {path}. {_fitted_on(names)}")
    inputs = frame[names]
    refuse_missing(inputs, path, empty_allowed=bool(stamp.options.get("impute")))
    if stamp.kind == "scores" or not stamp.columns:
        return inputs.to_numpy(dtype=float)
    return inputs


@contextmanager
def naming_file_in_errors(path: str | Path) -> Iterator[None]:
    """Turn a ValueError of a model into an error that names the file of its rows."""
    try:
        yield
    except ValueError as error:
        raise CliError(f"the model could not take the rows of {path}: {error}") from error


def _unnamed_columns(saved: Saved, table: Table, label: str | None) -> dict[str, str]:
    """Return the number columns of a table but the labels, for a model fitted on an array."""
    needed = getattr(saved.model, "n_features_in_", None)
    numbers = [name for name in table.number_columns() if name != label]
    if needed is not None and len(numbers) != needed:
        raise CliError(
            f"the model was fitted on {needed} columns without names, but {table.path} has "
            f"{counted(len(numbers), 'column')} of numbers ({name_ends(numbers)}). Keep those of "
            "the model only, in its order, or save the model with columns=."
        )
    return dict.fromkeys(numbers, "number")


def _fitted_on(names: Sequence[str]) -> str:
    return f"The model was fitted on columns {name_ends(names)}."
