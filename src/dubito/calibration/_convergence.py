"""A solver that stops short of its optimum says so."""

from __future__ import annotations

import warnings

from sklearn.exceptions import ConvergenceWarning

#: Gradient of the mean loss beyond which a fit is not taken for the optimum: far above rounding,
#: far below what moves a probability by 1e-4.
_LIMIT = 1e-6


def warn_unless_converged(name: str, gradient_norm: float) -> None:
    """Warn where the gradient of the mean loss at a fit, in standardised units, is not 0.

    >>> warn_unless_converged("VectorCalibrator", 1e-12)
    """
    if gradient_norm <= _LIMIT:
        return
    warnings.warn(
        f"{name} did not reach the optimum: the gradient of its mean loss is {gradient_norm:.1e}, "
        f"where at most {_LIMIT:.0e} is expected (gradient_norm_). Its probabilities may be off; "
        "use a ridge above 0 where there is one, or check the scores for extreme values.",
        ConvergenceWarning,
        stacklevel=4,
    )
