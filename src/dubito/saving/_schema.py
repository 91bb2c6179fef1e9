"""What a skops schema names: each type, and by which of skops' loaders it would be made."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from dubito.saving._archive import SCHEMA
from dubito.saving._errors import ModelFileError

if TYPE_CHECKING:
    from collections.abc import Mapping

#: The protocol of skops since 0.5. Older ones have loaders with fewer checks, and no file of ours.
OLDEST_PROTOCOL = 2

#: How numpy writes the size of a generator's seed. Larger ones take time without end.
_POOL_SIZE = "4"


class Use(NamedTuple):
    """One place in a schema where a type is named."""

    name: str  # of the type, with its module
    loader: str  # how skops would make an object of it
    number: int | str  # of the object; skops makes those of one number once
    file: str | None = None  # the member it is read from


def read_uses(members: Mapping[str, bytes], path: str) -> list[Use]:
    """Return all types that the schema of a file names, wherever they stand in it.

    skops makes no object without such a place, so what is refused here is never made.
    """
    try:
        schema = json.loads(members[SCHEMA])
        _refuse_other_protocols(schema, path)
        in_order = _numbers_mean_one_thing(schema, members)
    except (ValueError, RecursionError) as error:
        if isinstance(error, ModelFileError):
            raise
        raise ModelFileError(f"{path} is damaged: its schema cannot be read.") from error
    parts = _objects_of(schema)
    if not in_order or not all(map(_is_harmless_to_make, parts)):
        raise ModelFileError(
            f"{path} is not a model as dubito saves them: somebody changed its schema."
        )
    return [_use(part) for part in parts if isinstance(part.get("__loader__"), str)]


def _refuse_other_protocols(schema: Any, path: str) -> None:
    protocol = schema.get("protocol") if isinstance(schema, dict) else None
    if type(protocol) is not int or protocol < OLDEST_PROTOCOL:
        raise ModelFileError(f"{path} is not a model as dubito saves them: its schema is another.")


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


def _use(part: dict[str, Any]) -> Use:
    name = f"{part.get('__module__')}.{part.get('__class__')}"
    file = part.get("file")
    return Use(
        name,
        part["__loader__"],
        part.get("__id__") or f"unnumbered {id(part)}",
        file if isinstance(file, str) else None,
    )


def _numbers_mean_one_thing(schema: Any, members: Mapping[str, bytes]) -> bool:
    """Say whether objects of one number are written alike at all places, as skops writes them.

    skops makes an object of the first place and puts it at the others unread. Were they to differ,
    what is looked at would not be what is made; and a few lines could unfold into endless paths.
    """
    kinds: dict[Any, int] = {}  # one small number for all that is written alike
    meant: dict[int, int] = {}

    own = ("__id__", "file")

    def content_of(file: Any) -> Any:
        # An array made anew at each place has a member of its own there, of the same bytes.
        return members.get(file, file) if isinstance(file, str) else kind_of(file)

    def kind_of(part: Any) -> int:
        if isinstance(part, dict):
            inner = ((key, kind_of(value)) for key, value in part.items() if key not in own)
            written: Any = ("dict", content_of(part.get("file")), *inner)
        elif isinstance(part, list):
            written = ("list", *map(kind_of, part))
        else:
            written = (type(part), part)
        kind = kinds.setdefault(written, len(kinds))
        number = part.get("__id__") if isinstance(part, dict) else None
        if number is None:
            return kind
        if type(number) is not int or meant.setdefault(number, kind) != kind:
            raise _OtherMeaningError
        return kind

    try:
        kind_of(schema)
    except _OtherMeaningError:
        return False
    return True


class _OtherMeaningError(Exception):
    """Objects of one number differ."""


def _is_harmless_to_make(part: dict[str, Any]) -> bool:
    """Say whether making an object does no more than putting values together.

    Attributes like ``__array_interface__`` would have numpy read any place in memory.
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
