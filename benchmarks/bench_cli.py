"""`dubito predict` on a million rows, against pandas with the whole table in memory.

Both are processes of their own, from reading the table to the written decisions, start included;
both write the same columns with the same digits. Each runs once: it takes a while.
"""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import csv

from dubito.calibration import EvidentialMultinomialCalibrator
from dubito.saving import save

if TYPE_CHECKING:
    from collections.abc import Iterator

ROWS, CLASSES = 1_000_000, 10

#: The rival: a straightforward script for a table that fits into memory.
BY_PANDAS = """
import sys
import numpy as np
import pandas as pd
from dubito.decision import choose_set, reject
from dubito.saving import load

model, table, output = sys.argv[1:]
fitted = load(model)
X = pd.read_csv(table)[list(fitted.stamp.columns)].to_numpy()
bounds = fitted.model.predict_bounds(X)
proba = fitted.model.predict_proba(X)
sets = choose_set(bounds)
names = np.array([str(name) for name in fitted.stamp.classes], dtype=object)
decisions = pd.DataFrame({"prediction": names[proba.argmax(axis=1)]})
parts = {"p_": proba, "lower_": bounds.lower, "upper_": bounds.upper}
numbers = [pd.DataFrame(part.astype("float32"), columns=key + names) for key, part in parts.items()]
decisions = pd.concat([decisions, *numbers], axis=1)
words, sizes = names[sets.argmax(axis=1)], sets.sum(axis=1)
words[sizes > 1] = ["|".join(names[members]) for members in sets[sizes > 1]]
decisions["set"], decisions["set_size"] = words, sizes
decisions["rejected"] = reject(bounds, 0.2)
decisions.to_csv(output, index_label="row")
"""


class Spent(NamedTuple):
    """CPU time and peak memory of a process."""

    seconds: float  # CPU time
    memory: int  # peak


@dataclass(frozen=True, kw_only=True)
class OfProcesses:
    """A comparison of two processes that run once; see `comparison.Comparison`."""

    task: str
    rival: str
    target: float
    what: str  # "seconds" or "memory"

    def ratio(self) -> float:
        """Return the rival's time or memory over ours."""
        ours, theirs = both()
        return getattr(theirs, self.what) / getattr(ours, self.what)


@cache
def both() -> tuple[Spent, Spent]:
    """Return time and memory of ours and of the rival; their output must agree."""
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    model, table = folder / "model.skops", folder / "new.csv"
    rng = np.random.default_rng(0)
    labels = rng.integers(0, CLASSES, ROWS)
    scores = rng.normal(size=(ROWS, CLASSES))
    scores[np.arange(ROWS), labels] += 3
    names = [str(k) for k in range(CLASSES)]
    fitted = EvidentialMultinomialCalibrator().fit(scores[:2_000], labels[:2_000])
    save(fitted, model, columns=names, kind="scores")
    csv.write_csv(pa.table(dict(zip(names, scores.T, strict=True))), table)
    command = ["-m", "dubito.cli", "predict", model, table, "--reject-cost", 0.2, "-o"]
    ours = _spent(*command, folder / "ours.csv")
    theirs = _spent("-c", BY_PANDAS, model, table, folder / "theirs.csv")
    _check_same(folder / "ours.csv", folder / "theirs.csv")
    return ours, theirs


def comparisons() -> Iterator[OfProcesses]:
    """Yield all comparisons of the command line."""
    task = f"dubito predict, CSV to CSV, {ROWS:,} rows, K={CLASSES}"
    rival = "pandas in one piece: read_csv, the same model, to_csv"
    yield OfProcesses(task=task, rival=rival, target=2, what="seconds")
    yield OfProcesses(task=f"Peak memory of {task}", rival=rival, target=2, what="memory")


def _spent(*arguments: object) -> Spent:
    """Return CPU time and peak memory of a new Python process."""
    command = [sys.executable, *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:  # noqa: S603 - our own
        _, process.returncode, usage = os.wait4(process.pid, 0)
    if process.returncode:
        raise RuntimeError(f"{command[1:4]} failed")
    return Spent(usage.ru_utime + usage.ru_stime, usage.ru_maxrss)


def _check_same(ours: Path, theirs: Path) -> None:
    """Raise an error if the two outputs differ."""
    first, second = (csv.read_csv(path) for path in (ours, theirs))
    for name in second.column_names:
        a, b = (np.asarray(table[name].to_numpy(zero_copy_only=False)) for table in (first, second))
        same = np.allclose(a, b, atol=1e-6) if a.dtype.kind == "f" else np.array_equal(a, b)
        if not same:
            raise RuntimeError(f"the two differ in column {name}")


if __name__ == "__main__":
    for comparison in comparisons():
        print(f"{comparison.task}: {comparison.ratio():.2f} times less ({comparison.what})")
    print(*both(), sep="\n")
