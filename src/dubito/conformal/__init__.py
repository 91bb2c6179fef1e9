"""Sets with guaranteed coverage, and rows unlike any seen."""

from dubito.conformal.classifier import ConformalClassifier
from dubito.conformal.errors import SmallCalibrationWarning

__all__ = ["ConformalClassifier", "SmallCalibrationWarning"]
