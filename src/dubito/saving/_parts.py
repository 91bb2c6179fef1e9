"""What a model from a file is made of, looked at part by part before anybody uses it.

Every class in it is trusted, but scikit-learn was written for what it fitted itself: it calls
methods by names that it keeps, on whatever stands where an estimator belongs. So what an object
holds must be what fitting could have put there.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, NoReturn

import numpy as np

from dubito._calibrator_names import CALIBRATORS
from dubito._estimators import MethodAndParameter
from dubito._responses import WAYS
from dubito.saving._errors import ModelFileError
from dubito.saving._numbers import numbers_are_in_order
from dubito.saving._trust import refusal

#: Attributes, of whatever class, that name methods to be called, and what they may name.
RESPONSES = frozenset(
    {
        *("response_method", "response_method_", "_response_method"),
        *("stack_method", "stack_method_"),
    }
)
_METHODS = frozenset({None, "auto", "predict", *WAYS})

#: Attributes by which further attributes are read, pickles opened or sums worked out, and what they
#: may say unasked.
SETTINGS: dict[str, frozenset[str | None]] = {
    "importance_getter": frozenset({"auto", "coef_", "feature_importances_"}),
    "memory": frozenset({None}),
    "pre_dispatch": frozenset({None, "all", "n_jobs", "2*n_jobs"}),
}

#: Attributes that hold estimators, alone or many: methods of theirs are called.
MEMBERS = frozenset(
    {
        *("base_estimator", "base_estimator_", "best_estimator_", "calibrated_classifiers_"),
        *("calibrator", "calibrators", "estimator", "estimator_", "estimators", "estimators_"),
        *("final_estimator", "final_estimator_", "named_estimators", "named_estimators_", "pairs_"),
        *("remainder", "steps", "transformer_list", "transformers", "transformers_"),
    }
)

#: What may stand in the place of a member.
_NO_MEMBER = frozenset({None, "drop", "passthrough"})

_PLAIN = (str, bytes, bytearray, int, float, complex, slice, np.ndarray, np.generic)


def parts_of(model: Any) -> Iterator[Any]:
    """Walk over all that a model holds, each object once."""
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
            values = np.ma.getdata(part)  # what is masked is there too
            waiting.extend(values.ravel().tolist() if values.dtype == object else [])
        elif not hasattr(part, "__name__"):  # as types and functions have
            waiting.extend(_state(part).values())


def _state(part: Any) -> dict[str, Any]:
    """Return what an object holds, by name."""
    slots = [
        name
        for kind in type(part).__mro__
        for name in np.atleast_1d(vars(kind).get("__slots__", ()))
        if isinstance(name, str) and hasattr(part, name)
    ]
    return {**getattr(part, "__dict__", {}), **{name: getattr(part, name) for name in slots}}


def refuse_odd_parts(model: Any, trusted: Collection[str], path: str) -> None:
    """Refuse a model that holds what fitting does not put there.

    Objects whose classes the user trusts are passed over; what they hold is not.
    """
    for part in parts_of(model):
        if isinstance(part, _PLAIN):
            continue
        if isinstance(part, type):
            if not _is_type_of_numbers(part) and (name := full_name(part)) not in trusted:
                raise ModelFileError(refusal([name], path))
            continue
        name = full_name(type(part))
        if name in trusted:
            continue
        if not numbers_are_in_order(part):
            _refuse(path, f"the numbers in its {type(part).__name__} do not agree")
        if not isinstance(part, Mapping) and not hasattr(part, "__name__"):
            _refuse_odd_attributes(part, name, path)


def _refuse_odd_attributes(part: Any, name: str, path: str) -> None:
    kind = type(part)
    for attribute, value in getattr(part, "__dict__", {}).items():
        if odd := _odd(kind, attribute, value):
            _refuse(path, f"its {kind.__name__} has {odd}")
        if attribute in SETTINGS and not _is_choice(value, SETTINGS[attribute]):
            said = f"{attribute}={value[:80]!r}" if type(value) is str else f"an odd {attribute}"
            raise ModelFileError(refusal([name], path, f"its {kind.__name__} has {said}"))


def _refuse(path: str, why: str) -> NoReturn:
    raise ModelFileError(
        f"{path} was not loaded: {why}. No fitted model is so; the file may have been made to do "
        "harm."
    )


def _is_type_of_numbers(kind: type) -> bool:
    return kind in (bool, int, float) or issubclass(kind, np.number | np.bool_)


def _odd(kind: type, name: str, value: Any) -> str | None:
    """Return what is odd about an attribute of an object of a class, in words."""
    if name.startswith("__") or not name.isidentifier():
        return f"an attribute {name!r}"
    own = {field.name for field in fields(kind)} if is_dataclass(kind) else set()
    if name not in own and _is_of_class(kind, name):
        return f"a {name} of its own, in the place of that of its class"
    if name in RESPONSES and not _is_choice(value, _METHODS):
        return f"the name of a method as its {name} that is none to predict by"
    if name == "calibrator" and isinstance(value, str):
        return None if value in CALIBRATORS else "the name of no calibrator"
    if name in MEMBERS and not all(map(_is_member, _members(value))):
        return f"something else than estimators as its {name}"
    return None


def _is_of_class(kind: type, name: str) -> bool:
    """Say whether a value of this name would stand in the place of something of the class."""
    try:
        found = inspect.getattr_static(kind, name)
    except AttributeError:
        return False
    return not isinstance(found, MethodAndParameter)


def _is_choice(value: Any, allowed: frozenset[Any]) -> bool:
    said = value if isinstance(value, list | tuple) else [value]
    named = [one for one in said if type(one) is not int]  # a number names nothing
    return all(one is None or type(one) is str for one in named) and allowed.issuperset(named)


def _members(value: Any) -> Iterator[Any]:
    """Yield what stands where estimators belong: alone, in lists, or beside names and columns."""
    if isinstance(value, Mapping):
        yield from value.values()
    elif isinstance(value, tuple) and value and type(value[0]) is str:
        yield from value[1:2]
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _members(one)
    elif isinstance(value, np.ndarray) and value.dtype == object:
        yield from value.ravel().tolist()
    else:
        yield value


def _is_member(value: Any) -> bool:
    if value is None or isinstance(value, str):
        return value in _NO_MEMBER
    return not isinstance(value, (*_PLAIN, type, Mapping, list, tuple, set))


def limit_jobs(model: Any) -> None:
    """Let no part of a model start more processes than there are cores: all of them instead."""
    cores = os.cpu_count() or 1
    for part in parts_of(model):
        n_jobs = getattr(part, "__dict__", {}).get("n_jobs")
        if isinstance(n_jobs, int | np.integer) and n_jobs > cores:
            part.n_jobs = -1


def full_name(kind: type) -> str:
    """Return a type's name with its module."""
    return f"{kind.__module__}.{kind.__qualname__}"
