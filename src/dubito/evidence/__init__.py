"""Evidence behind logistic regression and neural networks (Denœux 2019).

Every feature that enters the last linear layer of a model is a piece of evidence for and against
each class. Dempster's rule combines the pieces, and the model's probabilities are the normalised
plausibilities of the result, which also shows how much evidence there is and how far it conflicts.
`EvidentialClassifier` is for scikit-learn classifiers, `EvidenceModel` for any linear layer,
`dubito.evidence.torch` for torch models.
"""

from dubito._validation import NotSupportedError
from dubito.evidence.classifier import EvidentialClassifier
from dubito.evidence.errors import OneVsRestWarning
from dubito.evidence.explanation import Explanation
from dubito.evidence.model import EvidenceModel
from dubito.evidence.weights import (
    bounds_from_weights,
    conflict_from_weights,
    ignorance_from_weights,
    mass_from_weights,
)

__all__ = [
    "EvidenceModel",
    "EvidentialClassifier",
    "Explanation",
    "NotSupportedError",
    "OneVsRestWarning",
    "bounds_from_weights",
    "conflict_from_weights",
    "ignorance_from_weights",
    "mass_from_weights",
]
