"""Lower and upper probabilities of the classes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dubito._validation import SUM_TOLERANCE, as_float_array, check_level, check_proba, pick_rows
from dubito._wording import counted, name_rows, name_some

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dubito._typing import FloatArray


class Bounds:
    r"""Belief and plausibility (or lower and upper probability) of each class, row by row.

    Parameters
    ----------
    lower, upper : array-like of shape (n, K)
        :math:`0\le\text{lower}\le\text{upper}\le1`, and in each row
        :math:`\sum_k\text{lower}_k\le1\le\sum_k\text{upper}_k`: some probability lies between.
        Violations of up to 1e-5 are corrected as rounding.
    level : float, optional
        The confidence level at which the bounds contain the true probability; None for belief and
        plausibility, and other bounds without a level.

    Notes
    -----
    Bounds unpack into two arrays, ``lower, upper = bounds``. A row or several are picked by index,
    and ``len(bounds)`` is the number of rows.

    Examples
    --------
    >>> from dubito.belief import Bounds
    >>> bounds = Bounds([[0.2, 0.5]], [[0.5, 0.8]])
    >>> bounds.width
    array([[0.3, 0.3]])
    >>> bounds.pignistic()
    array([[0.35, 0.65]])
    >>> lower, upper = bounds
    >>> upper
    array([[0.5, 0.8]])
    """

    __slots__ = ("level", "lower", "upper")

    lower: FloatArray
    upper: FloatArray
    level: float | None

    def __init__(
        self, lower: npt.ArrayLike, upper: npt.ArrayLike, level: float | None = None
    ) -> None:
        low = as_float_array(lower, "lower", ndim=2)
        high = as_float_array(upper, "upper", ndim=2)
        if low.shape != high.shape:
            raise ValueError(
                f"lower and upper must have one shape; got {low.shape} and {high.shape}."
            )
        if low.shape[1] == 0:
            raise ValueError("lower and upper need at least one class; got none.")
        _refuse_rows((low > high + SUM_TOLERANCE).any(axis=1), "lower exceeds upper")
        _refuse_rows(
            ((low < -SUM_TOLERANCE) | (high > 1 + SUM_TOLERANCE)).any(axis=1),
            "a bound is outside [0, 1]",
        )
        _refuse_rows(low.sum(axis=1) > 1 + SUM_TOLERANCE, "the lower bounds sum to more than 1")
        _refuse_rows(high.sum(axis=1) < 1 - SUM_TOLERANCE, "the upper bounds sum to less than 1")
        high = np.clip(high, 0.0, 1.0)
        high = np.minimum(high / np.minimum(high.sum(axis=1, keepdims=True), 1.0), 1.0)
        low = np.clip(low, 0.0, high)
        low = low / np.maximum(low.sum(axis=1, keepdims=True), 1.0)
        self._set(low, high, check_level(level))

    @classmethod
    def _trusted(cls, lower: FloatArray, upper: FloatArray, level: float | None = None) -> Bounds:
        """Build without checks from arrays that dubito computed."""
        return object.__new__(cls)._set(lower, upper, level)

    def _set(self, lower: FloatArray, upper: FloatArray, level: float | None = None) -> Bounds:
        self.lower, self.upper, self.level = lower, upper, level
        self.lower.flags.writeable = self.upper.flags.writeable = False
        return self

    @classmethod
    def precise(cls, proba: npt.ArrayLike) -> Bounds:
        """Return bounds of width zero around probabilities (n, K) whose rows sum to one."""
        checked = check_proba(proba)
        checked = checked / checked.sum(axis=1, keepdims=True)
        return cls._trusted(checked, checked)

    def tightened(self) -> Bounds:
        r"""Return the tightest bounds that allow the same probabilities.

        A class cannot have more than the others' lower bounds leave, nor less than their upper
        bounds leave: :math:`u'_k=\min(u_k,1-\sum_{j\ne k}l_j)` and
        :math:`l'_k=\max(l_k,1-\sum_{j\ne k}u_j)`. Bounds of a mass function are tight already.

        Examples
        --------
        >>> from dubito.belief import Bounds
        >>> Bounds([[0.6, 0.0]], [[1.0, 0.9]]).tightened().upper
        array([[1. , 0.4]])
        """
        spare = 1 - self.lower.sum(axis=1, keepdims=True)
        surplus = self.upper.sum(axis=1, keepdims=True) - 1
        upper = np.minimum(self.upper, self.lower + np.maximum(spare, 0.0))
        lower = np.maximum(self.lower, self.upper - np.maximum(surplus, 0.0))
        return Bounds._trusted(np.minimum(lower, upper), upper, self.level)

    def including(self, proba: FloatArray) -> Bounds:
        """Return bounds widened where needed to contain probabilities (n, K) whose rows sum to 1.

        With more than two classes, a normalised plausibility may be less than the belief.

        Examples
        --------
        >>> import numpy as np
        >>> from dubito.belief import Bounds
        >>> Bounds([[0.5, 0.1]], [[0.8, 0.5]]).including(np.array([[0.4, 0.6]]))[0].lower
        array([[0.4, 0.1]])
        """
        return Bounds._trusted(*including(proba, (self.lower, self.upper)), self.level)

    @property
    def width(self) -> FloatArray:
        """Upper minus lower bound, (n, K)."""
        return self.upper - self.lower

    def contour(self) -> FloatArray:
        """Return the plausibility of each class: the upper bounds."""
        return self.upper

    def pignistic(self) -> FloatArray:
        r"""Return the probability that stands for the pignistic one: all intervals at one ratio.

        :math:`p_k=l_k+\beta(u_k-l_k)` with :math:`\beta=(1-\sum l)/\sum(u-l)` (Cuzzolin's
        intersection probability). It is the pignistic probability whenever the bounds come from
        two classes or from a mass function on singletons and the whole frame; in general the
        bounds alone do not determine the pignistic probability.
        """
        width = self.width
        total = width.sum(axis=1)
        spare = 1 - self.lower.sum(axis=1)
        beta = np.divide(spare, total, out=np.zeros_like(total), where=total > 0)
        p = self.lower + np.clip(beta, 0.0, 1.0)[:, None] * width
        return np.asarray(p / p.sum(axis=1, keepdims=True))

    def __len__(self) -> int:
        return len(self.lower)

    def __getitem__(self, rows: Any) -> Bounds:
        picked = pick_rows(len(self), rows)
        some = np.atleast_1d(picked)
        return Bounds._trusted(self.lower[some], self.upper[some], self.level)

    def __reduce__(self) -> tuple[object, tuple[FloatArray, FloatArray, float | None]]:
        return _restore, (self.lower, self.upper, self.level)

    def __setstate__(self, state: tuple[None, dict[str, Any]]) -> None:
        self._set(**state[1])  # used by skops; pickle uses `_restore`

    def __iter__(self) -> Iterator[FloatArray]:
        return iter((self.lower, self.upper))

    def to_pandas(self, classes: Any = None, index: Any = None) -> Any:
        """Return a DataFrame with two columns for each class, its lower and its upper bound.

        Parameters
        ----------
        classes : sequence of K labels, optional
            Names of the classes, as ``model.classes_``; 0..K-1 by default.
        index : sequence of n, optional
            Names of the rows, as ``X.index``.

        Returns
        -------
        pandas.DataFrame
            Columns are pairs (class, "lower" or "upper"), so ``table["yes"]`` has one class's
            two bounds and ``table.xs("lower", axis=1, level="bound")`` all lower ones.
            ``table.attrs["level"]`` is the confidence level.

        Examples
        --------
        >>> from dubito.belief import Bounds
        >>> Bounds([[0.2, 0.5]], [[0.5, 0.8]]).to_pandas(["no", "yes"])
        class    no         yes
        bound lower upper lower upper
        0       0.2   0.5   0.5   0.8
        """
        try:
            import pandas as pd  # noqa: PLC0415 - an extra
        except ImportError as error:
            raise ImportError("to_pandas needs pandas: pip install pandas.") from error
        n, n_classes = self.lower.shape
        names = (
            list(range(n_classes))
            if classes is None
            else list(_checked_sequence(classes, "classes"))
        )
        if len(names) != n_classes:
            raise ValueError(
                f"classes has {len(names)} labels, but the bounds have "
                f"{counted(n_classes, 'class')}; pass one label for each, as model.classes_."
            )
        if len(set(names)) < n_classes:
            raise ValueError(f"classes must name each class once; got {name_some(names)}.")
        if index is not None and len(_checked_sequence(index, "index")) != n:
            raise ValueError(
                f"index has {counted(len(index), 'name')}, but the bounds have "
                f"{counted(n, 'row')}; "
                "pass one name for each, as X.index."
            )
        columns = pd.MultiIndex.from_product([names, ["lower", "upper"]], names=["class", "bound"])
        values = np.stack([self.lower, self.upper], axis=2).reshape(len(self), -1)
        table = pd.DataFrame(values, index=index, columns=columns)
        table.attrs["level"] = self.level
        return table

    def __repr__(self) -> str:
        n, k = self.lower.shape
        mean = f", mean width {self.width.mean():.3g}" if n else ""
        level = "" if self.level is None else f", level {self.level:.15g}"
        return f"Bounds({counted(n, 'row')}, {counted(k, 'class')}{mean}{level})"


def _checked_sequence(values: Any, name: str) -> Any:
    """Return values that have a length; raise an error for others."""
    if not hasattr(values, "__len__") or isinstance(values, str):
        raise TypeError(f"{name} must be a sequence of labels; got {values!r}.")
    return values


def including(
    proba: FloatArray, bounds: tuple[FloatArray, FloatArray]
) -> tuple[FloatArray, FloatArray]:
    """Return lower and upper bounds, moved where needed so that they contain the probabilities.

    The two may disagree where they come from different fits, or by rounding.
    """
    lower, upper = bounds
    return np.minimum(lower, proba), np.maximum(upper, proba)


def _restore(lower: FloatArray, upper: FloatArray, level: float | None = None) -> Bounds:
    """Return pickled bounds, without checks."""
    return Bounds._trusted(lower, upper, level)


def _refuse_rows(bad: npt.ArrayLike, what: str) -> None:
    """Raise an error that names the bad rows, if there are any."""
    if np.any(bad):
        raise ValueError(f"{what} in {name_rows(np.flatnonzero(bad))}; no probability fits.")
