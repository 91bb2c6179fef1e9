"""Bounds of Platt, isotonic, binned, beta and temperature calibration, plain and evidential."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy.special import expit
from sklearn.base import clone

from dubito import load, save
from dubito.calibration import (
    BetaCalibrator,
    BinningCalibrator,
    EvidentialBinningCalibrator,
    EvidentialIsotonicCalibrator,
    EvidentialLogisticCalibrator,
    EvidentialMultinomialCalibrator,
    IsotonicCalibrator,
    MatrixCalibrator,
    MisfitWarning,
    PlattCalibrator,
    TemperatureCalibrator,
    VectorCalibrator,
    evidential_logistic,
    temperature,
)
from dubito.calibration._kernels.delta_method import linear_map_with_errors

PLAIN = [
    PlattCalibrator,
    IsotonicCalibrator,
    BinningCalibrator,
    BetaCalibrator,
    TemperatureCalibrator,
    VectorCalibrator,
    MatrixCalibrator,
]
TWINS = [
    (PlattCalibrator(), EvidentialLogisticCalibrator(targets="smoothed")),
    (TemperatureCalibrator(), EvidentialMultinomialCalibrator()),
]
#: Their probabilities are not those of the evidential version: its bounds are widened to hold them.
WIDENED = [
    (PlattCalibrator(ridge=1.0), EvidentialLogisticCalibrator()),
    (IsotonicCalibrator(), EvidentialIsotonicCalibrator()),
    (BinningCalibrator(n_bins=4), EvidentialBinningCalibrator(n_bins=4)),
]


def draw(n, n_classes=2, *, seed=0, slope=2.0):
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(n, n_classes))
    y = np.argmax(slope * scores + rng.gumbel(size=scores.shape), axis=1)
    return (scores[:, 1] - scores[:, 0], y) if n_classes == 2 else (scores, y)


@pytest.mark.parametrize("level", [None, 0.9])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(("plain", "twin"), TWINS, ids=lambda c: type(c).__name__)
def test_bounds_are_those_of_the_evidential_calibrator(plain, twin, n_classes, level):
    scores, y = draw(60, n_classes)
    one, other = clone(plain).fit(scores, y), clone(twin).fit(scores, y)
    for side, wanted in zip(
        one.predict_bounds(scores, level=level),
        other.predict_bounds(scores, level=level),
        strict=True,
    ):
        np.testing.assert_allclose(side, wanted, atol=1e-8)


@pytest.mark.parametrize("level", [None, 0.9])
@pytest.mark.parametrize(("plain", "twin"), WIDENED, ids=lambda c: type(c).__name__)
def test_bounds_are_those_of_the_evidential_calibrator_widened_to_hold_the_probability(
    plain, twin, level
):
    scores, y = draw(80)
    one, other = clone(plain).fit(scores, y), clone(twin).fit(scores, y)
    query = np.linspace(-4, 4, 50)
    proba, own = one.predict_proba(query), other.predict_bounds(query, level=level)
    found = one.predict_bounds(query, level=level)
    np.testing.assert_allclose(found.lower, np.minimum(own.lower, proba), atol=1e-9)
    np.testing.assert_allclose(found.upper, np.maximum(own.upper, proba), atol=1e-9)


@pytest.mark.parametrize("kind", PLAIN)
@pytest.mark.parametrize("n_classes", [2, 4])
def test_bounds_hold_the_probability_and_close_as_rows_are_added(kind, n_classes):
    widths = []
    for n in (25, 2500):
        scores, y = draw(n, n_classes)
        model = kind(classes=range(n_classes)).fit(scores, y)
        query, _ = draw(100, n_classes, seed=1)
        query = np.concatenate([query, 10 * query])
        proba = model.predict_proba(query)
        for level in (None, 0.9):
            bounds = model.predict_bounds(query, level=level)
            assert (bounds.lower <= proba).all()
            assert (proba <= bounds.upper).all()
        widths.append(model.predict_bounds(query[:100]).width.mean())
    assert widths[0] > 2 * widths[1] > 0


@pytest.mark.parametrize("kind", PLAIN)
@pytest.mark.parametrize("level", [None, 0.9])
def test_one_row_and_separable_rows(kind, level):
    one = kind(classes=[0, 1]).fit([0.3], [1])
    bounds = one.predict_bounds([-2.0, 0.3, 2.0], level=level)
    assert bounds.width.max() > 0.35  # one slope, not negative, leaves half of the range
    scores = np.linspace(-3, 3, 30)
    apart = kind(classes=[0, 1]).fit(scores, (scores > 0).astype(int))
    bounds = apart.predict_bounds([-2.5, 2.5], level=level)
    assert bounds.upper[0, 1] < 0.5 < bounds.lower[1, 1]


@pytest.mark.parametrize("kind", PLAIN)
def test_two_classes_have_masses_and_more_have_not(kind):
    scores, y = draw(50)
    model = kind().fit(scores, y)
    bounds, mass = model.predict_bounds(scores), model.predict_mass(scores)
    np.testing.assert_allclose(mass.mass[:, 1], bounds.lower[:, 1])
    np.testing.assert_allclose(mass.mass.sum(axis=1), 1.0)
    assert not hasattr(kind().fit(*draw(50, 3)), "predict_mass")


@pytest.mark.parametrize("kind", PLAIN)
def test_pickled_saved_and_cloned_models_answer_the_same(kind, tmp_path):
    scores, y = draw(50, 3)
    fresh, asked = kind().fit(scores, y), kind().fit(scores, y)
    wanted = asked.predict_bounds(scores, level=0.9)
    belief = asked.predict_bounds(scores)
    save(fresh, tmp_path / "fresh.skops")
    save(asked, tmp_path / "asked.skops")
    copies = [
        pickle.loads(pickle.dumps(fresh)),  # noqa: S301 - our own
        pickle.loads(pickle.dumps(asked)),  # noqa: S301
        load(tmp_path / "fresh.skops").model,
        load(tmp_path / "asked.skops").model,
        clone(asked).fit(scores, y),
    ]
    for copy in copies:
        np.testing.assert_array_equal(copy.predict_bounds(scores, level=0.9).lower, wanted.lower)
        np.testing.assert_array_equal(copy.predict_bounds(scores).upper, belief.upper)


@pytest.mark.parametrize("kind", [PlattCalibrator, BetaCalibrator])
def test_many_rows_are_kept_as_few_with_the_same_likelihood(kind, monkeypatch):
    scores, y = draw(6000)
    query = np.linspace(-5, 5, 40)
    few = kind(classes=[0, 1]).fit(scores, y)
    assert len(few.maps_[0].rows.x) < 1000
    monkeypatch.setattr(evidential_logistic, "STORED_ROWS", 10**9)
    every = kind(classes=[0, 1]).fit(scores, y)
    assert len(every.maps_[0].rows.x) == 6000
    for level in (None, 0.9):
        for one, other in zip(
            few.predict_bounds(query, level=level),
            every.predict_bounds(query, level=level),
            strict=True,
        ):
            np.testing.assert_allclose(one, other, atol=1e-7)


def test_a_sample_of_many_rows_has_the_likelihood_of_all(monkeypatch):
    scores, y = draw(20_000, 4)
    every = TemperatureCalibrator().fit(scores, y)
    monkeypatch.setattr(temperature, "_STORED_SCORES", 2**13)
    part = TemperatureCalibrator().fit(scores, y)
    assert len(part._rows.scores) == 2048
    for level in (None, 0.9):
        one, other = (m.predict_bounds(scores[:200], level=level) for m in (every, part))
        np.testing.assert_allclose(one.lower, other.lower, atol=2e-5)
        np.testing.assert_allclose(one.upper, other.upper, atol=2e-5)


def test_beta_bounds_are_the_exact_profile_likelihood_with_many_rows():
    """A sigmoid of the logits is a beta map with a = b: at n large both engines agree."""
    rng = np.random.default_rng(0)
    logits = 1.5 * rng.normal(size=20_000)
    y = (rng.random(20_000) < expit(0.7 * logits + 0.2)).astype(int)
    model = BetaCalibrator(input="logits").fit(logits, y)
    design = model.maps_[0]._design(logits)
    # The unpenalised delta method, written out.
    p = model.predict_proba(logits)[:, 1]
    hessian = (design * (p * (1 - p))[:, None]).T @ design
    at = model.maps_[0]._design(np.array([-2.0, 0.0, 2.0]))
    deviation = np.sqrt(np.einsum("ij,jk,ik->i", at, np.linalg.inv(hessian), at))
    _, below, above = model.maps_[0].level_map.log_odds_with_errors(at, 1.645)
    np.testing.assert_allclose(below, deviation, rtol=0.05)
    np.testing.assert_allclose(above, deviation, rtol=0.05)


def test_the_spread_of_a_curve_is_that_of_its_hessian():
    rng = np.random.default_rng(3)
    design = np.column_stack([rng.normal(size=(5000, 2)), np.ones(5000)])
    coef = np.array([0.8, 0.5, -0.2])
    spread = linear_map_with_errors(design, np.ones(5000), coef, np.array([1e-6, 1e-6, 0.0]))
    p = expit(design @ coef)
    exact = np.linalg.inv((design * (p * (1 - p))[:, None]).T @ design)
    direction = spread.shared.direction[0]
    np.testing.assert_allclose(
        spread.covariance + np.outer(direction, direction), exact, rtol=1e-3, atol=1e-7
    )


@pytest.mark.parametrize("kind", [PlattCalibrator, BetaCalibrator, TemperatureCalibrator])
def test_bounds_at_a_level_warn_of_a_wrong_form(kind):
    rng = np.random.default_rng(0)
    scores = rng.uniform(-3, 3, size=3000)
    wavy = 0.5 + 0.4 * np.sin(3 * scores)
    y = (rng.random(3000) < wavy).astype(int)
    model = kind().fit(scores, y)
    model.predict_bounds(scores[:5])
    with pytest.warns(MisfitWarning, match="form of the map is wrong"):
        model.predict_bounds(scores[:5], level=0.9)
