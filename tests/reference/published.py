"""Estimators with the settings of the papers, where defaults are others."""

from __future__ import annotations

from dubito.discriminant import ImpreciseGaussianDiscriminant


def published(**options):
    """Return the discriminant of Carranza Alarcón and Destercke (2019), with c = 1 unless said."""
    return ImpreciseGaussianDiscriminant(**{"box": "raw", "shrinkage": None, "c": 1.0, **options})
