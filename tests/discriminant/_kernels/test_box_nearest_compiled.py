"""The nearest point of a box, against bounded least squares."""

import numpy as np
import pytest
from scipy.optimize import lsq_linear

from dubito.discriminant._kernels.box_nearest_compiled import nearest


@pytest.mark.parametrize("p", [20, 60, 120])
@pytest.mark.parametrize("singular", [False, True])
def test_nearest_points_of_many_features(p, singular):
    rng = np.random.default_rng(p)
    for _ in range(8):
        turned = np.linalg.qr(rng.normal(size=(p, p)))[0]
        spread = np.geomspace(1, 10 ** rng.uniform(0, 4), p)
        spread[: p // 3 if singular else 0] = np.inf
        root = (turned / np.sqrt(spread)).T
        quad, point = root.T @ root, rng.normal(size=p) * rng.choice([0.3, 1, 3, 30])
        linear, distance = quad @ point, float(point @ quad @ point)
        half_width = 10 ** rng.uniform(-1.5, 0.8)
        largest = (distance**0.5 + half_width * np.abs(quad).sum() ** 0.5) ** 2
        y, slope = np.empty(p), np.empty(p)
        value, gap = nearest(
            distance, linear, quad, half_width, largest, y, slope,
            np.empty((p + 4, p)), np.empty(p, dtype=np.intp),
        )  # fmt: skip
        known = lsq_linear(root, root @ point, bounds=(-half_width, half_width), method="bvls")
        assert np.abs(y).max() <= half_width
        assert gap <= 1e-11 * (1 + value)
        assert abs(value - 2 * known.cost) <= 1e-9 * (1 + value)
