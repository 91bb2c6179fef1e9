"""Plots of calibrators and classifiers: probabilities, evidence, masses and decisions.

One Display class per file, as in scikit-learn: `from_estimator` computes plain arrays, which the
object stores and `plot` draws on given axes. matplotlib is imported on the first drawing; install
it with ``pip install ".[plots]"`` in a checkout.
"""

from dubito.plots.contour import ContourDisplay
from dubito.plots.decision_region import DecisionRegionDisplay
from dubito.plots.error_reject import ErrorRejectDisplay
from dubito.plots.evidence import EvidenceDisplay
from dubito.plots.mass import MassDisplay
from dubito.plots.reliability import ReliabilityDisplay
from dubito.plots.tree import TreeDisplay

__all__ = [
    "ContourDisplay",
    "DecisionRegionDisplay",
    "ErrorRejectDisplay",
    "EvidenceDisplay",
    "MassDisplay",
    "ReliabilityDisplay",
    "TreeDisplay",
]
