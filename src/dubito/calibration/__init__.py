"""From scores to calibrated probabilities, beliefs and bounds, for any classifier."""

from dubito.calibration.auto import AutoCalibrator
from dubito.calibration.beta import BetaCalibrator
from dubito.calibration.binning import BinningCalibrator
from dubito.calibration.classifier import CalibratedClassifier
from dubito.calibration.errors import CalibrationInputError, LabelMismatchWarning, MisfitWarning
from dubito.calibration.evidential_binning import EvidentialBinningCalibrator
from dubito.calibration.evidential_isotonic import EvidentialIsotonicCalibrator
from dubito.calibration.evidential_joint import EvidentialJointCalibrator
from dubito.calibration.evidential_logistic import EvidentialLogisticCalibrator
from dubito.calibration.evidential_multinomial import EvidentialMultinomialCalibrator
from dubito.calibration.fusion import EvidentialFusion
from dubito.calibration.isotonic import IsotonicCalibrator
from dubito.calibration.matrix import MatrixCalibrator
from dubito.calibration.platt import PlattCalibrator
from dubito.calibration.temperature import TemperatureCalibrator
from dubito.calibration.vector import VectorCalibrator
from dubito.calibration.venn_abers import VennAbersCalibrator

__all__ = [
    "AutoCalibrator",
    "BetaCalibrator",
    "BinningCalibrator",
    "CalibratedClassifier",
    "CalibrationInputError",
    "EvidentialBinningCalibrator",
    "EvidentialFusion",
    "EvidentialIsotonicCalibrator",
    "EvidentialJointCalibrator",
    "EvidentialLogisticCalibrator",
    "EvidentialMultinomialCalibrator",
    "IsotonicCalibrator",
    "LabelMismatchWarning",
    "MatrixCalibrator",
    "MisfitWarning",
    "PlattCalibrator",
    "TemperatureCalibrator",
    "VectorCalibrator",
    "VennAbersCalibrator",
]
