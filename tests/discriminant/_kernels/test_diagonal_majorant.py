"""Diagonals above a matrix, and the fraction of them that some coordinates need."""

import numpy as np

from dubito.discriminant._kernels.diagonal_majorant import diagonal_majorants
from dubito.discriminant._kernels.diagonal_majorant_compiled import fraction_needed


def test_a_fraction_of_the_diagonal_is_above_what_is_open():
    rng = np.random.default_rng(0)
    two = np.array([[1.0, -1.0], [-1.0, 1.0]])
    assert fraction_needed(two, np.full(2, 2.1), np.zeros(2, np.int8), np.empty((4, 2))) >= 1 / 1.05
    for _ in range(300):
        p = int(rng.integers(2, 12))
        root = rng.normal(size=(p, int(rng.integers(1, p + 1)))) * 10 ** rng.uniform(-2, 2, (p, 1))
        quad = root @ root.T
        majorant = diagonal_majorants(quad[None])[0]
        side = rng.integers(-1, 2, size=p).astype(np.int8)
        fraction = fraction_needed(quad, majorant, side, np.empty((p + 2, p)))
        assert 0 < fraction <= 1
        left = side == 0
        if left.any():
            scale = np.sqrt(majorant[left])
            relative = quad[np.ix_(left, left)] / np.outer(scale, scale)
            assert np.linalg.eigvalsh(relative)[-1] <= fraction * (1 + 1e-12)
