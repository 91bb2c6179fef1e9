"""Rows that count: matched, at least one, and those of weight zero left out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dubito._checks import check_rows_match, check_sample_weight

if TYPE_CHECKING:
    import numpy.typing as npt


def counted_rows(
    sample_weight: npt.ArrayLike | None, **columns: npt.NDArray[Any]
) -> tuple[npt.NDArray[Any], ...]:
    """Return the weights and the named columns, without the rows of weight zero.

    Leaving those rows out here, before labels or ties are looked at, is what makes weight 0 the
    same as an absent row everywhere.
    """
    (name, first), *others = columns.items()
    for other_name, other in others:
        check_rows_match(name, len(first), other_name, len(other))
    if len(first) == 0:
        raise ValueError(f"{name} has no rows; a metric needs at least one.")
    weight = check_sample_weight(sample_weight, len(first))
    counts = weight > 0
    if counts.all():
        return (weight, *columns.values())
    return (weight[counts], *(column[counts] for column in columns.values()))
