"""The one error of this room."""


class ModelFileError(ValueError):
    """A model cannot be saved, or a file holds none that can be loaded safely."""
