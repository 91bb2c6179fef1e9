"""Mass distributed in order: the least expectation, compared with a linear program."""

import numpy as np
import pytest
from scipy.optimize import linprog

from dubito._numerics.spare_mass import distribute_mass


@pytest.mark.parametrize("n_classes", [2, 5])
def test_least_expectation_is_that_of_a_linear_program(n_classes):
    rng = np.random.default_rng(n_classes)
    for _ in range(20):
        proba = rng.dirichlet(np.ones(n_classes))
        lower = proba * rng.uniform(size=n_classes)
        upper = proba + (1 - proba) * rng.uniform(size=n_classes)
        values = rng.normal(size=n_classes)
        order = np.argsort(values)
        added = distribute_mass(1 - lower.sum(), (upper - lower)[order])
        program = linprog(
            values, A_eq=np.ones((1, n_classes)), b_eq=[1], bounds=np.c_[lower, upper]
        )
        assert lower @ values + added @ values[order] == pytest.approx(program.fun, abs=1e-12)
        assert lower.sum() + added.sum() == pytest.approx(1.0, abs=1e-14)


@pytest.mark.parametrize("n_classes", [3, 5000])
def test_rounding_errors_are_no_mass(n_classes):
    lower = np.random.default_rng(0).dirichlet(np.ones(n_classes))
    width = np.full(n_classes, 0.1)
    np.testing.assert_array_equal(distribute_mass(1 - lower.sum(), width), 0.0)
