"""Warnings of conformal prediction."""


class SmallCalibrationWarning(UserWarning):
    """Too few rows to calibrate: sets of the coverage asked for must hold every class."""


class FewRowsWarning(UserWarning):
    """Too few held-out rows: no p-value of novelty can fall as low as was asked."""
