"""Errors and warnings of calibrators."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from dubito._meta_estimators import user_stacklevel

if TYPE_CHECKING:
    import numpy.typing as npt

    from dubito.calibration._kernels.label_mismatch import Mismatch


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


#: Largest misfit without a warning. In simulations with the right form (2 to 10 classes, 10 to
#: 2,000 rows) fewer than one fit in 100 exceeded it.
_LARGEST_MISFIT = 1 / 6


def warn_of_misfit(calibrator: Any, misfit: float) -> None:
    """Warn if a misfit (`_kernels/misfit.py`) is large."""
    if misfit <= _LARGEST_MISFIT:
        return
    advice = "Use IsotonicCalibrator, which assumes no form"
    if hasattr(calibrator, "map_"):  # AutoCalibrator has offsets already
        advice += "."
    else:
        advice += (
            ", or a map with more parameters: PlattCalibrator and VectorCalibrator have offsets "
            "beside the slope."
        )
    if getattr(calibrator, "targets", None) == "smoothed":
        advice = f'Try targets="light" first: smoothed ones move probabilities. {advice}'
    warnings.warn(
        f"{type(calibrator).__name__}: in {misfit:.0%} of the calibration rows compared, the "
        "interval of the fitted probability and that of an isotonic fit have no value in common. "
        "The form of the map is wrong there, and bounds at a level may contain the true "
        f"probability less often. {advice}",
        MisfitWarning,
        stacklevel=user_stacklevel(),
    )


def warn_of_mismatch(
    calibrator: Any, mismatch: Mismatch | None, classes: npt.NDArray[Any], name: str = "scores"
) -> None:
    """Warn of a mismatch, with advice; `name` says in the message which scores are meant."""
    if mismatch is None:
        return
    if len(classes) == 2:
        finding = (
            f"a row of {classes[1]!s} has a higher margin than one of {classes[0]!s} in "
            f"{mismatch.given:.0%} of pairs. Higher must mean {classes[1]!s}: negate the scores, "
            f"or swap the classes (classes={[*reversed(classes.tolist())]})"
        )
    elif mismatch.order is None:
        finding = (
            "rows score their own class lower than the others (mean rank "
            f"{mismatch.given:.2f}; 0 lowest, 1 highest). Higher must mean more likely: negate "
            "the scores"
        )
    else:
        finding = _describe_moved_columns(mismatch, classes)
    warnings.warn(
        f"{type(calibrator).__name__}: the {name} do not fit the labels: {finding}. If the scores "
        "are right, their classifier is worse than none.",
        LabelMismatchWarning,
        stacklevel=user_stacklevel(),
    )


def _describe_moved_columns(mismatch: Mismatch, classes: npt.NDArray[Any]) -> str:
    """Return which columns fit which labels, and advice."""
    order = np.asarray(mismatch.order)
    moved = np.flatnonzero(order != np.arange(len(order)))
    named = [f"column {order[k]} fits {classes[k]!s}, not {classes[order[k]]!s}" for k in moved[:3]]
    more = f" ({len(moved)} columns in all)" if len(moved) > 3 else ""
    return (
        f"{', '.join(named)}{more} (mean rank of the own class {mismatch.given:.2f}, and "
        f"{mismatch.corrected:.2f} so; 0 lowest, 1 highest). Name the classes in the order of the "
        "columns (classes=), or put the columns in the order of the classes"
    )
