r"""Quantiles of the limit law of the isotonic likelihood ratio, by simulation.

The likelihood ratio :math:`-2\log\mathrm{pl}(f(s);s)` of the value of a non-decreasing f at s
tends, where f has a positive slope, not to :math:`\chi^2_1` but to a law without parameters
(Banerjee and Wellner, 2001):

.. math:: D=\int\bigl(g(t)^2-g_0(t)^2\bigr)\,dt

with g the slopes of the greatest convex minorant of :math:`W(t)+t^2`, W two-sided Brownian motion,
and :math:`g_0` those under :math:`g(0)=0`: the minorants of both sides alone, clipped at 0 from
above on the left, from below on the right.

On a grid of step h the slopes are the isotonic regression of the increments. Quantiles fall short
by a multiple of h (halving h halved the differences between grids, over five grids), so those of
the same paths on two grids are extrapolated to h = 0. The table of
`dubito._numerics.isotonic`
is the column of ratios to chi-square that this prints:

    python experiments/validity/isotonic_limit.py --paths 2000000
"""

from __future__ import annotations

import argparse

import numpy as np
from numba import njit
from scipy.stats import chi2

#: Minorants with and without the constraint differ beyond this in less than one path in a million.
RANGE = 3.0

#: Steps of the finest grid on each side, and the number of grids, each twice as coarse.
STEPS = 768
GRIDS = 2

LEVELS = (
    *(0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.925, 0.95, 0.975),
    *(0.99, 0.995, 0.999),
)


@njit(cache=True)
def squared_slopes(increments, step, sign, sums, counts):
    """Pool increments; return the sums of squared slopes, all and clipped at 0.

    Slopes that are positive (sign 1) or negative (sign -1) are clipped.
    """
    top = 0
    for i in range(len(increments)):
        total, count = increments[i], 1
        while top > 0 and sums[top - 1] * count >= total * counts[top - 1]:
            top -= 1
            total += sums[top]
            count += counts[top]
        sums[top], counts[top] = total, count
        top += 1
    free, clipped = 0.0, 0.0
    for j in range(top):
        square = sums[j] * sums[j] / (counts[j] * step)
        free += square
        if sign * sums[j] < 0.0:
            clipped += square
    return free, clipped


@njit(cache=True)
def ratios(increments, step):
    """Return D of each row of increments of W(t) + t^2."""
    n, size = increments.shape
    sums, counts = np.empty(size), np.empty(size, np.int64)
    result = np.empty(n)
    for row in range(n):
        path = increments[row]
        whole, _ = squared_slopes(path, step, 1, sums, counts)
        _, left = squared_slopes(path[: size // 2], step, 1, sums, counts)
        _, right = squared_slopes(path[size // 2 :], step, -1, sums, counts)
        result[row] = whole - left - right
    return result


def simulate(paths: int, seed: int) -> np.ndarray:
    """Return D of each path on each grid, (GRIDS, paths); the finest grid comes first."""
    rng = np.random.default_rng(seed)
    time = RANGE * np.arange(-STEPS, STEPS + 1) / STEPS
    drift = np.diff(time**2)
    found = []
    for first in range(0, paths, 1000):
        noise = rng.standard_normal((min(1000, paths - first), 2 * STEPS))
        increments = np.sqrt(RANGE / STEPS) * noise + drift
        row = []
        for halving in range(GRIDS):
            row.append(ratios(increments, RANGE / STEPS * 2**halving))
            increments = increments[:, ::2] + increments[:, 1::2]
        found.append(np.array(row))
    return np.concatenate(found, axis=1)


def main() -> None:
    """Print the quantiles on both grids and in the limit, and their ratio to chi-square."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--paths", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    found = simulate(options.paths, options.seed)
    quantiles = np.quantile(found, LEVELS, axis=1)
    density_step = 0.2 * np.minimum(LEVELS, 1 - np.array(LEVELS))
    print("level  h, 2h            h = 0    error    over chi-square")
    for i, level in enumerate(LEVELS):
        around = np.quantile(found[0], [level - density_step[i] / 2, level + density_step[i] / 2])
        error = np.sqrt(level * (1 - level) / options.paths) * np.diff(around)[0] / density_step[i]
        fine, coarse = quantiles[i]
        limit = 2 * fine - coarse
        over = limit / chi2.ppf(level, 1)
        print(f"{level:<5}  {fine:.5f} {coarse:.5f}  {limit:.5f}  {error:.5f}  {over:.4f}")


if __name__ == "__main__":
    main()
