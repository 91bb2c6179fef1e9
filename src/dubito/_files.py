"""Write a file in one step: an interrupted write leaves no file, or the old one."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory


def refuse_overwriting(path: Path, *, force: bool) -> None:
    """Raise an error if `path` exists and may not be replaced, or if its folder does not exist."""
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder. Name a file.")
    if path.exists() and not force:
        raise FileExistsError(
            f"{path} already exists. Name another file, or allow replacing it: force=True, or "
            "--force on the command line."
        )
    if not path.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {path.parent}. Make it first.")


def write_whole(path: Path, content: bytes, *, force: bool) -> None:
    """Write `content` to a temporary file beside `path`, then rename it to `path`."""
    refuse_overwriting(path, force=force)
    try:
        _write(path, content, force=force)
    except FileExistsError:
        raise
    except OSError as error:
        reason = error.strerror or str(error)
        raise type(error)(f"{path} could not be written: {reason}.") from error


def _write(path: Path, content: bytes, *, force: bool) -> None:
    """Do the work of `write_whole`, without its error messages."""
    with TemporaryDirectory(dir=path.parent, prefix=".partial-") as folder:
        partial = Path(folder) / path.name
        with partial.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())  # a full disk raises here, while the old file still exists
        refuse_overwriting(path, force=force)  # another process may have written it meanwhile
        partial.replace(path)
