"""Check every object in a loaded model before the model is used.

All their classes are trusted, but scikit-learn assumes objects that it fitted itself: it calls
methods whose names are stored in attributes, on any object that is in the place of an estimator. So
each attribute must hold what fitting could have put there.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, NoReturn

import numpy as np

from dubito._calibrator_names import CALIBRATORS
from dubito.base import MethodAndParameter
from dubito.calibration.responses import SOURCES
from dubito.saving.archive import ModelFileError
from dubito.saving.indices import has_valid_indices
from dubito.saving.trust import full_name, refusal

#: Attributes of any class whose value is the name of a method to call, and the names allowed.
METHOD_ATTRIBUTES = frozenset(
    {
        *("response_method", "response_method_", "_response_method"),
        *("stack_method", "stack_method_"),
    }
)
_METHODS = frozenset({None, "auto", "predict", *SOURCES})

#: Attributes whose value is the name of another attribute, a folder of pickles or an expression to
#: evaluate, and the values allowed in classes that the user has not named.
RESTRICTED_ATTRIBUTES: dict[str, frozenset[str | None]] = {
    "importance_getter": frozenset({"auto", "coef_", "feature_importances_"}),
    "memory": frozenset({None}),
    "pre_dispatch": frozenset({None, "all", "n_jobs", "2*n_jobs"}),
}

#: Attributes that hold one or several estimators, whose methods are called.
ESTIMATOR_ATTRIBUTES = frozenset(
    {
        *("base_estimator", "base_estimator_", "best_estimator_", "calibrated_classifiers_"),
        *("calibrator", "calibrators", "estimator", "estimator_", "estimators", "estimators_"),
        *("final_estimator", "final_estimator_", "named_estimators", "named_estimators_"),
        *("remainder", "steps", "transformer_list", "transformers", "transformers_"),
    }
)

#: What these attributes may hold in place of an estimator.
_NO_ESTIMATOR = frozenset({None, "drop", "passthrough"})

#: Types whose objects hold values only.
_PLAIN = (str, bytes, bytearray, int, float, complex, slice, np.ndarray, np.generic)


def objects_in(model: Any) -> Iterator[Any]:
    """Yield every object in a model, each once."""
    seen: set[int] = set()
    waiting = [model]
    while waiting:
        part = waiting.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        yield part
        if isinstance(part, Mapping):
            waiting.extend(part.values())
        elif isinstance(part, list | tuple | set):
            waiting.extend(part)
        elif isinstance(part, np.ndarray):
            values = np.ma.getdata(part)  # masked values included
            waiting.extend(values.ravel().tolist() if values.dtype == object else [])
        elif not hasattr(part, "__name__"):  # types and functions have it
            waiting.extend(_state(part).values())


def _state(part: Any) -> dict[str, Any]:
    """Return the attributes of an object, by name."""
    slots = [
        name
        for cls in type(part).__mro__
        for name in np.atleast_1d(vars(cls).get("__slots__", ()))
        if isinstance(name, str) and hasattr(part, name)
    ]
    return {**getattr(part, "__dict__", {}), **{name: getattr(part, name) for name in slots}}


def refuse_odd_parts(model: Any, trusted: Collection[str], path: str) -> None:
    """Raise an error for a model with attributes that fitting does not set.

    Objects of classes that the user trusts are not checked themselves; the objects in them are.
    """
    for part in objects_in(model):
        if isinstance(part, _PLAIN):
            continue
        if isinstance(part, type):
            if not _is_type_of_numbers(part) and (name := full_name(part)) not in trusted:
                raise ModelFileError(refusal([name], path))
            continue
        name = full_name(type(part))
        if name in trusted:
            continue
        if not has_valid_indices(part):
            _refuse(path, f"the numbers in its {type(part).__name__} do not agree")
        if not isinstance(part, Mapping) and not hasattr(part, "__name__"):
            _refuse_odd_attributes(part, name, path)


def _refuse_odd_attributes(part: Any, name: str, path: str) -> None:
    cls = type(part)
    for attribute, value in getattr(part, "__dict__", {}).items():
        if problem := _problem(cls, attribute, value):
            _refuse(path, f"its {cls.__name__} has {problem}")
        if attribute in RESTRICTED_ATTRIBUTES and not _is_choice(
            value, RESTRICTED_ATTRIBUTES[attribute]
        ):
            found = f"{attribute}={value[:80]!r}" if type(value) is str else f"an odd {attribute}"
            raise ModelFileError(refusal([name], path, f"its {cls.__name__} has {found}"))


def _refuse(path: str, why: str) -> NoReturn:
    raise ModelFileError(
        f"{path} was not loaded: {why}. No fitted model is like that; the file may have been made "
        "to do harm."
    )


def _is_type_of_numbers(cls: type) -> bool:
    return cls in (bool, int, float) or issubclass(cls, np.number | np.bool_)


def _problem(cls: type, name: str, value: Any) -> str | None:
    """Return what is wrong with an attribute of an object of a class, or None."""
    if name.startswith("__") or not name.isidentifier():
        return f"an attribute {name!r}"
    own = {field.name for field in fields(cls)} if is_dataclass(cls) else set()
    if name not in own and _is_of_class(cls, name):
        return f"a {name} of its own, which hides that of its class"
    if name in METHOD_ATTRIBUTES and not _is_choice(value, _METHODS):
        return f"a {name} that names no method to predict by"
    if name == "calibrator" and isinstance(value, str):
        return None if value in CALIBRATORS else "a calibrator that is not one of dubito's"
    if name in ESTIMATOR_ATTRIBUTES and not all(map(_may_be_estimator, _estimators(value))):
        return f"a {name} that holds something else than estimators"
    return None


def _is_of_class(cls: type, name: str) -> bool:
    """Return whether an attribute of this name would hide an attribute of the class."""
    try:
        found = inspect.getattr_static(cls, name)
    except AttributeError:
        return False
    return not isinstance(found, MethodAndParameter)


def _is_choice(value: Any, allowed: frozenset[Any]) -> bool:
    values = value if isinstance(value, list | tuple) else [value]
    named = [one for one in values if type(one) is not int]  # a number names nothing
    return all(one is None or type(one) is str for one in named) and allowed.issuperset(named)


def _estimators(value: Any) -> Iterator[Any]:
    """Yield the values in the place of estimators: alone, in lists, or in (name, value) tuples."""
    if isinstance(value, Mapping):
        yield from value.values()
    elif isinstance(value, tuple) and value and type(value[0]) is str:
        yield from value[1:2]
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _estimators(one)
    elif isinstance(value, np.ndarray) and value.dtype == object:
        yield from value.ravel().tolist()
    else:
        yield value


def _may_be_estimator(value: Any) -> bool:
    if value is None or isinstance(value, str):
        return value in _NO_ESTIMATOR
    return not isinstance(value, (*_PLAIN, type, Mapping, list, tuple, set))


def limit_jobs(model: Any) -> None:
    """Replace an n_jobs above the number of cores by -1, all cores, in every object of a model."""
    cores = os.cpu_count() or 1
    for part in objects_in(model):
        n_jobs = getattr(part, "__dict__", {}).get("n_jobs")
        if isinstance(n_jobs, int | np.integer) and n_jobs > cores:
            part.n_jobs = -1
