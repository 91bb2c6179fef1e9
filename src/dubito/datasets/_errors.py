"""The one error of this room."""


class DatasetError(RuntimeError):
    """A dataset cannot be found, cannot be read, or is not what the catalogue says."""
