"""Warnings of the models of evidence."""


class OneVsRestWarning(UserWarning):
    """A model's own probabilities are not the softmax of its outputs, as those of evidence are."""
