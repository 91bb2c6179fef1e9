"""Calibrators by name, for those who do not need their parameters."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from dubito._calibrator_names import CALIBRATORS

if TYPE_CHECKING:
    from dubito.calibration._base import BaseCalibrator


def named_calibrator(calibrator: str | BaseCalibrator) -> BaseCalibrator:
    """Return a calibrator as it is, or the one of that name with its default parameters."""
    if not isinstance(calibrator, str):
        return calibrator
    kind: type[BaseCalibrator] = getattr(import_module(__package__), CALIBRATORS[calibrator])
    return kind()
