"""Plausibility contours of a calibrator's parameter, and class regions (Xu et al. 2015)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from dubito._validation import as_float_array, check_choice, check_rows_match, check_unit_interval
from dubito.plots._drawing import SingleAxesDisplay

if TYPE_CHECKING:
    import numpy.typing as npt
    from matplotlib.axes import Axes

    from dubito._typing import BoolArray, FloatArray

_N_POINTS = 401
#: Slopes are drawn where their plausibility is at least this, and in a margin beyond.
_SMALLEST_DRAWN = 1e-4
_AXIS_LABELS = {"slope": "slope θ", "probability": "probability θ"}


class ContourDisplay(SingleAxesDisplay):
    r"""The contour of a calibrator's parameter θ: how plausible each value is.

    The contour is the relative likelihood :math:`\mathrm{pl}(\theta)=L(\theta)/L(\hat\theta)` (Xu
    et al. 2015, eq. 26): 1 at the estimate, narrower with more data. Its level sets
    :math:`\Gamma(\gamma)=\{\theta:\mathrm{pl}(\theta)\ge\gamma\}` (eq. 27) determine the sets of
    classes.

    `plot` draws the curve, and a level set as a segment (Xu et al. 2015, figures 1 and 2);
    `plot_regions` draws how the classes divide the unit interval as θ varies (figure 3). Make one
    with `from_estimator` or `from_predictions`.

    Parameters
    ----------
    theta : array-like of shape (t,)
        Values of the parameter, increasing.
    contour : array-like of shape (t,)
        Their plausibilities in [0, 1], rising and then falling.
    parameter : {"slope", "probability"}, default="slope"
        What θ is: the slope of a softmax, or the probability of the second class at one score.
    name : str, optional
        Label in the legend.

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure
        Those of the last drawing.
    line_ : matplotlib line
        The contour, after `plot`.
    level_line_ : matplotlib line or None
        The segment of the level set, after `plot`.
    region_lines_ : list of matplotlib lines
        The borders between the classes, after `plot_regions`.
    overlapped_ : ndarray of bool, shape (K,), or None
        The classes whose region the line z meets inside the level set, after `plot_regions`: the
        set :math:`\varphi(g(s,\Gamma(\gamma)),z)` of eq. 33, read off the drawn points.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from dubito.calibration import EvidentialMultinomialCalibrator
    >>> from dubito.plots import ContourDisplay
    >>> scores = [[2, 0, 1], [0, 1, 0], [1, 0, 3], [0, 1, 2]]
    >>> calibrator = EvidentialMultinomialCalibrator().fit(scores, [0, 1, 2, 1])
    >>> display = ContourDisplay.from_estimator(calibrator, level=0.5, ax=Figure().subplots())
    >>> low, high = display.level_set(0.5)
    >>> bool(low < calibrator.slope_ < high)
    True
    """

    def __init__(
        self,
        *,
        theta: npt.ArrayLike,
        contour: npt.ArrayLike,
        parameter: str = "slope",
        name: str | None = None,
    ) -> None:
        self.theta = as_float_array(theta, "theta", ndim=1)
        self.contour = as_float_array(contour, "contour", ndim=1)
        self.parameter = check_choice(parameter, "parameter", tuple(_AXIS_LABELS))
        self.name = name
        check_rows_match("contour", len(self.contour), "theta", len(self.theta))
        if len(self.theta) < 2 or (np.diff(self.theta) <= 0).any():
            raise ValueError("theta must list at least two increasing values.")
        if (self.contour < 0).any() or (self.contour > 1 + 1e-9).any():
            raise ValueError("contour must lie in [0, 1]: it is relative to the maximum.")

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        scores: Any = None,
        *,
        theta: npt.ArrayLike | None = None,
        name: str | None = None,
        ax: Axes | None = None,
        level: float | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the contour of a fitted calibrator.

        Parameters
        ----------
        estimator : calibrator
            Fitted, with ``slope_contour(theta)`` and ``level_set(gamma)``, as
            `EvidentialMultinomialCalibrator` has; or with ``contour(scores, theta)``, as the binary
            evidential calibrators have.
        scores : float or array-like of one row, optional
            The score at which ``contour(scores, theta)`` is drawn.
        theta : array-like of shape (t,), optional
            Values to evaluate; by default slopes of plausibility above 0.0001, or probabilities
            in [0, 1].
        name, ax, level, **kwargs
            As in `plot`.

        Returns
        -------
        ContourDisplay
        """
        by_slope = hasattr(estimator, "slope_contour")
        if not by_slope and not hasattr(estimator, "contour"):
            raise TypeError(
                f"{type(estimator).__name__} has no contour; pass a fitted evidential calibrator "
                "(that of a CalibratedClassifier is clf.calibrated_classifiers_[0].calibrator)."
            )
        points, contour = (
            _slope_contour(estimator, scores, theta)
            if by_slope
            else _probability_contour(estimator, scores, theta)
        )
        parameter = "slope" if by_slope else "probability"
        display = cls(theta=points, contour=contour, parameter=parameter, name=name)
        return display.plot(ax=ax, level=level, **kwargs)

    @classmethod
    def from_predictions(
        cls,
        theta: npt.ArrayLike,
        contour: npt.ArrayLike,
        *,
        parameter: str = "slope",
        name: str | None = None,
        ax: Axes | None = None,
        level: float | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw a contour that was computed elsewhere.

        Parameters
        ----------
        theta, contour, parameter, name
            As for the class.
        ax, level, **kwargs
            As in `plot`.

        Returns
        -------
        ContourDisplay
        """
        display = cls(theta=theta, contour=contour, parameter=parameter, name=name)
        return display.plot(ax=ax, level=level, **kwargs)

    def level_set(self, gamma: float) -> tuple[float, float]:
        """Return both ends of the level set, interpolated between the points of the curve.

        Parameters
        ----------
        gamma : float in [0, 1]
            The likelihood level.

        Returns
        -------
        low, high : float
            The first or last `theta` where the curve is still above the likelihood level there.
        """
        level = min(check_unit_interval(gamma, "gamma"), float(self.contour.max()))
        inside = np.flatnonzero(self.contour >= level)
        first, last = int(inside[0]), int(inside[-1])
        low = self._crossing(first - 1, first, level) if first > 0 else self.theta[0]
        reaches_end = last == len(self.theta) - 1
        high = self.theta[-1] if reaches_end else self._crossing(last + 1, last, level)
        return float(low), float(high)

    def plot(
        self,
        ax: Axes | None = None,
        *,
        name: str | None = None,
        level: float | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the curve and, where a likelihood level is given, its level set.

        Several contours on the same axes are as in figure 1 of Xu et al. 2015, one with a level
        as in figure 2.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw; new axes by default.
        name : str, optional
            For the legend, instead of the display's `name`.
        level : float in [0, 1], optional
            A likelihood level, not a confidence level: draw the level set, the values whose
            relative likelihood is at least this high, as a segment.
        **kwargs
            Passed on to ``ax.plot`` for the curve.

        Returns
        -------
        ContourDisplay
            Itself.
        """
        self._set_axes(ax)
        label = name if name is not None else self.name
        style = {"label": label, **kwargs} if label is not None else kwargs
        (self.line_,) = self.ax_.plot(self.theta, self.contour, **style)
        self.level_line_ = None
        if level is not None:
            ends = self.level_set(level)
            style = {"color": "tab:red", "linewidth": 3, "solid_capstyle": "butt"}
            (self.level_line_,) = self.ax_.plot(ends, [level, level], **style)
            self.ax_.vlines(ends, 0, level, colors="tab:red", linestyles="dotted", linewidth=1)
        self.ax_.set(xlabel=_AXIS_LABELS[self.parameter], ylabel="plausibility", ylim=(0, 1.05))
        if label is not None:
            self.ax_.legend()
        return self

    def plot_regions(
        self,
        scores: npt.ArrayLike,
        ax: Axes | None = None,
        *,
        level: float | None = None,
        z: float | None = None,
        names: list[str] | None = None,
    ) -> Self:
        r"""Draw the regions of the classes for one row of scores (Xu et al. 2015, figure 3).

        Region j lies between :math:`G_{j-1}` and :math:`G_j`, where :math:`G_j(s,\theta)` is the
        sum of the first j entries of softmax :math:`(\theta s)` (eq. 34). A uniform z draws the
        class in whose region it lies; for different θ of a level set it may lie in several.

        Parameters
        ----------
        scores : array-like of shape (K,)
            One row of scores that enter the softmax: logarithms for a calibrator of
            probabilities, (-d/2, d/2) for two classes with margin d.
        ax : matplotlib axes, optional
            Where to draw; new axes by default.
        level : float in [0, 1], optional
            A likelihood level, as in `plot`: shade its level set.
        z : float in [0, 1], optional
            Draw this value as a line across.
        names : list of str, optional
            Names of the regions; R1, ..., RK by default.

        Returns
        -------
        ContourDisplay
            Itself.
        """
        if self.parameter != "slope":
            raise ValueError("regions are drawn over slopes; here θ is a probability.")
        row = as_float_array(scores, "scores", ndim=1)
        labels = names if names is not None else [f"R{j + 1}" for j in range(len(row))]
        check_rows_match("names", len(labels), "scores", len(row))
        self._set_axes(ax)
        borders = _cumulative(self.theta, row)
        self.region_lines_ = self.ax_.plot(self.theta, borders[:, 1:-1], color="tab:blue")
        self._name_regions(borders, labels)
        self.overlapped_ = None
        if level is not None:
            self.ax_.axvspan(*self.level_set(level), color="0.8", zorder=0)
        if z is not None:
            height = check_unit_interval(z, "z")
            self.ax_.axhline(height, color="tab:red", linestyle="dashed")
            if level is not None:
                self.overlapped_ = self._overlapped(row, level, height)
        limits = {"xlim": (self.theta[0], self.theta[-1]), "ylim": (0, 1)}
        self.ax_.set(xlabel=_AXIS_LABELS["slope"], ylabel="cumulative probability", **limits)
        return self

    def _crossing(self, outside: int, inside: int, level: float) -> float:
        """Return θ where the contour reaches the level between two neighbouring points."""
        two = [outside, inside]
        return float(np.interp(level, self.contour[two], self.theta[two]))

    def _name_regions(self, borders: FloatArray, labels: list[str]) -> None:
        """Write each name where its region is widest, away from the edges of the axes."""
        inner = slice(len(self.theta) // 10, -(len(self.theta) // 10) or None)
        width = np.diff(borders, axis=1)[inner]
        for j, label in enumerate(labels):
            widest = int(width[:, j].argmax())
            if width[widest, j] > 0.04:  # thinner regions have no name
                middle = borders[inner][widest, j : j + 2].mean()
                style = {"ha": "center", "va": "center"}
                self.ax_.text(self.theta[inner][widest], middle, label, **style)

    def _overlapped(self, row: FloatArray, level: float, z: float) -> BoolArray:
        """Return the classes whose region contains z for some θ of the level set, (K,)."""
        low, high = self.level_set(level)
        inside = self.theta[(self.theta > low) & (self.theta < high)]
        borders = _cumulative(np.concatenate([[low], inside, [high]]), row)
        return np.asarray(((borders[:, :-1] <= z) & (z < borders[:, 1:])).any(axis=0))


def _slope_contour(
    calibrator: Any, scores: Any, theta: npt.ArrayLike | None
) -> tuple[FloatArray, FloatArray]:
    if scores is not None:
        raise ValueError(
            f"the contour of {type(calibrator).__name__} is of its slope, the same for all scores; "
            "leave scores out, or draw one row of them with plot_regions."
        )
    if theta is None:
        low, high = (float(end) for end in calibrator.level_set(_SMALLEST_DRAWN))
        if not np.isfinite(high):  # constant scores: all slopes are equally likely
            high = low + 1.0
        margin = 0.02 * (high - low)
        theta = np.linspace(max(low - margin, 0.0), high + margin, _N_POINTS)
    points = as_float_array(theta, "theta", ndim=1)
    return points, np.asarray(calibrator.slope_contour(points), dtype=np.float64)


def _probability_contour(
    calibrator: Any, scores: Any, theta: npt.ArrayLike | None
) -> tuple[FloatArray, FloatArray]:
    if scores is None:
        raise ValueError(
            f"the contour of {type(calibrator).__name__} depends on the score; pass scores=."
        )
    row = as_float_array(scores, "scores", ndim=(0, 1, 2))
    row = row.reshape(1, -1) if row.ndim < 2 else row
    if len(row) != 1:
        raise ValueError(f"scores must be one row; got {len(row)}. Draw one display for each.")
    if theta is None:
        # A contour may be very narrow: add points between belief and plausibility.
        bounds = calibrator.predict_bounds(row)
        inside = np.linspace(bounds.lower[0, -1], bounds.upper[0, -1], _N_POINTS)
        theta = np.union1d(np.linspace(0.0, 1.0, _N_POINTS), inside)
    points = as_float_array(theta, "theta", ndim=1)
    contour = np.asarray(calibrator.contour(row, points), dtype=np.float64)
    if contour.size != len(points):
        raise ValueError(
            f"{type(calibrator).__name__} was fitted on more than two classes; its contours of "
            "classes against the rest can be drawn by from_predictions, one at a time."
        )
    return points, contour.ravel()


def _cumulative(theta: FloatArray, row: FloatArray) -> FloatArray:
    """Return G_0, ..., G_K of `ContourDisplay.plot_regions` at each slope, (t, K + 1)."""
    weight = np.exp(theta[:, None] * (row - row.max()))
    sums = np.cumsum(weight, axis=1)
    cumulative = sums / sums[:, -1:]
    return np.hstack([np.zeros((len(theta), 1)), cumulative])
