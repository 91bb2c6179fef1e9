"""Venn-Abers calibration against the package `venn-abers`."""

from __future__ import annotations

import numpy as np
from comparison import Comparison
from scipy.special import expit
from sklearn.isotonic import IsotonicRegression

from dubito.calibration import VennAbersCalibrator

with np.errstate():  # venn_abers changes numpy's error state when imported
    from venn_abers import VennAbers


def draw(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return random over-confident probabilities, and events."""
    rng = np.random.default_rng(seed)
    score = rng.normal(size=n)
    return expit(3 * score), (rng.random(n) < expit(score)).astype(np.int64)


def ours(proba: np.ndarray, event: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Return p0 and p1 of new rows by this library, (n, 2)."""
    bounds = VennAbersCalibrator(input="proba").fit(proba, event).predict_bounds(new)
    return np.column_stack([bounds.lower[:, 1], bounds.upper[:, 1]])


def theirs(proba: np.ndarray, event: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Return p0 and p1 of new rows by `venn-abers`, (n, 2)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        model = VennAbers().fit(np.column_stack([1 - proba, proba]), event)
        return np.asarray(model.predict_proba(np.column_stack([1 - new, new]))[1])


def refitted(proba: np.ndarray, event: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Return p0 and p1 of new rows by their definition: a fit with each row and label, (n, 2)."""
    return np.array(
        [
            [
                IsotonicRegression(out_of_bounds="clip")
                .fit(np.append(proba, p), np.append(event, label))
                .predict([p])[0]
                for label in (0, 1)
            ]
            for p in new
        ]
    )


def comparisons() -> list[Comparison]:
    """Return the claims of Venn-Abers calibration."""
    proba, event = draw(10_000, 0)
    new, _ = draw(10_000, 1)
    np.testing.assert_allclose(ours(proba, event, new), theirs(proba, event, new), atol=1e-9)
    return [
        Comparison(
            task="Venn-Abers bounds, 10,000 rows to fit, 10,000 new rows",
            rival="venn-abers",
            ours=lambda: ours(proba, event, new),
            theirs=lambda: theirs(proba, event, new),
            target=100,
            repeats=3,
        ),
        Comparison(
            task="Venn-Abers bounds, 10,000 rows to fit, 100 new rows",
            rival="scikit-learn's IsotonicRegression refitted with each row and label",
            ours=lambda: ours(proba, event, new[:100]),
            theirs=lambda: refitted(proba, event, new[:100]),
            target=100,
            repeats=3,
        ),
    ]
