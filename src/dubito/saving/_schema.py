"""What a skops schema names: each type, and by which of skops' loaders it would be made."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from dubito.saving._errors import ModelFileError

#: The protocol of skops since 0.5. Older ones have loaders with fewer checks, and no file of ours.
OLDEST_PROTOCOL = 2


class Use(NamedTuple):
    """One place in a schema where a type is named."""

    name: str  # of the type, with its module
    loader: str  # how skops would make an object of it
    number: int | str  # of the object; skops makes those of one number once


def read_uses(text: bytes, path: str) -> list[Use]:
    """Return all types a schema names, wherever they stand in it.

    skops makes no object without such a place, so what is refused here is never made.
    """
    try:
        schema = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"{path} is damaged: its schema cannot be read.") from error
    protocol = schema.get("protocol") if isinstance(schema, dict) else None
    if type(protocol) is not int or protocol < OLDEST_PROTOCOL:
        raise ModelFileError(f"{path} is not a model as dubito saves them: its schema is another.")
    uses = []
    waiting: list[Any] = [schema]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            if isinstance(part.get("__loader__"), str):
                name = f"{part.get('__module__')}.{part.get('__class__')}"
                uses.append(Use(name, part["__loader__"], _number(part)))
            waiting.extend(part.values())
        elif isinstance(part, list):
            waiting.extend(part)
    return uses


def _number(part: dict[str, Any]) -> int | str:
    number = part.get("__id__")
    return number if isinstance(number, int) and number else f"unnumbered {id(part)}"
