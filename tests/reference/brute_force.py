"""Belief functions by their definitions: dicts of frozensets, sums over all pairs of sets.

Written from the definitions in Shafer (1976) and in Denoeux 2019, section 2.1, without code of
dubito.
"""

from itertools import chain, combinations, product


def subsets(labels):
    labels = list(labels)
    return [
        frozenset(c)
        for c in chain.from_iterable(combinations(labels, r) for r in range(len(labels) + 1))
    ]


def as_dict(mass_function):
    return {frozenset(a): m for a, m in mass_function.masses.items()}


def combine(m1, m2, operation):
    out = {}
    for (b, x), (c, y) in product(m1.items(), m2.items()):
        a = operation(b, c)
        out[a] = out.get(a, 0.0) + x * y
    return out


def conjunctive(m1, m2):
    return combine(m1, m2, lambda b, c: b & c)


def disjunctive(m1, m2):
    return combine(m1, m2, lambda b, c: b | c)


def dubois_prade(m1, m2):
    return combine(m1, m2, lambda b, c: (b & c) or (b | c))


def normalise(m):
    left = sum(x for a, x in m.items() if a)
    return {a: x / left for a, x in m.items() if a}


def dempster(m1, m2):
    return normalise(conjunctive(m1, m2))


def yager(m1, m2, frame):
    out = conjunctive(m1, m2)
    conflict = out.pop(frozenset(), 0.0)
    out[frozenset(frame)] = out.get(frozenset(frame), 0.0) + conflict
    return out


def contextual_discount(m, rates):
    """Return masses after each class was added to each focal set with its rate, independently."""
    for label, rate in rates.items():
        m = combine(m, {frozenset([label]): rate, frozenset(): 1 - rate}, lambda b, c: b | c)
    return m


def bel(m, a):
    return sum(x for b, x in m.items() if b and b <= a)


def pl(m, a):
    return sum(x for b, x in m.items() if b & a)


def q(m, a):
    return sum(x for b, x in m.items() if a <= b)


def lower_expectation(m, gamble):
    return sum(x * min(gamble[w] for w in a) for a, x in m.items())


def jousselme(m1, m2, frame):
    total = 0.0
    for a, b in product(subsets(frame), repeat=2):
        d_a = m1.get(a, 0.0) - m2.get(a, 0.0)
        d_b = m1.get(b, 0.0) - m2.get(b, 0.0)
        total += d_a * d_b * (len(a & b) / len(a | b) if a | b else 1.0)
    return max(total, 0.0) ** 0.5 / 2**0.5
