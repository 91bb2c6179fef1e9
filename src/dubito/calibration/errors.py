"""Errors with a name for what can go wrong on the way from scores to beliefs."""


class CalibrationInputError(ValueError):
    """Scores that cannot be calibrated: not finite, of the wrong shape, or not what was said."""


class MisfitWarning(UserWarning):
    """Bounds at a level come from a parametric map whose form the calibration rows contradict.

    They need not hold the true probability so often. `misfit_` of the calibrator is the fraction of
    rows looked at where its interval and an isotonic one are disjoint; the warning comes above 1/6.
    Use `EvidentialIsotonicCalibrator`, which assumes no form, or a map with more parameters.
    """
