"""Checks that every calibrator of scores must pass, also user-defined ones.

Each check takes a calibrator, fits clones of it to small data and asserts one property.
`check_calibrator` runs them all; `CALIBRATOR_CHECKS` lists them for a parametrised test.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.special import expit, softmax
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from dubito._typing import FloatArray, IntArray
from dubito.calibration import CalibrationInputError
from dubito.calibration.base import BaseCalibrator

__all__ = ["CALIBRATOR_CHECKS", "check_calibrator", "draw_scores"]

Check: TypeAlias = Callable[[BaseCalibrator], None]
LabelledScores: TypeAlias = tuple[FloatArray, IntArray]


def draw_scores(n: int, n_classes: int, *, seed: int = 0, strength: float = 2.0) -> LabelledScores:
    """Return random scores that favour the true class: (n,) for two classes, (n, K) for more.

    Examples
    --------
    >>> from dubito.testing.calibrators import draw_scores
    >>> scores, y = draw_scores(5, 3)
    >>> scores.shape, y.shape
    ((5, 3), (5,))
    """
    rng = np.random.default_rng(seed)
    y = np.resize(rng.permutation(n_classes), n)
    rng.shuffle(y)
    if n_classes == 2:
        return strength * (y - 0.5) + rng.normal(size=n), y
    return strength * np.eye(n_classes)[y] + rng.normal(size=(n, n_classes)), y


def prepare(calibrator: BaseCalibrator, scores: npt.ArrayLike) -> FloatArray:
    """Return margins as the calibrator's `input`: unchanged, or as probabilities."""
    margins = np.asarray(scores, dtype=np.float64)
    if calibrator.input != "proba":
        return margins
    return np.asarray(expit(margins) if margins.ndim == 1 else softmax(margins, axis=1))


def tables(calibrator: BaseCalibrator, n: int = 60) -> list[LabelledScores]:
    """Return scores and labels of two classes, and of four."""
    drawn = [draw_scores(n, 2), draw_scores(n, 4)]
    return [(prepare(calibrator, scores), y) for scores, y in drawn]


def predictions(fitted: BaseCalibrator, scores: Any) -> list[FloatArray]:
    """Return probabilities and both bounds of some scores."""
    bounds = fitted.predict_bounds(scores)
    return [fitted.predict_proba(scores), bounds.lower, bounds.upper]


def assert_valid(fitted: BaseCalibrator, scores: Any) -> None:
    """Predictions are finite, lower ≤ probability ≤ upper, and of the right shape."""
    proba, lower, upper = predictions(fitted, scores)
    n, n_classes = len(np.asarray(scores)), len(fitted.classes_)
    for values in (proba, lower, upper):
        assert values.shape == (n, n_classes)
        assert np.isfinite(values).all()
    assert (proba >= 0).all()
    np.testing.assert_allclose(proba.sum(axis=1), 1, atol=1e-9)
    assert (lower <= proba + 1e-9).all()
    assert (proba <= upper + 1e-9).all()
    assert fitted.predict_set(scores).any(axis=1).all()


def check_contract(calibrator: BaseCalibrator) -> None:
    """Probabilities lie between bounds, labels are the most probable, sets are never empty."""
    for scores, y in tables(calibrator):
        fitted = clone(calibrator).fit(scores, y)
        assert_valid(fitted, scores)
        best = fitted.predict_proba(scores).argmax(axis=1)
        np.testing.assert_array_equal(fitted.predict(scores), fitted.classes_[best])
        assert fitted.score(scores, y) > 1 / len(fitted.classes_)


def check_input_is_not_changed(calibrator: BaseCalibrator) -> None:
    """Parameters and arrays are not changed, and read-only arrays are accepted."""
    for scores, y in tables(calibrator):
        before = (scores.copy(), y.copy())
        scores.flags.writeable = y.flags.writeable = False
        fitted = clone(calibrator)
        params = fitted.get_params()
        fitted.fit(scores, y)
        predictions(fitted, scores)
        assert fitted.get_params() == params
        np.testing.assert_array_equal(scores, before[0])
        np.testing.assert_array_equal(y, before[1])


def check_reproducible(calibrator: BaseCalibrator) -> None:
    """Predictions are the same for a calibrator fitted twice, cloned or pickled."""
    for scores, y in tables(calibrator):
        fitted = clone(calibrator).fit(scores, y)
        first = predictions(fitted, scores)
        for other in (pickle.loads(pickle.dumps(fitted)), fitted.fit(scores, y)):  # noqa: S301
            for ours, theirs in zip(first, predictions(other, scores), strict=True):
                np.testing.assert_array_equal(ours, theirs)


def check_rows_are_independent(calibrator: BaseCalibrator) -> None:
    """Predictions of a row depend neither on other rows nor on the order of the fit's rows."""
    for scores, y in tables(calibrator):
        fitted = clone(calibrator).fit(scores, y)
        whole = predictions(fitted, scores)
        shuffled = np.random.default_rng(1).permutation(len(y))
        reordered = clone(calibrator).fit(scores[shuffled], y[shuffled])
        for one, many in zip(predictions(fitted, scores[3:4]), whole, strict=True):
            np.testing.assert_allclose(one[0], many[3], rtol=1e-9, atol=1e-12)
        for ours, theirs in zip(predictions(reordered, scores), whole, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-8)


def check_weights_count_rows(calibrator: BaseCalibrator) -> None:
    """Weight 2 is a row twice, weight 0 a row left out."""
    for scores, y in tables(calibrator):
        weight = np.resize([1, 2, 0, 1, 3], len(y))
        weighted = clone(calibrator).fit(scores, y, sample_weight=weight)
        repeated = clone(calibrator).fit(np.repeat(scores, weight, axis=0), np.repeat(y, weight))
        for ours, theirs in zip(
            predictions(weighted, scores), predictions(repeated, scores), strict=True
        ):
            np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-8)


def check_labels_may_be_strings(calibrator: BaseCalibrator) -> None:
    """Strings as labels, lists as input and float32 scores give the same predictions."""
    for scores, y in tables(calibrator):
        plain = predictions(clone(calibrator).fit(scores, y), scores)
        words = np.array(["ash", "beech", "cedar", "fir"])[y]
        named = clone(calibrator).fit(scores.tolist(), words.tolist())
        assert set(named.predict(scores)) <= set(words)
        for ours, theirs in zip(predictions(named, scores.tolist()), plain, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-8)
        single = scores.astype(np.float32)
        assert_valid(clone(calibrator).fit(single, y), single)


def check_two_columns_are_one_margin(calibrator: BaseCalibrator) -> None:
    """Two classes may come as one column or as two, and swapping them swaps the predictions."""
    scores, y = tables(calibrator)[0]
    two = np.column_stack([1 - scores if calibrator.input == "proba" else 0 * scores, scores])
    one_column = predictions(clone(calibrator).fit(scores, y), scores)
    two_columns = predictions(clone(calibrator).fit(two, y), two)
    swapped = predictions(clone(calibrator).fit(two[:, ::-1], 1 - y), two[:, ::-1])
    for one, pair, other in zip(one_column, two_columns, swapped, strict=True):
        np.testing.assert_allclose(one, pair, rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(other[:, ::-1], pair, rtol=1e-6, atol=1e-8)


def check_label_order_does_not_matter(calibrator: BaseCalibrator) -> None:
    """Permuting the classes permutes the predictions."""
    scores, y = tables(calibrator)[1]
    order = np.array([2, 0, 3, 1])
    place = np.argsort(order)
    plain = predictions(clone(calibrator).fit(scores, y), scores)
    permuted = predictions(clone(calibrator).fit(scores[:, order], place[y]), scores[:, order])
    for ours, theirs in zip(permuted, plain, strict=True):
        np.testing.assert_allclose(ours, theirs[:, order], rtol=1e-6, atol=1e-8)


def check_edges(calibrator: BaseCalibrator) -> None:
    """One row, a missing class, constant, separable, tied, huge and tiny scores all work."""
    for n_classes in (2, 4):
        scores, y = draw_scores(40, n_classes)
        lacking = np.where(y == n_classes - 1, 0, y)
        separable = draw_scores(40, n_classes, strength=50.0)
        for s, t in [
            (scores[:1], y[:1]),
            (scores, lacking),
            (0 * scores, y),
            separable,
            (np.round(scores), y),
            (1e6 * scores, y),
            (1e-6 * scores, y),
            (scores[:3], y[:3]),
        ]:
            given = prepare(calibrator, s)
            # Classes are named, because a single row shows only one of them.
            named = clone(calibrator).set_params(classes=np.arange(n_classes))
            fitted = named.fit(given, t)
            assert_valid(fitted, given)
            assert_valid(fitted, prepare(calibrator, 10 * scores))


def check_many_classes(calibrator: BaseCalibrator) -> None:
    """Fit forty classes, most of them rare or absent."""
    scores, y = draw_scores(60, 40)
    given = prepare(calibrator, scores)
    fitted = clone(calibrator).set_params(classes=np.arange(40)).fit(given, y % 30)
    assert_valid(fitted, given[:20])


def check_more_rows_narrow_bounds(calibrator: BaseCalibrator) -> None:
    """Every row eight times gives bounds that are not wider."""
    for scores, y in tables(calibrator):
        few = clone(calibrator).fit(scores, y).predict_bounds(scores).width.mean()
        fitted = clone(calibrator).fit(np.repeat(scores, 8, axis=0), np.repeat(y, 8))
        assert fitted.predict_bounds(scores).width.mean() <= few + 1e-12


def check_bad_input_raises(calibrator: BaseCalibrator) -> None:
    """Bad input raises the expected errors."""
    for scores, y in tables(calibrator):
        assert_raises(NotFittedError, clone(calibrator).predict_proba, scores)
        fit = clone(calibrator).fit
        for bad in (np.nan, np.inf):
            spoilt = scores.copy()
            spoilt[5] = bad
            assert_raises(CalibrationInputError, fit, spoilt, y)
        assert_raises(CalibrationInputError, fit, scores[:0], y[:0])
        assert_raises(CalibrationInputError, fit, scores[..., None, None, None], y)
        assert_raises(ValueError, fit, scores, y[1:])
        assert_raises(ValueError, fit, scores, None)
        assert_raises(ValueError, fit, scores, y, -np.ones(len(y)))
        assert_raises(ValueError, clone(calibrator).set_params(input="odds").fit, scores, y)
        strange = clone(calibrator).set_params(classes=[f"class {k}" for k in range(len(set(y)))])
        assert_raises(ValueError, strange.fit, scores, y)
        fitted = clone(calibrator).fit(scores, y)
        wider = prepare(calibrator, draw_scores(5, 7)[0])
        assert_raises(CalibrationInputError, fitted.predict_proba, wider)
        assert_raises(CalibrationInputError, fitted.predict_bounds, np.full_like(scores, np.nan))


def assert_raises(error: type[Exception], call: Callable[..., Any], *arguments: Any) -> None:
    """Assert that a call raises an error."""
    try:
        call(*arguments)
    except error:
        return
    raise AssertionError(f"{call} accepted invalid arguments: {arguments!r}")


#: The checks that `check_calibrator` runs, for ``pytest.mark.parametrize``.
CALIBRATOR_CHECKS: tuple[Check, ...] = (
    check_contract,
    check_input_is_not_changed,
    check_reproducible,
    check_rows_are_independent,
    check_weights_count_rows,
    check_labels_may_be_strings,
    check_two_columns_are_one_margin,
    check_label_order_does_not_matter,
    check_edges,
    check_many_classes,
    check_more_rows_narrow_bounds,
    check_bad_input_raises,
)


def check_calibrator(calibrator: BaseCalibrator) -> None:
    """Run every check on clones of a calibrator.

    Parameters
    ----------
    calibrator : calibrator
        Not fitted; it is not changed.

    Raises
    ------
    AssertionError
        At the first check that fails.

    Examples
    --------
    >>> from dubito.calibration import PlattCalibrator
    >>> from dubito.testing.calibrators import check_calibrator
    >>> check_calibrator(PlattCalibrator())
    """
    for check in CALIBRATOR_CHECKS:
        check(calibrator)
