"""Rules that choose a set of acts, by the names that `predict_set(rule=...)` takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from dubito._typing import BoolArray
from dubito.decision.admissibility import e_admissibility
from dubito.decision.dominance import interval_dominance, maximality, weak_dominance
from dubito.decision.risk import Belief, as_belief
from dubito.decision.sets import set_utility

SetRule: TypeAlias = str | Callable[..., BoolArray] | None

RULES: dict[str, Callable[..., BoolArray]] = {
    rule.__name__: rule
    for rule in (interval_dominance, maximality, e_admissibility, weak_dominance, set_utility)
}


def choose_set(belief: Belief, rule: SetRule = None, **options: Any) -> BoolArray:
    """Return the set of acts of each row by a rule, given by name or as a function.

    Parameters
    ----------
    belief : Bounds, MassBatch, MassFunction or array of probabilities (n, K)
    rule : str or callable, default "interval_dominance"
        A name among "interval_dominance", "maximality", "e_admissibility", "weak_dominance" and
        "set_utility", or a function of the belief that returns a boolean array with n rows.
    **options
        Passed on to the rule, as in ``loss=`` or ``utility=``.

    Returns
    -------
    ndarray of bool, shape (n, acts)
        The acts kept; never an empty row.

    Examples
    --------
    >>> from dubito.belief import Bounds
    >>> from dubito.decision import choose_set
    >>> bounds = Bounds([[0.4, 0.1, 0.1]], [[0.7, 0.3, 0.5]])
    >>> choose_set(bounds)
    array([[ True, False,  True]])
    >>> choose_set(bounds, "set_utility", utility="u80")
    array([[ True, False,  True]])
    """
    checked = as_belief(belief)
    if rule is None:
        rule = "interval_dominance"
    if isinstance(rule, str):
        if rule not in RULES:
            names = ", ".join(repr(name) for name in RULES)
            raise ValueError(f"rule must be one of {names}, or a function. Got {rule!r} instead.")
        return RULES[rule](checked, **options)
    if not callable(rule):
        raise TypeError(f"rule must be a name or a function on bounds. Got {rule!r} instead.")
    sets = np.asarray(rule(checked, **options))
    n = len(checked)
    if sets.dtype != bool or sets.ndim != 2 or len(sets) != n:
        raise ValueError(
            f"rule must return a boolean array with {n} rows; got {sets.dtype} of shape "
            f"{sets.shape}."
        )
    if not sets.any(axis=1).all():
        raise ValueError("rule returned an empty set; it must keep at least one act in each row.")
    return sets
