"""Finished rounds on disk, one small file each: a run can stop and continue at any time."""

from __future__ import annotations

import json
import os
from contextlib import contextmanager
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class Cell(Protocol):
    """One unit of work: a round of something."""

    @property
    def name(self) -> str:
        """Name of its file, without the extension."""

    @property
    def words(self) -> str:
        """Text for a progress bar."""


class Settings(Protocol):
    """Everything that the numbers of a round depend on, besides its cell."""

    @property
    def name(self) -> str:
        """First part of the folder's name."""

    def described(self) -> dict[str, Any]:
        """Return everything that must be equal for results to belong together."""


class Store:
    """The results of one choice of settings, in their own folder below `root`.

    The folder's name ends in a digest of the settings: results of other settings are neither
    read nor overwritten.
    """

    def __init__(self, root: Path, settings: Settings) -> None:
        described = json.dumps(settings.described(), indent=1)
        digest = sha256(described.encode()).hexdigest()[:8]
        self.folder = root / f"{settings.name}-{digest}"
        self.settings = settings
        self._described = described

    def path(self, cell: Cell) -> Path:
        """Return the path of a round's result."""
        return self.folder / f"{cell.name}.json"

    def has(self, cell: Cell) -> bool:
        """Return whether a round is done."""
        return self.path(cell).is_file()

    def read(self, cell: Cell) -> dict[str, Any]:
        """Return a round's result."""
        result: dict[str, Any] = json.loads(self.path(cell).read_text(encoding="utf-8"))
        return result

    def write(self, cell: Cell, result: dict[str, Any]) -> None:
        """Write a round's result: the file appears complete or not at all."""
        self.folder.mkdir(parents=True, exist_ok=True)
        notes = {
            self.folder / "settings.json": self._described,
            self.folder.parent / ".gitignore": "# results are not kept in the repository\n*",
        }
        for note, text in notes.items():
            if not note.is_file():
                _write_text(note, text)
        _write_text(self.path(cell), json.dumps(result))


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """Yield a temporary path, which is renamed to `path` if the block succeeds."""
    draft = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        yield draft
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def _write_text(path: Path, text: str) -> None:
    with atomic_write(path) as draft:
        draft.write_text(text + "\n", encoding="utf-8")
