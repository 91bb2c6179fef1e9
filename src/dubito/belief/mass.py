"""One mass function, built from a dict and indexed by labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dubito._validation import labelled
from dubito.belief.batch import MassBatch
from dubito.belief.frame import Frame, Label, Subset, labels_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from dubito._typing import FloatArray


class MassFunction:
    r"""A belief function on one question, given by its masses :math:`m(A)`, :math:`\sum_A m(A)=1`.

    Parameters
    ----------
    masses : mapping from subsets to masses
        A subset is one label or a tuple of labels; masses are non-negative and sum to one.
    frame : Frame or sequence of labels, optional
        All classes. By default the labels of `masses`, in the order of their first occurrence.

    Examples
    --------
    >>> from dubito.belief import MassFunction
    >>> m = MassFunction({"flu": 0.5, ("flu", "cold"): 0.3, ("flu", "cold", "covid"): 0.2})
    >>> m.bel(["flu", "cold"]), m.pl("cold")
    (0.8, 0.5)
    >>> m.pignistic().round(3)
    array([0.717, 0.217, 0.067])
    >>> print(m)
    m{flu} = 0.5, m{flu, cold} = 0.3, m{flu, cold, covid} = 0.2
             belief  pignistic  plausibility
      flu     0.500      0.717         1.000
      cold    0.000      0.217         0.500
      covid   0.000      0.067         0.200
    """

    __slots__ = ("_row",)

    _row: MassBatch

    def __init__(
        self, masses: Mapping[Subset, float], frame: Iterable[Label] | None = None
    ) -> None:
        masses = _check_mapping(masses)
        if len(masses) == 0:
            raise ValueError("masses is empty; total ignorance is MassFunction.vacuous(frame).")
        if frame is None:
            if any(isinstance(subset, set | frozenset) for subset in masses):
                raise ValueError("sets have no order; say the order of the classes by frame=.")
            frame = dict.fromkeys(label for subset in masses for label in labels_of(subset))
        frame = Frame(frame)
        focal = np.array([frame.to_indicator(subset) for subset in masses], dtype=bool)
        self._row = MassBatch(frame, focal, [list(masses.values())])

    @classmethod
    def from_batch(cls, batch: MassBatch) -> MassFunction:
        """Return the mass function of a batch of one row, without the sets of mass 0."""
        if len(batch) != 1:
            raise ValueError(f"a mass function is one row; the batch has {len(batch)}.")
        used = np.flatnonzero(batch.mass[0])
        one = object.__new__(cls)
        one._row = MassBatch._trusted(batch.frame, batch.focal[used], batch.mass[:, used])
        return one

    @classmethod
    def vacuous(cls, frame: Iterable[Label]) -> MassFunction:
        """Return total ignorance: all mass on the whole frame."""
        frame = Frame(frame)
        return cls({frame.labels: 1.0}, frame)

    @property
    def frame(self) -> Frame:
        """The classes."""
        return self._row.frame

    @property
    def masses(self) -> dict[tuple[Label, ...], float]:
        """The focal sets and their masses, small sets first."""
        focal = self._row.focal
        order = sorted(range(len(focal)), key=lambda i: (focal[i].sum(), *~focal[i]))
        return {self.frame.from_indicator(focal[i]): float(self._row.mass[0, i]) for i in order}

    def to_batch(self) -> MassBatch:
        """Return the batch of this one row."""
        return self._row

    def __reduce__(self) -> tuple[object, tuple[MassBatch]]:
        return MassFunction.from_batch, (self._row,)

    def __getitem__(self, subset: Subset) -> float:
        inside = self.frame.to_indicator(subset)
        return float(self._row.mass[0, (self._row.focal == inside).all(axis=1)].sum())

    def bel(self, subset: Subset) -> float:
        r"""Belief: the mass that implies it, :math:`\sum_{\emptyset\ne B\subseteq A}m(B)`."""
        return float(self._row.bel(subset)[0])

    def pl(self, subset: Subset) -> float:
        r"""Plausibility: the mass not against it, :math:`\sum_{B\cap A\ne\emptyset}m(B)`."""
        return float(self._row.pl(subset)[0])

    def commonality(self, subset: Subset) -> float:
        r"""Commonality: the mass of the sets that contain it, :math:`\sum_{B\supseteq A}m(B)`."""
        return float(self._row.commonality(subset)[0])

    def contour(self) -> FloatArray:
        """Return the plausibility of each class, (K,)."""
        return self._row.contour()[0]

    def pignistic(self) -> FloatArray:
        r"""Return :math:`\sum_{A\ni k}m(A)/|A|` over :math:`1-m(\emptyset)`, (K,)."""
        return self._row.pignistic()[0]

    __iter__ = None  # indexed by subset, hence not iterable

    def __repr__(self) -> str:
        shown = ", ".join(f"{subset!r}: {mass:.6g}" for subset, mass in self.masses.items())
        return f"MassFunction({{{shown}}}, frame={list(self.frame.labels)!r})"

    def __str__(self) -> str:
        sets = ", ".join(
            f"m{{{', '.join(map(str, subset))}}} = {mass:.4g}" if subset else f"m(∅) = {mass:.4g}"
            for subset, mass in self.masses.items()
        )
        if self[()] == 1:  # total conflict: classes have no belief
            return sets
        width = max(len(str(label)) for label in self.frame.labels)
        table = zip(
            self.frame.labels,
            map(self.bel, self.frame.labels),
            self.pignistic(),
            self.contour(),
            strict=True,
        )
        lines = [f"  {label!s:<{width}}  {b:6.3f} {p:10.3f} {u:13.3f}" for label, b, p, u in table]
        head = f"  {'':<{width}}  belief  pignistic  plausibility"
        return "\n".join([sets, head, *lines])


def _check_mapping(masses: Any) -> Mapping[Subset, float]:
    mapping = labelled(masses)
    if mapping is None:
        raise TypeError(
            "masses must map subsets to their masses, as in {'a': 0.4, ('a', 'b'): 0.6}; "
            f"got {type(masses).__name__}."
        )
    return mapping
