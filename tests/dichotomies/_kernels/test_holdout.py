"""Rows held out for external calibration: folds, and their number by default."""

import numpy as np
import pytest

from dubito.dichotomies._kernels.holdout import fold_masks, hold_out


def test_folds_hold_out_every_row_except_the_only_one_of_a_class():
    rng = np.random.default_rng(0)
    codes = rng.permutation(np.repeat(np.arange(30), rng.integers(1, 9, 30)))
    weight = np.where(rng.random(len(codes)) < 0.1, 0.0, 1.0)
    weight[np.unique(codes, return_index=True)[1]] = 1.0
    folds = np.array(fold_masks(codes, weight, 5, rng))
    held = folds.sum(axis=0)
    sizes = np.bincount(codes, weight)
    np.testing.assert_array_equal(held, (weight > 0) & (sizes[codes] > 1))
    for fold in folds:
        assert (np.bincount(codes, weight * ~fold) > 0).all()
    assert np.ptp(folds.sum(axis=1)) <= 1


@pytest.mark.parametrize(
    ("codes", "n_parts", "n_held", "refit"),
    [
        (np.arange(500), 0, 0, None),  # one row of each class: none can be held out
        (np.arange(300) % 290, 5, 20, True),
        (np.arange(999) % 9, 5, 999, True),
        (np.arange(1000) % 9, 1, 100, True),
        (np.arange(19_999) % 9, 1, 1000, True),
        (np.arange(20_000) % 9, 1, 1000, False),
    ],
    ids=["alone", "hardly", "few", "some", "more", "many"],
)
def test_default_holdout(codes, n_parts, n_held, refit):
    weight = np.ones(len(codes))
    holdout = hold_out(codes, weight, "auto", np.random.default_rng(0))
    assert len(holdout.parts) == n_parts
    assert sum(part.sum() for part in holdout.parts) == pytest.approx(n_held, abs=1)
    if n_parts:
        assert holdout.refit is refit
        assert np.count_nonzero(holdout.final_weight(weight)) == len(codes) - n_held * (not refit)
