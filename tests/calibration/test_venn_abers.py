"""Venn-Abers calibration against refits with the row added, and its laws."""

import itertools

import numpy as np
import pytest
from scipy.special import expit
from sklearn.isotonic import IsotonicRegression

from dubito.calibration import EvidentialIsotonicCalibrator, VennAbersCalibrator


def refitted(score, event, weight, new):
    """Return p0 and p1 by adding each new row with each label and fitting again."""
    result = np.empty((2, len(new)))
    for label, (i, s) in itertools.product((0, 1), enumerate(new)):
        model = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip")
        model.fit(np.append(score, s), np.append(event, label) * 1.0, np.append(weight, 1.0))
        result[label, i] = model.predict([s])[0]
    return result


def draw(rng, kind, n):
    """Draw scores with ties, events and weights."""
    score = rng.integers(0, rng.integers(1, 30), n) * 1.0
    if kind == "one class":
        return score, np.full(n, rng.random() < 0.5), rng.exponential(size=n) + 0.01
    event = rng.random(n) < expit(0.3 * (score - 8))
    if kind == "weights":
        return score, event, 10 ** rng.uniform(-2, 2, n)
    if kind == "no ties":
        return rng.normal(size=n), rng.random(n) < 0.4, np.ones(n)
    return score, event, np.ones(n)


@pytest.mark.parametrize("kind", ["ties", "no ties", "weights", "one class"])
def test_bounds_are_those_of_refits(kind):
    rng = np.random.default_rng(0)
    for _ in range(15):
        score, event, weight = draw(rng, kind, int(rng.integers(1, 40)))
        new = np.concatenate([[-1e3], np.unique(score), np.unique(score) + 0.5, [1e3]])
        calibrator = VennAbersCalibrator(classes=[False, True]).fit(score, event, weight)
        bounds = calibrator.predict_bounds(new)
        p0, p1 = refitted(score, event, weight, new)
        np.testing.assert_allclose(bounds.lower[:, 1], p0, atol=1e-9)
        np.testing.assert_allclose(bounds.upper[:, 1], p1, atol=1e-9)
        np.testing.assert_allclose(bounds.lower[:, 0], 1 - p1, atol=1e-9)
        proba = calibrator.predict_proba(new)
        np.testing.assert_allclose(proba[:, 1], p1 / (1 - p0 + p1), atol=1e-9)


def test_a_larger_one():
    rng = np.random.default_rng(1)
    score = rng.normal(size=1500)
    event, new = rng.random(1500) < expit(2 * score), rng.normal(size=40)
    bounds = VennAbersCalibrator().fit(score, event).predict_bounds(new)
    p0, p1 = refitted(score, event, np.ones(1500), new)
    np.testing.assert_allclose(bounds.lower[:, 1], p0, atol=1e-9)
    np.testing.assert_allclose(bounds.upper[:, 1], p1, atol=1e-9)


def test_one_of_the_two_is_calibrated():
    rng = np.random.default_rng(0)
    chosen, events = [], []
    for _ in range(1500):
        score = rng.normal(size=13)
        event = rng.random(13) < expit(2 * score) ** 2
        if event[:12].all() or not event[:12].any():
            continue
        calibrator = VennAbersCalibrator().fit(score[:12], event[:12])
        bounds = calibrator.predict_bounds(score[12:])
        chosen.append(bounds.upper[0, 1] if event[12] else bounds.lower[0, 1])
        events.append(event[12])
    chosen, events = np.array(chosen), np.array(events)
    for low, high in itertools.pairwise([0.0, 0.2, 0.5, 0.8, 1.01]):
        rows = (low <= chosen) & (chosen < high)
        error = 4 * np.sqrt(0.25 / rows.sum())
        assert events[rows].mean() == pytest.approx(chosen[rows].mean(), abs=error)


def scores_of(n, n_classes, seed=0):
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(n, n_classes))
    return scores, (scores + rng.normal(size=(n, n_classes))).argmax(axis=1)


@pytest.mark.parametrize("multiclass", ["ovr", "ovo"])
@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("level", [None, 0.5, 0.95])
def test_bounds_hold_the_probability(multiclass, n_classes, level):
    scores, y = scores_of(120, n_classes)
    fitted = VennAbersCalibrator(multiclass=multiclass).fit(scores, y)
    new = scores_of(200, n_classes, seed=1)[0] * 2
    bounds, proba = fitted.predict_bounds(new, level=level), fitted.predict_proba(new)
    assert (bounds.lower <= proba).all()
    assert (proba <= bounds.upper).all()
    assert (bounds.lower >= 0).all()
    assert (bounds.upper <= 1).all()
    np.testing.assert_allclose(proba.sum(axis=1), 1)


def test_one_against_the_rest_is_normalised():
    scores, y = scores_of(90, 4)
    fitted = VennAbersCalibrator().fit(scores, y)
    events = np.column_stack(
        [
            VennAbersCalibrator().fit(scores[:, k], y == k).predict_proba(scores[:, k])[:, 1]
            for k in range(4)
        ]
    )
    expected = events / events.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(fitted.predict_proba(scores), mixed(expected, y), atol=1e-12)


def mixed(proba, y):
    """Return probabilities, or bounds, with the base rate mixed in at the weight of one row."""
    n, n_classes = len(y), len(np.unique(y))
    base = (np.bincount(y) + 1) / (n + n_classes)
    return (n * proba + (base if proba.ndim == 2 else base[0])) / (n + 1)


@pytest.mark.parametrize("kind", ["margin", "logits", "proba"])
def test_one_against_one_couples_pairs(kind):
    scores, y = scores_of(90, 3)
    scores = (
        np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True) if kind == "proba" else scores
    )
    logs = np.log(scores) if kind == "proba" else scores
    fitted = VennAbersCalibrator(multiclass="ovo", input=kind, floor=1e-12).fit(scores, y)
    inverse = np.full((90, 3), -1.0)
    low, high = inverse.copy(), inverse.copy()
    for k, j in itertools.permutations(range(3), 2):
        rows = (y == k) | (y == j)
        pair = VennAbersCalibrator(classes=[False, True])
        pair.fit((logs[:, k] - logs[:, j])[rows], (y == k)[rows])
        margin = logs[:, k] - logs[:, j]
        inverse[:, k] += 1 / pair.predict_proba(margin)[:, 1]
        bounds = pair.predict_bounds(margin)
        with np.errstate(divide="ignore"):
            low[:, k] += 1 / bounds.lower[:, 1]
        high[:, k] += 1 / bounds.upper[:, 1]
    expected = 1 / inverse
    proba = expected / expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(fitted.predict_proba(scores), mixed(proba, y), atol=1e-9)
    low, high = 1 / low, 1 / high
    bounds = fitted.predict_bounds(scores)
    others = high.sum(axis=1) - high[:, 0]
    expected = mixed(low[:, 0] / (low[:, 0] + others), y)
    np.testing.assert_allclose(bounds.lower[:, 0], expected, atol=1e-9)


def test_pairs_that_were_never_seen_are_open():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(20, 4))
    y = np.where(scores[:, 0] > scores[:, 1], 0, 1)
    fitted = VennAbersCalibrator(multiclass="ovo", classes=[0, 1, 2, 3]).fit(scores, y)
    for level in (None, 0.9):
        bounds, proba = fitted.predict_bounds(scores, level=level), fitted.predict_proba(scores)
        assert np.isfinite(proba).all()
        assert (bounds.lower <= proba).all()
        assert (proba <= bounds.upper).all()
    np.testing.assert_array_equal(fitted.predict_bounds(scores, level=0.9).lower[:, 2:], 0)


def test_a_level_is_that_of_the_isotonic_contour():
    scores, y = scores_of(80, 2)
    ours = VennAbersCalibrator().fit(scores, y)
    theirs = EvidentialIsotonicCalibrator().fit(scores, y)
    proba = ours.predict_proba(scores)
    cut = theirs.maps_[0].level_bounds(scores[:, 1] - scores[:, 0], 0.9)
    bounds = ours.predict_bounds(scores, level=0.9)
    np.testing.assert_allclose(bounds.lower[:, 1], np.minimum(cut[0], proba[:, 1]))
    np.testing.assert_allclose(bounds.upper[:, 1], np.maximum(cut[1], proba[:, 1]))
    np.testing.assert_array_equal(ours.contour(scores, [0.3]), theirs.contour(scores, [0.3]))


def test_a_level_holds_where_the_two_ends_do_not():
    rng = np.random.default_rng(0)
    ends, cut = [], []
    for _ in range(60):
        score, new = rng.normal(size=1000), rng.normal(size=50)
        fitted = VennAbersCalibrator().fit(score, rng.random(1000) < expit(2 * score))
        truth = expit(2 * new)
        for found, level in ((ends, None), (cut, 0.9)):
            bounds = fitted.predict_bounds(new, level=level)
            found.append(((bounds.lower[:, 1] <= truth) & (truth <= bounds.upper[:, 1])).mean())
    assert np.mean(ends) < 0.5
    assert np.mean(cut) > 0.87


def test_contours_of_pairs_are_refused():
    scores, y = scores_of(30, 3)
    fitted = VennAbersCalibrator(multiclass="ovo").fit(scores, y)
    with pytest.raises(AttributeError) as caught:
        fitted.contour(scores, [0.5])
    assert 'Use multiclass="ovr"' in str(caught.value.__cause__)
    assert VennAbersCalibrator().fit(scores, y).contour(scores, [0.5]).shape == (30, 3, 1)


def test_two_classes_by_pairs_are_two_classes():
    scores, y = scores_of(30, 2)
    ovo, ovr = (VennAbersCalibrator(multiclass=m).fit(scores, y) for m in ("ovo", "ovr"))
    np.testing.assert_array_equal(ovo.predict_proba(scores), ovr.predict_proba(scores))
    assert not ovo.one_against_one_
