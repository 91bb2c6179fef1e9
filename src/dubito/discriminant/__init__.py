"""Gaussian discriminant analysis with imprecise means: sets of classes, and exact bounds (P3)."""

from dubito.discriminant._model import LogDensityBounds
from dubito.discriminant._path import CPath
from dubito.discriminant.errors import SingularCovarianceWarning, UnsettledWarning, WideBoxWarning
from dubito.discriminant.gaussian import ImpreciseGaussianDiscriminant

__all__ = [
    "CPath",
    "ImpreciseGaussianDiscriminant",
    "LogDensityBounds",
    "SingularCovarianceWarning",
    "UnsettledWarning",
    "WideBoxWarning",
]
