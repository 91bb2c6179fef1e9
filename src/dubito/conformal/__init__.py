"""Label sets with a chosen coverage, and wider bounds for rows unlike the training rows."""

from dubito.conformal.classifier import ConformalClassifier
from dubito.conformal.errors import FewRowsWarning, SmallCalibrationWarning
from dubito.conformal.novelty import NoveltyAwareClassifier

__all__ = [
    "ConformalClassifier",
    "FewRowsWarning",
    "NoveltyAwareClassifier",
    "SmallCalibrationWarning",
]
