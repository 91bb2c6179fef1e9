"""The file itself: an ordinary skops zip with one more member, the stamp."""

from __future__ import annotations

import re
import struct
import zlib
from hashlib import sha256
from io import BytesIO
from typing import TYPE_CHECKING
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile

from dubito.saving._errors import ModelFileError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

STAMP = "dubito.json"
SCHEMA = "schema.json"

#: What skops calls its members: no folders, so nothing that could lead out of one.
_MEMBER = re.compile(r"[A-Za-z0-9_-]+\.(json|npy|npz|bin)")

#: A file may unpack to so many times its size, or to so many bytes if that is more. Arrays are
#: stored as they are and the schema shrinks some twentyfold, so honest files stay far below.
MOST_TIMES = 100
MOST_BYTES = 2**28

_ZIP = b"PK"
_BROKEN = (BadZipFile, EOFError, NotImplementedError, RuntimeError, ValueError, OSError)


def checksum(members: Mapping[str, bytes], stamp: bytes) -> str:
    """Return the SHA-256 of all members' names and contents, and of what the stamp says.

    Lengths stand before all parts, so that no byte can move from one to the next unnoticed.
    """
    digest = sha256()
    for name in sorted(members):
        for part in (name.encode(), members[name]):
            digest.update(len(part).to_bytes(8, "big"))
            digest.update(part)
    digest.update(stamp)
    return digest.hexdigest()


def pack(members: Mapping[str, bytes]) -> bytes:
    """Return a zip file of `members`: texts packed, arrays as they are, for they hardly shrink."""
    buffer = BytesIO()
    with ZipFile(buffer, "w") as archive:
        for name, content in members.items():
            how = ZIP_DEFLATED if name.endswith(".json") else ZIP_STORED
            archive.writestr(name, content, compress_type=how)
    return buffer.getvalue()


def read_zip(path: Path) -> bytes:
    """Return the bytes of a file that at least begins as a zip file does."""
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder. Name a model file.")
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}.")
    with path.open("rb") as file:
        head = file.read(2)
        if head == _ZIP:
            return head + file.read()
    raise ModelFileError(f"{path} is not a model saved by dubito: it {_looks(head)}.")


def _looks(head: bytes) -> str:
    if not head:
        return "is empty"
    if head[0] == 0x80:  # how pickles begin
        return (
            "looks like a pickle, and opening one can run any program. If you know who made it, "
            "load it yourself and save the model with dubito.saving.save"
        )
    return "is no skops file. `dubito train`, `dubito calibrate` and dubito.saving.save make them"


def unpack(content: bytes, path: str) -> dict[str, bytes]:
    """Return the members of a zip file by name, if they are what a model file may have."""
    try:
        with ZipFile(BytesIO(content)) as archive:
            entries = archive.infolist()
            _refuse_odd_names([entry.filename for entry in entries], path)
            refuse_bombs(_unpacked_size(archive), len(content), path)
            members = {entry.filename: archive.read(entry) for entry in entries}
        packed = [ZipFile(BytesIO(members[name])) for name in members if name.endswith(".npz")]
        refuse_bombs(sum(map(_unpacked_size, packed)), len(content), path)
    except ModelFileError:
        raise
    except (*_BROKEN, struct.error, zlib.error) as error:
        raise ModelFileError(
            f"{path} is damaged or was cut short ({error}). Get or make it again."
        ) from error
    return members


def _refuse_odd_names(names: list[str], path: str) -> None:
    if SCHEMA not in names:
        raise ModelFileError(f"{path} is a zip file, but not a model saved by dubito.")
    odd = [name for name in names if not _MEMBER.fullmatch(name)]
    if odd:
        raise ModelFileError(
            f"{path} is not a model as dubito saves them: it has a member called {odd[0]!r}."
        )
    if len(set(names)) < len(names):
        raise ModelFileError(
            f"{path} is not a model as dubito saves them: two members have one name."
        )


def _unpacked_size(archive: ZipFile) -> int:
    return sum(entry.file_size for entry in archive.infolist())


def refuse_bombs(unpacked: int, packed: int, path: str) -> None:
    """Refuse a file that takes far more memory than its size tells."""
    if unpacked > max(MOST_BYTES, MOST_TIMES * packed):
        raise ModelFileError(
            f"{path} has {packed:,} bytes but would unpack to {unpacked:,}. No honest model does; "
            "it is not opened."
        )
