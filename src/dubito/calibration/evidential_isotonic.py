"""Evidential isotonic calibration: all monotone functions, weighed by their likelihood."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dubito._kernels.isotonic import (
    belief_steps,
    both_sides,
    contours,
    pool_ties,
)
from dubito.calibration._lifting import LiftedEvidentialCalibrator

if TYPE_CHECKING:
    import numpy.typing as npt

    from dubito._checks import BoolArray, FloatArray


@dataclass(frozen=True)
class EvidentialIsotonicMap:
    """Counts at the distinct scores, and belief and plausibility on the steps between.

    ``lower[j]`` is the belief at scores with j knots at or left of them, ``upper[j]`` the
    plausibility at scores with j knots strictly left of them.
    """

    knots: FloatArray
    successes: FloatArray
    failures: FloatArray
    lower: FloatArray
    upper: FloatArray

    def proba(self, score: FloatArray) -> FloatArray:
        """Return the pignistic probability of the event for each score, (n,)."""
        lower, upper = self.bounds(score)
        return 0.5 * (lower + upper)

    def bounds(self, score: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return belief and plausibility of the event for each score, each (n,)."""
        at_or_left = np.searchsorted(self.knots, score, side="right")
        left = np.searchsorted(self.knots, score, side="left")
        return self.lower[at_or_left], self.upper[left]

    def contour(self, score: FloatArray, theta: FloatArray) -> FloatArray:
        """Return the plausibility of each probability θ for each score, (n, len(theta))."""
        at_or_left = np.searchsorted(self.knots, score, side="right")
        left = np.searchsorted(self.knots, score, side="left")
        return contours(left + at_or_left, theta, both_sides(self.successes, self.failures))


class EvidentialIsotonicCalibrator(LiftedEvidentialCalibrator):
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

    where :math:`[v_{lo},v_{hi}]` are the values of plausibility 1: one value at a score seen and
    inside a block of the isotonic fit, all between two neighbouring blocks where s separates them,
    and those from 0 to the first value below all scores. Both are exact; how they are computed, and
    why without any refit, is told in ``dubito._kernels.isotonic``.

    Limits: belief and plausibility never fall as s rises. Below all scores Bel = 0, above all
    Pl = 1: nothing is claimed where nothing was seen. More rows narrow the interval, at the rate
    :math:`n^{-1/3}` of isotonic regression where f rises and :math:`n^{-1/2}` where it is flat.
    With one row at s of class 1, Bel = 1/2 at and above s, and 0 below.

    `predict_proba` gives the middle of belief and plausibility, their pignistic probability: never
    0 or 1, as the isotonic estimate is beyond the last error of the classifier. The estimate itself
    is that of `IsotonicCalibrator`.

    More than two classes: one map for each class against the rest; bounds are the exact range of
    the normalised probabilities.

    Parameters
    ----------
    input : {"margin", "logits", "proba"}, default="margin"
        What the scores are. Bounds see only their order.
    floor : float or "auto", default="auto"
        Probabilities below it are raised to it before their logarithm is taken. "auto" is half of
        the smallest positive one in the fit, within 1e-16 and 0.01: what a forest calls impossible
        is then a little less likely than what it has seen once.
    classes : array-like of shape (K,), optional
        Labels in the order of the columns, needed when `y` lacks some.

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
    >>> calibrator.contour([0], [0.25, 0.5, 0.75])
    array([[0.75, 1.  , 0.75]])
    """

    def __init__(
        self,
        *,
        input: str = "margin",
        floor: float | str = "auto",
        classes: npt.ArrayLike | None = None,
    ) -> None:
        super().__init__(input=input, floor=floor, classes=classes)

    def _fit_map(
        self, score: FloatArray, event: BoolArray, weight: FloatArray
    ) -> EvidentialIsotonicMap:
        distinct, successes, failures = pool_ties(score, event, weight)
        lower, upper = belief_steps(successes, failures)
        return EvidentialIsotonicMap(distinct, successes, failures, lower, upper)
