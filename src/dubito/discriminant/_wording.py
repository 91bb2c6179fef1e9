"""Words for covariances that cannot be used as they are, and for boxes that are too wide."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from dubito._checks import FloatArray, IntArray
    from dubito.discriminant._moments import Moments

    Labels = npt.NDArray[Any]


def describe_singular(
    moments: Moments, covariance_type: str, classes: Labels, features: Labels
) -> str:
    """Say what covariances are missing, of small rank, or without a feature; nothing if none."""
    if not moments.rank.any():
        return (
            f"no class has any spread: the counts of the classes sum to {moments.counts.sum():g} "
            f"for {len(classes)} classes, and only priors are left to tell them apart. More rows "
            "are needed, or features that vary; weights count rows, so do not make them sum to 1."
        )
    said = [] if covariance_type == "tied" else _poor_classes(moments, covariance_type, classes)
    telling = np.flatnonzero((moments.spread == 0) & (np.ptp(moments.means, axis=0) > 0))
    if len(telling) and covariance_type != "spherical":
        said.append(
            f"{_named(telling, features, 'feature')} without spread inside any class had to be "
            "left out, although the classes differ there"
        )
    return f"{'; '.join(said)}." if said else ""


def _poor_classes(moments: Moments, covariance_type: str, classes: Labels) -> list[str]:
    said = []
    borrowed = np.flatnonzero(moments.borrowed)
    if len(borrowed):
        said.append(
            f"{_named(borrowed, classes, 'class')} without spread of its own (one row, or all "
            "alike) took the pooled covariance"
        )
    whole = int((moments.spread > 0).sum())
    small = np.flatnonzero((moments.rank < whole) & ~moments.borrowed)
    if len(small) and covariance_type != "spherical":
        ranks = ", ".join(str(rank) for rank in moments.rank[small][:5])
        said.append(
            f"the covariance of {_named(small, classes, 'class')} has rank {ranks} of {whole}: "
            "directions without spread are left out, and densities of different rank are hard to "
            "compare; consider shrinkage='auto' or covariance_type='tied'"
        )
    return said


def describe_wide(half_widths: FloatArray, spread: FloatArray, features: Labels) -> str:
    """Say which features have boxes wider than their spread; nothing if none."""
    widest = half_widths.max(axis=0)
    wide = np.flatnonzero((spread > 0) & (widest > spread))
    if len(wide) == 0:
        return ""
    worst = wide[np.argmax(widest[wide] / spread[wide])]
    name = features.tolist()[worst]
    return (
        f"{_named(wide, features, 'feature')}: the box of a mean is wider than the spread within "
        f"classes (±{widest[worst]:.2g} against {spread[worst]:.2g} for {name!r}), so "
        "sets may hold most classes. With box='raw' that depends on the units of the features: "
        "consider box='inscribed', c='auto' or a smaller c."
    )


def _named(which: IntArray, labels: Labels, kind: str) -> str:
    words = ", ".join(repr(label) for label in labels[which[:5]].tolist())
    more = f" and {len(which) - 5} more" if len(which) > 5 else ""
    plural = "es" if kind == "class" else "s"
    return f"{kind if len(which) == 1 else kind + plural} {words}{more}"
