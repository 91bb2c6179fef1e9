"""Warnings of conformal prediction."""


class SmallCalibrationWarning(UserWarning):
    """Too few calibration rows: sets of the requested coverage contain every class."""


class FewRowsWarning(UserWarning):
    """Too few held-out rows: no p-value of novelty can be as small as `rate`."""
