"""Explanations of predictions: the pieces of evidence as a table, in words and as a plot."""

from __future__ import annotations

from functools import cached_property
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dubito._validation import as_float_array, pick_rows
from dubito._wording import counted, name_some, shorten
from dubito.evidence.explanation_text import (
    LONGEST_LABEL,
    MAX_CLASSES_NAMED,
    by_plausibility,
    check_integer,
    signed_sums,
    text_of_row,
)
from dubito.evidence.weights import (
    bounds_from_weights,
    conflict_from_weights,
    ignorance_from_weights,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from matplotlib.axes import Axes

    from dubito._typing import AnyArray, FloatArray
    from dubito.belief import Bounds
    from dubito.plots.evidence import EvidenceDisplay


#: Rows explained when all are printed.
MAX_ROWS_PRINTED = 5


class Explanation:
    r"""The evidence behind predictions: the weights of each feature for and against each class.

    Made by `EvidentialClassifier.explain`. Each piece of evidence has a weight w for each class:
    positive weights support the class to the degree :math:`1-e^{-w}`, negative ones its complement
    to the degree :math:`1-e^{-|w|}`. Weights of different pieces add up; 0 is no evidence.

    Parameters
    ----------
    weights : array-like of shape (n, pieces, K)
        Signed weights; for two classes also all non-negative, the part for each class.
    names : sequence of str
        One for each piece.
    classes : sequence of K labels
    values : array-like of shape (n, pieces), optional
        What to show beside the name: the value of the input a piece comes from, None for none.
    rows : sequence of n labels, optional
        What to call the rows; 0, 1, ... by default.

    Attributes
    ----------
    weights, names, classes, values, rows : ndarray
        As given.
    totals : tuple of two ndarrays of shape (n, K)
        Total weights for each class and against it.
    bounds : Bounds
        Belief and plausibility of each class, given all evidence. The belief may exceed the
        probability; in `EvidentialClassifier.predict_bounds` it does not.
    conflict, ignorance : ndarray of shape (n,)
        Degree of conflict between the pieces, in [0, 1], and the mass of the whole frame.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from dubito.evidence import EvidentialClassifier
    >>> data = load_breast_cancer(as_frame=True)
    >>> X = data.data[["mean radius", "mean texture", "mean symmetry"]]
    >>> y = data.target_names[data.target]
    >>> ev = EvidentialClassifier(make_pipeline(StandardScaler(), LogisticRegression())).fit(X, y)
    >>> explanation = ev.explain(X.loc[[36, 182]])
    >>> print(explanation.text())
    row 36: "malignant" plausible (0.92), belief 0.34, ignorance 0.59, conflict 0.04
      mean texture  = 21.72    +0.35 for malignant
      mean radius   = 14.25    +0.12 for benign
      mean symmetry = 0.1885   +0.10 for malignant
    Doubt here is lack of evidence, not conflict.
    >>> print(explanation.text(1))
    row 182: "malignant" plausible (0.64), belief 0.48, ignorance 0.16, conflict 0.52
      mean radius   = 15.7     +1.38 for malignant
      mean symmetry = 0.1618   +1.19 for benign
      1 other                  <0.01 for or against any class
    Doubt here is conflict, not lack of evidence.
    >>> explanation[0].table["weight"].round(2)
    array([0.12, 0.  , 0.  , 0.35, 0.  , 0.1 ])
    """

    def __init__(
        self,
        *,
        weights: npt.ArrayLike,
        names: Sequence[str] | AnyArray,
        classes: Any,
        values: Any = None,
        rows: Any = None,
    ) -> None:
        self.weights = as_float_array(weights, "weights", ndim=3)
        n, n_pieces, n_classes = self.weights.shape
        self.names = _listed(names)
        self.classes = _listed(classes)
        self.values = np.full((n, n_pieces), None) if values is None else np.asarray(values)
        self.rows = np.arange(n) if rows is None else _listed(rows)
        self._check("names", (n_pieces,))
        self._check("classes", (n_classes,))
        self._check("values", (n, n_pieces))
        self._check("rows", (n,))
        self.totals = signed_sums(self.weights, axis=1)
        self.bounds: Bounds = bounds_from_weights(*self.totals)
        self.conflict: FloatArray = conflict_from_weights(*self.totals)
        self.ignorance: FloatArray = ignorance_from_weights(*self.totals)

    def _check(self, name: str, shape: tuple[int, ...]) -> None:
        given = getattr(self, name).shape
        if given != shape:
            raise ValueError(
                f"{name} must have shape {shape} to go with weights of shape "
                f"{self.weights.shape} (rows, pieces, classes); got {given}."
            )

    @cached_property
    def table(self) -> dict[str, AnyArray]:
        r"""Every weight in a tidy table, as columns of one length: rows x pieces x classes.

        ``row``, ``feature``, ``value``, ``class``, ``weight`` and ``support``
        (:math:`1-e^{-|w|}`). ``pandas.DataFrame(table)`` and ``polars.DataFrame(table)`` take it
        as it is. Values that are not all numbers are given as strings, empty where there is none.
        """
        n, n_pieces, n_classes = self.weights.shape
        weight = self.weights.ravel()
        return {
            "row": np.repeat(_column(self.rows), n_pieces * n_classes),
            "feature": np.tile(np.repeat(_column(self.names), n_classes), n),
            "value": np.repeat(_column(self.values.ravel()), n_classes),
            "class": np.tile(_column(self.classes), n * n_pieces),
            "weight": weight,
            "support": -np.expm1(-np.abs(weight)),
        }

    def to_pandas(self) -> Any:
        """Return `table` as a pandas DataFrame."""
        try:
            import pandas as pd  # noqa: PLC0415 - an extra
        except ImportError as error:
            raise ImportError(
                "to_pandas needs pandas: pip install pandas, or use the columns of .table."
            ) from error
        return pd.DataFrame(self.table)

    def text(self, row: int = 0, *, max_pieces: int = 10, target: Any = None) -> str:
        r"""Return an explanation of one row in words.

        Parameters
        ----------
        row : int, default 0
            Its number among the rows explained here.
        max_pieces : int, default 10
            Pieces of evidence listed one by one.
        target : class label, optional
            List the evidence for and against this class. By default the most plausible one where
            there are more than three classes; with fewer, all of them.

        Returns
        -------
        str
            First the most plausible class, with its plausibility and belief, the ignorance and the
            conflict. Then the pieces of evidence, the largest weight first: its weight for
            the target, or its largest weights for a class and against one; `table` has the others.
            Pieces beyond `max_pieces`, and those that would read 0.00, are added up in one
            line. Last the doubt that is left, or the one class the evidence leaves and the next
            plausible one.

        Notes
        -----
        There is doubt while more than one class remains by `dubito.decision.interval_dominance`: no
        lower bound, the belief or the probability if that is smaller, exceeds the others'
        plausibilities. It comes from lack of evidence as far as belief
        names no single class, :math:`1-\sum_kBel(k)` (for two classes, the ignorance), and from
        conflict as far as the pieces contradict one another, :math:`\kappa`. One of them is named
        alone when, with the two digits shown, it is at least three times the other (which is then
        a third or less); both are named otherwise. With the same weight for each of two classes
        that is lack of evidence up to a weight of 0.48, conflict from 1.25 on, both in between.
        Where one class remains and the next is at least a third as plausible, the same is stated
        for that one.

        Lack of evidence is about the values of the row: near the average they support no class.
        Whether training rows like this one exist is measured by `dubito.NoveltyAwareClassifier`.

        Beyond two classes evidence against one class is evidence for the others: the weights of a
        piece sum to 0, so that a piece alone may hold some conflict.
        """
        i = self._row_number(row)
        column = self._target_column(i, target)
        return text_of_row(self, i, column=column, max_pieces=max_pieces)

    def plot(
        self,
        row: int = 0,
        *,
        target: Any = None,
        max_pieces: int = 10,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> EvidenceDisplay:
        """Draw the weights of evidence of one row as a waterfall.

        Parameters
        ----------
        row : int, default 0
            Its number among the rows explained here.
        target, max_pieces, ax, **kwargs
            As in `dubito.plots.EvidenceDisplay.from_explanation`.

        Returns
        -------
        EvidenceDisplay
        """
        from dubito.plots.evidence import EvidenceDisplay  # noqa: PLC0415 - drawing only

        return EvidenceDisplay.from_explanation(
            self[self._row_number(row)], target=target, max_pieces=max_pieces, ax=ax, **kwargs
        )

    def _target_column(self, i: int, target: Any) -> int | None:
        """Return the column of the class that is explained, None for all classes."""
        if target is None:
            few = len(self.classes) <= MAX_CLASSES_NAMED
            return None if few else int(by_plausibility(self, i)[0])
        if target in self.classes.tolist():
            return int(self.classes.tolist().index(target))
        shown = name_some(
            list(self.classes), show=lambda label: shorten(label, LONGEST_LABEL), rest=", ..."
        )
        raise ValueError(f"target must be one of the classes {shown}. Got {target!r}.")

    def _row_number(self, row: int) -> int:
        number = check_integer(row, "row")
        if not -len(self) <= number < len(self):
            raise IndexError(
                f"there is no row {row}: {counted(len(self), 'row')} explained, numbered from 0."
            )
        return number % len(self)

    def __len__(self) -> int:
        return len(self.weights)

    def __getitem__(self, rows: Any) -> Explanation:
        picked = np.atleast_1d(pick_rows(len(self), rows))
        return Explanation(
            weights=self.weights[picked],
            names=self.names,
            classes=self.classes,
            values=self.values[picked],
            rows=self.rows[picked],
        )

    def __iter__(self) -> Iterator[Explanation]:
        return (self[i] for i in range(len(self)))

    def __str__(self) -> str:
        texts = [self.text(i) for i in range(min(len(self), MAX_ROWS_PRINTED))]
        if len(self) > MAX_ROWS_PRINTED:
            texts.append(f"and {counted(len(self) - MAX_ROWS_PRINTED, 'row')} more")
        return "\n\n".join(texts)

    def __repr__(self) -> str:
        n, n_pieces, n_classes = self.weights.shape
        return (
            f"Explanation({counted(n, 'row')}, {counted(n_pieces, 'piece')} of evidence, "
            f"{counted(n_classes, 'class')})"
        )


def _listed(labels: Any) -> AnyArray:
    """Return labels as a one-dimensional array; tuples, as in a MultiIndex, are single labels."""
    array = np.asarray(labels)
    return array if array.ndim == 1 else np.fromiter(labels, dtype=object, count=len(labels))


def _column(values: AnyArray) -> AnyArray:
    """Return a column that tables can hold: numbers or dates as they are, all else as strings."""
    if values.dtype.kind not in "OUS":
        return values
    plain = values.tolist()
    if all(value is None or isinstance(value, Real) for value in plain):
        numbers = np.array([np.nan if value is None else value for value in plain])
        if numbers.dtype.kind in "biuf":
            return numbers
    return np.array(["" if value is None else str(value) for value in plain], dtype=object)
