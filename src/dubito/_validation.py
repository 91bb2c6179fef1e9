"""Checks of arguments: they return clean arrays, or raise an error that says what to do.

Every message names what was given, what is allowed and, where it helps, what to do.
"""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dubito._wording import name_rows

if TYPE_CHECKING:
    from collections.abc import Collection

    from dubito._typing import FloatArray, IntArray

#: Tolerance for sums of probabilities or masses: float32 softmax outputs of a thousand classes
#: pass.
SUM_TOLERANCE = 1e-5

#: Probabilities, risks and costs closer than this, in units of the losses in them, are equal.
TIE = 1e-12

#: Coverage of conformal sets where none is given.
DEFAULT_COVERAGE = 0.9


class NotSupportedError(TypeError):
    """The request has no meaning for this model; the message says why, and what to do."""


def as_float_array(values: Any, name: str, *, ndim: int | tuple[int, ...]) -> FloatArray:
    """Return `values` as a finite float64 array with an allowed number of dimensions."""
    if hasattr(values, "toarray"):
        raise TypeError(
            f"{name} is a sparse matrix; a dense array is needed: pass {name}.toarray()."
        )
    if np.ma.is_masked(values):
        raise ValueError(f"{name} has masked values. Drop or impute them first.")
    try:
        raw = np.asarray(values)
    except ValueError as error:
        raise ValueError(f"{name} must be a plain array; got rows of unequal length.") from error
    array = _as_numbers(raw)
    if array is None:
        raise TypeError(f"{name} must hold numbers; got {_shown_entry(values, raw)}.")
    allowed = (ndim,) if isinstance(ndim, int) else ndim
    if array.ndim not in allowed:
        wanted = " or ".join(f"{d}-dimensional" for d in allowed)
        raise ValueError(f"{name} must be {wanted}; got an array of shape {array.shape}.")
    if not np.isfinite(array).all():
        bad = ~np.isfinite(array)
        rows = np.flatnonzero(bad.reshape(len(bad), -1).any(axis=1)) if array.ndim else [0]
        content = "nan" if np.isnan(array).any() else "infinite values"
        raise ValueError(f"{name} has {content} in {name_rows(rows)}. Drop or impute them first.")
    return array


def _as_numbers(raw: npt.NDArray[Any]) -> FloatArray | None:
    """Return an array as float64; None if it holds words, complex numbers or None."""
    if raw.dtype.kind not in "biufO" or (raw.dtype == object and None in raw.ravel().tolist()):
        return None
    try:
        return raw.astype(np.float64, copy=False)
    except (TypeError, ValueError):
        return None


def _shown_entry(values: Any, raw: npt.NDArray[Any]) -> str:
    """Return values for a message; of a long array, the first entry that is not a number."""
    shown = _shown(values)
    if shown == repr(values) or raw.ndim == 0:
        return shown
    first = next(entry for entry in raw.ravel().tolist() if _as_numbers(np.array(entry)) is None)
    return f"an array with {_shown(first)}"


def _shown(value: Any) -> str:
    """Return a short value as text, the type of a long one."""
    text = repr(value)
    return text if len(text) <= 40 else type(value).__name__


def pick_rows(n: int, rows: Any) -> IntArray:
    """Return the row numbers an index picks: a number for one row, an array for several."""
    picked = np.arange(n)[rows]
    if picked.ndim > 1:
        raise IndexError("rows are picked by a number, a slice, numbers or a boolean mask.")
    return np.asarray(picked)


def labelled(values: Any) -> Mapping[Any, Any] | None:
    """Return a dict or a pandas Series as a mapping from label to value, and None for the rest."""
    if isinstance(values, Mapping):
        return values
    if getattr(values, "ndim", 0) != 1 or not hasattr(values, "items"):
        return None
    mapping = dict(values.items())
    if len(mapping) < len(values):
        raise ValueError("labels of a Series must differ; some appear more than once.")
    return mapping


def n_rows(X: Any) -> int:
    """Return the number of rows of an array, sparse matrix, data frame or list."""
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def check_rows_match(name: str, n: int, other: str, m: int) -> None:
    """Raise an error for arrays with different numbers of rows."""
    if n != m:
        raise ValueError(f"{name} has {n} rows but {other} has {m}; they must match row by row.")


def check_choice(value: Any, name: str, allowed: Collection[str]) -> str:
    """Return `value` if it is one of the allowed words."""
    if not isinstance(value, str) or value not in allowed:
        words = ", ".join(repr(a) for a in allowed)
        raise ValueError(f"{name} must be one of {words}. Got {value!r} instead.")
    return value


def check_unit_interval(value: Any, name: str) -> float:
    """Return `value` as a float in [0, 1]."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = np.nan
    if not 0.0 <= number <= 1.0:
        raise ValueError(f"{name} must be a number in [0, 1]. Got {value!r} instead.")
    return number


def check_fraction(value: Any, name: str, *, otherwise: str = "") -> float:
    """Return `value` as a float above 0 and below 1; `otherwise` says what else is allowed."""
    number = float(value) if isinstance(value, Real) else np.nan  # True counts as 1, an error
    if not 0.0 < number < 1.0:
        hint = f" For {number:g} % pass {number / 100:g}." if 1.0 < number < 100.0 else ""
        raise ValueError(
            f"{name} must be {otherwise}a number between 0 and 1, as in {name}=0.9. "
            f"Got {value!r} instead.{hint}"
        )
    return number


def check_level(level: Any) -> float | None:
    """Return a confidence level in (0, 1), or None, which stands for belief and plausibility."""
    if level is None:
        return None
    return check_fraction(level, "level", otherwise="None, for belief and plausibility, or ")


def level_of_each(level: float, n: int) -> float:
    """Return the level at which each of n bounds must hold so that all hold at once (Bonferroni).

    >>> level_of_each(0.9, 2), level_of_each(1 - 1e-15, 1000) < 1
    (0.95, True)
    """
    return min(1 - (1 - level) / n, float(np.nextafter(1.0, 0.0)))


class NoLevelError(NotSupportedError):
    """A confidence level was requested from a model whose bounds cannot have one."""


def level_error(model: Any, why: str) -> NoLevelError:
    """Return the error for a level requested from a model whose bounds cannot have one."""
    return NoLevelError(f"{type(model).__name__} has no bounds at a confidence level: {why}")


def check_proba(proba: Any, name: str = "proba") -> FloatArray:
    """Return an (n, K) array of probabilities whose rows sum to one."""
    array = as_float_array(proba, name, ndim=2)
    outside = np.flatnonzero(((array < -1e-9) | (array > 1 + 1e-9)).any(axis=1))
    if len(outside):
        raise ValueError(f"{name} must lie in [0, 1]; not so in {name_rows(outside)}.")
    wrong = np.flatnonzero(np.abs(array.sum(axis=1) - 1) > SUM_TOLERANCE)
    if len(wrong):
        total = array[wrong[0]].sum()
        raise ValueError(
            f"each row of {name} must sum to 1; not so in {name_rows(wrong)} "
            f"(row {wrong[0]} sums to {total:.6g})."
        )
    return np.clip(array, 0.0, 1.0)


def check_sample_weight(sample_weight: Any, n: int) -> FloatArray:
    """Return non-negative weights with a positive sum, ones when none are given."""
    if sample_weight is None:
        return np.ones(n)
    weight = as_float_array(sample_weight, "sample_weight", ndim=1)
    check_rows_match("sample_weight", len(weight), "the data", n)
    if (weight < 0).any():
        rows = name_rows(np.flatnonzero(weight < 0))
        raise ValueError(f"sample_weight must not be negative, as in {rows}.")
    largest = weight.max(initial=0.0)
    if n and largest == 0:
        raise ValueError("sample_weight must not be all zero: no row would count.")
    # Only ratios matter; sums of extreme weights would overflow or underflow.
    return weight if 1e-100 < largest < 1e100 or n == 0 else weight / largest


def drop_zero_weights(
    sample_weight: npt.ArrayLike | None, **columns: npt.NDArray[Any]
) -> tuple[npt.NDArray[Any], ...]:
    """Return the weights and the named columns, without the rows of weight zero.

    Rows are dropped before labels and ties are looked at, so that weight 0 has exactly the same
    effect as leaving the row out.
    """
    (name, first), *others = columns.items()
    for other_name, other in others:
        check_rows_match(name, len(first), other_name, len(other))
    if len(first) == 0:
        raise ValueError(f"{name} has no rows; a metric needs at least one.")
    weight = check_sample_weight(sample_weight, len(first))
    positive = weight > 0
    if positive.all():
        return (weight, *columns.values())
    return (weight[positive], *(column[positive] for column in columns.values()))
