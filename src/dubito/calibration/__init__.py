"""From scores to calibrated probabilities, beliefs and bounds, for any classifier."""

from dubito.calibration.errors import CalibrationInputError

__all__ = [
    "CalibrationInputError",
]
