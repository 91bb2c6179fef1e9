"""What "auto" stands for in the calibration of nodes, of a tree and of several trees."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from dubito.calibration import EvidentialMultinomialCalibrator, PlattCalibrator
from dubito.dichotomies._estimator_nodes import has_probabilities
from dubito.dichotomies._external import read_external
from dubito.dichotomies._logistic_nodes import plain_logistic
from dubito.dichotomies._node_maps import read_internal

if TYPE_CHECKING:
    from dubito.calibration.base import BaseCalibrator


class Calibrators(NamedTuple):
    """Calibrators of the nodes and of the whole, None where there is none.

    ``by_default`` says that nobody asked for that of the whole: it is left out where rows are too
    few, and decides itself which rows it is fitted on.
    """

    internal: BaseCalibrator | None
    external: BaseCalibrator | None
    by_default: bool = False


def is_auto(value: Any) -> bool:
    """Say whether a parameter is the word "auto"."""
    return isinstance(value, str) and value == "auto"


def default_external() -> BaseCalibrator:
    """Return the calibrator of log-probabilities that is used where none is named: one slope.

    A single number is known well from a hundred rows, however many the classes, and so are its
    bounds.
    """
    return EvidentialMultinomialCalibrator(input="logits")


def default_internal() -> BaseCalibrator:
    """Return the calibrator of nodes that is used where none is named: Platt's sigmoids.

    They help in small nodes, where even penalised logistic regression is off, and cost no rows.
    """
    return PlattCalibrator()


def internal_of_several(estimator: Any) -> BaseCalibrator | None:
    """Return the calibrator of nodes of trees that are pooled, where none is named.

    The slope of the pool makes good what penalised logistic nodes hold back, at a third of the
    time; what other nodes get wrong is mended node by node.
    """
    return None if plain_logistic(estimator) is not None else default_internal()


def read_calibrators(internal: Any, external: Any, estimator: Any) -> Calibrators:
    """Return what `internal` and `external` of a tree name; refuse what names nothing.

    Left at "auto", both are chosen. Where one is named, even None, the other is left out: the
    schemes that are compared in P4 are each named by one word.
    """
    if is_auto(internal) and is_auto(external):
        return Calibrators(default_internal(), default_external(), by_default=True)
    if is_auto(internal):
        # Margins are no log-odds: without a sigmoid there are no probabilities at all.
        needed = estimator is not None and not has_probabilities(estimator)
        internal = "platt" if needed and external is not None else None
    if is_auto(external):
        external = None
    return Calibrators(read_internal(internal), read_external(external))
