"""What belief and plausibility of two classes give besides: a mass function, and contours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.metaestimators import available_if

from dubito._checks import FloatArray, as_float_array
from dubito.belief import MassBatch
from dubito.calibration.errors import CalibrationInputError

if TYPE_CHECKING:
    import numpy.typing as npt


def has_two_classes(calibrator: Any) -> bool:
    """Whether a calibrator is for two classes, as far as is known; an error says why not."""
    n_classes = len(getattr(calibrator, "classes_", "ab"))
    if n_classes == 2:
        return True
    raise AttributeError(
        f"belief and plausibility of {n_classes} classes do not make a mass function; two do."
    )


def read_theta(theta: npt.ArrayLike) -> FloatArray:
    """Return probabilities whose plausibility is asked for, checked."""
    values = as_float_array(theta, "theta", ndim=1)
    if ((values < 0) | (values > 1)).any():
        raise CalibrationInputError(
            f"theta must be probabilities in [0, 1]; got {values.min():g} to {values.max():g}."
        )
    return np.asarray(values)


class TwoClassMass:
    """The mass function that belief and plausibility of two classes make."""

    classes_: npt.NDArray[Any]
    predict_bounds: Any

    @available_if(has_two_classes)
    def predict_mass(self, scores: Any) -> MassBatch:
        r"""Return the predictive mass functions of two classes.

        :math:`m(\{1\})=\mathrm{Bel}`, :math:`m(\{0\})=1-\mathrm{Pl}` and
        :math:`m(\Theta)=\mathrm{Pl}-\mathrm{Bel}` of the second class: belief and plausibility
        say all there is to say. With more classes they do not, and the method is absent.

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
