"""Venn-Abers calibration: isotonic regression with the new row added, once with each label."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np
from sklearn.utils.metaestimators import available_if

from dubito._compat import StrOptions
from dubito._numerics.isotonic import inserted_steps, pool_ties
from dubito._validation import level_of_each
from dubito.belief.bounds import including
from dubito.calibration.base import BaseCalibrator
from dubito.calibration.evidential_isotonic import EvidentialIsotonicMap
from dubito.calibration.one_vs_rest import (
    OneVsRestCalibrator,
    normalise_bounds,
    normalise_proba,
)

if TYPE_CHECKING:
    import numpy.typing as npt

    from dubito._typing import BoolArray, FloatArray, IntArray


#: Returns bounds of the second class of a pair from its map and the differences of scores.
_PairBounds: TypeAlias = Callable[["VennAbersMap", "FloatArray"], tuple["FloatArray", "FloatArray"]]


@dataclass(frozen=True)
class VennAbersMap(EvidentialIsotonicMap):
    """An isotonic map whose `lower` and `upper` are the fits with each label added at the score.

    The steps of both are computed by `dubito._numerics.isotonic.inserted_steps`, for every place
    among the calibration scores at which the row may be added.
    """

    def proba(self, score: FloatArray) -> FloatArray:
        """Return p1 / (1 - p0 + p1) for each score, (n,)."""
        p0, p1 = self.bounds(score)
        return np.clip(p1 / (1 - p0 + p1), p0, p1)

    def bounds(self, score: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return p0 and p1: the fits with a non-event and with an event added at each score."""
        p0, p1 = super().bounds(score)
        return p0, np.maximum(p0, p1)  # p0 exceeds p1 by rounding where weights are huge


def _has_contour(calibrator: Any) -> bool:
    """Return True if each map is of one class against the rest, so that contours exist.

    Else raise an AttributeError.
    """
    if not getattr(calibrator, "one_against_one_", False):
        return True
    raise AttributeError(
        'VennAbersCalibrator(multiclass="ovo") has likelihoods of pairs of classes, not of '
        'a class against the rest. Use multiclass="ovr".'
    )


class VennAbersCalibrator(OneVsRestCalibrator):
    r"""Two isotonic fits for each row, one with each label, without any refit.

    The row to predict is added to the calibration rows, once as an event and once as its opposite;
    isotonic regression then fits :math:`p_1` and :math:`p_0` at its score (Vovk and Petej, 2014).
    An added row multiplies the profile likelihood :math:`\mathrm{pl}(\theta;s)` of
    `EvidentialIsotonicCalibrator` by :math:`\theta` or :math:`1-\theta`, so

    .. math:: p_1=\arg\max_\theta\;\theta\,\mathrm{pl}(\theta;s),\qquad
              p_0=\arg\max_\theta\;(1-\theta)\,\mathrm{pl}(\theta;s),

    which depend on s only through its rank among the calibration scores: `fit` computes them for
    every rank, and prediction looks them up. ``predict_proba`` gives
    :math:`p_1/(1-p_0+p_1)`, the probability of least regret under log loss,
    ``predict_bounds`` gives :math:`[p_0,p_1]`.

    **What is guaranteed.** If calibration rows and new rows are exchangeable, one of the two, that
    of the row's true label, is calibrated, whatever their distribution. :math:`[p_0,p_1]` need not
    contain the probability of the event: with many rows the two are far closer to each other than
    to it; in simulations with 1,000 rows they contained it in 24 % of cases. Bounds that contain it
    come with ``level=``: those of `EvidentialIsotonicCalibrator`, from the same likelihood.

    More than two classes, ``multiclass="ovr"``: one map for each class against the rest,
    normalised; bounds are the exact range of the normalised probabilities. Both are mixed with the
    base rate at the weight 1/(n+1) of one row. ``"ovo"``: one map for each pair of classes, on
    the difference of their scores and the rows of the two. With
    :math:`r_{kj}` the probability of k among k and j,

    .. math:: p_k=\Bigl(\sum_{j\ne k}\frac1{r_{kj}}-(K-2)\Bigr)^{-1},

    which is an identity for probabilities, then normalised. It rises with each :math:`r_{kj}`:
    bounds of the pairs give bounds of :math:`p_k`, and those of all classes bounds of the
    normalised ones. At a level each pair of class k has the level 1 - (1-level)/(K-1).

    Parameters
    ----------
    multiclass : {"ovr", "ovo"}, default="ovr"
        How more than two classes are reduced to two: one against the rest, or one against one.
    input : {"margin", "logits", "proba", "log_proba"}, default="margin"
        What the scores are. With two classes only their order matters.
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
        Fitted maps: one for two classes, one for each class, or one for each pair of classes
        (0, 1), (0, 2), ... of which the second is the event.
    one_against_one_ : bool
        Whether maps are of pairs of classes.

    Notes
    -----
    The added row has weight 1, whatever the weights of the calibration rows.

    References
    ----------
    Vovk, V. and Petej, I. (2014). Venn-Abers predictors. UAI.

    Manokhin, V. (2017). Multi-class probabilistic classification using inductive and cross
    Venn-Abers predictors. COPA.

    Examples
    --------
    >>> from dubito.calibration import VennAbersCalibrator
    >>> scores, y = [-3, -2, -1, 1, 2, 3], [0, 0, 1, 0, 1, 1]
    >>> calibrator = VennAbersCalibrator().fit(scores, y)
    >>> bounds = calibrator.predict_bounds([-2, 0, 2])
    >>> bounds.lower[:, 1].round(3)
    array([0.   , 0.333, 0.5  ])
    >>> bounds.upper[:, 1].round(3)
    array([0.5  , 0.667, 1.   ])
    >>> calibrator.predict_proba([-2, 0, 2])[:, 1].round(3)
    array([0.333, 0.5  , 0.667])
    """

    #: What the bounds are, for reports (`dubito._bounds_meaning`).
    _bounds_kind: ClassVar[str] = "venn_abers"

    evidential: ClassVar[bool] = True

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaseCalibrator._parameter_constraints,
        "multiclass": [StrOptions({"ovr", "ovo"})],
    }

    def __init__(
        self,
        *,
        multiclass: str = "ovr",
        input: str = "margin",
        floor: float | str = "auto",
        classes: npt.ArrayLike | None = None,
    ) -> None:
        super().__init__(input=input, floor=floor, classes=classes)
        self.multiclass = multiclass

    def _fit_map(self, score: FloatArray, event: BoolArray, weight: FloatArray) -> VennAbersMap:
        distinct, successes, failures = pool_ties(score, event, weight)
        return VennAbersMap(distinct, successes, failures, *inserted_steps(successes, failures))

    def _fit(self, table: FloatArray, y: IntArray, weight: FloatArray) -> None:
        self.one_against_one_ = self.multiclass == "ovo" and len(self.classes_) > 2
        if not self.one_against_one_:
            super()._fit(table, y, weight)
            return
        scores = self._log_scores(table)
        self.maps_ = []
        for first, second in combinations(range(len(self.classes_)), 2):
            rows = (y == first) | (y == second)
            margin = scores[rows, second] - scores[rows, first]
            self.maps_.append(self._fit_map(margin, y[rows] == second, weight[rows]))
        self._set_base_rate(y, weight)

    def _proba(self, table: FloatArray) -> FloatArray:
        if not self.one_against_one_:
            return super()._proba(table)
        return self._mixed(normalise_proba(self._couple(table, _twice_proba)[0]))

    def _bounds(self, table: FloatArray) -> tuple[FloatArray, FloatArray]:
        if not self.one_against_one_:
            return super()._bounds(table)
        lower, upper = map(self._mixed, normalise_bounds(*self._couple(table, VennAbersMap.bounds)))
        return including(self._proba(table), (lower, upper))

    def _level_bounds(self, table: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
        if not self.one_against_one_:
            return super()._level_bounds(table, level)
        # Bonferroni: the bounds of all pairs of a class are valid together.
        of_pairs = level_of_each(level, len(self.classes_) - 1)
        bounds = self._couple(table, lambda m, margin: m.level_bounds(margin, of_pairs))
        return including(self._proba(table), bounds)

    def _couple(self, table: FloatArray, bounds_of: _PairBounds) -> tuple[FloatArray, FloatArray]:
        """Return bounds (n, K) of p_k from bounds of the pairs: 1/p_k = sum of 1/r_kj - (K-2)."""
        scores = self._log_scores(table)
        n_classes = len(self.classes_)
        largest, smallest = (np.full((len(table), n_classes), 2.0 - n_classes) for _ in range(2))
        pairs = combinations(range(n_classes), 2)
        with np.errstate(divide="ignore"):  # a pair may give a class the probability 0
            for (first, second), pair in zip(pairs, self.maps_, strict=True):
                lower, upper = bounds_of(pair, scores[:, second] - scores[:, first])
                largest[:, second] += 1 / lower
                largest[:, first] += 1 / (1 - upper)
                smallest[:, second] += 1 / upper
                smallest[:, first] += 1 / (1 - lower)
        return 1 / largest, 1 / smallest

    @available_if(_has_contour)
    def contour(self, scores: Any, theta: npt.ArrayLike) -> FloatArray:
        """Return the contour of `EvidentialIsotonicCalibrator`, for each class against the rest.

        Parameters
        ----------
        scores : array-like
            As in `fit`.
        theta : array-like of shape (t,)
            Probabilities of ``classes_[1]``; with more than two classes, of each class against the
            rest.

        Returns
        -------
        ndarray of shape (n, t), or (n, K, t) with more than two classes
        """
        return super().contour(scores, theta)


def _twice_proba(pair: VennAbersMap, margin: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the probability of a pair as both of its bounds."""
    proba = pair.proba(margin)
    return proba, proba
