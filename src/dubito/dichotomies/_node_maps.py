"""Internal calibration: from the log-odds of node models to those that can be trusted.

What `internal` names becomes maps of all nodes at once. Sigmoids and isotonic maps, evidential ones
too, are packed and compiled; every other calibrator is fitted as a clone for each node. All of them
keep three promises: log-odds are finite, so no class gets probability 0; what a row gets depends on
no other row (for clones as far as their own arithmetic does not, which is to rounding); a node
without scores to calibrate on keeps its own log-odds, and its bounds are 0 and 1 where the others'
are those of an evidential calibrator.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dubito.calibration import (
    EvidentialIsotonicCalibrator,
    EvidentialLogisticCalibrator,
    IsotonicCalibrator,
    PlattCalibrator,
)
from dubito.calibration.base import BaseCalibrator
from dubito.dichotomies._belief_maps import EvidentialSigmoidMaps
from dubito.dichotomies._calibrator_maps import fit_calibrators
from dubito.dichotomies._map_base import NodeMaps, NodeRows
from dubito.dichotomies._platt_maps import IdentityMaps, SigmoidMaps
from dubito.dichotomies._step_maps import EvidentialIsotonicMaps, IsotonicMaps

if TYPE_CHECKING:
    from dubito._typing import FloatArray, IntArray

__all__ = ["NodeMaps", "fit_node_maps", "read_internal"]

_NAMED: dict[str, Any] = {"platt": PlattCalibrator, "isotonic": IsotonicCalibrator}


def read_internal(internal: Any) -> BaseCalibrator | None:
    """Return the calibrator that `internal` names; refuse what is none.

    Examples
    --------
    >>> from dubito.dichotomies._node_maps import read_internal
    >>> read_internal("isotonic")
    IsotonicCalibrator()
    """
    if internal is None:
        return None
    if isinstance(internal, BaseCalibrator):
        internal._validate_params()  # packed maps do without its fit
        return internal
    if isinstance(internal, str) and internal in _NAMED:
        return _NAMED[internal]()
    hint = ""
    if isinstance(internal, type) and issubclass(internal, BaseCalibrator):
        hint = f" Pass an instance: {internal.__name__}()."
    raise ValueError(
        "The 'internal' parameter must be 'auto', None, 'platt', 'isotonic' or a calibrator of "
        f"dubito.calibration for two classes. Got {internal!r} instead.{hint}"
    )


def fit_node_maps(
    internal: Any,
    cross: FloatArray | None,
    ptr: IntArray,
    middle: IntArray,
    *,
    weight: FloatArray,
    first: IntArray,
    n_jobs: int | None = None,
) -> NodeMaps:
    """Fit the calibration maps of all nodes.

    Parameters
    ----------
    internal : None, "platt", "isotonic" or calibrator
        What to calibrate with; it is told log-odds, or probabilities where its ``input`` says so.
    cross : ndarray
        Out-of-fold log-odds of the right side: ``cross[ptr[t]:ptr[t + 1]]`` are those of the rows
        of node t. Where they hold nan, or are none, the node stays as it is. None without a
        calibrator.
    ptr : ndarray of shape (nodes + 1,)
        Where the scores of each node begin.
    middle : ndarray of shape (nodes,)
        Number of rows on the left side of each node; those on the right follow.
    weight : ndarray of shape (n,)
        Weights of all rows, in leaf order.
    first : ndarray of shape (nodes,)
        Where the rows of each node begin in leaf order.
    n_jobs : int or None
        Jobs, for the maps that are costly to fit.
    """
    calibrator = read_internal(internal)
    if calibrator is None:
        return IdentityMaps()
    assert cross is not None  # noqa: S101 - nodes are cross-fitted wherever they are calibrated
    rows = NodeRows(cross=cross, ptr=ptr, middle=middle, weight=weight, first=first)
    maps = _packed_maps(calibrator, rows, n_jobs)
    return fit_calibrators(calibrator, rows, n_jobs=n_jobs) if maps is None else maps


def _packed_maps(calibrator: Any, rows: NodeRows, n_jobs: int | None) -> NodeMaps | None:
    """Fit the maps that are made for many nodes; None where the calibrator has none."""
    if calibrator.input == "proba":  # these read log-odds as they come
        return None
    kind = type(calibrator)
    if kind is PlattCalibrator and calibrator.ridge == 0:
        return SigmoidMaps.fit(rows)
    if kind is IsotonicCalibrator:
        return IsotonicMaps.fit(rows, smoothing=calibrator.smoothing)
    if kind is EvidentialIsotonicCalibrator:
        return EvidentialIsotonicMaps.fit(rows, exact=bool(calibrator.exact), n_jobs=n_jobs)
    # Raw targets may have no estimate; the calibrator refuses that.
    if kind is EvidentialLogisticCalibrator and calibrator.targets != "raw":
        return EvidentialSigmoidMaps.fit(rows, targets=calibrator.targets, n_jobs=n_jobs)
    return None
