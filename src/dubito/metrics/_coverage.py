"""Coverage of label sets: over all rows, in each class, and for each size of the set."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dubito.metrics._sets import check_sets, compare_sets
from dubito.metrics.binning import sum_by

if TYPE_CHECKING:
    import numpy.typing as npt

    from dubito._typing import BoolArray, FloatArray, IntArray


class SizeCoverage(NamedTuple):
    """Coverage of the sets of each size that occurs: the result of `coverage_by_size`."""

    size: IntArray
    coverage: FloatArray
    fraction: FloatArray


def coverage(
    y_true: npt.ArrayLike,
    sets: npt.ArrayLike,
    *,
    classes: npt.ArrayLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
) -> float:
    r"""Return the fraction of sets that contain the true label: the mean of :math:`1[y \in Y]`.

    Parameters
    ----------
    y_true, sets, classes, sample_weight
        As in `utility_discounted_accuracy`. An empty set contains no label.

    Returns
    -------
    float
        In [0, 1]. Sets of all labels reach 1: read it together with `mean_set_size`.

    References
    ----------
    Vovk, Gammerman and Shafer (2005), Algorithmic learning in a random world.

    Examples
    --------
    >>> from dubito.metrics import coverage
    >>> coverage([0, 1], [[True, True], [True, False]])
    0.5
    """
    compared = compare_sets(y_true, sets, classes, sample_weight)
    return float(np.average(compared.hit, weights=compared.weight))


def class_coverage(
    y_true: npt.ArrayLike,
    sets: npt.ArrayLike,
    *,
    classes: npt.ArrayLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
) -> FloatArray:
    r"""Return the coverage of the rows of each class: the mean of :math:`1[k\in Y]`.

    Sets that contain the true label in 90 % of all rows may miss a rare class most of the time.

    Parameters
    ----------
    y_true, sets, classes, sample_weight
        As in `utility_discounted_accuracy`.

    Returns
    -------
    ndarray of shape (K,)
        In [0, 1]; nan for a class without rows. Weighted by the frequency of the classes its mean
        is `coverage`.

    See Also
    --------
    dubito.conformal.ConformalClassifier : ``class_conditional=True`` requests it for each class.

    References
    ----------
    Vovk (2012), Conditional validity of inductive conformal predictors.

    Examples
    --------
    >>> from dubito.metrics import class_coverage
    >>> sets = [[True, False, False], [True, True, False], [True, False, False]]
    >>> class_coverage([0, 1, 1], sets, classes=[0, 1, 2])
    array([1. , 0.5, nan])
    """
    checked = check_sets(sets)
    compared = compare_sets(y_true, checked, classes, sample_weight)
    return _means_by(compared.true_column, compared.hit, compared.weight, checked.shape[1])


def coverage_by_size(
    y_true: npt.ArrayLike,
    sets: npt.ArrayLike,
    *,
    classes: npt.ArrayLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
) -> SizeCoverage:
    """Return the coverage of the sets of each size.

    Sets that adapt to how difficult a row is contain the true label equally often whatever their
    size; a low coverage of small sets means overconfidence.

    Parameters
    ----------
    y_true, sets, classes, sample_weight
        As in `utility_discounted_accuracy`. An empty set contains no label.

    Returns
    -------
    SizeCoverage
        A named tuple of arrays, one entry for each size that occurs, smallest first: `size`,
        `coverage`, and `fraction`, how many of the rows have a set of this size. The mean of
        `coverage` weighted by `fraction` is that of all rows.

    References
    ----------
    Angelopoulos, Bates, Jordan and Malik (2021), Uncertainty sets for image classifiers using
    conformal prediction (size-stratified coverage).

    Examples
    --------
    >>> from dubito.metrics import coverage_by_size
    >>> sets = [[True, False], [True, True], [True, False], [False, True]]
    >>> by_size = coverage_by_size([0, 1, 1, 1], sets)
    >>> by_size.size, by_size.coverage.round(2), by_size.fraction
    (array([1, 2]), array([0.67, 1.  ]), array([0.75, 0.25]))
    """
    compared = compare_sets(y_true, sets, classes, sample_weight)
    size, group = np.unique(compared.size, return_inverse=True)
    means = _means_by(group, compared.hit, compared.weight, len(size))
    return SizeCoverage(size, means, sum_by(group, compared.weight) / compared.weight.sum())


def _means_by(group: IntArray, hit: BoolArray, weight: FloatArray, n_groups: int) -> FloatArray:
    """Return the weighted mean of `hit` in each group; nan for a group without rows."""
    total = np.bincount(group, weights=weight, minlength=n_groups)
    covered = np.bincount(group, weights=weight * hit, minlength=n_groups)
    return np.asarray(np.divide(covered, total, out=np.full(n_groups, np.nan), where=total > 0))
