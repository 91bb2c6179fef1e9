"""Plots of calibrators and classifiers: probabilities, evidence, masses and decisions.

One Display class per file, as in scikit-learn: `from_estimator` computes, the object keeps plain
arrays, and `plot` draws them on the axes it is given. matplotlib is imported on the first drawing;
``pip install "dubito[plots]"`` brings it.
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
