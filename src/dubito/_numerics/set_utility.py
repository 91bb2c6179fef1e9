r"""Utility of a set of s classes that holds the true one: :math:`\alpha/s+(1-\alpha)/s^2`."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

#: Values of alpha for the utility-discounted accuracies u65 and u80: a set of two is worth 0.65
#: or 0.8.
ALPHA = {"u65": 1.6, "u80": 2.2}


def utility_of_size(size: npt.ArrayLike, alpha: float) -> npt.NDArray[np.float64]:
    r"""Return :math:`\alpha/s+(1-\alpha)/s^2`, written so that a set of one is worth exactly 1."""
    inverse = 1 / np.asarray(size, dtype=np.float64)
    return np.asarray(inverse * (1 + (alpha - 1) * (1 - inverse)))
