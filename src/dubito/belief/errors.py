"""Errors of belief functions."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dubito._wording import name_rows

_NO_COMMON_CLASS = (
    "{} masses with no common class (conflict 1). Discount the sources or use the disjunctive rule."
)


class TotalConflictError(ValueError):
    """Masses were combined that share no class, so nothing is left to normalise.

    Attributes
    ----------
    rows : ndarray of int
        The rows concerned.
    """

    def __init__(self, rows: npt.ArrayLike, message: str | None = None) -> None:
        self.rows = np.atleast_1d(np.asarray(rows))
        if message is None:
            verb = "combines" if len(self.rows) == 1 else "combine"
            message = _NO_COMMON_CLASS.format(f"{name_rows(self.rows)} {verb}")
        super().__init__(message)

    @classmethod
    def of_single(cls) -> TotalConflictError:
        """Return the error for single mass functions, which have no row numbers."""
        return cls([0], _NO_COMMON_CLASS.format("the sources combine"))

    def __reduce__(self) -> tuple[type, tuple[list[int], str]]:
        return type(self), (self.rows.tolist(), str(self))
