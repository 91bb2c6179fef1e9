"""EvidenceModel: its weights (Denœux 2019, section 4) and what follows from them."""

import numpy as np
import pytest
from scipy.special import expit, softmax

from dubito.belief import dempster, plausibility_transform
from dubito.evidence import (
    EvidenceModel,
    bounds_from_weights,
    conflict_from_weights,
    ignorance_from_weights,
    mass_from_weights,
)

from reference import evidence


def draw(n_classes, n_features=4, n=60, seed=0):
    """Features far from centred, and the coefficients of some model of them."""
    rng = np.random.default_rng(seed)
    phi = rng.normal(size=(n, n_features)) * rng.uniform(0.5, 3, n_features)
    phi += rng.normal(scale=2, size=n_features)
    rows = n_classes if n_classes > 2 else 1
    return rng.normal(size=(rows, n_features)), rng.normal(size=rows), phi


def model_of(n_classes, **kwargs):
    coef, intercept, phi = draw(n_classes, **kwargs)
    return EvidenceModel(coef, intercept, phi.mean(axis=0)), phi


def assert_same_belief(one, phi_one, other, phi_other, rtol=1e-11):
    for name in ("proba", "conflict", "ignorance"):
        ours, theirs = getattr(one, name)(phi_one), getattr(other, name)(phi_other)
        np.testing.assert_allclose(ours, theirs, rtol=rtol)
    for name in ("lower", "upper"):
        ours, theirs = (getattr(m.bounds(p), name) for m, p in [(one, phi_one), (other, phi_other)])
        np.testing.assert_allclose(ours, theirs, rtol=rtol)
    np.testing.assert_allclose(one.mass(phi_one).mass, other.mass(phi_other).mass, rtol=rtol)


ALL_CLASSES = pytest.mark.parametrize("n_classes", [2, 3, 5])


# Weights of evidence


@pytest.mark.parametrize("n_features", [1, 2, 5])
@pytest.mark.parametrize("n_classes", [3, 4])
def test_weights_are_the_least_committed(n_classes, n_features):
    coef, intercept, phi = draw(n_classes, n_features=n_features)
    model = EvidenceModel(coef, intercept, phi.mean(axis=0))
    slope, offset = evidence.least_committed(coef, intercept, phi)
    np.testing.assert_allclose(model.slope, slope, atol=1e-9)
    np.testing.assert_allclose(model.offset, offset, atol=1e-9)
    np.testing.assert_allclose(model.weights(phi), phi[:, :, None] * slope + offset, atol=1e-8)


@pytest.mark.parametrize("n_classes", [3, 4])
def test_no_other_weights_are_smaller(n_classes):
    coef, intercept, phi = draw(n_classes)
    model = EvidenceModel(coef, intercept, phi.mean(axis=0))
    least = (model.weights(phi) ** 2).sum()
    np.testing.assert_allclose(model.offset.sum(axis=0), intercept - intercept.mean())  # (37)
    rng = np.random.default_rng(1)
    for size in np.geomspace(1e-4, 1, 20):
        c0, c = size * rng.normal(), size * rng.normal(size=(4, 1))
        move = size * rng.normal(size=(4, n_classes))
        alpha = model.offset + move - move.mean(axis=0) + c0 / 4
        other = phi[:, :, None] * (model.slope + c) + alpha
        logits = phi @ coef.T + intercept
        np.testing.assert_allclose(softmax(other.sum(axis=1), axis=1), softmax(logits, axis=1))
        assert (other**2).sum() > least


def test_two_classes_follow_section_4_1():
    coef, intercept, phi = draw(2)
    mean = phi.mean(axis=0)
    model = EvidenceModel(coef, intercept, mean)
    alpha = intercept / 4 + (coef[0] @ mean) / 4 - coef[0] * mean
    w = coef[0] * phi + alpha
    np.testing.assert_allclose(model.slope, coef.T, rtol=1e-13)
    np.testing.assert_allclose(model.offset, alpha[:, None], rtol=1e-12)
    weights = model.weights(phi)
    assert weights.shape == (60, 4, 2)
    np.testing.assert_allclose(weights[:, :, 1], np.maximum(w, 0), atol=1e-12)
    np.testing.assert_allclose(weights[:, :, 0], np.maximum(-w, 0), atol=1e-12)
    w_plus, w_minus = model.totals(phi)
    np.testing.assert_allclose(w_plus[:, 1], np.maximum(w, 0).sum(axis=1), rtol=1e-12)
    np.testing.assert_allclose(w_plus[:, 0], np.maximum(-w, 0).sum(axis=1), rtol=1e-12)
    np.testing.assert_array_equal(w_minus, 0)
    np.testing.assert_allclose(model.proba(phi)[:, 1], expit(phi @ coef[0] + intercept[0]))
    # (32)-(33): no other offsets that sum to the intercept leave smaller weights.
    rng = np.random.default_rng(0)
    for size in np.geomspace(1e-4, 1, 20):
        move = size * rng.normal(size=4)
        assert ((w + move - move.mean()) ** 2).sum() > (w**2).sum()


def test_two_classes_in_the_form_of_many_agree():
    coef, intercept, phi = draw(2)
    mean = phi.mean(axis=0)
    binary = EvidenceModel(coef, intercept, mean)
    split = EvidenceModel(np.vstack([-coef / 2, coef / 2]), np.r_[-intercept, intercept] / 2, mean)
    lopsided = EvidenceModel(np.vstack([0 * coef, coef]), np.r_[0 * intercept, intercept], mean)
    for other in (split, lopsided):
        assert_same_belief(binary, phi, other, phi)
        np.testing.assert_allclose(other.cutoffs, np.repeat(binary.cutoffs, 2, axis=1))
        # Half the evidence for one class, half against the other.
        for_class = np.stack(np.array(other.totals(phi))[[0, 1], :, [1, 0]]).sum(axis=0)
        np.testing.assert_allclose(for_class, binary.totals(phi)[0][:, 1], rtol=1e-11)


@ALL_CLASSES
def test_attributes(n_classes):
    coef, intercept, phi = draw(n_classes)
    names = [f"class {k}" for k in range(n_classes)]
    model = EvidenceModel(coef, intercept, phi.mean(axis=0), classes=names)
    columns = 1 if n_classes == 2 else n_classes
    assert (model.n_classes, model.n_pieces) == (n_classes, 4)
    assert list(model.classes) == names
    assert model.slope.shape == model.offset.shape == model.cutoffs.shape == (4, columns)
    np.testing.assert_array_equal(model.coef, coef)
    np.testing.assert_array_equal(model.intercept, intercept)
    np.testing.assert_array_equal(model.mean, phi.mean(axis=0))
    assert list(model.mass(phi).frame) == names
    assert list(model.piece_mass(phi, 0).frame) == names


@ALL_CLASSES
def test_a_feature_at_its_cutoff_has_weight_zero(n_classes):
    model, phi = model_of(n_classes)
    for j in range(4):
        for column, cutoff in enumerate(model.cutoffs[j]):
            at = np.tile(phi[:1], (3, 1))
            at[:, j] = cutoff + np.arange(-1, 2)
            w = model.weights(at)[:, j]
            w = w[:, 1] - w[:, 0] if n_classes == 2 else w[:, column]
            assert w[1] == pytest.approx(0, abs=1e-12)
            np.testing.assert_allclose(np.diff(w), model.slope[j, column], rtol=1e-9)


def test_a_feature_that_does_not_count_has_no_cutoff():
    binary = EvidenceModel([[1.0, 0.0]], [0.3], [2.0, 5.0])
    assert np.isnan(binary.cutoffs[:, 0]).tolist() == [False, True]
    # A feature with equal coefficients for all classes has no effect.
    three = EvidenceModel([[1.0, 0.1], [2.0, 0.1], [3.0, 0.1]], [0.0, 0.0, 0.3], [2.0, 5.0])
    assert np.isnan(three.cutoffs[1]).all()
    assert np.isfinite(three.cutoffs[0]).tolist() == [True, False, True]


# Masses, bounds and probabilities


@ALL_CLASSES
def test_weights_add_up_to_the_logits(n_classes):
    coef, intercept, phi = draw(n_classes)
    model = EvidenceModel(coef, intercept, phi.mean(axis=0))
    logits = phi @ coef.T + intercept
    if n_classes == 2:
        w = model.weights(phi).sum(axis=1)
        np.testing.assert_allclose(w[:, 1] - w[:, 0], logits[:, 0], atol=1e-12)
    else:
        excess = model.weights(phi).sum(axis=1) - logits
        np.testing.assert_allclose(excess - excess[:, :1], 0, atol=1e-11)
        np.testing.assert_allclose(model.weights(phi).sum(axis=2), 0, atol=1e-12)


@ALL_CLASSES
def test_probabilities_are_the_models_and_the_plausibility_transform(n_classes):
    coef, intercept, phi = draw(n_classes)
    model = EvidenceModel(coef, intercept, phi.mean(axis=0))
    logits = phi @ coef.T + intercept
    logits = np.hstack([0 * logits, logits]) if n_classes == 2 else logits
    proba, upper = softmax(logits, axis=1), model.bounds(phi).upper
    np.testing.assert_allclose(model.proba(phi), proba, rtol=1e-12)
    np.testing.assert_allclose(upper / upper.sum(axis=1, keepdims=True), proba, rtol=1e-12)
    np.testing.assert_allclose(plausibility_transform(model.mass(phi)), proba, atol=1e-12)


@ALL_CLASSES
def test_totals_are_parts_of_the_weights_and_feed_the_rest(n_classes):
    model, phi = model_of(n_classes)
    weights, (w_plus, w_minus) = model.weights(phi), model.totals(phi)
    assert w_plus.shape == w_minus.shape == (60, n_classes)
    assert (w_plus >= 0).all()
    assert (w_minus >= 0).all()
    np.testing.assert_allclose(w_plus, np.maximum(weights, 0).sum(axis=1), rtol=1e-12)
    np.testing.assert_allclose(w_minus, np.maximum(-weights, 0).sum(axis=1), atol=1e-12)
    bounds = bounds_from_weights(w_plus, w_minus)
    np.testing.assert_array_equal(model.bounds(phi).lower, bounds.lower)
    np.testing.assert_array_equal(model.bounds(phi).upper, bounds.upper)
    np.testing.assert_array_equal(model.mass(phi).mass, mass_from_weights(w_plus, w_minus).mass)
    np.testing.assert_array_equal(model.conflict(phi), conflict_from_weights(w_plus, w_minus))
    np.testing.assert_array_equal(model.ignorance(phi), ignorance_from_weights(w_plus, w_minus))


@ALL_CLASSES
@pytest.mark.parametrize("groups", [None, [0, 0, 1, 1]])
def test_the_mass_is_dempsters_sum_of_the_pieces(n_classes, groups):
    coef, intercept, phi = draw(n_classes)
    model = EvidenceModel(coef / 3, intercept, phi.mean(axis=0), groups=groups)
    pieces = [model.piece_mass(phi, piece) for piece in range(model.n_pieces)]
    assert len(pieces) == (4 if groups is None else 2)
    together = dempster(*pieces)
    np.testing.assert_allclose(together.to_array(), model.mass(phi).to_array(), atol=1e-12)
    for piece, mass in enumerate(pieces):
        w = model.weights(phi)[:, piece]
        alone = mass_from_weights(np.maximum(w, 0), np.maximum(-w, 0))
        np.testing.assert_allclose(mass.to_array(), alone.to_array(), atol=1e-14)


# Invariances


def test_a_constant_over_the_classes_changes_nothing():
    coef, intercept, phi = draw(4)
    mean = phi.mean(axis=0)
    shift = np.array([3.0, -2.0, 0.5, 10.0])
    one = EvidenceModel(coef, intercept, mean)
    other = EvidenceModel(coef + shift, intercept - 7.0, mean)
    np.testing.assert_allclose(other.weights(phi), one.weights(phi), atol=1e-12)
    np.testing.assert_allclose(other.slope, one.slope, atol=1e-13)
    assert_same_belief(one, phi, other, phi, rtol=1e-10)


@ALL_CLASSES
def test_the_features_origin_and_unit_do_not_matter(n_classes):
    coef, intercept, phi = draw(n_classes)
    mean = phi.mean(axis=0)
    origin, unit = np.array([100.0, -5.0, 0.0, 33.0]), np.array([2.0, -0.5, 1.0, 10.0])
    one = EvidenceModel(coef, intercept, mean)
    moved = unit * phi + origin
    other = EvidenceModel(coef / unit, intercept - (coef / unit) @ origin, moved.mean(axis=0))
    np.testing.assert_allclose(other.weights(moved), one.weights(phi), atol=1e-11)
    cutoffs = one.cutoffs * unit[:, None] + origin[:, None]
    np.testing.assert_allclose(other.cutoffs, cutoffs, rtol=1e-9)
    assert_same_belief(one, phi, other, moved, rtol=1e-9)


@ALL_CLASSES
def test_permuting_the_features_permutes_the_weights(n_classes):
    coef, intercept, phi = draw(n_classes)
    mean, order = phi.mean(axis=0), np.array([2, 0, 3, 1])
    one = EvidenceModel(coef, intercept, mean)
    other = EvidenceModel(coef[:, order], intercept, mean[order])
    moved = phi[:, order]
    np.testing.assert_allclose(other.weights(moved), one.weights(phi)[:, order], atol=1e-12)
    np.testing.assert_allclose(other.cutoffs, one.cutoffs[order], rtol=1e-11)
    assert_same_belief(one, phi, other, moved)


def test_permuting_the_classes_permutes_everything():
    coef, intercept, phi = draw(4)
    mean, order = phi.mean(axis=0), np.array([2, 0, 3, 1])
    one = EvidenceModel(coef, intercept, mean, classes=list("abcd"))
    other = EvidenceModel(coef[order], intercept[order], mean, classes=list("cadb"))
    np.testing.assert_allclose(other.weights(phi), one.weights(phi)[:, :, order], atol=1e-12)
    for name in ("lower", "upper"):
        ours, theirs = getattr(one.bounds(phi), name), getattr(other.bounds(phi), name)
        np.testing.assert_allclose(theirs, ours[:, order], rtol=1e-11)
    np.testing.assert_allclose(other.conflict(phi), one.conflict(phi), rtol=1e-11)
    np.testing.assert_allclose(other.mass(phi).bel(["a", "c"]), one.mass(phi).bel(["a", "c"]))


def test_swapping_two_classes_swaps_their_evidence():
    coef, intercept, phi = draw(2)
    mean = phi.mean(axis=0)
    one, other = EvidenceModel(coef, intercept, mean), EvidenceModel(-coef, -intercept, mean)
    np.testing.assert_allclose(other.weights(phi), one.weights(phi)[:, :, ::-1], atol=1e-12)
    np.testing.assert_allclose(other.bounds(phi).lower, one.bounds(phi).lower[:, ::-1], atol=1e-14)
    np.testing.assert_allclose(other.conflict(phi), one.conflict(phi), rtol=1e-11)


# Groups


@pytest.mark.parametrize("labels", [[0, 0, 1, 2, 2], ["age", "age", "job", "ldl", "ldl"]])
def test_a_group_of_two_classes_is_one_merged_feature(labels):
    coef, intercept, phi = draw(2, n_features=5)
    mean = phi.mean(axis=0)
    grouped = EvidenceModel(coef, intercept, mean, groups=labels)
    member = np.array([[1, 1, 0, 0, 0], [0, 0, 1, 0, 0], [0, 0, 0, 1, 1]])
    merged = EvidenceModel(np.ones((1, 3)), intercept, member @ (coef[0] * mean))
    phi_merged = (coef[0] * phi) @ member.T
    assert grouped.n_pieces == 3
    np.testing.assert_allclose(grouped.weights(phi), merged.weights(phi_merged), atol=1e-12)
    assert_same_belief(grouped, phi, merged, phi_merged)


def test_groups_of_many_classes_have_the_least_weights():
    coef, intercept, phi = draw(3, n_features=5)
    grouped = EvidenceModel(coef, intercept, phi.mean(axis=0), groups=[0, 0, 1, 2, 2])
    member = np.array([[1, 1, 0, 0, 0], [0, 0, 1, 0, 0], [0, 0, 0, 1, 1]])
    part = np.einsum("gj,kj,nj->ngk", member, coef - coef.mean(axis=0), phi)
    centred = part - part.mean(axis=0)
    level = (intercept - intercept.mean() + part.mean(axis=0).sum(axis=0)) / 3
    np.testing.assert_allclose(grouped.weights(phi), centred + level, atol=1e-12)
    np.testing.assert_allclose(
        grouped.proba(phi), softmax(phi @ coef.T + intercept, axis=1), rtol=1e-12
    )


@pytest.mark.parametrize("name", ["offset", "cutoffs"])
def test_features_in_groups_have_no_cutoffs_of_their_own(name):
    coef, intercept, phi = draw(3)
    grouped = EvidenceModel(coef, intercept, phi.mean(axis=0), groups=[0, 0, 1, 2])
    with pytest.raises(AttributeError, match=f"{name}.*groups"):
        getattr(grouped, name)


def test_groups_need_not_stand_together():
    coef, intercept, phi = draw(3, n_features=5)
    mean, order = phi.mean(axis=0), np.array([3, 0, 2, 4, 1])
    together = EvidenceModel(coef, intercept, mean, groups=[0, 0, 1, 2, 2])
    labels = np.array([0, 0, 1, 2, 2])[order]
    apart = EvidenceModel(coef[:, order], intercept, mean[order], groups=labels)
    assert_same_belief(together, phi, apart, phi[:, order])
    np.testing.assert_allclose(
        np.sort(apart.weights(phi[:, order]), axis=1),
        np.sort(together.weights(phi), axis=1),
        atol=1e-12,
    )


@ALL_CLASSES
def test_groups_of_one_are_features_and_one_group_is_all(n_classes):
    coef, intercept, phi = draw(n_classes)
    mean = phi.mean(axis=0)
    plain = EvidenceModel(coef, intercept, mean)
    single = EvidenceModel(coef, intercept, mean, groups=range(4))
    np.testing.assert_allclose(single.weights(phi), plain.weights(phi), atol=1e-12)
    assert_same_belief(plain, phi, single, phi)
    whole = EvidenceModel(coef, intercept, mean, groups=[7, 7, 7, 7])
    assert whole.n_pieces == 1
    logits = phi @ coef.T + intercept
    w = whole.weights(phi)[:, 0]
    w = w[:, 1] - w[:, 0] if n_classes == 2 else w
    logits = logits[:, 0] if n_classes == 2 else logits - logits.mean(axis=1, keepdims=True)
    np.testing.assert_allclose(w, logits, atol=1e-11)
