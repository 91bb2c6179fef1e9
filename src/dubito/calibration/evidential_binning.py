"""Evidential calibration by bins: belief and plausibility from the counts in each bin."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from dubito.calibration.binning import BinnedCalibrator, BinnedMap
from dubito.calibration.one_vs_rest import MiddleOfBoundsMixin

if TYPE_CHECKING:
    import numpy.typing as npt

    from dubito._typing import BoolArray, FloatArray


class EvidentialBinningMap(MiddleOfBoundsMixin, BinnedMap):
    """Belief and plausibility of the event in each bin, and the probability between them."""


class EvidentialBinningCalibrator(BinnedCalibrator):
    r"""Belief and plausibility from the counts in bins of the score.

    In a bin with k events among n rows (or such weights), :math:`\hat\theta=k/n`, the contour of
    the unknown probability θ of the event is its relative likelihood

    .. math:: \mathrm{pl}(\theta)=
              \frac{\theta^k(1-\theta)^{n-k}}{\hat\theta^k(1-\hat\theta)^{n-k}},

    and the next outcome has (Minary et al., 2017, eq. 3)

    .. math:: \mathrm{Bel}(\{1\})=\hat\theta-\int_0^{\hat\theta}\mathrm{pl}(u)\,du,\qquad
              \mathrm{Pl}(\{1\})=\hat\theta+\int_{\hat\theta}^1\mathrm{pl}(u)\,du,

    incomplete beta functions in closed form. Limits: as n grows the interval closes around
    :math:`\hat\theta` at the rate :math:`n^{-1/2}`; with k = 0, Bel = 0 and Pl = 1/(n+1); a bin
    without rows is vacuous, Bel = 0 and Pl = 1.

    `predict_proba` gives the middle of belief and plausibility, their pignistic probability: never
    0 or 1, as :math:`\hat\theta` is in a bin with one class only, and 1/2 in a bin without rows.

    ``predict_bounds(scores, level=0.9)`` gives the limits of Clopper and Pearson in the bin of each
    score, widened to contain the probability: quantiles of Beta(k, n-k+1) and Beta(k+1, n-k), 0 and
    1 without rows. They include the **mean probability of the bin** with at least this frequency,
    if the bins were chosen without the labels, as with a fixed `n_bins`; the probability at a score
    differs from that mean by as much as it changes within the bin.

    More than two classes: one map for each class against the rest; bounds are the exact range of
    the normalised probabilities, both mixed with the base rate at the weight 1/(n+1) of one row, so
    that none is 0.

    Parameters
    ----------
    n_bins : int or "auto", default="auto"
        Number of bins, as in `BinningCalibrator`.
    strategy : {"quantile", "uniform"}, default="quantile"
        Bins of equal weight or of equal width, as in `BinningCalibrator`.
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
    Minary, P., Pichon, F., Mercier, D., Lefevre, E. and Droit, B. (2017). Evidential joint
    calibration of binary SVM classifiers using logistic regression. SUM.

    Xu, P., Davoine, F., Zha, H. and Denœux, T. (2016). Evidential calibration of binary SVM
    classifiers. International Journal of Approximate Reasoning 72.

    Clopper, C. J. and Pearson, E. S. (1934). The use of confidence or fiducial limits illustrated
    in the case of the binomial. Biometrika 26.

    Examples
    --------
    >>> from dubito.calibration import EvidentialBinningCalibrator
    >>> scores = [-3, -2, -1, 1, 2, 3]
    >>> calibrator = EvidentialBinningCalibrator(n_bins=2).fit(scores, [0, 0, 0, 0, 1, 1])
    >>> calibrator.predict_bounds([-5]).upper
    array([[1.  , 0.25]])
    >>> calibrator.predict_bounds([-5], level=0.9).upper.round(3)
    array([[1.   , 0.632]])
    >>> calibrator.contour([-5], [0.0, 0.5])
    array([[1.   , 0.125]])
    """

    evidential: ClassVar[bool] = True

    def __init__(
        self,
        *,
        n_bins: int | str = "auto",
        strategy: str = "quantile",
        input: str = "margin",
        floor: float | str = "auto",
        classes: npt.ArrayLike | None = None,
    ) -> None:
        super().__init__(input=input, floor=floor, classes=classes)
        self.n_bins = n_bins
        self.strategy = strategy

    def _fit_map(
        self, score: FloatArray, event: BoolArray, weight: FloatArray
    ) -> EvidentialBinningMap:
        bins = self._bins(score, event, weight)
        return EvidentialBinningMap(bins, *bins.bounds_of_bins())
