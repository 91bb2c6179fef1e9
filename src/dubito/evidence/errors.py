"""Warnings of `EvidentialClassifier`."""


class OneVsRestWarning(UserWarning):
    """The model's own probabilities are not the softmax of its outputs; the evidence's are."""
