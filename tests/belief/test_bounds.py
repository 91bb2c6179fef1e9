"""Bounds as a value: unpacking, the confidence level they keep, tables."""

import pickle

import numpy as np
import pytest

from dubito.belief import Bounds

LOWER, UPPER = [[0.2, 0.5], [0.0, 0.9]], [[0.5, 0.8], [0.1, 1.0]]


def test_bounds_unpack_into_two_arrays():
    lower, upper = Bounds(LOWER, UPPER)
    np.testing.assert_array_equal(lower, LOWER)
    np.testing.assert_array_equal(upper, UPPER)


def test_the_level_is_kept_by_rows_tightening_and_pickle():
    bounds = Bounds(LOWER, UPPER, level=0.9)
    for kept in (bounds[0], bounds[1:], bounds.tightened(), pickle.loads(pickle.dumps(bounds))):  # noqa: S301
        assert kept.level == 0.9
    assert repr(bounds) == "Bounds(2 rows, 2 classes, mean width 0.2, level 0.9)"
    assert Bounds(LOWER, UPPER).level is None
    assert Bounds.precise([[0.3, 0.7]]).level is None


@pytest.mark.parametrize("level", [0, 1, -0.5, 1.5, 90, "0.9", np.nan, True, np.inf])
def test_a_level_lies_between_0_and_1(level):
    with pytest.raises(ValueError, match=r"level must be None, .* or a number between 0 and 1"):
        Bounds(LOWER, UPPER, level=level)


def test_a_percentage_is_recognised():
    with pytest.raises(ValueError, match=r"For 90 % pass 0\.9\."):
        Bounds(LOWER, UPPER, level=90)


def test_bounds_as_a_table():
    pd = pytest.importorskip("pandas")
    frame = Bounds(LOWER, UPPER, level=0.9).to_pandas(["no", "yes"], index=["a", "b"])
    assert frame.loc["b", ("yes", "lower")] == 0.9
    assert list(frame["no"].columns) == ["lower", "upper"]
    np.testing.assert_array_equal(frame.xs("upper", axis=1, level="bound"), UPPER)
    assert frame.attrs["level"] == 0.9
    assert isinstance(Bounds(LOWER, UPPER).to_pandas(), pd.DataFrame)
    with pytest.raises(ValueError, match="classes has 3 labels, but the bounds have 2 classes"):
        Bounds(LOWER, UPPER).to_pandas(["a", "b", "c"])
    for classes, index, message in (
        (["a", "a"], None, "each class once; got 'a', 'a'"),
        (None, [1, 2, 3], "index has 3 names, but the bounds have 2 rows"),
    ):
        with pytest.raises(ValueError, match=message):
            Bounds(LOWER, UPPER).to_pandas(classes, index)
    with pytest.raises(TypeError, match="classes must be a sequence of labels; got 3"):
        Bounds(LOWER, UPPER).to_pandas(3)
