"""The contour of the event's probability, for evidential maps of two classes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.metaestimators import available_if

from dubito._checks import as_float_array
from dubito.calibration.errors import CalibrationInputError

if TYPE_CHECKING:
    from dubito._checks import FloatArray


def _has_two_classes(calibrator: Any) -> bool:
    n_classes = len(getattr(calibrator, "classes_", "ab"))
    if n_classes == 2:
        return True
    raise AttributeError(
        f"contour is of one probability, so of two classes; there are {n_classes}. Ask a map of "
        "one class against the rest: calibrator.maps_[k].contour(log_odds, theta)."
    )


class ContourMixin:
    """`contour` for lifted calibrators whose maps have one."""

    @available_if(_has_two_classes)
    def contour(self, scores: Any, theta: Any) -> FloatArray:
        """Return how plausible each probability of the second class is.

        Only for two classes: with more, the method is absent, since one number no longer says
        what the probabilities are.

        Parameters
        ----------
        scores : array-like
            As in `fit`.
        theta : array-like of shape (t,)
            Probabilities of ``classes_[1]``.

        Returns
        -------
        ndarray of shape (n, t)
            Relative likelihoods in [0, 1]: 1 for the most plausible.
        """
        values = as_float_array(theta, "theta", ndim=1)
        if ((values < 0) | (values > 1)).any():
            raise CalibrationInputError("theta must lie in [0, 1]: it lists probabilities.")
        parts = self._parts(scores)  # type: ignore[attr-defined]
        event = self.maps_[0]  # type: ignore[attr-defined]
        odds = (self._log_odds(part)[:, 0] for part in parts)  # type: ignore[attr-defined]
        return np.concatenate([event.contour(score, values) for score in odds])
