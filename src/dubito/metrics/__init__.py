"""Metrics of probabilities, label sets and decisions to decline.

Log loss and Brier score are in scikit-learn; these are further ones. ``classes=`` names the label
of each column (an estimator's ``classes_``). Without it, integers in 0..K-1 are column numbers, and
otherwise exactly K distinct labels are taken in sorted order.
"""

from dubito._labels import AmbiguousLabelWarning
from dubito.metrics._brier import BrierDecomposition, brier_decomposition
from dubito.metrics._calibration_error import (
    classwise_calibration_error,
    expected_calibration_error,
)
from dubito.metrics._coverage import SizeCoverage, class_coverage, coverage, coverage_by_size
from dubito.metrics._scorers import (
    coverage_scorer,
    discounted_accuracy_scorer,
    neg_mean_set_size_scorer,
    u65_scorer,
    u80_scorer,
    worst_class_coverage_scorer,
    worst_size_coverage_scorer,
)
from dubito.metrics._selective import ErrorRejectCurve, aurc, error_reject_curve
from dubito.metrics._sets import (
    discounted_accuracy,
    mean_set_size,
    u65,
    u80,
    utility_discounted_accuracy,
)
from dubito.metrics._smooth import smooth_calibration_error
from dubito.metrics.bootstrap import Estimate
from dubito.metrics.evaluation import evaluate
from dubito.metrics.reject_cost import RejectCostCurve, reject_cost_curve
from dubito.metrics.reliability import ReliabilityCurve, reliability_curve

__all__ = [
    "AmbiguousLabelWarning",
    "BrierDecomposition",
    "ErrorRejectCurve",
    "Estimate",
    "RejectCostCurve",
    "ReliabilityCurve",
    "SizeCoverage",
    "aurc",
    "brier_decomposition",
    "class_coverage",
    "classwise_calibration_error",
    "coverage",
    "coverage_by_size",
    "coverage_scorer",
    "discounted_accuracy",
    "discounted_accuracy_scorer",
    "error_reject_curve",
    "evaluate",
    "expected_calibration_error",
    "mean_set_size",
    "neg_mean_set_size_scorer",
    "reject_cost_curve",
    "reliability_curve",
    "smooth_calibration_error",
    "u65",
    "u65_scorer",
    "u80",
    "u80_scorer",
    "utility_discounted_accuracy",
    "worst_class_coverage_scorer",
    "worst_size_coverage_scorer",
]
