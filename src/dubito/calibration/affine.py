"""Calibrators whose logits are an affine function of the scores."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from dubito.calibration.errors import CalibrationInputError

if TYPE_CHECKING:
    import numpy.typing as npt

    from dubito._typing import FloatArray


class AffineMixin(metaclass=ABCMeta):
    """Mixin for calibrators whose logits are affine in the scores: one more linear layer.

    A subclass implements `_layer()`, the matrix (K, K) and offset (K,) that map log scores to
    logits; the log scores of two classes with margin d are (-d/2, d/2).
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
        ``predict_proba`` divides their sigmoids by their sum and mixes in the base rate. The most
        probable class is the same unless two are within 1/(n+1); the probabilities are not.

        Returns
        -------
        matrix : ndarray of shape (1, 1) or (K, K)
            A: row k gives the logit of class k.
        offset : ndarray of shape (1,) or (K,)
            b.

        Raises
        ------
        CalibrationInputError
            If the scores are transformed first: for ``input="proba"`` the logarithm is taken of
            probabilities raised to ``floor_``, and logits of more than two classes are normalised.
            `TemperatureCalibrator` does not depend on a constant added to a row: there s may be
            logits, logarithms of probabilities, or any logits whose softmax they are. Margins are
            never transformed.

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
        """Return the matrix and offset that map log scores to logits."""

    def _not_affine(self) -> str:
        """Return how the scores are transformed first; empty if they are not."""
        if self.ignores_shifts:
            return ""
        if self.input == "proba":
            return "the logarithm of probabilities is taken first"
        if self.input == "log_proba":
            return "probabilities below floor_ are raised to it first"
        if self.input == "logits" and len(self.classes_) > 2:
            return f"logits of {len(self.classes_)} classes are normalised first"
        return ""
