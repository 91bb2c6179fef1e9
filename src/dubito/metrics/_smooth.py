"""The smooth calibration error: calibration without bins, computed exactly."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING

import numpy as np

from dubito.metrics.binning import sum_ties
from dubito.metrics.forecasts import Event, read_forecasts, top_event

if TYPE_CHECKING:
    import numpy.typing as npt

    from dubito._typing import FloatArray


def smooth_calibration_error(
    y_true: npt.ArrayLike,
    y_proba: npt.ArrayLike,
    *,
    classes: npt.ArrayLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
) -> float:
    r"""Return the smooth calibration error (smCE), which needs neither bins nor a bandwidth.

    .. math:: \mathrm{smCE} = \sup_{\omega} \mathrm{E}\bigl[\omega(p)\,(o - p)\bigr]

    over the functions :math:`\omega: [0, 1] \to [-1, 1]` with Lipschitz constant 1, where p is the
    forecast probability of an event and o is 1 if it happened and 0 if not.

    Parameters
    ----------
    y_true, y_proba, classes, sample_weight
        As in `expected_calibration_error`: with (n, K) the event is "the most probable class is the
        true one", with (n,) "the label is the second of two classes".

    Returns
    -------
    float
        In [0, 1]; 0 is best. At least ``|E[o - p]|`` (:math:`\omega` constant), and at most the ECE
        with one bin per distinct forecast (:math:`\omega` free).

    Notes
    -----
    The ECE jumps when a forecast crosses the edge of a bin; this error, for one event (n,), moves
    by at most twice the mean change of the forecasts. With (n, K) it can still jump where the most
    probable class changes, for then the event itself does. The supremum is found exactly, in O(n
    log n).

    References
    ----------
    Kakade and Foster (2008), Deterministic calibration and Nash equilibrium.
    Błasiok, Gopalan, Hu and Nakkiran (2023), A unifying theory of distance from calibration.

    Examples
    --------
    >>> from dubito.metrics import smooth_calibration_error
    >>> round(smooth_calibration_error([1, 1, 1, 0], [0.9, 0.9, 0.9, 0.9]), 6)
    0.15

    Errors of neighbouring forecasts that cancel hardly count; bins with an edge between the two
    would give 0.51:

    >>> round(smooth_calibration_error([1, 0], [0.49, 0.51]), 6)
    0.0051
    """
    return smooth_error(top_event(read_forecasts(y_true, y_proba, classes, sample_weight)))


def smooth_error(event: Event) -> float:
    """Return the smooth calibration error of one event."""
    position, residual = sum_ties(event.probability, event.weight * event.residual)
    return lipschitz_supremum(position, residual / event.weight.sum())


def lipschitz_supremum(position: FloatArray, residual: FloatArray) -> float:
    r"""Return the largest :math:`\sum_i r_i \omega_i` over 1-Lipschitz values in [-1, 1].

    Positions are in rising order.

    The linear programme's dual is total-variation denoising of the partial sums
    :math:`R_i = r_1 + \ldots + r_i`, with gaps :math:`d_i` between neighbouring positions:

    .. math:: \min_h \sum_{i=1}^{m} |h_i - h_{i-1}| + \sum_{i=1}^{m-1} d_i |R_i - h_i|,
              \qquad h_0 = 0,\ h_m = R_m.

    Dynamic programming over i (Kolmogorov, Pock and Rolinek 2016, Total variation on a tree): the
    cost of reaching :math:`h_i = h` is convex and piecewise linear in h with slopes from -1 to 1.
    Each step adds a kink of jump :math:`2 d_i` at :math:`R_i`; the variation term then clips the
    slopes to [-1, 1], that is, removes jump :math:`d_i` from either end. Every kink enters once and
    leaves once, so two heaps give O(m log m) for any data.
    """
    partial = np.cumsum(residual)
    gaps = np.diff(position)
    kinks = np.append(0.0, partial[:-1])
    order = np.argsort(kinks, kind="stable")
    entering = np.argsort(order).tolist()  # rank, among all kinks, of the kink each step adds
    kink = kinks[order].tolist()

    jump = [0.0] * len(kink)
    lowest, highest = [entering[0]], [-entering[0]]
    jump[entering[0]] = 2.0
    intercept = 0.0  # the cost at h is intercept - h where h is left of all kinks
    for rank, gap in zip(entering[1:], gaps.tolist(), strict=True):
        jump[rank] = 2 * gap
        heappush(lowest, rank)
        heappush(highest, -rank)
        intercept += gap * kink[rank] - _remove_jump(lowest, 1, jump, kink, gap)
        _remove_jump(highest, -1, jump, kink, gap)

    end = partial[-1]
    rise = np.array(jump) @ np.maximum(end - np.array(kink), 0.0)
    return max(0.0, float(intercept - end + rise))


def _remove_jump(
    heap: list[int], sign: int, jump: list[float], kink: list[float], amount: float
) -> float:
    """Remove `amount` of jump from one end; return the sum of jump times kink that was removed.

    The lowest kinks come first with sign 1, the highest with sign -1.
    """
    moment = 0.0
    while True:
        rank = sign * heap[0]
        if jump[rank] > amount:
            jump[rank] -= amount
            return moment + amount * kink[rank]
        moment += jump[rank] * kink[rank]
        amount -= jump[rank]
        jump[rank] = 0.0  # the other heap still lists this kink, now without effect
        heappop(heap)
