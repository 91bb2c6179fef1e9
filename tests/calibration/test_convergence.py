"""Every solver warns where its certificate is not met."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from dubito.calibration import (
    EvidentialMultinomialCalibrator,
    MatrixCalibrator,
    TemperatureCalibrator,
    VectorCalibrator,
    temperature,
)
from dubito.calibration._kernels import penalised_fit, quasi_newton
from dubito.calibration._kernels import slope_likelihood as multinomial


def draw():
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=60)
    return rng.normal(size=(60, 3)) + np.eye(3)[y], y


def test_newton_that_runs_out_of_steps_warns(monkeypatch):
    monkeypatch.setattr(multinomial, "_MAX_NEWTON_STEPS", 2)
    with pytest.warns(ConvergenceWarning, match="EvidentialMultinomialCalibrator stopped before"):
        model = EvidentialMultinomialCalibrator().fit(*draw())
    assert model.gradient_norm_ > 1e-6


@pytest.mark.parametrize("kind", [VectorCalibrator, MatrixCalibrator])
def test_quasi_newton_that_runs_out_of_steps_warns(monkeypatch, kind):
    def short(*args, **options):
        return quasi_newton.minimise(*args, **{**options, "max_iter": 1})

    monkeypatch.setattr(penalised_fit, "minimise", short)
    with pytest.warns(ConvergenceWarning, match=f"{kind.__name__} stopped before its optimum"):
        kind(ridge=0.1).fit(*draw())


def test_a_temperature_off_its_optimum_warns(monkeypatch):
    real = temperature.fit_slope
    monkeypatch.setattr(temperature, "fit_slope", lambda *a: real(*a)._replace(gradient_norm=1e-3))
    with pytest.warns(ConvergenceWarning, match="the gradient is 1.0e-03 per unit of weight"):
        TemperatureCalibrator().fit(*draw())
