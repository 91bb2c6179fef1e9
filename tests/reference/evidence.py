"""Belief functions of weights of evidence, in decimals of 60 digits: by definition and in O(K).

Weights are Shafer's, w = -ln(1 - support). Written from Denoeux 2019 (eq. 1, 3, 4, 31) without code
of dubito. There is no cancellation, so every number, however small, has at least 50 right digits.
"""

from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
from itertools import accumulate
from math import prod
from operator import mul

import numpy as np

DIGITS = Context(prec=60, Emin=MIN_EMIN, Emax=MAX_EMAX)


@dataclass(frozen=True)
class Belief:
    """Bel and Pl of each class, the mass of the frame, and the conflict before normalisation.

    With few classes also the masses of the bit masks 1 .. 2^K-1.
    """

    lower: list
    upper: list
    ignorance: Decimal
    conflict: Decimal
    mass: list | None = None


def support(weight):
    """Return 1 - exp(-w), with additional digits for small weights, where leading nines cancel."""
    if not weight:
        return Decimal(0)
    with localcontext() as context:
        context.prec += max(0, -weight.adjusted())
        return 1 - (-weight).exp()


def combined(w_plus, w_minus):
    """Return the conjunctive combination of the 2K simple mass functions of a row, (2^K,).

    Provenance: Denoeux 2019, eq. 31 by the definition of Dempster's rule before normalisation
    (eq. 3). A simple mass function leaves 1 - s of every mass at its set and moves s of it to the
    intersection with its focal set.
    """
    n_classes = len(w_plus)
    frame = (1 << n_classes) - 1
    with localcontext(DIGITS):
        mass = [Decimal(0)] * frame + [Decimal(1)]
        for k in range(n_classes):
            for focal, w in ((1 << k, w_plus[k]), (frame ^ (1 << k), w_minus[k])):
                weight = Decimal(float(w))
                moved, kept = support(weight), (-weight).exp()
                fresh = [kept * m for m in mass]
                for subset, m in enumerate(mass):
                    fresh[subset & focal] += moved * m
                mass = fresh
    return mass


def belief(w_plus, w_minus):
    """Return belief and normalised masses of one row, summed over all 2^K sets; for small K.

    Provenance: Denoeux 2019, eq. 2, on the masses of eq. 31; the conflict is the mass of the empty
    set.
    """
    with localcontext(DIGITS):
        conflict, *rest = combined(w_plus, w_minus)
        total = sum(rest)
        mass = dict(enumerate((m / total for m in rest), start=1))
        classes = [1 << k for k in range(len(w_plus))]
        return Belief(
            lower=[mass[k] for k in classes],
            upper=[sum(m for subset, m in mass.items() if subset & k) for k in classes],
            ignorance=mass[sum(classes)],
            conflict=conflict,
            mass=list(mass.values()),
        )


def belief_of_many(w_plus, w_minus):
    """Return the belief of one row in O(K), for thousands of classes.

    Provenance: own derivation. Each simple mass function is its focal set with probability s, or
    the frame with probability 1 - s, independently. The intersection is

    - empty, if two classes are singled out, or one that is also ruled out, or none is and all are
      ruled out;
    - a set with class k, if k is not ruled out and no other class is singled out;
    - {k}, if moreover k is singled out or all others are ruled out;
    - the frame, if all simple mass functions are the frame.
    """
    with localcontext(DIGITS):
        plus, minus = ([Decimal(float(w)) for w in weights] for weights in (w_plus, w_minus))
        singled, vacuous = [support(w) for w in plus], [(-w).exp() for w in plus]
        out, left = [support(w) for w in minus], [(-w).exp() for w in minus]

        none, one, several = Decimal(1), Decimal(0), Decimal(0)  # classes singled out
        for s, u in zip(singled, vacuous, strict=True):
            several += one * s
            one = one * u + none * s
            none *= u
        alone = [s * others for s, others in zip(singled, _all_but_one(vacuous), strict=True)]
        some_left = sum(x * before for x, before in zip(left, _before(out), strict=True))

        total = sum(map(mul, alone, left)) + none * some_left
        last = [none * others for others in _all_but_one(out)]
        return Belief(
            lower=[x * (a + b) / total for x, a, b in zip(left, alone, last, strict=True)],
            upper=[x * (a + none) / total for x, a in zip(left, alone, strict=True)],
            ignorance=none * (-sum(minus)).exp() / total,
            conflict=several + sum(map(mul, alone, out)) + none * prod(out),
        )


def _before(factors):
    """Return the products of the factors before each."""
    return list(accumulate(factors[:-1], mul, initial=Decimal(1)))


def _all_but_one(factors):
    """Return the products of all factors except each, without a division: factors may be 0."""
    return list(map(mul, _before(factors), reversed(_before(factors[::-1]))))


def least_committed(coef, intercept, phi):
    """Return slopes and offsets (J, K) with the least sum of squared weights over the rows.

    Provenance: Denoeux 2019, eq. 36-37, solved with Lagrange multipliers on the rows themselves.
    Unknowns are c_0 .. c_J and alpha (J, K), in which the weights are linear; c_0 is not returned.
    """
    (n_classes, n_features), n = coef.shape, len(phi)
    size = 1 + n_features + n_features * n_classes
    rows, right = [], []
    for i in range(n):
        for j in range(n_features):
            for k in range(n_classes):
                row = np.zeros(size)
                row[1 + j] = phi[i, j]
                row[1 + n_features + j * n_classes + k] = 1
                rows.append(row)
                right.append(-coef[k, j] * phi[i, j])
    constraint = np.zeros((n_classes, size))
    constraint[:, 0] = -1
    for k in range(n_classes):
        constraint[k, 1 + n_features + k :: n_classes] = 1
    rows, right = np.array(rows), np.array(right)
    system = np.block(
        [
            [rows.T @ rows, constraint.T],
            [constraint, np.zeros((n_classes, n_classes))],
        ]
    )
    solution = np.linalg.solve(system, np.r_[rows.T @ right, intercept])[:size]
    slope = coef.T + solution[1 : 1 + n_features, None]
    return slope, solution[1 + n_features :].reshape(n_features, n_classes)
