"""Warnings of the imprecise discriminants, and their messages."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from dubito._meta_estimators import user_stacklevel
from dubito._wording import counted, name_some

if TYPE_CHECKING:
    import numpy.typing as npt

    from dubito._typing import FloatArray, IntArray
    from dubito.discriminant._kernels.moments import Moments

    Labels = npt.NDArray[Any]


class WideBoxWarning(UserWarning):
    """The box of a mean is wider than the spread of a feature, which then separates no classes."""


class UnsettledWarning(UserWarning):
    """A search for a farthest mean stopped at its limit: bounds and sets are too wide."""


class SingularCovarianceWarning(UserWarning):
    """Class covariances are singular or missing, so densities may not be comparable."""


def warn_of_unsettled(n_unsettled: int, max_subproblems: int, circumstance: str) -> None:
    """Warn that searches stopped at `max_subproblems`, without a proof."""
    warnings.warn(
        f"{counted(n_unsettled, 'search')} for a farthest mean ran into "
        f"max_subproblems={max_subproblems} {circumstance}: bounds and sets there are wider than "
        "necessary. Raise max_subproblems, or try smaller c.",
        UnsettledWarning,
        stacklevel=user_stacklevel(),
    )


def describe_singular_covariances(
    moments: Moments, covariance_type: str, classes: Labels, features: Labels
) -> str:
    """Return a message about missing or singular covariances and dropped features, or ""."""
    if not moments.rank.any():
        return (
            f"no class has any spread: the counts of the classes sum to {moments.counts.sum():g} "
            f"for {len(classes)} classes, and only priors are left to tell them apart. More rows "
            "are needed, or features that vary; weights count rows, so do not make them sum to 1."
        )
    problems = (
        [] if covariance_type == "tied" else _singular_classes(moments, covariance_type, classes)
    )
    informative = np.flatnonzero((moments.spread == 0) & (np.ptp(moments.means, axis=0) > 0))
    if len(informative) and covariance_type != "spherical":
        problems.append(
            f"{_named(informative, features, 'feature')} without spread inside any class had to be "
            "left out, although the classes differ there"
        )
    return f"{'; '.join(problems)}." if problems else ""


def _singular_classes(moments: Moments, covariance_type: str, classes: Labels) -> list[str]:
    problems = []
    pooled = np.flatnonzero(moments.has_pooled)
    if len(pooled):
        problems.append(
            f"{_named(pooled, classes, 'class')} without spread of its own (one row, or all "
            "alike) took the pooled covariance"
        )
    n_varying = int((moments.spread > 0).sum())
    small = np.flatnonzero((moments.rank < n_varying) & ~moments.has_pooled)
    if len(small) and covariance_type != "spherical":
        ranks = ", ".join(str(rank) for rank in moments.rank[small][:5])
        problems.append(
            f"the covariance of {_named(small, classes, 'class')} has rank {ranks} of {n_varying}: "
            "directions without spread are left out, and densities of different rank are hard to "
            "compare; consider shrinkage='auto' or covariance_type='tied'"
        )
    return problems


def describe_wide_boxes(half_widths: FloatArray, spread: FloatArray, features: Labels) -> str:
    """Return a message about features with boxes wider than their spread, or ""."""
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
    plural = "es" if kind == "class" else "s"
    return f"{kind if len(which) == 1 else kind + plural} {name_some(labels[which].tolist())}"
