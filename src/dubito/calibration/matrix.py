"""Matrix scaling: a full matrix of slopes and a bias for each class."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dubito.calibration._kernels.matrix_likelihood import MatrixLikelihood
from dubito.calibration.affine import AffineMixin
from dubito.calibration.shrunken import ShrunkenCalibrator

if TYPE_CHECKING:
    from dubito._typing import FloatArray
    from dubito.calibration._kernels.light_labels import LightLabels


class MatrixCalibrator(AffineMixin, ShrunkenCalibrator):
    r"""Matrix scaling: :math:`p=\mathrm{softmax}(Wu+b)` with a full matrix.

    The fit minimises the negative log-likelihood of log scores u and a ridge penalty towards the
    fitted temperature map θ,

    .. math:: \sum_iw_i\ell_i(W,b)+\tfrac{\lambda_d}{2}s^2\sum_k(W_{kk}-\theta)^2
        +\tfrac{\lambda_b}{2}\lVert b\rVert^2+\tfrac{\lambda_o}{2}s^2\sum_{k\ne j}W_{kj}^2,

    with s the root mean square of the scores, so that units of scores do not matter. Few rows per
    class, separable scores or a class without rows are no problem: the data then support no entries
    off the diagonal, and the map is nearly vector or temperature scaling.

    Parameters
    ----------
    ridge : float or "auto", default="auto"
        Strength λ of the penalty, in pseudo-observations: half of λ times the sum of squared
        departures from the temperature map, in log-odds. "auto" finds one strength for each of
        the three groups from the data. A very large one gives the temperature map; 0 gives plain
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
    matrix_ : ndarray of shape (K, K)
        W; row k gives the score of class k.
    bias_ : ndarray of shape (K,)
        b, of mean 0: a constant added to all changes nothing.
    base_slope_ : float
        Slope θ of the temperature map that the fit is shrunk to.
    ridge_ : ndarray of shape (3,)
        Strengths of the penalty on the diagonal, on biases and off the diagonal.
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
    Guo et al., *On Calibration of Modern Neural Networks* (2017), who do not penalise and found it
    to overfit. Targets and the temperature map are those of `TemperatureCalibrator`, with
    min(1/4, ridge) pseudo-observations.

    "auto" maximises the marginal likelihood (MacKay, 1992), which needs no folds. Up to 32 classes
    the Hessian is computed in full and the solver is Newton's method, on a fixed random sample of
    rows where they are too many. Beyond, memory stays O(K²): slopes and biases have the ridge
    that vector scaling finds, that off the diagonal maximises the marginal likelihood of a
    quadratic model around it, and limited-memory BFGS starts from a Hessian that is a Kronecker
    product. A pass costs O(nK²).

    **Bounds** are those of `VectorCalibrator`, by the delta method from the Hessian of all
    parameters, with the same validity in the same simulations. ``level=0.9`` limits the strength
    off the diagonal as well, to max(1, (K-1)/9). Stored for bounds is the covariance, up to 24
    classes in full, O(K⁴) numbers; beyond, that of the Kronecker product and of slope and bias
    class by class, O(K²), centred at the fitted map.

    Examples
    --------
    >>> import numpy as np
    >>> from dubito.calibration import MatrixCalibrator
    >>> rng = np.random.default_rng(0)
    >>> truth, scores = np.eye(3), 2 * rng.normal(size=(5000, 3))
    >>> truth[0, 1] = 0.5
    >>> y = np.argmax(scores @ truth.T + rng.gumbel(size=(5000, 3)), axis=1)
    >>> calibrator = MatrixCalibrator().fit(scores, y)
    >>> round(float(calibrator.matrix_[0, 1] - calibrator.matrix_[2, 1]), 1)
    0.5
    >>> bounds = calibrator.predict_bounds([[1.0, 0.5, -1.0]], level=0.9)
    >>> bounds.lower.round(2), bounds.upper.round(2)
    (array([[0.6 , 0.28, 0.07]]), array([[0.64, 0.32, 0.09]]))
    """

    def _likelihood(
        self, u: FloatArray, labels: LightLabels, base_slope: float, score_scale: float
    ) -> MatrixLikelihood:
        return MatrixLikelihood(np.ascontiguousarray(u), labels, base_slope, score_scale)

    def _set_parameters(
        self, x: FloatArray, base_slope: float, score_scale: float, unit: float
    ) -> None:
        n_classes = len(self.classes_)
        x = x.reshape(n_classes, n_classes + 1)
        self.matrix_ = (base_slope * np.eye(n_classes) + x[:, :-1] / score_scale) / unit
        self.bias_ = x[:, -1] - x[:, -1].mean()

    def _logits(self, table: FloatArray) -> FloatArray:
        return self._log_scores(table, normalised=True) @ self.matrix_.T + self.bias_

    def _layer(self) -> tuple[FloatArray, FloatArray]:
        return self.matrix_.copy(), self.bias_.copy()
