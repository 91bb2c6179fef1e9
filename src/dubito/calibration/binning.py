"""Calibration by bins: the frequency of the event among similar scores."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.special import logit, xlogy

from dubito._compat import Interval, StrOptions
from dubito._numerics import bernoulli
from dubito._numerics.isotonic import pool_ties, weight_sums
from dubito.belief.bounds import including
from dubito.calibration.one_vs_rest import OneVsRestCalibrator

if TYPE_CHECKING:
    import numpy.typing as npt

    from dubito._typing import BoolArray, FloatArray, IntArray

#: Approximate ratio of successive numbers of bins that "auto" tries.
_TRIAL_RATIO = 1.2

#: Largest number of bins that "auto" tries, over the cube root of the rows' weight.
_MAX_BINS = 2.0


@dataclass(frozen=True)
class Bins:
    """Weights of successes and failures between edges; an edge belongs to the bin right of it."""

    edges: FloatArray
    successes: FloatArray
    failures: FloatArray

    def find(self, score: FloatArray) -> IntArray:
        """Return the bin of each score; scores beyond those of the fit are in an outer bin."""
        return np.searchsorted(self.edges, score, side="right")

    def bounds_of_bins(self) -> tuple[FloatArray, FloatArray]:
        """Return belief and plausibility of the event in each bin."""
        return bernoulli.belief_interval(self.successes, self.failures)

    def level_bounds(self, score: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
        """Return limits of the mean probability of each score's bin at a level, each (n,)."""
        lower, upper = bernoulli.clopper_pearson(self.successes, self.failures, level)
        index = self.find(score)
        return lower[index], upper[index]

    def contour(self, score: FloatArray, theta: FloatArray) -> FloatArray:
        """Return the plausibility of each probability θ for each score, (n, len(theta))."""
        successes, failures = self.successes[:, None], self.failures[:, None]
        return bernoulli.contour(theta, successes, failures)[self.find(score)]

    def leave_one_out_loss(self) -> float:
        r"""Return the log loss of Laplace's rule with each row left out of its own prediction.

        A success in a bin with k successes among n rows is then predicted with
        :math:`(k-1+1)/(n-1+2)`, so the loss is
        :math:`-\sum k\log\frac k{n+1}+(n-k)\log\frac{n-k}{n+1}`; weights are treated as rows.
        """
        total = self.successes + self.failures
        fit = xlogy(self.successes, self.successes) + xlogy(self.failures, self.failures)
        return float(-(fit - xlogy(total, total + 1)).sum())


@dataclass(frozen=True)
class ScoreBinner:
    """Chooses the edges of bins and counts events in them.

    Parameters
    ----------
    n_bins, strategy
        As in `BinningCalibrator`.
    probabilities : bool
        Whether scores are log-odds of probabilities: "uniform" bins then have equal width in
        probability.
    """

    n_bins: int | str
    strategy: str
    probabilities: bool

    def count(self, score: FloatArray, event: BoolArray, weight: FloatArray) -> Bins:
        """Return the bins with their counts."""
        counts = pool_ties(score, event, weight)
        if self.n_bins != "auto":
            return self._count_in(int(self.n_bins), *counts)
        trials = (self._count_in(n, *counts) for n in _trials(len(counts[0]), weight.sum()))
        return min(trials, key=Bins.leave_one_out_loss)

    def _count_in(
        self, n_bins: int, distinct: FloatArray, successes: FloatArray, failures: FloatArray
    ) -> Bins:
        """Return a given number of bins with their counts; fewer where scores are tied."""
        if self.strategy == "quantile":
            edges = _quantile_edges(n_bins, distinct, successes + failures)
        else:
            edges = self._uniform_edges(n_bins, distinct)
        index = np.searchsorted(edges, distinct, side="right")
        size = len(edges) + 1
        return Bins(edges, weight_sums(index, successes, size), weight_sums(index, failures, size))

    def _uniform_edges(self, n_bins: int, distinct: FloatArray) -> FloatArray:
        inner = np.arange(1, n_bins) / n_bins
        if self.probabilities:
            return np.asarray(logit(inner))
        edges = np.unique(distinct[0] * (1 - inner) + distinct[-1] * inner)
        # In a range of few floating-point numbers some edges round to its ends.
        return edges[(edges > distinct[0]) & (edges <= distinct[-1])]


def _quantile_edges(n_bins: int, distinct: FloatArray, weight: FloatArray) -> FloatArray:
    """Return edges between bins of equal weight, as far as ties allow.

    A distinct score belongs to the bin in which the middle of its weight falls: ties stay together.
    """
    cumulated = np.cumsum(weight)
    index = np.floor(n_bins * ((cumulated - 0.5 * weight) / cumulated[-1]))
    last = np.flatnonzero(np.diff(index) > 0)
    low, high = distinct[last], distinct[last + 1]
    middle = 0.5 * low + 0.5 * high
    return np.where(middle > low, middle, high)


def _trials(n_distinct: int, weight: float) -> list[int]:
    """Return the numbers of bins that "auto" tries."""
    most = int(min(n_distinct, max(1.0, np.ceil(_MAX_BINS * np.cbrt(weight)))))
    steps = int(np.ceil(np.log(most) / np.log(_TRIAL_RATIO)))
    return sorted({round(n) for n in np.geomspace(1, most, steps + 1)})


@dataclass(frozen=True)
class BinnedMap:
    """Bins with belief and plausibility of the event in each; a subclass adds the probability."""

    bins: Bins
    lower: FloatArray
    upper: FloatArray

    def bounds(self, score: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return belief and plausibility of the event for each score, each (n,)."""
        index = self.bins.find(score)
        return self.lower[index], self.upper[index]

    def level_bounds(self, score: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
        """Return limits of the mean probability of each score's bin at a level, each (n,)."""
        return self.bins.level_bounds(score, level)

    def contour(self, score: FloatArray, theta: FloatArray) -> FloatArray:
        """Return the plausibility of each probability θ for each score, (n, len(theta))."""
        return self.bins.contour(score, theta)


@dataclass(frozen=True)
class BinningMap(BinnedMap):
    """The probability of the event in each bin, with bounds widened to contain it."""

    values: FloatArray

    def proba(self, score: FloatArray) -> FloatArray:
        """Return the probability of the event for each score, (n,)."""
        return self.values[self.bins.find(score)]

    def bounds(self, score: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return belief and plausibility of the event for each score, each (n,)."""
        index = self.bins.find(score)
        return including(self.values[index], (self.lower[index], self.upper[index]))

    def level_bounds(self, score: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
        """Return limits of the mean probability of each score's bin at a level, each (n,)."""
        return including(self.proba(score), super().level_bounds(score, level))


class BinnedCalibrator(OneVsRestCalibrator):
    """Base class of calibrators by bins: `_bins` chooses and counts them for one event."""

    n_bins: int | str
    strategy: str

    uses_ranks: ClassVar[bool] = True

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **OneVsRestCalibrator._parameter_constraints,
        "n_bins": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "strategy": [StrOptions({"quantile", "uniform"})],
    }

    def _fit(self, table: FloatArray, y: IntArray, weight: FloatArray) -> None:
        super()._fit(table, y, weight)
        self.n_bins_ = np.array([len(m.bins.successes) for m in self.maps_])

    def _bins(self, score: FloatArray, event: BoolArray, weight: FloatArray) -> Bins:
        binner = ScoreBinner(self.n_bins, self.strategy, self.input in ("proba", "log_proba"))
        return binner.count(score, event, weight)


class BinningCalibrator(BinnedCalibrator):
    r"""Frequencies of the event in bins of the score (histogram binning).

    In a bin with k events among n rows (or such weights) the probability is

    .. math:: p=\frac{k+\lambda}{n+2\lambda}

    with λ the `smoothing`: Laplace's rule of succession for λ = 1, frequencies for λ = 0. A bin
    without rows has p = 1/2, as it has for any λ > 0.

    More than two classes: one map for each class against the rest, normalised, and mixed with the
    base rate at the weight 1/(n+1) of one row, so that none is 0.

    ``predict_bounds``, also with ``level=0.9``, is that of `EvidentialBinningCalibrator`, widened
    to contain the probability.

    Parameters
    ----------
    n_bins : int or "auto", default="auto"
        Number of bins. "auto" takes the number with the smallest leave-one-out log loss of
        Laplace's rule, which has a closed form, among numbers up to twice the cube root of
        the rows (of their weight), about 20% apart.
    strategy : {"quantile", "uniform"}, default="quantile"
        ``"quantile"``: bins of equal weight. Equal scores are never divided: they go where the
        middle of their weight falls, so there may be fewer bins than asked for. Edges lie half-way
        between neighbouring scores. ``"uniform"``: bins of equal width, between 0 and 1 for
        ``input="proba"`` and between the smallest and the largest score otherwise.
        Scores beyond those of the fit are in the first or the last bin.
    smoothing : float, default=1.0
        Events, and as many non-events, added to every bin. Any positive value keeps probabilities
        off 0 and 1.
    input : {"margin", "logits", "proba", "log_proba"}, default="margin"
        What the scores are.
    floor : float or "auto", default="auto"
        Probabilities below it are raised to it before their logarithm is taken; "auto" chooses it
        on the rows of the fit, as in `AutoCalibrator`.
    classes : array-like of shape (K,), optional
        Labels in the order of the columns; needed if y lacks some.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        Labels, in the order of the columns.
    maps_ : list
        Fitted maps: one for two classes, else one for each class.
    n_bins_ : ndarray
        Number of bins of each map.

    References
    ----------
    Zadrozny, B. and Elkan, C. (2001). Obtaining calibrated probability estimates from decision
    trees and naive Bayesian classifiers. ICML.

    Examples
    --------
    >>> from dubito.calibration import BinningCalibrator
    >>> scores = [-3, -2, -1, 1, 2, 3]
    >>> calibrator = BinningCalibrator(n_bins=2).fit(scores, [0, 0, 1, 0, 1, 1])
    >>> calibrator.predict_proba([-5, 5])
    array([[0.6, 0.4],
           [0.4, 0.6]])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BinnedCalibrator._parameter_constraints,
        "smoothing": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        *,
        n_bins: int | str = "auto",
        strategy: str = "quantile",
        smoothing: float = 1.0,
        input: str = "margin",
        floor: float | str = "auto",
        classes: npt.ArrayLike | None = None,
    ) -> None:
        super().__init__(input=input, floor=floor, classes=classes)
        self.n_bins = n_bins
        self.strategy = strategy
        self.smoothing = smoothing

    def _fit_map(self, score: FloatArray, event: BoolArray, weight: FloatArray) -> BinningMap:
        bins = self._bins(score, event, weight)
        values = bernoulli.frequency(
            bins.successes + self.smoothing, bins.failures + self.smoothing
        )
        return BinningMap(bins, *bins.bounds_of_bins(), values)
