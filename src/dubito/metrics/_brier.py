"""Decomposition of the Brier score into reliability, resolution and uncertainty."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dubito.metrics.binning import bin_event
from dubito.metrics.forecasts import Event, class_events, read_forecasts

if TYPE_CHECKING:
    import numpy.typing as npt


class BrierDecomposition(NamedTuple):
    """The three parts of a Brier score."""

    reliability: float
    resolution: float
    uncertainty: float

    @property
    def brier(self) -> float:
        """The Brier score itself: reliability - resolution + uncertainty."""
        return self.reliability - self.resolution + self.uncertainty


def brier_decomposition(
    y_true: npt.ArrayLike,
    y_proba: npt.ArrayLike,
    *,
    n_bins: int = 15,
    strategy: str = "uniform",
    classes: npt.ArrayLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
) -> BrierDecomposition:
    r"""Return the Brier score as reliability - resolution + uncertainty, without remainder.

    For one event with forecasts p and outcomes o, bins b with the fraction :math:`s_b` of the
    weight, bin means :math:`\bar p_b, \bar o_b` and overall mean :math:`\bar o`:

    .. math::
        \mathrm{reliability} &= \sum_b s_b (\bar p_b - \bar o_b)^2 \\
        \mathrm{resolution} &= \sum_b s_b (\bar o_b - \bar o)^2
            - \mathrm{E}[(p - \bar p_b)^2] + 2\,\mathrm{E}[(p - \bar p_b)(o - \bar o_b)] \\
        \mathrm{uncertainty} &= \bar o (1 - \bar o)

    The last two terms of the resolution are the variation within bins; they are 0 when each bin
    contains one forecast value, which leaves Murphy's decomposition. Several classes: sums over the
    classes.

    Parameters
    ----------
    y_proba : array-like of shape (n, K) or (n,)
        Probabilities of all classes, rows summing to 1, or of the second of two classes.
    y_true, n_bins, strategy, classes, sample_weight
        As in `expected_calibration_error`.

    Returns
    -------
    BrierDecomposition
        Named tuple of `reliability` (0 is best), `resolution` (large is best), `uncertainty` (of
        the data, whatever the forecast), with the property `brier`, which equals
        `sklearn.metrics.brier_score_loss`: in [0, 1] for two classes, in [0, 2] for more.

    Notes
    -----
    Two classes are judged by the second alone, so (n,) and (n, 2) agree. Uncertainty and
    the total do not depend on the bins; how the rest is divided between reliability and resolution
    does. Resolution is negative when forecasts vary within bins without following the outcomes.

    References
    ----------
    Murphy (1973), A new vector partition of the probability score.
    Stephenson, Coelho and Jolliffe (2008), Two extra components in the Brier score decomposition.

    Examples
    --------
    >>> from dubito.metrics import brier_decomposition
    >>> parts = brier_decomposition([0, 0, 1, 1, 1, 0], [0.2, 0.2, 0.2, 0.8, 0.8, 0.8])
    >>> [round(part, 4) for part in parts]
    [0.0178, 0.0278, 0.25]
    >>> round(parts.brier, 4)
    0.24
    """
    forecasts = read_forecasts(y_true, y_proba, classes, sample_weight)
    of_class = [_decompose(event, n_bins, strategy) for event in class_events(forecasts)]
    reliability, resolution, uncertainty = np.sum(of_class, axis=0).tolist()
    return BrierDecomposition(reliability, resolution, uncertainty)


def _decompose(event: Event, n_bins: int, strategy: str) -> BrierDecomposition:
    """Return the decomposition for one event."""
    bins = bin_event(event, n_bins, strategy)
    overall = float(bins.fraction @ bins.frequency)
    forecast_deviation = event.probability - bins.forecast[bins.of_row]
    outcome_deviation = event.happened - bins.frequency[bins.of_row]
    within = np.average(
        forecast_deviation * (2 * outcome_deviation - forecast_deviation), weights=event.weight
    )
    between = bins.fraction @ (bins.frequency - overall) ** 2
    return BrierDecomposition(
        reliability=float(bins.fraction @ (bins.forecast - bins.frequency) ** 2),
        resolution=float(between + within),
        uncertainty=overall * (1 - overall),
    )
