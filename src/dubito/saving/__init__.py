"""Save fitted models in skops files, never pickles, and load them from trusted types only.

`save` writes a fitted model with a stamp (columns, classes, versions, a checksum), `load` returns
the model, `read_stamp` only the stamp. Needs ``pip install ".[cli]"`` in a
checkout.
"""

from dubito.saving.archive import ModelFileError
from dubito.saving.models import Saved, load, read_stamp, save
from dubito.saving.stamp import Stamp

__all__ = ["ModelFileError", "Saved", "Stamp", "load", "read_stamp", "save"]
