"""The calibrators' common shell: `fit` reads and checks once, private hooks do the mathematics."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from dubito._checks import (
    FloatArray,
    IntArray,
    check_level,
    check_rows_match,
    check_sample_weight,
    counted,
)
from dubito._estimators import CautiousMixin
from dubito._labels import as_labels, label_columns
from dubito._sklearn import Interval, StrOptions, check_feature_names, fit_context
from dubito.belief import Bounds
from dubito.calibration._misfit import events_of, frequent_classes, misfit_of, warn_of_misfit
from dubito.calibration._mismatch import find_mismatch, warn_of_mismatch
from dubito.calibration._scores import INPUTS, floor_of, log_scores, read_scores
from dubito.calibration.errors import CalibrationInputError

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

#: Numbers a prediction may hold at once besides its result: 32 MiB of them.
_CHUNK = 2**22


class BaseCalibrator(CautiousMixin, ClassifierMixin, BaseEstimator, metaclass=ABCMeta):
    """Scores in, probabilities and bounds out.

    A calibrator writes four hooks: `_fit(table, y, weight)`, `_proba(table)`, `_bounds(table)` and
    `_level_bounds(table, level)`. There `table` is an (n, columns) array of finite scores, `y` are
    column numbers and `weight` are positive. Bounds hold the probability.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "input": [StrOptions(set(INPUTS))],
        "floor": [Interval(Real, 0, 0.5, closed="neither"), StrOptions({"auto"})],
        "classes": ["array-like", None],
    }

    #: Numbers a prediction holds at once for each row and class.
    _working_set: ClassVar[int] = 4

    #: Whether the calibrator is known for its bounds: tree nodes keep those of such alone.
    _evidential: ClassVar[bool] = False

    #: Whether bounds at a level rest on a form that calibration rows can contradict.
    _assumes_form: ClassVar[bool] = False

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
            Scores that the map is to be fitted on: not those the classifier was trained on. One
            column is for two classes, higher meaning ``classes_[1]``.
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
        counts = weight > 0
        if not counts.all():
            table, columns, weight = table[counts], columns[counts], weight[counts]
        if not getattr(self, "_trusts_labels", False):
            self._warn_of_mismatch(table, columns, weight)
        self.floor_ = self._choose_floor(table, columns, weight)
        self._fit(table, columns, weight)
        if self._assumes_form:
            self.misfit_ = self._misfit(table, columns, weight)
        return self

    def _trusting_labels(self) -> Self:
        """Return the calibrator, which then does not look whether scores fit the labels.

        Nor does it warn of a wrong form: for parts of another calibrator, which does both.
        """
        self._trusts_labels = True
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
        return np.concatenate([self._proba(part) for part in self._parts(scores)])

    def predict_log_proba(self, scores: Any) -> FloatArray:
        """Return the logarithms of calibrated probabilities.

        Those of vector scaling and of temperatures are right where probabilities round to 0.

        Parameters
        ----------
        scores : array-like
            As in `fit`.

        Returns
        -------
        ndarray of shape (n, K)
        """
        return np.concatenate([self._log_proba(part) for part in self._parts(scores)])

    def predict_bounds(self, scores: Any, level: float | None = None) -> Bounds:
        """Return lower and upper probabilities of each class.

        Parameters
        ----------
        scores : array-like
            As in `fit`.
        level : float, optional
            None: belief and plausibility. A number in (0, 1), as 0.9: bounds that hold the true
            probability of a class given the scores at least so often, if the form of the map is
            right.

        Returns
        -------
        Bounds
            Of shape (n, K); columns as in ``classes_``.
        """
        level = check_level(level)
        parts = self._parts(scores)
        if level is None:
            pairs = [self._bounds(part) for part in parts]
        else:
            pairs = [self._level_bounds(part, level) for part in parts]
            if not getattr(self, "_trusts_labels", False):
                warn_of_misfit(self, self._current_misfit())
        lower, upper = (np.concatenate(side) for side in zip(*pairs, strict=True))
        return Bounds(lower, upper, level)

    @abstractmethod
    def _fit(self, table: FloatArray, y: IntArray, weight: FloatArray) -> None:
        """Fit to scores, column numbers and positive weights."""

    @abstractmethod
    def _proba(self, table: FloatArray) -> FloatArray:
        """Return probabilities (n, K)."""

    def _log_proba(self, table: FloatArray) -> FloatArray:
        """Return log-probabilities (n, K)."""
        with np.errstate(divide="ignore"):
            return np.log(self._proba(table))

    @abstractmethod
    def _bounds(self, table: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return belief and plausibility, each (n, K), around the probabilities."""

    @abstractmethod
    def _level_bounds(self, table: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
        """Return bounds (n, K) that hold the true probability at a confidence level."""

    def _warn_of_mismatch(self, table: FloatArray, y: IntArray, weight: FloatArray) -> None:
        """Warn where scores point away from the labels, or columns fit other labels."""
        warn_of_mismatch(self, find_mismatch(table, y, weight, len(self.classes_)), self.classes_)

    def _misfit(self, table: FloatArray, y: IntArray, weight: FloatArray) -> float:
        """Return the fraction of rows that contradict the form of the map."""
        classes = frequent_classes(y, weight, len(self.classes_))
        runs = zip(self._runs(table), self._runs(y), strict=True)
        pairs = [events_of(self._proba(part), labels, classes) for part, labels in runs]
        proba, event = (np.concatenate(side) for side in zip(*pairs, strict=True))
        return misfit_of(proba, event, weight)

    def _current_misfit(self) -> float:
        """Return the misfit, which may be found out where it is first asked for."""
        return float(getattr(self, "misfit_", 0.0))

    def _read_scores(self, scores: Any) -> FloatArray:
        """Return scores as a table, checked: rows first, classes last."""
        return read_scores(scores, self.input)

    def _choose_floor(self, table: FloatArray, y: IntArray, weight: FloatArray) -> Any:
        """Return the least probability that is believed."""
        if isinstance(self.floor, str):
            return floor_of(table, self.input, y, weight)
        return float(self.floor)

    def _log_scores(self, table: FloatArray, *, normalised: bool = False) -> FloatArray:
        """Return log scores (n, K)."""
        return log_scores(table, self.input, self.floor_, normalised=normalised)

    def _read(self, scores: Any) -> FloatArray:
        """Check scores to predict for against those of the fit."""
        check_is_fitted(self)
        table = self._read_scores(scores)
        if table.shape[1] != self.n_features_in_:
            raise CalibrationInputError(
                f"scores has {counted(table.shape[1], 'column')}, but {type(self).__name__} was "
                f"fitted on {self.n_features_in_}; pass scores of the same classifier."
            )
        check_feature_names(self, scores, reset=False)
        return table

    def _parts(self, scores: Any) -> Iterator[FloatArray]:
        """Check scores, and cut them into runs of rows that keep memory bounded."""
        return self._runs(self._read(scores))

    def _runs(self, rows: npt.NDArray[Any]) -> Iterator[npt.NDArray[Any]]:
        """Cut rows into runs that keep memory bounded."""
        step = max(1, _CHUNK // (self._working_set * len(self.classes_)))
        return (rows[i : i + step] for i in range(0, len(rows), step))

    def _read_labels(
        self, labels: npt.NDArray[Any], n_columns: int
    ) -> tuple[npt.NDArray[Any], IntArray]:
        """Return the classes, one for each column, and the column of each label."""
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
        """Refuse columns that are named after the classes but come in another order."""
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


class AffineMixin(metaclass=ABCMeta):
    """For calibrators whose logits are affine in the scores: one more linear layer.

    Such a calibrator writes `_layer()`, the matrix (K, K) and offset (K,) that make logits of the
    log scores (for two classes with margin d those are (-d/2, d/2)).
    """

    classes_: npt.NDArray[Any]
    n_features_in_: int
    input: str

    #: Whether a constant added to a row of logits changes nothing.
    ignores_shifts: ClassVar[bool] = False

    def affine_logits(self) -> tuple[FloatArray, FloatArray]:
        r"""Return the calibrator as one linear layer, :math:`z=As+b` of a row s of scores.

        With one column of scores z is the log-odds of ``classes_[1]``, and ``predict_proba`` is
        its sigmoid. Otherwise ``predict_proba`` is the softmax of z, but for `PlattCalibrator`
        with more than two classes: there z are the log-odds of each class against the rest, and
        ``predict_proba`` divides their sigmoids by their sum and mixes in the base rate. The class
        that comes first is the same, but where two are within 1/(n+1); the probabilities are not.

        Returns
        -------
        matrix : ndarray of shape (1, 1) or (K, K)
            A: row k makes the logit of class k.
        offset : ndarray of shape (1,) or (K,)
            b.

        Raises
        ------
        CalibrationInputError
            Where the scores are not taken as they come: of ``input="proba"`` the logarithm is
            taken, after raising what is below ``floor_``, and logits of more than two classes are
            normalised. Not so for `TemperatureCalibrator`, to which a constant added to a row is
            nothing: there s may be logits, or the logarithms of probabilities, or any logits whose
            softmax they are. Margins are always taken as they come.

        Examples
        --------
        >>> from dubito.calibration import PlattCalibrator
        >>> scores, y = [-2.0, -1.2, 0.3, -0.1, 1.1, 2.5], [0, 0, 0, 1, 1, 1]
        >>> matrix, offset = PlattCalibrator().fit(scores, y).affine_logits()
        >>> matrix.round(2), offset.round(2)
        (array([[0.69]]), array([-0.06]))
        """
        check_is_fitted(self)
        if reason := self._not_affine():
            raise CalibrationInputError(
                f"{type(self).__name__}(input={self.input!r}) is not affine in the scores: "
                f'{reason}. Calibrate margins, with input="margin".'
            )
        matrix, offset = self._layer()
        if self.n_features_in_ > 2:
            return matrix, offset
        first, second = 0.5 * matrix[:, 0], 0.5 * matrix[:, 1]
        margin = second - first  # what the margin of two classes adds to each logit
        if self.n_features_in_ == 2:
            return np.column_stack([-margin, margin]), offset
        return (margin[1:] - margin[:1])[:, None], offset[1:] - offset[:1]

    @abstractmethod
    def _layer(self) -> tuple[FloatArray, FloatArray]:
        """Return matrix and offset that make logits of log scores."""

    def _not_affine(self) -> str:
        """Say what else is done to the scores, if anything."""
        if self.ignores_shifts:
            return ""
        if self.input == "proba":
            return "the logarithm of probabilities is taken first"
        if self.input == "log_proba":
            return "probabilities below floor_ are raised to it first"
        if self.input == "logits" and len(self.classes_) > 2:
            return f"logits of {len(self.classes_)} classes are normalised first"
        return ""


def is_evidential(calibrator: BaseCalibrator) -> bool:
    """Say whether a calibrator is one of the evidential ones, by its class.

    All calibrators have bounds; maps of many tree nodes keep them of evidential ones alone.
    """
    return calibrator._evidential


def _refuse_continuous(labels: npt.NDArray[Any]) -> None:
    """Refuse measurements where classes are meant."""
    if labels.dtype.kind == "f" and (labels != np.floor(labels)).any():
        row = int(np.argmax(labels != np.floor(labels)))
        raise ValueError(
            f"Unknown label type: continuous. y must name a class in each row; row {row} has "
            f"{labels[row]!r}."
        )
