"""What models of evidence warn of."""


class OneVsRestWarning(UserWarning):
    """A model's own probabilities are no softmax of its outputs, and differ from the evidence's."""
