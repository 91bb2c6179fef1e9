"""Errors with a name for what can go wrong on the way from scores to beliefs."""


class CalibrationInputError(ValueError):
    """Scores that cannot be calibrated: not finite, of the wrong shape, or not what was said."""


class MisfitWarning(UserWarning):
    """Bounds at a level come from a parametric map whose form the calibration rows contradict.

    They need not hold the true probability so often. `misfit_` of the calibrator is the fraction of
    rows looked at where its interval and an isotonic one are disjoint; the warning comes above 1/6.
    Use `EvidentialIsotonicCalibrator`, which assumes no form, or a map with more parameters.
    """


class LabelMismatchWarning(UserWarning):
    """Scores surely point away from the labels, or their columns fit other labels.

    Higher scores must mean that a class is more likely, and column k must be about ``classes_[k]``.
    Negate the scores, or pass ``classes=`` in the order of the columns. Uninformative scores give
    this warning less than once in 1,000 fits.
    """
