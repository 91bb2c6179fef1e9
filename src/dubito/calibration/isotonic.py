"""Isotonic calibration: the most likely probabilities that never fall as the score rises."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar

from dubito._compat import Interval
from dubito._numerics.isotonic import belief_steps, interpolate, isotonic_fit, pool_ties
from dubito.belief.bounds import including
from dubito.calibration.base import BaseCalibrator, UncachedStateMixin
from dubito.calibration.evidential_isotonic import EvidentialIsotonicMap
from dubito.calibration.one_vs_rest import OneVsRestCalibrator

if TYPE_CHECKING:
    import numpy.typing as npt

    from dubito._typing import BoolArray, FloatArray


@dataclass(frozen=True)
class IsotonicMap(UncachedStateMixin):
    """Fitted values at the distinct scores, linear between them, constant beyond.

    Bounds are those of `EvidentialIsotonicCalibrator` from the same counts, computed at the first
    call and widened to contain the fitted values.
    """

    knots: FloatArray
    values: FloatArray
    successes: FloatArray
    failures: FloatArray

    @cached_property
    def evidential_map(self) -> EvidentialIsotonicMap:
        """The evidential map of the same counts."""
        bounds = belief_steps(self.successes, self.failures)
        return EvidentialIsotonicMap(self.knots, self.successes, self.failures, *bounds)

    def bounds(self, score: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return belief and plausibility of the event for each score, each (n,)."""
        return including(self.proba(score), self.evidential_map.bounds(score))

    def level_bounds(self, score: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
        """Return bounds that contain the event's probability at a confidence level, each (n,)."""
        return including(self.proba(score), self.evidential_map.level_bounds(score, level))

    def contour(self, score: FloatArray, theta: FloatArray) -> FloatArray:
        """Return the plausibility of each probability θ for each score, (n, len(theta))."""
        return self.evidential_map.contour(score, theta)

    def proba(self, score: FloatArray) -> FloatArray:
        """Return the probability of the event for each score, (n,)."""
        return interpolate(score, self.knots, self.values)


class IsotonicCalibrator(OneVsRestCalibrator):
    r"""Isotonic regression of the event on the score.

    Among non-decreasing functions f of the score the one of greatest likelihood
    :math:`\prod f(s_i)^{y_i}(1-f(s_i))^{1-y_i}`, found by pooling adjacent violators; linear
    between the scores of the fit, constant beyond them.

    The plain estimate is 0 below the lowest event and 1 above the highest non-event, and one test
    row there can make the log loss infinite. `smoothing` λ therefore adds λ events to the lowest
    score and λ non-events to the highest. The function stays isotonic, only the end blocks change
    much, and a single block of k events among n rows gets :math:`(k+\lambda)/(n+2\lambda)`,
    Laplace's rule for λ = 1. In trials with 100 to 10,000 rows λ = 1 had a lower log loss than
    Platt's smoothed targets or clipping at 1/n, except where scores nearly separate the classes.

    More than two classes: one map for each class against the rest, normalised, and mixed with the
    base rate at the weight 1/(n+1) of one row, so that none is 0.

    ``predict_bounds``, also with ``level=0.9``, is that of `EvidentialIsotonicCalibrator`, widened
    to contain the probability.

    Parameters
    ----------
    smoothing : float, default=1.0
        Weight added at each end. Any positive value keeps probabilities off 0 and 1; with 0 the
        map is that of scikit-learn's ``IsotonicRegression(out_of_bounds="clip")``.
    input : {"margin", "logits", "proba", "log_proba"}, default="margin"
        What the scores are. Probabilities are mapped as log-odds, and interpolated as such.
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
        Fitted maps, with their ``knots`` and ``values``: one for two classes, else one for each
        class.

    References
    ----------
    Zadrozny, B. and Elkan, C. (2002). Transforming classifier scores into accurate multiclass
    probability estimates. KDD.

    Examples
    --------
    >>> from dubito.calibration import IsotonicCalibrator
    >>> scores, y = [-3, -2, -1, 1, 2, 3], [0, 0, 1, 0, 1, 1]
    >>> IsotonicCalibrator(smoothing=0).fit(scores, y).predict_proba([-4, 0, 4])
    array([[1. , 0. ],
           [0.5, 0.5],
           [0. , 1. ]])
    >>> IsotonicCalibrator().fit(scores, y).predict_proba([-4, 0, 4]).round(3)
    array([[0.667, 0.333],
           [0.5  , 0.5  ],
           [0.333, 0.667]])
    """

    uses_ranks: ClassVar[bool] = True

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaseCalibrator._parameter_constraints,
        "smoothing": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        *,
        smoothing: float = 1.0,
        input: str = "margin",
        floor: float | str = "auto",
        classes: npt.ArrayLike | None = None,
    ) -> None:
        super().__init__(input=input, floor=floor, classes=classes)
        self.smoothing = smoothing

    def node_map_spec(self) -> tuple[str, dict[str, Any]] | None:
        """Return the name and options with which all tree nodes are fitted at once, or None."""
        is_plain = type(self) is IsotonicCalibrator
        return ("isotonic", {"smoothing": self.smoothing}) if is_plain else None

    def _fit_map(self, score: FloatArray, event: BoolArray, weight: FloatArray) -> IsotonicMap:
        distinct, successes, failures = pool_ties(score, event, weight)
        smoothed = successes.copy(), failures.copy()
        smoothed[0][0] += self.smoothing
        smoothed[1][-1] += self.smoothing
        return IsotonicMap(distinct, isotonic_fit(*smoothed), successes, failures)
