"""Rows unlike any seen: p-values, what is discounted and by how much, and any detector."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.datasets import load_iris
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import IsolationForest
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GroupKFold, KFold
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KernelDensity, KNeighborsClassifier, LocalOutlierFactor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC, OneClassSVM
from sklearn.utils.estimator_checks import parametrize_with_checks

from dubito.calibration import (
    CalibratedClassifier,
    EvidentialLogisticCalibrator,
    EvidentialMultinomialCalibrator,
)
from dubito.conformal import ConformalClassifier, FewRowsWarning, NoveltyAwareClassifier
from dubito.evidence import EvidentialClassifier, NotSupportedError
from dubito.pipeline import CautiousPipeline

X, Y = load_iris(return_X_y=True)
NAMES = np.array(["setosa", "versicolor", "virginica"])[Y]
FAR = X[:4] + np.array([[100.0], [10.0], [1.0], [0.0]])


def linear():
    return LogisticRegression(max_iter=1000)


def cloud(n, seed=0, columns=3):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, columns))
    return rows, (rows[:, 0] + rng.logistic(size=n) > 0).astype(int)


def by_definition(fit_rows, rows, folds):
    """P-values of rows, by loops: mean distance to five neighbours, held-out rows by folds."""

    def novelty(train, row):
        scale = train.std(axis=0)
        apart = np.sort(np.sqrt((((train - row) / scale) ** 2).sum(axis=1)))
        return apart[:5].mean()

    held_out = [
        novelty(fit_rows[train], fit_rows[i]) for train, test in folds.split(fit_rows) for i in test
    ]
    return [
        (1 + sum(d >= novelty(fit_rows, row) for d in held_out)) / (len(held_out) + 1)
        for row in rows
    ]


@parametrize_with_checks(
    [
        NoveltyAwareClassifier(LogisticRegression(), rate=0.5),
        NoveltyAwareClassifier(
            LogisticRegression(), detector=GaussianMixture(random_state=0), rate=0.5
        ),
    ]
)
@pytest.mark.filterwarnings("ignore::dubito.conformal.FewRowsWarning")
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_familiarity_is_the_p_value_of_the_definition():
    fit_rows, y = cloud(60)
    rows = np.concatenate([cloud(15, seed=1)[0], fit_rows[:3], [[4.0, 4.0, -4.0]]])
    model = NoveltyAwareClassifier(linear(), cv=4).fit(fit_rows, y)
    wanted = by_definition(fit_rows, rows, KFold(4, shuffle=True, random_state=0))
    np.testing.assert_allclose(model.familiarity(rows), wanted, rtol=1e-12)


@pytest.mark.parametrize("kind", ["normal", "heavy tails", "grid"])
def test_of_familiar_rows_a_fraction_of_about_rate_is_touched(kind):
    draw = {
        "normal": lambda rng, n: rng.normal(size=(n, 3)),
        "heavy tails": lambda rng, n: rng.standard_t(2, size=(n, 3)),
        "grid": lambda rng, n: rng.integers(0, 3, size=(n, 3)).astype(float),
    }[kind]
    touched = {0.02: [], 0.1: []}
    for seed in range(20):
        rng = np.random.default_rng(seed)
        rows, new = draw(rng, 300), draw(rng, 500)
        u = NoveltyAwareClassifier(GaussianNB()).fit(rows, rng.random(300) > 0.5).familiarity(new)
        for rate, found in touched.items():
            found.append((u < rate).mean())
    for rate, found in touched.items():
        # Three standard errors of the mean over 20 draws of the training rows.
        assert np.mean(found) <= rate + 3 * np.std(found) / np.sqrt(20)
    if kind != "grid":  # ties make p-values larger
        assert np.mean(touched[0.1]) > 0.05


def test_bounds_are_discounted_by_the_formula():
    model = NoveltyAwareClassifier(
        CalibratedClassifier(linear(), EvidentialMultinomialCalibrator()), rate=0.05
    ).fit(X, NAMES)
    rows = np.concatenate([X[::10], FAR])
    inside, bounds = model.estimator_.predict_bounds(rows), model.predict_bounds(rows)
    kept = np.minimum(1.0, model.familiarity(rows) / 0.05)[:, None]
    np.testing.assert_allclose(bounds.lower, kept * inside.lower, rtol=1e-12)
    np.testing.assert_allclose(bounds.upper, 1 - kept * (1 - inside.upper), rtol=1e-12, atol=1e-16)
    assert (bounds.upper >= inside.upper).all()
    assert kept.min() == pytest.approx(1 / 151 / 0.05)
    assert (kept == 1).sum() > 10
    proba = model.predict_proba(rows)
    np.testing.assert_array_equal(proba, model.estimator_.predict_proba(rows))
    assert (bounds.lower <= proba + 1e-9).all()
    assert (proba <= bounds.upper + 1e-9).all()
    np.testing.assert_array_equal(model.predict(rows), model.estimator_.predict(rows))
    assert model.predict_set(FAR[:1]).all()
    assert model.predict_set(X[:1]).sum() == 1


@pytest.mark.parametrize(
    "estimator",
    [
        linear(),
        EvidentialClassifier(linear()),
        CalibratedClassifier(GaussianNB(), EvidentialMultinomialCalibrator()),
    ],
    ids=lambda model: type(model).__name__,
)
def test_masses_agree_with_bounds(estimator):
    model = NoveltyAwareClassifier(estimator, rate=0.05).fit(X, Y)
    if not hasattr(model, "predict_mass"):
        assert isinstance(estimator, CalibratedClassifier)
        return
    mass = model.predict_mass(FAR)
    inside = (
        model.estimator_.predict_mass(FAR).bounds()
        if hasattr(model.estimator_, "predict_mass")
        else model.estimator_.predict_proba(FAR)
    )
    kept = np.minimum(1.0, model.familiarity(FAR) / 0.05)[:, None]
    lower = inside if isinstance(inside, np.ndarray) else inside.lower
    np.testing.assert_allclose(mass.bounds().lower, kept * lower, atol=1e-12)
    np.testing.assert_allclose(mass.mass.sum(axis=1), 1.0)


def test_a_level_is_passed_on_and_kept_or_refused():
    rows, y = cloud(200)
    model = NoveltyAwareClassifier(EvidentialClassifier(linear())).fit(rows, y)
    with pytest.raises(NotSupportedError, match="weights of evidence"):
        model.predict_bounds(rows[:2], level=0.9)
    with pytest.raises(NotSupportedError, match="GaussianNB gives probabilities without bounds"):
        NoveltyAwareClassifier(GaussianNB()).fit(rows, y).predict_set(rows[:2], level=0.9)

    class Levelled(GaussianNB):
        def predict_bounds(self, X, level=None):
            from dubito.belief import Bounds

            proba = self.predict_proba(X)
            return Bounds(0.9 * proba, 1 - 0.9 * (1 - proba), level)

    aware = NoveltyAwareClassifier(Levelled()).fit(rows, y)
    assert aware.predict_bounds(rows[:2], level=0.9).level == 0.9
    assert aware.predict_bounds(rows[:2]).level is None
    with pytest.raises(ValueError, match="level must be None"):
        aware.predict_bounds(rows[:2], level=90)


@pytest.mark.parametrize(
    "detector",
    [
        IsolationForest(n_estimators=20, random_state=0),
        LocalOutlierFactor(novelty=True),
        OneClassSVM(),
        GaussianMixture(2, random_state=0),
        KernelDensity(),
        make_pipeline(StandardScaler(), KernelDensity()),
    ],
    ids=lambda detector: type(detector).__name__,
)
def test_any_novelty_detector(detector):
    model = NoveltyAwareClassifier(linear(), detector=detector).fit(X, Y)
    far, near = model.familiarity(FAR), model.familiarity(X)
    assert far[0] < 0.03 < np.median(near)
    assert ((near > 0) & (near <= 1)).all()
    assert model.detector_ is not detector
    copied = clone(model).fit(X, Y)
    np.testing.assert_array_equal(copied.familiarity(FAR), far)


def test_held_out_rows_are_scored_by_detectors_fitted_on_other_folds():
    groups = np.repeat(np.arange(50), 3)
    folds = list(GroupKFold(5).split(X, Y, groups))
    detector = KernelDensity()
    model = NoveltyAwareClassifier(linear(), detector=detector, cv=folds).fit(X, Y)
    wanted = [-clone(detector).fit(X[train]).score_samples(X[test]) for train, test in folds]
    np.testing.assert_array_equal(model.held_out_scores_, np.sort(np.concatenate(wanted)))


def test_a_frozen_model_is_left_as_it_is_and_needs_no_labels():
    frozen = FrozenEstimator(make_pipeline(StandardScaler(), linear()).fit(X, NAMES))
    model = NoveltyAwareClassifier(frozen).fit(X[::2])
    np.testing.assert_array_equal(model.predict_proba(FAR), frozen.predict_proba(FAR))
    labelled = NoveltyAwareClassifier(frozen).fit(X[::2], NAMES[::2])
    np.testing.assert_array_equal(model.familiarity(X), labelled.familiarity(X))
    assert model.familiarity(FAR)[0] == pytest.approx(1 / 76)
    with pytest.raises(ValueError, match="requires y"):
        NoveltyAwareClassifier(linear()).fit(X, None)


def test_too_few_rows_discount_nothing_and_warn():
    rows, y = cloud(49)
    with pytest.warns(FewRowsWarning, match="at least 1/50, so none falls below rate=0.02"):
        model = NoveltyAwareClassifier(linear()).fit(rows, y)
    assert model.predict_bounds(rows + 50).width.max() == 0
    rows, y = cloud(50)  # with one row more the farthest rows are doubted
    assert NoveltyAwareClassifier(linear()).fit(rows, y).predict_bounds(rows + 50).width.max() > 0
    with pytest.warns(FewRowsWarning):
        NoveltyAwareClassifier(linear()).fit([[0.0], [1.0], [3.0]], [0, 1, 1])
    frozen = FrozenEstimator(linear().fit([[0.0], [1.0]], [0, 1]))
    with pytest.raises(ValueError, match="needs at least 2; got n_samples=1"):
        NoveltyAwareClassifier(frozen).fit([[0.0]])


def test_duplicates_and_constant_columns_are_harmless():
    rows, y = cloud(40)
    rows = np.column_stack([rows, np.full(40, 7.0), np.full(40, 0.1) * 3])
    thrice = np.tile(rows, (3, 1))
    model = NoveltyAwareClassifier(linear()).fit(thrice, np.tile(y, 3))
    familiar = model.familiarity(thrice)
    assert np.isfinite(familiar).all()
    np.testing.assert_array_equal(familiar[:40], familiar[40:80])
    odd = rows[:1] + np.array([0, 0, 0, 50.0, 0])  # another value of a constant column
    assert model.familiarity(odd)[0] == pytest.approx(1 / 121)
    same = NoveltyAwareClassifier(DummyClassifier()).fit(np.ones((90, 2)), np.tile([0, 1], 45))
    np.testing.assert_array_equal(same.familiarity([[1.0, 1.0], [2.0, 1.0]]), [1.0, 1 / 91])


def test_familiarity_does_not_depend_on_the_batch():
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 2, size=(300, 20)).astype(float)  # many rows equally far
    model = NoveltyAwareClassifier(linear()).fit(rows, rng.random(300) > 0.5)
    together = model.familiarity(rows)
    alone = [model.familiarity(row[None])[0] for row in rows]
    np.testing.assert_array_equal(together, alone)


def test_extreme_values_are_most_novel():
    rows, y = cloud(100)
    model = NoveltyAwareClassifier(KNeighborsClassifier()).fit(rows, y)
    assert model.familiarity(np.full((1, 3), 1e300))[0] == pytest.approx(1 / 101)


def test_weights_reach_the_estimator_and_rows_of_weight_0_are_absent():
    rows, y = cloud(120)
    weight = np.ones(120)
    rows[100:] += 40
    weight[100:] = 0
    model = NoveltyAwareClassifier(linear()).fit(rows, y, sample_weight=weight)
    without = NoveltyAwareClassifier(linear()).fit(rows[:100], y[:100])
    np.testing.assert_array_equal(model.familiarity(rows), without.familiarity(rows))
    np.testing.assert_allclose(model.predict_proba(rows), without.predict_proba(rows), atol=1e-3)
    steps = make_pipeline(StandardScaler(), linear())
    heavy = NoveltyAwareClassifier(steps).fit(rows, y, sample_weight=weight)
    assert heavy.familiarity(rows[100:]).max() < 0.02
    with pytest.warns(UserWarning, match="takes no sample_weight"):
        NoveltyAwareClassifier(KNeighborsClassifier()).fit(rows, y, sample_weight=weight)


def test_a_pipeline_passes_familiarity_on():
    steps = [("scale", StandardScaler()), ("model", NoveltyAwareClassifier(linear()))]
    model = CautiousPipeline(steps).fit(X, Y)
    assert model.familiarity(FAR)[0] == pytest.approx(1 / 151)
    assert model.predict_bounds(FAR).width[0].min() > 0.6
    plain = CautiousPipeline([("scale", StandardScaler()), ("model", linear())]).fit(X, Y)
    assert not hasattr(plain, "familiarity")


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"estimator": LinearSVC()}, NotSupportedError, "CalibratedClassifier\\(LinearSVC"),
        ({"detector": KMeans()}, TypeError, "detector must have score_samples"),
        ({"detector": LocalOutlierFactor()}, TypeError, "novelty=True"),
        ({"rate": 2.0}, ValueError, "'rate' parameter"),
        ({"cv": "all"}, ValueError, "'cv' parameter"),
    ],
)
def test_what_cannot_work_is_refused(settings, error, message):
    with pytest.raises(error, match=message):
        NoveltyAwareClassifier(**{"estimator": linear(), **settings}).fit(X, Y)


def test_conformal_sets_grow_for_unfamiliar_rows():
    rows, y = cloud(300)
    model = NoveltyAwareClassifier(ConformalClassifier(linear()), rate=0.05).fit(rows, y)
    new = np.concatenate([cloud(100, seed=1)[0], np.array([[3.0, 0, 60.0]])])
    inside, u = model.estimator_.predict_contour(new), model.familiarity(new)
    kept = np.minimum(1, u / 0.05)[:, None]
    contour = model.predict_contour(new)
    np.testing.assert_allclose(contour, 1 - kept * (1 - inside), rtol=1e-12)
    for coverage in (0.5, 0.9):
        sets = model.predict_set(new, coverage=coverage)
        plain = model.estimator_.predict_set(new, coverage=coverage)
        assert (sets >= plain).all()
        np.testing.assert_array_equal(sets[u >= 0.05], plain[u >= 0.05])
        assert sets[-1].all()
    np.testing.assert_array_equal(model.predict_set(new), model.predict_set(new, coverage=0.9))
    assert plain[-1].sum() == 1
    by_rule = model.predict_set(new, "maximality")
    assert by_rule[-1].all()
    with pytest.raises(ValueError, match="Pass coverage alone"):
        model.predict_set(new, "maximality", coverage=0.9)
    bounds, proba = model.predict_bounds(new), model.predict_proba(new)
    assert (bounds.lower <= proba + 1e-9).all()
    assert (proba <= bounds.upper + 1e-9).all()
    np.testing.assert_allclose(
        model.predict_mass(new).bounds().upper,
        1 - kept * (1 - model.estimator_.predict_mass(new).bounds().upper),
        atol=1e-12,
    )


def test_coverage_without_p_values_is_refused():
    model = NoveltyAwareClassifier(linear()).fit(X, Y)
    with pytest.raises(NotSupportedError, match="ConformalClassifier"):
        model.predict_set(X[:2], coverage=0.9)
    assert not hasattr(model, "predict_contour")


def test_a_detector_that_gives_nan_is_refused():
    class Broken(KernelDensity):
        def score_samples(self, X):
            return np.full(len(X), np.nan)

    with pytest.raises(ValueError, match="score_samples gives nan in rows 0, 1"):
        NoveltyAwareClassifier(linear(), detector=Broken()).fit(X, Y)


def test_calibrated_bounds_of_two_classes_widen():
    rows, y = cloud(300)
    model = NoveltyAwareClassifier(
        CalibratedClassifier(linear(), EvidentialLogisticCalibrator())
    ).fit(rows, y)
    near, far = model.predict_bounds([[0.5, 0, 0]]), model.predict_bounds([[0.5, 0, 60.0]])
    assert far.width.min() > 0.8
    assert near.width.max() < 0.3
    assert model.predict_mass([[0.5, 0, 60.0]]).bounds().width.min() > 0.8
