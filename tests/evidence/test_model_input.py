"""EvidenceModel: sizes, shapes, kinds of arrays, and what it refuses."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.special import softmax

from dubito.evidence import EvidenceModel

ALL_CLASSES = pytest.mark.parametrize("n_classes", [2, 3, 5])


def draw(n_classes, n_features=4, n=60):
    rng = np.random.default_rng(0)
    rows = n_classes if n_classes > 2 else 1
    phi = rng.normal(loc=2.0, size=(n, n_features))
    return rng.normal(size=(rows, n_features)), rng.normal(size=rows), phi


def plausible(model, phi):
    """Normalised plausibilities."""
    upper = model.bounds(phi).upper
    return upper / upper.sum(axis=1, keepdims=True)


@ALL_CLASSES
def test_one_feature_carries_all_the_evidence(n_classes):
    coef, intercept, phi = draw(n_classes, n_features=1)
    model = EvidenceModel(coef, intercept, phi.mean(axis=0))
    assert model.weights(phi).shape == (60, 1, n_classes)
    np.testing.assert_allclose(model.piece_mass(phi, 0).to_array(), model.mass(phi).to_array())
    if n_classes == 2:  # one feature is evidence for one class only
        np.testing.assert_array_equal(model.conflict(phi), 0)


@ALL_CLASSES
@pytest.mark.parametrize("groups", [None, [0, 1, 1, 0]])
def test_many_rows_are_as_row_by_row(n_classes, groups):
    coef, intercept, _ = draw(n_classes)
    phi = np.random.default_rng(0).normal(size=(70_001, 4))
    model = EvidenceModel(coef, intercept, phi.mean(axis=0), groups=groups)
    for name in ("weights", "totals", "proba", "conflict", "ignorance"):
        together = getattr(model, name)(phi)
        for i in (0, 40_000, 70_000):
            one = getattr(model, name)(phi[i : i + 1])
            np.testing.assert_allclose(
                np.array(one)[..., 0, :] if name == "totals" else one[0],
                np.array(together)[:, i] if name == "totals" else together[i],
                rtol=1e-12,
                atol=1e-15,
            )
    bounds, mass = model.bounds(phi), model.mass(phi)
    assert len(bounds) == len(mass) == 70_001
    last = model.bounds(phi[-1:])
    np.testing.assert_allclose(bounds.lower[-1:], last.lower, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(mass.mass[-1:], model.mass(phi[-1:]).mass, rtol=1e-12, atol=1e-15)


def test_a_thousand_classes():
    coef, intercept, phi = draw(1_000, n_features=30, n=20)
    model = EvidenceModel(coef, intercept, phi.mean(axis=0))
    proba = softmax(phi @ coef.T + intercept, axis=1)
    np.testing.assert_allclose(model.proba(phi), proba, rtol=1e-11)
    np.testing.assert_allclose(plausible(model, phi), proba, rtol=1e-11)
    with pytest.raises(ValueError, match="20 classes"):
        model.mass(phi)


@ALL_CLASSES
def test_lists_and_data_frames_will_do(n_classes):
    coef, intercept, phi = draw(n_classes)
    coef, intercept, phi = (np.round(x * 8) / 8 for x in (coef, intercept, phi))
    mean = np.round(phi.mean(axis=0) * 8) / 8
    model = EvidenceModel(coef, intercept, mean)
    other = EvidenceModel(coef.tolist(), intercept.tolist(), mean.tolist())
    frame = pd.DataFrame(phi, columns=list("abcd"))
    for given in (phi.tolist(), frame, phi.astype(np.float32), np.asfortranarray(phi)):
        np.testing.assert_allclose(other.weights(given), model.weights(phi), atol=1e-13)
        np.testing.assert_allclose(other.bounds(given).lower, model.bounds(phi).lower, atol=1e-13)


@ALL_CLASSES
@pytest.mark.parametrize("groups", [None, [0, 1, 1, 0]])
@pytest.mark.parametrize("kind", ["csr_array", "csc_matrix", "coo_array"])
def test_sparse_and_dense_features_agree(n_classes, groups, kind):
    coef, intercept, phi = draw(n_classes)
    phi[np.random.default_rng(1).uniform(size=phi.shape) < 0.7] = 0.0
    phi[7] = 0.0
    model = EvidenceModel(coef, intercept, phi.mean(axis=0), groups=groups)
    few = getattr(sparse, kind)(phi)
    for name in ("weights", "totals", "proba", "conflict", "ignorance"):
        np.testing.assert_allclose(getattr(model, name)(few), getattr(model, name)(phi), atol=1e-13)
    np.testing.assert_allclose(model.bounds(few).lower, model.bounds(phi).lower, atol=1e-13)
    np.testing.assert_allclose(model.mass(few).mass, model.mass(phi).mass, atol=1e-13)
    np.testing.assert_allclose(
        model.piece_mass(few, 1).mass, model.piece_mass(phi, 1).mass, atol=1e-13
    )


def test_sparse_entries_may_be_split_and_in_any_order():
    # Legal in compressed rows: equal indices add up.
    coef, intercept, _ = draw(3)
    split = sparse.csr_array(
        (np.array([1.0, 5.0, -3.0, 2.0]), np.array([2, 0, 2, 1]), np.array([0, 3, 4])), (2, 4)
    )
    model = EvidenceModel(coef, intercept, np.ones(4))
    kept = split.data.copy()
    np.testing.assert_allclose(model.totals(split), model.totals(split.toarray()), atol=1e-14)
    np.testing.assert_allclose(model.weights(split), model.weights(split.toarray()), atol=1e-14)
    np.testing.assert_array_equal(split.data, kept)


def test_sparse_features_that_are_no_numbers_are_refused():
    few = sparse.csr_array([[0.0, 1.0], [2.0, 3.0], [np.nan, 0.0]])
    with pytest.raises(ValueError, match=r"phi has nan.* in row 2\."):
        EvidenceModel(**GOOD).totals(few)
    with pytest.raises(ValueError, match=r"2.*3"):
        EvidenceModel(**GOOD).totals(sparse.csr_array((4, 3)))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_model_keeps_its_own_copy(n_classes):
    # Training on, as partial_fit does, changes coefficients in place.
    coef, intercept, phi = draw(n_classes)
    mean = phi.mean(axis=0)
    model = EvidenceModel(coef, intercept, mean)
    before = model.weights(phi)
    coef += 1.0
    intercept += 1.0
    mean += 1.0
    np.testing.assert_array_equal(model.weights(phi), before)
    np.testing.assert_allclose(model.proba(phi), plausible(model, phi), rtol=1e-12)


def test_a_vector_of_coefficients_is_one_output():
    coef, intercept, phi = draw(2)
    vector = EvidenceModel(coef[0], float(intercept[0]), phi.mean(axis=0))
    matrix = EvidenceModel(coef, intercept, phi.mean(axis=0))
    np.testing.assert_array_equal(vector.weights(phi), matrix.weights(phi))


def test_sparse_rows_in_groups_are_made_dense_block_by_block(monkeypatch):
    coef, intercept, phi = draw(3)
    model = EvidenceModel(coef, intercept, phi.mean(axis=0), groups=[0, 1, 1, 0])
    monkeypatch.setattr("dubito.evidence.model._CHUNK_ENTRIES", 4 * 7)  # seven rows at a time
    for ours, dense in zip(model.totals(sparse.csr_matrix(phi)), model.totals(phi), strict=True):
        np.testing.assert_array_equal(ours, dense)
    assert model.totals(sparse.csr_matrix(phi[:0]))[0].shape == (0, 3)


GOOD = {"coef": np.ones((3, 2)), "intercept": np.zeros(3), "mean": np.zeros(2)}
BAD = {
    "coef is a vector": ({"coef": np.ones(2)}, "one number for each of the 1 row of coef; got 3"),
    "coef is a stack": ({"coef": np.ones((1, 3, 2))}, r"coef must be .*2-dimensional.*\(1, 3, 2\)"),
    "coef has nan": ({"coef": np.full((3, 2), np.nan)}, "coef has nan"),
    "intercepts": ({"intercept": np.zeros(2)}, r"intercept.*2.*3|intercept.*3.*2"),
    "intercept is a matrix": ({"intercept": np.zeros((3, 1))}, r"intercept.*\(3, 1\)"),
    "means": ({"mean": np.zeros(3)}, r"mean.*3.*2|mean.*2.*3"),
    "mean is infinite": ({"mean": np.array([0, np.inf])}, "mean has infinite values"),
    "classes": ({"classes": ["a", "b"]}, r"classes.*2.*3|classes.*3.*2|2 classes"),
    "equal classes": ({"classes": ["a", "b", "a"]}, "'a'|differ|twice|once"),
    "groups": ({"groups": [0, 1, 1]}, r"groups.*3.*2|groups.*2.*3"),
    "no features": ({"coef": np.ones((3, 0)), "mean": np.zeros(0)}, r"coef.*\(3, 0\)"),
    "no classes": ({"coef": np.ones((0, 2)), "intercept": np.zeros(0)}, r"coef.*\(0, 2\)"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_models_are_refused(case):
    change, message = BAD[case]
    with pytest.raises(ValueError, match=message):
        EvidenceModel(**{**GOOD, **change})


@pytest.mark.parametrize(
    "method", ["weights", "totals", "bounds", "mass", "proba", "conflict", "ignorance"]
)
def test_bad_features_are_refused(method):
    call = getattr(EvidenceModel(**GOOD), method)
    with pytest.raises(ValueError, match=r"3.*2|2.*3"):
        call(np.ones((4, 3)))
    with pytest.raises(ValueError, match=r"2-dimensional.*\(2,\)"):
        call(np.ones(2))
    with pytest.raises(ValueError, match="nan in row 1"):
        call([[1.0, 2.0], [np.nan, 1.0]])
    with pytest.raises(TypeError, match="numbers"):
        call([["a", "b"]])


@pytest.mark.parametrize("piece", [2, -3, 7])
def test_a_piece_that_is_not_there_is_refused(piece):
    with pytest.raises((IndexError, ValueError), match=rf"from 0 to 1; got {piece}"):
        EvidenceModel(**GOOD).piece_mass(np.ones((4, 2)), piece)


def test_no_rows_give_no_rows():
    model = EvidenceModel(**GOOD)
    nothing = np.zeros((0, 2))
    assert model.weights(nothing).shape == (0, 2, 3)
    assert len(model.bounds(nothing)) == len(model.mass(nothing)) == 0
    assert model.proba(nothing).shape == (0, 3)
