r"""Log-odds of probabilities that may be 0 or 1, kept finite by a floor; scores of two classes.

:math:`\log\max(p,f)-\log\max(1-p,f)`, with the floor f half the smallest positive probability that
a model has given: the 0 of a model is a probability too small to estimate, not an impossible event.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from dubito._typing import FloatArray


def probability_floor(proba: FloatArray) -> float:
    """Return half the smallest positive probability of a table (n, K), within 1e-16 and 0.01."""
    smallest = np.min(proba, where=proba > 0, initial=1.0)
    return float(np.clip(0.5 * smallest, 1e-16, 0.01))


def floored_log_odds(proba: FloatArray, rest: FloatArray, floor: float) -> FloatArray:
    """Return log(proba) - log(rest), each probability at least `floor`."""
    return np.asarray(np.log(np.maximum(proba, floor)) - np.log(np.maximum(rest, floor)))


def two_class_scores(margin: FloatArray) -> FloatArray:
    """Return (-d/2, d/2), the scores of two classes, from their margins d (n, 1)."""
    return np.hstack([-0.5 * margin, 0.5 * margin])
