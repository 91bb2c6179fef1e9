"""The descriptions of the metrics: every metric has one, and it says which values are better."""

import numpy as np
import pytest

from dubito.belief import Bounds
from dubito.metrics import evaluate
from dubito.metrics.descriptions import describe_metric

Y = np.arange(60) % 3
#: Metrics that have their best value for sets of all classes, or for one class in every set.
PRICED = {"coverage", "determinacy", "mean_set_size", "mean_width"}


def values(proba, sets):
    found = evaluate(Y, proba, bounds=Bounds.precise(proba), sets=sets, classes=[0, 1, 2], n_boot=0)
    return {key: estimate.value for key, estimate in found.items()}


@pytest.fixture(scope="module")
def perfect():
    return values(np.eye(3)[Y], np.eye(3, dtype=bool)[Y])


def test_every_metric_has_a_name_and_a_meaning(perfect):
    described = {key: describe_metric(key) for key in perfect}
    assert all(one.meaning for one in described.values())
    assert len({one.name for one in described.values()}) == len(described)
    assert max(len(one.name) for one in described.values()) <= 26


def test_the_better_end_is_that_of_perfect_predictions(perfect):
    wrong = (Y + 1) % 3
    bad = values(0.8 * np.eye(3)[wrong] + 0.2 / 3, np.eye(3, dtype=bool)[wrong])
    for key in perfect.keys() - PRICED:
        sign = {"high": 1, "low": -1}[describe_metric(key).better]
        assert sign * perfect[key] > sign * bad[key], key


def test_what_can_be_had_at_the_price_of_another_metric_has_no_better_end():
    """Sets of all classes cover everything, and sets of one class are small, whatever is true."""
    assert values(np.full((60, 3), 1 / 3), np.ones((60, 3), bool)).keys() >= PRICED
    assert all(describe_metric(key).better is None for key in PRICED)


def test_an_unknown_metric_is_named_after_its_key():
    assert describe_metric("of_my_own") == ("of my own", "", None, False)
