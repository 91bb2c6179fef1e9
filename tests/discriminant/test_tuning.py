"""c chosen by cross-validation: the same as trying every c."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.model_selection import GroupKFold, StratifiedKFold

from dubito.discriminant.tuning import DEFAULT_CS, set_measures, utility_upper_bound
from dubito.metrics import neg_mean_set_size_scorer, u65, u80, u80_scorer

from reference.published import published

X, y = load_wine(return_X_y=True)
METRICS = {"u65": u65, "u80": u80}


@pytest.mark.parametrize("scoring", METRICS)
@pytest.mark.parametrize("kind", ["tied", "full", "diag", "spherical"])
def test_the_c_chosen_is_the_smallest_of_the_best(kind, scoring):
    cs = [0, 0.2, 0.5, 1, 1.5, 2, 3, 5, 8]
    options = {"covariance_type": kind, "box": "scaled", "scoring": scoring}
    tuned = published(c=cs, **options).fit(X, y)
    scores = []
    for c in cs:
        one = published(c=c, **options)
        sets = np.empty((len(y), 3), dtype=bool)
        for train, test in StratifiedKFold(5).split(X, y):
            sets[test] = clone(one).fit(X[train], y[train]).predict_set(X[test], "maximality")
        scores.append(METRICS[scoring](y, sets))
    assert tuned.c_ == cs[int(np.argmax(np.round(scores, 12)))]
    tried = len(tuned.c_path_.c)
    np.testing.assert_allclose(getattr(tuned.c_path_, scoring), scores[:tried], rtol=1e-12)
    assert max(scores[tried:], default=0) <= max(scores[:tried]) + 1e-12


def test_no_later_score_is_above_the_ceiling():
    rng = np.random.default_rng(0)
    for _ in range(50):
        n, k = rng.integers(1, 30), rng.integers(2, 6)
        critical = rng.exponential(size=(n, k)) * rng.integers(0, 2, size=(n, k))
        critical[rng.random((n, k)) < 0.1] = np.inf
        codes, weight = rng.integers(0, k, size=n), rng.random(n) + 0.01
        path = set_measures(critical, codes, weight, np.linspace(0, 4, 60))
        for scoring in METRICS:
            scores = getattr(path, scoring)
            for i in range(0, 60, 7):
                most = utility_upper_bound(critical, codes, weight, path.c[i], scoring)
                assert scores[i:].max() <= most + 1e-12


def test_folds_may_be_masks_lists_or_groups():
    folds = list(StratifiedKFold(3).split(X, y))
    number = published(c="auto", cv=folds).fit(X, y)
    masks = [tuple(np.isin(np.arange(len(y)), part) for part in fold) for fold in folds]
    lists = [tuple(part.tolist() for part in fold) for fold in folds]
    for cv in (masks, lists):
        other = published(c="auto", cv=cv).fit(X, y)
        np.testing.assert_array_equal(other.c_path_.u65, number.c_path_.u65)
    groups = list(GroupKFold(3).split(X, y, np.arange(len(y)) % 7))
    assert published(c="auto", cv=groups).fit(X, y).c_ >= 0


def test_folds_without_usable_rows_are_refused():
    with pytest.raises(ValueError, match="cv has no folds"):
        published(c="auto", cv=[]).fit(X, y)
    weight = np.ones(len(y))
    weight[::3] = 0
    fold = [(np.flatnonzero(weight), np.flatnonzero(weight == 0))]
    with pytest.raises(ValueError, match="all have weight 0"):
        published(c="auto", cv=fold).fit(X, y, sample_weight=weight)


def test_a_path_has_the_given_order():
    model = published().fit(X, y)
    path = model.c_path(X, y, [2, 0, 1, 2])
    np.testing.assert_array_equal(path.c, [2, 0, 1, 2])
    np.testing.assert_array_equal(path.u65, model.c_path(X, y, [0, 1, 2]).u65[[2, 0, 1, 2]])
    np.testing.assert_array_equal(model.c_path(X, y).c, DEFAULT_CS)


def test_c_is_tuned_by_a_function_of_labels_and_sets():
    names = np.array(["a", "b", "c"])[y]
    by_name = published(c="auto", box="scaled", scoring="u80").fit(X, names)
    by_function = clone(by_name).set_params(scoring=u80).fit(X, names)
    assert by_function.c_ == by_name.c_
    tried = len(by_name.c_path_.c)
    np.testing.assert_array_equal(by_function.c_path_.u80[:tried], by_name.c_path_.u80)

    def prefer_large_sets(y_true, sets):
        assert set(y_true) == set("abc")
        return sets.sum(axis=1).mean()

    cs = [0, 1, 50]
    assert published(c=cs, box="scaled", scoring=prefer_large_sets).fit(X, names).c_ == 50


def test_a_score_that_is_not_a_number_is_refused():
    with pytest.raises(ValueError, match="scoring returned nan for the sets of c=0"):
        published(c="auto", scoring=lambda *_: float("nan")).fit(X, y)


def test_rows_of_weight_0_are_left_out_and_functions_get_the_weights():
    weight = np.random.default_rng(0).integers(0, 3, len(y)).astype(float)
    by_name = published(c="auto", box="scaled", scoring="u80").fit(X, y, weight)
    by_function = clone(by_name).set_params(scoring=u80).fit(X, y, weight)
    assert by_function.c_ == by_name.c_
    wrong = np.where(weight > 0, y, (y + 1) % 3)  # labels of rows that do not count
    folds = list(StratifiedKFold(5).split(X, y))

    def unweighted(y_true, sets):
        return u80(y_true, sets)

    for scoring in ("u80", u80, unweighted):
        model = published(c="auto", box="scaled", scoring=scoring, cv=folds)
        assert model.fit(X, wrong, weight).c_ == model.fit(X, y, weight).c_


@pytest.mark.parametrize("scoring", [u80_scorer, neg_mean_set_size_scorer])
def test_scorers_of_an_estimator_are_refused(scoring):
    with pytest.raises(TypeError, match=r"true labels and the sets, such as dubito\.metrics\.u80"):
        published(c="auto", scoring=scoring).fit(X, y)
