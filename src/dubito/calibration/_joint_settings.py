"""What the two joint models share: their settings, and when raw targets have an estimate."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.optimize import linprog

from dubito.calibration.errors import CalibrationInputError

if TYPE_CHECKING:
    from dubito._checks import FloatArray


#: Rows further out than so many deviations say what rows there would: bounds have reached their
#: limit to eight digits, and much further out rounding would spoil them.
_FARTHEST = 1e8

#: Scores that differ by less are constant: one over it must be finite.
SMALLEST = 1e-290


class JointSettings(NamedTuple):
    """How a joint model is fitted."""

    targets: str
    ridge: float | None  # None: by evidence
    bias: bool | None  # None: by evidence
    likelihood: str


def brought_near(rows: FloatArray) -> FloatArray:
    """Return rows of standardised scores, those very far out moved along their ray."""
    finite = np.clip(rows, -1e300, 1e300)
    largest = np.abs(finite).max(axis=tuple(range(1, rows.ndim)), keepdims=True, initial=1.0)
    return finite * np.minimum(_FARTHEST / largest, 1.0)


def root_mean_square(values: FloatArray, weight: FloatArray) -> FloatArray:
    """Return the size of the values of each classifier, axis 1, whose squares may overflow."""
    others = tuple(axis for axis in range(values.ndim) if axis != 1)
    largest = np.abs(values).max(axis=others, keepdims=True)
    squares = (values / np.where(largest > 0, largest, 1.0)) ** 2
    by_row = squares.reshape(*squares.shape[:2], -1).mean(axis=2)
    return np.asarray(np.sqrt(np.average(by_row, axis=0, weights=weight)) * largest.ravel())


def choose_likelihood(wanted: str, cost: int, limit: int) -> str:
    """Return "exact" or "quadratic"; left to choose, the exact one as long as rows are cheap."""
    if wanted != "auto":
        return wanted
    return "exact" if cost <= limit else "quadratic"


def check_estimate_exists(advantages: FloatArray, lower: FloatArray) -> None:
    r"""Raise where raw targets have no maximum-likelihood estimate.

    `advantages` (m, p) are what each row's true class has over a rival, linear in the coefficients
    without a ridge, which are at least `lower`. There is no estimate exactly when some direction
    makes no advantage smaller and one of them larger: the likelihood then grows along it for ever.
    A linear programme finds it.
    """
    size = np.abs(advantages).max(axis=1, initial=0.0)
    if not size.any():
        return
    advantages = advantages[size > 0] / size[size > 0, None]  # the sizes of rows do not matter
    found = linprog(
        -advantages.sum(axis=0),
        A_ub=np.vstack([-advantages, advantages]),
        b_ub=np.concatenate([np.zeros(len(advantages)), np.ones(len(advantages))]),
        bounds=[(low, None) for low in lower],
        method="highs",
    )
    if found.status == 0 and -found.fun < 0.5:  # a direction can be scaled until one is 1
        return
    raise CalibrationInputError(
        "some combination of the scores separates the classes, so with raw targets no "
        'maximum-likelihood estimate exists; use targets="light", which always has one, a '
        "ridge, or more calibration rows."
    )
