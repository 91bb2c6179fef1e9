r"""Weights of evidence for and against each class, combined by Dempster's rule.

Each row has weights :math:`w^+_k` for class k and :math:`w^-_k` against it, all non-negative: the
simple mass functions :math:`\{k\}^{w^+_k}` and :math:`\overline{\{k\}}^{w^-_k}` for all k are
combined (Denœux 2019, Proposition 1). The formulas of Bel, Pl, q and D, which normalises the
masses, are in `dubito.evidence.bounds_from_weights`; those of masses in `mass_from_weights`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from dubito._typing import FloatArray


def bounds(w_plus: FloatArray, w_minus: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return belief and plausibility of each class, each (n, K), in O(K) a row."""
    from dubito._numerics.evidence_weights_compiled import bounds_of_rows  # noqa: PLC0415 - loads numba

    lower, upper = np.empty(w_plus.shape), np.empty(w_plus.shape)
    bounds_of_rows(w_plus, w_minus, lower, upper)
    return lower, upper


def conflict(w_plus: FloatArray, w_minus: FloatArray) -> FloatArray:
    r"""Return :math:`1-e^{-\sum_kw^+_k}D`: the mass of the empty set before normalising, (n,)."""
    return _summaries(w_plus, w_minus)[1]


def ignorance(w_plus: FloatArray, w_minus: FloatArray) -> FloatArray:
    r"""Return the mass of the whole frame, :math:`e^{-\sum_kw^-_k}/D`, (n,)."""
    with np.errstate(over="ignore"):  # an infinite sum of weights leaves no mass on the frame
        against = w_minus.sum(axis=1)
    return np.exp(np.minimum(-against - _summaries(w_plus, w_minus)[0], 0.0))


def masses(w_plus: FloatArray, w_minus: FloatArray) -> FloatArray:
    """Return the masses of all non-empty subsets in bit-mask order, (n, 2^K - 1)."""
    n_classes = w_plus.shape[1]
    log_mass = -_summaries(w_plus, w_minus)[0][:, None]
    with np.errstate(over="ignore"):  # a log mass of minus infinity is mass 0
        for excluded, not_excluded in zip(_log_support(w_minus).T, -w_minus.T, strict=True):
            doubled = [log_mass + excluded[:, None], log_mass + not_excluded[:, None]]
            log_mass = np.concatenate(doubled, axis=1)
    mass = np.exp(np.minimum(log_mass[:, 1:], 0.0))
    mass[:, (1 << np.arange(n_classes)) - 1] = bounds(w_plus, w_minus)[0]
    return mass


def _log_support(weight: FloatArray) -> FloatArray:
    """Return log(1 - exp(-w)), minus infinity for w = 0."""
    with np.errstate(divide="ignore"):
        return np.where(weight > 1.0, np.log1p(-np.exp(-weight)), np.log(-np.expm1(-weight)))


def _summaries(w_plus: FloatArray, w_minus: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return log D and the conflict of each row."""
    from dubito._numerics.evidence_weights_compiled import summaries_of_rows  # noqa: PLC0415

    log_d, conflicts = np.empty(len(w_plus)), np.empty(len(w_plus))
    summaries_of_rows(w_plus, w_minus, log_d, conflicts)
    return log_d, conflicts


def totals(
    phi: FloatArray,
    layer: tuple[FloatArray, FloatArray, FloatArray],
    layout: tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]],
) -> tuple[FloatArray, FloatArray]:
    r"""Return :math:`w^+_k` and :math:`w^-_k`, sums over pieces of evidence, each (n, K).

    Piece g consists of the features ``order[starts[g]:starts[g+1]]``. The positive or negative part
    of its weight :math:`\sum_{j\in g}\beta_{jk}(\phi_j-\mu_j)+b_k` is added to one of the two.
    `layer` is :math:`(\beta,\mu,b)`, `layout` is ``(order, starts)``.
    """
    from dubito._numerics.evidence_weights_compiled import totals_of_rows  # noqa: PLC0415

    shape = (len(phi), len(layer[2]))
    plus, minus = np.empty(shape), np.empty(shape)
    totals_of_rows(np.ascontiguousarray(phi), layer, layout, plus, minus)
    return plus, minus


def sparse_totals(
    values: tuple[FloatArray, npt.NDArray[np.integer], npt.NDArray[np.integer]],
    slope: FloatArray,
    at_zero: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    r"""Return :math:`w^+_k` and :math:`w^-_k` of sparse rows, each (n, K).

    `values` are the rows in CSR form: data, indices, indptr. Each feature is a piece, of weight
    `at_zero` + `slope` times its value, both (J, K). The cost is proportional to the number of
    values that are not zero.
    """
    from dubito._numerics.evidence_weights_compiled import totals_of_sparse_rows  # noqa: PLC0415

    plus, minus = (
        np.tile(np.maximum(sign * at_zero, 0.0).sum(axis=0), (len(values[2]) - 1, 1))
        for sign in (1.0, -1.0)
    )
    totals_of_sparse_rows(values, (slope, at_zero), plus, minus)
    return plus, minus
