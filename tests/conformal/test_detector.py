"""Rows of every kind: mixed tables, texts, frames, holes, scores; transformers within models."""

import tracemalloc

import numpy as np
import pytest
from scipy import sparse
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.ensemble import HistGradientBoostingClassifier, IsolationForest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import NearestNeighbors
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from dubito.calibration import (
    CalibratedClassifier,
    EvidentialFusion,
    EvidentialLogisticCalibrator,
    PlattCalibrator,
)
from dubito.conformal import NoveltyAwareClassifier
from dubito.conformal.detector import NeighbourDistances
from dubito.conformal.preparation import preparation_of
from dubito.evidence import EvidentialClassifier
from dubito.pipeline import CautiousPipeline

X, Y = load_iris(return_X_y=True)


def linear():
    return LogisticRegression(max_iter=1000)


def mixed_table(frames):
    rng = np.random.default_rng(0)
    table = {
        "age": rng.normal(50, 10, 200),
        "town": rng.choice(["north", "south", "west"], 200).tolist(),
        "pulse": rng.normal(70, 5, 200),
    }
    y = np.where(table["age"] + rng.normal(size=200) > 50, "ill", "well")
    return frames.DataFrame(table), y


def encoded(threshold=0.3):
    columns = [
        ("numbers", StandardScaler(), ["age", "pulse"]),
        ("words", OneHotEncoder(handle_unknown="ignore"), ["town"]),
    ]
    return ColumnTransformer(columns, sparse_threshold=threshold)


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize(
    "wrap",
    [
        lambda model: model,
        lambda model: CalibratedClassifier(model, EvidentialLogisticCalibrator()),
        EvidentialClassifier,
    ],
    ids=["pipeline", "calibrated", "evidential"],
)
def test_tables_of_numbers_and_words_need_a_pipeline(library, wrap):
    frames = pytest.importorskip(library)
    table, y = mixed_table(frames)
    model = NoveltyAwareClassifier(wrap(make_pipeline(encoded(), linear()))).fit(table, y)
    odd = frames.DataFrame({"age": [50.0, 400.0], "town": ["north", "north"], "pulse": [70.0] * 2})
    ordinary, strange = model.familiarity(odd)
    assert ordinary > 0.2
    assert strange == pytest.approx(1 / 201)
    assert model.predict_bounds(odd).width[1].min() > 0.7
    with pytest.raises(TypeError, match="in one Pipeline"):
        NoveltyAwareClassifier(CoercingNB()).fit(table, y)


class CoercingNB(GaussianNB):
    """Reads tables as they are, as gradient boosting libraries do."""

    def fit(self, X, y):
        return super().fit(np.arange(len(X), dtype=float)[:, None], y)


def test_texts_are_compared_by_the_angle_of_their_words():
    rng = np.random.default_rng(0)
    words = [f"{kind}{i}" for kind in ("sport", "money") for i in range(300)]
    y = np.repeat([0, 1], 120)
    texts = [" ".join(rng.choice(words[300 * k : 300 * k + 300], 40)) for k in y]
    model = NoveltyAwareClassifier(make_pipeline(TfidfVectorizer(), linear()), rate=0.05)
    model.fit(texts, y)
    assert model.detector_.by_angle_
    new = [
        " ".join(rng.choice(words[:300], 40)),
        "a sport1 text of other words",
        "none of them known",
    ]
    familiar = model.familiarity(new)
    assert familiar[0] > 0.05
    assert familiar[1:].max() < 0.05
    assert model.predict_bounds(new).width[2].min() > 0.8
    with pytest.raises(TypeError, match="text"):
        NeighbourDistances().fit(texts)


def test_the_transformers_in_front_are_found_wherever_they_are():
    inner = make_pipeline(StandardScaler(), PCA(2), linear())
    found = [
        inner,
        CalibratedClassifier(inner, PlattCalibrator()),
        CalibratedClassifierCV(inner),
        EvidentialClassifier(inner),
        GridSearchCV(inner, {"pca__n_components": [2]}, cv=3),
        FrozenEstimator(inner.fit(X, Y)),
        CalibratedClassifier(FrozenEstimator(inner), PlattCalibrator()),
        NoveltyAwareClassifier(inner),
        CautiousPipeline([("scale", StandardScaler()), ("rest", make_pipeline(PCA(2), linear()))]),
    ]
    for model in found:
        for state in (model, model.fit(X, Y)):
            rows = preparation_of(state).fit_transform(X, Y)
            np.testing.assert_allclose(np.abs(rows), np.abs(inner[:-1].transform(X)), atol=1e-8)
    members = EvidentialFusion([("a", inner), ("b", GaussianNB())])
    for model in (
        linear(),
        members,
        make_pipeline(linear()),
        make_pipeline("passthrough", inner[-1]),
    ):
        assert preparation_of(model) is None


def test_frozen_transformers_are_not_fitted_anew():
    frozen = FrozenEstimator(
        CalibratedClassifier(make_pipeline(StandardScaler(), linear()), PlattCalibrator()).fit(X, Y)
    )
    model = NoveltyAwareClassifier(frozen).fit(X[:80], Y[:80])
    scaler = model.preparation_.steps[0][1]
    np.testing.assert_array_equal(scaler.mean_, X.mean(axis=0))
    anew = NoveltyAwareClassifier(make_pipeline(StandardScaler(), linear())).fit(X[:100], Y[:100])
    np.testing.assert_allclose(anew.preparation_.steps[0][1].mean_, X[:100].mean(axis=0))


def test_transformers_are_fitted_within_the_folds():
    # A projection fitted on the very rows would make each of them look too familiar.
    rng = np.random.default_rng(0)
    rows, y = rng.normal(size=(120, 30)), np.tile([0, 1], 60)
    model = NoveltyAwareClassifier(make_pipeline(PCA(5), linear())).fit(rows, y)
    wanted = []
    for train, test in KFold(5, shuffle=True, random_state=0).split(rows):
        pca = PCA(5).fit(rows[train])
        detector = NeighbourDistances().fit(pca.transform(rows[train]))
        wanted.append(-detector.score_samples(pca.transform(rows[test])))
    np.testing.assert_allclose(model.held_out_scores_, np.sort(np.concatenate(wanted)), rtol=1e-9)


@pytest.mark.parametrize("pack", [sparse.csr_matrix, sparse.csc_matrix, sparse.csr_array])
def test_sparse_rows_with_few_columns_are_those_of_the_dense_table(pack):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(200, 6)) * (rng.random((200, 6)) < 0.4)
    y = np.tile([0, 1], 100)
    dense = NoveltyAwareClassifier(linear()).fit(rows, y)
    packed = NoveltyAwareClassifier(linear()).fit(pack(rows), y)
    np.testing.assert_allclose(packed.held_out_scores_, dense.held_out_scores_, atol=1e-9)
    np.testing.assert_array_equal(packed.familiarity(pack(rows)), dense.familiarity(rows))
    forest = IsolationForest(n_estimators=10, random_state=0)
    assert NoveltyAwareClassifier(linear(), detector=forest).fit(pack(rows), y).familiarity(
        pack(rows)
    ).shape == (200,)


@pytest.mark.parametrize("pack", [sparse.csr_matrix, sparse.csr_array])
def test_sparse_rows_with_many_columns_are_compared_by_angle(pack):
    rng = np.random.default_rng(0)
    rows = rng.random((60, 600)) * (rng.random((60, 600)) < 0.05)
    new = np.concatenate([rows[:5] * 7, np.zeros((1, 600))])  # lengths do not matter; one is empty
    found = -NeighbourDistances().fit(pack(rows)).score_samples(pack(new))
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    cosines = -np.sort(-(unit[:5] @ unit.T), axis=1)[:, :5]
    wanted = np.sqrt(np.maximum(2 - 2 * cosines, 0)).mean(axis=1)
    np.testing.assert_allclose(found[:5], wanted, atol=1e-7)
    assert found[5] == pytest.approx(np.sqrt(2))


def test_missing_values_are_means_for_the_default_detector():
    rows = X.copy()
    rows[::7, 1] = np.nan
    model = NoveltyAwareClassifier(HistGradientBoostingClassifier(max_iter=5)).fit(rows, Y)
    holed, filled = rows[:1].copy(), rows[:1].copy()
    holed[0, 1], filled[0, 1] = np.nan, np.nanmean(rows[:, 1])
    np.testing.assert_allclose(
        model.detector_.score_samples(holed), model.detector_.score_samples(filled)
    )
    assert model.familiarity(rows[:2]).shape == (2,)


def test_scores_themselves_may_be_the_rows():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=200)
    y = (scores + rng.logistic(size=200) > 0).astype(int)
    model = NoveltyAwareClassifier(CalibratedClassifier(None, EvidentialLogisticCalibrator()))
    model.fit(scores, y)
    near, far = model.familiarity(np.array([0.0, 30.0]))
    assert near > 0.2
    assert far == pytest.approx(1 / 201)


def test_other_columns_than_those_of_the_fit_are_refused():
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame(X, columns=list("abcd"))
    model = NoveltyAwareClassifier(linear()).fit(table, Y)
    assert model.feature_names_in_.tolist() == list("abcd")
    with pytest.raises(ValueError, match="feature names"):
        model.familiarity(table[list("dcba")])
    with pytest.raises(ValueError, match="3 features"):
        NoveltyAwareClassifier(linear()).fit(X, Y).familiarity(X[:, :3])


def test_distances_are_those_of_a_tree():
    rng = np.random.default_rng(0)
    rows, new = rng.normal(size=(500, 4)) * [1, 10, 0.1, 1e-6], rng.normal(size=(40, 4))
    found = NeighbourDistances().fit(rows).score_samples(new)
    scale = rows.std(axis=0)
    tree = NearestNeighbors(n_neighbors=5, algorithm="kd_tree").fit(rows / scale)
    np.testing.assert_allclose(-found, tree.kneighbors(new / scale)[0].mean(axis=1), rtol=1e-9)


def test_the_search_keeps_a_bounded_number_of_rows():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(5000, 2))
    capped, full = NeighbourDistances(max_rows=1000).fit(rows), NeighbourDistances().fit(rows)
    assert capped.rows_.shape == (1000, 2)
    assert full.rows_.shape == (5000, 2)
    new = np.concatenate([rng.normal(size=(200, 2)), [[9.0, 9.0]]])
    ranks = [np.argsort(np.argsort(model.score_samples(new))) for model in (capped, full)]
    assert np.corrcoef(ranks)[0, 1] > 0.7
    assert ranks[0][-1] == ranks[1][-1] == 0


@pytest.mark.parametrize("pack", [np.asarray, sparse.csr_matrix])
def test_no_table_of_all_distances_is_built(pack):
    rows = pack(np.random.default_rng(0).normal(size=(6000, 3)))
    detector = NeighbourDistances().fit(rows)
    tracemalloc.start()
    detector.score_samples(rows)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8 * 6000 * 6000 / 2  # half the bytes of such a table
