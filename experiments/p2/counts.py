"""Confusion tables of set-valued decisions: rows by decided set and by true class."""

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

#: The two rules of Denoeux 2019, and two that its conclusion names; "mp": most plausible class.
RULES = ("mp", "interval_dominance", "maximality", "e_admissibility")


def decided(bounds: Bounds, mass: MassBatch) -> dict[str, Bools]:
    """Return the decided sets of each rule with 0/1 losses, (n, K) each."""
    return {
        "mp": most_plausible(bounds.upper),
        "interval_dominance": interval_dominance(bounds),
        "maximality": maximality(mass),
        "e_admissibility": e_admissibility(mass),
    }


def most_plausible(upper: Floats) -> Bools:
    """Return the set of the most plausible class, (n, K); ties go to the first class."""
    return np.arange(upper.shape[1]) == upper.argmax(axis=1)[:, None]


def confusion(sets: Bools, truth: Ints) -> Ints:
    """Return the number of rows by decided set, in bit-mask order, and true class, (2^K - 1, K)."""
    n_classes = sets.shape[1]
    table = np.zeros((2**n_classes - 1, n_classes), dtype=np.intp)
    np.add.at(table, (sets @ (1 << np.arange(n_classes)) - 1, truth), 1)
    return table


def percent(table: Sequence[Sequence[int]] | Ints) -> Floats:
    """Return a table of counts in per cent of all rows."""
    counts = np.asarray(table, dtype=np.float64)
    return 100 * counts / counts.sum()


def error(table: Floats) -> float:
    """Return the percentage of rows with a wrong single class: the error of Denoeux 2019."""
    return float(table[(sizes(table) == 1)[:, None] & ~_inside(table)].sum())


def outside(table: Floats) -> float:
    """Return the percentage of rows whose class is not in the decided set."""
    return float(table[~_inside(table)].sum())


def of_size(table: Floats, size: int) -> float:
    """Return the percentage of rows with decided sets of `size` classes."""
    return float(table[sizes(table) == size].sum())


def guessed(table: Floats) -> float:
    """Return the error when one class of each set is drawn at random."""
    right = (table * _inside(table)).sum(axis=1) / sizes(table)
    return float(table.sum() - right.sum())


def guessed_as_printed(table: Floats) -> float:
    """Return the sum that Denoeux 2019 prints for it: error + pairs / 2 + triples / 3, ..."""
    return error(table) + sum(of_size(table, size) / size for size in range(2, table.shape[1] + 1))


def utility(table: Floats, alpha: float) -> float:
    """Return the mean utility of the sets: 1.6 for u65, 2.2 for u80, in per cent."""
    worth = alpha / sizes(table) + (1 - alpha) / sizes(table) ** 2
    return float((table * _inside(table)).sum(axis=1) @ worth)


def sizes(table: Floats) -> Ints:
    """Return the number of classes of each set."""
    return np.array([mask.bit_count() for mask in range(1, len(table) + 1)])


def _inside(table: Floats) -> Bools:
    masks = np.arange(1, len(table) + 1)
    return (masks[:, None] >> np.arange(table.shape[1])) & 1 == 1
