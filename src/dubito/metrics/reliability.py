"""The reliability curve: the observed frequency of an event against its forecast, by bins."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dubito._validation import check_choice, check_fraction
from dubito.metrics.binning import bin_edges, bin_event, sum_by
from dubito.metrics.forecasts import (
    Event,
    Forecasts,
    class_event,
    column_of,
    read_forecasts,
    top_event,
)
from dubito.metrics.intervals import fraction_interval

if TYPE_CHECKING:
    import numpy.typing as npt

    from dubito._typing import FloatArray, IntArray


class ReliabilityCurve(NamedTuple):
    """Mean forecast and observed frequency of each bin, with a confidence band.

    Arrays with an entry per occupied bin, in rising order of the forecast:

    - `mean_probability`, the mean forecast;
    - `frequency`, how often the event happened;
    - `lower`, `upper`, the band around the frequency;
    - `weight`, the fraction of the total weight, summing to 1;
    - `n_rows`, the number of rows;
    - `edges`, of shape (M, 2), where the bin begins and ends.
    """

    mean_probability: FloatArray
    frequency: FloatArray
    lower: FloatArray
    upper: FloatArray
    weight: FloatArray
    n_rows: IntArray
    edges: FloatArray


def reliability_curve(  # noqa: PLR0913 - which event, which bins, which band
    y_true: npt.ArrayLike,
    y_proba: npt.ArrayLike,
    *,
    of: str | None = None,
    class_: Any = None,
    n_bins: int = 15,
    strategy: str = "quantile",
    confidence_level: float = 0.95,
    classes: npt.ArrayLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
) -> ReliabilityCurve:
    r"""Return the observed frequency of an event in bins of its forecast, with confidence bands.

    Rows are sorted into bins of the forecast probability of an event. Forecasts are reliable where
    the event happened as often as forecast, :math:`\mathrm{frequency} \approx
    \mathrm{mean\ probability}`; a bin whose band misses its mean probability is evidence that they
    are not.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        True labels.
    y_proba : array-like of shape (n, K) or (n,)
        Probabilities of all classes, rows summing to 1, or of the second of two classes.
    of : {"top", "class"}, default=None
        The event. "top": the most probable class is the true one (of equally probable classes, that
        of the lowest column), and with (n,) "the label is the second class", as in
        `expected_calibration_error`. "class": the label is `class_`. By default "class" where
        `class_` is given, and otherwise "top".
    class_ : label, default=None
        One class against the rest. Of two classes, ``of="class"`` alone means the second.
    n_bins : int, default=15
        Number of bins, empty ones included; those without rows are left out of the result.
    strategy : {"quantile", "uniform"}, default="quantile"
        Bins of equal weight, as nearly as ties allow, so that all bands are of about as many rows;
        or of equal width on [0, 1]. See `expected_calibration_error`.
    confidence_level : float, default=0.95
        How often the band of a bin must contain the true probability of its rows. Each bin for
        itself: of 20 bins of perfect forecasts, one may be expected to miss.
    classes : array-like of shape (K,), default=None
        The label of each column; see `expected_calibration_error`.
    sample_weight : array-like of shape (n,), default=None
        Row weights: 2 counts as the row twice, 0 as no row, in the means and frequencies. The band
        counts rows, not weight: that of :math:`(\sum w)^2/\sum w^2` rows of equal weight (Kish),
        since weighting adds no observations.

    Returns
    -------
    ReliabilityCurve
        Named tuple of arrays `mean_probability`, `frequency`, `lower`, `upper`, `weight`, `n_rows`
        and `edges`; the latter are those of bins of equal width, or the smallest and largest
        forecast in bins of equal weight.

    See Also
    --------
    expected_calibration_error : ``curve.weight @ abs(curve.frequency - curve.mean_probability)``,
        with the same bins.
    dubito.plots.ReliabilityDisplay : The plot.

    Notes
    -----
    The band is Clopper and Pearson's. Wilson's interval is narrower, by a tenth in a bin of 30
    rows, and on average over probabilities it has its stated coverage, but not near 0 and 1, where
    the forecasts of good classifiers are: at 30 rows and probability 0.995 its coverage is 86%
    instead of 95%. Clopper and Pearson's interval has its stated coverage there too. Where rows of
    one bin differ in their true probability, the frequency varies less than the band allows for.

    References
    ----------
    Clopper and Pearson (1934), The use of confidence or fiducial limits illustrated in the case of
    the binomial.
    Brown, Cai and DasGupta (2001), Interval estimation for a binomial proportion.

    Examples
    --------
    >>> from dubito.metrics import reliability_curve
    >>> y = ["no"] * 8 + ["yes"] * 2 + ["no"] * 6 + ["yes"] * 4
    >>> curve = reliability_curve(y, [0.2] * 10 + [0.9] * 10, n_bins=2)
    >>> for forecast, frequency, low, high in zip(*curve[:4]):
    ...     print(f"forecast {forecast:.1f}, observed {frequency:.1f} ({low:.2f} to {high:.2f})")
    forecast 0.2, observed 0.2 (0.03 to 0.56)
    forecast 0.9, observed 0.4 (0.12 to 0.74)
    """
    level = check_fraction(confidence_level, "confidence_level")
    forecasts = read_forecasts(y_true, y_proba, classes, sample_weight)
    event = chosen_event(forecasts, of, class_, classes)
    return curve_of(event, n_bins, strategy, level)


def curve_of(event: Event, n_bins: int, strategy: str, confidence_level: float) -> ReliabilityCurve:
    """Return the curve of one event."""
    bins = bin_event(event, n_bins, strategy)
    weight = sum_by(bins.of_row, event.weight)
    size = weight**2 / sum_by(bins.of_row, event.weight**2)
    lower, upper = fraction_interval(bins.frequency, size, confidence_level)
    return ReliabilityCurve(
        mean_probability=bins.forecast,
        frequency=bins.frequency,
        lower=lower,
        upper=upper,
        weight=bins.fraction,
        n_rows=np.bincount(bins.of_row),
        edges=bin_edges(event, bins, n_bins, strategy),
    )


def chosen_event(
    forecasts: Forecasts, of: str | None, class_: Any, classes: npt.ArrayLike | None
) -> Event:
    """Return the event of the curve: the most probable class, or one class."""
    chosen = of if of is not None else ("top" if class_ is None else "class")
    check_choice(chosen, "of", ("top", "class"))
    if chosen == "top":
        if class_ is not None:
            raise ValueError(
                f"class_={class_!r} asks for one class and of='top' for the most probable one. "
                "Leave one of the two out."
            )
        return top_event(forecasts)
    if class_ is not None:
        return class_event(forecasts, column_of(class_, forecasts, classes))
    if forecasts.n_classes > 2:
        raise ValueError(
            f"of='class' needs class_, one of the {forecasts.n_classes} classes. Only with two "
            "classes may it be left out: it is then the second."
        )
    return class_event(forecasts, 1)
