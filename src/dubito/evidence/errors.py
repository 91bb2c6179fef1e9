"""What the evidence room refuses."""


class NotSupportedError(TypeError):
    """A model has no last linear layer that evidence could be read from."""
