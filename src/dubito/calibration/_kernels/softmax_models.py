r"""Softmax models of log scores: one slope, a slope and a bias per class, or a full matrix.

Targets are :math:`t=(1-\epsilon)\,e_y+\epsilon/K` with :math:`\epsilon=c/(n+c)`: c
pseudo-observations of unknown label, spread over the rows. With c > 0 every estimate is finite; as
n grows they vanish.
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

#: Numbers a pass holds at once: 4 MiB of them.
_CHUNK = 2**19

#: Rows on which the slope is found first, fewer of them where they are long; full passes then only
#: polish it.
_PILOT_ROWS = 4096
_FEWEST_PILOT_ROWS = 256
#: Part of the scores that may be listed: beyond, a list costs more than it saves.
_LISTED = 0.25


class Slope(NamedTuple):
    """A fitted slope and its certificate."""

    theta: float
    gradient: float  # of the mean negative log-likelihood in log θ (in θ when it is 0)
    n_iter: int  # passes over all rows


class Blocks(NamedTuple):
    """Second derivatives in slope and bias of the same class, (K,) each."""

    slope: FloatArray
    both: FloatArray
    bias: FloatArray


def fit_slope(u: FloatArray, y: IntArray, weight: FloatArray, pseudo: float) -> Slope:
    r"""Minimise the negative log-likelihood of :math:`\mathrm{softmax}(\theta u)` over θ ≥ 0.

    It is convex in θ: Halley's steps inside a bracket. θ is 0 where scores point away from the
    labels and 1 where they say nothing at all.
    """
    share = pseudo_fraction(weight.sum(), pseudo)
    start = _first_guess(u, weight)
    if start == 0.0:
        return Slope(1.0, 0.0, 0)
    pilot = _pilot_rows(u)
    if len(u) > 4 * pilot:
        rows = subsample_rows(len(u), pilot)
        start = _halley(u[rows], y[rows], weight[rows], share, start).theta or start
    return _halley(u, y, weight, share, start)


def slope_loss(
    u: FloatArray, y: IntArray, weight: FloatArray, pseudo: float, theta: float
) -> float:
    """Return the negative log-likelihood that `fit_slope` minimises."""
    from dubito.calibration._kernels.softmax_models_compiled import temperature_sums  # noqa: PLC0415

    return float(temperature_sums(u, y, weight, pseudo_fraction(weight.sum(), pseudo), theta)[0])


def _pilot_rows(u: FloatArray) -> int:
    return min(_PILOT_ROWS, max(_CHUNK // u.shape[1], _FEWEST_PILOT_ROWS))


def _first_guess(u: FloatArray, weight: FloatArray) -> float:
    """Return the slope at which a typical best score leads the mean by log K."""
    rows = subsample_rows(len(u), _pilot_rows(u))
    part = u[rows]
    # The mean of equal scores may differ from them by rounding; their range does not.
    leads = np.where(np.ptp(part, axis=1) > 0, part.max(axis=1) - part.mean(axis=1), 0.0)
    lead = float(np.average(leads, weights=weight[rows]))
    if lead == 0.0 and len(rows) < len(u):
        lead = max(float(np.ptp(u[rows], axis=1).max()) for rows in row_chunks(u))
    return np.log(u.shape[1]) / lead if lead > 0 else 0.0


def _halley(u: FloatArray, y: IntArray, weight: FloatArray, share: float, theta: float) -> Slope:
    from dubito.calibration._kernels.softmax_models_compiled import temperature_sums  # noqa: PLC0415

    n = float(weight.sum())
    low, high, last = 0.0, np.inf, np.inf
    gradient = 0.0
    for n_iter in range(1, 101):
        _, first, second, third = temperature_sums(u, y, weight, share, theta)
        gradient = abs(first) * theta / n
        if first > 0 and low == 0.0 and high == np.inf and _points_away(u, y, weight, share):
            return Slope(0.0, 0.0, n_iter)
        low, high = (theta, high) if first < 0 else (low, theta)
        step = _halley_step(first, second, third)
        size = abs(step) / theta
        # Within rounding, or no longer shrinking because rounding is all that is left.
        if size <= 1e-12 or (size <= 1e-8 and 2 * size >= last):
            return Slope(theta, gradient, n_iter)
        last = size
        theta = _inside(theta - step, theta, low, high)
    return Slope(theta, gradient, 100)


def _halley_step(first: float, second: float, third: float) -> float:
    if second <= 0.0:  # every probability is 0 or 1: too far out to see the slope
        return np.copysign(np.inf, first) if first else 0.0
    newton = first / second
    # Where the cubic term would more than double the step, it is not to be trusted.
    return newton / max(1 - 0.5 * newton * third / second, 0.5)


def _inside(proposal: float, theta: float, low: float, high: float) -> float:
    """Keep a step inside the bracket, and within a factor of 8."""
    if proposal > theta:
        limit = min(8 * theta, high)
        return proposal if proposal < limit else min(8 * theta, 0.5 * (theta + high))
    limit = max(theta / 8, low)
    return proposal if proposal > limit else max(theta / 8, 0.5 * (theta + low))


def _points_away(u: FloatArray, y: IntArray, weight: FloatArray, share: float) -> bool:
    """Say whether the likelihood falls from θ = 0 on: mean scores exceed those of the labels."""
    own = u[np.arange(len(u)), y]
    gap = np.concatenate([u[rows].mean(axis=1) for rows in row_chunks(u)]) - own
    return bool((1 - share) * (weight @ gap) >= 0)


def row_chunks(u: FloatArray, width: int = 1) -> Iterator[slice]:
    """Cut rows into runs, so that `width` arrays of a run stay small."""
    step = max(1, _CHUNK // (width * u.shape[1]))
    return (slice(i, min(i + step, len(u))) for i in range(0, len(u), step))


def subsample_rows(n: int, count: int) -> IntArray:
    """Choose rows without pattern, the same on every run; all of them when they are few."""
    if n <= count:
        return np.arange(n)
    return np.sort(np.random.default_rng(0).choice(n, count, replace=False))


def diagonal_value(
    u: FloatArray, weight: FloatArray, slope: FloatArray, bias: FloatArray
) -> tuple[float, FloatArray, FloatArray]:
    """Return Σw log Σ exp(slope∘u + bias), and its gradients in slope and in bias."""
    value, by_slope, by_bias, _ = diagonal_value_and_blocks(u, weight, slope, bias)
    return value, by_slope, by_bias


def diagonal_value_and_blocks(
    u: FloatArray, weight: FloatArray, slope: FloatArray, bias: FloatArray
) -> tuple[float, FloatArray, FloatArray, Blocks]:
    """Return `diagonal_value`, and the 2×2 blocks of each class in its Hessian."""
    from dubito.calibration._kernels.softmax_models_compiled import diagonal_sums  # noqa: PLC0415

    value, (by_slope, by_bias), blocks = diagonal_sums(u, weight, slope, bias)
    return float(value), by_slope, by_bias, Blocks(*blocks)


class Likely(NamedTuple):
    """Scores of the classes that matter to each row, and what the others add to its sum."""

    start: IntArray  # (n + 1,), where the row's scores begin
    column: npt.NDArray[np.int32]
    score: FloatArray
    rest: FloatArray  # (n,), the logarithm of their sum of exponentials


def likely_scores(u: FloatArray, y: IntArray, theta: float, share: float) -> Likely | None:
    """List the scores whose probability under softmax(θu) exceeds `share`, and those of labels.

    None where they are no small part of all scores.
    """
    from dubito.calibration._kernels.softmax_models_compiled import count_likely, list_likely  # noqa: PLC0415

    count, tops, cuts, rest = count_likely(u, y, theta, share)
    start = np.concatenate([[0], np.cumsum(count)])
    if start[-1] > _LISTED * u.size:
        return None
    column, score = np.empty(start[-1], dtype=np.int32), np.empty(start[-1])
    list_likely(u, y, theta, (tops, cuts), (start, column, score))
    return Likely(start, column, score, rest)


def likely_value_and_blocks(
    likely: Likely, weight: FloatArray, slope: FloatArray, bias: FloatArray
) -> tuple[float, FloatArray, FloatArray, Blocks]:
    """Return `diagonal_value_and_blocks` of listed scores, the others as they were listed.

    The others have the mean bias, so that a constant added to all still changes nothing.
    """
    from dubito.calibration._kernels.softmax_models_compiled import likely_sums  # noqa: PLC0415

    start, column, score, rest = likely
    value, sums = likely_sums((start, column, score, rest + bias.mean()), weight, slope, bias)
    by_bias = sums[1] + (weight.sum() - sums[1].sum()) / len(bias)
    return float(value), sums[0], by_bias, Blocks(*sums[2:])


def diagonal_hessian(
    u: FloatArray, weight: FloatArray, slope: FloatArray, bias: FloatArray
) -> FloatArray:
    """Return the Hessian of `diagonal_value`, (2K, 2K), slopes first."""
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
