"""What a model file says about itself: its member ``dubito.json``."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, fields
from math import isfinite
from typing import TYPE_CHECKING, Any

from dubito.saving._errors import ModelFileError

if TYPE_CHECKING:
    from collections.abc import Callable

#: The format that this dubito writes. A change that an older dubito would misread raises it by one
#: and adds a step to `MIGRATIONS`.
FORMAT = 1

KINDS = ("features", "scores")
COLUMN_TYPES = ("number", "text")

_VERSION = re.compile(r"[A-Za-z0-9.+!_-]{1,60}")

Label = str | int | float | bool
LABEL_TYPES = (str, int, float, bool)

#: Format -> what makes a stamp of the next format of one of this. A format that is missing here can
#: no longer be read.
MIGRATIONS: dict[int, Callable[[dict[str, Any]], dict[str, Any]]] = {}


@dataclass(frozen=True)
class Stamp:
    """What a saved model says about itself; `read_stamp` reads it without loading the model.

    Attributes
    ----------
    format : int
        The number of the file format.
    dubito : str
        The version of dubito that wrote the file.
    versions : dict
        The versions of python, numpy, scipy, scikit-learn and skops it was written with.
    saved : str
        Date and time of saving in UTC, as ISO 8601 text.
    kind : {"features", "scores"}
        "features": a classifier fitted on a table. "scores": a calibrator fitted on score columns.
    columns : tuple of str
        Names of the columns the model takes, in its order; empty when none are known.
    column_types : tuple of {"number", "text"}
        What each column holds.
    label : str or None
        Name of the column that held the labels.
    classes : list of str, int, float or bool
        The classes, in the model's order.
    method : str or None
        What the model is called, as in "evidential-multinomial".
    rows : int or None
        How many rows it was fitted on.
    options : dict
        Anything else worth keeping, as plain JSON values.
    sha256 : str
        Checksum of all the rest of the file. It tells damage, not forgery: who changes a file on
        purpose can write a new checksum too.
    """

    format: int
    dubito: str
    versions: dict[str, str]
    saved: str
    kind: str
    columns: tuple[str, ...]
    column_types: tuple[str, ...]
    label: str | None
    classes: list[Label]
    method: str | None
    rows: int | None
    options: dict[str, Any]
    sha256: str


def to_json(stamp: Stamp) -> bytes:
    """Return the stamp as the text that stands in the file."""
    return json.dumps(asdict(stamp), indent=2, ensure_ascii=False, allow_nan=False).encode()


def covered(raw: dict[str, Any]) -> bytes:
    """Return all of a stamp but its checksum, in bytes that do not depend on its layout."""
    rest = {key: value for key, value in raw.items() if key != "sha256"}
    return json.dumps(rest, sort_keys=True, separators=(",", ":")).encode()


def parse(text: bytes, path: str) -> dict[str, Any]:
    """Read the stamp's text; what it says is not checked yet but for its format."""
    try:
        raw = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"{path} is damaged: its stamp cannot be read ({error}).") from error
    if not isinstance(raw, dict) or type(raw.get("format")) is not int:
        raise ModelFileError(f"{path} is damaged: its stamp names no format.")
    if raw["format"] > FORMAT:
        raise ModelFileError(
            f"{path} was written by {_writer(raw)} in format {raw['format']}; this dubito reads "
            f"formats up to {FORMAT}. Update it: pip install --upgrade dubito."
        )
    return raw


def from_raw(raw: dict[str, Any], path: str) -> Stamp:
    """Return the stamp, brought up to this format, if every field holds what it should."""
    raw = _migrated(raw, path)
    wrong = [
        field.name
        for field in fields(Stamp)
        if field.name not in raw or not _CHECKS[field.name](raw[field.name])
    ]
    if not wrong and len(raw["columns"]) != len(raw["column_types"]):
        wrong = ["column_types"]
    if wrong:
        raise ModelFileError(f"{path} is damaged: its stamp has no valid {', '.join(wrong)}.")
    known = {field.name: raw[field.name] for field in fields(Stamp)}
    known["columns"], known["column_types"] = tuple(raw["columns"]), tuple(raw["column_types"])
    return Stamp(**known)


def _migrated(raw: dict[str, Any], path: str) -> dict[str, Any]:
    while raw["format"] < FORMAT:
        step = MIGRATIONS.get(raw["format"])
        if step is None:
            raise ModelFileError(
                f"{path} was written by {_writer(raw)} in format {raw['format']}, which this "
                "dubito no longer reads. Load it with that version, or fit the model again."
            )
        raw = {**step(raw), "format": raw["format"] + 1}
    return raw


def _writer(raw: dict[str, Any]) -> str:
    named = raw.get("dubito")
    return f"dubito {named}" if _is_version(named) else "an unknown dubito"


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_text_or_none(value: Any) -> bool:
    return value is None or isinstance(value, str)


def _is_version(value: Any) -> bool:
    return isinstance(value, str) and _VERSION.fullmatch(value) is not None


def _is_label(value: Any) -> bool:
    return isinstance(value, LABEL_TYPES) and (not isinstance(value, float) or isfinite(value))


def _is_list_of(allowed: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and all(map(allowed, value))


_CHECKS: dict[str, Callable[[Any], bool]] = {
    "format": lambda value: type(value) is int,
    "dubito": _is_version,
    "versions": lambda value: (
        isinstance(value, dict) and all(map(_is_version, [*value, *value.values()]))
    ),
    "saved": _is_text,
    "kind": KINDS.__contains__,
    "columns": lambda value: _is_list_of(_is_text)(value) and len(set(value)) == len(value),
    "column_types": _is_list_of(COLUMN_TYPES.__contains__),
    "label": _is_text_or_none,
    "classes": lambda value: bool(value) and _is_list_of(_is_label)(value),
    "method": _is_text_or_none,
    "rows": lambda value: value is None or (type(value) is int and value >= 0),
    "options": lambda value: isinstance(value, dict),
    "sha256": _is_text,
}
