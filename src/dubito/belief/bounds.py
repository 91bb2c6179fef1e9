"""Lower and upper probabilities of the classes: what every model of the house can give."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dubito._checks import FloatArray, as_float_array, check_proba, name_rows

if TYPE_CHECKING:
    from collections.abc import Iterator

_TOLERANCE = 1e-6


class Bounds:
    r"""Belief and plausibility (or lower and upper probability) of each class, row by row.

    Parameters
    ----------
    lower, upper : array-like of shape (n, K)
        :math:`0\le\text{lower}\le\text{upper}\le1`, and in each row
        :math:`\sum_k\text{lower}_k\le1\le\sum_k\text{upper}_k`: some probability lies between.
        Excess within 1e-6 is taken for rounding and cut off.

    Examples
    --------
    >>> bounds = Bounds([[0.2, 0.5]], [[0.5, 0.8]])
    >>> bounds.width
    array([[0.3, 0.3]])
    >>> bounds.pignistic()
    array([[0.35, 0.65]])
    """

    __slots__ = ("lower", "upper")

    lower: FloatArray
    upper: FloatArray

    def __init__(self, lower: npt.ArrayLike, upper: npt.ArrayLike) -> None:
        low = as_float_array(lower, "lower", ndim=2)
        high = as_float_array(upper, "upper", ndim=2)
        if low.shape != high.shape:
            raise ValueError(
                f"lower and upper must have one shape; got {low.shape} and {high.shape}."
            )
        if low.shape[1] == 0:
            raise ValueError("lower and upper need at least one class; got none.")
        _reject_rows((low > high + _TOLERANCE).any(axis=1), "lower exceeds upper")
        _reject_rows(
            ((low < -_TOLERANCE) | (high > 1 + _TOLERANCE)).any(axis=1), "a bound is outside [0, 1]"
        )
        _reject_rows(low.sum(axis=1) > 1 + _TOLERANCE, "the lower bounds sum to more than 1")
        _reject_rows(high.sum(axis=1) < 1 - _TOLERANCE, "the upper bounds sum to less than 1")
        self.upper = np.clip(high, 0.0, 1.0)
        self.lower = np.clip(low, 0.0, self.upper)
        self.lower.flags.writeable = self.upper.flags.writeable = False

    @classmethod
    def precise(cls, proba: npt.ArrayLike) -> Bounds:
        """Bounds of width zero around probabilities (n, K) whose rows sum to one."""
        checked = check_proba(proba)
        return cls(checked, checked)

    @property
    def width(self) -> FloatArray:
        """Upper minus lower, (n, K): what is not known."""
        return self.upper - self.lower

    def contour(self) -> FloatArray:
        """Return the plausibility of each class: the upper bounds."""
        return self.upper

    def pignistic(self) -> FloatArray:
        r"""Return the one probability that divides every interval at the same ratio, (n, K).

        :math:`p_k=l_k+\beta(u_k-l_k)` with :math:`\beta=(1-\sum l)/\sum(u-l)` (Cuzzolin's
        intersection probability). It is the pignistic probability whenever the bounds come from
        two classes or from a mass function on singletons and the whole frame; in general the
        bounds alone do not determine the pignistic probability.
        """
        width = self.width
        room = width.sum(axis=1)
        share = np.divide(1 - self.lower.sum(axis=1), room, out=np.zeros_like(room), where=room > 0)
        p = self.lower + np.clip(share, 0.0, 1.0)[:, None] * width
        return np.asarray(p / p.sum(axis=1, keepdims=True))

    def __len__(self) -> int:
        return len(self.lower)

    def __getitem__(self, rows: Any) -> Bounds:
        picked = np.arange(len(self))[rows]
        kept = object.__new__(Bounds)
        kept.lower = self.lower[np.atleast_1d(picked)]
        kept.upper = self.upper[np.atleast_1d(picked)]
        return kept

    def __iter__(self) -> Iterator[Bounds]:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        n, k = self.lower.shape
        mean = f", mean width {self.width.mean():.3g}" if n else ""
        return f"Bounds({n} rows, {k} classes{mean})"


def _reject_rows(bad: npt.ArrayLike, what: str) -> None:
    if np.any(bad):
        raise ValueError(f"{what} in {name_rows(np.flatnonzero(bad))}; no probability fits.")
