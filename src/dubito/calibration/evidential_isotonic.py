"""Evidential isotonic calibration: bounds from the likelihood of all monotone functions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from dubito._numerics.isotonic import (
    belief_steps,
    contours,
    neighbour_bounds,
    pool_ties,
    widened_bounds,
)
from dubito.calibration.base import BaseCalibrator
from dubito.calibration.one_vs_rest import MiddleOfBoundsMixin, OneVsRestCalibrator

if TYPE_CHECKING:
    import numpy.typing as npt

    from dubito._typing import BoolArray, FloatArray, IntArray


@dataclass(frozen=True)
class EvidentialIsotonicMap(MiddleOfBoundsMixin):
    """Counts at the distinct scores, the knots, and belief and plausibility between them.

    ``lower[j]`` is the belief at scores with j knots at or left of them, ``upper[j]`` the
    plausibility at scores with j knots strictly left of them. `exact` selects the bounds at a
    level.
    """

    knots: FloatArray
    successes: FloatArray
    failures: FloatArray
    lower: FloatArray
    upper: FloatArray
    exact: bool = False

    def bounds(self, score: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return belief and plausibility of the event for each score, each (n,)."""
        n_at_or_left, n_left = self._knots_left(score)
        return self.lower[n_at_or_left], self.upper[n_left]

    def level_bounds(self, score: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
        """Return bounds that contain the event's probability at a confidence level, each (n,)."""
        bounds_at = neighbour_bounds if self.exact else widened_bounds
        return bounds_at(*self._knots_left(score), self.successes, self.failures, level)

    def contour(self, score: FloatArray, theta: FloatArray) -> FloatArray:
        """Return the plausibility of each probability θ for each score, (n, len(theta))."""
        return contours(*self._knots_left(score), theta, self.successes, self.failures)

    def _knots_left(self, score: FloatArray) -> tuple[IntArray, IntArray]:
        """Return how many knots lie at or left of each score, and strictly left."""
        n_left = np.searchsorted(self.knots, score)
        if len(self.knots) == 0:
            return n_left, n_left
        # The two numbers differ by one where a knot equals the score: no second search is needed.
        is_knot = self.knots[np.minimum(n_left, len(self.knots) - 1)] == score
        return n_left + is_knot, n_left


class EvidentialIsotonicCalibrator(OneVsRestCalibrator):
    r"""Belief and plausibility from the likelihood of every non-decreasing function of the score.

    Nothing is assumed but that the probability f(s) of the event does not fall as the score s
    rises. The contour of its value at s is the profile likelihood

    .. math:: \mathrm{pl}(\theta;s)=
        \frac{\sup\{L(f):f\text{ non-decreasing},\,f(s)=\theta\}}
             {\sup\{L(f):f\text{ non-decreasing}\}},
        \qquad L(f)=\prod_i f(s_i)^{y_i}(1-f(s_i))^{1-y_i},

    and the next outcome at s has (Minary et al., 2017, eq. 3)

    .. math:: \mathrm{Bel}(\{1\})=v_{lo}-\int_0^{v_{lo}}\mathrm{pl}(u;s)\,du,\qquad
              \mathrm{Pl}(\{1\})=v_{hi}+\int_{v_{hi}}^1\mathrm{pl}(u;s)\,du,

    where :math:`[v_{lo},v_{hi}]` are the values of plausibility 1: one value at a score of the fit
    and inside a block of the isotonic fit, all between two neighbouring blocks where s separates
    them, and those from 0 to the first value below all scores. Both are exact;
    ``dubito._numerics.isotonic`` describes how they are computed without any refit.

    Limits: belief and plausibility never fall as s rises. Below all scores Bel = 0, above all
    Pl = 1. More rows narrow the interval, at the rate
    :math:`n^{-1/3}` of isotonic regression where f rises and :math:`n^{-1/2}` where it is flat.
    With one row at s of class 1, Bel = 1/2 at and above s, and 0 below.

    `predict_proba` gives the middle of belief and plausibility, their pignistic probability: never
    0 or 1, as the isotonic estimate is beyond the last error of the classifier. The estimate itself
    is that of `IsotonicCalibrator`.

    **Bounds at a level.** ``predict_bounds(scores, level=0.9)`` gives, widened to contain the
    probability, the ends of

    .. math:: \{\theta:-2\log\mathrm{pl}(\theta;s)\le D\},

    D the quantile of the limit law of the likelihood ratio of a monotone function at a point where
    it rises (Banerjee and Wellner, 2001): 1.60 at 0.9, 2.26 at 0.95, about 0.6 times that of
    chi-square. Towards the quantile of chi-square it is raised where the fit has few blocks: few
    rows cannot distinguish a slope from none. Near the first and last :math:`\lceil n^{2/3}\rceil`
    rows, where isotonic fits err on one side whatever n, that end is widened to the one of
    ``exact=True``. In simulations with 10 to 1,000 rows (``experiments/validity``) bounds at level
    0.9 contained the probability in 0.91 to 1 of cases, constant probabilities included. Both ends
    rise with s, but for the borders of those widened. With ``exact=True`` they are the lower
    Clopper-Pearson limit of the :math:`\lceil n^{2/3}\rceil` nearest rows at or below s and the
    upper limit of as many at or above it: never below the level, for any n and any non-decreasing
    probability, and about twice as wide; they may fall as s rises. With weights n is their sum.

    More than two classes: one map for each class against the rest; bounds are the exact range of
    the normalised probabilities, both mixed with the base rate at the weight 1/(n+1) of one row, so
    that none is 0; those at a level are each class's own.

    Parameters
    ----------
    exact : bool, default=False
        Whether bounds at a level are valid for every n, at about twice the width.
    input : {"margin", "logits", "proba", "log_proba"}, default="margin"
        What the scores are. Bounds depend on their order only.
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

    References
    ----------
    Minary, P., Pichon, F., Mercier, D., Lefevre, E. and Droit, B. (2017). Evidential joint
    calibration of binary SVM classifiers using logistic regression. SUM.

    Xu, P., Davoine, F., Zha, H. and Denœux, T. (2016). Evidential calibration of binary SVM
    classifiers. International Journal of Approximate Reasoning 72.

    Banerjee, M. and Wellner, J. A. (2001). Likelihood ratio tests for monotone functions. Annals of
    Statistics 29.

    Woodroofe, M. and Sun, J. (1993). A penalized maximum likelihood estimate of f(0+) when f is
    non-increasing. Statistica Sinica 3.

    Barlow, R. E., Bartholomew, D. J., Bremner, J. M. and Brunk, H. D. (1972). Statistical
    inference under order restrictions. Wiley.

    Examples
    --------
    >>> from dubito.calibration import EvidentialIsotonicCalibrator
    >>> scores, y = [-3, -2, -1, 1, 2, 3], [0, 0, 1, 0, 1, 1]
    >>> calibrator = EvidentialIsotonicCalibrator().fit(scores, y)
    >>> bounds = calibrator.predict_bounds([-2, 0, 2])
    >>> bounds.lower[:, 1].round(3)
    array([0.   , 0.167, 0.521])
    >>> bounds.upper[:, 1].round(3)
    array([0.479, 0.833, 1.   ])
    >>> calibrator.predict_bounds([-2, 0, 2], level=0.9).lower[:, 1].round(3)
    array([0.   , 0.017, 0.098])
    >>> calibrator.contour([0], [0.25, 0.5, 0.75])
    array([[0.75, 1.  , 0.75]])
    """

    evidential: ClassVar[bool] = True
    uses_ranks: ClassVar[bool] = True

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaseCalibrator._parameter_constraints,
        "exact": ["boolean"],
    }

    def __init__(
        self,
        *,
        exact: bool = False,
        input: str = "margin",
        floor: float | str = "auto",
        classes: npt.ArrayLike | None = None,
    ) -> None:
        super().__init__(input=input, floor=floor, classes=classes)
        self.exact = exact

    def node_map_spec(self) -> tuple[str, dict[str, Any]] | None:
        """Return the name and options with which all tree nodes are fitted at once, or None."""
        is_plain = type(self) is EvidentialIsotonicCalibrator
        return ("evidential_isotonic", {"exact": bool(self.exact)}) if is_plain else None

    def _fit_map(
        self, score: FloatArray, event: BoolArray, weight: FloatArray
    ) -> EvidentialIsotonicMap:
        distinct, successes, failures = pool_ties(score, event, weight)
        lower, upper = belief_steps(successes, failures)
        return EvidentialIsotonicMap(
            distinct, successes, failures, lower, upper, exact=bool(self.exact)
        )
