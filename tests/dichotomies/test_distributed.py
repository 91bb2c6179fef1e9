"""Fits on a Dask cluster, and predictions block by block."""

import os
import sys
import weakref

import cloudpickle
import dask
import dask.array as da
import numpy as np
import pytest
from distributed import Client, Future
from joblib import parallel_config
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from dubito.calibration import CalibratedClassifier, EvidentialLogisticCalibrator, PlattCalibrator
from dubito.dichotomies import NestedDichotomyClassifier, NestedDichotomyEnsemble
from dubito.dichotomies.distributed import score_blocks
from dubito.discriminant import ImpreciseGaussianDiscriminant

from reference.watched import Heavy, SlowBayes, kill, notes, once_started

X, y = load_digits(return_X_y=True)


# --- dichotomies on a cluster --------------------------------------------------------------------

FITS = {
    "dense": (NestedDichotomyClassifier(random_state=0), X),
    "float32": (NestedDichotomyClassifier(dtype=np.float32, random_state=0), X),
    "sparse": (NestedDichotomyClassifier(structure="random", random_state=0), sparse.csr_matrix(X)),
    "both calibrations": (
        NestedDichotomyClassifier(internal="isotonic", external="vector", random_state=0),
        X,
    ),
    "evidential": (
        NestedDichotomyClassifier(internal=EvidentialLogisticCalibrator(), random_state=0),
        X,
    ),
    "bayes": (NestedDichotomyClassifier(GaussianNB(var_smoothing=1e-3), random_state=0), X),
    "trees": (
        NestedDichotomyClassifier(
            DecisionTreeClassifier(max_depth=3), internal="platt", random_state=0
        ),
        X,
    ),
    "ensemble": (NestedDichotomyEnsemble(n_estimators=3, random_state=0), X),
}


def assert_same_predictions(one, other, features, *, rtol=0.0):
    """Predictions are equal, within a tolerance for rounding."""
    for method in ("predict_proba", "predict_log_proba"):
        ours, theirs = (getattr(model, method)(features) for model in (one, other))
        np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=0)
    if hasattr(one, "predict_bounds"):
        ours, theirs = one.predict_bounds(features), other.predict_bounds(features)
        np.testing.assert_allclose(ours.lower, theirs.lower, rtol=rtol, atol=rtol)
        np.testing.assert_allclose(ours.upper, theirs.upper, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("name", FITS)
def test_a_cluster_fits_the_same_model(client, name):
    model, features = FITS[name]
    here = clone(model).fit(features[::2], y[::2])
    with client.as_current(), parallel_config(backend="dask"):
        there = clone(model).fit(features[::2], y[::2])
    # A kernel that this process has compiled and one that a worker loads may round differently.
    assert_same_predictions(here, there, features, rtol=1e-10)


@pytest.mark.parametrize("name", FITS)
def test_threads_fit_the_same_model(name):
    model, features = FITS[name]
    one = clone(model).set_params(n_jobs=1).fit(features[::2], y[::2])
    two = clone(model).set_params(n_jobs=2).fit(features[::2], y[::2])
    assert_same_predictions(one, two, features)


@pytest.mark.slow
@pytest.mark.usefixtures("on_dask")
def test_a_worker_killed_in_the_middle_of_a_fit(tmp_path):
    here = NestedDichotomyClassifier(SlowBayes(tmp_path, 0.0), random_state=0)
    with parallel_config(backend="threading"):
        here.fit(X, y)
    for path in tmp_path.iterdir():
        path.unlink()
    killed = []
    once_started(tmp_path, 4, lambda pid: (killed.append(pid), kill(pid)))
    there = NestedDichotomyClassifier(SlowBayes(tmp_path, 0.3), random_state=0).fit(X, y)
    np.testing.assert_array_equal(there.predict_proba(X), here.predict_proba(X))
    started = notes(tmp_path, "started")
    assert killed[0] in started
    assert os.getpid() not in started
    assert len(started) > 9  # ten classes have nine nodes; one fit was repeated


@pytest.mark.usefixtures("on_dask")
def test_tasks_do_not_contain_the_data(monkeypatch):
    sent = []
    submit = Client.submit

    def measured(self, *args, **settings):
        sent.append(len(cloudpickle.dumps([a for a in args if not isinstance(a, Future)])))
        return submit(self, *args, **settings)

    monkeypatch.setattr(Client, "submit", measured)
    NestedDichotomyClassifier(random_state=0).fit(X, y)
    assert len(sent) > 2
    assert sum(sent) < X.nbytes / 10


@pytest.mark.slow
@pytest.mark.usefixtures("on_dask")
def test_a_search_over_a_cluster_may_fit_dichotomies_on_it():
    """Tasks that wait for tasks must free their slot."""
    model = NestedDichotomyClassifier(DecisionTreeClassifier(max_depth=2), random_state=0)
    search = GridSearchCV(model, {"structure": ["random", "clustered"]}, cv=2, error_score="raise")
    assert search.fit(X, y).best_score_ > 0.5


# --- scoring in blocks ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def evidential():
    return FITS["evidential"][0].fit(X[::2], y[::2])


def blocks(features=X, rows=300):
    return da.from_array(features, chunks=(rows, -1))


def test_blocks_equal_the_whole(evidential):
    for method in ("predict", "predict_proba", "predict_log_proba", "predict_set"):
        lazy = score_blocks(evidential, blocks(), method=method)
        whole = getattr(evidential, method)(X)
        assert isinstance(lazy, da.Array)
        assert (lazy.shape, lazy.dtype) == (whole.shape, whole.dtype)
        assert lazy.chunks[0] == (300, 300, 300, 300, 300, 297)
        np.testing.assert_array_equal(lazy.compute(), whole)


def test_bounds_come_as_a_pair_and_each_block_is_scored_once(evidential):
    made = []
    counted = blocks().map_blocks(lambda block: made.append(1) or block, meta=np.empty((0, 0)))
    lower, upper = dask.compute(*score_blocks(evidential, counted, method="predict_bounds"))
    whole = evidential.predict_bounds(X)
    np.testing.assert_array_equal(lower, whole.lower)
    np.testing.assert_array_equal(upper, whole.upper)
    assert len(made) == 6


def test_topk_and_groups_of_classes(evidential):
    top = score_blocks(evidential, blocks(), method="predict_topk", k=3)
    labels, proba = score_blocks(
        evidential, blocks(), method="predict_topk", k=3, return_proba=True
    )
    groups = score_blocks(evidential, blocks(), method="predict_proba_at_depth", depth=2)
    ours = evidential.predict_topk(X, 3, return_proba=True)
    assert (labels.shape, groups.shape) == (
        (len(X), 3),
        evidential.predict_proba_at_depth(X, 2).shape,
    )
    np.testing.assert_array_equal(top.compute(), ours[0])
    np.testing.assert_array_equal(labels.compute(), ours[0])
    np.testing.assert_array_equal(proba.compute(), ours[1])
    np.testing.assert_array_equal(groups.compute(), evidential.predict_proba_at_depth(X, 2))


def iris_models():
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    yield ImpreciseGaussianDiscriminant().fit(X, names), X
    yield CalibratedClassifier(LogisticRegression(max_iter=1000)).fit(X, names), X
    yield EvidentialLogisticCalibrator().fit(X[:, 0], y > 0), X[:, 0]
    yield PlattCalibrator().fit(X[:, :3], y), X[:, :3]


@pytest.mark.parametrize("number", range(4))
def test_every_kind_of_model(number):
    model, features = list(iris_models())[number]
    lazy = da.from_array(features, chunks=40)
    lazy = lazy.rechunk({1: -1}) if lazy.ndim == 2 else lazy
    for method in ("predict", "predict_proba"):
        np.testing.assert_array_equal(
            score_blocks(model, lazy, method=method).compute(), getattr(model, method)(features)
        )


def test_sparse_blocks_and_delayed_sparse_chunks(client):
    model, features = FITS["sparse"]
    model = clone(model).fit(features, y)
    whole = model.predict_proba(features)
    lazy = blocks().map_blocks(sparse.csr_matrix, meta=sparse.csr_matrix((0, 0)))
    with client.as_current():
        np.testing.assert_array_equal(score_blocks(model, lazy).compute(), whole)
        delayed = (dask.delayed(features[i : i + 400]) for i in range(0, len(y), 400))
        parts = score_blocks(model, delayed)
        assert len(parts) == 5
        np.testing.assert_array_equal(np.vstack(dask.compute(*parts)), whole)
        parts = score_blocks(model, [X[:100], features[100:150]], method="predict", client=client)
        np.testing.assert_array_equal(np.hstack(dask.compute(*parts)), model.predict(X[:150]))


def test_results_of_chunks_are_those_of_the_model(evidential):
    first, second = dask.compute(
        *score_blocks(evidential, [X[:5].tolist(), X[5:8]], method="predict_bounds")
    )
    assert (len(first), len(second)) == (5, 3)
    np.testing.assert_array_equal(second.upper, evidential.predict_bounds(X[5:8]).upper)


def test_unknown_and_empty_blocks(evidential):
    lazy = blocks()[blocks()[:, 0] >= 0]
    none = blocks()[blocks()[:, 0] > 1e9]
    assert np.isnan(score_blocks(evidential, lazy).shape[0])
    np.testing.assert_array_equal(
        score_blocks(evidential, lazy).compute(), evidential.predict_proba(X)
    )
    assert score_blocks(evidential, none).compute().shape == (0, 10)
    assert score_blocks(evidential, none, method="predict").compute().shape == (0,)


def test_few_blocks_are_in_memory_at_once(evidential):
    """A hundred blocks are made one by one, and released soon after."""
    alive, most, made = weakref.WeakValueDictionary(), [0], [0]

    def make():
        number = made[0] = made[0] + 1
        block = np.full((200, 64), float(number))
        alive[number] = block
        most[0] = max(most[0], len(alive))
        return block

    lazy = da.map_blocks(make, chunks=((200,) * 100, (64,)), dtype=float)
    made[0] = 0  # Dask may call the function to infer its type
    mean = score_blocks(evidential, lazy).max(axis=1).mean()
    assert made[0] == 0
    assert 0 < mean.compute(scheduler="synchronous") <= 1
    assert made[0] == 100
    assert most[0] < 5


@pytest.mark.parametrize("ahead", [True, False])
def test_the_model_is_sent_once(client, tmp_path, ahead):
    model = Heavy().fit(tmp_path)
    lazy = da.from_array(X[:500, :4], chunks=(10, 4))
    with client.as_current():
        scored = score_blocks(model, lazy, client=client if ahead else None)
        np.testing.assert_array_equal(scored.compute(), X[:500, :4])
    packed = notes(tmp_path, "packed")
    assert 0 < packed.count(os.getpid()) <= 2
    assert len(packed) <= 4  # fifty blocks, two workers


def test_errors_are_raised_before_computation(evidential, monkeypatch):
    with pytest.raises(NotFittedError):
        score_blocks(NestedDichotomyClassifier(), blocks())
    with pytest.raises(ValueError, match=r"method must be one of predict, .* got 'transform'"):
        score_blocks(evidential, blocks(), method="transform")
    with pytest.raises(AttributeError, match="predict_topk"):
        score_blocks(LogisticRegression(max_iter=5000).fit(X, y), blocks(), method="predict_topk")
    with pytest.raises(ValueError, match=r"X has 63 columns, but .* was fitted on 64"):
        score_blocks(evidential, blocks(X[:, 1:]))
    with pytest.raises(ValueError, match=r"in 2 chunks; .* X.rechunk\({1: -1}\)"):
        score_blocks(evidential, da.from_array(X, chunks=(300, 32)))
    with pytest.raises(ValueError, match="got 3 dimensions"):
        score_blocks(evidential, da.zeros((4, 64, 2)))
    for table_in_memory in (X, sparse.csr_matrix(X), "rows", None, dask.delayed(X)):
        with pytest.raises(TypeError, match="X must be a Dask array or an iterable of chunks"):
            score_blocks(evidential, table_in_memory)
    with pytest.raises(TypeError, match="predict_topk needs k=; give it"):
        score_blocks(evidential, blocks(), method="predict_topk")
    with pytest.raises(TypeError, match="predict over a Dask array takes no settings; got k"):
        score_blocks(evidential, blocks(), method="predict", k=3)
    monkeypatch.setitem(sys.modules, "dask.array", None)
    with pytest.raises(ImportError, match=r'pip install "\.\[distributed\]"'):
        score_blocks(evidential, [X])
