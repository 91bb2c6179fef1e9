"""Errors and warnings of calibrators."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

if TYPE_CHECKING:
    import numpy.typing as npt


class CalibrationInputError(ValueError):
    """Scores that cannot be calibrated: not finite, of a wrong shape, or contrary to `input`."""


class MisfitWarning(UserWarning):
    """Bounds at a level come from a parametric map whose form the calibration rows contradict.

    They may contain the true probability less often than the level promises. `misfit_` of the
    calibrator is the fraction of the rows compared where its interval and an isotonic one are
    disjoint; the warning is given above 1/6. Use `EvidentialIsotonicCalibrator`, which assumes no
    form, or a map with more parameters.
    """


class LabelMismatchWarning(UserWarning):
    """Higher scores go with other labels, or the columns fit the labels in another order.

    Higher scores must mean that a class is more likely, and column k must belong to
    ``classes_[k]``. Negate the scores, or pass ``classes=`` in the order of the columns.
    Uninformative scores give this warning less than once in 1,000 fits.
    """


#: Largest accepted component of the gradient per unit of sample weight, for standardised scores:
#: Newton's method ends near 1e-15, or up to 1e-7 where sample weights are 12 orders apart.
_LARGEST_GRADIENT = 1e-6


def warn_unless_converged(calibrator: Any, gradient_norm: npt.ArrayLike) -> None:
    """Warn if the gradient at the end of a fit is not near 0.

    Parameters
    ----------
    calibrator : estimator
        Its class is named in the warning.
    gradient_norm : array-like
        Largest component of the gradient per unit of sample weight, of each of its fits.

    Warns
    -----
    ConvergenceWarning
        If one is above 1e-6, or not a number.
    """
    worst = float(np.max(gradient_norm, initial=0.0))
    if worst <= _LARGEST_GRADIENT:
        return
    warnings.warn(
        f"the fit of {type(calibrator).__name__} stopped before its optimum: the gradient is "
        f"{worst:.1e} per unit of weight, at most {_LARGEST_GRADIENT:.0e} is accepted, so "
        "probabilities and bounds may be wrong. Look for scores or weights that are many orders "
        "of magnitude apart, clip or drop them, or use a ridge where there is one.",
        ConvergenceWarning,
        stacklevel=2,
    )
