"""Gaussian discriminant analysis with imprecise means: sets of classes, exact bounds."""

from dubito.discriminant._fitted_model import LogDensityBounds
from dubito.discriminant.errors import SingularCovarianceWarning, UnsettledWarning, WideBoxWarning
from dubito.discriminant.gaussian import ImpreciseGaussianDiscriminant
from dubito.discriminant.tuning import CPath

__all__ = [
    "CPath",
    "ImpreciseGaussianDiscriminant",
    "LogDensityBounds",
    "SingularCovarianceWarning",
    "UnsettledWarning",
    "WideBoxWarning",
]
