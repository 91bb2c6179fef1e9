"""Rows set aside, in proportion to the classes and never the last of one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.random import Generator

    from dubito._checks import BoolArray, IntArray
    from dubito.dichotomies._class_rows import ClassRows


def rows_aside(rows: ClassRows, share: float, rng: Generator) -> BoolArray:
    """Return which rows are set aside, of those with weight; there may be none."""
    counted = np.flatnonzero(rows.weight)
    aside = np.zeros(len(rows.codes), dtype=bool)
    aside[counted] = set_aside(rows.codes[counted], share, rng)
    return aside


def set_aside(codes: IntArray, share: float, rng: Generator) -> BoolArray:
    """Return which rows are set aside: about a share of all, and of every class.

    Rows are walked through class by class, in random order, and one is taken whenever another
    unit of the share is full, so that a class gives its part rounded up or down by chance. Every
    class keeps a row: where one would lose its last, it stays.

    Parameters
    ----------
    codes : ndarray of int, shape (n,)
        The class of each row, 0..K-1.
    share : float
        Part to set aside, between 0 and 1.
    rng : Generator
        Decides which rows.
    """
    n_classes = int(codes.max()) + 1
    shuffled = rng.permutation(len(codes))
    # Classes in random order as well: what is left of one unit goes over to the next class.
    rank = rng.permutation(n_classes)
    walk = shuffled[np.argsort(rank[codes[shuffled]], kind="stable")]
    units = np.floor(share * np.arange(len(walk) + 1) + rng.random())
    taken = np.diff(units) > 0
    aside = np.zeros(len(codes), dtype=bool)
    aside[walk[taken]] = True
    emptied = np.bincount(codes[~aside], minlength=n_classes) == 0
    if emptied.any():
        first_of_class = np.unique(codes[walk], return_index=True)[1]
        aside[walk[first_of_class[emptied]]] = False
    return aside
