"""The classifier around any model that ends in a linear layer."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_iris, load_wine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, SplineTransformer, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from dubito.belief import dempster
from dubito.decision import interval_dominance
from dubito.evidence import EvidenceModel, EvidentialClassifier, NotSupportedError
from dubito.evidence import model as model_module

X_WINE, Y_WINE = load_wine(return_X_y=True)


@pytest.fixture(scope="module")
def wine():
    model = make_pipeline(StandardScaler(), LogisticRegression())
    return EvidentialClassifier(model).fit(X_WINE, Y_WINE)


def expected_failures(classifier):
    if not isinstance(classifier.estimator, SGDClassifier):
        return {}
    reason = "a row that comes twice is shuffled apart, and SGDClassifier's steps differ"
    return {
        f"check_sample_weight_equivalence_on_{kind}_data": reason for kind in ("dense", "sparse")
    }


@parametrize_with_checks(
    [
        EvidentialClassifier(LogisticRegression()),
        EvidentialClassifier(make_pipeline(StandardScaler(with_mean=False), LogisticRegression())),
        EvidentialClassifier(SGDClassifier(loss="log_loss", random_state=0)),
    ],
    expected_failed_checks=expected_failures,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::dubito.evidence.OneVsRestWarning")
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_shapes_and_the_contract(wine):
    n, n_features, n_classes = len(X_WINE), 13, 3
    assert wine.weights(X_WINE).shape == (n, n_features, n_classes)
    bounds = wine.predict_bounds(X_WINE)
    assert bounds.lower.shape == (n, n_classes)
    proba = wine.predict_proba(X_WINE)
    assert (bounds.upper >= proba).all()
    assert (bounds.lower <= proba).all()
    np.testing.assert_array_equal(wine.predict_set(X_WINE), interval_dominance(bounds))
    belief = wine.predict_mass(X_WINE).bounds().lower
    np.testing.assert_allclose(bounds.lower, np.minimum(belief, proba), atol=1e-14)
    assert wine.conflict(X_WINE).shape == wine.ignorance(X_WINE).shape == (n,)
    plus, minus = wine.totals(X_WINE)
    np.testing.assert_allclose(np.maximum(wine.weights(X_WINE), 0).sum(axis=1), plus)
    np.testing.assert_allclose(np.maximum(-wine.weights(X_WINE), 0).sum(axis=1), minus, atol=1e-14)


def test_pieces_combine_to_the_whole(wine):
    pieces = [wine.piece_mass(X_WINE[:5], name) for name in wine.piece_names_]
    whole = dempster(*pieces)
    np.testing.assert_allclose(whole.dense().mass, wine.predict_mass(X_WINE[:5]).mass, atol=1e-12)
    np.testing.assert_array_equal(wine.piece_mass(X_WINE[:5], 3).mass, pieces[3].mass)


def test_belief_is_below_probability_for_two_classes_but_not_always_for_more():
    binary = EvidentialClassifier(LogisticRegression(C=100, max_iter=5000)).fit(
        X_WINE[:, :2], Y_WINE == 0
    )
    assert (binary.predict_bounds(X_WINE[:, :2]).lower <= binary.predict_proba(X_WINE[:, :2])).all()
    # One feature is evidence for class 0 of ten, the other against it: probabilities are equal, but
    # the belief in class 0 exceeds its probability.
    coef = np.zeros((10, 2))
    coef[0] = [5.0, -5.0]
    model = EvidenceModel(coef, np.zeros(10), np.zeros(2))
    np.testing.assert_allclose(model.proba([[1.0, 1.0]]), 0.1)
    assert model.bounds([[1.0, 1.0]]).lower[0, 0] > 0.15


def test_bounds_hold_the_probability_where_the_belief_exceeds_it():
    # Many classes and few rows: beliefs above normalised plausibilities are common.
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(150, 2)), np.arange(150) % 15
    X[:, 0] += y == 3
    ev = EvidentialClassifier(LogisticRegression(C=100, max_iter=5000)).fit(X, y)
    bounds, proba = ev.predict_bounds(X), ev.predict_proba(X)
    belief, plausibility = ev.model_.bounds(ev.features(X))
    assert (belief > proba + 0.01).any()
    np.testing.assert_array_equal(bounds.lower, np.minimum(belief, proba))
    np.testing.assert_array_equal(bounds.upper, plausibility)
    np.testing.assert_array_equal(ev.predict_set(X), interval_dominance(bounds))
    # The text agrees with the sets.
    explained, sets = ev.explain(X[:40]), ev.predict_set(X[:40])
    alone = ["leaves one class" in explained.text(i) for i in range(40)]
    np.testing.assert_array_equal(alone, sets.sum(axis=1) == 1)


def test_a_level_is_refused_with_the_way_out(wine):
    with pytest.raises(NotSupportedError, match="level=None") as refused:
        wine.predict_bounds(X_WINE, level=0.9)
    assert "CalibratedClassifier" in str(refused.value)
    with pytest.raises(NotSupportedError, match="no bounds at a confidence level"):
        wine.predict_set(X_WINE, level=0.9)


def test_permuting_classes_or_features_permutes_the_answers():
    X, y = load_iris(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    model = LogisticRegression(tol=1e-12, max_iter=10000)
    plain = EvidentialClassifier(model).fit(X, y)
    turned = EvidentialClassifier(model).fit(X, (y + 1) % 3)
    order = [(k + 1) % 3 for k in range(3)]
    np.testing.assert_allclose(
        turned.weights(X)[:, :, order], plain.weights(X), atol=1e-6
    )  # two fits of one problem agree to the solver's tolerance
    mixed = EvidentialClassifier(model).fit(X[:, ::-1], y)
    np.testing.assert_allclose(mixed.weights(X[:, ::-1])[:, ::-1], plain.weights(X), atol=1e-6)


def test_frames_with_names_and_word_labels():
    iris = load_iris(as_frame=True)
    words = iris.target_names[iris.target]
    model = make_pipeline(StandardScaler(), LogisticRegression())
    from_pandas = EvidentialClassifier(model).fit(iris.data, words)
    from_polars = EvidentialClassifier(model).fit(pl.from_pandas(iris.data), words)
    assert from_pandas.piece_names_ == list(iris.data.columns) == from_polars.piece_names_
    assert list(from_pandas.classes_) == list(iris.target_names)
    np.testing.assert_allclose(
        from_polars.weights(pl.from_pandas(iris.data)), from_pandas.weights(iris.data)
    )
    explained = from_pandas.explain(iris.data.iloc[[7, 70]])
    assert list(dict.fromkeys(explained.table["row"].tolist())) == [7, 70]
    np.testing.assert_allclose(
        [float(v) for v in explained.table["value"][:12:3]], iris.data.iloc[7].to_numpy()
    )


def test_names_survive_a_first_step_that_does_nothing():
    iris = load_iris(as_frame=True)
    model = make_pipeline("passthrough", LogisticRegression(max_iter=1000))
    ev = EvidentialClassifier(model).fit(iris.data, iris.target)
    assert ev.piece_names_ == list(iris.data.columns)


def test_names_of_an_earlier_fit_are_forgotten():
    iris = load_iris(as_frame=True)
    ev = EvidentialClassifier(LogisticRegression(max_iter=1000)).fit(iris.data, iris.target)
    ev.fit(iris.data.to_numpy()[:, :2], iris.target)
    assert ev.piece_names_ == ["x0", "x1"]
    assert ev.n_features_in_ == 2
    assert not hasattr(ev, "feature_names_in_")


def test_weights_of_rows_by_metadata_routing():
    X, y = load_iris(return_X_y=True)
    weight = 1.0 + 9 * (y == 1)
    with config_context(enable_metadata_routing=True):
        step = LogisticRegression(max_iter=1000).set_fit_request(sample_weight=True)
        scaler = StandardScaler().set_fit_request(sample_weight=True)
        routed = EvidentialClassifier(make_pipeline(scaler, step)).fit(X, y, sample_weight=weight)
    plain = EvidentialClassifier(make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)))
    np.testing.assert_allclose(routed.weights(X), plain.fit(X, y, sample_weight=weight).weights(X))


def additive_data():
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"age": rng.normal(50, 10, 300), "dose": rng.normal(0, 1, 300)})
    frame["ward"] = rng.choice(["north", "south", "west"], 300)
    risk = (frame.age - 50) ** 2 / 50 - 2 + (frame.ward == "west") + rng.logistic(size=300)
    return frame, np.where(risk > 0, "ill", "well")


def additive_model():
    columns = make_column_transformer(
        (SplineTransformer(n_knots=4), ["age", "dose"]), (OneHotEncoder(), ["ward"])
    )
    return make_pipeline(columns, LogisticRegression())


def test_an_additive_model_by_input_has_one_piece_for_each_input():
    frame, y = additive_data()
    by_feature = EvidentialClassifier(additive_model()).fit(frame, y)
    by_input = EvidentialClassifier(additive_model(), groups="input").fit(frame, y)
    assert by_feature.model_.n_pieces == 6 + 6 + 3
    assert by_input.piece_names_ == ["age", "dose", "ward"]
    np.testing.assert_array_equal(by_input.predict_proba(frame), by_feature.predict_proba(frame))
    # A smooth function of age is one piece of evidence: its parts cannot contradict each other.
    assert by_input.conflict(frame).mean() < by_feature.conflict(frame).mean()
    table = by_input.explain(frame.iloc[:1]).table
    assert table["value"][::2].tolist() == [str(value) for value in frame.iloc[0]]


def test_values_are_found_by_name_where_columns_come_in_another_order():
    frame, y = additive_data()
    ev = EvidentialClassifier(additive_model(), groups="input").fit(frame, y)
    turned = frame[["ward", "dose", "age"]].iloc[:1]
    np.testing.assert_array_equal(
        ev.explain(turned).table["value"], ev.explain(frame.iloc[:1]).table["value"]
    )


def test_texts():
    texts = ["good wine", "bad wine", "good food", "bad food", "good good", "bad bad"]
    ev = EvidentialClassifier(make_pipeline(TfidfVectorizer(), LogisticRegression()))
    ev.fit(texts, [1, 0, 1, 0, 1, 0])
    assert ev.piece_names_ == ["bad", "food", "good", "wine"]
    explained = ev.explain(["good wine"])
    assert "good = 0.6" in explained.text()  # its weight in the text, which no column has


def test_groups_by_label():
    frame, y = additive_data()
    X = frame[["age", "dose"]]
    one = EvidentialClassifier(LogisticRegression(), groups=["both", "both"]).fit(X, y)
    assert one.piece_names_ == ["both"]
    np.testing.assert_allclose(one.conflict(X), 0, atol=1e-15)
    assert np.isnan(one.explain(X.iloc[:1]).table["value"]).all()


def test_groups_by_input_need_inputs_to_group_by():
    X, y = load_iris(return_X_y=True)
    network = MLPClassifier((4,), solver="lbfgs", alpha=1.0, max_iter=5000, random_state=0)
    with pytest.raises(NotSupportedError, match="of the 4 features here none does"):
        EvidentialClassifier(network, groups="input").fit(X, y)
    ev = EvidentialClassifier(network).fit(X, y)
    assert ev.piece_names_ == ["hidden 0", "hidden 1", "hidden 2", "hidden 3"]


def test_weights_of_rows_reach_the_model_and_the_means():
    X, y = load_iris(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    weight = 1 + np.arange(len(y)) % 3
    twice = np.repeat(np.arange(len(y)), weight)
    exact = LogisticRegression(tol=1e-10, max_iter=1000)
    for model in (exact, make_pipeline(StandardScaler(), exact)):
        weighted = EvidentialClassifier(model).fit(X, y, sample_weight=weight)
        repeated = EvidentialClassifier(model).fit(X[twice], y[twice])
        np.testing.assert_allclose(weighted.model_.mean, repeated.model_.mean, atol=1e-12)
        np.testing.assert_allclose(weighted.weights(X), repeated.weights(X), atol=1e-6)
    with pytest.warns(UserWarning, match="LinearDiscriminantAnalysis.fit takes no sample_weight"):
        EvidentialClassifier(make_pipeline(StandardScaler(), LinearDiscriminantAnalysis())).fit(
            X, y, sample_weight=weight
        )


def test_weights_of_rows_reach_through_a_search():
    X, y = load_iris(return_X_y=True)
    weight = 1.0 + 9 * (y == 1)
    exact = LogisticRegression(tol=1e-10, max_iter=1000)
    for model, grid in (
        (exact, {"C": [0.5]}),
        (make_pipeline(StandardScaler(), exact), {"logisticregression__C": [0.5]}),
    ):
        searched = EvidentialClassifier(GridSearchCV(model, grid, cv=2))
        searched.fit(X, y, sample_weight=weight)
        alone = EvidentialClassifier(clone(model).set_params(**{k: v[0] for k, v in grid.items()}))
        alone.fit(X, y, sample_weight=weight)
        np.testing.assert_allclose(searched.weights(X), alone.weights(X))


def test_it_can_be_kept_cloned_and_cross_validated(wine):
    again = pickle.loads(pickle.dumps(wine))  # noqa: S301 - our own
    np.testing.assert_array_equal(again.weights(X_WINE), wine.weights(X_WINE))
    assert not hasattr(clone(wine), "model_")
    assert cross_val_score(wine, X_WINE, Y_WINE, cv=3).min() > 0.9


def test_errors_say_what_to_do(wine):
    with pytest.raises(NotFittedError):
        EvidentialClassifier(LogisticRegression()).conflict(X_WINE)
    with pytest.raises(ValueError, match="no piece of evidence 'colour'; there are x0, x1"):
        wine.piece_mass(X_WINE, "colour")
    with pytest.raises(ValueError, match="has 4 features"):
        wine.predict_bounds(X_WINE[:, :4])
    with pytest.raises(ValueError, match=r"groups .* rows|groups has 2"):
        EvidentialClassifier(LogisticRegression(max_iter=10000), groups=[0, 1]).fit(
            StandardScaler().fit_transform(X_WINE), Y_WINE
        )


def test_classes_and_outputs_must_agree():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="class"):
        EvidentialClassifier(LinearDiscriminantAnalysis()).fit(X, np.zeros(len(y), dtype=int))
    several = np.column_stack([y == 0, y == 1]).astype(int)
    network = MLPClassifier((2,), solver="lbfgs", max_iter=5000, random_state=0).fit(X, several)
    with pytest.raises(NotSupportedError, match="2 labels that do not exclude each other"):
        EvidentialClassifier(FrozenEstimator(network)).fit(X)


def test_a_single_row_and_float32(wine):
    row = X_WINE[:1].astype(np.float32)
    assert wine.predict_bounds(row).lower.dtype == np.float64
    np.testing.assert_allclose(
        wine.predict_bounds(row).lower, wine.predict_bounds(X_WINE[:1]).lower, atol=1e-4
    )


@pytest.mark.parametrize(
    "method",
    [
        *("predict", "predict_proba", "predict_log_proba", "predict_bounds", "predict_set"),
        *("predict_mass", "conflict", "ignorance", "weights", "totals", "explain"),
    ],
)
def test_features_are_checked_once(wine, method, monkeypatch):
    checked = []
    original = model_module.as_float_array

    def counted(values, name, **options):
        checked.append(name)
        return original(values, name, **options)

    monkeypatch.setattr(model_module, "as_float_array", counted)
    getattr(wine, method)(X_WINE[:5])
    assert checked == ["phi"]
