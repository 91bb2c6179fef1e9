r"""Means and covariances of the classes, and the roots of their (pseudo-)inverses.

Everything is computed from rows less the mean of their class, in units of the pooled within-class
standard deviation of each feature. So neither a large offset nor the unit of a feature decides
which directions count as singular: an eigenvalue of the covariance *in those units* that is not
above :math:`\mathrm{tol}^2` times the largest is left out of the inverse and of the determinant.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy import linalg

from dubito._typing import IntArray

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dubito._typing import BoolArray, FloatArray

_EPS = float(np.finfo(np.float64).eps)

#: A feature whose range within a class is at most this many machine epsilons is constant there.
_CONSTANT_EPSILONS = 32


class Moments(NamedTuple):
    """Counts, means and covariances of the classes; S = 1 covariance if tied, else S = K."""

    counts: FloatArray  #: (K,) sums of sample weights
    means: FloatArray  #: (K, p)
    spread: FloatArray  #: (p,) pooled within-class standard deviations, 0 for constant features
    covariance: FloatArray  #: (p, p) tied, (K, p, p) full, (K, p) diag, (K,) spherical
    axes: FloatArray  #: (S, p, p), precision = axes @ axes.T; or (K, p), its diagonal's roots
    log_det: FloatArray  #: (S,) logarithms of the pseudo-determinants
    rank: IntArray  #: (S,) number of directions kept
    has_pooled: BoolArray  #: (K,) classes without a covariance of their own, given the pooled one


class _Sample(NamedTuple):
    """Rows sorted by class, centred, in units of the spread, times the roots of their weights."""

    rows: FloatArray  # (n, q): only the q features that vary within a class
    weight: FloatArray  # (n,)
    starts: IntArray  # (K,) first row of each class
    has_pooled: BoolArray  # (K,)
    freedom: FloatArray  # (K,) degrees of freedom, by which scatters are divided

    def of_class(self, k: int) -> tuple[FloatArray, FloatArray]:
        """Return the rows of a class and their weights."""
        span = slice(*np.append(self.starts, len(self.rows))[k : k + 2])
        return self.rows[span], self.weight[span]


class _FactoredCovariance(NamedTuple):
    """A covariance with the root of its (pseudo-)inverse, in units of the spread."""

    covariance: FloatArray  # (q, q)
    axes: FloatArray  # (q, q)
    log_det: float
    rank: int


class CovarianceSettings(NamedTuple):
    r"""How covariances are estimated.

    Parameters
    ----------
    covariance_type : {"tied", "full", "diag", "spherical"}
    shrinkage : None, "auto" or float in [0, 1]
        a in :math:`(1-a)S+a\,\mathrm{tr}(S)/q\,I`, S in units of the spread and of the q features
        that vary. "auto": that of Ledoit and Wolf (2004), sample weights counting rows; for
        diag the same for diagonal matrices. No effect if spherical.
    tol : float
        Eigenvalues not above tol² times the largest are left out. Rounding alone makes some of
        q machine epsilons times the largest, so this much is left out in any case.
    unbiased : bool
        Divide scatters by :math:`n_k-1` and :math:`N-K`, as in `class_moments`; if not, by
        :math:`n_k` and N.
    """

    covariance_type: str
    shrinkage: float | str | None
    tol: float
    unbiased: bool = True


def class_moments(
    X: FloatArray,
    codes: IntArray,
    n_classes: int,
    weight: FloatArray,
    settings: CovarianceSettings,
) -> Moments:
    r"""Return the moments of each class from weighted rows; sample weight 2 is the row twice.

    With :math:`n_k` the sum of the sample weights of class k, N that of all and :math:`S_k` the
    scatter of class k over :math:`n_k-1`, covariances are :math:`\sum_k(n_k-1)S_k/(N-K)` (tied),
    :math:`S_k` (full), its diagonal (diag) or :math:`\mathrm{tr}(S_k)/p` (spherical).

    A class with :math:`n_k\le1`, or whose rows are all alike, has no covariance of its own: unless
    tied, it is given the pooled one. Without any degree of freedom, :math:`N\le K`, the pooled one
    is zero, of rank 0.

    Parameters
    ----------
    X : (n, p)
    codes : (n,) class indices, 0 to K - 1
    n_classes : int
    weight : (n,), not negative; rows of weight 0 do not count at all
    settings : CovarianceSettings

    Returns
    -------
    Moments
        `covariance` after shrinkage, before anything is left out.
    """
    counts = class_counts(codes, weight, n_classes)
    _refuse_empty_classes(counts)
    order = np.argsort(codes, kind="stable")
    order = order[weight[order] > 0]
    X, codes, weight = X[order], codes[order], weight[order]
    starts = np.searchsorted(codes, np.arange(n_classes))
    means, centred = _centre(X, codes, weight, starts)
    constant = _constant_features(X, starts)
    centred[constant[codes]] = 0.0
    pooled = _degrees_of_freedom(counts.sum(), n_classes if settings.unbiased else 0)
    spread = _pooled_deviation(centred, weight, pooled)
    freedom = _degrees_of_freedom(counts, 1 if settings.unbiased else 0)
    sample = _Sample(
        _standardise(centred, weight, spread),
        weight,
        starts,
        (freedom == 0) | constant.all(axis=1),
        freedom,
    )
    if settings.covariance_type == "spherical":
        fitted = _spherical(sample, spread)
    elif settings.covariance_type == "diag":
        fitted = _diagonal(sample, spread, settings)
    elif settings.covariance_type == "full":
        fitted = _full(sample, spread, settings)
    else:
        fitted = _tied(sample, spread, settings)
        sample = sample._replace(has_pooled=np.zeros(n_classes, dtype=bool))
    return Moments(counts, means, spread, *fitted, sample.has_pooled)


def class_counts(codes: IntArray, weight: FloatArray, n_classes: int) -> FloatArray:
    """Return the sums of the sample weights of the classes, (K,)."""
    return np.bincount(codes, weight, minlength=n_classes).astype(np.float64)


def standard_deviations(moments: Moments) -> FloatArray:
    """Return the roots of the covariances' diagonals, (S, p): those of each feature, 0 if constant.

    A class without a covariance of its own has those of the pooled one.
    """
    covariance, p = moments.covariance, moments.means.shape[1]
    if moments.axes.ndim == 3:
        matrices = covariance[None] if covariance.ndim == 2 else covariance
        variance = np.diagonal(matrices, axis1=1, axis2=2)
    else:
        variance = covariance if covariance.ndim == 2 else np.tile(covariance[:, None], (1, p))
    return np.sqrt(np.ascontiguousarray(variance))


#: Covariances, axes, log determinants and ranks, as in the fields of `Moments`.
_Fitted = tuple["FloatArray", "FloatArray", "FloatArray", IntArray]


def _refuse_empty_classes(counts: FloatArray) -> None:
    empty = np.flatnonzero(counts <= 0)
    if len(empty):
        raise ValueError(
            f"no row of positive weight in {'class' if len(empty) == 1 else 'classes'} number "
            f"{', '.join(map(str, empty))} (of {len(counts)}, counted from 0); each class needs "
            "one. Drop the class, or give one of its rows a weight."
        )


def _degrees_of_freedom(total: FloatArray, lost: int) -> FloatArray:
    """Return total - lost, or 0 where the difference is not above rounding error."""
    left = np.asarray(total - lost)
    return np.where(left > 1e-9 * total, left, 0.0)


def _centre(
    X: FloatArray, codes: IntArray, weight: FloatArray, starts: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Return the means of the classes, and each row less that of its class.

    Rows are taken relative to the first of their class before any sum, and the mean is computed
    again from the residuals, so that a large offset costs no digits.
    """
    fraction = weight / np.add.reduceat(weight, starts)[codes]
    means = X[starts]
    centred = X - means[codes]
    for _ in range(2):
        shift = np.add.reduceat(fraction[:, None] * centred, starts)
        means = means + shift
        centred -= shift[codes]
    return means, centred


def _constant_features(X: FloatArray, starts: IntArray) -> BoolArray:
    """Return which features are constant in which class, up to rounding, (K, p)."""
    span = np.maximum.reduceat(X, starts) - np.minimum.reduceat(X, starts)
    return np.asarray(span <= _CONSTANT_EPSILONS * _EPS * np.abs(X).max(axis=0))


def _pooled_deviation(centred: FloatArray, weight: FloatArray, freedom: FloatArray) -> FloatArray:
    """Return the pooled within-class standard deviations, 0 without a degree of freedom."""
    if freedom == 0:
        return np.zeros(centred.shape[1])
    # Relative to the largest: squares of very large or small values overflow or underflow.
    largest = np.abs(centred).max(axis=0)
    relative = centred / np.where(largest > 0, largest, 1.0)
    return np.asarray(largest * np.sqrt(weight @ (relative * relative) / freedom))


def _standardise(centred: FloatArray, weight: FloatArray, spread: FloatArray) -> FloatArray:
    varies = spread > 0
    kept = centred if varies.all() else centred[:, varies]
    return np.asarray(kept / spread[varies] * np.sqrt(weight)[:, None])


def _tied(sample: _Sample, spread: FloatArray, settings: CovarianceSettings) -> _Fitted:
    covariance, *rest = _in_given_units([_pooled_covariance(sample, settings)], 1, spread)
    return (covariance[0], *rest)


def _full(sample: _Sample, spread: FloatArray, settings: CovarianceSettings) -> _Fitted:
    pooled = _pooled_covariance(sample, settings) if sample.has_pooled.any() else None
    factored = (  # a generator, because each is as large as two matrices
        pooled
        if pooled and has_pooled
        else _factored_covariance(*sample.of_class(k), sample.freedom[k], settings)
        for k, has_pooled in enumerate(sample.has_pooled)
    )
    return _in_given_units(factored, len(sample.has_pooled), spread)


def _diagonal(sample: _Sample, spread: FloatArray, settings: CovarianceSettings) -> _Fitted:
    varies = spread > 0
    variances = np.stack(
        [
            np.ones(sample.rows.shape[1])  # the pooled variances, in units of the spread
            if has_pooled
            else _variances(*sample.of_class(k), sample.freedom[k], settings.shrinkage)
            for k, has_pooled in enumerate(sample.has_pooled)
        ]
    )
    kept = variances > _eigenvalue_threshold(variances, settings.tol)
    covariance = np.zeros((len(variances), len(spread)))
    axes = np.zeros_like(covariance)
    covariance[:, varies] = variances * spread[varies] ** 2
    axes[:, varies] = np.where(kept, 1 / np.sqrt(np.where(kept, variances, 1.0)), 0.0)
    axes[:, varies] /= spread[varies]
    log_det = np.log(variances, out=np.zeros_like(variances), where=kept).sum(axis=1)
    return covariance, axes, log_det + _log_unit(spread), kept.sum(axis=1)


def _spherical(sample: _Sample, spread: FloatArray) -> _Fitted:
    """Fit one variance for all features, constant ones included: nothing is left out here."""
    p = len(spread)
    squares = np.add.reduceat(sample.rows**2, sample.starts) @ spread[spread > 0] ** 2
    own = squares / np.where(sample.has_pooled, 1.0, sample.freedom) / p
    variance = np.where(sample.has_pooled, spread @ spread / p, own)
    safe = np.where(variance > 0, variance, 1.0)
    axes = np.where(variance > 0, 1 / np.sqrt(safe), 0.0)[:, None] * np.ones(p)
    return variance, axes, p * np.log(safe), np.where(variance > 0, p, 0)


def _pooled_covariance(sample: _Sample, settings: CovarianceSettings) -> _FactoredCovariance:
    freedom = _degrees_of_freedom(
        sample.weight.sum(), len(sample.starts) if settings.unbiased else 0
    )
    return _factored_covariance(sample.rows, sample.weight, float(freedom), settings)


def _factored_covariance(
    rows: FloatArray, weight: FloatArray, freedom: float, settings: CovarianceSettings
) -> _FactoredCovariance:
    """Return the shrunk covariance of rows and the root of its inverse in the directions kept."""
    q = rows.shape[1]
    if q == 0:  # no feature varies; without degrees of freedom this is so, and `freedom` is 0
        return _FactoredCovariance(np.zeros((0, 0)), np.zeros((0, 0)), 0.0, 0)
    scatter, vectors = _decompose(rows)
    lengths = np.einsum("ij,ij->i", rows, rows)
    intensity = _shrinkage_intensity(settings.shrinkage, weight, scatter, lengths**2, q)
    ridge = intensity * lengths.sum() / (q * freedom)
    covariance = (1 - intensity) / freedom * (rows.T @ rows)
    covariance.flat[:: q + 1] += ridge
    values = (1 - intensity) / freedom * scatter + ridge
    threshold = _eigenvalue_threshold(values, settings.tol)[0]
    if len(values) < q and ridge > threshold:
        return _FactoredCovariance(covariance, *_full_rank_root(values, vectors, ridge), q)
    kept = values > threshold
    axes = np.zeros((q, q))
    axes[:, : kept.sum()] = vectors[:, kept] / np.sqrt(values[kept])
    return _FactoredCovariance(covariance, axes, float(np.log(values[kept]).sum()), int(kept.sum()))


def _decompose(rows: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return eigenvalues and eigenvectors of the scatter, at most as many as rows."""
    if len(rows) < rows.shape[1]:
        _, singular, vectors = linalg.svd(rows, full_matrices=False, check_finite=False)
        return singular**2, vectors.T
    values, vectors = np.linalg.eigh(rows.T @ rows)
    return np.maximum(values, 0.0), vectors


def _full_rank_root(
    values: FloatArray, vectors: FloatArray, ridge: float
) -> tuple[FloatArray, float]:
    """Return the root of the inverse and the log determinant; variance `ridge` elsewhere.

    Directions outside the span of the eigenvectors V need no vectors of their own: the symmetric
    root is I / sqrt(ridge) + V diag(1/sqrt(values) - 1/sqrt(ridge)) Vᵀ.
    """
    p, n_values = vectors.shape
    axes = np.asarray((vectors * (values**-0.5 - ridge**-0.5)) @ vectors.T)
    axes.flat[:: p + 1] += ridge**-0.5
    return axes, float(np.log(values).sum() + (p - n_values) * np.log(ridge))


def _variances(
    rows: FloatArray, weight: FloatArray, freedom: float, shrinkage: float | str | None
) -> FloatArray:
    """Return the variances of rows, shrunk towards their mean."""
    squares = rows * rows
    totals = squares.sum(axis=0)
    q = len(totals)
    if q == 0:
        return np.zeros(0)
    fourth = (squares**2).sum(axis=1)
    intensity = _shrinkage_intensity(shrinkage, weight, totals, fourth, q)
    return np.asarray(((1 - intensity) * totals + intensity * totals.mean()) / freedom)


def _shrinkage_intensity(
    shrinkage: float | str | None,
    weight: FloatArray,
    scatter: FloatArray,
    fourth: FloatArray,
    q: int,
) -> float:
    r"""Return the fraction of the target (a multiple of the identity) in the shrunk covariance.

    Ledoit and Wolf (2004): the squared error of the scatter over n, estimated, relative to its
    squared distance from the target. `scatter` are its eigenvalues (of q, those left out are 0) and
    `fourth` the rows' :math:`w_i^2\lVert z_iz_i^\top\rVert^2`; of the diagonals if diag.
    """
    if shrinkage is None:
        return 0.0
    if not isinstance(shrinkage, str):
        return float(shrinkage)
    squares = (scatter**2).sum()
    distance = squares - scatter.sum() ** 2 / q
    error = (fourth / weight).sum() - squares / weight.sum()
    return float(min(max(error, 0.0) / distance, 1.0)) if distance > 0 else 0.0


def _eigenvalue_threshold(values: FloatArray, tol: float) -> FloatArray:
    """Return the value that eigenvalues must exceed to be kept, for each row, as a column."""
    least = max(tol**2, values.shape[-1] * _EPS)
    return np.asarray(least * values.max(axis=-1, initial=0.0, keepdims=True))


def _log_unit(spread: FloatArray) -> float:
    """Return the log determinant of the change from units of the spread to the given units.

    It is the same for all classes whatever their rank, so that comparisons among classes do not
    depend on the units. With nothing left out the sum is the log determinant itself.
    """
    return float(2 * np.log(spread[spread > 0]).sum())


def _in_given_units(
    factored: Iterable[_FactoredCovariance], count: int, spread: FloatArray
) -> _Fitted:
    """Return covariances and their roots in the units of the features, constant ones included."""
    p, varies = len(spread), np.flatnonzero(spread > 0)
    unit = spread[varies]
    covariance, axes = np.zeros((count, p, p)), np.zeros((count, p, p))
    log_det, rank = np.empty(count), np.empty(count, dtype=np.intp)
    for k, one in enumerate(factored):
        covariance[k][np.ix_(varies, varies)] = one.covariance * unit * unit[:, None]
        axes[k, varies, : len(unit)] = one.axes / unit[:, None]
        log_det[k], rank[k] = one.log_det + _log_unit(spread), one.rank
    return covariance, axes, log_det, rank
