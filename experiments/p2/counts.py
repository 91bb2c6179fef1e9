"""Tables of how many rows of each class were decided for each set of classes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dubito.decision import e_admissibility, interval_dominance, maximality

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from dubito.belief import Bounds, MassBatch

    Bools = npt.NDArray[np.bool_]
    Floats = npt.NDArray[np.float64]
    Ints = npt.NDArray[np.intp]

#: The paper's two rules, and the two its outlook names; "mp" is the most plausible class.
RULES = ("mp", "interval_dominance", "maximality", "e_admissibility")


def decided(bounds: Bounds, mass: MassBatch) -> dict[str, Bools]:
    """Return the set that each rule decides for, (n, K) each, with 0/1 losses."""
    return {
        "mp": most_plausible(bounds.upper),
        "interval_dominance": interval_dominance(bounds),
        "maximality": maximality(mass),
        "e_admissibility": e_admissibility(mass),
    }


def most_plausible(upper: Floats) -> Bools:
    """Return the class of the largest plausibility alone, (n, K); the first of equal ones."""
    return np.arange(upper.shape[1]) == upper.argmax(axis=1)[:, None]


def confusion(sets: Bools, truth: Ints) -> Ints:
    """Count rows by the set decided for (in bit-mask order) and by class, (2^K - 1, K)."""
    n_classes = sets.shape[1]
    table = np.zeros((2**n_classes - 1, n_classes), dtype=np.intp)
    np.add.at(table, (sets @ (1 << np.arange(n_classes)) - 1, truth), 1)
    return table


def percent(table: Sequence[Sequence[int]] | Ints) -> Floats:
    """Return a table in per cent of all its rows."""
    counts = np.asarray(table, dtype=np.float64)
    return 100 * counts / counts.sum()


def error(share: Floats) -> float:
    """Return the share of rows decided for a single class, and a wrong one: P2's error rate."""
    return float(share[(sizes(share) == 1)[:, None] & ~_inside(share)].sum())


def outside(share: Floats) -> float:
    """Return the share of rows whose class is not in the set decided for."""
    return float(share[~_inside(share)].sum())


def of_size(share: Floats, size: int) -> float:
    """Return the share of rows decided for a set of that many classes."""
    return float(share[sizes(share) == size].sum())


def guessed(share: Floats) -> float:
    """Return the error when one class of each set is drawn at random."""
    right = (share * _inside(share)).sum(axis=1) / sizes(share)
    return float(share.sum() - right.sum())


def guessed_as_printed(share: Floats) -> float:
    """Return P2's sum for the same: error + pairs / 2 + triples / 3, and so on."""
    return error(share) + sum(of_size(share, size) / size for size in range(2, share.shape[1] + 1))


def utility(share: Floats, alpha: float) -> float:
    """Return the mean utility of the sets: 1.6 for u65, 2.2 for u80, in per cent."""
    worth = alpha / sizes(share) + (1 - alpha) / sizes(share) ** 2
    return float((share * _inside(share)).sum(axis=1) @ worth)


def sizes(share: Floats) -> Ints:
    """Return how many classes each set has."""
    return np.array([mask.bit_count() for mask in range(1, len(share) + 1)])


def _inside(share: Floats) -> Bools:
    masks = np.arange(1, len(share) + 1)
    return (masks[:, None] >> np.arange(share.shape[1])) & 1 == 1
