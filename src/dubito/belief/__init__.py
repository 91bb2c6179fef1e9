"""Belief functions: frames, masses, bounds, and the ways to combine, correct and measure them.

`MassFunction` is one mass function with labels, `MassBatch` many of them as arrays, and `Bounds`
the belief and plausibility of single classes, which most decisions need and which scale to
thousands of classes. `dubito.belief.transforms` turns masses into beliefs, plausibilities,
commonalities, implicabilities and weights of evidence and back.
"""

from dubito.belief.batch import MassBatch
from dubito.belief.bounds import Bounds
from dubito.belief.combination import (
    cautious,
    conjunctive,
    dempster,
    disjunctive,
    dubois_prade,
    yager,
)
from dubito.belief.correction import condition, discount
from dubito.belief.errors import TotalConflictError
from dubito.belief.frame import Frame
from dubito.belief.mass import MassFunction
from dubito.belief.measures import (
    conflict,
    jousselme_distance,
    nonspecificity,
    pignistic,
    pignistic_entropy,
    plausibility_transform,
)

__all__ = [
    "Bounds",
    "Frame",
    "MassBatch",
    "MassFunction",
    "TotalConflictError",
    "cautious",
    "condition",
    "conflict",
    "conjunctive",
    "dempster",
    "discount",
    "disjunctive",
    "dubois_prade",
    "jousselme_distance",
    "nonspecificity",
    "pignistic",
    "pignistic_entropy",
    "plausibility_transform",
    "yager",
]
