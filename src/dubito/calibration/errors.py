"""Errors with a name for what can go wrong on the way from scores to beliefs."""


class CalibrationInputError(ValueError):
    """Scores that cannot be calibrated: not finite, of the wrong shape, or not what was said."""


class MisfitWarning(UserWarning):
    """Bounds at a level come from a parametric map whose form the calibration rows contradict."""
