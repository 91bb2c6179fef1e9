r"""Prior probabilities of the classes: precise, or lower and upper ones.

Lower and upper priors are always *reachable*: for any two classes a and b some prior gives a its
lower and b its upper one. Comparisons of two classes assume it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dubito._validation import SUM_TOLERANCE, as_float_array, labelled
from dubito._wording import name_some
from dubito.belief import Bounds
from dubito.discriminant._kernels.posterior import Priors

if TYPE_CHECKING:
    import numpy.typing as npt

    from dubito._typing import BoolArray, FloatArray

    Labels = npt.NDArray[Any]

#: Tolerance for priors outside [0, 1], and for lower priors above upper ones.
_PRIOR_TOLERANCE = 1e-9

#: Changes of priors up to this, when they are made reachable, are rounding errors and undone.
_REACHABLE_ROUNDING = 1e-13

_ADVICE = "Leave priors out for the frequencies of the classes."


def prior_interval(
    priors: Any, prior_imprecision: float, counts: FloatArray, classes: Labels
) -> Priors:
    r"""Return a precise prior for each class and its lower and upper ones, each (K,).

    With s the imprecision and N the sum of `counts`, [l, u] becomes
    :math:`[Nl/(N+s),\,(Nu+s)/(N+s)]`, which around a precise prior, l = u, is the imprecise
    Dirichlet model (Walley, 1996). The precise prior does not depend on s.

    Parameters
    ----------
    priors : None, array-like of shape (K,) or (K, 2), or mapping of labels to either
        None: frequencies of the classes. (K,): probabilities; a class of probability 0 is never
        chosen, unless s > 0. (K, 2): lower and upper probabilities; the precise ones then divide
        all intervals at one ratio.
    prior_imprecision : float
        s >= 0, equivalent to s rows of unknown class.
    counts : (K,)
    classes : (K,)
    """
    total = counts.sum()
    if priors is None:
        precise = lower = upper = counts / total
    else:
        precise, lower, upper = _checked_priors(priors, classes)
    if prior_imprecision > 0:
        lower = total * lower / (total + prior_imprecision)
        upper = (total * upper + prior_imprecision) / (total + prior_imprecision)
    return Priors(precise, lower, upper)


def _checked_priors(priors: Any, classes: Labels) -> Priors:
    """Return the given priors as precise, lower and upper ones in the order of the classes."""
    by_label = labelled(priors)
    if by_label is not None:
        priors = _in_order(by_label, classes)
    values = as_float_array(priors, "priors", ndim=(1, 2))
    k = len(classes)
    if values.shape == (k,):
        precise = _check_probabilities(values, classes)
        return Priors(precise, precise, precise)
    if values.shape == (k, 2):
        given = _check_bounds(values[:, 0], values[:, 1], classes)
        tight = given.tightened()
        # Keep exact zeros: logarithms are taken, and 1e-16 would not act as 0.
        lower, upper = (
            np.where(np.abs(new - old) <= _REACHABLE_ROUNDING, old, new)[0]
            for new, old in ((tight.lower, given.lower), (tight.upper, given.upper))
        )
        return Priors(tight.pignistic()[0], lower, upper)
    raise ValueError(
        f"priors has shape {values.shape}; for the {k} classes {_names(classes)} it must be "
        f"({k},), probabilities, or ({k}, 2), a lower and an upper one for each class. {_ADVICE}"
    )


def _in_order(by_label: Any, classes: Labels) -> list[Any]:
    known = classes.tolist()
    missing = [label for label in known if label not in by_label]
    unknown = [label for label in by_label if label not in known]
    if missing or unknown:
        problem = "leaves out" if missing else "names the unknown"
        raise ValueError(
            f"priors {problem} {_names(missing or unknown)}; it must name each of the classes "
            f"{_names(known)}, and no other. {_ADVICE}"
        )
    given = [by_label[label] for label in known]
    if all(np.ndim(prior) == 0 for prior in given):
        return given
    return [[prior, prior] if np.ndim(prior) == 0 else prior for prior in given]


def _check_probabilities(values: FloatArray, classes: Labels) -> FloatArray:
    _refuse_priors(values < -_PRIOR_TOLERANCE, "negative", values, classes)
    total = values.sum()
    if abs(total - 1) > SUM_TOLERANCE:
        raise ValueError(
            f"priors must sum to 1; those of {_names(classes)} sum to {total:.6g}. Divide them by "
            f"their sum, or give a lower and an upper one for each class. {_ADVICE}"
        )
    values = np.maximum(values, 0.0)
    return np.asarray(values / values.sum())


def _check_bounds(lower: FloatArray, upper: FloatArray, classes: Labels) -> Bounds:
    _refuse_priors(lower < -_PRIOR_TOLERANCE, "negative", lower, classes)
    _refuse_priors(upper > 1 + _PRIOR_TOLERANCE, "above 1", upper, classes)
    crossed = np.flatnonzero(lower > upper + _PRIOR_TOLERANCE)
    if len(crossed):
        k = crossed[0]
        raise ValueError(
            f"the lower prior of class {_names(classes[[k]])} is {lower[k]:.6g}, above its upper "
            f"one, {upper[k]:.6g}; each row of priors must be (lower, upper)."
        )
    if lower.sum() > 1 + SUM_TOLERANCE or upper.sum() < 1 - SUM_TOLERANCE:
        side, total = ("lower", lower.sum()) if lower.sum() > 1 else ("upper", upper.sum())
        way = "at most 1: lower some" if side == "lower" else "at least 1: raise some"
        raise ValueError(
            f"the {side} priors of {_names(classes)} sum to {total:.6g}, so no probability lies "
            f"between lower and upper ones; they must sum to {way}."
        )
    return Bounds(lower[None], upper[None])


def _refuse_priors(bad: BoolArray, what: str, values: FloatArray, classes: Labels) -> None:
    if bad.any():
        k = np.flatnonzero(bad)[0]
        raise ValueError(
            f"priors must lie in [0, 1]; that of class {_names(classes[[k]])} is {what}, "
            f"{values[k]:.6g}. {_ADVICE}"
        )


def _names(labels: Any) -> str:
    return name_some(labels if isinstance(labels, list) else labels.tolist(), rest=" …")
