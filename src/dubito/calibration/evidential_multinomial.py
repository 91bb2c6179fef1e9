"""Evidential multinomial calibration (Xu et al., 2015): one slope for K classes, with bounds."""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from dubito._compat import Interval, StrOptions
from dubito._numerics.row_subsets import row_chunks
from dubito._numerics.softmax import log_softmax, softmax_in_place
from dubito._numerics.targets import class_targets
from dubito.belief import Frame, MassBatch
from dubito.belief.bounds import including
from dubito.calibration._kernels import slope_couplings, slope_level, slope_likelihood
from dubito.calibration._kernels.slope_quadrature import QuadraturePoints, quadrature_points
from dubito.calibration.base import BaseCalibrator, count_classes
from dubito.calibration.errors import CalibrationInputError, warn_unless_converged

if TYPE_CHECKING:
    import numpy.typing as npt

    from dubito._typing import FloatArray, IntArray

#: Factor on the number of quadrature points, for integrands that have a kink where they become 0:
#: panels are then short and end there. 0: a rule for smooth integrands.
_REFINE = {"gumbel": 0, "envelope": 4, "inverse_cdf": 1}
#: Largest number of classes for which mass functions are listed.
_MASS_LIMIT = 12
#: Factor on the number of quadrature points for masses of sets, whose integrands have kinks inside
#: panels.
_MASS_REFINE = 8


def shifted_scores(u: FloatArray, points: QuadraturePoints) -> FloatArray:
    """Return log scores minus the largest of their row, scaled to range 1 for relative points."""
    shifted = u - u.max(axis=1, keepdims=True)
    if points.relative:
        widest = -shifted.min(axis=1, keepdims=True)
        shifted /= np.where(widest > 0, widest, 1.0)
    return shifted


def slope_belief(
    shifted: FloatArray, points: QuadraturePoints, slope: float, coupling: str
) -> tuple[FloatArray, FloatArray]:
    """Return belief and plausibility at `shifted_scores`, widened to contain the probability."""
    bounds = slope_couplings.belief_and_plausibility(shifted, points, coupling)
    return including(softmax_in_place(slope * shifted), bounds)


def slope_level_bounds(
    shifted: FloatArray, likelihoods: slope_level.SlopeLevelLikelihoods, slope: float, level: float
) -> tuple[FloatArray, FloatArray]:
    """Return bounds at a level at `shifted_scores`, widened to contain the probability."""
    interval = slope_level.slope_interval(likelihoods, level)
    bounds = slope_level.extreme_probabilities(shifted, interval)
    return including(softmax_in_place(slope * shifted), bounds)


def _has_mass(self: Any) -> bool:
    n_classes = count_classes(self)
    coupling = getattr(self, "_fitted_coupling", self.coupling)
    if n_classes == 2 or (coupling == "inverse_cdf" and n_classes <= _MASS_LIMIT):
        return True
    raise AttributeError(
        f'full masses of {n_classes} classes need coupling="inverse_cdf" and at most '
        f"{_MASS_LIMIT} classes; this is coupling={coupling!r}."
    )


class EvidentialMultinomialCalibrator(BaseCalibrator):
    r"""Multinomial calibration with one slope, with bounds from its likelihood (Xu et al., 2015).

    The probabilities are :math:`p_k(\theta)=e^{\theta s_k}/\sum_je^{\theta s_j}` with
    :math:`\theta\ge0` (eq. 21), and the relative likelihood of the calibration rows,
    :math:`pl(\theta)=L(\theta)/L(\hat\theta)` (eq. 26), is the plausibility of each slope.
    Its level sets :math:`\Gamma(\gamma)=[l,u]` and a random number that decides between classes
    (the coupling) make a random set of classes, whose belief and plausibility are the bounds:
    wide with few rows, closing on the probabilities as rows are added.

    Parameters
    ----------
    coupling : {"gumbel", "inverse_cdf", "envelope"}, default="gumbel"
        How one draw decides between classes for all slopes at once.

        * "gumbel": the class is :math:`\arg\max_k(\theta s_k+g_k)` with Gumbel noise. Bounds do
          not depend on the order of the labels and rise with the scores.
        * "inverse_cdf": the paper's (eq. 28-34), the class in whose part of
          :math:`[0,1]`, of length :math:`p_k`, one uniform number falls. The order of the labels
          matters: permuting them changes the bounds.
        * "envelope": the least and greatest :math:`p_k(\theta)` in :math:`\Gamma(\gamma)`,
          averaged over :math:`\gamma`: the narrowest pair, but not of a belief function.
    n_points : int, default=16
        Quadrature points in each panel of the integral over γ. Couplings whose
        integrands have kinks have shorter panels; "envelope" takes four times as many.
    targets : {"light", "smoothed", "raw"}, default="light"
        What the likelihood predicts. "light" has a quarter of a pseudo-observation in all, as
        `TemperatureCalibrator` has. "smoothed" is the paper's (eq. 25): K pseudo-observations for
        every class, which flatten probabilities if there are fewer than K rows per class. Both
        always have a maximum; "raw" ones have none where the true class has the largest score in
        every row, which is then an error. Bounds at a level do not depend on it.
    input : {"margin", "logits", "proba", "log_proba"}, default="margin"
        What the scores are. Probabilities are calibrated through their logarithms.
    floor : float or "auto", default="auto"
        Probabilities below it are raised to it before their logarithm is taken; "auto" chooses it
        on the rows of the fit, as in `AutoCalibrator`.
    classes : array-like of shape (K,), optional
        Labels in the order of the columns; needed if y lacks some.

    Attributes
    ----------
    slope_ : float
        :math:`\hat\theta`; 0 where higher scores go with other classes, or scores are constant.
    gradient_norm_ : float
        Certificate: gradient of the mean log-likelihood at `slope_`, in units of the widest row of
        scores; 0 at slope 0.
    n_iter_ : int
        Newton steps.
    misfit_ : float
        Fraction of calibration rows, of at most 32, at which the interval of the fitted probability
        and an isotonic one are disjoint. Above 1/6 bounds at a level come with a `MisfitWarning`.
    quadrature_ : QuadraturePoints
        Level sets and weights of the quadrature over γ.
    classes_ : ndarray of shape (K,)
    n_features_in_ : int

    See Also
    --------
    dubito.decision.interval_dominance : The classes that no other class dominates.

    Notes
    -----
    Deviations from the paper: integrals over γ are done by Gauss-Legendre in r with
    :math:`\gamma=e^{-r^2/2}`, not by Monte Carlo (eq. 32); level sets by Newton on the likelihood,
    not by dichotomy (Algorithm 1); the coupling is by Gumbel noise by default,
    because a belief should not depend on the order of the labels; lower bounds are given as well as
    the contour. With two classes all couplings are one.

    The integral has one panel of `n_points` where the likelihood is nearly Gaussian, and up to a
    dozen where it does not exclude slope 0 or the data are nearly separable. Errors,
    against rules many times finer: below 1e-8 ("gumbel"), 1e-6 ("envelope") and 3e-5
    ("inverse_cdf"; 1e-6 from some hundred rows), for rows up to a thousand times wider than the
    widest of the fit.

    With many more classes than rows per class, smoothed targets are nearly uniform whatever the
    scores are; the default is therefore "light", where the paper has smoothed targets.

    Bounds at a level are the least and greatest :math:`p_k(\theta)` over an interval of slopes:
    the smallest interval that contains the level sets
    :math:`\{\theta:pl(\theta)\ge e^{-t^2/2}\}`, with :math:`t^2` the quantile of :math:`\chi^2_1`
    at the level, of two likelihoods, one of raw labels and one with half a pseudo-observation. In
    simulations with the right form (``experiments/validity``: 3 to 10 classes, 10 to 1,000 rows,
    weak to strong slopes) bounds at level 0.9 contained the true probability in 0.88 to 0.99 of
    cases. Where raw labels have no maximum, because
    the true class always has the largest score, no large slope is excluded. `coupling` does not
    matter here. With two classes the map has no intercept: where the score's zero is not the point
    of even odds its form is wrong, and the level is not valid; use `EvidentialLogisticCalibrator`.

    Constant scores do not determine the slope: :math:`pl(\theta)=1` for all, `slope_` is 0, the
    level set is :math:`[0,\infty)` and the bounds include the probabilities of all slopes.

    References
    ----------
    P. Xu, F. Davoine, T. Denœux, "Evidential multinomial logistic regression for multiclass
    classifier calibration", FUSION 2015.

    Examples
    --------
    >>> import numpy as np
    >>> from dubito.calibration import EvidentialMultinomialCalibrator
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(3, size=30)
    >>> scores = rng.normal(size=(30, 3)) + 2 * np.eye(3)[y]
    >>> calibrator = EvidentialMultinomialCalibrator().fit(scores, y)
    >>> row = [[1.0, 0.5, -1.0]]
    >>> calibrator.predict_proba(row).round(2)
    array([[0.82, 0.18, 0.  ]])
    >>> bounds = calibrator.predict_bounds(row)
    >>> bounds.lower.round(2)
    array([[0.71, 0.08, 0.  ]])
    >>> calibrator.predict_bounds(row, level=0.9).lower.round(2)
    array([[0.66, 0.02, 0.  ]])
    >>> calibrator.predict_set([[1.0, 1.0, -1.0]])
    array([[ True,  True, False]])
    """

    evidential: ClassVar[bool] = True

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaseCalibrator._parameter_constraints,
        "coupling": [StrOptions(set(_REFINE))],
        "n_points": [Interval(Integral, 4, 1000, closed="both")],
        "targets": [StrOptions({"smoothed", "light", "raw"})],
    }

    _entries_per_class: ClassVar[int] = 32

    _assumes_form: ClassVar[bool] = True

    def __init__(
        self,
        *,
        coupling: str = "gumbel",
        n_points: int = 16,
        targets: str = "light",
        input: str = "margin",
        floor: float | str = "auto",
        classes: npt.ArrayLike | None = None,
    ) -> None:
        super().__init__(input=input, floor=floor, classes=classes)
        self.coupling = coupling
        self.n_points = n_points
        self.targets = targets

    def _fit(self, table: FloatArray, y: IntArray, weight: FloatArray) -> None:
        u = self._log_scores(table)
        targets = class_targets(y, weight, u.shape[1], self.targets)
        linear = slope_likelihood.linear_term(u, y, weight, targets)
        if linear == 0.0 and np.ptp(u, axis=1).any():
            raise CalibrationInputError(
                "the true class has the largest score in every row, so the likelihood grows with "
                'the slope and has no maximum with targets="raw"; use targets="light".'
            )
        self._fitted = slope_likelihood.fit_likelihood(u, weight, linear)
        self._level_likelihoods = slope_level.slope_level_likelihoods(u, y, weight)
        self.slope_ = self._fitted.slope
        self.gradient_norm_ = self._fitted.gradient_norm
        fits = (self._fitted, *self._level_likelihoods)
        warn_unless_converged(self, max(fit.gradient_norm for fit in fits))
        self.n_iter_ = self._fitted.n_iter
        self._fitted_coupling, self._fitted_n_points = self.coupling, self.n_points
        self.quadrature_ = quadrature_points(
            self._fitted, self.n_points, refine=_REFINE[self.coupling]
        )

    def slope_contour(self, theta: npt.ArrayLike) -> FloatArray:
        r"""Return the relative likelihood of slopes, :math:`L(\theta)/L(\hat\theta)` (eq. 26).

        Parameters
        ----------
        theta : array-like
            Slopes, not negative.

        Returns
        -------
        ndarray of the same shape
            Below 1e-16 only an upper limit.
        """
        check_is_fitted(self)
        slopes = np.asarray(theta, dtype=np.float64)
        if not (slopes >= 0).all():
            raise ValueError("theta must not be negative or nan: slopes lie in [0, inf).")
        if self._fitted.score_range == 0:
            return np.ones_like(slopes)
        away = np.minimum(np.abs(slopes - self.slope_), np.finfo(float).max).ravel()
        excess = np.where(
            slopes.ravel() < self.slope_,
            slope_likelihood.excess_at(self._fitted.below, away),
            slope_likelihood.excess_at(self._fitted.above, away),
        )
        return np.exp(-excess).reshape(slopes.shape)[()]

    def level_set(self, gamma: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
        r"""Return the ends of :math:`\Gamma(\gamma)=\{\theta:pl(\theta)\ge\gamma\}` (eq. 27).

        Parameters
        ----------
        gamma : array-like
            Relative likelihoods in (0, 1]; those below 1e-16 count as 1e-16.

        Returns
        -------
        lower, upper : ndarray of the same shape
            The lower end is 0 where slope 0 is in the set.
        """
        check_is_fitted(self)
        gamma = np.asarray(gamma, dtype=np.float64)
        if not ((gamma > 0) & (gamma <= 1)).all():
            raise ValueError("gamma must lie in (0, 1]: relative likelihoods do.")
        excess = np.minimum(-np.log(gamma), slope_likelihood.LARGEST_EXCESS).ravel()
        lower, upper = slope_likelihood.level_set(self._fitted, excess)
        return lower.reshape(gamma.shape)[()], upper.reshape(gamma.shape)[()]

    @available_if(_has_mass)
    def predict_mass(self, scores: Any) -> MassBatch:
        r"""Return the predictive mass functions, where the coupling gives them.

        For two classes always; for up to 12 with ``coupling="inverse_cdf"``. Belief and
        plausibility of single classes agree with `predict_bounds`, which is more accurate, to 5e-5.

        Parameters
        ----------
        scores : array-like
            As in `fit`.

        Returns
        -------
        MassBatch
            Dense.
        """
        check_is_fitted(self)
        frame = Frame(self.classes_)
        if len(frame) == 2:
            lower = self.predict_bounds(scores).lower
            rest = np.maximum(1 - lower.sum(axis=1), 0.0)
            return MassBatch(frame, frame.subsets(), np.column_stack([lower, rest]))
        table = self._read_new_scores(scores)
        chunks = row_chunks(len(table), 2 ** len(frame), 2**20)
        parts = [self._shifted(table[rows]) for rows in chunks]
        points = quadrature_points(self._fitted, self._fitted_n_points, refine=_MASS_REFINE)
        mass = np.concatenate([slope_couplings.inverse_cdf_mass(part, points) for part in parts])
        return MassBatch(frame, frame.subsets(), mass)

    def _shifted(self, table: FloatArray) -> FloatArray:
        return shifted_scores(self._log_scores(table), self.quadrature_)

    def _proba(self, table: FloatArray) -> FloatArray:
        return softmax_in_place(self.slope_ * self._shifted(table))

    def _log_proba(self, table: FloatArray) -> FloatArray:
        return log_softmax(self.slope_ * self._shifted(table))

    def _bounds(self, table: FloatArray) -> tuple[FloatArray, FloatArray]:
        return slope_belief(
            self._shifted(table), self.quadrature_, self.slope_, self._fitted_coupling
        )

    def _level_bounds(self, table: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
        return slope_level_bounds(self._shifted(table), self._level_likelihoods, self.slope_, level)
