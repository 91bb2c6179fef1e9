"""Words for covariances that cannot be used as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from dubito._checks import IntArray
    from dubito.discriminant._moments import Moments


def describe_singular(moments: Moments, covariance_type: str, classes: npt.NDArray[Any]) -> str:
    """Say which classes have no covariance of their own, or one of small rank; nothing if none."""
    if not moments.rank.any():
        return (
            f"no class has any spread: the counts of the classes sum to {moments.counts.sum():g} "
            f"for {len(classes)} classes, and only priors are left to tell them apart. More rows "
            "are needed, or features that vary; weights count rows, so do not make them sum to 1."
        )
    if covariance_type == "tied":
        return ""
    said = []
    borrowed = np.flatnonzero(moments.borrowed)
    if len(borrowed):
        said.append(
            f"{_named(borrowed, classes)} without spread of {_their(borrowed)} own (one row, or "
            "all alike) took the pooled covariance"
        )
    whole = int((moments.spread > 0).sum())
    small = np.flatnonzero((moments.rank < whole) & ~moments.borrowed)
    if len(small) and covariance_type != "spherical":
        ranks = ", ".join(str(rank) for rank in moments.rank[small][:5])
        said.append(
            f"the covariance of {_named(small, classes)} has rank {ranks} of {whole}: directions "
            "without spread are left out, and densities of different rank are hard to compare"
        )
    if not said:
        return ""
    return f"{'; '.join(said)}. Consider shrinkage='auto' or covariance_type='tied'."


def _named(which: IntArray, classes: npt.NDArray[Any]) -> str:
    words = ", ".join(repr(label) for label in classes[which[:5]].tolist())
    more = f" and {len(which) - 5} more" if len(which) > 5 else ""
    return f"{'class' if len(which) == 1 else 'classes'} {words}{more}"


def _their(which: IntArray) -> str:
    return "its" if len(which) == 1 else "their"
