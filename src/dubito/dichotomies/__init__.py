"""Nested dichotomies: calibrated probabilities, bounds and sets for thousands of classes."""

from dubito.dichotomies.classifier import NestedDichotomyClassifier
from dubito.dichotomies.ensemble import NestedDichotomyEnsemble
from dubito.dichotomies.tree import DichotomyTree

__all__ = ["DichotomyTree", "NestedDichotomyClassifier", "NestedDichotomyEnsemble"]
