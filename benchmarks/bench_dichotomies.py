"""Nested dichotomies of thousands of classes against those of `rival_dichotomies.py`.

Two simulated problems: texts of 5,000 classes (50,000 sparse features, 50,000 rows), and 1,000
Gaussian classes (128 features, 40,000 rows, float32). The obvious implementation takes minutes on
the first, so it runs once; it is given our tree, while ours includes the search for it. Everything
is on one thread unless stated otherwise. Packages that are not installed are rows without a number.

``python benchmarks/bench_dichotomies.py --quick`` runs all of it on small problems.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from bench_discriminant import PerRow
from comparison import Comparison
from rival_dichotomies import HSM, NapkinSoftmax, Obvious, OmikujiTrees, omikuji, write_rows
from scipy import sparse as sp
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from dubito.calibration import VectorCalibrator
from dubito.datasets import make_many_classes
from dubito.dichotomies import NestedDichotomyClassifier, NestedDichotomyEnsemble

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.intp]

OBVIOUS = "the obvious implementation: recursive, LogisticRegression at each node"
NAPKIN_C = 10.0  # its own default
NAPKIN = "napkinXC's hierarchical softmax"
OMIKUJI = "omikuji, one label tree of its own settings"


@dataclass(frozen=True)
class Problem:
    """Rows to fit and rows to predict."""

    name: str
    X: Any
    y: Ints
    X_new: Any
    y_new: Ints
    trees: int  # in the ensemble
    C: float  # of its trees; texts of unit length need a weak penalty

    @property
    def nbytes(self) -> int:
        """Size of the rows to fit."""
        X = self.X
        return X.data.nbytes + X.indices.nbytes + X.indptr.nbytes if sp.issparse(X) else X.nbytes


def draw(*, sparse: bool, quick: bool) -> Problem:
    """Return a random problem, with 2,000 rows to predict; every class has a row to fit."""
    n, k, p = (50_000, 5_000, 50_000) if sparse else (40_000, 1_000, 128)
    if quick:
        n, k, p = n // 10, k // 10, p // 10 if sparse else 32
    X, y = make_many_classes(n + 2_000, k, p, sparse=sparse, dtype=np.float32, random_state=1)
    if len(np.unique(y[:n])) < k:
        raise AssertionError("a class has no row to fit: draw with another seed")
    kind = "sparse" if sparse else "dense"
    name = f"{k:,} classes, {p:,} features ({kind}, float32), {n:,} rows"
    trees, C = (2, 30.0) if sparse else (5, 1.0)
    return Problem(name, X[:n], y[:n], X[n:], y[n:], trees=trees, C=C)


@dataclass(frozen=True, kw_only=True)
class WallTime(Comparison):
    """A comparison of elapsed time, where ours uses both cores."""

    def ratio(self) -> float:
        """Return the rival's best time over ours."""
        self.ours()
        ours, theirs = [], []
        for _ in range(self.repeats):
            for run, spent in ((self.ours, ours), (self.theirs, theirs)):
                start = time.perf_counter()
                run()
                spent.append(time.perf_counter() - start)
        return min(theirs) / min(ours)


@dataclass(frozen=True, kw_only=True)
class Quotient(Comparison):
    """A comparison of numbers, not of times: those that ours and theirs return."""

    def ratio(self) -> float:
        """Return ours over theirs."""
        return float(self.ours()) / float(self.theirs())  # type: ignore[arg-type]


def missing(task: str, rival: str, target: float, *, why: str = "not installed") -> Comparison:
    """Return a row without a number, for a rival that cannot be measured here."""
    return Quotient(
        task=task,
        rival=f"{rival} ({why})",
        ours=lambda: np.nan,
        theirs=lambda: 1.0,
        target=target,
    )


def one_thread(run: Callable[..., Any], *arguments: Any) -> Callable[[], Any]:
    """Return a call with linear algebra on one thread: idle threads cost CPU time."""

    def pinned() -> Any:
        with threadpool_limits(1):
            return run(*arguments)

    return pinned


def print_quality(name: str, proba: Floats, y: Ints) -> None:
    """Print accuracy and log loss, for which there is no target."""
    loss = -np.log(np.maximum(proba[np.arange(len(y)), y], 1e-300)).mean()
    print(f"{name}: accuracy {(proba.argmax(axis=1) == y).mean():.4f}, log loss {loss:.3f}")


def obvious_tasks(problem: Problem, targets: dict[str, float]) -> Iterator[Comparison]:
    """Yield fit and prediction; the rival's fit is kept for its predictions."""
    dense = isinstance(problem.X, np.ndarray)
    model = NestedDichotomyClassifier(n_jobs=2 if dense else None, random_state=0, internal=None)
    model.fit(problem.X, problem.y)
    rival = Obvious(model.tree_)
    fit = Comparison(
        task=f"Nested dichotomies, fit, {problem.name}",
        rival=OBVIOUS,
        ours=partial(model.fit, problem.X, problem.y),
        theirs=one_thread(rival.fit, problem.X, problem.y),
        target=targets["fit"],
        repeats=3 if dense else 1,
    )
    yield fit
    if dense:
        # The obvious implementation as usually written: float64 rows, on one core.
        plain = one_thread(rival.fit, problem.X.astype(np.float64), problem.y)
        task = f"{fit.task}, on the clock, both cores, against float64 on one"
        yield WallTime(**vars(replace(fit, task=task, theirs=plain)))
    single = NestedDichotomyClassifier(random_state=0, internal=None).fit(problem.X, problem.y)
    yield Comparison(
        task=f"Nested dichotomies, predict_proba of 2,000 rows, {problem.name}",
        rival=OBVIOUS,
        ours=partial(single.predict_proba, problem.X_new),
        theirs=one_thread(rival.predict_proba, problem.X_new),
        target=targets["predict"],
        repeats=3,
    )
    print_quality(f"ours, {problem.name}", single.predict_proba(problem.X_new), problem.y_new)
    print_quality(f"obvious, {problem.name}", rival.predict_proba(problem.X_new), problem.y_new)


def napkin_tasks(problem: Problem) -> Iterator[Comparison]:
    """Yield fit and prediction with the same balanced tree and the rival's penalty."""
    fit_task = f"Nested dichotomies, fit of a balanced tree, {problem.name}"
    proba_task = f"Nested dichotomies, full distribution of a row, {problem.name}"
    if HSM is None:
        yield missing(fit_task, NAPKIN, 1)
        yield missing(proba_task, NAPKIN, 20)
        return
    model = NestedDichotomyClassifier(
        LogisticRegression(C=NAPKIN_C), structure="class_balanced", random_state=0, internal=None
    ).fit(problem.X, problem.y)
    model.set_params(structure=model.tree_)
    rival = NapkinSoftmax(model.tree_)
    yield Comparison(
        task=fit_task,
        rival=NAPKIN,
        ours=partial(model.fit, problem.X, problem.y),
        theirs=partial(rival.fit, problem.X, problem.y),
        target=1,
        repeats=2,
    )
    few = problem.X_new[:100]
    rival.load()
    yield PerRow(
        task=proba_task,
        rival=NAPKIN,
        ours=partial(model.predict_proba, problem.X_new),
        theirs=partial(rival.predict_proba, few),
        our_rows=problem.X_new.shape[0],
        their_rows=few.shape[0],
        target=20,
        repeats=2,
    )
    print_quality(f"ours, balanced, {problem.name}", model.predict_proba(few), problem.y_new[:100])
    print_quality(f"napkinXC, {problem.name}", rival.predict_proba(few), problem.y_new[:100])


def omikuji_tasks(problem: Problem, folder: Path) -> Iterator[Comparison]:
    """Yield accuracy and CPU time of a few trees; the rival's fit includes reading a text file."""
    name = f"{problem.trees} clustered trees, {problem.name}"
    tasks = [(f"Accuracy of {name}", 1.0), (f"Fit of {name}", 0.5)]
    if omikuji is None:
        yield from (missing(task, OMIKUJI, target) for task, target in tasks)
        return
    file = folder / "rows.txt"
    write_rows(file, problem.X, problem.y, int(problem.y.max()) + 1)
    tree = NestedDichotomyClassifier(
        LogisticRegression(C=problem.C), structure="clustered", internal=None
    )
    ours = NestedDichotomyEnsemble(tree, n_estimators=problem.trees, external=None, random_state=0)
    theirs = OmikujiTrees(1)
    yield Comparison(
        task=tasks[1][0],
        rival=OMIKUJI,
        ours=partial(ours.fit, problem.X, problem.y),
        theirs=partial(theirs.fit, file),
        target=tasks[1][1],
        repeats=1,
    )
    proba = ours.predict_proba(problem.X_new)
    print_quality(name, proba, problem.y_new)
    found = theirs.predict(problem.X_new)
    yield Quotient(
        task=tasks[0][0],
        rival=OMIKUJI,
        ours=(proba.argmax(axis=1) == problem.y_new).mean,
        theirs=(found == problem.y_new).mean,
        target=tasks[0][1],
    )


def vector_task(problem: Problem) -> Comparison:
    """Return external calibration (scores of held-out rows and a fit) against a tree's fit."""
    n = len(problem.y) // 10
    model = NestedDichotomyClassifier(random_state=0, internal=None).fit(
        problem.X[n:], problem.y[n:]
    )
    known = np.isin(problem.y[:n], model.classes_)
    X_aside, y_aside = problem.X[:n][known], problem.y[:n][known]
    calibrator = VectorCalibrator(input="logits", classes=model.classes_)
    return Comparison(
        task=f'external="vector", {n:,} rows set aside, {problem.name}',
        rival="the fit of the tree",
        ours=lambda: calibrator.fit(model.predict_log_proba(X_aside), y_aside),
        theirs=partial(model.fit, problem.X[n:], problem.y[n:]),
        target=1,
        repeats=2,
    )


def top_task(problem: Problem) -> Comparison:
    """Return the five best classes of each row against all probabilities."""
    model = NestedDichotomyClassifier(random_state=0, internal=None).fit(problem.X, problem.y)

    def sorted_out() -> Ints:
        proba = model.predict_proba(problem.X_new)
        best = np.argpartition(-proba, 5, axis=1)[:, :5]
        order = np.argsort(-np.take_along_axis(proba, best, axis=1), axis=1)
        return model.classes_[np.take_along_axis(best, order, axis=1)]

    if not np.array_equal(model.predict_topk(problem.X_new, 5), sorted_out()):
        raise AssertionError(f"{problem.name}: the five best classes differ")

    return Comparison(
        task=f"predict_topk, five of all classes, {problem.name}",
        rival="ours: predict_proba and a partition of it",
        ours=partial(model.predict_topk, problem.X_new, 5),
        theirs=sorted_out,
        target=1,
    )


def memory_task(problem: Problem, folder: Path) -> Comparison:
    """Return the peak memory of a fit beyond its rows against three times rows plus model."""
    task = f"Peak memory of a fit beyond its rows, {problem.name}"
    rival = "three times the rows and the model"
    if sys.platform != "linux":
        return missing(task, rival, 1, why="needs Linux")
    file = folder / "problem.pickle"
    file.write_bytes(pickle.dumps(problem))

    def peak_and_model() -> tuple[int, int]:
        result = subprocess.run(  # noqa: S603 - this file
            [sys.executable, __file__, "--peak", str(file)],
            check=True, capture_output=True, text=True,
        )  # fmt: skip
        peak, model = result.stdout.split()[-2:]
        return int(peak), int(model)

    peak, model = peak_and_model()
    print(f"fit, {problem.name}: rows {problem.nbytes:,}, model {model:,}, peak {peak:,} bytes")
    return Quotient(
        task=task,
        rival=rival,
        ours=lambda: 3 * problem.nbytes + model,
        theirs=lambda: peak,
        target=1,
    )


def print_peak(file: str) -> None:
    """Print the memory that a fit adds to this process, and the size of the model, in bytes.

    Measured by the system, since Python does not track arrays of compiled code and of linear
    algebra; only Linux can reset its peak counter.
    """
    problem: Problem = pickle.loads(Path(file).read_bytes())  # noqa: S301 - written by this file
    model = NestedDichotomyClassifier(random_state=0, internal=None)
    few = np.flatnonzero(problem.y < 20)
    model.fit(problem.X[few], problem.y[few])  # loads compiled code
    process = Path("/proc/self")
    (process / "clear_refs").write_text("5", encoding="ascii")
    before = count_bytes(process, "VmRSS")
    model.fit(problem.X, problem.y)
    print(count_bytes(process, "VmHWM") - before, len(pickle.dumps(model)))


def count_bytes(process: Path, name: str) -> int:
    """Return a memory counter of a process, from Linux, in bytes."""
    lines = (process / "status").read_text(encoding="ascii").splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(name))


def comparisons(*, quick: bool = False) -> Iterator[Comparison]:
    """Yield the claims of nested dichotomies one by one: fitted rivals take much memory."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for sparse, targets in [
            (False, {"fit": 8.0, "predict": 5.0}),
            (True, {"fit": 15.0, "predict": 5.0}),
        ]:
            problem = draw(sparse=sparse, quick=quick)
            yield top_task(problem)
            yield vector_task(problem)
            yield from omikuji_tasks(problem, folder)
            if sparse:
                yield from napkin_tasks(problem)
            yield memory_task(problem, folder)
            yield from obvious_tasks(problem, targets)


if __name__ == "__main__":
    if "--peak" in sys.argv:
        print_peak(sys.argv[-1])
    else:
        for comparison in comparisons(quick="--quick" in sys.argv):
            print(
                f"| {comparison.task} | {comparison.rival} | {comparison.ratio():.3g} "
                f"| ≥ {comparison.target:g} |",
                flush=True,
            )
