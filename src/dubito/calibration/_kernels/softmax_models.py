r"""Softmax models of log scores: one slope, a slope and a bias per class, or a full matrix.

Targets are :math:`t=(1-\epsilon)\,e_y+\epsilon/K` with :math:`\epsilon=c/(n+c)`: c
pseudo-observations of unknown label, distributed over the rows. With c > 0 every estimate is
finite; as n grows their effect vanishes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dubito._numerics.softmax import softmax_rows
from dubito._numerics.targets import pseudo_fraction

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from dubito._typing import FloatArray, IntArray

#: Floats that a pass holds at once: 4 MiB.
_CHUNK = 2**19

#: Rows of a subsample on which the slope is fitted first, fewer for many classes; passes over all
#: rows then need few steps.
_PILOT_ROWS = 4096
_FEWEST_PILOT_ROWS = 256
#: Fraction of the scores above which a list of likely ones costs more than it saves.
_LARGEST_LISTED_FRACTION = 0.25


class Slope(NamedTuple):
    """A fitted slope and its certificate."""

    theta: float
    gradient_norm: float  # of the mean negative log-likelihood in log θ (in θ when it is 0)
    n_iter: int  # passes over all rows


class Blocks(NamedTuple):
    """Second derivatives in slope and bias of the same class, (K,) each."""

    slope: FloatArray
    both: FloatArray
    bias: FloatArray


def fit_slope(u: FloatArray, y: IntArray, weight: FloatArray, pseudo: float) -> Slope:
    r"""Return the maximum likelihood estimate θ ≥ 0 of :math:`\mathrm{softmax}(\theta u)`.

    The negative log-likelihood is convex in θ: Halley's method inside a bracket. θ is 0 where
    scores are negatively related to the labels, and 1 where all scores are constant.
    """
    fraction = pseudo_fraction(weight.sum(), pseudo)
    start = _first_guess(u, weight)
    if start == 0.0:
        return Slope(1.0, 0.0, 0)
    pilot = _pilot_rows(u)
    if len(u) > 4 * pilot:
        rows = subsample_rows(len(u), pilot)
        start = _halley(u[rows], y[rows], weight[rows], fraction, start).theta or start
    return _halley(u, y, weight, fraction, start)


def slope_loss(
    u: FloatArray, y: IntArray, weight: FloatArray, pseudo: float, theta: float
) -> float:
    """Return the negative log-likelihood that `fit_slope` minimises."""
    from dubito.calibration._kernels.softmax_models_compiled import temperature_sums  # noqa: PLC0415

    return float(temperature_sums(u, y, weight, pseudo_fraction(weight.sum(), pseudo), theta)[0])


def _pilot_rows(u: FloatArray) -> int:
    return min(_PILOT_ROWS, max(_CHUNK // u.shape[1], _FEWEST_PILOT_ROWS))


def _first_guess(u: FloatArray, weight: FloatArray) -> float:
    """Return the slope at which the largest score exceeds the mean by log K on average."""
    rows = subsample_rows(len(u), _pilot_rows(u))
    part = u[rows]
    # The mean of equal scores may differ from them by rounding; their range does not.
    advantages = np.where(np.ptp(part, axis=1) > 0, part.max(axis=1) - part.mean(axis=1), 0.0)
    advantage = float(np.average(advantages, weights=weight[rows]))
    if advantage == 0.0 and len(rows) < len(u):
        advantage = max(float(np.ptp(u[rows], axis=1).max()) for rows in row_chunks(u))
    return np.log(u.shape[1]) / advantage if advantage > 0 else 0.0


def _halley(u: FloatArray, y: IntArray, weight: FloatArray, fraction: float, theta: float) -> Slope:
    from dubito.calibration._kernels.softmax_models_compiled import temperature_sums  # noqa: PLC0415

    n = float(weight.sum())
    low, high, last = 0.0, np.inf, np.inf
    gradient = 0.0
    for n_iter in range(1, 101):
        _, first, second, third = temperature_sums(u, y, weight, fraction, theta)
        gradient = abs(first) * theta / n
        if first > 0 and low == 0.0 and high == np.inf and _points_away(u, y, weight, fraction):
            return Slope(0.0, 0.0, n_iter)
        low, high = (theta, high) if first < 0 else (low, theta)
        step = _halley_step(first, second, third)
        size = abs(step) / theta
        # Converged, or steps no longer decrease because they are rounding errors.
        if size <= 1e-12 or (size <= 1e-8 and 2 * size >= last):
            return Slope(theta, gradient, n_iter)
        last = size
        theta = _inside(theta - step, theta, low, high)
    return Slope(theta, gradient, 100)


def _halley_step(first: float, second: float, third: float) -> float:
    if second <= 0.0:  # every probability is 0 or 1 up to rounding
        return np.copysign(np.inf, first) if first else 0.0
    newton = first / second
    # The third-order correction may at most double the step: beyond that it is inaccurate.
    return newton / max(1 - 0.5 * newton * third / second, 0.5)


def _inside(proposal: float, theta: float, low: float, high: float) -> float:
    """Return the proposal limited to the bracket, and to a factor of 8 from θ."""
    if proposal > theta:
        limit = min(8 * theta, high)
        return proposal if proposal < limit else min(8 * theta, 0.5 * (theta + high))
    limit = max(theta / 8, low)
    return proposal if proposal > limit else max(theta / 8, 0.5 * (theta + low))


def _points_away(u: FloatArray, y: IntArray, weight: FloatArray, fraction: float) -> bool:
    """Return whether the likelihood decreases at θ = 0: mean scores exceed those of labels."""
    own = u[np.arange(len(u)), y]
    gap = np.concatenate([u[rows].mean(axis=1) for rows in row_chunks(u)]) - own
    return bool((1 - fraction) * (weight @ gap) >= 0)


def row_chunks(u: FloatArray, width: int = 1) -> Iterator[slice]:
    """Return slices of consecutive rows for which `width` arrays fit in a chunk."""
    step = max(1, _CHUNK // (width * u.shape[1]))
    return (slice(i, min(i + step, len(u))) for i in range(0, len(u), step))


def subsample_rows(n: int, count: int) -> IntArray:
    """Return `count` random rows of n in order, the same on every run; all if n is no larger."""
    if n <= count:
        return np.arange(n)
    return np.sort(np.random.default_rng(0).choice(n, count, replace=False))


def diagonal_value_and_blocks(
    u: FloatArray, weight: FloatArray, slope: FloatArray, bias: FloatArray
) -> tuple[float, FloatArray, FloatArray, Blocks]:
    """Return Σw log Σ exp(slope∘u + bias), its gradients in slope and bias, and Hessian blocks.

    The blocks are the second derivatives in slope and bias of the same class.
    """
    from dubito.calibration._kernels.softmax_models_compiled import diagonal_sums  # noqa: PLC0415

    value, (by_slope, by_bias), blocks = diagonal_sums(u, weight, slope, bias)
    return float(value), by_slope, by_bias, Blocks(*blocks)


class Likely(NamedTuple):
    """Scores of the likely classes of each row, and the sum of exponentials of the others."""

    start: IntArray  # (n + 1,), index of each row's first score
    column: npt.NDArray[np.int32]
    score: FloatArray
    rest: FloatArray  # (n,), logarithm of the other classes' sum of exponentials


def likely_scores(u: FloatArray, y: IntArray, theta: float, threshold: float) -> Likely | None:
    """Return scores whose probability under softmax(θu) exceeds `threshold`, and those of labels.

    None if they are more than a quarter of all scores.
    """
    from dubito.calibration._kernels.softmax_models_compiled import count_likely, list_likely  # noqa: PLC0415

    count, largest, log_thresholds, rest = count_likely(u, y, theta, threshold)
    start = np.concatenate([[0], np.cumsum(count)])
    if start[-1] > _LARGEST_LISTED_FRACTION * u.size:
        return None
    column, score = np.empty(start[-1], dtype=np.int32), np.empty(start[-1])
    list_likely(u, y, theta, (largest, log_thresholds), (start, column, score))
    return Likely(start, column, score, rest)


def likely_value_and_blocks(
    likely: Likely, weight: FloatArray, slope: FloatArray, bias: FloatArray
) -> tuple[float, FloatArray, FloatArray, Blocks]:
    """Return `diagonal_value_and_blocks` with slopes and biases applied to likely scores only.

    The other classes keep their sum of exponentials, shifted by the mean bias, so that a constant
    added to all biases still has no effect on probabilities.
    """
    from dubito.calibration._kernels.softmax_models_compiled import likely_sums  # noqa: PLC0415

    start, column, score, rest = likely
    value, sums = likely_sums((start, column, score, rest + bias.mean()), weight, slope, bias)
    by_bias = sums[1] + (weight.sum() - sums[1].sum()) / len(bias)
    return float(value), sums[0], by_bias, Blocks(*sums[2:])


def diagonal_hessian(
    u: FloatArray, weight: FloatArray, slope: FloatArray, bias: FloatArray
) -> FloatArray:
    """Return the Hessian of that value, Σw log Σ exp(slope∘u + bias): (2K, 2K), slopes first."""
    n_classes = u.shape[1]
    hessian = np.zeros((2 * n_classes, 2 * n_classes))
    own = np.zeros((3, n_classes))
    for rows in row_chunks(u, 4):
        part = u[rows]
        p = softmax_rows(slope * part + bias)
        root = np.sqrt(weight[rows])[:, None]
        both = np.hstack([root * p * part, root * p])
        hessian -= both.T @ both
        p *= weight[rows, None]
        own[2] += p.sum(axis=0)
        p *= part
        own[1] += p.sum(axis=0)
        own[0] += np.einsum("ij,ij->j", p, part)
    _add_blocks(hessian, *own)
    return hessian


def _add_blocks(
    hessian: FloatArray, by_slope: FloatArray, by_both: FloatArray, by_bias: FloatArray
) -> None:
    k = np.arange(len(by_slope))
    hessian[k, k] += by_slope
    hessian[k, k + len(k)] += by_both
    hessian[k + len(k), k] += by_both
    hessian[k + len(k), k + len(k)] += by_bias


def matrix_value(
    u: FloatArray, weight: FloatArray, matrix: FloatArray, bias: FloatArray
) -> tuple[float, FloatArray, FloatArray]:
    """Return Σw log Σ exp(matrix u + bias), and its gradients in matrix and in bias."""
    value = 0.0
    by_matrix, by_bias = np.zeros_like(matrix), np.zeros_like(bias)
    for rows in row_chunks(u, 2):
        z = u[rows] @ matrix.T
        z += bias
        top = z.max(axis=1)
        z -= top[:, None]
        np.exp(z, out=z)
        total = z.sum(axis=1)
        value += float(weight[rows] @ (np.log(total) + top))
        z *= (weight[rows] / total)[:, None]
        by_matrix += z.T @ u[rows]
        by_bias += z.sum(axis=0)
    return value, by_matrix, by_bias


def matrix_hessian(features: FloatArray, weight: FloatArray, p: FloatArray) -> FloatArray:
    """Return the Hessian of a full matrix on features: ΣW(diag(p) - ppᵀ) ⊗ ffᵀ."""
    n_classes, n_features = p.shape[1], features.shape[1]
    size = n_classes * n_features
    hessian = np.zeros((size, size))
    root = np.sqrt(weight)[:, None]
    step = max(1, 4 * _CHUNK // size)
    for i in range(0, len(p), step):
        part = (root * p)[i : i + step, :, None] * features[i : i + step, None, :]
        part = part.reshape(len(part), size)
        hessian -= part.T @ part
    blocks = hessian.reshape(n_classes, n_features, n_classes, n_features)
    for k in range(n_classes):
        blocks[k, :, k] += (features * (weight * p[:, k])[:, None]).T @ features
    return hessian
