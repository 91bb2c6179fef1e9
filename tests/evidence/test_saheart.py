"""Denœux 2019, section 5.1.1: heart disease from age and LDL by logistic regression."""

import numpy as np
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from dubito.datasets import load
from dubito.evidence import EvidenceModel, EvidentialClassifier

from reference import evidence

pytestmark = pytest.mark.data

AGE, LDL = 0, 1
#: A young man with high LDL, an old one with low LDL, one near both cut-offs, both low, both high.
PATIENTS = np.array([[20.0, 14.0], [63.0, 2.0], [49.5, 6.9], [17.0, 2.5], [62.0, 12.0]])


@pytest.fixture(scope="module")
def heart():
    data = load("saheart")
    return data.X[:, [data.feature_names.index(name) for name in ("age", "ldl")]], data.y


@pytest.fixture(scope="module")
def estimate(heart):
    """Intercept and slopes of the greatest likelihood (Denœux 2019, eq. 13), by Newton's method."""
    X, y = heart
    design, beta = np.column_stack([np.ones(len(X)), X]), np.zeros(3)
    for _ in range(30):
        p = expit(design @ beta)
        beta += np.linalg.solve((design.T * (p * (1 - p))) @ design, design.T @ (y - p))
    assert np.abs(design.T @ (y - expit(design @ beta))).max() < 1e-9
    return beta


@pytest.fixture(scope="module")
def fitted(heart):
    # Without a limit on the coefficients; `penalty=None` means the same in older scikit-learn only.
    return EvidentialClassifier(LogisticRegression(C=np.inf, tol=1e-10, max_iter=1_000)).fit(*heart)


def weights_by_hand(beta, mean, patient):
    """Denœux 2019, eq. 16 with the offsets below eq. 35: one signed weight for each feature."""
    slope = beta[1:]
    return slope * patient + beta[0] / 2 + slope @ mean / 2 - slope * mean


def test_cutoffs_are_the_papers(heart, estimate, fitted):
    # Provenance: Denœux 2019, Figure 6 and text (about 50 years and 6.87), to one digit more.
    X, _ = heart
    model = EvidenceModel([estimate[1:]], estimate[:1], X.mean(axis=0))
    for cutoffs in (model.cutoffs, fitted.model_.cutoffs):
        assert cutoffs[AGE, 0] == pytest.approx(49.67, abs=0.005)
        assert cutoffs[LDL, 0] == pytest.approx(6.868, abs=0.0005)


@pytest.mark.parametrize("patient", range(5))
def test_weights_masses_and_conflict(heart, estimate, fitted, patient):
    X, _ = heart
    x = PATIENTS[patient]
    w = weights_by_hand(estimate, X.mean(axis=0), x)
    w_plus, w_minus = np.array([-np.minimum(w, 0).sum(), np.maximum(w, 0).sum()]), np.zeros(2)
    exact = evidence.belief(w_plus, w_minus)

    model = EvidenceModel([estimate[1:]], estimate[:1], X.mean(axis=0))
    for found, rel in ((model, 1e-10), (fitted, 1e-4)):  # the fit stops close to the maximum
        signed = found.weights([x])[0] @ [-1, 1]
        np.testing.assert_allclose(signed, w, rtol=rel)
        np.testing.assert_allclose(found.totals([x])[0][0], w_plus, rtol=rel)
        assert found.conflict([x])[0] == pytest.approx(float(exact.conflict), rel=rel)
        assert found.ignorance([x])[0] == pytest.approx(float(exact.ignorance), rel=rel)
    mass = [float(m) for m in exact.mass]
    np.testing.assert_allclose(model.mass([x]).mass[0], mass, rtol=1e-10)
    np.testing.assert_allclose(fitted.predict_mass([x]).mass[0], mass, rtol=1e-4)


def test_what_the_figures_show(fitted):
    # Denœux 2019, text to Figure 8: no support for the disease where both are below their
    # cut-offs, full plausibility where both are above; ignorance near both; conflict of youth and
    # high LDL.
    young_fat, old_lean, at_cutoffs, low, high = range(5)
    bounds, mass = fitted.predict_bounds(PATIENTS), fitted.predict_mass(PATIENTS)
    assert bounds.lower[low, 1] == 0
    assert bounds.upper[high, 1] == 1
    assert fitted.ignorance(PATIENTS).argmax() == at_cutoffs
    assert mass.mass[at_cutoffs, -1] > 0.97
    conflict = fitted.conflict(PATIENTS)
    assert conflict.argmax() == young_fat
    assert conflict[old_lean] > conflict[at_cutoffs]
    assert conflict[low] == conflict[high] == 0


def test_probabilities_are_logistic_regressions(heart, fitted):
    X, _ = heart
    proba = fitted.estimator_.predict_proba(X)
    upper = fitted.predict_bounds(X).upper
    np.testing.assert_allclose(fitted.predict_proba(X), proba, rtol=1e-12)
    np.testing.assert_allclose(upper / upper.sum(axis=1, keepdims=True), proba, rtol=1e-12)
