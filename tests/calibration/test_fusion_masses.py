"""Mass functions that members have of their own: what the rules make of their weights."""

from decimal import Decimal, localcontext
from functools import partial
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.frozen import FrozenEstimator

from dubito.belief import (
    MassBatch,
    TotalConflictError,
    cautious,
    conflict,
    dempster,
    plausibility_transform,
)
from dubito.belief.transforms import mass_to_weights, weights_to_mass
from dubito.calibration import EvidentialFusion, _fusion_masses

from reference.evidence import DIGITS, belief_of_many

RULES = {"contour": dempster, "dempster": dempster, "cautious": cautious}
fused = partial(EvidentialFusion, method="masses")


def by_definition(plus, minus):
    """Combine simple mass functions by the definition, without the formulas of Denœux 2019."""
    n_classes = plus.shape[1]
    singles = 1 << np.arange(n_classes)
    weights = np.zeros((len(plus), 2**n_classes))
    weights[:, singles] += plus
    weights[:, 2**n_classes - 1 - singles] += minus
    full = np.maximum(weights_to_mass(weights), 0.0)
    full[:, 0] = 0.0
    return MassBatch.from_array(range(n_classes), full / full.sum(axis=1, keepdims=True))


class Fixed(ClassifierMixin, BaseEstimator):
    """Knows its classes, and learns nothing."""

    def __init__(self, classes=(0, 1)):
        self.classes = classes

    def fit(self, X, y):  # noqa: ARG002
        self.classes_ = np.asarray(self.classes)
        return self


class Sure(Fixed):
    """The only feature is the class."""

    def predict_mass(self, X):
        return MassBatch.from_proba(self.classes_, np.eye(len(self.classes_))[X[:, 0]])


class Given(Fixed):
    """The features are the weights for all classes, then those against."""

    def totals(self, X):
        return np.split(np.asarray(X), 2, axis=1)

    def predict_mass(self, X):
        batch = by_definition(*self.totals(X))
        return MassBatch(self.classes_, batch.focal, batch.mass)

    def predict_bounds(self, X):
        return self.predict_mass(X).bounds()


def fuse_given(weights, **options):
    """Return a fusion of members with given weights (members, 2, n, K), and its features."""
    n_members, _, n, k = weights.shape
    table = weights.transpose(2, 0, 1, 3).reshape(n, -1)
    frozen = FrozenEstimator(Given(range(k)).fit(None, None))
    each = [(f"m{i}", frozen, slice(2 * k * i, 2 * k * (i + 1))) for i in range(n_members)]
    return fused(each, **options).fit(table, np.arange(n) % k), table


def draw_weights(seed, n_members, n_classes, n=40):
    """Weights from none to much, of very different sizes."""
    rng = np.random.default_rng(seed)
    weights = 10.0 ** rng.uniform(-6, 0.9, size=(n_members, 2, n, n_classes))
    return weights * (rng.uniform(size=weights.shape) < 0.7)


@given(
    st.integers(0, 10**6),
    st.integers(1, 3),
    st.integers(2, 5),
    st.sampled_from(sorted(RULES)),
)
def test_totals_do_what_the_rules_do_to_masses(seed, n_members, n_classes, rule):
    weights = draw_weights(seed, n_members, n_classes)
    fusion, table = fuse_given(weights, rule=rule)
    masses = [by_definition(*pair) for pair in weights]
    expected = RULES[rule](*masses)
    ours = fusion.predict_bounds(table)
    lower = np.minimum(expected.bounds().lower, plausibility_transform(expected))
    np.testing.assert_allclose(ours.lower, lower, atol=1e-9)
    np.testing.assert_allclose(ours.upper, expected.bounds().upper, atol=1e-9)
    np.testing.assert_allclose(fusion.predict_mass(table).mass, expected.dense().mass, atol=1e-9)
    np.testing.assert_allclose(
        fusion.predict_proba(table), plausibility_transform(expected), atol=1e-9
    )
    np.testing.assert_allclose(fusion.conflict(table), conflict(*masses), atol=1e-9)


@pytest.mark.parametrize("n_classes", [3, 4, 5])
def test_totals_are_the_weights_of_the_canonical_decomposition(n_classes):
    plus, minus = np.random.default_rng(0).uniform(0, 3, size=(2, 20, n_classes))
    fusion, table = fuse_given(np.stack([plus, minus])[None])
    weights = mass_to_weights(fusion.predict_mass(table).to_array())
    singles = 1 << np.arange(n_classes)
    np.testing.assert_allclose(weights[:, singles], plus, atol=1e-9)
    np.testing.assert_allclose(weights[:, 2**n_classes - 1 - singles], minus, atol=1e-9)
    others = np.setdiff1d(np.arange(1, 2**n_classes), [*singles, *(2**n_classes - 1 - singles)])
    np.testing.assert_allclose(weights[:, others], 0, atol=1e-9)


@pytest.mark.parametrize("rule", ["dempster", "cautious"])
def test_for_one_of_two_classes_is_against_the_other(rule):
    plus = np.random.default_rng(1).uniform(0, 3, size=(2, 30, 2))
    nothing = np.zeros_like(plus[0])
    all_for = np.array([[plus[0], nothing], [plus[1], nothing]])
    spread = np.array([[plus[0] / 4, 3 * plus[0][:, ::-1] / 4], [nothing, plus[1][:, ::-1]]])
    (one, first), (two, second) = fuse_given(all_for, rule=rule), fuse_given(spread, rule=rule)
    np.testing.assert_allclose(
        one.predict_bounds(first).lower, two.predict_bounds(second).lower, atol=1e-12
    )
    np.testing.assert_allclose(one.conflict(first), two.conflict(second), atol=1e-12)
    np.testing.assert_allclose(one.predict_proba(first), two.predict_proba(second), atol=1e-12)


def normaliser(plus, minus):
    """Return D of Denœux 2019, Prop. 1 (1/D is its C), term by term in decimals."""
    one = Decimal(1)
    terms = [(Decimal(p), (-Decimal(m)).exp()) for p, m in zip(plus, minus, strict=True)]
    return sum(left * (p.exp() - one) for p, left in terms) + one - prod(one - x for _, x in terms)


@pytest.mark.parametrize("rule", sorted(RULES))
def test_any_number_of_classes_and_any_weight(rule):
    scales = np.array([1e-3, 0.05, 1.0, 200.0])[:, None]
    weights = np.random.default_rng(2).exponential(scales, size=(3, 2, 4, 24))
    fusion, table = fuse_given(weights, rule=rule)
    bounds, kappa = fusion.predict_bounds(table), fusion.conflict(table)
    together = weights.max(axis=0) if rule == "cautious" else weights.sum(axis=0)
    proba = fusion.predict_proba(table)
    np.testing.assert_allclose(proba, softmax(together[0] - together[1], 1))
    for i in range(len(scales)):
        expected = belief_of_many(*together[:, i])
        belief, plausibility = np.array(expected.lower, float), np.array(expected.upper, float)
        lower = np.minimum(belief, proba[i])
        np.testing.assert_allclose(bounds.lower[i], lower, rtol=1e-9, atol=1e-300)
        np.testing.assert_allclose(bounds.upper[i], plausibility, rtol=1e-9, atol=1e-300)
    for i in range(3):  # beyond, 1 - kappa is nothing beside rounding
        with localcontext(DIGITS):
            left = normaliser(*weights.sum(axis=0)[:, i])
            for member in weights:
                left /= normaliser(*member[:, i])
        np.testing.assert_allclose(kappa[i], 1 - float(left), atol=1e-12)
    assert kappa[0] < 0.1 < kappa[1] < 0.9 < kappa[2]
    assert kappa[3] == 1
    with pytest.raises(ValueError, match="24 classes"):
        fusion.predict_mass(table)


def test_no_list_of_subsets_for_many_classes():
    weights = draw_weights(3, 2, 25, n=60)
    for rule in ("dempster", "cautious"):
        with pytest.raises(ValueError, match=r"at most 20; there are 25.*rule=\"contour\""):
            fuse_given(weights, rule=rule, discount=0.1)
    assert fuse_given(weights, discount=0.1)[0].classes_.tolist() == list(range(25))


def test_a_member_may_have_its_classes_in_another_order():
    turned = Given([2, 0, 1]).fit(None, None)
    weights = draw_weights(4, 1, 3)
    table = np.hstack(weights[0])
    for rule in RULES:
        fusion = fused([("a", FrozenEstimator(turned))], rule=rule)
        bounds = fusion.fit(table, np.arange(40) % 3).predict_bounds(table)
        own = turned.predict_bounds(table)
        np.testing.assert_allclose(bounds.upper[:, [2, 0, 1]], own.upper, atol=1e-9)
        fraction = own.upper / own.upper.sum(axis=1, keepdims=True)
        lower = np.minimum(own.lower, fraction)
        np.testing.assert_allclose(bounds.lower[:, [2, 0, 1]], lower, atol=1e-9)


def test_members_that_take_no_weights_are_named():
    class Blunt(Given):
        def fit(self, X, y):
            self.n_rows_ = len(X)
            return super().fit(X, y)

    table = np.hstack(draw_weights(5, 1, 2)[0])
    with pytest.warns(UserWarning, match=r"Blunt\.fit takes no sample_weight") as caught:
        fusion = fused([("a", Blunt())]).fit(table, np.arange(40) % 2, np.arange(40) % 4)
    assert [warning.filename for warning in caught] == [__file__]
    assert fusion.members_[0].n_rows_ == 30


def test_total_conflict_names_rows_of_the_whole(monkeypatch):
    frozen = FrozenEstimator(Sure().fit(None, None))
    table = np.zeros((10, 2), dtype=int)
    fusion = fused([("a", frozen, [0]), ("b", frozen, [1])], rule="dempster")
    fusion.fit(table, np.arange(10) % 2)
    table[[4, 9], 1] = 1
    assert fusion.conflict(table).tolist() == [0.0] * 4 + [1.0] + [0.0] * 4 + [1.0]
    with pytest.raises(TotalConflictError, match="rows 4 and 9"):
        fusion.predict_proba(table)
    monkeypatch.setattr(_fusion_masses, "_CHUNK_ENTRIES", 3 * 2**2)
    with pytest.raises(TotalConflictError, match="row 4 "):
        fusion.predict_proba(table)
