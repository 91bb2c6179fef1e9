"""Warnings of conformal prediction."""


class SmallCalibrationWarning(UserWarning):
    """Too few rows to calibrate: sets of the coverage asked for must hold every class."""
