"""Errors with a name for what can go wrong with belief functions."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dubito._checks import name_rows


class TotalConflictError(ValueError):
    """Masses were combined that share no class, so nothing is left to normalise.

    Attributes
    ----------
    rows : ndarray of int
        The rows concerned.
    """

    def __init__(self, rows: npt.ArrayLike, *, single: bool = False) -> None:
        self.rows = np.atleast_1d(np.asarray(rows))
        who = "the sources" if single else name_rows(self.rows)
        super().__init__(
            f"{who} combine masses with no common class (conflict 1). "
            "Discount the sources or use the disjunctive rule."
        )

    def __reduce__(self) -> tuple[type, tuple[list[int]]]:
        return type(self), (self.rows.tolist(),)
