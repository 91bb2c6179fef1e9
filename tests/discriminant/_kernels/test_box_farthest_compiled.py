"""The farthest corner of a box, against enumeration."""

import itertools

import numpy as np

from dubito.discriminant._kernels.box_farthest_compiled import farthest
from dubito.discriminant._kernels.diagonal_majorant import diagonal_majorants


def far_corner(distance, linear, quad, half_width, target=np.inf):
    """Return the kernel's farthest corner."""
    p = len(linear)
    others = np.abs(quad).sum(axis=1) - np.diagonal(quad)
    majorant = diagonal_majorants(quad[None])[0]
    return farthest(
        distance, linear, quad, others, majorant, half_width, target, 10_000, np.empty(p),
        np.empty((p + 6, p)), np.empty((p, p + 2)), np.empty((p + 2, p), dtype=np.int8),
    )  # fmt: skip


def test_farthest_corners_of_features_that_cancel():
    # Each feature with its opposite: all sums of rows are zero, and Q is singular.
    rng = np.random.default_rng(5)
    for _ in range(2000):
        q = int(rng.integers(1, 4))
        half = np.round(rng.normal(size=(q, q)), rng.integers(0, 4))
        root = np.vstack([half, -half, *([rng.normal(size=(1, q))] * rng.integers(0, 2))])
        root = root[rng.permutation(len(root))]
        quad, place = root @ root.T, rng.normal(size=q) * rng.choice([0, 1e-6, 0.1, 1])
        linear, distance, half_width = root @ place, float(place @ place), 10 ** rng.uniform(-1, 2)
        corners = half_width * np.array(list(itertools.product([-1.0, 1.0], repeat=len(root))))
        known = (distance - 2 * corners @ linear + ((corners @ quad) * corners).sum(axis=1)).max()
        value, bound, _ = far_corner(distance, linear, quad, half_width)
        assert abs(value - known) <= 1e-11 * known
        assert bound >= known * (1 - 1e-12)
        assert far_corner(distance, linear, quad, half_width, target=known * (1 - 1e-6))[0] >= (
            known * (1 - 1e-6)
        )
