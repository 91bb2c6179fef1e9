"""Maps of nodes that keep log-odds affine: none at all, and sigmoids."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from dubito._numerics.targets import target_table
from dubito.dichotomies._map_base import NodeMaps, NodeRows, contiguous, finite

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dubito._typing import FloatArray

#: An intercept beyond this in the units of log-odds costs digits when it is written out.
_FAR = 1e6


class IdentityMaps(NodeMaps):
    """The node models' own log-odds."""

    def log_odds(self, scores: FloatArray) -> FloatArray:
        """Return the scores themselves, made finite."""
        return finite(scores)

    @property
    def affine(self) -> tuple[FloatArray, FloatArray]:
        """Slope 1 and intercept 0, for any number of nodes."""
        return np.ones(1), np.zeros(1)


def side_targets(rows: NodeRows, targets: str) -> FloatArray:
    """Return what the rows of both sides of each node are asked to be predicted as, (nodes, 2)."""
    sides = np.arange(2)
    tables = [target_table(sides, weights, 2, targets)[:, 1] for weights in rows.side_weights()]
    return np.array(tables).reshape(-1, 2)


@dataclass(frozen=True, repr=False)
class SigmoidMaps(NodeMaps):
    """Log-odds slope (s - centre) / scale + level: columns 0 to 3 of `coef`, in this order.

    Column 4 is the certificate of the fit: the largest component of the gradient, for each unit of
    weight. An uncalibrated node has the identity.
    """

    coef: FloatArray

    @classmethod
    def fit(cls, rows: NodeRows, targets: str = "smoothed") -> Self:
        """Fit sigmoids at all nodes in one pass; with smoothed targets they are Platt's."""
        from dubito.dichotomies._kernels.packed_sigmoids_compiled import fit_sigmoids  # noqa: PLC0415 - loads numba

        return cls(fit_sigmoids(rows.packed, side_targets(rows, targets)))

    @classmethod
    def from_lines(cls, lines: Sequence[tuple[float, float]]) -> Self:
        """Make maps of slopes and intercepts that are known."""
        slope, intercept = np.array(lines, dtype=np.float64).reshape(-1, 2).T
        zeros = np.zeros(len(slope))
        return cls(np.column_stack([zeros, np.ones(len(slope)), slope, intercept, zeros]))

    def log_odds(self, scores: FloatArray) -> FloatArray:
        """Return calibrated log-odds."""
        from dubito.dichotomies._kernels.packed_sigmoids_compiled import affine_log_odds  # noqa: PLC0415

        return affine_log_odds(contiguous(scores), self.coef)

    @property
    def affine(self) -> tuple[FloatArray, FloatArray] | None:
        """Slope and intercept of each node; None where these would lose digits.

        That is where a node's scores lie far from 0, seen from their own spread.
        """
        centre, scale, slope, level, _ = self.coef.T
        constant = ~(scale > 0)
        with np.errstate(over="ignore", invalid="ignore"):
            steepness = np.where(constant, 0.0, slope / np.where(constant, 1.0, scale))
            shift = steepness * centre
        if not ((np.abs(steepness) < _FAR) & (np.abs(shift) < _FAR)).all():
            return None
        return steepness, level - shift
