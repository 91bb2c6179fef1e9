"""Calibration of a table of scores: read it, fit a calibrator, measure it on held-out rows."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import expit, softmax
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold

import dubito.calibration
from dubito._wording import counted, name_ends
from dubito.calibration import LabelMismatchWarning
from dubito.cli.calibrate import CALIBRATOR_CLASSES, JOINT, TARGETS
from dubito.cli.console import CliError
from dubito.cli.labels import as_classes, label_codes
from dubito.cli.score_columns import (
    ColumnOptions,
    ScoreColumns,
    match_classifiers,
    match_columns,
)
from dubito.cli.tables import Table, refuse_missing
from dubito.conformal import ConformalClassifier
from dubito.metrics import expected_calibration_error

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from dubito._typing import FloatArray, IntArray


#: Rows that sum to 1 within this tolerance look like rounded probabilities.
_SUM_TOLERANCE = 1e-3


@dataclass(frozen=True)
class CalibrationTask:
    """Scores and labels to calibrate on, and the calibration method.

    Parameters
    ----------
    scores : ndarray of shape (n, columns)
        Finite scores.
    codes : ndarray of int, shape (n,)
        Position of each row's label among the classes.
    match : ScoreColumns
        Columns and classes.
    method : str
        A key of `CALIBRATOR_CLASSES`.
    input : str
        What the scores are.
    targets : str or None
        Targets of the likelihood; None for the default of the method.
    notes : list of str
        Remarks on the file, printed before the fit.
    """

    scores: FloatArray
    codes: IntArray
    match: ScoreColumns
    method: str
    input: str
    targets: str | None
    notes: list[str]

    def fitted(self, rows: Any = slice(None)) -> Any:
        """Return the calibrator, fitted to some rows; all by default."""
        conformal = self.method == "conformal"
        name = CALIBRATOR_CLASSES["auto" if conformal else self.method]
        labels = np.asarray(self.match.classes)[self.codes[rows]]
        calibrator_class = getattr(dubito.calibration, name)
        calibrator = calibrator_class(classes=self.match.classes, **self.options())
        model = ConformalClassifier(calibrator) if conformal else calibrator
        return model.fit(self.scores[rows], labels)

    def options(self) -> dict[str, str]:
        """Return the calibrator's parameters, besides the classes."""
        return {"input": self.input} | ({"targets": self.targets} if self.targets else {})

    def as_dict(self) -> dict[str, Any]:
        """Return the facts about the task for the JSON output."""
        return {
            "rows": len(self.codes),
            "method": self.method,
            **self.options(),
            "columns": self.match.columns,
            "classes": self.match.classes,
            "left_out": self.match.left_out,
            "notes": self.notes,
        }


class CalibrationOptions(NamedTuple):
    """The options of the calibration; None where an option is not given."""

    method: str
    input: str | None
    targets: str | None


def read_task(
    path: Path, label: str, column_options: ColumnOptions, options: CalibrationOptions
) -> CalibrationTask:
    """Return the scores and labels of a table, with the calibration method.

    Parameters
    ----------
    path : Path
        The file.
    label : str
        Its column of labels.
    column_options : ColumnOptions
        Which columns hold the scores of which class.
    options : CalibrationOptions
        Method, kind of scores and targets.

    Returns
    -------
    CalibrationTask
    """
    table = Table(path)
    if label not in table.names:
        raise table.missing(label)
    column = table.read([label], {label: "as_is"})[label]
    truth = as_classes(column, path)
    if not len(truth):
        raise CliError(f"{path} has no rows below its column names. Calibration needs some.")
    labels = np.unique(truth).tolist()
    matcher = match_classifiers if options.method == JOINT else match_columns
    match = matcher(table, label, labels, column_options)
    frame = table.read(match.columns, dict.fromkeys(match.columns, "number"))
    refuse_missing(frame, path)
    task = CalibrationTask(
        scores=frame.to_numpy(),
        codes=label_codes(column, match.classes, path=path),
        match=match,
        method=options.method,
        input=options.input or "margin",
        targets=options.targets,
        notes=[],
    )
    if options.targets is not None and options.method not in TARGETS:
        raise CliError(f"--targets goes with {', '.join(TARGETS)}, not with {options.method}.")
    if options.input == "log_proba" and (options.method == JOINT or len(match.columns) == 1):
        raise CliError(
            "--input log_proba needs a column for each class, of one classifier. The columns are "
            f"{name_ends(match.columns)}. For log-odds, ln p - ln(1 - p), say --input margin."
        )
    return replace(task, notes=_notes(task, table, options.input))


def choose_folds(task: CalibrationTask, cv: int) -> tuple[int, str]:
    """Return the number of folds that the rarest class allows, and why it is less than `cv`."""
    if cv == 0:
        return 0, "not asked for"
    if cv == 1:
        raise CliError("--cv 1 leaves no rows to fit on. Say 2 or more, or 0 for no numbers.")
    counts = np.bincount(task.codes, minlength=len(task.match.classes))
    rarest = int(np.argmin(np.where(counts > 0, counts, len(task.codes))))
    fewest = int(counts[rarest])
    if fewest >= cv:
        return cv, ""
    why = f"class {task.match.classes[rarest]} has only {counted(fewest, 'row')}"
    return (fewest, why) if fewest > 1 else (0, why)


def held_out_errors(
    task: CalibrationTask, folds: int, seed: int, advance: Callable[[int], None]
) -> dict[str, float | None]:
    """Return the held-out log loss and ECE, before and after calibration.

    Parameters
    ----------
    task : CalibrationTask
        Scores, labels and method.
    folds : int
        Folds of the cross-validation; with 0 all values are None.
    seed : int
        Seed of the folds.
    advance : callable
        Called with 1 after each fit.

    Returns
    -------
    dict of str to float or None
    """
    if not folds:
        return dict.fromkeys(["log_loss_before", "log_loss_after", "ece_before", "ece_after"])
    before = _as_probabilities(task)
    after = np.empty((len(task.codes), len(task.match.classes)))
    splits = StratifiedKFold(folds, shuffle=True, random_state=seed)
    for rows, held_out in splits.split(task.scores, task.codes):
        with warnings.catch_warnings():  # the fit on all rows repeats it
            warnings.simplefilter("ignore", LabelMismatchWarning)
            model = task.fitted(rows)
        after[held_out] = model.predict_proba(task.scores[held_out])
        advance(1)
    return {
        "log_loss_before": _log_loss(task, before),
        "log_loss_after": _log_loss(task, after),
        "ece_before": expected_calibration_error(task.codes, before),
        "ece_after": expected_calibration_error(task.codes, after),
    }


def selection_summary(model: Any) -> dict[str, str]:
    """Return the summary of a calibrator that selects among several; else an empty dict."""
    return {"chosen": model.summary_} if hasattr(model, "summary_") else {}


def start_line(task: CalibrationTask) -> str:
    """Return the line printed before the fit: rows, classes and method."""
    columns, classes = task.match.columns, task.match.classes
    names = name_ends(columns, shown=3, gap="…")
    if task.method == JOINT:
        what = f"{counted(len(columns), 'classifier')} ({names}) of 2 classes"
    else:
        noun = "column" if len(columns) == 1 else "columns"
        what = f"{len(classes):,} classes ({noun} {names})"
    meaning = f", scores taken as {task.input}"
    if len(columns) == 1 or task.method == JOINT:
        meaning += f", higher meaning {classes[1]}"
    return f"Read {len(task.codes):,} rows, {what}. Calibrating: {task.method}{meaning} …"


def result_line(
    task: CalibrationTask, numbers: dict[str, float | None], folds: int, why: str
) -> str:
    """Return the line printed after the fit: log loss and ECE before and after."""
    if not folds:
        return f"no held-out numbers ({why})"
    best = f" (best of {len(task.match.columns)} alone)" if task.method == JOINT else ""
    return (
        f"log loss {numbers['log_loss_before']:.3f}{best} → {numbers['log_loss_after']:.3f} · "
        f"ECE {numbers['ece_before']:.3f} → {numbers['ece_after']:.3f} "
        f"({folds}-fold cross-validation{f': {why}' if why else ''})"
    )


def _notes(task: CalibrationTask, table: Table, input: str | None) -> list[str]:
    notes = [f"{table.path} is {table.note}."] if table.note else []
    if task.match.left_out:
        notes.append(f"left out: {name_ends(task.match.left_out)}.")
    if input is None and _look_like_probabilities(task):
        notes.append(
            "the scores look like probabilities but are taken as margins. If they are "
            "probabilities, say --input proba."
        )
    return notes


def _look_like_probabilities(task: CalibrationTask) -> bool:
    scores = task.scores
    if scores.min() < 0 or scores.max() > 1:
        return False
    separate = scores.shape[1] == 1 or task.method == JOINT  # columns need not sum to 1
    return separate or bool((abs(scores.sum(axis=1) - 1) < _SUM_TOLERANCE).all())


def _as_probabilities(task: CalibrationTask) -> FloatArray:
    """Return the scores as probabilities; of several classifiers, those with the least log loss."""
    scores = task.scores
    if scores.shape[1] > 1 and task.method != JOINT:
        if task.input != "proba":
            return np.asarray(softmax(scores, axis=1))
        return scores / scores.sum(axis=1, keepdims=True)  # removes rounding errors of the file
    of_second_class = scores if task.input == "proba" else expit(scores)
    each = [np.column_stack([1 - column, column]) for column in of_second_class.T]
    return min(each, key=lambda proba: _log_loss(task, proba))


def _log_loss(task: CalibrationTask, proba: FloatArray) -> float:
    return float(log_loss(task.codes, proba, labels=range(proba.shape[1])))
