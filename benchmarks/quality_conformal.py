"""Compare conformal sets with those of MAPIE and crepes, and write the tables to CONFORMAL.md.

All methods get the same fitted model, the same rows to calibrate on and the same test rows. The
rivals are installed by the extra `bench`.
"""

from __future__ import annotations

import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dubito.conformal import ConformalClassifier
from dubito.datasets import load
from dubito.metrics import class_coverage, coverage, mean_set_size

try:
    from crepes import WrapClassifier
    from crepes.extras import hinge
    from crepes.extras import margin as probability_margin
    from mapie.classification import SplitConformalClassifier
except ImportError as error:  # as other rivals: no comparison without them
    print(f"{error}; the comparison of conformal sets needs the extra: pip install '.[bench]'")
    raise SystemExit(0) from None

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy.typing as npt

    Sets = npt.NDArray[np.bool_]
    Method = Callable[[Any, Any, Any, Any], Sets]

COVERAGE = 0.95
SPLITS = 10
MOST_ROWS = 3000
DATA = ["pendigits", "satimage", "segment", "vehicle", "dna"]

HEAD = f"""# Conformal sets, measured

Written by `python benchmarks/quality_conformal.py` (extra `bench`: MAPIE, crepes). Sets that should
contain the truth in {COVERAGE:.0%} of rows. {SPLITS} random splits of at most {MOST_ROWS} rows of
each data set: 40 % fit the model, 30 % calibrate, 30 % test; every method gets the same fitted
model and the same rows. In each cell: coverage / that of the worst class / mean size of the sets.
The coverage of one split moves by about 1 % with the rows it got, means of {SPLITS} by about 0.3 %;
the worst class is the least of several, each with a fraction of the rows, and lies lower by chance.

dubito keeps the likeliest class where no class passes; MAPIE and crepes then return an empty set,
hence smaller sets. With `allow_empty=True` dubito's are the same procedure as theirs. MAPIE draws
the cumulative scores of the calibration rows at random and those of new rows not; crepes is used
without random ties.
"""


def ours(*, allow_empty: bool = False, **options: Any) -> Method:
    """Return a function that returns dubito's sets."""

    def sets(model: Any, X: Any, y: Any, X_new: Any) -> Sets:
        clf = ConformalClassifier(FrozenEstimator(model), **options).fit(X, y)
        return clf.predict_set(X_new, coverage=COVERAGE, allow_empty=allow_empty)

    return sets


def mapie(score: str) -> Method:
    """Return a function that returns MAPIE's sets."""

    def sets(model: Any, X: Any, y: Any, X_new: Any) -> Sets:
        clf = SplitConformalClassifier(
            model, confidence_level=COVERAGE, conformity_score=score, random_state=0
        )
        return clf.conformalize(X, y).predict_set(X_new)[1][:, :, 0]

    return sets


def crepes(nonconformity: Any, *, class_cond: bool = False) -> Method:
    """Return a function that returns the sets of crepes, without random ties."""

    def sets(model: Any, X: Any, y: Any, X_new: Any) -> Sets:
        clf = WrapClassifier(model)
        clf.calibrate(X, y, nc=nonconformity, class_cond=class_cond)
        chosen = clf.predict_set(X_new, labels=False, confidence=COVERAGE, smoothing=False)
        return np.asarray(chosen, dtype=bool)

    return sets


METHODS: dict[str, Method] = {
    "`ConformalClassifier(model)`": ours(),
    '`score="probability"`': ours(score="probability"),
    '`score="probability"`, `allow_empty=True`': ours(score="probability", allow_empty=True),
    "MAPIE, lac": mapie("lac"),
    "crepes, hinge": crepes(hinge),
    "crepes, margin": crepes(probability_margin),
    '`score="cumulative"`': ours(score="cumulative"),
    '`score="cumulative"`, `randomized=True`': ours(
        score="cumulative", randomized=True, random_state=0
    ),
    "MAPIE, aps": mapie("aps"),
    "MAPIE, raps": mapie("raps"),
    "`class_conditional=True`": ours(class_conditional=True),
    "crepes, hinge, class_cond": crepes(hinge, class_cond=True),
}
MODELS = {
    "Logistic regression": make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000)),
    "Random forest": RandomForestClassifier(100, random_state=0),
}


def tasks(name: str, model: Any) -> Iterator[tuple[Any, ...]]:
    """Yield a fitted model, rows to calibrate on, and rows to test on."""
    data = load(name)
    y = np.unique(data.y, return_inverse=True)[1]
    for seed in range(SPLITS):
        rows = np.random.default_rng(seed).permutation(len(y))[:MOST_ROWS]
        X, labels = np.asarray(data.X, dtype=float)[rows], y[rows]
        X_fit, rest, y_fit, y_rest = train_test_split(
            X, labels, train_size=0.4, stratify=labels, random_state=seed
        )
        X_few, X_new, y_few, y_new = train_test_split(
            rest, y_rest, train_size=0.5, random_state=seed
        )
        yield clone(model).fit(X_fit, y_fit), X_few, y_few, X_new, y_new


def evaluate(method: Method, task: tuple[Any, ...]) -> list[float]:
    """Return coverage, coverage of the worst class, and mean size."""
    model, X, y, X_new, y_new = task
    sets, known = method(model, X, y, X_new), {"classes": model.classes_}
    worst = float(np.nanmin(class_coverage(y_new, sets, **known)))
    return [coverage(y_new, sets, **known), worst, mean_set_size(sets)]


class GivenProbabilities(ClassifierMixin, BaseEstimator):
    """A model whose probabilities are the features: only the conformal part is timed."""

    def __init__(self, n_classes: int = 10) -> None:
        self.n_classes = n_classes

    def fit(self, X: Any, y: Any) -> GivenProbabilities:  # noqa: ARG002 - nothing to learn
        """Set the attributes of a fitted scikit-learn classifier."""
        self.classes_, self.n_features_in_ = np.arange(self.n_classes), self.n_classes
        return self

    def predict_proba(self, X: Any) -> Any:
        """Return the features."""
        return np.asarray(X)

    def predict(self, X: Any) -> Any:
        """Return the largest."""
        return np.asarray(X).argmax(axis=1)


def seconds(method: Method, n: int, n_new: int, n_classes: int) -> float:
    """Return the least CPU time of three runs (one, if it is slow) to calibrate and make sets."""
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.full(n_classes, 0.3), n + n_new)
    y = (proba.cumsum(axis=1) > rng.random((n + n_new, 1))).argmax(axis=1)
    model = GivenProbabilities(n_classes).fit(proba, y)
    spent: list[float] = []
    while len(spent) < 3 and sum(spent) < 1:
        start = time.process_time()
        method(model, proba[:n], y[:n], proba[n:])
        spent.append(time.process_time() - start)
    return min(spent)


def quality(name: str) -> str:
    """Return the table of one model."""
    lines = [f"## {name}", "", f"| method | {' | '.join(DATA)} |", "|---" * (len(DATA) + 1) + "|"]
    prepared = {data: list(tasks(data, MODELS[name])) for data in DATA}
    for label, method in METHODS.items():
        cells = []
        for data in DATA:
            mean = np.mean([evaluate(method, task) for task in prepared[data]], axis=0)
            cells.append("{:.3f} / {:.2f} / {:.2f}".format(*mean))
        lines.append(f"| {label} | {' | '.join(cells)} |")
        print(lines[-1], flush=True)
    return "\n".join(lines)


def speed() -> str:
    """Return the table of CPU times."""
    shapes = [(2_000, 10_000, 10), (2_000, 500, 100)]
    lines = [
        "## Time",
        "",
        "CPU milliseconds to calibrate and to make the sets, with probabilities given; least of 3.",
        "",
        "| method | " + " | ".join(f"{n} + {m} rows, {k} classes" for n, m, k in shapes) + " |",
        "|---" * (len(shapes) + 1) + "|",
    ]
    for label, method in METHODS.items():
        spent = [1000 * seconds(method, *shape) for shape in shapes]
        lines.append(f"| {label} | " + " | ".join(f"{s:.0f}" for s in spent) + " |")
        print(lines[-1], flush=True)
    return "\n".join(lines)


def main() -> None:
    """Measure all and write the tables."""
    warnings.simplefilter("ignore")  # MAPIE on labels and versions
    parts = [HEAD.strip(), *(quality(name) for name in MODELS), speed()]
    results = Path(__file__).parent / "CONFORMAL.md"
    draft = results.with_suffix(".tmp")
    draft.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    draft.replace(results)


if __name__ == "__main__":
    main()
