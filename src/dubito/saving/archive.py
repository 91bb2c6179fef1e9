"""The model file: a skops zip file with one more member, the stamp, and the skops schema in it."""

from __future__ import annotations

import json
import re
import struct
import zlib
from hashlib import sha256
from io import BytesIO
from typing import TYPE_CHECKING, Any, NamedTuple
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

STAMP = "dubito.json"
SCHEMA = "schema.json"

#: Names of the members that skops writes. No folders, so no path can leave the archive.
_MEMBER = re.compile(r"[A-Za-z0-9_-]+\.(json|npy|npz|bin)")

#: Limits of the unpacked size: this many times the file size, or this many bytes if that is more.
#: Arrays are stored uncompressed and the schema shrinks about twentyfold, so models stay far below.
MOST_TIMES = 100
MOST_BYTES = 2**28

_ZIP = b"PK"
_BROKEN = (BadZipFile, EOFError, NotImplementedError, RuntimeError, ValueError, OSError)

#: The protocol of skops since 0.5. dubito never wrote an older one, whose loaders check less.
OLDEST_PROTOCOL = 2

#: The pool size of numpy's seed sequences, as in the file. Loading a huge one would not end.
_POOL_SIZE = "4"


class ModelFileError(ValueError):
    """A model cannot be saved, or a file holds none that can be loaded safely."""


def checksum(members: Mapping[str, bytes], stamp: bytes) -> str:
    """Return the SHA-256 of the names and contents of all members, and of the stamp.

    Each part is preceded by its length, so that moving bytes from one part to the next changes it.
    """
    digest = sha256()
    for name in sorted(members):
        for part in (name.encode(), members[name]):
            digest.update(len(part).to_bytes(8, "big"))
            digest.update(part)
    digest.update(stamp)
    return digest.hexdigest()


def pack_members(members: Mapping[str, bytes]) -> bytes:
    """Return a zip file of `members`: text compressed, arrays not, for they hardly shrink."""
    buffer = BytesIO()
    with ZipFile(buffer, "w") as archive:
        for name, content in members.items():
            method = ZIP_DEFLATED if name.endswith(".json") else ZIP_STORED
            archive.writestr(name, content, compress_type=method)
    return buffer.getvalue()


def read_zip(path: Path) -> bytes:
    """Return the bytes of a file that begins with the signature of a zip file."""
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder. Name a model file.")
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}.")
    with path.open("rb") as file:
        head = file.read(2)
        if head == _ZIP:
            return head + file.read()
    raise ModelFileError(f"{path} is not a model saved by dubito: it {_description(head)}.")


def _description(head: bytes) -> str:
    """Return what a file that is no zip file seems to be, by its first bytes."""
    if not head:
        return "is empty"
    if head[0] == 0x80:  # the first byte of a pickle
        return (
            "looks like a pickle, and opening one can run any program. If you know who made it, "
            "load it yourself and save the model with dubito.saving.save"
        )
    return "is no skops file. `dubito train`, `dubito calibrate` and dubito.saving.save make them"


def unpack(content: bytes, path: str) -> dict[str, bytes]:
    """Return the members of a zip file by name, if a model file may have such members."""
    try:
        with ZipFile(BytesIO(content)) as archive:
            entries = archive.infolist()
            _refuse_odd_names([entry.filename for entry in entries], path)
            refuse_zip_bombs(_unpacked_size(archive), len(content), path)
            members = {entry.filename: archive.read(entry) for entry in entries}
        nested = [ZipFile(BytesIO(members[name])) for name in members if name.endswith(".npz")]
        refuse_zip_bombs(sum(map(_unpacked_size, nested)), len(content), path)
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


def refuse_zip_bombs(unpacked: int, packed: int, path: str) -> None:
    """Raise an error for a file that would unpack to far more memory than its size suggests."""
    if unpacked > max(MOST_BYTES, MOST_TIMES * packed):
        raise ModelFileError(
            f"{path} has {packed:,} bytes but would unpack to {unpacked:,}. No real model does, "
            "so it is not opened."
        )


class TypeReference(NamedTuple):
    """A place in a schema that names a type, of which loading would create an object."""

    name: str  # of the type, with its module
    loader: str  # the class of skops that would create the object
    number: int | str  # of the object; skops creates one object for each number
    file: str | None = None  # the member it is read from


def read_type_references(members: Mapping[str, bytes], path: str) -> list[TypeReference]:
    """Return every reference to a type in the schema of a file, at any depth.

    skops creates no object without such an entry, so what is refused here is never created.
    """
    try:
        schema = json.loads(members[SCHEMA])
        _refuse_other_protocols(schema, path)
        unambiguous = _numbers_are_unique(schema, members)
    except (ValueError, RecursionError) as error:
        if isinstance(error, ModelFileError):
            raise
        raise ModelFileError(f"{path} is damaged: its schema cannot be read.") from error
    parts = _objects_of(schema)
    if not unambiguous or not all(map(_is_harmless_to_create, parts)):
        raise ModelFileError(
            f"{path} is not a model as dubito saves them: somebody changed its schema."
        )
    return [_type_reference(part) for part in parts if isinstance(part.get("__loader__"), str)]


def _refuse_other_protocols(schema: Any, path: str) -> None:
    protocol = schema.get("protocol") if isinstance(schema, dict) else None
    if type(protocol) is not int or protocol < OLDEST_PROTOCOL:
        raise ModelFileError(
            f"{path} is not a model as dubito saves them: its schema has another format."
        )


def _objects_of(schema: Any) -> list[dict[str, Any]]:
    found = []
    waiting: list[Any] = [schema]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            found.append(part)
            waiting.extend(part.values())
        elif isinstance(part, list):
            waiting.extend(part)
    return found


def _type_reference(part: dict[str, Any]) -> TypeReference:
    name = f"{part.get('__module__')}.{part.get('__class__')}"
    file = part.get("file")
    return TypeReference(
        name,
        part["__loader__"],
        part.get("__id__") or f"unnumbered {id(part)}",
        file if isinstance(file, str) else None,
    )


def _numbers_are_unique(schema: Any, members: Mapping[str, bytes]) -> bool:
    """Return whether entries with the same number are equal everywhere, as skops writes them.

    skops creates the object from the first entry and reuses it for the others without reading them.
    If they differed, the entries checked would not be the objects created; and a few nested entries
    could expand without end.
    """
    groups: dict[Any, int] = {}  # one integer for all equal entries
    group_of_number: dict[int, int] = {}

    own = ("__id__", "file")

    def content_of(file: Any) -> Any:
        # An array that is created again at each entry has a member for each, of the same bytes.
        return members.get(file, file) if isinstance(file, str) else group_of(file)

    def group_of(part: Any) -> int:
        if isinstance(part, dict):
            inner = ((key, group_of(value)) for key, value in part.items() if key not in own)
            written: Any = ("dict", content_of(part.get("file")), *inner)
        elif isinstance(part, list):
            written = ("list", *map(group_of, part))
        else:
            written = (type(part), part)
        group = groups.setdefault(written, len(groups))
        number = part.get("__id__") if isinstance(part, dict) else None
        if number is None:
            return group
        if type(number) is not int or group_of_number.setdefault(number, group) != group:
            raise _AmbiguousNumberError
        return group

    try:
        group_of(schema)
    except _AmbiguousNumberError:
        return False
    return True


class _AmbiguousNumberError(Exception):
    """Entries with the same number differ."""


def _is_harmless_to_create(part: dict[str, Any]) -> bool:
    """Return whether creating an object only assembles values.

    An attribute such as ``__array_interface__`` would make numpy read arbitrary memory.
    """
    loader, content = part.get("__loader__"), part.get("content")
    if loader == "DictNode":
        return isinstance(content, dict) and not any(key.startswith("__") for key in content)
    if loader == "MaskedArrayNode":
        arrays = content.values() if isinstance(content, dict) else [None]
        return all(
            isinstance(one, dict) and one.get("__loader__") == "NdArrayNode" for one in arrays
        )
    if loader == "RandomGeneratorNode":
        return _has_small_seed(part)
    return True


def _has_small_seed(part: dict[str, Any]) -> bool:
    try:
        # Older versions of skops write no seed.
        seed = part["content"].get("seed_seq")
        return seed is None or bool(seed["content"]["pool_size"]["content"] == _POOL_SIZE)
    except (AttributeError, KeyError, TypeError):
        return False
