"""The stamp of a model file: what its member ``dubito.json`` says about the model."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np

from dubito._validation import check_choice
from dubito.saving.archive import ModelFileError

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

#: Format -> the function that converts a stamp of this format to the next. A format that is missing
#: here can no longer be read.
MIGRATIONS: dict[int, Callable[[dict[str, Any]], dict[str, Any]]] = {}


@dataclass(frozen=True)
class Stamp:
    """Description of a saved model; `read_stamp` reads it without loading the model.

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
        Checksum of the rest of the file. It detects damage, not forgery: whoever changes a file on
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
    """Return the text of ``dubito.json``, the member of the file that holds the stamp."""
    return json.dumps(asdict(stamp), indent=2, ensure_ascii=False, allow_nan=False).encode()


def checksummed_bytes(raw: dict[str, Any]) -> bytes:
    """Return a stamp without its checksum as bytes that do not depend on its layout."""
    rest = {key: value for key, value in raw.items() if key != "sha256"}
    return json.dumps(rest, sort_keys=True, separators=(",", ":")).encode()


def parse(text: bytes, path: str) -> dict[str, Any]:
    """Return the fields of a stamp's text; only the format number is checked."""
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
    """Return the stamp in the current format, if every field is valid."""
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


def plain_classes(model: Any) -> list[Label]:
    """Return a fitted model's classes as text, numbers, True or False."""
    name = type(model).__name__
    found = getattr(model, "classes_", None)
    if found is None:
        raise ModelFileError(
            f"{name} has no classes_, so it is not a fitted classifier or calibrator. "
            "Fit it before saving it."
        )
    classes = np.asarray(found, dtype=object).ravel()
    plain = [label.item() if isinstance(label, np.generic) else label for label in classes]
    odd = [label for label in plain if not _is_plain(label)]
    if odd or np.ndim(found) != 1:
        raise ModelFileError(
            f"classes must be one list of text, numbers or True and False; {name} has "
            f"{odd[0] if odd else found!r}. Turn the labels into text, as in y.astype(str), and "
            "fit it again."
        )
    return plain


def _is_plain(label: Any) -> bool:
    return type(label) in LABEL_TYPES and (type(label) is not float or isfinite(label))


def describe_columns(model: Any, columns: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return names and types of the columns a model takes, as given or as the model knows them."""
    if isinstance(columns, str):
        raise TypeError(f"columns must be a list of names or a dict; got the text {columns!r}.")
    known = [str(name) for name in getattr(model, "feature_names_in_", ())]
    given = known if columns is None else columns
    names = tuple(given)
    odd = [name for name in names if not isinstance(name, str)]
    if odd:
        raise TypeError(f"columns must be named by text; got {odd[0]!r}.")
    if len(set(names)) < len(names):
        raise ValueError("columns must have different names; some appear more than once.")
    _refuse_other_count(model, len(names))
    if not isinstance(given, Mapping):
        return names, ("number",) * len(names)
    types = [check_choice(given[name], f"columns[{name!r}]", COLUMN_TYPES) for name in names]
    return names, tuple(types)


def _refuse_other_count(model: Any, n_names: int) -> None:
    if n_names not in _column_counts(model):
        wanted = getattr(model, "n_features_in_", None)
        raise ValueError(f"columns has {n_names} names, but the model was fitted on {wanted}.")


def _column_counts(model: Any) -> set[int]:
    """Return the allowed numbers of column names for a model: 0, or as many as it takes."""
    wanted = getattr(model, "n_features_in_", None)
    # A joint calibrator counts classifiers, each with one column or one per class.
    return {0} if wanted is None else {0, wanted, wanted * len(model.classes_)}


def is_described_by(model: Any, stamp: Stamp) -> bool:
    """Return whether a stamp has the classes of a model and as many columns as it takes."""
    classes = plain_classes(model)
    return (
        list(map(type, classes)) == list(map(type, stamp.classes))
        and classes == stamp.classes
        and len(stamp.columns) in _column_counts(model)
    )


def plain_options(options: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return a copy of `options`, if JSON can hold it as it is."""
    given = dict(options or {})
    try:
        copied = json.loads(json.dumps(given, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise TypeError(f"options must hold plain JSON values: {error}.") from error
    if copied != given:
        raise TypeError(f"options must hold plain JSON values, with text as keys; got {given!r}.")
    return copied


def check_text(value: Any, name: str) -> str | None:
    """Return `value` if it is text or None."""
    if value is not None and not isinstance(value, str):
        raise TypeError(f"{name} must be text or None. Got {value!r} instead.")
    return value


def check_rows(rows: Any) -> int | None:
    """Return the number of rows as an integer, or None."""
    if rows is None:
        return None
    if isinstance(rows, bool) or not isinstance(rows, int | np.integer) or rows < 0:
        raise TypeError(f"rows must be how many there were, or None. Got {rows!r} instead.")
    return int(rows)
