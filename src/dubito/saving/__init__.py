"""Models in files: saved by skops, stamped, loaded only from trusted types; never a pickle.

`save` writes a fitted model with a stamp (columns, classes, versions, a checksum), `load` brings it
back, `read_stamp` tells what a file holds without loading it. Needs ``pip install "dubito[cli]"``.
"""

from dubito.saving._errors import ModelFileError
from dubito.saving._files import Saved, load, read_stamp, save
from dubito.saving._stamp import Stamp

__all__ = ["ModelFileError", "Saved", "Stamp", "load", "read_stamp", "save"]
