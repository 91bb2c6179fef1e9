"""Random data from the distributions of the papers' experiments.

Labels are drawn independently with equal probabilities, so that class counts are multinomial, not
exactly balanced. All return ``(X, y)``, as scikit-learn's ``make_*`` do.
"""

from __future__ import annotations

from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse as sp
from sklearn.utils import check_random_state

if TYPE_CHECKING:
    import numpy.typing as npt

    from dubito._typing import FloatArray

    Sample = tuple[FloatArray, npt.NDArray[np.int64]]
    Rng = np.random.Generator | np.random.RandomState
    Seed = int | np.random.RandomState | np.random.Generator | None


def make_waveform(
    n_samples: int = 5000, *, noise_features: int = 0, random_state: Seed = None
) -> Sample:
    r"""Return Breiman's waveforms: random mixtures of two of three triangular waves, with noise.

    With the waves :math:`h_1(i) = \max(6 - |i - 11|, 0)`, :math:`h_2(i) = h_1(i - 4)` and
    :math:`h_3(i) = h_1(i + 4)` at :math:`i = 1, \ldots, 21`,

    .. math:: x_i = u\,a(i) + (1 - u)\,b(i) + \varepsilon_i, \qquad
        u \sim U(0, 1),\; \varepsilon_i \sim N(0, 1),

    where :math:`(a, b)` is :math:`(h_2, h_3)` in class 0, :math:`(h_1, h_3)` in class 1 and
    :math:`(h_1, h_2)` in class 2. This is the numbering of the UCI file, which ``load("waveform")``
    gives; texts that name the waves in another order pair them with other class numbers.

    Parameters
    ----------
    n_samples : int, default=5000
        Number of rows, at least 1. UCI's file has 5000.
    noise_features : int, default=0
        Number of further columns of pure N(0, 1) noise; UCI's second version has 19. They are
        drawn last, so that the first 21 columns do not depend on their number.
    random_state : int, RandomState, Generator or None, default=None
        Seed or generator; None is numpy's global generator.

    Returns
    -------
    X : float64 array of shape (n_samples, 21 + noise_features)
    y : int array of shape (n_samples,)
        Labels 0, 1, 2, drawn with equal probabilities.

    References
    ----------
    L. Breiman, J. Friedman, R. Olshen and C. Stone, *Classification and Regression Trees*,
    Wadsworth, 1984, pages 49-55. Used in Xu et al. 2015.

    Examples
    --------
    >>> from dubito.datasets import make_waveform
    >>> X, y = make_waveform(200, noise_features=19, random_state=0)
    >>> X.shape, sorted(set(y.tolist()))
    ((200, 40), [0, 1, 2])
    """
    n = _check_count(n_samples, "n_samples", least=1)
    extra = _check_count(noise_features, "noise_features", least=0)
    rng = _as_rng(random_state)
    i = np.arange(1, 22)
    h1, h2, h3 = (np.maximum(6.0 - np.abs(i - centre), 0.0) for centre in (11, 15, 7))
    first, second = np.array([h2, h1, h1]), np.array([h3, h3, h2])
    y = _draw_labels(n, 3, rng)
    u = rng.uniform(size=(n, 1))
    X = u * first[y] + (1.0 - u) * second[y] + rng.standard_normal((n, 21))
    return np.hstack([X, rng.standard_normal((n, extra))]), y


def make_gaussian_trio(n_samples: int = 900, *, random_state: Seed = None) -> Sample:
    r"""Return rows of the three overlapping Gaussian classes of Denœux 2019, section 5.2.

    .. math::
        \mu_0 = \mu_1 = (0, 0),\; \mu_2 = (1, -1), \quad
        \Sigma_0 = 0.1 I,\; \Sigma_1 = 0.5 I,\;
        \Sigma_2 = \begin{pmatrix} 0.3 & -0.15 \\ -0.15 & 0.3 \end{pmatrix},

    with equiprobable classes. The Bayes error is 24.55 % by numerical integration; the paper
    estimates 24.6 % on 15,000 draws.

    Parameters
    ----------
    n_samples : int, default=900
        Number of rows, at least 1; the default is the paper's training size.
    random_state : int, RandomState, Generator or None, default=None
        Seed or generator; None is numpy's global generator.

    Returns
    -------
    X : float64 array of shape (n_samples, 2)
    y : int array of shape (n_samples,)
        Labels 0, 1, 2 for the paper's classes 1, 2, 3.

    Examples
    --------
    >>> from dubito.datasets import make_gaussian_trio
    >>> X, y = make_gaussian_trio(random_state=0)
    >>> X.shape, y.shape
    ((900, 2), (900,))
    """
    means = np.array([[0.0, 0.0], [0.0, 0.0], [1.0, -1.0]])
    covariances = np.array([0.1 * np.eye(2), 0.5 * np.eye(2), [[0.3, -0.15], [-0.15, 0.3]]])
    return _draw_gaussians(n_samples, means, covariances, random_state)


def make_gaussian_pair(n_samples: int = 290, *, random_state: Seed = None) -> Sample:
    r"""Return rows of the two Gaussian classes of Minary et al. 2017, section 4.

    .. math::
        \mu_0 = (-1, 0),\; \mu_1 = (1, 1), \quad
        \Sigma_0 = \Sigma_1 = \begin{pmatrix} 1 & 0.5 \\ 0.5 & 1 \end{pmatrix}.

    The paper gives no class proportions; they are taken to be equal. The Mahalanobis distance
    between the means is then 2 and the Bayes error :math:`\Phi(-1) \approx 15.87` %.

    Parameters
    ----------
    n_samples : int, default=290
        Number of rows, at least 1; the default is the paper's: three times 30 for the
        classifiers and 200 for the calibration.
    random_state : int, RandomState, Generator or None, default=None
        Seed or generator; None is numpy's global generator.

    Returns
    -------
    X : float64 array of shape (n_samples, 2)
    y : int array of shape (n_samples,)
        Labels 0 and 1.

    Examples
    --------
    >>> from dubito.datasets import make_gaussian_pair
    >>> X, y = make_gaussian_pair(random_state=0)
    >>> X.shape, y.shape
    ((290, 2), (290,))
    """
    means = np.array([[-1.0, 0.0], [1.0, 1.0]])
    covariances = np.array([[[1.0, 0.5], [0.5, 1.0]]] * 2)
    return _draw_gaussians(n_samples, means, covariances, random_state)


def make_many_classes(
    n_samples: int = 40_000,
    n_classes: int = 1_000,
    n_features: int = 128,
    *,
    sparse: bool = False,
    n_groups: int | None = None,
    separation: float = 1.0,
    dtype: npt.DTypeLike = np.float64,
    random_state: Seed = None,
) -> tuple[Any, npt.NDArray[np.int64]]:
    r"""Return rows of many classes in groups of similar ones, for nested dichotomies.

    Leathart et al. 2019 study thousands of classes; public data of that size are large files. Each
    class belongs to a group, drawn with equal probabilities, which a tree of classes can find. With
    the group :math:`g(k)` of class :math:`k` and separation :math:`s`, dense rows are

    .. math:: x = 0.9\,s\,u_{g(y)} + 1.2\,s\,v_y + \varepsilon, \qquad
        u_g, v_k, \varepsilon \sim N(0, I).

    Sparse rows are bags of words, with a column for each word. Ten random words belong to each
    class and fifty to each group. A row has the counts of :math:`1 + \text{Poisson}(29)` words that
    do not depend on its class (column r with probability proportional to :math:`1 / r`, Zipf's
    law), of :math:`\text{Poisson}(10 s)` words of its group and of :math:`\text{Poisson}(15 s)` of
    its class, and is scaled to length one.

    Parameters
    ----------
    n_samples : int, default=40_000
        Number of rows, at least 1. Classes are drawn independently, so that some have no row when
        rows are few.
    n_classes, n_features : int, default=1_000 and 128
        Number of classes and of columns, at least 1. Bags of words need many columns, say 50,000.
    sparse : bool, default=False
        Whether to draw bags of words, in a CSR array with some 45 values a row; else Gaussian rows.
    n_groups : int, default=None
        Number of groups, at least 1; None means the square root of the number of classes.
    separation : float, default=1.0
        The s above, not negative; at 0 rows do not depend on their class.
    dtype : float64 or float32, default=float64
        Type of the features.
    random_state : int, RandomState, Generator or None, default=None
        Seed or generator; None is numpy's global generator.

    Returns
    -------
    X : array or CSR array of shape (n_samples, n_features)
    y : int array of shape (n_samples,)
        Labels 0, ..., n_classes - 1, drawn with equal probabilities and independent of the groups.

    Examples
    --------
    >>> from dubito.datasets import make_many_classes
    >>> X, y = make_many_classes(500, n_classes=40, n_features=16, random_state=0)
    >>> X.shape, len(set(y.tolist()))
    ((500, 16), 40)
    >>> texts, y = make_many_classes(500, 40, 2_000, sparse=True, random_state=0)
    >>> texts.format, texts.shape, round(float((texts[[0]] ** 2).sum()), 6)
    ('csr', (500, 2000), 1.0)
    """
    n = _check_count(n_samples, "n_samples", least=1)
    k = _check_count(n_classes, "n_classes", least=1)
    p = _check_count(n_features, "n_features", least=1)
    g = round(k**0.5) if n_groups is None else _check_count(n_groups, "n_groups", least=1)
    _check_separation(separation)
    if np.dtype(dtype) not in (np.float64, np.float32):
        raise ValueError(f"dtype must be float64 or float32; got {dtype!r}.")
    rng = _as_rng(random_state)
    group = _draw_labels(k, g, rng)
    y = _draw_labels(n, k, rng)
    if sparse:
        return _draw_texts(y, group, (k, g, p), float(separation), rng).astype(dtype, copy=False), y
    centres = 0.9 * separation * rng.standard_normal((g, p))[group]
    centres += 1.2 * separation * rng.standard_normal((k, p))
    return (centres[y] + rng.standard_normal((n, p))).astype(dtype, copy=False), y


def _draw_texts(
    y: npt.NDArray[np.int64],
    group: npt.NDArray[np.int64],
    sizes: tuple[int, int, int],
    separation: float,
    rng: Rng,
) -> sp.csr_array:
    """Return a bag of words for each row: common words, words of its group and of its class."""
    n_classes, n_groups, n_words = sizes
    common = np.cumsum(1.0 / np.arange(1, n_words + 1))
    of_group = _draw_labels(n_groups * 50, n_words, rng).reshape(n_groups, 50)
    of_class = _draw_labels(n_classes * 10, n_words, rng).reshape(n_classes, 10)
    # Common words, words of groups and words of classes. For each kind: the number of words in each
    # row, the row of each word, and a uniform number that picks it from the list of its kind.
    lengths = [1 + rng.poisson(29.0, size=len(y))]
    lengths += [rng.poisson(mean * separation, size=len(y)) for mean in (10.0, 15.0)]
    row = [np.repeat(np.arange(len(y)), length) for length in lengths]
    draw = [rng.uniform(size=len(rows)) for rows in row]
    word = [
        np.searchsorted(common, draw[0] * common[-1], side="right"),
        of_group[group[y[row[1]]], (50 * draw[1]).astype(np.int64)],
        of_class[y[row[2]], (10 * draw[2]).astype(np.int64)],
    ]
    cells = np.concatenate(row), np.concatenate(word)
    counts = sp.coo_array((np.ones(len(cells[0])), cells), shape=(len(y), n_words)).tocsr()
    length = np.sqrt(counts.multiply(counts).sum(axis=1))
    counts.data /= np.repeat(length, np.diff(counts.indptr))
    return counts


def _draw_gaussians(
    n_samples: int,
    means: FloatArray,
    covariances: FloatArray,
    random_state: Seed,
) -> Sample:
    n = _check_count(n_samples, "n_samples", least=1)
    rng = _as_rng(random_state)
    y = _draw_labels(n, len(means), rng)
    roots = np.linalg.cholesky(covariances)
    white = rng.standard_normal((n, means.shape[1]))
    return means[y] + np.einsum("nij,nj->ni", roots[y], white), y


def _draw_labels(n: int, n_classes: int, rng: Rng) -> npt.NDArray[np.int64]:
    return rng.choice(n_classes, size=n).astype(np.int64)


def _as_rng(random_state: Seed) -> Rng:
    """Return a Generator as it is, anything else as a RandomState, with the same methods."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    rng: np.random.RandomState = check_random_state(random_state)
    return rng


def _check_count(value: Any, name: str, *, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be an integer; got {value!r}.")
    if value < least:
        raise ValueError(f"{name} must be at least {least}; got {value}.")
    return int(value)


def _check_separation(value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"separation must be a number; got {value!r}.")
    if not 0 <= float(value) < np.inf:
        raise ValueError(f"separation must be finite and not negative; got {value}.")
