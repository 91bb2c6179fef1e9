"""Calibration errors beyond chance have a warning; smaller ones have none."""

import numpy as np
import pytest

from dubito.report import collect, render

LETTERS = np.array(["a", "b", "c"], dtype=object)


def sharpened(proba, power):
    """Return overconfident probabilities (power above 1) or underconfident ones (below)."""
    raised = proba**power
    return raised / raised.sum(axis=1, keepdims=True)


def ece_by_loop(forecast, happened):
    """Return the mean gap in 15 bins of equal width, by the definition."""
    total = 0.0
    for k in range(15):
        inside = (forecast >= k / 15) & ((forecast < (k + 1) / 15) | (k == 14))
        if inside.any():
            total += inside.mean() * abs(happened[inside].mean() - forecast[inside].mean())
    return total


@pytest.mark.parametrize(
    ("power", "words"), [(3.0, "it is overconfident."), (0.4, "it is underconfident.")]
)
def test_wrong_probabilities_have_a_banner_and_a_line_in_short(fakes, power, words):
    X, proba, column = fakes.rows(400, 3)
    wrong = sharpened(proba, power)
    collected = collect(fakes.precise(LETTERS, wrong), X, LETTERS[column])
    found, summary = collected["miscalibration"], collected["summary"]
    forecast, right = wrong.max(axis=1), wrong.argmax(axis=1) == column
    assert found["value"] == pytest.approx(ece_by_loop(forecast, right))
    assert 0 < found["low"] <= found["value"] <= found["high"]
    assert (found["mean_confidence"], found["accuracy"]) == pytest.approx(
        (forecast.mean(), right.mean())
    )
    assert summary["lines"][3] == found["line"]
    assert found["line"].startswith("Its probabilities are not calibrated: ")
    assert f"frequencies by {100 * found['value']:.1f} percentage points" in found["line"]
    assert f"predicted class is {forecast.mean():.1%} on average" in found["line"]
    assert f"it is right in {right.mean():.1%} of the cases" in found["line"]
    assert found["line"].endswith(words)
    assert found["large"]
    page = render(collected)
    assert "Do not rely on its probabilities." in page
    assert page.count(found["line"]) == 2  # the banner, and in short
    assert '<p class="banner"' in page
    assert page.index('<p class="banner"') < page.index('id="summary"')


def test_calibration_errors_that_cancel_have_their_own_sentence(fakes):
    rng = np.random.default_rng(0)
    forecast = np.repeat([0.6, 0.9], 500)
    right = rng.random(1000) < np.repeat([0.8, 0.7], 500)
    proba = np.column_stack([forecast, 1 - forecast])
    X = np.arange(1000)[:, None]
    collected = collect(fakes.precise([0, 1], proba), X, (~right).astype(int))
    assert collected["miscalibration"]["line"].endswith(
        "it is overconfident in some cases and underconfident in others."
    )


def test_small_calibration_errors_have_milder_words(fakes):
    forecast = np.full(2000, 0.9)
    column = (np.arange(2000) >= 0.94 * 2000).astype(int)  # right in 94 of 100
    model = fakes.precise([0, 1], np.column_stack([forecast, 1 - forecast]))
    collected = collect(model, np.arange(2000)[:, None], column)
    found = collected["miscalibration"]
    assert found["value"] == pytest.approx(0.04)
    assert found["line"].startswith(
        "Its probabilities are only roughly calibrated: they differ from the observed "
        "frequencies by 4.0 percentage points"
    )
    assert "Use its probabilities as rough estimates." in render(collected)


def test_calibrated_probabilities_have_neither(fakes):
    alarms = []
    for seed in range(20):
        X, proba, column = fakes.rows(400, 3, seed=seed)
        collected = collect(fakes.precise(LETTERS, proba), X, LETTERS[column])
        alarms.append(collected["miscalibration"] is not None)
        if not alarms[-1]:
            assert len(collected["summary"]["lines"]) == 3
    assert sum(alarms) <= 2  # one in forty is to be expected, three or more one time in 70
    assert '<p class="banner"' not in render(collected)


def test_an_error_too_small_to_matter_is_no_alarm(fakes):
    """Of many rows even a thousandth is more than chance; probabilities are right all the same."""
    n = 210_000
    proba = np.tile([0.7, 0.3], (n, 1))
    column = np.zeros(n, dtype=int)
    column[: int(0.303 * n)] = 1
    collected = collect(fakes.precise([0, 1], proba), np.arange(n)[:, None], column)
    low = next(row for row in collected["metrics"] if row["key"] == "ece")["cells"][0]["low"]
    assert 0 < low < 0.005
    assert collected["miscalibration"] is None
