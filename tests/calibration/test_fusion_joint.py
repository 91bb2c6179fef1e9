"""Members calibrated together: fusion does to classifiers what can be done to scores by hand."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    GridSearchCV,
    ShuffleSplit,
    StratifiedKFold,
    StratifiedShuffleSplit,
    cross_val_predict,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from dubito.belief import conflict
from dubito.calibration import (
    CalibratedClassifier,
    CalibrationInputError,
    EvidentialFusion,
    EvidentialJointCalibrator,
    EvidentialLogisticCalibrator,
    TemperatureCalibrator,
)

BINARY = load_breast_cancer(return_X_y=True)
X, y = StandardScaler().fit_transform(BINARY[0])[:300, :10], BINARY[1][:300]
X3, y3 = load_wine(return_X_y=True)
X3 = StandardScaler().fit_transform(X3)
TRAIN, REST = np.arange(0, 300, 2), np.arange(1, 300, 2)


def pair():
    return [("svm", LinearSVC()), ("bayes", GaussianNB())]


def light(*kinds, classes=None):
    return EvidentialJointCalibrator(ridge="auto", input=list(kinds), classes=classes)


def assert_same_answers(fusion, calibrator, rows, scores):
    np.testing.assert_allclose(
        fusion.predict_proba(rows), calibrator.predict_proba(scores), atol=1e-9
    )
    ours, theirs = fusion.predict_bounds(rows), calibrator.predict_bounds(scores)
    np.testing.assert_allclose(ours.lower, theirs.lower, atol=1e-7)
    np.testing.assert_allclose(ours.upper, theirs.upper, atol=1e-7)


def in_columns(margin):
    return np.column_stack([-margin / 2, margin / 2])


class Spy(GaussianNB):
    """Notes which rows it is trained on and predicts for; the first feature is the row's number."""

    def __init__(self, name="spy", var_smoothing=1e-9):
        super().__init__(var_smoothing=var_smoothing)
        self.name = name

    def fit(self, X, y, sample_weight=None):
        SEEN.append((self.name, "trained", X[:, 0].astype(int).tolist()))
        return super().fit(X, y, sample_weight)

    def predict_proba(self, X):
        SEEN.append((self.name, "asked", X[:, 0].astype(int).tolist()))
        return super().predict_proba(X)


SEEN = []


@pytest.fixture
def numbered():
    SEEN.clear()
    return np.column_stack([np.arange(len(X)), X])


def seen(name, what):
    return [rows for member, did, rows in SEEN if (member, did) == (name, what)]


def test_two_classes_by_hand():
    folds = StratifiedKFold(4)
    members = [("svm", SVC()), ("logistic", LogisticRegression())]
    fusion = EvidentialFusion(members, cv=folds).fit(X, y)
    held_out = [
        cross_val_predict(m, X, y, cv=folds, method="decision_function") for _, m in members
    ]
    by_hand = light("margin", "margin").fit(np.column_stack(held_out), y)
    whole = np.column_stack([m.fit(X, y).decision_function(X) for _, m in members])
    np.testing.assert_allclose(fusion.calibrator_.slope_, by_hand.slope_, rtol=1e-6)
    assert_same_answers(fusion, by_hand, X, whole)
    masses, bounds = fusion.predict_mass(X), fusion.predict_bounds(X)
    np.testing.assert_allclose(masses.bounds().lower, bounds.lower, atol=1e-12)


def test_margins_and_probabilities_by_hand():
    folds = list(ShuffleSplit(2, test_size=0.4, random_state=0).split(X))
    fusion = EvidentialFusion(pair(), cv=iter(folds)).fit(X, y)
    tables = []
    for train, test in folds:
        svm, bayes = LinearSVC().fit(X[train], y[train]), GaussianNB().fit(X[train], y[train])
        columns = in_columns(svm.decision_function(X[test])), bayes.predict_log_proba(X[test])
        tables.append(np.stack(columns, axis=1))
    truth = np.concatenate([y[test] for _, test in folds])
    by_hand = light("margin", "log_proba").fit(np.concatenate(tables), truth)
    assert fusion.calibrator_.input == ["margin", "log_proba"]
    svm, bayes = LinearSVC().fit(X, y), GaussianNB().fit(X, y)
    whole = np.stack([in_columns(svm.decision_function(X)), bayes.predict_log_proba(X)], axis=1)
    assert_same_answers(fusion, by_hand, X, whole)


def test_three_classes_by_hand():
    words = np.array(["barolo", "grignolino", "barbera"])[y3]
    calibrator = EvidentialJointCalibrator(ridge=0.5)
    fusion = EvidentialFusion(pair(), calibrator=calibrator, cv=3).fit(X3, words)
    methods = ["decision_function", "predict_log_proba"]
    held_out, whole = [], []
    for (_, member), method in zip(pair(), methods, strict=True):
        held_out.append(cross_val_predict(member, X3, words, cv=StratifiedKFold(3), method=method))
        whole.append(getattr(member.fit(X3, words), method)(X3))
    by_hand = EvidentialJointCalibrator(ridge=0.5, input=["margin", "log_proba"])
    by_hand.fit(np.stack(held_out, axis=1), words)
    assert_same_answers(fusion, by_hand, X3, np.stack(whole, axis=1))
    assert set(fusion.predict(X3)) == set(words)
    assert not hasattr(fusion, "predict_mass")
    assert calibrator.classes is None


def test_fitted_models_are_left_as_they_are_and_all_rows_calibrate():
    models = [SVC().fit(X[TRAIN], y[TRAIN]), LogisticRegression().fit(X[TRAIN, :3], y[TRAIN])]
    frozen = [
        ("svm", FrozenEstimator(models[0])),
        ("few", FrozenEstimator(models[1]), slice(0, 3)),
    ]
    fusion = EvidentialFusion(frozen).fit(X[REST], y[REST])

    def scores(rows):
        given = models[0].decision_function(rows), models[1].decision_function(rows[:, :3])
        return np.column_stack(given)

    assert_same_answers(
        fusion, light("margin", "margin").fit(scores(X[REST]), y[REST]), X, scores(X)
    )
    assert fusion.members_[0].calibrated_classifiers_[0].estimator.estimator is models[0]
    parted = EvidentialFusion(frozen, cv="disjoint").fit(X[REST], y[REST])
    np.testing.assert_array_equal(parted.predict_proba(X), fusion.predict_proba(X))


def test_disjoint_parts_calibrate_on_rows_outside_all_training_rows(numbered):
    names = ["a", "b", "c"]
    spies = [(name, Spy(name)) for name in names]
    fusion = EvidentialFusion(spies, cv="disjoint", random_state=3).fit(numbered, y)
    trained = [set(rows) for name in names for rows in seen(name, "trained")]
    (asked,) = seen("a", "asked")
    assert len(trained) == 3
    assert seen("b", "asked") == seen("c", "asked") == [asked]
    assert len(set(asked)) == len(asked)
    assert sorted([*asked, *(row for rows in trained for row in rows)]) == list(range(len(X)))
    assert 0.45 * len(X) < len(asked) < 0.55 * len(X)

    scores = np.stack([m._scores_of_single_pair(numbered[asked]) for m in fusion.members_], axis=1)
    by_hand = light("proba", "proba", "proba").fit(scores, y[asked])
    np.testing.assert_allclose(fusion.calibrator_.slope_, by_hand.slope_, rtol=1e-9)


def test_folds_never_score_what_they_train_on_and_serve_all_members(numbered):
    names = ["a", "b"]
    folds = StratifiedShuffleSplit(3, test_size=0.3)  # draws other folds in each call
    EvidentialFusion([(name, Spy(name)) for name in names], cv=folds).fit(numbered, y)
    for name in names:
        *parts, whole = seen(name, "trained")
        assert sorted(whole) == list(range(len(X)))
        for train, test in zip(parts, seen(name, "asked"), strict=True):
            assert not set(train) & set(test)
    assert seen("a", "trained") == seen("b", "trained")


@pytest.mark.parametrize("cv", [3, "disjoint"])
def test_frozen_members_among_others_score_the_same_rows(numbered, cv):
    model = Spy("fitted").fit(numbered, y)
    mixed = [("fitted", FrozenEstimator(model)), ("a", Spy("a")), ("b", Spy("b"))]
    EvidentialFusion(mixed, cv=cv).fit(numbered, y)
    asked = [row for rows in seen("a", "asked") for row in rows]
    assert seen("fitted", "asked") == [asked]
    assert len(asked) == (len(X) if cv == 3 else len(X) // 2)
    assert len(seen("fitted", "trained")) == 1


def test_rows_of_weight_zero_take_no_part(numbered):
    weight = np.where(np.arange(len(X)) % 5, 1.0, 0.0)
    for cv in (3, "disjoint"):
        EvidentialFusion([("a", Spy("a")), ("b", Spy("b"))], cv=cv).fit(numbered, y, weight)
    assert all(row % 5 for _, _, rows in SEEN for row in rows)


def test_weights_are_repeated_rows():
    models = [SVC().fit(X[TRAIN], y[TRAIN]), GaussianNB().fit(X[TRAIN], y[TRAIN])]
    frozen = [(type(m).__name__, FrozenEstimator(m)) for m in models]
    times = np.resize([1, 0, 2, 3], len(REST))
    weighted = EvidentialFusion(frozen).fit(X[REST], y[REST], sample_weight=times)
    rows = np.repeat(REST, times)
    repeated = EvidentialFusion(frozen).fit(X[rows], y[rows])
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-9)
    np.testing.assert_allclose(
        weighted.predict_bounds(X).lower, repeated.predict_bounds(X).lower, atol=1e-7
    )


def test_weights_reach_the_members_that_take_them():
    weight = np.resize([0.5, 1.0, 2.0], len(y))
    fusion = EvidentialFusion([("logistic", LogisticRegression()), *pair()]).fit(X, y, weight)
    member = fusion.members_[0].calibrated_classifiers_[0].estimator
    np.testing.assert_allclose(member.coef_, LogisticRegression().fit(X, y, weight).coef_)


@pytest.mark.parametrize("model", [LinearSVC(), GaussianNB()], ids=["margin", "proba"])
def test_one_member_is_a_calibrated_classifier(model):
    calibrator = EvidentialJointCalibrator()
    fusion = EvidentialFusion([("only", model)], calibrator=calibrator).fit(X, y)
    alone = CalibratedClassifier(model, calibrator).fit(X, y)
    np.testing.assert_allclose(fusion.predict_proba(X), alone.predict_proba(X), atol=1e-12)
    np.testing.assert_allclose(
        fusion.predict_bounds(X).upper, alone.predict_bounds(X).upper, atol=1e-9
    )
    np.testing.assert_array_equal(fusion.members_[0].predict_proba(X), alone.predict_proba(X))
    np.testing.assert_allclose(fusion.conflict(X), 0, atol=1e-12)


@pytest.mark.parametrize("cv", [5, "disjoint"])
def test_conflict_is_that_of_members_calibrated_alone(cv):
    fusion = EvidentialFusion(pair(), cv=cv, random_state=0).fit(X, y)
    kappa = conflict(*(member.predict_mass(X) for member in fusion.members_))
    np.testing.assert_allclose(fusion.conflict(X), kappa, atol=1e-9)
    margins = fusion.members_[0]._scores_of_single_pair(X)
    alone = fusion.members_[0].calibrated_classifiers_[0].calibrator
    np.testing.assert_array_equal(fusion.members_[0].predict_proba(X), alone.predict_proba(margins))


def test_members_calibrated_alone_are_what_they_would_be_without_the_others():
    fusion = EvidentialFusion(pair()).fit(X, y)
    for (_, model), member in zip(pair(), fusion.members_, strict=True):
        alone = CalibratedClassifier(model, EvidentialJointCalibrator(ridge="auto")).fit(X, y)
        np.testing.assert_array_equal(member.predict_proba(X), alone.predict_proba(X))
        np.testing.assert_array_equal(
            clone(member).fit(X, y).predict_proba(X), alone.predict_proba(X)
        )


def test_members_without_classifiers_bring_scores():
    models = [LinearSVC().fit(X3, y3), LogisticRegression(C=0.01).fit(X3, y3)]
    scores = np.hstack([m.decision_function(X3) for m in models])
    bare = EvidentialFusion([("a", None, slice(0, 3)), ("b", None, [3, 4, 5])]).fit(scores, y3)
    frozen = [(type(m).__name__, FrozenEstimator(m)) for m in models]
    fusion = EvidentialFusion(frozen).fit(X3, y3)
    np.testing.assert_allclose(bare.predict_proba(scores), fusion.predict_proba(X3), atol=1e-12)
    np.testing.assert_allclose(bare.conflict(scores), fusion.conflict(X3), atol=1e-12)

    shares = np.column_stack([m.predict_proba(X)[:, 1] for m in (GaussianNB().fit(X, y),) * 2])
    calibrator = EvidentialJointCalibrator(input="proba")
    bare = EvidentialFusion([("a", None, 0), ("b", None, 1)], calibrator=calibrator)
    bare.fit(shares, y)
    plain = EvidentialJointCalibrator(input="proba").fit(shares, y)
    np.testing.assert_allclose(bare.predict_proba(shares), plain.predict_proba(shares), atol=1e-9)
    with pytest.raises(CalibrationInputError, match="3 columns for 2 classes"):
        EvidentialFusion([("a", None, [0, 1, 2])]).fit(X, y)


def test_a_calibrated_member_is_a_classifier_with_probabilities():
    calibrated = CalibratedClassifier(LinearSVC(), TemperatureCalibrator(), cv=3)
    fusion = EvidentialFusion([("calibrated", calibrated), ("bayes", GaussianNB())]).fit(X, y)
    assert fusion.calibrator_.input == ["proba", "log_proba"]
    inner = fusion.members_[0].calibrated_classifiers_[0].estimator
    np.testing.assert_array_equal(
        inner.predict_proba(X), clone(calibrated).fit(X, y).predict_proba(X)
    )
    assert fusion.score(X, y) > 0.9


def test_a_calibrator_with_probability_input_gets_probabilities():
    members = [("logistic", LogisticRegression()), ("few", LogisticRegression(), [0, 1])]
    for input, asked in (
        ("logits", ["logits", "logits"]),
        ("proba", ["proba", "proba"]),
        (["proba", "margin"], ["proba", "logits"]),
    ):
        calibrator = EvidentialJointCalibrator(targets="smoothed", input=input)
        fusion = EvidentialFusion(members, calibrator=calibrator, cv=3).fit(X, y)
        assert fusion.calibrator_.input == asked
        assert fusion.calibrator_.targets == "smoothed"
        assert calibrator.input == input
        members_ = fusion.members_
        assert [m.response_method_ == "predict_proba" for m in members_] == [
            kind == "proba" for kind in asked
        ]
    with pytest.raises(ValueError, match="one for each of the 2 classifiers"):
        EvidentialFusion(members, calibrator=light("proba")).fit(X, y)


@pytest.mark.parametrize("member", [LinearSVC(), GaussianNB()], ids=["margin", "proba"])
def test_a_class_missing_from_a_fold(member):
    rows = np.flatnonzero((y3 < 2) | (np.arange(len(y3)) > len(y3) - 4))
    few, labels = X3[rows], y3[rows]
    folds = [
        (np.flatnonzero(labels < 2)[::2], np.r_[1 : len(rows) : 2]),
        (np.arange(len(rows)), np.r_[0 : len(rows) : 2]),
    ]
    fusion = EvidentialFusion([("a", member), ("b", LogisticRegression())], cv=folds)
    fusion.fit(few, labels)
    bounds = fusion.predict_bounds(X3)
    assert bounds.upper.shape == (len(X3), 3)
    assert np.isfinite(bounds.upper).all()
    assert (bounds.lower <= fusion.predict_proba(X3) + 1e-7).all()


def accuracies(members, *, cv, n_splits):
    """Return mean accuracies on breast cancer: joint, independent, and of each member."""
    data, labels = BINARY
    rates = []
    for seed in range(n_splits):
        order = np.random.default_rng(seed).permutation(len(labels))
        train, test = order[:300], order[300:]
        joint = EvidentialFusion(members, cv=cv, random_state=seed).fit(data[train], labels[train])
        other = clone(joint).set_params(method="independent").fit(data[train], labels[train])
        fused = [fusion.score(data[test], labels[test]) for fusion in (joint, other)]
        inputs = joint._member_rows(data[test])
        rates.append([*fused, *(member.score(own, labels[test]) for member, own in inputs)])
    together, apart, *alone = np.mean(rates, axis=0)
    return together, apart, alone


def test_three_models_on_parts_of_the_rows_beat_the_best_of_them():
    models = SVC(), GaussianNB(), KNeighborsClassifier()
    members = [(type(m).__name__, make_pipeline(StandardScaler(), m)) for m in models]
    together, apart, alone = accuracies(members, cv="disjoint", n_splits=10)
    assert together > max(alone)
    assert together > apart


@pytest.mark.slow
def test_views_of_which_one_suffices_lose_little():
    # Means, standard errors and worst values of the same cells: the worst values almost
    # suffice. Over 30 splits joint calibration had 0.9726, the worst alone 0.9782, independent
    # calibration 0.9607.
    model = make_pipeline(StandardScaler(), LogisticRegression())
    views = [(f"view {i}", model, slice(10 * i, 10 * i + 10)) for i in range(3)]
    together, apart, alone = accuracies(views, cv=5, n_splits=10)
    assert together > max(alone) - 0.01
    assert together > apart


def test_a_grid_over_members_and_methods():
    fusion = EvidentialFusion([("svm", LinearSVC()), ("bayes", GaussianNB())], cv=2)
    grid = {"svm__C": [1e-4, 1.0], "method": ["joint", "independent"]}
    search = GridSearchCV(fusion, grid, cv=2, scoring="neg_log_loss").fit(X, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.best_estimator_.get_params()["svm__C"] == search.best_params_["svm__C"]
    deeper = clone(fusion).set_params(calibrator=EvidentialJointCalibrator())
    assert deeper.set_params(calibrator__ridge=2.0).fit(X, y).calibrator_.ridge == 2.0


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"calibrator": TemperatureCalibrator()}, TypeError, 'Use method="independent"'),
        ({"calibrator": EvidentialLogisticCalibrator()}, TypeError, "got EvidentialLogistic"),
        ({"rule": "dempster"}, ValueError, r"rule='dempster' .* method=\"independent\""),
        ({"discount": 0.1}, ValueError, r"discount=0\.1 .* method=\"independent\""),
        ({"method": "both"}, ValueError, "'method' parameter of EvidentialFusion"),
        ({"cv": []}, ValueError, "cv gives no folds"),
    ],
)
def test_what_does_not_go_together_is_refused(options, error, message):
    with pytest.raises(error, match=message):
        EvidentialFusion(pair(), **options).fit(X, y)


def test_a_fit_by_another_method_forgets_the_last():
    fusion = EvidentialFusion(pair(), cv=3).fit(X, y)
    assert hasattr(fusion, "calibrator_")
    fusion.set_params(method="independent").fit(X, y)
    assert not hasattr(fusion, "calibrator_")
    fresh = EvidentialFusion(pair(), method="independent", cv=3).fit(X, y)
    np.testing.assert_array_equal(fusion.predict_proba(X), fresh.predict_proba(X))
