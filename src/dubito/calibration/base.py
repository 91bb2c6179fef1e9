"""Base class of calibrators, which checks their input, and mixins that several of them use."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from dataclasses import fields
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from dubito._compat import Interval, StrOptions, check_feature_names, fit_context
from dubito._labels import as_labels, label_columns
from dubito._numerics.row_subsets import row_chunks
from dubito._validation import (
    as_float_array,
    check_level,
    check_rows_match,
    check_sample_weight,
)
from dubito._wording import counted
from dubito.base import CautiousMixin
from dubito.belief import Bounds, MassBatch
from dubito.calibration._kernels.label_mismatch import find_mismatch
from dubito.calibration._kernels.misfit import events_of, frequent_classes, misfit_of
from dubito.calibration.errors import CalibrationInputError, warn_of_misfit, warn_of_mismatch
from dubito.calibration.scores import INPUTS, choose_floor, log_scores, read_scores

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from dubito._typing import FloatArray, IntArray

#: Largest number of entries of arrays in a prediction, without its result: 32 MiB.
_CHUNK_ENTRIES = 2**22


class BaseCalibrator(CautiousMixin, ClassifierMixin, BaseEstimator, metaclass=ABCMeta):
    """Base class of calibrators: maps from scores to probabilities and their bounds.

    A subclass implements `_fit(table, y, weight)`, `_proba(table)`, `_bounds(table)` and
    `_level_bounds(table, level)`, where `table` is an (n, columns) array of finite scores, `y`
    holds column numbers and `weight` positive sample weights. Bounds must contain the probability.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "input": [StrOptions(set(INPUTS))],
        "floor": [Interval(Real, 0, 0.5, closed="neither"), StrOptions({"auto"})],
        "classes": ["array-like", None],
    }

    #: Entries of the arrays of a prediction for each row and class.
    _entries_per_class: ClassVar[int] = 4

    #: Whether bounds are the purpose of the calibrator. Nested dichotomies compute bounds at their
    #: tree nodes for such calibrators only.
    evidential: ClassVar[bool] = False

    #: Whether the map depends on the order of the scores only, not on their size.
    uses_ranks: ClassVar[bool] = False

    #: Whether bounds at a level assume a parametric form that calibration rows can contradict.
    _assumes_form: ClassVar[bool] = False

    #: Whether scores come from several classifiers, as (n, J, K).
    _reads_members: ClassVar[bool] = False

    def __init__(
        self,
        *,
        input: Any = "margin",
        floor: float | str = "auto",
        classes: npt.ArrayLike | None = None,
    ) -> None:
        self.input = input
        self.floor = floor
        self.classes = classes

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, scores: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the map from scores to probabilities.

        Parameters
        ----------
        scores : array-like of shape (n,), (n, 1) or (n, K)
            Scores of rows that the classifier was not trained on. One column is for two classes,
            higher meaning ``classes_[1]``.
        y : array-like of shape (n,)
            True labels. K columns need K labels; where y lacks some, pass ``classes=`` or let
            labels be the column numbers 0..K-1.
        sample_weight : array-like of shape (n,), optional
            A row of weight 2 counts as two rows, a row of weight 0 not at all.

        Returns
        -------
        self
        """
        table = self._read_scores(scores)
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None."
            )
        labels = as_labels(y, "y")
        check_rows_match("scores", len(table), "y", len(labels))
        weight = check_sample_weight(sample_weight, len(table))
        _refuse_continuous(labels)
        check_feature_names(self, scores, reset=True)
        self.n_features_in_ = table.shape[1]
        self.classes_, columns = self._read_labels(labels, table.shape[-1])
        self._check_column_names()
        positive = weight > 0
        if not positive.all():
            table, columns, weight = table[positive], columns[positive], weight[positive]
        if not getattr(self, "_warnings_off", False):
            self._warn_of_mismatch(table, columns, weight)
        self.floor_ = self._choose_floor(table, columns, weight)
        self._fit(table, columns, weight)
        if self._assumes_form:
            self.misfit_ = self._misfit(table, columns, weight)
        return self

    def _without_warnings(self) -> Self:
        """Return the calibrator itself, with its warnings about labels and form switched off.

        For a calibrator inside another one, whose own `fit` and `predict_bounds` give them.
        """
        self._warnings_off = True
        return self

    def predict_proba(self, scores: Any) -> FloatArray:
        """Return calibrated probabilities.

        Parameters
        ----------
        scores : array-like
            As in `fit`.

        Returns
        -------
        ndarray of shape (n, K)
            Rows sum to 1; columns as in ``classes_``.
        """
        return np.concatenate([self._proba(chunk) for chunk in self._chunks(scores)])

    def predict_log_proba(self, scores: Any) -> FloatArray:
        """Return the logarithms of calibrated probabilities.

        Softmax maps compute them exactly where probabilities round to 0.

        Parameters
        ----------
        scores : array-like
            As in `fit`.

        Returns
        -------
        ndarray of shape (n, K)
        """
        return np.concatenate([self._log_proba(chunk) for chunk in self._chunks(scores)])

    def predict_bounds(self, scores: Any, level: float | None = None) -> Bounds:
        """Return lower and upper probabilities of each class.

        Parameters
        ----------
        scores : array-like
            As in `fit`.
        level : float, optional
            None: belief and plausibility. A number in (0, 1), such as 0.9: bounds that contain the
            true probability of a class, given the scores, with about this frequency, if the form
            of the map is right.

        Returns
        -------
        Bounds
            Of shape (n, K); columns as in ``classes_``.
        """
        level = check_level(level)
        chunks = self._chunks(scores)
        if level is None:
            bounds = [self._bounds(chunk) for chunk in chunks]
        else:
            bounds = [self._level_bounds(chunk, level) for chunk in chunks]
            if not getattr(self, "_warnings_off", False):
                warn_of_misfit(self, self._current_misfit())
        lower, upper = map(np.concatenate, zip(*bounds, strict=True))
        return Bounds(lower, upper, level)

    def node_map_spec(self) -> tuple[str, dict[str, Any]] | None:
        """Return the name and options with which all tree nodes are fitted at once, or None.

        With None nested dichotomies fit a clone of the calibrator at each tree node. A subclass may
        change the map, so it does not inherit the name.
        """
        return None

    @abstractmethod
    def _fit(self, table: FloatArray, y: IntArray, weight: FloatArray) -> None:
        """Fit to scores, column numbers and positive sample weights."""

    @abstractmethod
    def _proba(self, table: FloatArray) -> FloatArray:
        """Return probabilities (n, K)."""

    def _log_proba(self, table: FloatArray) -> FloatArray:
        """Return log-probabilities (n, K)."""
        with np.errstate(divide="ignore"):
            return np.log(self._proba(table))

    @abstractmethod
    def _bounds(self, table: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return belief and plausibility, each (n, K), that contain the probabilities."""

    @abstractmethod
    def _level_bounds(self, table: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
        """Return bounds (n, K) that contain the true probability at a confidence level."""

    def _warn_of_mismatch(self, table: FloatArray, y: IntArray, weight: FloatArray) -> None:
        """Warn if scores contradict the labels, or if columns fit other labels."""
        warn_of_mismatch(self, find_mismatch(table, y, weight, len(self.classes_)), self.classes_)

    def _misfit(self, table: FloatArray, y: IntArray, weight: FloatArray) -> float:
        """Return the fraction of rows that contradict the form of the map."""
        classes = frequent_classes(y, weight, len(self.classes_))
        chunks = zip(self._split(table), self._split(y), strict=True)
        events = [events_of(self._proba(chunk), labels, classes) for chunk, labels in chunks]
        proba, event = map(np.concatenate, zip(*events, strict=True))
        return misfit_of(proba, event, weight)

    def _current_misfit(self) -> float:
        """Return the misfit; some calibrators compute it at the first call."""
        return float(getattr(self, "misfit_", 0.0))

    def _read_scores(self, scores: Any) -> FloatArray:
        """Return checked scores as an array, rows first and classes last."""
        return read_scores(scores, self.input)

    def _choose_floor(self, table: FloatArray, y: IntArray, weight: FloatArray) -> Any:
        """Return the probability to which smaller ones are raised."""
        if isinstance(self.floor, str):
            return choose_floor(table, self.input, y, weight)
        return float(self.floor)

    def _log_scores(self, table: FloatArray, *, normalised: bool = False) -> FloatArray:
        """Return log scores (n, K)."""
        return log_scores(table, self.input, self.floor_, normalised=normalised)

    def _read_new_scores(self, scores: Any) -> FloatArray:
        """Return checked scores to predict for, of the same columns as those of the fit."""
        check_is_fitted(self)
        table = self._read_scores(scores)
        self._check_columns(table, scores)
        check_feature_names(self, scores, reset=False)
        return table

    def _check_columns(self, table: FloatArray, scores: Any) -> None:  # noqa: ARG002
        """Raise unless the table has as many columns as in the fit; `scores` are those passed."""
        if table.shape[1] != self.n_features_in_:
            raise CalibrationInputError(
                f"scores has {counted(table.shape[1], 'column')}, but {type(self).__name__} was "
                f"fitted on {self.n_features_in_}; pass scores of the same classifier."
            )

    def _single_input(self) -> str:
        """Return the `input` that holds for the scores of a single classifier."""
        return self.input

    def _input_for(self, kind: str) -> str:
        """Return the `input` to set for an estimator's scores; `kind` says what they are."""
        return kind

    def _single_scores(self, scores: FloatArray) -> FloatArray:
        """Return scores (n, K) of a single classifier in the shape that `fit` takes."""
        return scores

    def _chunks(self, scores: Any) -> Iterator[FloatArray]:
        """Yield checked scores in chunks of rows that bound the memory of a prediction."""
        return self._split(self._read_new_scores(scores))

    def _split(self, rows: npt.NDArray[Any]) -> Iterator[npt.NDArray[Any]]:
        """Yield chunks of rows that bound the memory of a prediction."""
        row_size = self._entries_per_class * len(self.classes_)
        return (rows[chunk] for chunk in row_chunks(len(rows), row_size, _CHUNK_ENTRIES))

    def _read_labels(
        self, labels: npt.NDArray[Any], n_columns: int
    ) -> tuple[npt.NDArray[Any], IntArray]:
        """Return the classes, in the order of the columns, and the column of each label."""
        n_classes = max(n_columns, 2)
        distinct = np.unique(labels)
        if n_columns == 1 and len(distinct) > 2:
            raise CalibrationInputError(
                f"scores has one column, which is for two classes, but y shows {len(distinct)}; "
                "pass one column of scores for each class."
            )
        columns = label_columns(labels, n_classes, self.classes)
        if self.classes is not None:
            return np.asarray(self.classes), columns
        return (distinct if len(distinct) == n_classes else np.arange(n_classes)), columns

    def _check_column_names(self) -> None:
        """Raise if columns are named after the classes but are in another order."""
        names = [str(name) for name in getattr(self, "feature_names_in_", [])]
        labels = [str(label) for label in self.classes_]
        if names != labels and sorted(names) == sorted(labels):
            raise CalibrationInputError(
                f"the columns of scores are named {', '.join(names)}, but taken for "
                f"{', '.join(labels)}; put them in this order, or pass classes= in theirs."
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # Scores are not features: their number of columns is that of the classes, so checks that
        # draw arbitrary features do not apply (as for IsotonicRegression).
        tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        return tags


def _refuse_continuous(labels: npt.NDArray[Any]) -> None:
    """Raise if labels are continuous measurements."""
    if labels.dtype.kind == "f" and (labels != np.floor(labels)).any():
        row = int(np.argmax(labels != np.floor(labels)))
        raise ValueError(
            f"Unknown label type: continuous. y must name a class in each row; row {row} has "
            f"{labels[row]!r}."
        )


def count_classes(estimator: Any) -> int:
    """Return the number of classes; 2 before the fit, so that methods for two are available."""
    return len(estimator.classes_) if hasattr(estimator, "classes_") else 2


def has_two_classes(estimator: Any) -> bool:
    """Return True for two classes, or before the fit; else raise an explained AttributeError."""
    n_classes = count_classes(estimator)
    if n_classes == 2:
        return True
    raise AttributeError(
        f"belief and plausibility determine a mass function for two classes; here are {n_classes}."
    )


def check_theta(theta: npt.ArrayLike) -> FloatArray:
    """Return checked probabilities at which a contour is evaluated."""
    values = as_float_array(theta, "theta", ndim=1)
    if ((values < 0) | (values > 1)).any():
        raise CalibrationInputError(
            f"theta must be probabilities in [0, 1]; got {values.min():g} to {values.max():g}."
        )
    return np.asarray(values)


class TwoClassMassMixin:
    """Mixin with `predict_mass` for two classes, whose bounds determine the mass function."""

    classes_: npt.NDArray[Any]
    predict_bounds: Any

    @available_if(has_two_classes)
    def predict_mass(self, scores: Any) -> MassBatch:
        r"""Return the predictive mass functions of two classes.

        :math:`m(\{1\})=\mathrm{Bel}`, :math:`m(\{0\})=1-\mathrm{Pl}` and
        :math:`m(\Theta)=\mathrm{Pl}-\mathrm{Bel}` of the second class. More than two classes are
        not determined by belief and plausibility of single classes: the method is then absent.

        Parameters
        ----------
        scores : array-like
            As in `fit`.

        Returns
        -------
        MassBatch
        """
        bounds = self.predict_bounds(scores)
        mass = np.column_stack([bounds.lower, bounds.width[:, 1]])
        return MassBatch(self.classes_, [[1, 0], [0, 1], [1, 1]], mass)


class UncachedStateMixin:
    """Mixin for dataclasses whose cached properties are left out of pickles and saved models."""

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
