"""Warnings of the models of evidence."""


class OneVsRestWarning(UserWarning):
    """A model's own probabilities are no softmax of its outputs: those of the evidence differ."""
