"""Many mass functions over shared focal sets, as arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, SupportsIndex, overload

import numpy as np
import numpy.typing as npt

from dubito._numerics.row_subsets import row_chunks
from dubito._validation import SUM_TOLERANCE, as_float_array, check_proba, pick_rows
from dubito._wording import counted, name_rows
from dubito.belief._set_words import from_words, group_equal, to_words
from dubito.belief.bounds import Bounds
from dubito.belief.errors import TotalConflictError
from dubito.belief.frame import (
    DENSE_LIMIT,
    Frame,
    Label,
    Subset,
    all_subsets,
    nonempty_subsets,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dubito._typing import BoolArray, FloatArray
    from dubito.belief.mass import MassFunction


class MassBatch:
    r"""n mass functions on one frame that share their focal sets.

    Parameters
    ----------
    frame : Frame or sequence of labels
        The K classes.
    focal : boolean array-like of shape (F, K)
        The focal sets, each once; an all-False row is the empty set.
    mass : array-like of shape (n, F)
        Non-negative, rows sum to one; sums within 1e-5 of it are normalised.

    Notes
    -----
    A *dense* batch lists all :math:`2^K-1` non-empty subsets in bit-mask order (K up to 20);
    other batches list only the sets they need, on frames of any size. Only the unnormalised
    `conjunctive` rule puts mass on the empty set.

    Examples
    --------
    >>> from dubito.belief import MassBatch
    >>> batch = MassBatch(["a", "b"], [[1, 0], [1, 1]], [[0.3, 0.7], [0.9, 0.1]])
    >>> batch.bounds().upper
    array([[1. , 0.7],
           [1. , 0.1]])
    >>> batch.dense().mass
    array([[0.3, 0. , 0.7],
           [0.9, 0. , 0.1]])
    >>> batch[0]
    MassFunction({('a',): 0.3, ('a', 'b'): 0.7}, frame=['a', 'b'])
    """

    __slots__ = ("focal", "frame", "mass")

    frame: Frame
    focal: BoolArray
    mass: FloatArray

    def __init__(self, frame: Iterable[Label], focal: npt.ArrayLike, mass: npt.ArrayLike) -> None:
        self.frame = Frame(frame)
        self.focal = _check_focal(focal, len(self.frame))
        self.mass = as_float_array(mass, "mass", ndim=2).copy()
        if self.mass.shape[1] != len(self.focal):
            raise ValueError(
                f"mass has {self.mass.shape[1]} columns for {len(self.focal)} focal sets."
            )
        _make_sum_one(self.mass)
        self.mass.flags.writeable = False

    @classmethod
    def _trusted(cls, frame: Frame, focal: BoolArray, mass: FloatArray) -> MassBatch:
        """Build without checks from arrays that dubito computed."""
        batch = object.__new__(cls)
        batch.frame, batch.focal, batch.mass = frame, focal, mass
        batch.mass.flags.writeable = batch.focal.flags.writeable = False
        return batch

    @classmethod
    def from_proba(cls, frame: Iterable[Label], proba: npt.ArrayLike) -> MassBatch:
        """Build from probabilities (n, K): all mass on single classes.

        Columns are taken in the order of the frame; names a data frame gives them are not read.
        Such masses express no ignorance; `discount` them by how unreliable they are.

        Examples
        --------
        >>> from dubito.belief import MassBatch, discount
        >>> batch = discount(MassBatch.from_proba(["a", "b"], [[0.8, 0.2]]), 0.1)
        >>> batch.bounds().lower.round(2), batch.bounds().upper.round(2)
        (array([[0.72, 0.18]]), array([[0.82, 0.28]]))
        """
        frame = Frame(frame)
        checked = check_proba(proba)
        if checked.shape[1] != len(frame):
            raise ValueError(f"proba has {checked.shape[1]} columns for {len(frame)} classes.")
        return cls(frame, np.eye(len(frame), dtype=bool), checked / checked.sum(1, keepdims=True))

    @classmethod
    def stack(cls, functions: Iterable[MassFunction]) -> MassBatch:
        """Build from single mass functions on one frame, a row each.

        Examples
        --------
        >>> from dubito.belief import MassBatch, MassFunction
        >>> m = MassFunction({"a": 1.0}, frame=["a", "b"])
        >>> MassBatch.stack([m, MassFunction.vacuous(["a", "b"])]).mass
        array([[1., 0.],
               [0., 1.]])
        """
        from dubito.belief.mass import MassFunction  # noqa: PLC0415 - circular

        listed = list(functions)
        if not all(isinstance(one, MassFunction) for one in listed):
            raise TypeError("stack takes a list of MassFunction, each a row.")
        rows = [one.to_batch() for one in listed]
        if not rows or any(row.frame != rows[0].frame for row in rows):
            raise ValueError("stack needs at least one mass function, all on one frame.")
        groups = group_equal(to_words(np.vstack([row.focal for row in rows])))
        spread = np.zeros((len(rows), len(groups.order)))
        end = np.cumsum([len(row.focal) for row in rows])
        for i, row in enumerate(rows):
            spread[i, end[i] - len(row.focal) : end[i]] = row.mass[0]
        focal = from_words(groups.sets, len(rows[0].frame))
        return cls._from_sorted(rows[0].frame, focal, groups.add_up(spread))

    @classmethod
    def from_array(cls, frame: Iterable[Label], array: npt.ArrayLike) -> MassBatch:
        """Build from masses (n, 2^K) over all bit masks, the empty set first.

        The empty set is listed only when a row puts mass on it.
        """
        frame = Frame(frame)
        full = as_float_array(array, "array", ndim=2)
        n_subsets = len(all_subsets(len(frame)))
        if full.shape[1] != n_subsets:
            raise ValueError(
                f"array must have 2^{len(frame)} = {n_subsets} columns; got {full.shape[1]}."
            )
        full = full.copy()
        _make_sum_one(full)
        return cls._from_full(frame, full, subnormal=bool(full[:, 0].any()))

    @classmethod
    def _from_full(cls, frame: Frame, full: FloatArray, *, subnormal: bool) -> MassBatch:
        """Build without checks from (n, 2^K) masses, listing the empty set only if subnormal."""
        if subnormal:
            return cls._trusted(frame, all_subsets(len(frame)), full)
        return cls._trusted(frame, frame.subsets(), full[:, 1:])

    @classmethod
    def _from_sorted(cls, frame: Frame, focal: BoolArray, mass: FloatArray) -> MassBatch:
        """Build without checks from distinct sets in bit-mask order.

        All subsets, or all non-empty ones, become the shared array: `is_dense` compares identity.
        """
        if len(frame) <= DENSE_LIMIT and len(focal) >= 2 ** len(frame) - 1:
            if len(focal) == 2 ** len(frame):
                focal = all_subsets(len(frame))
            elif focal[0].any():
                focal = frame.subsets()
        return cls._trusted(frame, focal, mass)

    def to_array(self) -> FloatArray:
        """Return the masses (n, 2^K) over all bit masks, the empty set first; K up to 20."""
        subsets = all_subsets(len(self.frame))
        full = np.zeros((len(self), len(subsets)))
        if self.is_dense:
            full[:, 1:] = self.mass
        else:
            full[:, self.focal @ (1 << np.arange(len(self.frame)))] = self.mass
        return full

    @property
    def is_dense(self) -> bool:
        """Whether the focal sets are all non-empty subsets in bit-mask order."""
        return len(self.frame) <= DENSE_LIMIT and self.focal is self.frame.subsets()

    def without_empty_set(self) -> MassBatch:
        """Return the batch without the empty set, not normalised."""
        if self.is_dense:
            return self
        if len(self.frame) <= DENSE_LIMIT and self.focal is all_subsets(len(self.frame)):
            return MassBatch._trusted(self.frame, self.frame.subsets(), self.mass[:, 1:])
        kept = self.focal.any(axis=1)
        return MassBatch._trusted(self.frame, self.focal[kept], self.mass[:, kept])

    def dense(self) -> MassBatch:
        """Return the same masses over all non-empty subsets; K up to 20.

        Raises
        ------
        ValueError
            When a row has mass on the empty set: normalise it first, by `dempster`.
        """
        if self.is_dense:
            return self
        self.check_normal()
        return MassBatch._from_full(self.frame, self.to_array(), subnormal=False)

    def check_normal(self) -> None:
        """Raise an error where there is mass on the empty set."""
        if (self.empty > 0).any():
            rows = name_rows(np.flatnonzero(self.empty > 0))
            raise ValueError(
                f"there is mass on the empty set in {rows}. Normalise first: dempster(batch)."
            )

    @property
    def empty(self) -> FloatArray:
        """Mass on the empty set, (n,)."""
        return self.mass[:, ~self.focal.any(axis=1)].sum(axis=1)

    def bel(self, subset: Subset) -> FloatArray:
        r"""Belief of a subset, (n,): :math:`\sum_{\emptyset\ne B\subseteq A} m(B)`."""
        inside = self.frame.to_indicator(subset)
        return self.mass[:, self.focal.any(axis=1) & ~self.focal[:, ~inside].any(axis=1)].sum(
            axis=1
        )

    def pl(self, subset: Subset) -> FloatArray:
        r"""Plausibility of a subset, (n,): :math:`\sum_{B\cap A\ne\emptyset} m(B)`."""
        inside = self.frame.to_indicator(subset)
        return self.mass[:, self.focal[:, inside].any(axis=1)].sum(axis=1)

    def commonality(self, subset: Subset) -> FloatArray:
        r"""Commonality of a subset, (n,): :math:`\sum_{B\supseteq A} m(B)`."""
        inside = self.frame.to_indicator(subset)
        return self.mass[:, self.focal[:, inside].all(axis=1)].sum(axis=1)

    def contour(self) -> FloatArray:
        """Return the plausibility of each class, (n, K)."""
        return self._sum_over_members(np.ones(len(self.focal)))

    def _opposed(self) -> FloatArray:
        """Return the mass of the sets without each class, (n, K)."""
        return self._sum_over_members(np.ones(len(self.focal)), outside=True)

    def _split_singletons(self) -> tuple[FloatArray, MassBatch]:
        """Return the masses of single classes (n, K), and a batch of the other sets."""
        single = self.focal.sum(axis=1) == 1
        masses = np.zeros((len(self), len(self.frame)))
        masses[:, self.focal[single].argmax(axis=1)] = self.mass[:, single]
        return masses, MassBatch._trusted(self.frame, self.focal[~single], self.mass[:, ~single])

    def bounds(self) -> Bounds:
        """Return belief and plausibility of each class; mass on the empty set is an error."""
        self.check_normal()
        lower, rest = self._split_singletons()
        return Bounds(lower, lower + rest.contour())

    def pignistic(self) -> FloatArray:
        r"""Return :math:`\sum_{A\ni k}m(A)/|A|` over :math:`1-m(\emptyset)`, (n, K)."""
        p = self._sum_over_members(1 / np.maximum(self.focal.sum(axis=1), 1))
        total = p.sum(axis=1, keepdims=True)
        if not (total > 0).all():
            raise TotalConflictError(np.flatnonzero(~(total > 0)))
        return np.asarray(p / total)

    def _sum_over_members(self, factor: FloatArray, *, outside: bool = False) -> FloatArray:
        """Return the sum of factor times mass over the sets with (without) each class, (n, K)."""
        total = np.zeros((len(self), len(self.frame)))
        for sets in row_chunks(len(self.focal), len(self.frame), 2**20):
            total += self.mass[:, sets] @ ((self.focal[sets] ^ outside) * factor[sets, None])
        return total

    def __reduce__(self) -> tuple[object, tuple[Frame, BoolArray | None, FloatArray]]:
        return _restore, (self.frame, None if self.is_dense else self.focal, self.mass)

    def __len__(self) -> int:
        return len(self.mass)

    @overload
    def __getitem__(self, rows: SupportsIndex) -> MassFunction: ...
    @overload
    def __getitem__(self, rows: slice | npt.ArrayLike) -> MassBatch: ...
    def __getitem__(self, rows: Any) -> MassFunction | MassBatch:
        from dubito.belief.mass import MassFunction  # noqa: PLC0415 - circular

        picked = pick_rows(len(self), rows)
        batch = MassBatch._trusted(self.frame, self.focal, self.mass[np.atleast_1d(picked)])
        return MassFunction.from_batch(batch) if picked.ndim == 0 else batch

    def __iter__(self) -> Iterator[MassFunction]:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        kind = "dense" if self.is_dense else counted(len(self.focal), "focal set")
        rows, classes = counted(len(self), "row"), counted(len(self.frame), "class")
        return f"MassBatch({rows}, {classes}, {kind})"


def _check_focal(focal: npt.ArrayLike, n_classes: int) -> BoolArray:
    """Return the checked focal sets; all non-empty subsets become the array that batches share."""
    try:
        sets = np.asarray(focal)
    except ValueError:
        sets = np.empty(0)  # rows of unequal length: refused below
    if sets.shape == (2**n_classes - 1, n_classes) and n_classes <= DENSE_LIMIT:
        listed = nonempty_subsets(n_classes)
        if sets is listed or np.array_equal(sets, listed):
            return listed
    if sets.ndim != 2 or sets.shape[1] != n_classes or len(sets) == 0:
        raise ValueError(
            f"focal must be a boolean array with one row per focal set and {n_classes} columns, "
            f"one per class; got shape {sets.shape}. From labels: frame.to_indicator(labels)."
        )
    if sets.dtype != bool:
        if not np.isin(sets, (0, 1)).all():
            raise ValueError("focal must be boolean: which classes are in each focal set.")
        sets = sets.astype(bool)
    if len(group_equal(to_words(sets)).sets) < len(sets):
        raise ValueError("focal lists a set twice; add up the masses of equal sets first.")
    sets = sets.copy()
    sets.flags.writeable = False
    return sets


def _restore(frame: Frame, focal: BoolArray | None, mass: FloatArray) -> MassBatch:
    """Rebuild a pickled batch; dense ones are pickled without their focal sets."""
    if focal is None:
        return MassBatch._trusted(frame, frame.subsets(), mass)
    if len(focal) == 2 ** min(len(frame), 62) and np.array_equal(focal, all_subsets(len(frame))):
        focal = all_subsets(len(frame))
    return MassBatch._trusted(frame, focal, mass)


def _make_sum_one(mass: FloatArray) -> None:
    """Normalise rows that sum to 1 up to rounding, in place; raise an error for others."""
    negative = np.flatnonzero((mass < 0).any(axis=1))
    if len(negative):
        raise ValueError(f"masses must not be negative, as in {name_rows(negative)}.")
    total = mass.sum(axis=1)
    wrong = np.flatnonzero(np.abs(total - 1) > SUM_TOLERANCE)
    if len(wrong):
        raise ValueError(
            f"masses must sum to 1; not so in {name_rows(wrong)} (row {wrong[0]} sums to "
            f"{total[wrong[0]]:.6g}). Mass not given elsewhere belongs to the whole frame."
        )
    off = np.abs(total - 1) > 1e-12
    mass[off] /= total[off, None]
