"""`RejectClassifier`: labels, or a reject label where declining costs less."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.datasets import load_iris, make_classification
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

import dubito
from dubito import NotSupportedError
from dubito.calibration import CalibratedClassifier
from dubito.conformal import ConformalClassifier, NoveltyAwareClassifier
from dubito.decision import reject
from dubito.decision.risk import as_belief, pignistic_risk, risk_bounds
from dubito.discriminant import ImpreciseGaussianDiscriminant
from dubito.evidence import EvidentialClassifier
from dubito.metrics import evaluate
from dubito.pipeline import RejectClassifier, make_cautious_pipeline

X, Y = load_iris(return_X_y=True)
NAMES = load_iris().target_names[Y]
STRATEGIES = ("pignistic", "pessimistic", "optimistic", "probabilistic")
LOSS = np.array([[0.0, 3.0, 1.0], [1.0, 0.0, 6.0], [2.0, 1.0, 0.0]])
DECLINE = np.array([0.3, 0.5, 0.4])


def cautious():
    """A model with wide bounds, so that the strategies differ."""
    return ImpreciseGaussianDiscriminant(c=3)


def least_risk_acts(belief, loss, strategy):
    """The act of least risk by a loop; the first of those within 1e-9."""
    known = as_belief(belief)
    precise = strategy in {"pignistic", "probabilistic"}
    risks = pignistic_risk(known, loss) if precise else risk_bounds(known, loss)
    risk = risks.lower if strategy == "optimistic" else risks.upper
    return [int(np.flatnonzero(row <= row.min() + 1e-9)[0]) for row in risk]


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("form", ["cost", "loss", "loss with declining"])
def test_the_act_has_the_least_risk(strategy, form):
    declining = np.full(3, 0.25) if form == "cost" else DECLINE
    named = 1 - np.eye(3) if form == "cost" else LOSS
    if form == "loss":
        declining = np.full(3, 0.4)
    given = {
        "cost": {"cost": 0.25},
        "loss": {"loss": LOSS, "cost": 0.4},
        "loss with declining": {"loss": np.vstack([LOSS, DECLINE])},
    }[form]
    X, y = make_classification(
        300, 6, n_informative=4, n_classes=3, flip_y=0.2, class_sep=0.8, random_state=0
    )
    names = np.array(["a", "b", "c"])[y]
    cautious = ImpreciseGaussianDiscriminant(c=0.5, shrinkage=None)
    model = RejectClassifier(cautious, strategy=strategy, **given).fit(X, names)
    inner = model.estimator_
    belief = inner.predict_proba(X) if strategy == "probabilistic" else inner.predict_bounds(X)
    acts = least_risk_acts(belief, np.vstack([named, declining]), strategy)
    wanted = [None if act == 3 else inner.classes_[act] for act in acts]
    assert model.predict(X).tolist() == wanted
    assert 0 < sum(label is None for label in wanted) < len(X)
    costs = np.vstack([named, declining])[acts, y]
    assert model.decision_cost(X, names) == pytest.approx(costs.mean())
    weight = np.arange(1.0, 301.0)
    weighted = model.decision_cost(X, names, sample_weight=weight)
    assert weighted == pytest.approx(np.average(costs, weights=weight))
    assert model.score(X, names) == -model.decision_cost(X, names)


def test_the_declined_rows_are_those_of_the_reject_rule():
    model = RejectClassifier(cautious(), cost=0.1).fit(X, Y)
    declined = np.equal(model.predict(X), None)
    np.testing.assert_array_equal(declined, reject(model.predict_bounds(X), 0.1))


def test_costs_from_never_to_always():
    never = RejectClassifier(GaussianNB(), cost=1).fit(X, Y)
    np.testing.assert_array_equal(never.predict(X), GaussianNB().fit(X, Y).predict(X))
    rows, labels = make_classification(200, flip_y=0.3, random_state=0)
    always = RejectClassifier(LogisticRegression(), cost=0).fit(rows, labels)
    assert set(always.predict(rows)) == {None}
    assert always.decision_cost(rows, labels) == 0


@pytest.mark.parametrize(
    ("labels", "reject_label", "kind"),
    [
        (Y, None, "O"),
        (Y, -1, "i"),
        (Y, "declined", "O"),
        (NAMES, "a person decides", "U"),
        (NAMES, -1, "O"),
        (NAMES, ("declined", 1), "O"),
    ],
)
def test_the_reject_label_and_the_type_of_the_result(labels, reject_label, kind):
    model = RejectClassifier(cautious(), cost=0.1, reject_label=reject_label).fit(X, labels)
    predicted = model.predict(X)
    assert predicted.dtype.kind == kind
    declined = reject(model.predict_bounds(X), 0.1)
    assert [p == reject_label for p in predicted.tolist()] == declined.tolist()
    assert np.array_equal(predicted[~declined], model.estimator_.predict(X)[~declined])


def test_models_without_bounds_decide_by_probabilities():
    model = RejectClassifier(GaussianNB(), cost=0.05).fit(X, Y)
    declined = model.predict_proba(X).max(axis=1) < 0.95
    np.testing.assert_array_equal(np.equal(model.predict(X), None), declined)
    for strategy in STRATEGIES:
        other = clone(model).set_params(strategy=strategy).fit(X, Y)
        np.testing.assert_array_equal(other.predict(X), model.predict(X))
    assert not hasattr(model, "predict_bounds")
    assert not hasattr(model, "predict_set")


def test_frozen_models_searches_pipelines_and_novelty():
    fitted = CalibratedClassifier(GaussianNB()).fit(X, Y)
    frozen = RejectClassifier(FrozenEstimator(fitted)).fit(X, Y)
    np.testing.assert_array_equal(frozen.predict_bounds(X).lower, fitted.predict_bounds(X).lower)
    pipeline = make_pipeline(StandardScaler(), cautious())
    search = GridSearchCV(pipeline, {"imprecisegaussiandiscriminant__c": [3]}, cv=2)
    inside = RejectClassifier(search, strategy="pessimistic").fit(X, Y)
    scaled = StandardScaler().fit_transform(X)
    by_hand = RejectClassifier(cautious(), strategy="pessimistic").fit(scaled, Y)
    np.testing.assert_array_equal(inside.predict(X), by_hand.predict(scaled))
    aware = RejectClassifier(
        NoveltyAwareClassifier(CalibratedClassifier(GaussianNB())), strategy="pessimistic"
    ).fit(X, Y)
    assert aware.predict(X[:1] + 100.0).tolist() == [None]


def test_other_methods_of_the_model_are_passed_on():
    aware = NoveltyAwareClassifier(FrozenEstimator(cautious().fit(X, Y))).fit(X, Y)
    model = RejectClassifier(FrozenEstimator(aware)).fit(X, Y)
    np.testing.assert_array_equal(model.familiarity(X), aware.familiarity(X))
    assert not hasattr(model, "explain")
    linear = EvidentialClassifier(LogisticRegression(max_iter=1000)).fit(X, Y)
    model = RejectClassifier(FrozenEstimator(linear)).fit(X, Y)
    assert model.explain(X[:1]).text() == linear.explain(X[:1]).text()
    np.testing.assert_array_equal(model.conflict(X), linear.conflict(X))
    scaled = make_pipeline(StandardScaler(), cautious())
    by_hand = cautious().fit(StandardScaler().fit_transform(X), Y)
    expected = by_hand.critical_c(StandardScaler().fit_transform(X))
    np.testing.assert_array_equal(RejectClassifier(scaled).fit(X, Y).critical_c(X), expected)


def test_bounds_of_models_inside_pipelines_and_searches_are_passed_on():
    scaled = StandardScaler().fit_transform(X)
    bounds = cautious().fit(scaled, Y).predict_bounds(scaled)
    pipeline = make_pipeline(StandardScaler(), cautious())
    search = GridSearchCV(pipeline, {"imprecisegaussiandiscriminant__c": [3]}, cv=2)
    for inner in (pipeline, search, RejectClassifier(pipeline), RejectClassifier(search)):
        model = RejectClassifier(inner, strategy="pessimistic").fit(X, Y)
        np.testing.assert_array_equal(model.predict_bounds(X).lower, bounds.lower)
        assert evaluate(model, X, Y)["mean_width"].value == pytest.approx(bounds.width.mean())
        declined = np.equal(model.predict(X), None)
        np.testing.assert_array_equal(declined, reject(bounds, 0.2, "pessimistic"))
        assert model.predict_set(X, level=None).shape == (150, 3)
    outer = make_cautious_pipeline(StandardScaler(), RejectClassifier(pipeline)).fit(X, Y)
    assert outer.decision_cost(X, Y) == RejectClassifier(pipeline).fit(X, Y).decision_cost(X, Y)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_loss_with_named_columns_is_read_by_name(library):
    frames = pytest.importorskip(library)
    plain = RejectClassifier(cautious(), loss=LOSS, cost=0.4).fit(X, NAMES)
    classes = plain.classes_.tolist()
    order = [2, 0, 1]
    columns = {classes[k]: LOSS[:, k].tolist() for k in order}
    named = clone(plain).set_params(loss=frames.DataFrame(columns)).fit(X, NAMES)
    np.testing.assert_array_equal(named.predict(X), plain.predict(X))
    wrong = frames.DataFrame({name.upper(): values for name, values in columns.items()})
    with pytest.raises(ValueError, match="name them after the classes, 'setosa'"):
        clone(plain).set_params(loss=wrong).fit(X, NAMES)
    if library == "pandas":
        acts = [*classes, "declined"]
        full = frames.DataFrame(np.vstack([LOSS, DECLINE]), index=acts, columns=classes)
        shuffled = full.loc[["declined", *(classes[k] for k in order)]]
        models = [clone(plain).set_params(loss=loss).fit(X, NAMES) for loss in (full, shuffled)]
        np.testing.assert_array_equal(models[0].predict(X), models[1].predict(X))


def test_numbers_of_classes_name_the_columns_and_rows_of_a_loss():
    plain = RejectClassifier(cautious(), loss=LOSS, cost=0.4).fit(X, Y)
    frame = pd.DataFrame(LOSS, index=[0, 1, 2], columns=[0, 1, 2])
    for rows, columns in (([1, 2, 0], [0, 1, 2]), ([2, 0, 1], [2, 1, 0])):
        named = clone(plain).set_params(loss=frame.loc[rows, columns]).fit(X, Y)
        np.testing.assert_array_equal(named.predict(X), plain.predict(X))
    later = Y + 1  # a frame without names is read by position
    unnamed = RejectClassifier(cautious(), loss=pd.DataFrame(LOSS), cost=0.4).fit(X, later)
    np.testing.assert_array_equal(unnamed.predict(X) == None, plain.predict(X) == None)  # noqa: E711
    for acts in ([0, 1, 7], [0, 1, 1]):
        with pytest.raises(ValueError, match="the rows of loss are 0, 1, "):
            clone(plain).set_params(loss=frame.set_axis(acts)).fit(X, Y)


def test_a_class_that_was_not_in_the_fit_is_an_error():
    model = RejectClassifier(LogisticRegression()).fit(X[:100], Y[:100])
    declined = model.predict(X[100:]) == None  # noqa: E711
    wanted = np.where(declined, 0.2, 1.0).sum() / 150
    seen = model.decision_cost(X[:100], Y[:100]) * 100 / 150
    assert model.decision_cost(X, Y) == pytest.approx(seen + wanted)
    with pytest.raises(ValueError, match="y has labels"):
        model.set_params(loss=1 - np.eye(2)).decision_cost(X, Y)
    with pytest.raises(ValueError, match="y has labels"):
        model.set_params(loss=None).decision_cost(X, NAMES)


def test_logarithms_of_models_that_have_probabilities_alone():
    model = RejectClassifier(KNeighborsClassifier()).fit(X, Y)
    with np.errstate(divide="ignore"):
        logarithms = np.log(model.predict_proba(X))
    np.testing.assert_array_equal(model.predict_log_proba(X), logarithms)
    pipeline = make_cautious_pipeline(StandardScaler(), KNeighborsClassifier()).fit(X, Y)
    np.testing.assert_array_equal(np.exp(pipeline.predict_log_proba(X)), pipeline.predict_proba(X))
    assert not hasattr(RejectClassifier(LinearSVC()), "predict_log_proba")
    assert not hasattr(make_cautious_pipeline(StandardScaler(), LinearSVC()), "predict_log_proba")


def test_labels_of_declined_rows_are_single_values():
    missing = RejectClassifier(cautious(), reject_label=pd.NA).fit(X, NAMES).predict(X)
    assert any(label is pd.NA for label in missing)
    with pytest.raises(TypeError, match=r"must be a single label.*got an object of type ndarray"):
        RejectClassifier(cautious(), reject_label=np.array([8, 9])).fit(X, Y)


def test_the_probabilistic_strategy_needs_probabilities():
    with pytest.raises(NotSupportedError, match="which ConformalClassifier has not"):
        RejectClassifier(ConformalClassifier(LinearSVC()), strategy="probabilistic").fit(X, Y)


def test_searches_look_for_the_cheapest_strategy():
    model = RejectClassifier(cautious(), cost=0.05)
    search = GridSearchCV(model, {"strategy": ["optimistic", "pessimistic"]}, cv=3).fit(X, Y)
    scores = search.cv_results_["mean_test_score"]
    assert search.best_score_ == scores.max() <= 0
    assert scores[0] != scores[1]


def test_errors_say_what_to_do():
    with pytest.raises(NotFittedError):
        RejectClassifier(GaussianNB()).predict(X)
    with pytest.raises(NotSupportedError, match=r"RejectClassifier\(CalibratedClassifier\(Linear"):
        RejectClassifier(LinearSVC()).fit(X, Y)
    with pytest.raises(ValueError, match=r"3 rows, one for naming each class, or 4"):
        RejectClassifier(GaussianNB(), loss=np.ones((2, 3))).fit(X, Y)
    with pytest.raises(ValueError, match="3 columns, one per class"):
        RejectClassifier(GaussianNB(), loss=np.ones((3, 2))).fit(X, Y)
    with pytest.raises(ValueError, match="'cost' parameter"):
        RejectClassifier(GaussianNB(), cost=-0.1).fit(X, Y)
    with pytest.raises(ValueError, match="'strategy' parameter"):
        RejectClassifier(GaussianNB(), strategy="brave").fit(X, Y)
    with pytest.raises(ValueError, match="reject_label=1 is one of the classes"):
        RejectClassifier(GaussianNB(), reject_label=1).fit(X, Y)
    with pytest.raises(TypeError, match="needs a classifier; KMeans"):
        RejectClassifier(KMeans(2, n_init=1)).fit(X, Y)
    with pytest.raises(ValueError, match="labels that classes does not list"):
        RejectClassifier(FrozenEstimator(GaussianNB().fit(X, NAMES))).fit(X, Y)
    with pytest.warns(UserWarning, match="takes no sample_weight, so the weights are ignored"):
        RejectClassifier(KNeighborsClassifier()).fit(X, Y, sample_weight=np.ones(150))
    model = RejectClassifier(GaussianNB()).fit(X, Y)
    with pytest.raises(ValueError, match="strategy must be one of"):
        clone(model).fit(X, Y).set_params(strategy="brave").predict(X)
    with pytest.raises(ValueError, match="X has 150 rows but y has 10"):
        model.decision_cost(X, Y[:10])
    with pytest.raises(ValueError, match="7"):
        model.decision_cost(X[:1], [7])


def test_ties_between_a_class_and_declining_go_to_the_class():
    class Undecided(GaussianNB):
        def predict_proba(self, X):
            return np.full((len(X), 2), 0.5)

    model = RejectClassifier(Undecided(), cost=0.5).fit(X[:100], Y[:100])
    assert model.predict(X[:3]).tolist() == [0, 0, 0]


def test_it_is_one_of_the_names_at_the_top():
    assert dubito.RejectClassifier is RejectClassifier


@parametrize_with_checks(
    [
        RejectClassifier(LogisticRegression(), cost=1, reject_label=-7),
        RejectClassifier(EvidentialClassifier(LogisticRegression()), cost=1, reject_label=-7),
    ]
)
def test_scikit_learn(estimator, check):
    check(estimator)
