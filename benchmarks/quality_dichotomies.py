"""Measure nested dichotomies before and after their defaults, and write DICHOTOMIES.md.

``python benchmarks/quality_dichotomies.py`` takes some minutes, nearly all of them for the recipes
that the command line had before; ``--after`` leaves those out and writes nothing.
"""

from __future__ import annotations

import sys
from pathlib import Path
from time import process_time
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import softmax
from sklearn.datasets import load_digits
from sklearn.preprocessing import StandardScaler

from dubito.calibration import EvidentialLogisticCalibrator
from dubito.datasets import load
from dubito.decision import reject
from dubito.dichotomies import NestedDichotomyClassifier, NestedDichotomyEnsemble
from dubito.metrics import expected_calibration_error

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.intp]

HEAD = """# Nested dichotomies, measured

Written by `python benchmarks/quality_dichotomies.py`. Each cell: calibration error / log loss /
error / fraction declined at a cost of 0.2 by the model's own bounds (pignistic; pessimistic) /
error of the rows that are not declined; the last column is the CPU seconds of a fit on one core.
`before`: the defaults up to now, `recipe, before`: `dubito train --model` up to now. The oracle
knows the centres: it is what declining costs where classes overlap. Constants were chosen on
digits and on simulated classes; letter, vowel, pendigits and optdigits chose nothing. digits is a
part of optdigits.

"""
TEST_ROWS = 2000
COST = 0.2


class Problem(NamedTuple):
    """Rows to fit, rows to predict, and the true probabilities where they are known."""

    X: Floats
    y: Ints
    X_new: Floats
    y_new: Ints
    truth: Floats | None = None


def gaussians(spread: float, n_features: int, *, n_classes: int = 200, per_class: int = 10) -> Any:
    """Return a problem of Gaussian classes that come in groups of about fourteen."""
    rng = np.random.default_rng(0)
    groups = rng.normal(size=(round(n_classes**0.5), n_features))
    own = rng.normal(size=(n_classes, n_features))
    centres = spread * (0.6 * groups[rng.integers(len(groups), size=n_classes)] + 0.8 * own)
    y = np.repeat(np.arange(n_classes), per_class)
    y_new = rng.integers(n_classes, size=TEST_ROWS)
    X, X_new = (centres[of] + rng.normal(size=(len(of), n_features)) for of in (y, y_new))
    truth = softmax(X_new @ centres.T - (centres**2).sum(axis=1) / 2, axis=1)
    return Problem(X, y, X_new, y_new, truth)


def real(name: str, per_class: int) -> Problem:
    """Return `per_class` rows of each class of real data, standardised, and up to 2,000 others."""
    if name == "digits":
        X, y = load_digits(return_X_y=True)
    else:
        bunch = load(name)
        X, y = np.asarray(bunch.X, dtype=float), np.unique(bunch.y, return_inverse=True)[1]
    rng = np.random.default_rng(0)
    of_class = [rng.permutation(np.flatnonzero(y == k))[:per_class] for k in np.unique(y)]
    few = np.concatenate(of_class)
    rest = rng.permutation(np.setdiff1d(np.arange(len(y)), few))[:TEST_ROWS]
    scale = StandardScaler().fit(X[few])
    return Problem(scale.transform(X[few]), y[few], scale.transform(X[rest]), y[rest])


PROBLEMS: dict[str, Callable[[], Problem]] = {
    "200 Gaussians of 10 rows, 16 features": lambda: gaussians(2.0, 16),
    "the same, 64 features": lambda: gaussians(0.9, 64),
    "the same, 8 features: classes overlap": lambda: gaussians(2.0, 8),
    "digits, 30 rows a class": lambda: real("digits", 30),
    "letter, 10 rows a class": lambda: real("letter", 10),
    "letter, 100 rows a class": lambda: real("letter", 100),
    "vowel, 40 rows a class": lambda: real("vowel", 40),
    "pendigits, 100 rows a class": lambda: real("pendigits", 100),
    "optdigits, 100 rows a class": lambda: real("optdigits", 100),
}


def old_tree(internal: Any = None) -> NestedDichotomyClassifier:
    """Return the tree that was the default, or that of the recipe."""
    return NestedDichotomyClassifier(
        structure="clustered", internal=internal, external=None, random_state=0
    )


MODELS: dict[str, Callable[[], Any]] = {
    "tree, before": old_tree,
    "recipe `nested`, before": lambda: old_tree(EvidentialLogisticCalibrator()),
    "**tree and recipe `nested`**": lambda: NestedDichotomyClassifier(random_state=0),
    "ensemble, before": lambda: NestedDichotomyEnsemble(
        old_tree(), external=None, holdout_size=0.1, random_state=0
    ),
    "recipe `nested-ensemble`, before": lambda: NestedDichotomyEnsemble(
        old_tree(EvidentialLogisticCalibrator()),
        pooling="arithmetic",
        external=None,
        random_state=0,
    ),
    "**ensemble and recipe `nested-ensemble`**": lambda: NestedDichotomyEnsemble(random_state=0),
    "the same, 20 trees": lambda: NestedDichotomyEnsemble(n_estimators=20, random_state=0),
}


def described(proba: Floats, bounds: Any, labels: Ints, seconds: float | None) -> str:
    """Return a row of the table; `labels` are columns."""
    right = proba.argmax(axis=1) == labels
    loss = -np.log(np.maximum(proba[np.arange(len(labels)), labels], 1e-300)).mean()
    error = expected_calibration_error(labels, proba)
    cells = [f"{error:.3f}", f"{loss:.3f}", f"{1 - right.mean():.3f}"]
    if bounds is None:
        cells += ["no bounds", ""]
    else:
        declined = reject(bounds, COST, strategy="pignistic")
        wary = reject(bounds, COST, strategy="pessimistic")
        kept = f"{1 - right[~declined].mean():.3f}" if not declined.all() else "-"
        cells += [f"{declined.mean():.1%}; {wary.mean():.1%}", kept]
    return " | ".join([*cells, "" if seconds is None else f"{seconds:.1f}"])


def measured(model: Any, problem: Problem) -> str:
    """Fit a model and return its row."""
    start = process_time()
    model.fit(problem.X, problem.y)
    seconds = process_time() - start
    bounds = model.predict_bounds(problem.X_new) if hasattr(model, "predict_bounds") else None
    return described(model.predict_proba(problem.X_new), bounds, problem.y_new, seconds)


def main() -> None:
    """Measure all models on all problems."""
    after = "--after" in sys.argv[1:]
    lines = [HEAD]
    for make in MODELS.values():  # compiles
        measured(make(), gaussians(2.0, 4, n_classes=5, per_class=20))
    for title, draw in PROBLEMS.items():
        problem = draw()
        head = "| | calibration error | log loss | error | declined | error of the rest | seconds |"
        lines += [f"## {title}\n", head, "|---|---|---|---|---|---|---|"]
        if problem.truth is not None:
            lines.append(
                f"| oracle | {described(problem.truth, problem.truth, problem.y_new, None)} |"
            )
        for name, make in MODELS.items():
            if not (after and "recipe" in name and "before" in name):
                lines.append(f"| {name} | {measured(make(), problem)} |")
        print("\n".join(lines), flush=True)
        if not after:
            Path(__file__).with_name("DICHOTOMIES.md").write_text("\n".join([*lines, ""]))
        lines.append("")


if __name__ == "__main__":
    main()
