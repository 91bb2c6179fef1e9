"""Compare default calibration with other libraries, and write QUALITY.md (`make bench`).

`python benchmarks/quality.py` continues an earlier run (losses are kept in the folder named by
--keep); `--again METHOD` computes one method again, `--only DATA ...` only some data sets.
Takes about an hour on two cores.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from rival_calibrators import RIVALS, run_rival
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from dubito.calibration import CalibratedClassifier
from dubito.datasets import load

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    Array = npt.NDArray[np.float64]
    #: Mean log loss of each method over the splits of one cell: data set, model, size.
    Cells = dict[tuple[str, str, int], dict[str, float]]

#: All tables of the catalogue except wine and optdigits: constants were chosen on wine and on
#: digits, a part of optdigits.
DATA = (
    "australian", "dermatology", "diabetes", "dna", "forest", "heart", "ionosphere", "iris",
    "letter", "micromass", "pendigits", "saheart", "satimage", "seeds", "segment", "usps",
    "vehicle", "vowel", "wallrobot", "waveform", "winequality_red",
)  # fmt: skip
SIZES = (20, 100, 1000)
SPLITS = 3
OURS = "dubito"
#: Largest numbers of rows to train, to calibrate and to test.
MOST_TRAINING, MOST_CALIBRATION, MOST_TEST = 1200, 1000, 3000
HERE = Path(__file__).parent

HEAD = f"""# Calibration, measured

Written by `make bench` (`benchmarks/quality.py`; the extra `bench` installs the rivals). Mean log
loss on test rows, lower is better. {len(DATA)} data sets, not those that chose constants (below).
Six models with scikit-learn's default parameters (features standardised but for the trees; boosting
with 50 rounds): logistic regression, naive Bayes, random forest, gradient boosting, support vector
machine, network. {SPLITS} splits: 40 % of the rows, at most {MOST_TRAINING}, train; 20, 100 and
1,000 other rows calibrate, at least one of each class among them; up to {MOST_TEST} test. A cell is
a data set, a model and a size, its loss the mean of the splits. Sizes for which a data set has less
than 60 % of the rows are left out. dubito is `CalibratedClassifier(FrozenEstimator(model))`, no
more. Rivals get the same model and rows; those that read probabilities get the softmax of the
scores of the support vector machine.

What chose what: limit, gain, folds, prior weights and row limits of `AutoCalibrator` were chosen on
digits, breast cancer and wine and on variants of them with few features, noisy labels or merged
classes; how scores of each kind of model are read on the first three too, but that satimage was
looked at while ways to limit log-probabilities of naive Bayes were compared.

"Behind" counts the cells in which a method loses more than 5 % to the best of the other libraries'
methods, with hindsight; ranks are among all eleven.

"""


class Task(NamedTuple):
    """A fitted model, rows to calibrate on, and rows to test on; labels are 0..K-1."""

    model: Any
    X: Array
    y: npt.NDArray[np.intp]
    X_test: Array
    y_test: npt.NDArray[np.intp]

    def first(self, size: int) -> Task:
        """Return the task with fewer rows to calibrate on, at least one of each class."""
        one_each = np.unique(self.y, return_index=True)[1]
        others = np.setdiff1d(np.arange(len(self.y)), one_each)
        rows = np.concatenate([one_each, others[: max(size - len(one_each), 0)]])
        return self._replace(X=self.X[rows], y=self.y[rows])

    def loss(self, method: str) -> float:
        """Return the log loss of one method, or infinity where it fails."""
        if method == OURS:
            fitted = CalibratedClassifier(FrozenEstimator(self.model)).fit(self.X, self.y)
            proba = fitted.predict_proba(self.X_test)
        else:
            try:
                proba = run_rival(method, self.model, self.X, self.y, self.X_test)
            except (ValueError, IndexError, RuntimeError) as error:
                print(f"{method}: {type(error).__name__}: {error}", file=sys.stderr)
                return np.inf
        with warnings.catch_warnings():  # rows of some rivals do not quite sum to 1
            warnings.simplefilter("ignore")
            return float(log_loss(self.y_test, proba, labels=np.arange(proba.shape[1])))


def models(seed: int) -> dict[str, Any]:
    """Return the six models."""
    trees = {
        "forest": RandomForestClassifier(random_state=seed),
        "boosting": HistGradientBoostingClassifier(max_iter=50, random_state=seed),
    }
    scaled = {
        "logistic": LogisticRegression(max_iter=1000),
        "bayes": GaussianNB(),
        "svm": SVC(),
        "network": MLPClassifier(random_state=seed),
    }
    return trees | {name: make_pipeline(StandardScaler(), m) for name, m in scaled.items()}


def split(name: str, seed: int) -> tuple[Any, ...]:
    """Return rows and labels to train, to calibrate and to test on."""
    data = load(name)
    X = SimpleImputer().fit_transform(data.X)
    y = np.unique(data.y, return_inverse=True)[1]
    X, X_rest, y, y_rest = train_test_split(
        X, y, train_size=min(int(0.4 * len(X)), MOST_TRAINING), stratify=y, random_state=seed
    )
    X_cal, X_test, y_cal, y_test = train_test_split(
        X_rest,
        y_rest,
        train_size=min(len(X_rest) // 2, MOST_CALIBRATION),
        stratify=y_rest,
        random_state=seed,
    )
    return X, y, X_cal, y_cal, X_test[:MOST_TEST], y_test[:MOST_TEST]


def tasks(name: str, seed: int) -> Iterator[tuple[str, Task]]:
    """Yield each model, fitted, with its rows."""
    X, y, *rows = split(name, seed)
    for label, model in models(seed).items():
        with warnings.catch_warnings():  # the network stops before its optimum
            warnings.simplefilter("ignore")
            model.fit(X, y)
        yield label, Task(model, *rows)


def measure(data: list[str], keep: Path, again: list[str]) -> None:
    """Compute the losses that are missing, one file for each data set and split."""
    keep.mkdir(parents=True, exist_ok=True)
    methods = [OURS, *RIVALS]
    for name in data:
        for seed in range(SPLITS):
            path = keep / f"{name}-{seed}.json"
            known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
            if known and not again and all(set(methods) <= set(v) for v in known.values()):
                continue
            for label, task in tasks(name, seed):
                for size in SIZES:
                    if len(task.y) < 0.6 * size:
                        continue
                    losses = known.setdefault(f"{label}|{size}", {})
                    few = task.first(size)
                    losses |= {m: few.loss(m) for m in methods if m in again or m not in losses}
            draft = path.with_suffix(".tmp")
            draft.write_text(json.dumps(known), encoding="utf-8")
            draft.replace(path)
            print(f"{name}, split {seed}", file=sys.stderr, flush=True)


def read_cells(data: list[str], keep: Path) -> Cells:
    """Return the mean losses of all cells."""
    losses: dict[tuple[str, str, int], list[dict[str, float]]] = {}
    for name in data:
        for seed in range(SPLITS):
            path = keep / f"{name}-{seed}.json"
            for key, values in json.loads(path.read_text(encoding="utf-8")).items():
                label, size = key.split("|")
                losses.setdefault((name, label, int(size)), []).append(values)
    return {
        cell: {method: float(np.mean([v[method] for v in values])) for method in values[0]}
        for cell, values in losses.items()
    }


def summary(cells: Cells) -> list[str]:
    """Return the rows of the first table: results of each method at each size."""
    lines = [
        "| size | cells | method | > 5 % behind best other | mean rank | at least temperature |"
    ]
    lines += ["|---|---|---|---|---|---|"]
    for size in SIZES:
        losses = [values for (_, _, n), values in cells.items() if n == size]
        if not losses:
            continue
        table = np.array([[values[m] for m in (OURS, *RIVALS)] for values in losses])
        rank = 1 + (table[:, None, :] < table[:, :, None]).sum(axis=2)
        temperature = table[:, 1 + list(RIVALS).index("scikit-learn temperature")]
        for k, method in sorted(enumerate((OURS, *RIVALS)), key=lambda m: rank[:, m[0]].mean()):
            others = np.delete(table, [0, k], axis=1).min(axis=1)  # dubito is not among the others
            behind = np.mean(table[:, k] > 1.05 * others)
            lines.append(
                f"| {size} | {len(table)} | {method} | {behind:.1%} | {rank[:, k].mean():.2f} | "
                f"{np.mean(table[:, k] <= temperature):.0%} |"
            )
    return lines


def by_data(cells: Cells) -> list[str]:
    """Return the second table: mean losses over the six models, for each data set and size."""
    shown = (OURS, "scikit-learn temperature", "probmetrics logistic", "venn-abers")
    lines = ["| data set | size | " + " | ".join(shown) + " | best rival of each model |"]
    lines += ["|---|---|" + "---|" * (len(shown) + 1)]
    for name, size in sorted({(n, s) for n, _, s in cells}, key=lambda pair: pair[::-1]):
        group = [v for (n, _, s), v in cells.items() if (n, s) == (name, size)]
        means = [np.mean([v[m] for v in group]) for m in shown]
        best = np.mean([min(v[m] for m in RIVALS) for v in group])
        lines.append(
            f"| {name} | {size} | " + " | ".join(f"{x:.3f}" for x in (*means, best)) + " |"
        )
    return lines


def behind(cells: Cells) -> list[str]:
    """Return the third table: the cells in which dubito is more than 5 % behind."""
    lines = [
        "| data set | model | size | dubito | best rival | its loss |",
        "|---|---|---|---|---|---|",
    ]
    for (name, label, size), values in sorted(cells.items(), key=lambda item: item[0][::-1]):
        best = min(RIVALS, key=lambda method: values[method])
        if values[OURS] > 1.05 * values[best]:
            losses = f"{values[OURS]:.3f} | {best} | {values[best]:.3f}"
            lines.append(f"| {name} | {label} | {size} | {losses} |")
    return lines


def write(cells: Cells) -> None:
    """Write the page and the losses of all cells."""
    parts = [HEAD, *summary(cells), "", "## By data set, mean of the six models", ""]
    parts += [*by_data(cells), "", "## Where dubito is more than 5 % behind the best rival", ""]
    draft = HERE / "QUALITY.tmp"
    draft.write_text("\n".join([*parts, *behind(cells), ""]), encoding="utf-8")
    draft.replace(HERE / "QUALITY.md")
    with (HERE / "quality_cells.csv").open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(["data", "model", "size", OURS, *RIVALS])
        for cell, values in sorted(cells.items()):
            table.writerow([*cell, *(f"{values[m]:.5g}" for m in (OURS, *RIVALS))])


def main() -> None:
    """Measure what is missing; with all data sets, write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keep", type=Path, default=HERE / ".quality", metavar="FOLDER")
    parser.add_argument("--again", action="append", default=[], metavar="METHOD")
    parser.add_argument("--only", nargs="+", default=list(DATA), metavar="DATA")
    options = parser.parse_args()
    measure(options.only, options.keep, options.again)
    cells = read_cells(options.only, options.keep)
    if options.only == list(DATA):
        write(cells)
    print("\n".join(summary(cells)))


if __name__ == "__main__":
    main()
