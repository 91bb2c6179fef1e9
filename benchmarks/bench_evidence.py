"""Weights of evidence against softmax, against other ways to the same masses, and plain numpy.

R's evclass is the other implementation of the paper (`calcm`). It needs R, which is not required
here, so its method is repeated in numpy: row by row from weights to commonalities to masses, with
evtools' transforms in place of ibelief's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from comparison import Comparison
from evtools.conversions import wtom
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression

from dubito.belief import Frame, MassBatch, dempster
from dubito.evidence import (
    EvidenceModel,
    EvidentialClassifier,
    bounds_from_weights,
    mass_from_weights,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


def draw_weights(n: int, n_classes: int) -> tuple[Floats, Floats]:
    """Return random total weights for and against each class."""
    rng = np.random.default_rng(0)
    w_plus, w_minus = rng.exponential(size=(2, n, n_classes))
    return w_plus, w_minus


def masses_as_evclass(w_plus: Floats, w_minus: Floats) -> Floats:
    """Return masses by a transform of the weights of 2K of the 2^K sets, row by row."""
    n, n_classes = w_plus.shape
    single = 1 << np.arange(n_classes)
    mass = np.empty((n, 2**n_classes))
    for i in range(n):
        power = np.ones(2**n_classes)
        power[single] = np.exp(-w_plus[i])
        power[2**n_classes - 1 - single] = np.exp(-w_minus[i])
        mass[i] = wtom(power)
        mass[i, 0] = 0.0
        mass[i] /= mass[i].sum()
    return mass


def masses_by_proposition(w_plus: Floats, w_minus: Floats) -> Floats:
    """Return masses by Proposition 1 of Denoeux 2019, row by row."""
    n, n_classes = w_plus.shape
    members = Frame(range(n_classes)).subsets()
    mass = np.empty((n, len(members)))
    for i in range(n):
        left = np.exp(-w_minus[i])
        mass[i] = np.where(members, left, 1 - left).prod(axis=1)
        for k in range(n_classes):
            others = np.delete(1 - left, k).prod()
            mass[i, (1 << k) - 1] = left[k] * (np.exp(w_plus[i, k]) - 1 + others)
        mass[i] /= mass[i].sum()
    return mass


def masses_by_dempster(w_plus: Floats, w_minus: Floats) -> MassBatch:
    """Return the combination of the 2K simple mass functions of all rows."""
    frame = Frame(range(w_plus.shape[1]))
    one = np.eye(len(frame), dtype=bool)
    whole = np.ones_like(one)
    sources = [
        MassBatch(frame, [focal, everything], np.column_stack([-np.expm1(-w), np.exp(-w)]))
        for sets, weights in ((one, w_plus), (~one, w_minus))
        for focal, everything, w in zip(sets, whole, weights.T, strict=True)
    ]
    return dempster(*sources)


def bounds_task() -> Comparison:
    """Return bounds of a thousand classes; needs up to 5 GB."""
    w_plus, w_minus = draw_weights(100_000, 1_000)
    logits = w_plus - w_minus
    return Comparison(
        task="Bounds from weights of evidence, 100,000 rows, K=1,000",
        rival="scipy's softmax of the same logits, which is the probabilities alone",
        ours=lambda: bounds_from_weights(w_plus, w_minus),
        theirs=lambda: softmax(logits, axis=1),
        target=0.2,
        repeats=3,
    )


def mass_tasks() -> Iterator[Comparison]:
    """Full mass functions of ten classes, on three other roads."""
    weights = draw_weights(10_000, 10)
    for rival, theirs, target, repeats in [
        (
            "as R's evclass does, in numpy: evtools' transforms, row by row",
            masses_as_evclass,
            10,
            2,
        ),
        ("Proposition 1 in numpy, row by row", masses_by_proposition, 5, 2),
        ("our own Dempster's rule on the 20 simple mass functions", masses_by_dempster, 5, 3),
    ]:
        yield Comparison(
            task="Masses of all sets from weights of evidence, 10,000 rows, K=10",
            rival=rival,
            ours=lambda: mass_from_weights(*weights),
            theirs=lambda theirs=theirs: theirs(*weights),
            target=target,
            repeats=repeats,
        )


def totals_task() -> Comparison:
    """Return sums of positive and negative parts of all weights over the features."""
    rng = np.random.default_rng(0)
    phi = rng.normal(size=(10_000, 50))
    model = EvidenceModel(rng.normal(size=(10, 50)), rng.normal(size=10), phi.mean(axis=0))
    slope, offset = model.slope, model.offset

    def in_numpy() -> tuple[Floats, Floats]:
        weights = phi[:, :, None] * slope + offset
        return np.maximum(weights, 0).sum(axis=1), np.maximum(-weights, 0).sum(axis=1)

    return Comparison(
        task="Total weights of evidence, 10,000 rows, 50 features, K=10",
        rival="plain numpy on (rows, features, classes)",
        ours=lambda: model.totals(phi),
        theirs=in_numpy,
        target=2,
    )


def classifier_task() -> Comparison:
    """Return bounds of a wrapped logistic regression against its own probabilities."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20_000, 50)), rng.integers(10, size=20_000)
    fitted = EvidentialClassifier(LogisticRegression(max_iter=50)).fit(X[:2_000], y[:2_000])
    return Comparison(
        task="Bounds of EvidentialClassifier, 20,000 rows, 50 features, K=10",
        rival="predict_proba of the LogisticRegression inside",
        ours=lambda: fitted.predict_bounds(X),
        theirs=lambda: fitted.estimator_.predict_proba(X),
        target=0.1,
    )


def comparisons() -> Iterator[Comparison]:
    """Return the claims about evidence one by one: the first holds much memory."""
    yield bounds_task()
    yield from mass_tasks()
    yield totals_task()
    yield classifier_task()
