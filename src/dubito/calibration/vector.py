"""Vector scaling: a slope and a bias for each class."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dubito.calibration._kernels.vector_likelihood import VectorLikelihood
from dubito.calibration.affine import AffineMixin
from dubito.calibration.shrunken import ShrunkenCalibrator

if TYPE_CHECKING:
    from dubito._typing import FloatArray
    from dubito.calibration._kernels.light_labels import LightLabels


class VectorCalibrator(AffineMixin, ShrunkenCalibrator):
    r"""Vector scaling: :math:`p=\mathrm{softmax}(a\circ u+b)`, a slope and a bias per class.

    The fit minimises the negative log-likelihood of log scores u and a ridge penalty towards the
    fitted temperature map θ,

    .. math:: \sum_iw_i\ell_i(a,b)
        +\tfrac{\lambda_a}{2}s^2\lVert a-\theta\rVert^2+\tfrac{\lambda_b}{2}\lVert b\rVert^2,

    with s the root mean square of the scores, so that units of scores do not matter. Few rows per
    class, separable scores or a class without rows are no problem. As n grows the penalty vanishes.

    Parameters
    ----------
    ridge : float or "auto", default="auto"
        Strength λ of the penalty, in pseudo-observations: half of λ times the sum of squared
        departures from the temperature map, in log-odds. "auto" finds one strength for slopes
        and one for biases from the data. A very large one gives the temperature map; 0 gives plain
        maximum likelihood, which separable scores or a class without rows do not have.
    input : {"margin", "logits", "proba", "log_proba"}, default="margin"
        What the scores are: any scores where higher means likelier, logits, or probabilities,
        of which the logarithm is taken. Of logits the log softmax is taken, so that a constant
        added to a row changes nothing; added to a row of margins it does.
    floor : float or "auto", default="auto"
        Probabilities below it are raised to it before their logarithm is taken; "auto" chooses it
        on the rows of the fit, as in `AutoCalibrator`.
    classes : array-like of shape (K,), optional
        Labels in the order of the columns; needed if y lacks some.

    Attributes
    ----------
    slope_ : ndarray of shape (K,)
        a.
    bias_ : ndarray of shape (K,)
        b, of mean 0: a constant added to all changes nothing.
    base_slope_ : float
        Slope θ of the temperature map that the fit is shrunk to.
    ridge_ : ndarray of shape (2,)
        Strengths of the penalty on slopes and on biases.
    misfit_ : float
        Fraction of calibration rows, of at most 32, at which the interval of the fitted probability
        and an isotonic one are disjoint. Above 1/6 bounds at a level come with a `MisfitWarning`.
        0 where there are fewer than five rows for each parameter.
    gradient_norm_ : float
        Norm of the gradient of the mean penalised negative log-likelihood at the estimate.
    n_iter_ : int
        Steps of the last fit.
    classes_ : ndarray of shape (K,)
        Labels of the columns.

    Notes
    -----
    The external calibration of nested dichotomies of Leathart et al. (2019); there the fit is not
    penalised, and the bias of a class absent from the hold-out tends to minus infinity. Targets and
    the temperature map are those of `TemperatureCalibrator`, with min(1/4, ridge)
    pseudo-observations.

    "auto" maximises the marginal likelihood (MacKay, 1992), which needs no folds; see `ridge_` for
    the result. Where n K² exceeds 4e9, with up to 200 classes, a fixed random sample of rows
    decides. With more classes a sample gives the start, where n K exceeds 4e6, and all rows decide;
    where n K exceeds 1e6 that start is found on likely classes alone, those to which the
    temperature map gives a row a probability above 1e-5, with the scores of others fixed.

    Up to 200 classes the solver is Newton's method, to a gradient norm of 1e-11. Beyond, the
    Hessian is taken class by class, along with the gradient in one pass over the scores, and
    limited-memory BFGS corrects it where classes depend on each other; it ends at 1e-8, an error of
    the parameters much smaller than their standard errors. At 50,000 rows of 1,000 classes
    ridge and fit take about fifteen passes.

    **Bounds** are of the log-odds of a class against the rest, with standard errors by the delta
    method from the Hessian. The ridge by the marginal likelihood is too large for bounds:
    that of slopes and biases is limited to 1, a prior standard deviation of 1 in log-odds, and
    the slope θ is treated as unknown, with standard errors down and up from the likelihood itself.
    Belief and plausibility are integrals of that contour. ``level=0.9`` lets slopes deviate by up
    to 2 in log-odds and gives the interval around the map fitted with this ridge, widened to
    contain the probability. In simulations (2 to 10 classes, 30 to 1,000 rows, truths off the
    temperature map; ``experiments/validity``) it contained the true probability in 0.87 or more of
    the rows and classes. Stored for it is the covariance, up to 200 classes in full; beyond, class
    by class, centred at the fitted map.

    Examples
    --------
    >>> import numpy as np
    >>> from dubito.calibration import VectorCalibrator
    >>> rng = np.random.default_rng(0)
    >>> logits = rng.normal(size=(5000, 3))
    >>> y = np.argmax(logits + [1, 0, -1] + rng.gumbel(size=(5000, 3)), axis=1)
    >>> calibrator = VectorCalibrator(input="logits").fit(logits, y)
    >>> calibrator.bias_.round(0) + 0.0
    array([ 1.,  0., -1.])
    >>> calibrator.predict_bounds([[0.0, 0.0, 0.0]], level=0.9).lower.round(2)
    array([[0.64, 0.25, 0.08]])
    """

    def _likelihood(
        self, u: FloatArray, labels: LightLabels, base_slope: float, score_scale: float
    ) -> VectorLikelihood:
        return VectorLikelihood(np.ascontiguousarray(u), labels, base_slope, score_scale)

    def _set_parameters(
        self, x: FloatArray, base_slope: float, score_scale: float, unit: float
    ) -> None:
        n_classes = len(self.classes_)
        self.slope_ = (base_slope + x[:n_classes] / score_scale) / unit
        self.bias_ = x[n_classes:] - x[n_classes:].mean()

    def _logits(self, table: FloatArray) -> FloatArray:
        return self.slope_ * self._log_scores(table, normalised=True) + self.bias_

    def _layer(self) -> tuple[FloatArray, FloatArray]:
        return np.diag(self.slope_), self.bias_.copy()
