"""Decision rules: choose one act, a set of acts, the best set of classes, or reject.

Every rule takes `Bounds`, a `MassBatch`, a `MassFunction` or plain probabilities (n, K), and a
loss matrix (acts, K) where the loss is not 0/1.
"""

from dubito.decision.admissibility import e_admissibility
from dubito.decision.choice import (
    hurwicz,
    maximax,
    maximin,
    minimax_regret,
    owa,
    pignistic_choice,
)
from dubito.decision.dominance import interval_dominance, maximality, weak_dominance
from dubito.decision.rejection import reject
from dubito.decision.rules import choose_set
from dubito.decision.sets import set_utility

__all__ = [
    "choose_set",
    "e_admissibility",
    "hurwicz",
    "interval_dominance",
    "maximality",
    "maximax",
    "maximin",
    "minimax_regret",
    "owa",
    "pignistic_choice",
    "reject",
    "set_utility",
    "weak_dominance",
]
