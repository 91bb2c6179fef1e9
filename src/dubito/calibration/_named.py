"""Calibrators by name, for those who do not need their parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dubito.calibration.auto import AutoCalibrator
from dubito.calibration.beta import BetaCalibrator
from dubito.calibration.binning import BinningCalibrator
from dubito.calibration.evidential_binning import EvidentialBinningCalibrator
from dubito.calibration.evidential_isotonic import EvidentialIsotonicCalibrator
from dubito.calibration.evidential_joint import EvidentialJointCalibrator
from dubito.calibration.evidential_logistic import EvidentialLogisticCalibrator
from dubito.calibration.evidential_multinomial import EvidentialMultinomialCalibrator
from dubito.calibration.isotonic import IsotonicCalibrator
from dubito.calibration.matrix import MatrixCalibrator
from dubito.calibration.platt import PlattCalibrator
from dubito.calibration.temperature import TemperatureCalibrator
from dubito.calibration.vector import VectorCalibrator
from dubito.calibration.venn_abers import VennAbersCalibrator

if TYPE_CHECKING:
    from dubito.calibration._base import BaseCalibrator

CALIBRATORS: dict[str, type[BaseCalibrator]] = {
    "auto": AutoCalibrator,
    "platt": PlattCalibrator,
    "isotonic": IsotonicCalibrator,
    "beta": BetaCalibrator,
    "bins": BinningCalibrator,
    "temperature": TemperatureCalibrator,
    "vector": VectorCalibrator,
    "matrix": MatrixCalibrator,
    "venn-abers": VennAbersCalibrator,
    "evidential-logistic": EvidentialLogisticCalibrator,
    "evidential-isotonic": EvidentialIsotonicCalibrator,
    "evidential-bins": EvidentialBinningCalibrator,
    "evidential-multinomial": EvidentialMultinomialCalibrator,
    "evidential-joint": EvidentialJointCalibrator,
}


def named_calibrator(calibrator: str | BaseCalibrator) -> BaseCalibrator:
    """Return a calibrator as it is, or the one of that name with its default parameters."""
    return CALIBRATORS[calibrator]() if isinstance(calibrator, str) else calibrator
