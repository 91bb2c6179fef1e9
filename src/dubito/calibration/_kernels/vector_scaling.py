r"""Vector scaling: likelihood of :math:`\mathrm{softmax}(a\circ u+b)`, and its Newton steps.

The likelihood has two parts: :math:`\sum w\log\sum_ke^{a_ku_k+b_k}`, computed here with its
derivatives, less a term linear in a and b that depends on the targets. With many classes the
Hessian is taken class by class, and most rows have few likely classes: the others then keep the
logits of the temperature map.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dubito._numerics.row_subsets import row_chunks
from dubito._numerics.softmax import softmax_in_place
from dubito.calibration._kernels.hessian_solvers import HessianSolver

if TYPE_CHECKING:
    import numpy.typing as npt

    from dubito._typing import FloatArray, IntArray

#: Fraction of the scores above which a list of likely ones costs more than it saves.
_LARGEST_LISTED_FRACTION = 0.25


class Blocks(NamedTuple):
    """Second derivatives in slope and bias of the same class, (K,) each."""

    slope: FloatArray
    both: FloatArray
    bias: FloatArray


def diagonal_value_and_blocks(
    u: FloatArray, weight: FloatArray, slope: FloatArray, bias: FloatArray
) -> tuple[float, FloatArray, FloatArray, Blocks]:
    """Return Σw log Σ exp(slope∘u + bias), its gradients in slope and bias, and Hessian blocks.

    The blocks are the second derivatives in slope and bias of the same class.
    """
    from dubito.calibration._kernels.vector_scaling_compiled import diagonal_sums  # noqa: PLC0415

    value, (by_slope, by_bias), blocks = diagonal_sums(u, weight, slope, bias)
    return float(value), by_slope, by_bias, Blocks(*blocks)


class Likely(NamedTuple):
    """Scores of the likely classes of each row, and the sum of exponentials of the others."""

    start: IntArray  # (n + 1,), index of each row's first score
    column: npt.NDArray[np.int32]
    score: FloatArray
    rest: FloatArray  # (n,), logarithm of the other classes' sum of exponentials


def likely_scores(u: FloatArray, y: IntArray, base_slope: float, threshold: float) -> Likely | None:
    """Return scores of classes likelier than `threshold` by softmax(base_slope·u), and of labels.

    None if they are more than a quarter of all scores.
    """
    from dubito.calibration._kernels.vector_scaling_compiled import count_likely, list_likely  # noqa: PLC0415

    count, largest, log_thresholds, rest = count_likely(u, y, base_slope, threshold)
    start = np.concatenate([[0], np.cumsum(count)])
    if start[-1] > _LARGEST_LISTED_FRACTION * u.size:
        return None
    column, score = np.empty(start[-1], dtype=np.int32), np.empty(start[-1])
    list_likely(u, y, base_slope, (largest, log_thresholds), (start, column, score))
    return Likely(start, column, score, rest)


def likely_value_and_blocks(
    likely: Likely, weight: FloatArray, slope: FloatArray, bias: FloatArray
) -> tuple[float, FloatArray, FloatArray, Blocks]:
    """Return `diagonal_value_and_blocks` with slopes and biases applied to likely scores only.

    The other classes keep their sum of exponentials, shifted by the mean bias, so that a constant
    added to all biases still has no effect on probabilities.
    """
    from dubito.calibration._kernels.vector_scaling_compiled import likely_sums  # noqa: PLC0415

    start, column, score, rest = likely
    value, sums = likely_sums((start, column, score, rest + bias.mean()), weight, slope, bias)
    by_bias = sums[1] + (weight.sum() - sums[1].sum()) / len(bias)
    return float(value), sums[0], by_bias, Blocks(*sums[2:])


def diagonal_hessian(
    u: FloatArray, weight: FloatArray, slope: FloatArray, bias: FloatArray
) -> FloatArray:
    """Return the Hessian of Σw log Σ exp(slope∘u + bias), (2K, 2K), slopes first."""
    n_classes = u.shape[1]
    hessian = np.zeros((2 * n_classes, 2 * n_classes))
    class_sums = np.zeros((3, n_classes))
    for rows in row_chunks(len(u), 4 * u.shape[1]):
        part = u[rows]
        p = softmax_in_place(slope * part + bias)
        root = np.sqrt(weight[rows])[:, None]
        both = np.hstack([root * p * part, root * p])
        hessian -= both.T @ both
        p *= weight[rows, None]
        class_sums[2] += p.sum(axis=0)
        p *= part
        class_sums[1] += p.sum(axis=0)
        class_sums[0] += np.einsum("ij,ij->j", p, part)
    _add_blocks(hessian, *class_sums)
    return hessian


def _add_blocks(
    hessian: FloatArray, by_slope: FloatArray, by_both: FloatArray, by_bias: FloatArray
) -> None:
    k = np.arange(len(by_slope))
    hessian[k, k] += by_slope
    hessian[k, k + len(k)] += by_both
    hessian[k + len(k), k] += by_both
    hessian[k + len(k), k + len(k)] += by_bias


def block_solver(blocks: Blocks, score_scale: float, penalty: FloatArray) -> HessianSolver:
    """Return the solver of a Hessian that ignores how classes depend on each other.

    Blocks are a good approximation in all directions but one: a constant added to all biases
    changes no probability. The penalty keeps the mean bias at 0, and so do the steps here.
    """
    n_classes = len(blocks.slope)
    a = blocks.slope / score_scale**2 + penalty[:n_classes]
    b = blocks.both / score_scale
    c = blocks.bias + penalty[n_classes:]
    a, c = (d + 1e-10 * max(d.max(), 1e-290) for d in (a, c))
    inverse = inverse_blocks(Blocks(a, b, c))

    def solve(gradient: FloatArray) -> FloatArray:
        first, second = gradient[:n_classes], gradient[n_classes:]
        bias = inverse.both * first + inverse.bias * second
        return np.concatenate([inverse.slope * first + inverse.both * second, bias - bias.mean()])

    return HessianSolver(solve, lambda: np.concatenate([inverse.slope, inverse.bias]))


def inverse_blocks(blocks: Blocks) -> Blocks:
    """Return the inverse of each class's matrix of slope and bias."""
    a, b, c = blocks
    determinant = np.maximum(a * c - b * b, 1e-12 * a * c)
    return Blocks(c / determinant, -b / determinant, a / determinant)
