"""What the evidence room refuses, and what it warns of."""


class NotSupportedError(TypeError):
    """A model has no last linear layer that evidence could be read from."""


class OneVsRestWarning(UserWarning):
    """A model's own probabilities are no softmax of its outputs, and differ from the evidence's."""
