"""Set rules by name."""

import numpy as np
import pytest

from dubito import decision
from dubito.belief import Bounds
from dubito.decision import choose_set
from dubito.decision.rules import RULES

BOUNDS = Bounds([[0.4, 0.1, 0.1], [0.0, 0.2, 0.7]], [[0.7, 0.3, 0.5], [0.1, 0.3, 0.8]])


@pytest.mark.parametrize("name", RULES)
def test_a_name_is_the_rule_of_that_name(name):
    rule = getattr(decision, name)
    np.testing.assert_array_equal(choose_set(BOUNDS, name), rule(BOUNDS))
    np.testing.assert_array_equal(choose_set(BOUNDS, rule), rule(BOUNDS))


def test_interval_dominance_is_the_default():
    np.testing.assert_array_equal(choose_set(BOUNDS), decision.interval_dominance(BOUNDS))


def test_options_reach_the_rule():
    loss = [[0, 5, 5], [1, 0, 1], [1, 1, 0]]
    np.testing.assert_array_equal(
        choose_set(BOUNDS, "maximality", loss=loss), decision.maximality(BOUNDS, loss)
    )


@pytest.mark.parametrize(
    ("rule", "error", "message"),
    [
        ("dominance", ValueError, "rule must be one of 'interval_dominance'.* Got 'dominance'"),
        (3, TypeError, "a name or a function"),
        (lambda b: b.upper, ValueError, "boolean array with 2 rows; got float64"),
        (lambda b: np.ones((len(b) + 1, 3), dtype=bool), ValueError, r"got bool of shape \(3, 3\)"),
        (lambda b: b.lower > 0.5, ValueError, "empty set"),
    ],
)
def test_rules_that_are_none_are_refused(rule, error, message):
    with pytest.raises(error, match=message):
        choose_set(BOUNDS, rule)
