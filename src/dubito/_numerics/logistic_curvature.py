r"""Second derivatives of the logistic log-likelihood.

With probabilities :math:`p_i=1/(1+e^{-\eta_i})` at log-odds :math:`\eta=X\beta`, weights w and
penalties :math:`\lambda`, the Hessian in the coefficients is

.. math:: H=\sum_iw_ip_i(1-p_i)\,x_ix_i^\top+\operatorname{diag}(\lambda).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from dubito._typing import FloatArray


def logistic_curvature(eta: FloatArray, weight: FloatArray) -> FloatArray:
    """Return w p (1 - p) of each row, also right where p rounds to 1."""
    small = np.exp(-np.abs(eta))
    return np.asarray(weight * small / (1 + small) ** 2)


def logistic_hessian(
    design: FloatArray, eta: FloatArray, weight: FloatArray, penalty: FloatArray | float = 0.0
) -> FloatArray:
    """Return H of a design (n, p) at the log-odds of its rows."""
    hessian = (design * logistic_curvature(eta, weight)[:, None]).T @ design
    np.einsum("ii->i", hessian)[:] += penalty
    return np.asarray(hessian)
