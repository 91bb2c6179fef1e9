"""Belief functions against evtools-dst and against plain numpy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from comparison import Comparison
from evtools.combinations import dempster as evtools_combine
from evtools.conversions import mtoq, qtom
from evtools.dsvector import DSVector, Kind

from dubito.belief import Bounds, Frame, MassBatch, dempster, discount, jousselme_distance
from dubito.decision import e_admissibility

if TYPE_CHECKING:
    from numpy.typing import NDArray


def dense_pair(n_classes: int, rows: int) -> tuple[MassBatch, MassBatch]:
    """Return two random dense batches."""
    rng = np.random.default_rng(0)
    frame = Frame(range(n_classes))
    size = 2**n_classes - 1
    first, second = rng.dirichlet(np.ones(size), size=(2, rows))
    return MassBatch(frame, frame.subsets(), first), MassBatch(frame, frame.subsets(), second)


def evtools_dempster(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the combination by evtools' transforms on raw arrays, without its container."""
    mass = qtom(mtoq(a) * mtoq(b))
    empty, mass[0] = mass[0], 0.0
    return mass / (1 - empty)


def numpy_dempster(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the combination by products of commonalities, in plain numpy."""

    def transform(x: NDArray[np.float64], sign: float) -> NDArray[np.float64]:
        out = x.copy()
        step = 1
        while step < out.shape[1]:
            pairs = out.reshape(len(out), -1, 2, step)
            pairs[:, :, 0] += sign * pairs[:, :, 1]
            step *= 2
        return out

    mass = transform(transform(a, 1.0) * transform(b, 1.0), -1.0)
    left = 1 - mass[:, :1]
    mass[:, 0] = 0.0
    return mass / left


def numpy_jousselme(a: MassBatch, b: MassBatch) -> NDArray[np.float64]:
    """Return the distance by its definition: a matrix over all pairs of sets."""
    members = a.focal.astype(float)
    common = members @ members.T
    size = members.sum(axis=1)
    delta = a.mass - b.mass
    similarity = common / (size[:, None] + size - common)
    return np.sqrt(np.einsum("nf,nf->n", delta @ similarity, delta) / 2)


def discounted_pair(n_classes: int, rows: int) -> tuple[MassBatch, MassBatch]:
    """Return two random batches of probabilities of many classes, discounted by 0.1."""
    rng = np.random.default_rng(0)
    first, second = (
        discount(MassBatch.from_proba(range(n_classes), p), 0.1)
        for p in rng.dirichlet(np.ones(n_classes), size=(2, rows))
    )
    return first, second


def evtools_sparse(batch: MassBatch) -> list[DSVector]:
    """Return the rows in evtools' representation: dicts of frozensets."""
    labels = [str(label) for label in batch.frame]
    rows = [{frozenset(map(str, s)): mass for s, mass in m.masses.items()} for m in batch]
    return [DSVector.from_sparse(labels, row, kind=Kind.M) for row in rows]


def comparisons() -> list[Comparison]:
    """Return the claims of this benchmark."""
    one_a, one_b = dense_pair(16, 1)
    raw_one = one_a.to_array()[0], one_b.to_array()[0]
    many_a, many_b = dense_pair(5, 10_000)
    raw_many = many_a.to_array(), many_b.to_array()
    apart = dense_pair(11, 1)
    listed_a, listed_b = discounted_pair(100, 100)
    sparse_a, sparse_b = evtools_sparse(listed_a), evtools_sparse(listed_b)
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(10), size=100)
    bounds = Bounds(0.5 * p, np.minimum(0.5 * p + 0.5, 1.0))
    zero_one = 1 - np.eye(10)
    return [
        Comparison(
            task="Dempster, 2 dense masses, K=16",
            rival="evtools-dst, transforms on raw arrays",
            ours=lambda: dempster(one_a, one_b),
            theirs=lambda: evtools_dempster(*raw_one),
            target=5,
        ),
        Comparison(
            task="Dempster, 10,000 pairs, K=5",
            rival="evtools-dst, the same in a loop",
            ours=lambda: dempster(many_a, many_b),
            theirs=lambda: [evtools_dempster(a, b) for a, b in zip(*raw_many, strict=True)],
            target=100,
            repeats=3,
        ),
        Comparison(
            task="Dempster, 10,000 pairs, K=5",
            rival="plain batched numpy",
            ours=lambda: dempster(many_a, many_b),
            theirs=lambda: numpy_dempster(*raw_many),
            target=0.5,
        ),
        Comparison(
            task="Dempster, 2 dense masses, K=16",
            rival="plain batched numpy",
            ours=lambda: dempster(one_a, one_b),
            theirs=lambda: numpy_dempster(raw_one[0][None], raw_one[1][None]),
            target=0.5,
        ),
        Comparison(
            task="Dempster, 100 pairs of discounted probabilities, K=100",
            rival="evtools-dst, focal sets in dicts, in a loop",
            ours=lambda: dempster(listed_a, listed_b),
            theirs=lambda: list(map(evtools_combine, sparse_a, sparse_b)),
            target=100,
            repeats=3,
        ),
        Comparison(
            task="Jousselme distance, 2 dense masses, K=11",
            rival="the matrix over all pairs of sets (numpy)",
            ours=lambda: jousselme_distance(*apart),
            theirs=lambda: numpy_jousselme(*apart),
            target=100,
            repeats=3,
        ),
        Comparison(
            task="E-admissible classes, 100 rows of bounds, K=10",
            rival="the linear programmes any other loss needs (HiGHS)",
            ours=lambda: e_admissibility(bounds),
            theirs=lambda: e_admissibility(bounds, zero_one),
            target=100,
            repeats=3,
        ),
    ]
