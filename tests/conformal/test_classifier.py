"""Conformal sets around any classifier: what is compared to what."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, ShuffleSplit, StratifiedKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from dubito import NotSupportedError
from dubito.calibration import (
    CalibratedClassifier,
    EvidentialMultinomialCalibrator,
    PlattCalibrator,
)
from dubito.conformal import ConformalClassifier, SmallCalibrationWarning
from dubito.evidence import EvidentialClassifier
from dubito.metrics import coverage

X, NUMBERS = load_iris(return_X_y=True)
X = X[:, :2]  # two features leave doubt
Y = np.array(["setosa", "versicolor", "virginica"])[NUMBERS]
ROWS = np.random.default_rng(0).permutation(150)
TRAIN, HELD, NEW = ROWS[:60], ROWS[60:110], ROWS[110:]


def log_margin(model, rows, classes=None):
    with np.errstate(divide="ignore"):
        u = np.log(model.predict_proba(rows))
    if classes is not None:
        full = np.full((len(u), len(classes)), -np.inf)
        full[:, np.searchsorted(classes, model.classes_)] = u
        u = full
    k = u.shape[1]
    return np.array([[np.delete(row, j).max() - row[j] for j in range(k)] for row in u])


def own(table, y, classes):
    return table[np.arange(len(y)), np.searchsorted(classes, y)]


def test_a_frozen_model_is_ranked_among_all_rows():
    model = GaussianNB().fit(X[TRAIN], Y[TRAIN])
    clf = ConformalClassifier(FrozenEstimator(model)).fit(X[HELD], Y[HELD])
    a = own(log_margin(model, X[HELD]), Y[HELD], model.classes_)
    query = log_margin(model, X[NEW])
    wanted = (1 + (a[:, None, None] >= query[None] - 1e-12).sum(axis=0)) / (len(a) + 1)
    np.testing.assert_allclose(clf.predict_contour(X[NEW]), wanted)
    np.testing.assert_array_equal(clf.predict(X[NEW]), model.predict(X[NEW]))
    np.testing.assert_array_equal(clf.predict_proba(X[NEW]), model.predict_proba(X[NEW]))
    assert clf.estimator_.estimator is model
    assert clf.n_calibration_.tolist() == [50, 50, 50]


def test_class_conditional_values_rank_within_the_class():
    model = GaussianNB().fit(X[TRAIN], Y[TRAIN])
    few = HELD[Y[HELD] != "versicolor"]
    clf = ConformalClassifier(FrozenEstimator(model), class_conditional=True)
    clf.fit(X[few], Y[few])
    a, query = own(log_margin(model, X[few]), Y[few], model.classes_), log_margin(model, X[NEW])
    pi = clf.predict_contour(X[NEW])
    for k in (0, 2):
        mine = a[Y[few] == model.classes_[k]]
        wanted = (1 + (mine[:, None] >= query[:, k] - 1e-12).sum(axis=0)) / (len(mine) + 1)
        np.testing.assert_allclose(pi[:, k], wanted)
    assert (pi[:, 1] == 1).all()  # no row of that class: its p-value is 1
    with pytest.warns(SmallCalibrationWarning, match=r"of each class.*versicolor \(0\)"):
        sets = clf.predict_set(X[NEW])
    assert sets[:, 1].all()
    assert not sets[:, 0].all()


def test_cross_values_compare_each_fold_by_its_own_model():
    cv = KFold(4, shuffle=True, random_state=1)
    clf = ConformalClassifier(GaussianNB(), cv=cv).fit(X[ROWS[:110]], Y[ROWS[:110]])
    rows, y = X[ROWS[:110]], Y[ROWS[:110]]
    count = np.zeros((len(NEW), 3))
    for train, test in cv.split(rows):
        model = GaussianNB().fit(rows[train], y[train])
        a = own(log_margin(model, rows[test]), y[test], model.classes_)
        count += (a[:, None, None] >= log_margin(model, X[NEW])[None] - 1e-12).sum(axis=0)
    np.testing.assert_allclose(clf.predict_contour(X[NEW]), (1 + count) / 111)
    whole = GaussianNB().fit(rows, y)
    np.testing.assert_array_equal(clf.predict_proba(X[NEW]), whole.predict_proba(X[NEW]))
    assert len(clf.folds_) == 4


def test_a_split_is_a_frozen_model_and_the_rest():
    cv = ShuffleSplit(1, test_size=0.4, random_state=3)
    ((train, test),) = cv.split(X)
    split = ConformalClassifier(GaussianNB(), cv=cv).fit(X, Y)
    model = FrozenEstimator(GaussianNB().fit(X[train], Y[train]))
    frozen = ConformalClassifier(model).fit(X[test], Y[test])
    np.testing.assert_array_equal(split.predict_contour(X), frozen.predict_contour(X))
    np.testing.assert_array_equal(split.predict_proba(X), frozen.predict_proba(X))
    fraction = ConformalClassifier(GaussianNB(), cv=0.4, random_state=0).fit(X, Y)
    assert fraction.n_calibration_[0] == 60
    again = clone(fraction).fit(X, Y)
    np.testing.assert_array_equal(again.predict_contour(X), fraction.predict_contour(X))


def test_a_class_that_the_model_of_a_split_has_not_seen():
    train = np.flatnonzero(Y != "virginica")[::2]
    test = np.setdiff1d(np.arange(150), train)
    clf = ConformalClassifier(GaussianNB(), cv=[(train, test)]).fit(X, Y)
    assert clf.classes_.tolist() == ["setosa", "versicolor", "virginica"]
    assert clf.predict_proba(X)[:, 2].tolist() == [0.0] * 150
    assert coverage(Y[test], clf.predict_set(X[test]), classes=clf.classes_) >= 0.9
    # Half of the calibration rows are of this class, unknown to the model: it stays possible.
    assert clf.predict_set(X).all(axis=0)[2]


def test_full_values_are_those_of_fitting_anew():
    rows, y = X[ROWS[:25]], Y[ROWS[:25]]
    classes = np.unique(Y)
    for conditional in (False, True):
        clf = ConformalClassifier(GaussianNB(), cv="full", class_conditional=conditional)
        pi = clf.fit(rows, y).predict_contour(X[NEW[:6]])
        for i, row in enumerate(X[NEW[:6]]):
            for k, label in enumerate(classes):
                more, labels = np.vstack([rows, row]), np.append(y, label)
                model = GaussianNB().fit(more, labels)
                a = own(log_margin(model, more), labels, classes)
                alike = labels == label if conditional else labels == labels  # noqa: PLR0124
                wanted = (a[alike] >= a[-1] - 1e-12).mean()
                assert pi[i, k] == pytest.approx(wanted)
        proba = GaussianNB().fit(rows, y).predict_proba(X[NEW])
        np.testing.assert_array_equal(clf.predict_proba(X[NEW]), proba)


def test_full_refuses_too_many_refits_and_names_their_number():
    clf = ConformalClassifier(GaussianNB(), cv="full", max_refits=20).fit(X, Y)
    assert clf.predict_contour(X[:6]).shape == (6, 3)
    with pytest.raises(NotSupportedError, match=r"7 rows and 3 classes: 21 fits of about .* s in"):
        clf.predict_set(X[:7])


def test_calibrators_take_scores():
    model = LinearSVC().fit(X[TRAIN], Y[TRAIN])
    scores = model.decision_function(X)
    for cv in (3, 0.3, "full"):
        clf = ConformalClassifier(EvidentialMultinomialCalibrator(), cv=cv, random_state=0)
        clf.fit(scores[HELD], Y[HELD])
        assert coverage(Y[NEW], clf.predict_set(scores[NEW]), classes=clf.classes_) > 0.8
    binary = ConformalClassifier(PlattCalibrator(), cv=3).fit(scores[HELD, 0], Y[HELD] == "setosa")
    assert binary.predict_contour(scores[NEW, 0]).shape == (40, 2)
    nested = CalibratedClassifier(FrozenEstimator(model), PlattCalibrator())
    whole = ConformalClassifier(nested, cv="full").fit(X[HELD], Y[HELD])
    assert whole.predict_contour(X[NEW[:2]]).shape == (2, 3)


def test_a_calibrator_gets_the_classes_that_a_fold_lacks():
    rng = np.random.default_rng(0)
    y = np.array(["a", "b", "c"])[np.r_[np.zeros(20, int), np.ones(20, int), 2]]
    scores = rng.normal(size=(41, 3)) + 2 * (y[:, None] == np.array(["a", "b", "c"]))
    clf = ConformalClassifier(EvidentialMultinomialCalibrator(), cv=KFold(3)).fit(scores, y)
    assert clf.predict_contour(scores).shape == (41, 3)


@pytest.mark.parametrize("score", ["margin", "probability", "cumulative", "plausibility"])
@pytest.mark.parametrize("conditional", [False, True])
def test_bounds_hold_the_probability_and_masses_the_contour(score, conditional):
    inner = EvidentialClassifier(LogisticRegression())
    clf = ConformalClassifier(inner, score=score, class_conditional=conditional).fit(X, Y)
    bounds, proba = clf.predict_bounds(X), clf.predict_proba(X)
    assert (bounds.lower <= proba).all()
    assert (proba <= bounds.upper).all()
    pi = clf.predict_contour(X)
    top = pi == pi.max(axis=1, keepdims=True)
    np.testing.assert_allclose(clf.predict_mass(X).contour(), np.where(top, 1.0, pi), atol=1e-12)
    np.testing.assert_allclose(bounds.upper, np.maximum(np.where(top, 1.0, pi), proba))
    for rule in ("interval_dominance", "maximality", "e_admissibility", "set_utility"):
        assert clf.predict_set(X[:20], rule=rule).any(axis=1).all()
    sets = clf.predict_set(X, coverage=0.8)
    np.testing.assert_array_equal(
        sets, (pi > 0.2 + 1e-12) | (top & (pi <= 0.2 + 1e-12).all(1)[:, None])
    )
    np.testing.assert_array_equal(
        clf.predict_set(X, coverage=0.8, allow_empty=True), pi > 0.2 + 1e-12
    )


@pytest.mark.parametrize(
    "estimator",
    [
        LinearSVC(),
        SVC(),
        RandomForestClassifier(10, random_state=0),
        make_pipeline(StandardScaler(), LogisticRegression()),
        CalibratedClassifier(GaussianNB(), PlattCalibrator(), cv=3),
    ],
    ids=lambda e: type(e).__name__,
)
def test_any_classifier(estimator):
    for labels in (Y, NUMBERS == 2):
        clf = ConformalClassifier(estimator, cv=3).fit(X, labels)
        assert clf.predict_set(X).any(axis=1).all()
        assert hasattr(clf, "predict_proba") == hasattr(estimator, "predict_proba")
        assert clf.predict_bounds(X).lower.shape == (150, len(clf.classes_))
        assert clf.score(X, labels) == clf.estimator_.score(X, labels)


def test_order_of_labels_is_no_matter():
    swap = {"setosa": "z", "versicolor": "y", "virginica": "x"}
    other = np.array([swap[label] for label in Y])
    cv = [*StratifiedKFold(4).split(X, Y)]
    one = ConformalClassifier(GaussianNB(), cv=cv).fit(X, Y)
    two = ConformalClassifier(GaussianNB(), cv=cv).fit(X, other)
    np.testing.assert_allclose(one.predict_contour(X), two.predict_contour(X)[:, ::-1])


def test_weights_count_rows_and_the_new_one_by_the_largest():
    model = FrozenEstimator(GaussianNB().fit(X[TRAIN], Y[TRAIN]))
    plain = ConformalClassifier(model).fit(X[HELD], Y[HELD])
    even = ConformalClassifier(model).fit(X[HELD], Y[HELD], np.full(50, 0.25))
    np.testing.assert_allclose(even.predict_contour(X), plain.predict_contour(X))
    weight = np.random.default_rng(0).integers(0, 3, 50).astype(float)
    heavy = ConformalClassifier(model).fit(X[HELD], Y[HELD], weight)
    twice = np.repeat(HELD, weight.astype(int))
    copied = ConformalClassifier(model).fit(X[twice], Y[twice])
    n, w = len(twice), weight.max()
    wanted = (copied.predict_contour(X) * (n + 1) - 1 + w) / (n + w)
    np.testing.assert_allclose(heavy.predict_contour(X), wanted)
    absent = ConformalClassifier(model).fit(X[HELD], Y[HELD], (weight > 0).astype(float))
    left = ConformalClassifier(model).fit(X[HELD[weight > 0]], Y[HELD[weight > 0]])
    np.testing.assert_allclose(absent.predict_contour(X), left.predict_contour(X))
    for cv in (4, 0.3, "full"):
        clf = ConformalClassifier(GaussianNB(), cv=cv, random_state=0)
        assert clf.fit(X[HELD], Y[HELD], weight + 0.5).predict_contour(X[:4]).min() > 0
    unweighted = ConformalClassifier(make_pipeline(KNeighborsClassifier()))
    with pytest.warns(UserWarning, match="takes no sample_weight"):
        unweighted.fit(X, Y, np.ones(150))


def test_few_rows_mean_all_classes_and_a_warning():
    model = FrozenEstimator(GaussianNB().fit(X[TRAIN], Y[TRAIN]))
    for n, short in ((8, True), (9, False)):
        clf = ConformalClassifier(model).fit(X[HELD[:n]], Y[HELD[:n]])
        if short:
            with pytest.warns(SmallCalibrationWarning, match="needs 9 or more rows.*there are 8"):
                assert clf.predict_set(X, coverage=0.9).all()
        else:
            assert not clf.predict_set(X, coverage=0.9).all()


def test_randomised_sets_are_drawn_again_alike():
    clf = ConformalClassifier(
        GaussianNB(), score="cumulative", randomized=True, random_state=0
    ).fit(X, Y)
    np.testing.assert_array_equal(clf.predict_contour(X), clf.predict_contour(X))
    other = clone(clf).set_params(random_state=1).fit(X, Y)
    assert (other.predict_contour(X) != clf.predict_contour(X)).any()
    plain = clone(clf).set_params(randomized=False).fit(X, Y)
    assert (plain.predict_contour(X) != clf.predict_contour(X)).any()
    full = clone(clf).set_params(cv="full").fit(X[HELD], Y[HELD])
    assert full.predict_contour(X[:3]).shape == (3, 3)


def test_many_classes_are_ranked_in_parts(monkeypatch):
    digits, y = load_digits(return_X_y=True)
    clf = ConformalClassifier(GaussianNB(), cv=3, score="cumulative").fit(digits, y)
    whole, sets = clf.predict_contour(digits[:100]), clf.predict_set(digits[:100])
    monkeypatch.setattr("dubito.conformal._conformal_predictions._CHUNK_ENTRIES", 1000)
    np.testing.assert_array_equal(clf.predict_contour(digits[:100]), whole)
    np.testing.assert_array_equal(clf.predict_set(digits[:100]), sets)


def test_refusals_name_the_way_out():
    clf = ConformalClassifier(GaussianNB()).fit(X, Y)
    with pytest.raises(NotSupportedError, match=r"about labels.*predict_set\(X, coverage=0.9\)"):
        clf.predict_bounds(X, level=0.9)
    with pytest.raises(NotSupportedError, match="about labels"):
        clf.predict_set(X, level=0.9)
    with pytest.raises(ValueError, match=r"between 0 and 1.*For 90 % pass 0.9"):
        clf.predict_set(X, coverage=90)
    with pytest.raises(ValueError, match="both given"):
        clf.predict_set(X, "maximality", coverage=0.9)
    with pytest.raises(TypeError, match=r"got loss\. Conformal sets take coverage="):
        clf.predict_set(X, loss=1 - np.eye(3))
    with pytest.raises(NotSupportedError, match=r"upper bounds.*GaussianNB does not"):
        ConformalClassifier(GaussianNB(), score="plausibility").fit(X, Y)
    with pytest.raises(NotSupportedError, match='"margin", or calibrate it first'):
        ConformalClassifier(LinearSVC(), score="cumulative").fit(X, Y)
    with pytest.raises(ValueError, match='randomized=True is for score="cumulative"'):
        ConformalClassifier(GaussianNB(), randomized=True).fit(X, Y)
    with pytest.raises(ValueError, match="for each pair of classes"):
        ConformalClassifier(
            SVC(decision_function_shape="ovo"), response_method="decision_function"
        ).fit(X, Y)
    with pytest.raises(ValueError, match="labels that classes does not list: 'other'"):
        ConformalClassifier(FrozenEstimator(GaussianNB().fit(X, Y))).fit(X[:2], ["other"] * 2)
    with pytest.raises(ValueError, match="The 'score' parameter of ConformalClassifier must be"):
        ConformalClassifier(GaussianNB(), score="odd").fit(X, Y)
    with pytest.raises(ValueError, match="The 'cv' parameter"):
        ConformalClassifier(GaussianNB(), cv="half").fit(X, Y)
