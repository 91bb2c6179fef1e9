"""Imprecise Gaussian discriminant analysis against other methods for the same sets.

The methods are those of `rival_discriminant.py`. They are slow, so they predict a few rows while
ours predicts all, and times are per row. Before the measurement, the sets of these rows and of some
doubtful ones must agree, except for the public implementation, which is not exact: the number of
its exact sets is printed.
Those that use cvxopt are left out, with a note, where it is not installed.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from comparison import Comparison
from rival_discriminant import (
    Method,
    box_minimum_by_cvxopt,
    box_minimum_by_scipy,
    cvxopt,
    farthest_by_branching,
    farthest_by_coordinates,
    farthest_by_corners,
    learn,
    nearest_by_cvxopt,
    nearest_by_scipy,
)

from dubito.datasets import load
from dubito.discriminant import (
    ImpreciseGaussianDiscriminant,
    SingularCovarianceWarning,
    WideBoxWarning,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray
    from rival_discriminant import BoxedGaussians

    Floats = NDArray[np.float64]
    Ints = NDArray[np.intp]

PUBLIC = Method(
    nearest=nearest_by_cvxopt,
    farthest=partial(farthest_by_coordinates, rng=np.random.default_rng(0)),
)
CVXOPT = Method(
    nearest=nearest_by_cvxopt,
    farthest=partial(farthest_by_branching, minimum=box_minimum_by_cvxopt),
)
SCIPY = Method(
    nearest=nearest_by_scipy,
    farthest=partial(farthest_by_branching, minimum=box_minimum_by_scipy),
)
CORNERS = Method(nearest=nearest_by_scipy, farthest=farthest_by_corners)
LISTING = "by scipy: L-BFGS-B for each class, the farthest of all corners"
BRANCHING = "by scipy: L-BFGS-B for each class, branch and bound over it"
BY_CVXOPT = [
    ("the public implementation without MATLAB: cvxopt's QP, qcqp's coordinate descent", PUBLIC),
    ("by cvxopt: one QP for each class, branch and bound over QPs", CVXOPT),
]

#: Values of c in the experiments of Carranza Alarcón and Destercke 2019.
GRID = np.r_[0.01, np.arange(1, 56) / 10]


@dataclass(frozen=True, kw_only=True)
class PerRow(Comparison):
    """A comparison in which the rival works on fewer rows than ours."""

    our_rows: int
    their_rows: int

    def ratio(self) -> float:
        """Return the rival's best CPU time over ours, both for one row."""
        return super().ratio() * self.our_rows / self.their_rows


#: As in the paper and the public implementation: covariances divided by degrees of freedom.
discriminant = partial(
    ImpreciseGaussianDiscriminant, divisor="unbiased", box="raw", shrinkage=None, c=1.0
)
#: The paper's rule for sets.
RULE = "maximality"


def complete_rows(name: str) -> tuple[Floats, Ints]:
    """Return the rows of a dataset without missing values; classes are numbered from 0."""
    data = load(name)
    complete = np.isfinite(data.X).all(axis=1)
    return data.X[complete], np.unique(data.y[complete], return_inverse=True)[1]


def draw(n: int, n_classes: int, n_features: int, spread: float) -> tuple[Floats, Ints]:
    """Return rows of Gaussian classes of equal size; neighbouring features are correlated."""
    rng = np.random.default_rng(0)
    y = np.arange(n) % n_classes
    place = np.arange(n_features)
    mixing = np.linalg.cholesky(0.5 ** np.abs(place[:, None] - place)).T
    centres = spread * rng.normal(size=(n_classes, n_features))
    return (centres[y] + rng.normal(size=(n, n_features))) @ mixing, y


def set_tasks(name: str, covariance_type: str, targets: list[float]) -> Iterator[Comparison]:
    """Yield predictions of a dataset's rows, c=1, by each of the other methods."""
    X, y = complete_rows(name)
    with warnings.catch_warnings():  # features of dermatology are constant in some classes
        warnings.simplefilter("ignore", SingularCovarianceWarning)
        fitted = discriminant(covariance_type=covariance_type, c=1.0).fit(X, y)
    model = learn(X, y, tied=covariance_type == "tied")
    few = X[np.random.default_rng(0).permutation(len(X))[:4]]
    doubtful = X[fitted.predict_set(X, RULE).sum(axis=1) > 1][:3]
    task = f"Imprecise discriminant sets, {name} (p={X.shape[1]}, K={y.max() + 1}), c=1"
    task += f", {covariance_type} covariance"
    print_microseconds(task, partial(fitted.predict_set, X, RULE), len(X))
    exact = (BRANCHING, SCIPY) if X.shape[1] > 13 else (LISTING, CORNERS)
    for (rival, method), target in zip([*BY_CVXOPT, exact], targets, strict=True):
        if cvxopt is None and method is not exact[1]:
            print(f"left out, cvxopt is not installed: {task}, {rival}")
            continue
        check_sets(task, method, model, fitted, np.vstack([few, doubtful]))
        yield PerRow(
            task=task,
            rival=rival,
            ours=partial(fitted.predict_set, X, RULE),
            theirs=partial(method.sets, model, few),
            our_rows=len(X),
            their_rows=len(few),
            target=target,
            repeats=2,
        )


def check_sets(
    task: str,
    method: Method,
    model: BoxedGaussians,
    fitted: ImpreciseGaussianDiscriminant,
    rows: Floats,
) -> None:
    """Raise an error if the sets differ; for the public method, print how many agree."""
    same = (method.sets(model, rows) == fitted.predict_set(rows, RULE)).all(axis=1)
    if method is PUBLIC:
        print(f"{task}: {same.sum()} of {len(same)} sets of the public method are exact")
    elif not same.all():
        raise AssertionError(f"{task}: sets of rows {np.flatnonzero(~same)} differ")


def print_microseconds(task: str, run: Callable[[], object], rows: int) -> None:
    """Print the CPU time of one row, for which there is no target."""
    run()
    spent = []
    for _ in range(7):
        start = time.process_time()
        run()
        spent.append(time.process_time() - start)
    print(f"{task}: {1e6 * min(spent) / rows:.3g} µs of CPU for each row")


def wide_tasks() -> Iterator[Comparison]:
    """Yield bounds and critical c with a hundred features, c up to 5."""
    X, y = draw(400, 4, 100, spread=0.25)
    few, one = X[:2], X[0]
    model = learn(X, y, tied=True)
    wide = model.widened(5.0)
    fitted = discriminant(c=5.0).fit(X, y)

    def bounds() -> Floats:
        return np.array([SCIPY.posterior_bounds(wide, x) for x in few])

    def critical() -> Floats:
        return SCIPY.critical_c(model, one, max_c=5.0, steps=10)

    ours = fitted.predict_bounds(few)
    np.testing.assert_allclose(bounds(), np.stack([ours.lower, ours.upper], axis=1), atol=1e-8)
    np.testing.assert_allclose(critical(), fitted.critical_c(one[None], max_c=5.0)[0], atol=0.005)
    for task, run, rival, theirs, rows in [
        ("bounds, c=5", fitted.predict_bounds, "", bounds, 2),
        ("critical c up to 5", partial(fitted.critical_c, max_c=5.0), ", c halved", critical, 1),
    ]:
        name = f"Imprecise discriminant {task}, p=100, K=4"
        print_microseconds(name, partial(run, X), len(X))
        yield PerRow(
            task=name,
            rival=f"{BRANCHING}{rival}",
            ours=partial(run, X),
            theirs=theirs,
            our_rows=len(X),
            their_rows=rows,
            target=200,
            repeats=1,
        )


def many_classes_task() -> Comparison:
    """Return predictions among a thousand classes."""
    X, y = draw(10_000, 1_000, 20, spread=1.0)
    rows, few = X[:500], X[:2]
    model = learn(X, y, tied=True)
    fitted = discriminant(c=1.0).fit(X, y)
    task = "Imprecise discriminant sets, p=20, K=1,000, c=1"
    check_sets(task, SCIPY, model, fitted, few)
    print_microseconds(task, partial(fitted.predict_set, rows, RULE), len(rows))
    return PerRow(
        task=task,
        rival=BRANCHING,
        ours=partial(fitted.predict_set, rows, RULE),
        theirs=partial(SCIPY.sets, model, few),
        our_rows=len(rows),
        their_rows=len(few),
        target=1_000,
        repeats=2,
    )


def path_task() -> Comparison:
    """Return the scores of a grid of c."""
    X, y = complete_rows("dermatology")
    with warnings.catch_warnings():  # some features of dermatology hardly vary
        warnings.simplefilter("ignore", WideBoxWarning)
        models = [discriminant(c=float(c)).fit(X, y) for c in GRID]

    def one_by_one() -> list[float]:
        return [model.predict_set(X, RULE).sum(axis=1).mean() for model in models]

    path = models[0].c_path(X, y, cs=GRID)
    np.testing.assert_allclose(path.mean_set_size, one_by_one(), rtol=1e-12)
    return Comparison(
        task="Scores of 56 imprecisions c, dermatology",
        rival="ours, predict_set for each c",
        ours=partial(models[0].c_path, X, y, cs=GRID),
        theirs=one_by_one,
        target=2,
    )


def tuning_task() -> Comparison:
    """Return the cross-validated choice of c against a fit and critical values."""
    X, y = complete_rows("dermatology")
    plain = discriminant(c=1.0)
    return Comparison(
        task='c="auto", 5 folds, dermatology',
        rival="one plain fit and one pass of critical_c",
        ours=lambda: discriminant(c="auto").fit(X, y),
        theirs=lambda: plain.fit(X, y).critical_c(X, max_c=GRID[-1]),
        target=0.25,
    )


def comparisons() -> Iterator[Comparison]:
    """Yield the claims of imprecise discriminant analysis one by one: some have slow checks."""
    for name, targets in [("wine", [10_000, 500, 300]), ("dermatology", [10_000, 2_000, 1_000])]:
        for covariance_type in ("tied", "full"):
            yield from set_tasks(name, covariance_type, targets)
    yield from wide_tasks()
    yield many_classes_task()
    yield path_task()
    yield tuning_task()
