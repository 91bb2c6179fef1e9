"""What there is to say about a model: its classes, its columns, the versions around it."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from importlib.metadata import version
from math import isfinite
from typing import Any

import numpy as np

from dubito._checks import check_choice
from dubito.saving._errors import ModelFileError
from dubito.saving._stamp import COLUMN_TYPES, LABEL_TYPES, Label, Stamp


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
    """Return how many columns may be named for a model: none, or as many as it takes."""
    wanted = getattr(model, "n_features_in_", None)
    # A joint calibrator counts classifiers, each with one column or one per class.
    return {0} if wanted is None else {0, wanted, wanted * len(model.classes_)}


def is_described_by(model: Any, stamp: Stamp) -> bool:
    """Say whether a stamp tells the classes of a model, and as many columns as it takes."""
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


def current_versions() -> dict[str, str]:
    """Return the versions of all that a saved model depends on."""
    packages = ("numpy", "scipy", "scikit-learn", "skops")
    return {"python": platform.python_version(), **{name: version(name) for name in packages}}
