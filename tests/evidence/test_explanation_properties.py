"""What holds for every explanation, whatever the weights."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.special import softmax

from dubito.decision import interval_dominance
from dubito.evidence import Explanation

SIZES = st.sampled_from([0.0, 1e-300, 1e-17, 1e-5, 0.004, 0.005, 0.3, 1, 2, 9, 40, 800, 1e4])


@st.composite
def explanations(draw):
    """Rows of either form: signed weights, or for two classes the part for each."""
    n, pieces = draw(st.integers(1, 3)), draw(st.integers(1, 14))
    k = draw(st.integers(2, 5))
    shape = (n, pieces, k)
    weights = draw(hnp.arrays(float, shape, elements=SIZES)) * draw(
        hnp.arrays(float, shape, elements=st.floats(-1, 1))
    )
    if k == 2 and draw(st.booleans()):
        signed = weights[:, :, 0]
        weights = np.stack([np.maximum(-signed, 0), np.maximum(signed, 0)], axis=2)
    return Explanation(
        weights=weights,
        names=[f"x{j}" for j in range(pieces)],
        classes=[f"c{j}" for j in range(k)],
        values=draw(hnp.arrays(float, shape[:2], elements=st.floats(-1e9, 1e9))),
    )


@given(explanation=explanations())
def test_the_table_adds_up_to_the_totals(explanation):
    n, _, k = explanation.weights.shape
    frame = explanation.to_pandas()
    for total, sign in zip(explanation.totals, (1, -1), strict=True):
        summed = frame.assign(part=np.maximum(sign * frame["weight"], 0))
        summed = summed.groupby(["row", "class"])["part"].sum().to_numpy().reshape(n, k)
        np.testing.assert_allclose(total, summed, rtol=1e-12)


HEAD = re.compile(
    r'row \d+: "c(\d)" plausible \((\d\.\d\d)\), belief (\d\.\d\d), '
    r"ignorance (\d\.\d\d), conflict (\d\.\d\d)"
)


@settings(max_examples=300)
@given(explanation=explanations(), max_pieces=st.integers(0, 12))
def test_the_text_is_short_in_order_and_agrees_with_itself(explanation, max_pieces):
    plus, minus = explanation.totals
    kept = interval_dominance(explanation.bounds.including(softmax(plus - minus, axis=1)))
    for i in range(len(explanation)):
        head, *pieces, doubt = explanation.text(i, max_pieces=max_pieces).splitlines()
        named, *numbers = HEAD.fullmatch(head).groups()
        plausibility, belief, ignorance, conflict = map(float, numbers)
        assert explanation.bounds.upper[i, int(named)] == explanation.bounds.upper[i].max()
        assert len(pieces) <= max_pieces + 1
        assert all(line.startswith("  ") and len(line) < 100 for line in pieces)
        assert "-0.00" not in head + doubt
        assert not any("+0.00" in line for line in pieces)
        assert belief <= plausibility
        assert ignorance <= plausibility
        # Each line begins with the name of a piece, which must occur once.
        listed = [line.split()[0] for line in pieces if line.split()[0].startswith("x")]
        assert len(set(listed)) == len(listed)
        about = slice(None) if len(explanation.classes) < 4 else int(named)  # of many classes, one
        sizes = [np.abs(explanation.weights[i, int(name[1:]), about]).max() for name in listed]
        assert sizes == sorted(sizes, reverse=True)
        rest = [int(line.split()[0]) for line in pieces[len(listed) :]]
        assert sum(rest) + len(listed) == explanation.weights.shape[1]
        assert doubt.startswith("The evidence leaves one class") == (kept[i].sum() == 1)
        if kept[i].sum() > 1:
            said = re.search(r"(\d\.\d\d) of the belief", doubt)
            lack = round(100 * float(said[1] if said else ignorance))
            clash = round(100 * conflict)
            assert ("not conflict" in doubt) == (lack >= 3 * clash)
            assert ("not lack" in doubt) == (clash >= 3 * lack and clash > 0)


@pytest.mark.parametrize("scale", [0.001, 0.3, 1e4])
def test_the_text_of_a_thousand_classes_is_short(scale):
    rng = np.random.default_rng(0)
    weights = scale * rng.normal(size=(2, 300, 1000))
    weights -= weights.mean(axis=2, keepdims=True)
    explanation = Explanation(
        weights=weights, names=[f"x{j}" for j in range(300)], classes=np.arange(1000)
    )
    for i in range(2):
        lines = explanation.text(i).splitlines()
        assert len(lines) <= 13
        assert max(map(len, lines)) < 140
