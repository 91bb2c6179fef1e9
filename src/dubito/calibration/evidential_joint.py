"""Evidential joint calibration of several classifiers (Minary et al., 2017)."""

from __future__ import annotations

from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from joblib import effective_n_jobs
from sklearn.utils.metaestimators import available_if

from dubito._compat import Interval, StrOptions
from dubito._wording import counted
from dubito.belief.bounds import including
from dubito.calibration._binary_joint_model import JointSettings, fit_binary
from dubito.calibration._kernels.label_mismatch import find_mismatch
from dubito.calibration._softmax_joint_model import fit_softmax
from dubito.calibration.base import (
    BaseCalibrator,
    TwoClassMassMixin,
    check_theta,
    count_classes,
)
from dubito.calibration.errors import (
    CalibrationInputError,
    warn_of_mismatch,
    warn_unless_converged,
)
from dubito.calibration.scores import (
    INPUTS,
    binary_log_odds,
    check_kind,
    choose_floor,
    finite_scores,
    log_scores,
)

if TYPE_CHECKING:
    import numpy.typing as npt

    from dubito._typing import FloatArray, IntArray


def _has_contour(calibrator: Any) -> bool:
    n_classes = count_classes(calibrator)
    if n_classes == 2:
        return True
    raise AttributeError(
        f"the contour of a probability is known for two classes; of {n_classes} use predict_bounds."
    )


class EvidentialJointCalibrator(TwoClassMassMixin, BaseCalibrator):
    r"""Calibrate several classifiers together, with belief and plausibility from the likelihood.

    Two classes (Minary et al., 2017): the scores :math:`s_1,\ldots,s_J` of J binary classifiers go
    into one logistic regression, :math:`\theta=\sigma(b+\sum_ja_js_j)`, whose slopes have any sign.
    The contour of :math:`\theta` is the profile likelihood (eq. 10), and (eq. 3)

    .. math:: \mathrm{Bel}=\hat\theta-\int_0^{\hat\theta}pl(u)\,du,\qquad
        \mathrm{Pl}=\hat\theta+\int_{\hat\theta}^1pl(u)\,du.

    ``predict_bounds(scores, level=0.9)`` contains the true probability about nine times in ten if
    the model's form is right. For two classes it is the smallest interval that contains the level
    sets :math:`\{\theta:-2\log pl(\theta)\le\chi^2_1(0.9)\}` of two likelihoods without a
    ridge: of raw targets, and of p/2 pseudo-observations of unknown label added to the rows, p the
    number of coefficients. Where a combination of the scores separates the classes, the end on that
    side is 0 or 1.

    K > 2 classes (not in the paper): class k has the utility :math:`u_k=\sum_ja_js_{jk}`, with
    :math:`a_j\ge0`, plus a bias :math:`b_k` with ``bias=True``; the probabilities are their
    softmax. With :math:`\Gamma(\gamma)` the coefficients of relative likelihood at least
    :math:`\gamma`,

    .. math:: \mathrm{upper}_k=\int_0^1\max_{\Gamma(\gamma)}p_k\,d\gamma,\qquad
        \mathrm{lower}_k=\int_0^1\frac{d\gamma}{\sum_l\exp\max_{\Gamma(\gamma)}(u_l-u_k)}.

    The upper one is exact, a concave problem. The lower one is the belief when Gumbel noise decides
    between classes; it is exact for that, and never above
    :math:`\int\min_{\Gamma(\gamma)}p_k\,d\gamma`, so as a lower probability it is conservative.

    Parameters
    ----------
    targets : {"light", "smoothed", "raw"}, default="light"
        What the likelihood predicts. "light": a quarter of a pseudo-observation of
        unknown label in all. "smoothed": :math:`(n_k+1)/(n_k+K)` for a row's own class k and
        :math:`1/(n_k+K)` for each other (Platt's for two classes), as published; nearly uniform
        where classes are many and rows few. "raw": plain 1, 0, which have no maximum-likelihood
        estimate when some combination of the scores separates the classes; this raises
        `CalibrationInputError`.
    ridge : float or "auto", default=0
        Adds :math:`\frac12\mathrm{ridge}\sum_j\tilde a_j^2` over slopes of standardised scores to
        the negative log-likelihood: helps where rows are few relative to classifiers. Belief and
        plausibility are then those of the penalised likelihood; bounds at a level have no ridge.
        "auto": the strength with the largest marginal likelihood (MacKay, 1992), for the
        probabilities only: no bounds have a ridge.
    bias : bool or "auto", default="auto"
        Whether classes have biases; "auto" is True for two classes, as in the paper, and for more
        False, unless ``ridge="auto"``: then they have a ridge by the marginal likelihood, about
        their mean, and are left out where that is stronger than 100, or where the fit would take
        long.
    likelihood : {"auto", "exact", "quadratic"}, default="auto"
        What bounds are computed from: the likelihood, or its quadratic approximation at the
        estimate (Laplace), whose cost does not depend on the number of calibration rows and whose
        error is about 1/n. "auto" is exact unless a row would take more than about ten
        milliseconds; ``likelihood_`` is the choice.
    input : {"margin", "logits", "proba", "log_proba"} or a list of them, default="margin"
        What the scores are; a list has one entry for each classifier.
    floor : float or "auto", default="auto"
        Probabilities below it are raised to it before their logarithm is taken; "auto" chooses it
        for each classifier on the rows of the fit, as in `AutoCalibrator`.
    classes : array-like of shape (K,), optional
        Labels in the order of the columns; needed if y lacks some.
    n_jobs : int, optional
        Threads for bounds and contours; None: 1, -1: all processors.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        Class labels.
    slope_ : ndarray of shape (J,)
        :math:`\hat a_j`, in the units of the scores.
    intercept_ : float, or ndarray of shape (K,) with more than two classes
        :math:`\hat b`; zero without biases.
    likelihood_ : {"exact", "quadratic"}
        What bounds are computed from.
    ridge_ : ndarray of shape (1,) or (2,)
        Strength of the slopes' ridge, and of the biases' where ``ridge="auto"`` includes them.
    n_iter_, gradient_norm_ : int, float
        Newton steps, and the largest component of the (projected) gradient at the
        estimate, for standardised scores, per unit of sample weight.
    misfit_ : float
        Fraction of calibration rows, of at most 32, at which the interval of the fitted probability
        and an isotonic one are disjoint. Above 1/6 bounds at a level come with a `MisfitWarning`.
    n_features_in_ : int
        J.

    See Also
    --------
    EvidentialFusion : Does this for classifiers in place of scores.
    EvidentialLogisticCalibrator : The same for one score.

    Notes
    -----
    Scores are standardised inside, each classifier by itself: rescaling a score changes nothing.
    A classifier with constant scores has slope 0. Classifiers that are nearly copies of each other
    have slopes that nearly cancel; a ridge keeps them small.

    The first call on a machine compiles the kernels, which takes about a minute and is cached.

    Two classes: where the calibration rows do not span the space of scores (copies of a classifier,
    or fewer rows than classifiers) a new row outside their span could have any probability at
    the same likelihood: its bounds are 0 and 1, unless there is a ridge. Bounds are accurate to
    about 1e-8.

    More classes: bounds are accurate to about 1e-7 (of the quadratic likelihood too). If the path
    of constrained maxima cannot be followed, in about one case of a thousand where slopes reach
    zero, it is treated as unbounded: the bounds are then too wide. The same holds for rows outside
    the span of the calibration rows if more than five directions are undetermined. A fit whose
    gradient is not near 0 raises an error. With fewer rows than coefficients and no ridge the
    likelihood is flat in some directions: belief and plausibility are then computed from 31
    certified levels, and are too wide by up to 1/32. Use a ridge there.

    Bounds of more classes at a level: the upper one is exact, the lower one conservative. The
    certified gap of each maximum is added, so they are right or too wide; compared with a generic
    optimiser they were too narrow by at most 1e-7, also with fewer rows than classifiers.

    Deviations from the paper: positive slopes mean class 1, where the paper writes
    :math:`1/(1+e^{\sigma_0+\sigma_1s_1+\ldots})`; targets are light by default; the integrals
    are by an adaptive rule along the path of constrained maxima, one for each row, in place of a
    maximisation for each value of :math:`\theta`.

    References
    ----------
    P. Minary, F. Pichon, D. Mercier, E. Lefevre, B. Droit, "Evidential joint calibration of
    binary SVM classifiers using logistic regression", SUM 2017.

    Examples
    --------
    Two detectors of the same event:

    >>> import numpy as np
    >>> from dubito.calibration import EvidentialJointCalibrator
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([0, 1], 20)
    >>> scores = rng.normal(size=(40, 2)) + np.outer(y, [2, 1])
    >>> calibrator = EvidentialJointCalibrator().fit(scores, y)
    >>> calibrator.predict_proba([[2.0, 1.0], [0.5, 0.5]]).round(2)
    array([[0.03, 0.97],
           [0.87, 0.13]])
    >>> calibrator.predict_bounds([[2.0, 1.0], [0.5, 0.5]]).lower.round(2)
    array([[0.  , 0.87],
           [0.68, 0.04]])
    >>> calibrator.predict_bounds([[2.0, 1.0], [0.5, 0.5]], level=0.9).lower.round(2)
    array([[0.  , 0.76],
           [0.57, 0.01]])

    Two classifiers of three classes: scores have shape (n, 2, 3).

    >>> y = np.repeat([0, 1, 2], 10)
    >>> scores = rng.normal(size=(30, 2, 3)) + 2 * np.eye(3)[y][:, None, :]
    >>> calibrator = EvidentialJointCalibrator().fit(scores, y)
    >>> calibrator.predict_bounds([[[2, 1, 0], [1, 2, 0]]]).upper.round(2)
    array([[0.71, 0.95, 0.02]])
    """

    evidential: ClassVar[bool] = True

    _reads_members: ClassVar[bool] = True

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaseCalibrator._parameter_constraints,
        "targets": [StrOptions({"smoothed", "light", "raw"})],
        "ridge": [Interval(Real, 0, None, closed="left"), StrOptions({"auto"})],
        "bias": ["boolean", StrOptions({"auto"})],
        "likelihood": [StrOptions({"auto", "exact", "quadratic"})],
        "input": [StrOptions(set(INPUTS)), list, tuple],
        "n_jobs": [Integral, None],
    }

    _assumes_form: ClassVar[bool] = True

    def __init__(
        self,
        *,
        targets: str = "light",
        ridge: float | str = 0.0,
        bias: bool | str = "auto",
        likelihood: str = "auto",
        input: str | list[str] = "margin",
        floor: float | str = "auto",
        classes: npt.ArrayLike | None = None,
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(input=input, floor=floor, classes=classes)
        self.targets = targets
        self.ridge = ridge
        self.bias = bias
        self.likelihood = likelihood
        self.n_jobs = n_jobs

    def _fit(self, table: FloatArray, y: IntArray, weight: FloatArray) -> None:
        ridge = None if isinstance(self.ridge, str) else float(self.ridge)
        settings = JointSettings(self.targets, ridge, self._has_bias(), self.likelihood)
        fit: Any = fit_binary if len(self.classes_) == 2 else fit_softmax
        self.model_ = fit(self._joint_scores(table), y, weight, settings)
        self.slope_ = self.model_.slope
        self.intercept_ = self.model_.intercept
        self.likelihood_ = self.model_.likelihood
        self.ridge_ = self.model_.ridge
        self.n_iter_ = self.model_.n_iter
        self.gradient_norm_ = self.model_.gradient_norm
        if len(self.classes_) == 2:
            warn_unless_converged(self, self.model_.largest_gradient_norm)

    def _proba(self, table: FloatArray) -> FloatArray:
        return self.model_.proba(self._joint_scores(table))

    def _bounds(self, table: FloatArray) -> tuple[FloatArray, FloatArray]:
        return self.model_.bounds(self._joint_scores(table), effective_n_jobs(self.n_jobs))

    def _level_bounds(self, table: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
        """Return the model's bounds at the level, widened to contain its probabilities.

        The estimate may have other targets than the bounds, or a ridge.
        """
        scores = self._joint_scores(table)
        bounds = self.model_.level_bounds(scores, level, effective_n_jobs(self.n_jobs))
        return including(self.model_.proba(scores), bounds)

    @available_if(_has_contour)
    def contour(self, scores: Any, theta: npt.ArrayLike) -> FloatArray:
        r"""Return the contour: the plausibility of each value of the probability at each score.

        It is the relative likelihood of :math:`\theta`, 1 for the most plausible value (eq. 10).

        Parameters
        ----------
        scores : array-like
            As in `fit`.
        theta : array-like of shape (t,)
            Probabilities of ``classes_[1]``. With more than two classes the method is absent:
            only a bound of the likelihood of small probabilities is known.

        Returns
        -------
        ndarray of shape (n, t)
        """
        values = check_theta(theta)
        parts = [
            self.model_.contour(self._joint_scores(part), values, effective_n_jobs(self.n_jobs))
            for part in self._chunks(scores)
        ]
        return np.concatenate(parts)

    def _has_bias(self) -> bool | None:
        """Return whether there are biases; None: by the marginal likelihood."""
        if not isinstance(self.bias, str):
            return bool(self.bias)
        if len(self.classes_) == 2:
            return True
        return None if isinstance(self.ridge, str) else False

    def _joint_scores(self, table: FloatArray) -> FloatArray:
        """Return margins (n, J) of two classes, or log scores (n, J, K) of more."""
        kinds = self._kinds(table.shape[1])
        read = zip(np.moveaxis(table, 1, 0), kinds, self.floor_, strict=True)
        if len(self.classes_) == 2:
            return np.stack([binary_log_odds(t, kind, floor) for t, kind, floor in read], axis=1)
        columns = [log_scores(t, kind, floor, normalised=False) for t, kind, floor in read]
        return np.stack(columns, axis=1)

    def _kinds(self, n_classifiers: int) -> list[str]:
        """Return what the scores of each classifier are."""
        if isinstance(self.input, str):
            return [self.input] * n_classifiers
        if len(self.input) != n_classifiers or not set(self.input) <= set(INPUTS):
            raise ValueError(
                f"input must be one of {', '.join(INPUTS)}, or a list of one for each of the "
                f"{counted(n_classifiers, 'classifier')}. Got {self.input!r} instead."
            )
        return list(self.input)

    def _read_scores(self, scores: Any) -> FloatArray:
        """Return scores as (n, J, 1) for margins of two classes, (n, J, K) otherwise."""
        table = finite_scores(scores, ndim=(1, 2, 3))
        if table.ndim < 3:
            table = table.reshape(len(table), -1, 1)
        for j, kind in enumerate(self._kinds(table.shape[1])):
            check_kind(table[:, j], kind)
        return table

    def _warn_of_mismatch(self, table: FloatArray, y: IntArray, weight: FloatArray) -> None:
        for j in range(table.shape[1]):
            found = find_mismatch(table[:, j], y, weight, len(self.classes_))
            warn_of_mismatch(self, found, self.classes_, f"scores of classifier {j}")

    def _choose_floor(self, table: FloatArray, y: IntArray, weight: FloatArray) -> FloatArray:
        kinds = self._kinds(table.shape[1])
        if not isinstance(self.floor, str):
            return np.full(len(kinds), float(self.floor))
        return np.array(
            [choose_floor(table[:, j], kind, y, weight) for j, kind in enumerate(kinds)]
        )

    def _check_columns(self, table: FloatArray, scores: Any) -> None:
        _, n_classifiers, n_columns = table.shape
        n_fitted, n_classes = self.n_features_in_, len(self.classes_)
        if n_classifiers == n_fitted and max(n_columns, 2) == n_classes:
            return
        shape = f"(n, {n_fitted})" if n_classes == 2 else f"(n, {n_fitted}, {n_classes})"
        hint = " One row is scores[None, :]." if np.ndim(scores) == 1 else ""
        raise CalibrationInputError(
            f"scores has shape {np.shape(scores)}, but {type(self).__name__} was fitted on "
            f"{counted(n_fitted, 'classifier')} of {counted(n_classes, 'class')}; pass scores of "
            f"shape {shape}.{hint}"
        )

    def _single_input(self) -> str:
        return self._kinds(1)[0]

    def _single_scores(self, scores: FloatArray) -> FloatArray:
        return scores[:, None, :]

    def _read_labels(
        self, labels: npt.NDArray[Any], n_columns: int
    ) -> tuple[npt.NDArray[Any], IntArray]:
        if n_columns == 1 and (found := len(np.unique(labels))) > 2:
            raise CalibrationInputError(
                f"scores with one column for each classifier are for two classes, but y shows "
                f"{found}; pass scores of shape (n, J, K), one column for each of J classifiers "
                "and K classes. (Those of a single classifier are scores[:, None, :].)"
            )
        found = len(np.unique(labels))
        if self.classes is None and n_columns > 1 and self.n_features_in_ == found != n_columns:
            raise CalibrationInputError(
                f"scores has {counted(self.n_features_in_, 'classifier')} and "
                f"{counted(n_columns, 'class')}, but y shows {found}; (n, J, K) is needed, "
                "classifiers before classes: are the axes swapped?"
            )
        return super()._read_labels(labels, n_columns)

    def _check_column_names(self) -> None:
        """Raise if columns are named after the two classes: they are not two classifiers."""
        names = [str(name) for name in getattr(self, "feature_names_in_", [])]
        if len(names) > 1 and sorted(names) == sorted(str(label) for label in self.classes_):
            raise CalibrationInputError(
                f"the columns of scores are named after the classes, {' and '.join(names)}, but "
                "each is taken for a binary classifier; pass the column of the second class alone."
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        return tags
