"""Scores that point the wrong way, and columns that belong to other labels."""

from itertools import permutations

import numpy as np
import pytest
from scipy.stats import mannwhitneyu, rankdata
from sklearn.linear_model import LogisticRegression

from dubito import calibration
from dubito.calibration import (
    EvidentialJointCalibrator,
    LabelMismatchWarning,
    PlattCalibrator,
    TemperatureCalibrator,
)
from dubito.calibration._kernels.label_mismatch import find_mismatch

CALIBRATORS = [
    getattr(calibration, name)
    for name in calibration.__all__
    if name.endswith("Calibrator") and name != "EvidentialJointCalibrator"
]


def informative(rng, n, n_classes, strength=2.0):
    """Return scores (n, K) that point at most labels."""
    y = rng.integers(0, n_classes, n)
    return rng.normal(size=(n, n_classes)) + strength * np.eye(n_classes)[y], y


def found(scores, y, n_classes):
    return find_mismatch(np.asarray(scores, float), y, np.ones(len(y)), n_classes)


@pytest.mark.parametrize("kind", CALIBRATORS)
def test_every_calibrator_warns(kind):
    rng = np.random.default_rng(0)
    scores, y = informative(rng, 200, 3)
    words = np.array(["ash", "beech", "cedar"])[y]
    kind().fit(scores, words)
    with pytest.warns(LabelMismatchWarning, match="negate the scores") as caught:
        kind().fit(-scores, words)
    assert caught[0].filename == __file__
    with pytest.warns(LabelMismatchWarning, match=r"column 1 fits ash, not beech.*classes="):
        kind().fit(scores[:, [2, 0, 1]], words)
    kind(classes=["cedar", "ash", "beech"]).fit(scores[:, [2, 0, 1]], words)
    margin = scores[y < 2, 0] - scores[y < 2, 1]
    with pytest.warns(LabelMismatchWarning, match=r"Higher must mean beech.*\['beech', 'ash'\]"):
        kind().fit(margin, words[y < 2])
    kind(classes=["beech", "ash"]).fit(margin, words[y < 2])


def test_each_classifier_of_several_is_looked_at():
    rng = np.random.default_rng(1)
    scores, y = informative(rng, 200, 3)
    table = np.stack([scores, -scores], axis=1)
    with pytest.warns(LabelMismatchWarning, match="scores of classifier 1 do not fit") as caught:
        EvidentialJointCalibrator().fit(table, y)
    assert len(caught) == 1


def test_two_classes_are_judged_by_mann_and_whitney():
    rng = np.random.default_rng(2)
    for _ in range(300):
        n = int(rng.integers(10, 200))
        y = rng.integers(0, 2, n)
        margin = np.round(rng.normal(size=n) - rng.uniform(0, 2) * y, 1)  # with ties
        if min(np.bincount(y, minlength=2)) == 0:
            continue
        u = mannwhitneyu(margin[y == 1], margin[y == 0]).statistic
        n_1 = y.sum()
        z = (u - n_1 * (n - n_1) / 2) / np.sqrt(n_1 * (n - n_1) * (n + 1) / 12)
        ours = found(margin[:, None], y, 2)
        assert (ours is not None) == (z <= -4)
        if ours is not None:
            assert ours.given == pytest.approx(u / (n_1 * (n - n_1)))


def test_columns_are_the_best_of_all_orders():
    rng = np.random.default_rng(3)
    for _ in range(20):
        scores, y = informative(rng, 300, 4)
        order = rng.permutation(4)
        shuffled = scores[:, order]  # column j is about class order[j]
        ours = found(shuffled, y, 4)
        ranks = rankdata(shuffled, axis=1)
        ranks -= ranks.mean(axis=0)
        best = max(permutations(range(4)), key=lambda o: ranks[range(300), np.array(o)[y]].sum())
        assert list(best) == np.argsort(order).tolist()
        if (order == np.arange(4)).all():
            assert ours is None
        else:
            np.testing.assert_array_equal(ours.order, best)


def alarms(rng, n, n_classes, times, draw):
    labels = rng.integers(0, n_classes, (times, n))
    return sum(found(draw(n, n_classes), y, n_classes) is not None for y in labels)


@pytest.mark.parametrize("n_classes", [2, 3, 10])
@pytest.mark.parametrize("kind", ["normal", "one-hot", "skewed"])
def test_uninformative_scores_raise_no_warning(n_classes, kind):
    """Less than once in 1,000 fits: at most 3 in 1,500 would be seen with probability 0.93."""
    rng = np.random.default_rng(4)

    def draw(n, n_classes):
        columns = 1 if n_classes == 2 else n_classes
        if kind == "normal":
            return rng.normal(size=(n, columns))
        if kind == "one-hot":
            return (rng.integers(0, n_classes, (n, 1)) == np.arange(columns)).astype(float)
        return rng.random((n, columns)) ** 6 * np.linspace(1, 5, columns)

    assert sum(alarms(rng, n, n_classes, 500, draw) for n in (10, 40, 200)) <= 1


@pytest.mark.parametrize(
    ("n_classes", "n", "strength"), [(2, 60, 2.0), (3, 60, 2.0), (10, 100, 2.5)]
)
def test_wrong_scores_are_noticed(n_classes, n, strength):
    """Accuracies of about 0.85, 0.8 and 0.6."""
    rng = np.random.default_rng(5)
    seen = np.zeros(3)
    for _ in range(100):
        scores, y = informative(rng, n, n_classes, strength)
        margin = scores[:, 1:] - scores[:, :1]
        given = margin if n_classes == 2 else scores
        turned = np.roll(scores, 1, axis=1)
        seen += [
            found(given, y, n_classes) is None,
            found(-given, y, n_classes) is not None,
            found(turned, y, n_classes) is not None,
        ]
    assert (seen >= [100, 95, 95]).all()


def test_two_columns_of_ten_that_change_places():
    rng = np.random.default_rng(6)
    scores, y = informative(rng, 400, 10, 3.0)
    swapped = scores[:, [0, 1, 2, 7, 4, 5, 6, 3, 8, 9]]
    np.testing.assert_array_equal(found(swapped, y, 10).order, [0, 1, 2, 7, 4, 5, 6, 3, 8, 9])
    with pytest.warns(LabelMismatchWarning, match="column 7 fits 3, not 7, column 3 fits 7, not 3"):
        TemperatureCalibrator().fit(swapped, y)


def test_poor_classifiers_are_not_blamed():
    """Two classes that are often taken for each other, one of them rare; a constant column."""
    rng = np.random.default_rng(7)
    y = rng.choice(3, 500, p=[0.6, 0.38, 0.02])
    scores = rng.normal(size=(500, 3)) + np.array([[2, 0, 0], [0, 2, 0], [0, 1.9, 0.1]])[y]
    assert found(scores, y, 3) is None
    scores[:, 2] = -50.0
    assert found(scores, y, 3) is None
    assert found(np.zeros((500, 3)), y, 3) is None
    assert found(np.zeros((500, 1)), (y > 0).astype(int), 2) is None
    assert found(rng.normal(size=(5, 1)), np.zeros(5, dtype=int), 2) is None


def test_weights_have_no_scale():
    rng = np.random.default_rng(8)
    scores, y = informative(rng, 40, 2)
    margin = scores[:, :1] - scores[:, 1:]
    one = find_mismatch(margin, y, np.ones(40), 2)
    assert one is not None
    assert find_mismatch(margin, y, np.full(40, 1e-6), 2) == pytest.approx(one)
    noise = rng.normal(size=(40, 1))
    assert find_mismatch(noise, y, np.full(40, 1e6), 2) is None


def test_many_rows_and_classes_cost_little():
    rng = np.random.default_rng(9)
    scores, y = informative(rng, 4000, 1200, 8.0)
    assert found(scores, y, 1200) is None
    assert found(-scores, y, 1200).order is None


def test_a_classifier_fitted_to_the_opposite():
    rng = np.random.default_rng(10)
    X = rng.normal(size=(200, 2))
    y = (X[:, 0] + 0.5 * rng.normal(size=200) > 0).astype(int)
    opposite = LogisticRegression().fit(X[:100], 1 - y[:100])
    with pytest.warns(LabelMismatchWarning):
        PlattCalibrator().fit(opposite.decision_function(X[100:]), y[100:])
