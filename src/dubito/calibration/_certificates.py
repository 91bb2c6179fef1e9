"""What a fit's certificate must say before its result is handed out without a warning."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

if TYPE_CHECKING:
    import numpy.typing as npt

#: Largest component of the gradient for each unit of weight, in standardised units, that passes:
#: Newton's steps end near 1e-15; where weights are twelve orders apart rounding leaves up to 1e-7.
_LARGEST_GRADIENT = 1e-6


def check_certificate(calibrator: Any, gradient_norm: npt.ArrayLike) -> None:
    """Warn where a fit stopped before its optimum.

    Parameters
    ----------
    calibrator : estimator
        Named in the warning.
    gradient_norm : array-like
        Certificates of its fits: the largest component of the gradient for each unit of weight.

    Warns
    -----
    ConvergenceWarning
        Where a certificate is above 1e-6, or not a number.
    """
    worst = float(np.max(gradient_norm, initial=0.0))
    if worst <= _LARGEST_GRADIENT:
        return
    warnings.warn(
        f"the fit of {type(calibrator).__name__} stopped before its optimum: the gradient is "
        f"{worst:.1e} for each unit of weight, at most {_LARGEST_GRADIENT:.0e} is wanted, so "
        "probabilities and bounds may be wrong. Look for scores or weights that are many orders "
        "of magnitude apart, clip or drop them, or use a ridge where there is one.",
        ConvergenceWarning,
        stacklevel=2,
    )
