"""Fitted parts that work out what they are asked for once, and are saved without it."""

from __future__ import annotations

from dataclasses import fields
from typing import Any


class WithoutCache:
    """A dataclass whose cached properties are neither pickled nor saved: they are made again."""

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
