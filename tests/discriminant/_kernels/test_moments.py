"""Means, covariances and roots of precisions: against outside references and by identity."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.covariance import EmpiricalCovariance, ledoit_wolf
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis

from dubito.discriminant._kernels.moments import CovarianceSettings, class_moments

TYPES = ["tied", "full", "diag", "spherical"]
SHRINKAGES = [None, 0.3, 1.0, "auto"]
DRAWN = {"seed": st.integers(0, 10**6), "shrinkage": st.sampled_from(SHRINKAGES)}
SHAPES = st.sampled_from([(30, 4), (15, 20)])


def moments(X, codes, weight=None, **options):
    X, codes = np.asarray(X, dtype=float), np.asarray(codes)
    weight = np.ones(len(X)) if weight is None else np.asarray(weight, dtype=float)
    options = {"covariance_type": "tied", "shrinkage": None, "tol": 1e-4} | options
    return class_moments(X, codes, int(codes.max()) + 1, weight, CovarianceSettings(**options))


def sample(seed=0, n=60, p=4, k=3):
    """Correlated rows of k classes that differ in mean, shape and number."""
    rng = np.random.default_rng(seed)
    codes = rng.permutation(np.arange(n) % k)
    codes[: n // 5] = 0
    mix = rng.normal(size=(k, p, p)) + 2 * np.eye(p)
    X = np.einsum("ij,ijk->ik", rng.normal(size=(n, p)), mix[codes]) + 3 * codes[:, None]
    return X, codes


def precision(m):
    """Return the precisions (S, p, p), whatever the type."""
    if m.axes.ndim == 3:
        return m.axes @ m.axes.transpose(0, 2, 1)
    return np.stack([np.diag(a**2) for a in m.axes])


def as_matrices(m):
    """Return the covariances (S, p, p), whatever the type."""
    if m.axes.ndim == 3:
        return m.covariance.reshape(m.axes.shape)
    return np.stack([variance * np.eye(m.means.shape[1]) for variance in m.covariance])


def assert_same(a, b, *, rtol=1e-8):
    """Compare all but the axes as they are, and the axes by the precisions they make."""
    for name in ("counts", "means", "spread", "covariance", "log_det"):
        value, other = getattr(a, name), getattr(b, name)
        scale = np.abs(other).max(initial=1e-300)
        np.testing.assert_allclose(value, other, rtol=rtol, atol=rtol * scale, err_msg=name)
    np.testing.assert_array_equal(a.rank, b.rank)
    np.testing.assert_array_equal(a.has_pooled, b.has_pooled)
    p, q = precision(a), precision(b)
    np.testing.assert_allclose(p, q, rtol=1e-6, atol=1e-6 * np.abs(q).max(initial=1e-300))


def divisor_of(discriminant):
    """Return the option for scatters divided as this scikit-learn does.

    By n - 1 and N - K in older versions, by n and N in newer ones (its pull request 33626).
    """
    model = discriminant().fit([[-1.0], [1.0], [9.0], [11.0]], [0, 0, 1, 1])
    # Scatters are 2 and 2, means 10 apart: log odds of 50 if divided by n and N, of 25 if not.
    odds = np.diff(model.predict_log_proba([[0.0]])).item()
    return {"unbiased": abs(odds) < 37.5}


def posteriors(log_joint):
    return np.exp(log_joint - np.logaddexp.reduce(log_joint, axis=1, keepdims=True))


def test_tied_is_the_covariance_of_linear_discriminant_analysis():
    X, codes = sample()
    lda = LinearDiscriminantAnalysis(store_covariance=True).fit(X, codes)
    m = moments(X, codes)
    np.testing.assert_allclose(m.means, lda.means_, rtol=1e-12)
    within = sum((np.sum(codes == k) - 1) * np.cov(X[codes == k].T) for k in range(3))
    np.testing.assert_allclose(m.covariance, within / (len(X) - 3), rtol=1e-11)
    biased = moments(X, codes, unbiased=False)
    np.testing.assert_allclose(biased.covariance, lda.covariance_, rtol=1e-11)
    m = moments(X, codes, **divisor_of(LinearDiscriminantAnalysis))
    distance = (((X[:, None] - m.means) @ m.axes[0]) ** 2).sum(axis=2)
    ours = posteriors(np.log(m.counts / len(X)) - 0.5 * distance)
    np.testing.assert_allclose(ours, lda.predict_proba(X), atol=1e-10)


def test_full_is_the_covariance_of_quadratic_discriminant_analysis():
    X, codes = sample(1)
    qda = QuadraticDiscriminantAnalysis(store_covariance=True).fit(X, codes)
    m = moments(X, codes, covariance_type="full", **divisor_of(QuadraticDiscriminantAnalysis))
    np.testing.assert_allclose(m.covariance, np.stack(qda.covariance_), rtol=1e-11)
    distance = (((X[:, None] - m.means)[:, :, None] @ m.axes) ** 2).sum(axis=(2, 3))
    ours = posteriors(np.log(m.counts / len(X)) - 0.5 * (m.log_det + distance))
    np.testing.assert_allclose(ours, qda.predict_proba(X), atol=1e-10)


@pytest.mark.parametrize("shape", [(60, 4), (20, 35)])
def test_covariances_of_each_type(shape):
    X, codes = sample(2, *shape)
    for unbiased in (False, True):
        options = {"unbiased": unbiased}
        m = {kind: moments(X, codes, covariance_type=kind, **options) for kind in TYPES}
        for k in range(3):
            n = np.sum(codes == k)
            own = EmpiricalCovariance().fit(X[codes == k]).covariance_ * n / (n - unbiased)
            np.testing.assert_allclose(m["full"].covariance[k], own, rtol=1e-10, atol=1e-12)
            np.testing.assert_allclose(m["diag"].covariance[k], own.diagonal(), rtol=1e-11)
            variance = own.trace() / shape[1]
            np.testing.assert_allclose(m["spherical"].covariance[k], variance, rtol=1e-11)


@pytest.mark.parametrize("shape", [(60, 4), (20, 35)])
def test_auto_is_ledoit_and_wolf(shape):
    X, codes = sample(4, *shape)
    tied = moments(X, codes, shrinkage="auto")
    rows = (X - tied.means[codes]) / tied.spread
    target, fraction = ledoit_wolf(rows, assume_centered=True)
    assert 0 < fraction < 1
    shrunken = tied.covariance / np.outer(tied.spread, tied.spread)
    np.testing.assert_allclose(shrunken, target * len(X) / (len(X) - 3), rtol=1e-9, atol=1e-12)

    full = moments(X, codes, covariance_type="full", shrinkage="auto")
    for k in range(3):
        n = np.sum(codes == k)
        target, _ = ledoit_wolf(rows[codes == k], assume_centered=True)
        shrunken = full.covariance[k] / np.outer(full.spread, full.spread)
        np.testing.assert_allclose(shrunken, target * n / (n - 1), rtol=1e-9, atol=1e-12)


def test_auto_for_diag_is_ledoit_and_wolf_on_diagonals():
    X, codes = sample(5)
    m = moments(X, codes, covariance_type="diag", shrinkage="auto")
    plain = moments(X, codes, covariance_type="diag").covariance / m.spread**2
    for k in range(3):
        z2 = ((X[codes == k] - m.means[k]) / m.spread) ** 2
        n, p = z2.shape
        error = sum(np.var(z2[:, j]) / n for j in range(p))
        distance = sum((z2[:, j].mean() - z2.mean()) ** 2 for j in range(p))
        fraction = min(error / distance, 1.0)
        expected = (1 - fraction) * plain[k] + fraction * plain[k].mean()
        np.testing.assert_allclose(m.covariance[k] / m.spread**2, expected, rtol=1e-10)


@pytest.mark.parametrize("covariance_type", TYPES)
@pytest.mark.parametrize("shrinkage", SHRINKAGES)
@pytest.mark.parametrize("shape", [(60, 4), (20, 35)])
def test_axes_are_the_root_of_the_inverse(covariance_type, shrinkage, shape):
    X, codes = sample(6, *shape)
    m = moments(X, codes, covariance_type=covariance_type, shrinkage=shrinkage, tol=1e-6)
    assert m.axes.flags.c_contiguous
    p = X.shape[1]
    unit = np.diag(1 / m.spread)
    for matrix, inverse, axes, log_det, rank in zip(
        as_matrices(m), precision(m), m.axes, m.log_det, m.rank, strict=True
    ):
        kept = np.linalg.eigvalsh(unit @ matrix @ unit)[p - rank :]
        if rank == p:
            np.testing.assert_allclose(inverse @ matrix, np.eye(p), atol=1e-8)
            np.testing.assert_allclose(log_det, np.linalg.slogdet(matrix)[1], atol=1e-9)
        else:
            # The pseudo-inverse, with features in units of the spread.
            expected = unit @ np.linalg.pinv(unit @ matrix @ unit, hermitian=True) @ unit
            np.testing.assert_allclose(inverse, expected, atol=1e-7 * np.abs(expected).max())
            assert (axes[:, rank:] == 0).all()
        if covariance_type != "spherical":
            total = np.log(kept).sum() + 2 * np.log(m.spread).sum()
            np.testing.assert_allclose(log_det, total, atol=1e-8)


@pytest.mark.parametrize("covariance_type", ["tied", "full", "diag"])
def test_shrinkage_mixes_with_the_identity_in_units_of_the_spread(covariance_type):
    X, codes = sample(7)
    plain = moments(X, codes, covariance_type=covariance_type)
    mixed = moments(X, codes, covariance_type=covariance_type, shrinkage=0.3)
    unit = np.diag(1 / plain.spread)
    for matrix, other in zip(as_matrices(plain), as_matrices(mixed), strict=True):
        s = unit @ matrix @ unit
        expected = 0.7 * s + 0.3 * np.trace(s) / 4 * np.eye(4)
        np.testing.assert_allclose(unit @ other @ unit, expected, rtol=1e-10, atol=1e-12)


def test_spherical_does_not_shrink():
    X, codes = sample(8)
    plain = moments(X, codes, covariance_type="spherical")
    for shrinkage in SHRINKAGES:
        assert_same(moments(X, codes, covariance_type="spherical", shrinkage=shrinkage), plain)


def test_eigenvalues_are_cut_off_relative_to_the_largest():
    rng = np.random.default_rng(9)
    z = rng.normal(size=(4000, 3))
    X = np.column_stack([z[:, 0], z[:, 1], z[:, 0] + 1e-3 * z[:, 2]])
    codes = np.zeros(4000, dtype=int)
    smallest = np.linalg.eigvalsh(np.corrcoef(X.T))
    root = np.sqrt(smallest[0] / smallest[-1])
    for tol, rank in [(0.99 * root, 3), (1.01 * root, 2)]:
        for kind in ("tied", "full"):
            m = moments(X, codes, covariance_type=kind, tol=tol)
            assert m.rank.tolist() == [rank]
            assert np.linalg.matrix_rank(m.axes[0]) == rank
    assert moments(X, codes, covariance_type="diag", tol=0.5).rank.tolist() == [3]
    codes[:2000] = 1
    X[codes == 1, 1] *= 1e-3
    assert moments(X, codes, covariance_type="diag", tol=1e-2).rank.tolist() == [3, 2]
    assert moments(X, codes, covariance_type="diag", tol=1e-4).rank.tolist() == [3, 3]


@pytest.mark.parametrize("shape", [(60, 4), (20, 35)])
def test_rounding_is_cut_off_at_any_tolerance(shape):
    X, codes = sample(10, *shape)
    X = np.column_stack([X, X[:, 0] - X[:, 1]])
    for kind, rows in [("tied", len(X) - 3), ("full", np.bincount(codes) - 1)]:
        m = moments(X, codes, covariance_type=kind, tol=0.0)
        np.testing.assert_array_equal(m.rank, np.minimum(rows, shape[1]))


@given(
    **DRAWN,
    repeats=hnp.arrays(np.int64, 24, elements=st.integers(0, 4)),
    covariance_type=st.sampled_from(TYPES),
    p=st.sampled_from([3, 30]),
)
@settings(max_examples=80, deadline=None)
def test_weights_count_rows(seed, repeats, covariance_type, shrinkage, p):
    X, codes = sample(seed, 24, p)
    repeats[[np.flatnonzero(codes == k)[0] for k in range(3)]] += 1
    options = {"covariance_type": covariance_type, "shrinkage": shrinkage}
    weighted = moments(X, codes, repeats, **options)
    assert_same(weighted, moments(X.repeat(repeats, axis=0), codes.repeat(repeats), **options))
    np.testing.assert_array_equal(weighted.counts, np.bincount(codes, repeats))


@given(**DRAWN, covariance_type=st.sampled_from(TYPES), shape=SHAPES)
@settings(max_examples=60, deadline=None)
def test_order_does_not_matter(seed, covariance_type, shrinkage, shape):
    X, codes = sample(seed, *shape)
    rng = np.random.default_rng(seed)
    rows, features = rng.permutation(len(X)), rng.permutation(X.shape[1])
    names = rng.permutation(3)
    options = {"covariance_type": covariance_type, "shrinkage": shrinkage}
    m = moments(X, codes, **options)
    other = moments(X[rows][:, features], names[codes[rows]], **options)
    sets = slice(None) if covariance_type == "tied" else names
    np.testing.assert_allclose(other.means[names], m.means[:, features], rtol=1e-10)
    np.testing.assert_allclose(other.spread, m.spread[features], rtol=1e-10)
    np.testing.assert_allclose(other.log_det[sets], m.log_det, rtol=1e-8, atol=1e-8)
    np.testing.assert_array_equal(other.rank[sets], m.rank)
    for matrices, tolerance in [(precision, 1e-7), (as_matrices, 1e-10)]:
        expected = matrices(m)[:, features][:, :, features]
        atol = tolerance * np.abs(expected).max()
        np.testing.assert_allclose(matrices(other)[sets], expected, atol=atol)


@given(
    **DRAWN,
    covariance_type=st.sampled_from(["tied", "full", "diag"]),
    shape=SHAPES,
    powers=hnp.arrays(np.float64, 20, elements=st.floats(-6, 6)),
)
@settings(max_examples=60, deadline=None)
def test_units_of_features_do_not_matter(seed, covariance_type, shrinkage, shape, powers):
    X, codes = sample(seed, *shape)
    unit = 10.0 ** powers[: X.shape[1]]
    options = {"covariance_type": covariance_type, "shrinkage": shrinkage}
    m, other = moments(X, codes, **options), moments(X * unit, codes, **options)
    np.testing.assert_array_equal(other.rank, m.rank)
    np.testing.assert_allclose(other.spread, unit * m.spread, rtol=1e-10)
    shift = 2 * np.log(unit).sum()
    np.testing.assert_allclose(other.log_det, m.log_det + shift, rtol=1e-8, atol=1e-7)
    squares, others = np.outer(m.spread, m.spread), np.outer(other.spread, other.spread)
    expected = precision(m) * squares
    atol = 1e-7 * np.abs(expected).max()
    np.testing.assert_allclose(precision(other) * others, expected, atol=atol)
    np.testing.assert_allclose(as_matrices(other) / others, as_matrices(m) / squares, atol=1e-10)


@pytest.mark.parametrize("covariance_type", TYPES)
def test_offsets_lose_nothing(covariance_type):
    X, codes = sample(11)
    X = np.round(X * 2**20) / 2**20  # adding the offsets is then exact
    m = moments(X, codes, covariance_type=covariance_type)
    far = moments(X + 2.0**27 * np.array([1, -1, 1, 0]), codes, covariance_type=covariance_type)
    np.testing.assert_allclose(far.covariance, m.covariance, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(far.log_det, m.log_det, rtol=1e-9)
    np.testing.assert_allclose(precision(far), precision(m), rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("size", [1e-160, 1e160])
def test_spread_of_values_whose_squares_are_no_numbers(size):
    X, codes = sample(12)
    with np.errstate(over="ignore"):  # covariances of 1e320 are infinite, as they must be
        m, far = moments(X, codes), moments(X * size, codes)
    np.testing.assert_allclose(far.spread / size, m.spread, rtol=1e-12)
    np.testing.assert_allclose(far.axes * size, m.axes, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("covariance_type", ["tied", "full", "diag"])
@pytest.mark.parametrize("shrinkage", SHRINKAGES)
def test_constant_features_are_left_out(covariance_type, shrinkage):
    X, codes = sample(13)
    rng = np.random.default_rng(0)
    noisy = 1e6 * (1 + 1e-15 * rng.integers(-2, 3, len(X)))
    assert np.ptp(noisy) > 0
    tenths = np.array([0.1, 0.3, 0.7])[codes]  # constant within every class, not over all
    options = {"covariance_type": covariance_type, "shrinkage": shrinkage}
    alone = moments(X, codes, **options)
    padded = np.column_stack([noisy, X[:, :2], np.full(len(X), 0.1), X[:, 2:], tenths])
    m = moments(padded, codes, **options)
    kept = np.array([1, 2, 4, 5])
    assert (np.delete(m.spread, kept) == 0).all()
    np.testing.assert_allclose(m.spread[kept], alone.spread, rtol=1e-12)
    np.testing.assert_array_equal(m.rank, alone.rank)
    np.testing.assert_allclose(m.log_det, alone.log_det, rtol=1e-9)
    np.testing.assert_allclose(
        precision(m)[:, kept][:, :, kept], precision(alone), rtol=1e-8, atol=1e-12
    )
    assert (np.delete(precision(m), kept, axis=1) == 0).all()
    assert (np.delete(as_matrices(m), kept, axis=1) == 0).all()
    np.testing.assert_allclose(m.means[:, -1], [0.1, 0.3, 0.7], rtol=1e-15)


def test_a_small_variation_on_a_large_offset_is_no_constant():
    X, codes = sample(14)
    m = moments(1e8 + 1e-4 * X, codes)
    np.testing.assert_allclose(m.spread, 1e-4 * moments(X, codes).spread, rtol=1e-3)
    assert m.rank.tolist() == [4]


def test_a_feature_constant_in_one_class_is_left_out_there():
    X, codes = sample(15)
    X[codes == 1, 2] = 0.1
    for kind in ("full", "diag"):
        m = moments(X, codes, covariance_type=kind, tol=0.0)
        assert m.rank.tolist() == [4, 3, 4]
        assert (precision(m)[1, 2] == 0).all()
        assert not m.has_pooled.any()


@pytest.mark.parametrize("covariance_type", ["full", "diag", "spherical"])
@pytest.mark.parametrize("alike", [1, 2])
def test_a_class_of_one_row_borrows_the_pooled_covariance(covariance_type, alike):
    X, codes = sample(16)
    X = np.vstack([X, np.full((alike, 4), 0.1)])
    codes = np.append(codes, np.full(alike, 3))
    m = moments(X, codes, covariance_type=covariance_type)
    tied = moments(X, codes)
    assert not tied.has_pooled.any()
    assert m.has_pooled.tolist() == [False, False, False, True]
    pooled = tied.covariance
    pooled = {"full": pooled, "diag": np.diag(pooled), "spherical": np.trace(pooled) / 4}
    pooled = pooled[covariance_type]
    np.testing.assert_allclose(m.covariance[3], pooled, rtol=1e-10)
    p = as_matrices(m)[3]
    np.testing.assert_allclose(precision(m)[3] @ p, np.eye(4), atol=1e-9)
    np.testing.assert_allclose(m.log_det[3], np.linalg.slogdet(p)[1], rtol=1e-10)
    assert (m.rank == 4).all()


@pytest.mark.parametrize("covariance_type", TYPES)
@pytest.mark.parametrize("shrinkage", SHRINKAGES)
def test_without_degrees_of_freedom_nothing_is_known_of_the_spread(covariance_type, shrinkage):
    X = np.random.default_rng(17).normal(size=(3, 5))
    m = moments(X, [2, 0, 1], covariance_type=covariance_type, shrinkage=shrinkage)
    np.testing.assert_array_equal(m.means, X[[1, 2, 0]])
    for unknown in (m.spread, m.covariance, m.axes, m.rank, m.log_det):
        assert not unknown.any()
    assert m.has_pooled.all() == (covariance_type != "tied")


def test_weights_that_sum_to_one_up_to_rounding_leave_no_degree_of_freedom():
    X, codes = sample(18, n=44, k=2)
    weight = np.where(codes == 0, 1.0, 0.1 / np.mean(codes == 1) * 10 / 44)
    assert abs(weight[codes == 1].sum() - 1) < 1e-12
    m = moments(X, codes, weight, covariance_type="full")
    assert m.has_pooled.tolist() == [False, True]


def test_rows_of_weight_zero_do_not_count():
    X, codes = sample(19)
    weight = np.ones(len(X))
    weight[::4] = 0
    X[::4] *= 1e12  # the moments would be those of these rows
    m = moments(X, codes, weight, covariance_type="full")
    kept = weight > 0
    assert_same(m, moments(X[kept], codes[kept], covariance_type="full"))


def test_a_class_without_weight_is_refused():
    X, codes = sample(20)
    with pytest.raises(ValueError, match=r"positive weight in class number 1 \(of 3"):
        moments(X, codes, codes != 1)
    with pytest.raises(ValueError, match="in classes number 0, 2"):
        moments(X, codes, codes == 1)
