"""Calibrators by name, for parameters that take a calibrator."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, overload

from dubito._calibrator_names import CALIBRATORS

if TYPE_CHECKING:
    from dubito.calibration.base import BaseCalibrator


@overload
def named_calibrator(calibrator: str | BaseCalibrator) -> BaseCalibrator: ...


@overload
def named_calibrator(calibrator: str | BaseCalibrator | None) -> BaseCalibrator | None: ...


def named_calibrator(calibrator: str | BaseCalibrator | None) -> BaseCalibrator | None:
    """Return the calibrator of a name, with its default parameters; another value as it is.

    Examples
    --------
    >>> from dubito.calibration.by_name import named_calibrator
    >>> named_calibrator("isotonic")
    IsotonicCalibrator()
    """
    if not isinstance(calibrator, str):
        return calibrator
    cls: type[BaseCalibrator] = getattr(import_module(__package__), CALIBRATORS[calibrator])
    return cls()
