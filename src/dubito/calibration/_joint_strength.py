r"""How strong the ridge of a joint model should be, by the evidence (MacKay, 1992).

The coefficients x minimise :math:`\mathrm{NLL}(x)+\frac12\sum_g\lambda_gx^\top P_gx` over groups g
(slopes, biases), each with a quadratic form :math:`P_g`. With H the Hessian of the sum and
:math:`\gamma_g=\mathrm{rank}P_g-\lambda_g\mathrm{tr}(P_gH^{-1})` the number of coefficients that
the rows determine, the evidence is largest where :math:`\lambda_g=\gamma_g/x^\top P_gx`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dubito.calibration._shrinkage import STRONGEST, WEAKEST

if TYPE_CHECKING:
    from collections.abc import Callable

    from dubito._checks import BoolArray, FloatArray

_ROUNDS = 50
#: Strengths that change by less than this factor, less 1, are found.
_CLOSE = 0.05


def strengths_by_evidence(
    fit_at: Callable[[FloatArray], tuple[FloatArray, FloatArray, BoolArray]], forms: FloatArray
) -> FloatArray:
    """Return the strength of each group.

    Parameters
    ----------
    fit_at : callable
        Takes the penalty (p, p); returns coefficients, the Hessian with the penalty, and which
        coefficients are free: not held at a bound.
    forms : ndarray of shape (groups, p, p)
    """
    strengths = np.ones(len(forms))
    for _ in range(_ROUNDS):
        coef, hessian, free = fit_at(np.tensordot(strengths, forms, axes=1))
        inverse = np.zeros_like(hessian)
        inverse[np.ix_(free, free)] = np.linalg.pinv(hessian[np.ix_(free, free)], hermitian=True)
        new = np.array(
            [
                _strength(form, strength, coef, inverse, free)
                for form, strength in zip(forms, strengths, strict=True)
            ]
        )
        found = np.abs(np.log(new / strengths)).max() < _CLOSE
        strengths = new
        if found:
            break
    return strengths


def _strength(
    form: FloatArray, strength: float, coef: FloatArray, inverse: FloatArray, free: BoolArray
) -> float:
    """Return the new strength of a group; the present one where no coefficient of it is free."""
    rank = int(np.linalg.matrix_rank(form[np.ix_(free, free)], hermitian=True))
    if rank == 0:
        return strength
    determined = max(rank - strength * float((form * inverse).sum()), 0.0)
    size = max(float(coef @ form @ coef), 1e-300)
    return float(np.clip(determined / size, WEAKEST, STRONGEST))
