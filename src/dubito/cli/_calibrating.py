"""The work of `dubito calibrate`: read, pair columns with classes, fit, judge on rows held out."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import expit, softmax
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold

import dubito.calibration
from dubito._checks import counted
from dubito.calibration import LabelMismatchWarning
from dubito.cli._calibrate import JOINT, METHODS, TARGETS
from dubito.cli._console import CliError
from dubito.cli._inputs import as_classes, label_codes, refuse_missing
from dubito.cli._matching import Match, Said, match_classifiers, match_columns
from dubito.cli._tables import Table, listed
from dubito.conformal import ConformalClassifier
from dubito.metrics import expected_calibration_error

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

#: How far from 1 the sum of a row may be for the scores to look like probabilities.
_ROUNDING = 1e-3


@dataclass(frozen=True)
class Task:
    """What is to be calibrated, and how.

    Parameters
    ----------
    scores : ndarray of shape (n, columns)
        Finite scores.
    codes : ndarray of int, shape (n,)
        Position of each row's label among the classes.
    match : Match
        Columns and classes.
    method : str
        A key of `METHODS`.
    input : str
        What the scores are.
    targets : str or None
        What the likelihood is asked to predict, where that was said.
    notes : list of str
        What whoever reads the output should know.
    """

    scores: Floats
    codes: npt.NDArray[np.intp]
    match: Match
    method: str
    input: str
    targets: str | None
    notes: list[str]

    def fitted(self, rows: Any = slice(None)) -> Any:
        """Return the calibrator, fitted to some rows."""
        conformal = self.method == "conformal"
        maker = getattr(dubito.calibration, METHODS["auto" if conformal else self.method])
        labels = np.asarray(self.match.classes)[self.codes[rows]]
        calibrator = maker(classes=self.match.classes, **self.options())
        model = ConformalClassifier(calibrator) if conformal else calibrator
        return model.fit(self.scores[rows], labels)

    def options(self) -> dict[str, str]:
        """Return the calibrator's options, besides the classes."""
        return {"input": self.input} | ({"targets": self.targets} if self.targets else {})

    def described(self) -> dict[str, Any]:
        """Return what was read and how it was taken, as plain values."""
        return {
            "rows": len(self.codes),
            "method": self.method,
            **self.options(),
            "columns": self.match.columns,
            "classes": self.match.classes,
            "left_out": self.match.left_out,
            "notes": self.notes,
        }


class How(NamedTuple):
    """What the command line says about the calibration; None where it says nothing."""

    method: str
    input: str | None
    targets: str | None


def read_task(path: Path, label: str, said: Said, how: How) -> Task:
    """Read a table of scores and labels.

    Parameters
    ----------
    path : Path
        The file.
    label : str
        Its column of labels.
    said : Said
        What the command line says about columns and classes.
    how : How
        What it says about the calibration; the rest is chosen here.

    Returns
    -------
    Task
    """
    table = Table(path)
    if label not in table.names:
        raise table.missing(label)
    column = table.read([label], {label: "as_is"})[label]
    truth = as_classes(column, path)
    if not len(truth):
        raise CliError(f"{path} has no rows below its column names. Calibration needs some.")
    labels = np.unique(truth).tolist()
    find = match_classifiers if how.method == JOINT else match_columns
    match = find(table, label, labels, said)
    frame = table.read(match.columns, dict.fromkeys(match.columns, "number"))
    refuse_missing(frame, path)
    task = Task(
        scores=frame.to_numpy(),
        codes=label_codes(column, match.classes, path=path),
        match=match,
        method=how.method,
        input=how.input or "margin",
        targets=how.targets,
        notes=[],
    )
    if how.targets is not None and how.method not in TARGETS:
        raise CliError(f"--targets goes with {', '.join(TARGETS)}, not with {how.method}.")
    return replace(task, notes=_notes(task, table, how.input))


def choose_folds(task: Task, cv: int) -> tuple[int, str]:
    """Return how many folds the rarest class allows, and why fewer than were asked for."""
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


def judge(
    task: Task, folds: int, seed: int, advance: Callable[[int], None]
) -> dict[str, float | None]:
    """Return log loss and ECE of rows held out of the fit, before and after calibration.

    Parameters
    ----------
    task : Task
        What is calibrated.
    folds : int
        Folds of the cross-validation; 0: no numbers.
    seed : int
        Seed of the folds.
    advance : callable
        Told about each fit.

    Returns
    -------
    dict of str to float or None
    """
    if not folds:
        return dict.fromkeys(["log_loss_before", "log_loss_after", "ece_before", "ece_after"])
    before = _as_probabilities(task)
    after = np.empty((len(task.codes), len(task.match.classes)))
    splits = StratifiedKFold(folds, shuffle=True, random_state=seed)
    for rows, held in splits.split(task.scores, task.codes):
        with warnings.catch_warnings():  # the fit to all rows says it once
            warnings.simplefilter("ignore", LabelMismatchWarning)
            model = task.fitted(rows)
        after[held] = model.predict_proba(task.scores[held])
        advance(1)
    return {
        "log_loss_before": _log_loss(task, before),
        "log_loss_after": _log_loss(task, after),
        "ece_before": expected_calibration_error(task.codes, before),
        "ece_after": expected_calibration_error(task.codes, after),
    }


def chosen(model: Any) -> dict[str, str]:
    """Return what a calibrator that chooses has chosen, in its own words; else nothing."""
    return {"chosen": model.summary_} if hasattr(model, "summary_") else {}


def opening(task: Task) -> str:
    """Say what was read and what is being done."""
    columns, classes = task.match.columns, task.match.classes
    if task.method == JOINT:
        what = f"{counted(len(columns), 'classifier')} ({_span(columns)}) of 2 classes"
    else:
        of = "column" if len(columns) == 1 else "columns"
        what = f"{len(classes):,} classes ({of} {_span(columns)})"
    taken = f", scores taken as {task.input}"
    if len(columns) == 1 or task.method == JOINT:
        taken += f", higher meaning {classes[1]}"
    return f"Read {len(task.codes):,} rows, {what}. Calibrating: {task.method}{taken} …"


def closing(task: Task, numbers: dict[str, float | None], folds: int, why: str) -> str:
    """Say what came of it."""
    if not folds:
        return f"no held-out numbers ({why})"
    best = f" (best of {len(task.match.columns)} alone)" if task.method == JOINT else ""
    return (
        f"log loss {numbers['log_loss_before']:.3f}{best} → {numbers['log_loss_after']:.3f} · "
        f"ECE {numbers['ece_before']:.3f} → {numbers['ece_after']:.3f} "
        f"({folds}-fold cross-validation{f': {why}' if why else ''})"
    )


def _notes(task: Task, table: Table, input: str | None) -> list[str]:
    notes = [f"{table.path} is {table.note}."] if table.note else []
    if task.match.left_out:
        notes.append(f"left out: {listed(task.match.left_out)}.")
    if input is None and _look_like_probabilities(task):
        notes.append(
            "the scores look like probabilities but are taken as margins. If they are "
            "probabilities, say --input proba."
        )
    return notes


def _look_like_probabilities(task: Task) -> bool:
    scores = task.scores
    if scores.min() < 0 or scores.max() > 1:
        return False
    alone = scores.shape[1] == 1 or task.method == JOINT
    return alone or bool((abs(scores.sum(axis=1) - 1) < _ROUNDING).all())


def _as_probabilities(task: Task) -> Floats:
    """Return the scores read as probabilities; of several classifiers, those of the best alone."""
    scores = task.scores
    if scores.shape[1] > 1 and task.method != JOINT:
        if task.input != "proba":
            return np.asarray(softmax(scores, axis=1))
        return scores / scores.sum(axis=1, keepdims=True)  # exactly, where they were rounded
    second = scores if task.input == "proba" else expit(scores)
    each = [np.column_stack([1 - column, column]) for column in second.T]
    return min(each, key=lambda proba: _log_loss(task, proba))


def _log_loss(task: Task, proba: Floats) -> float:
    return float(log_loss(task.codes, proba, labels=range(proba.shape[1])))


def _span(names: list[str]) -> str:
    return ", ".join(names) if len(names) <= 3 else f"{names[0]}…{names[-1]}"
