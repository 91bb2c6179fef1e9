"""Sets with guaranteed coverage, and rows unlike any seen."""

from dubito.conformal.classifier import ConformalClassifier
from dubito.conformal.errors import FewRowsWarning, SmallCalibrationWarning
from dubito.conformal.novelty import NoveltyAwareClassifier

__all__ = [
    "ConformalClassifier",
    "FewRowsWarning",
    "NoveltyAwareClassifier",
    "SmallCalibrationWarning",
]
