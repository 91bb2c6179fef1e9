"""Estimators with the options of the papers, which differ from the defaults."""

from __future__ import annotations

from dubito.discriminant import ImpreciseGaussianDiscriminant


def published(**options):
    """Return the discriminant of Carranza Alarcón and Destercke (2019), with c = 1 by default."""
    return ImpreciseGaussianDiscriminant(**{"box": "raw", "shrinkage": None, "c": 1.0, **options})
