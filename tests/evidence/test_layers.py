"""Every model that can be read gives its own probabilities back; every other one is refused."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from scipy.special import expit, softmax
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_iris
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import RandomForestClassifier, StackingClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import (
    LogisticRegression,
    LogisticRegressionCV,
    RidgeClassifier,
    SGDClassifier,
)
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, SplineTransformer, StandardScaler
from sklearn.svm import SVC, LinearSVC

from dubito.calibration import (
    CalibratedClassifier,
    EvidentialMultinomialCalibrator,
    MatrixCalibrator,
    PlattCalibrator,
    TemperatureCalibrator,
    VectorCalibrator,
)
from dubito.evidence import EvidentialClassifier, NotSupportedError, OneVsRestWarning


def flowers(n_classes):
    X, y = load_iris(return_X_y=True)
    kept = y >= 3 - n_classes
    X = StandardScaler().fit_transform(X[kept])  # so that all solvers converge
    return X, np.array(["setosa", "versicolor", "virginica"])[y[kept]]


def network(**settings):
    return MLPClassifier(
        (8, 5), alpha=1.0, solver="lbfgs", max_iter=5000, random_state=0, **settings
    )


#: Temperature scaling without the floor that raises small probabilities.
TEMPERATURE = TemperatureCalibrator(floor=1e-300)

SOFTMAX = {
    "logistic regression": LogisticRegression(),
    "its own cross-validation": LogisticRegressionCV(Cs=2, cv=3),
    "discriminant analysis": LinearDiscriminantAnalysis(),
    "network": network(),
    "network of tanh": network(activation="tanh"),
    "network of sigmoids": network(activation="logistic"),
    "network without activation": network(activation="identity"),
    "network without hidden layers": MLPClassifier((), solver="lbfgs", random_state=0),
    "pipeline": make_pipeline(StandardScaler(), LogisticRegression()),
    "additive model": make_pipeline(SplineTransformer(), LogisticRegression()),
    "pipeline in a pipeline": make_pipeline(
        StandardScaler(), make_pipeline(PolynomialFeatures(2), LogisticRegression(max_iter=500))
    ),
    "columns": make_pipeline(
        ColumnTransformer([("s", StandardScaler(), [0, 1])], remainder="passthrough"),
        LogisticRegression(),
    ),
    "search": GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, cv=3),
    "no intercept": LogisticRegression(fit_intercept=False),
    "temperature": CalibratedClassifier(LinearSVC(), TemperatureCalibrator()),
    "vector": CalibratedClassifier(LinearSVC(), VectorCalibrator()),
    "matrix": CalibratedClassifier(RidgeClassifier(), MatrixCalibrator()),
    "calibrated network": CalibratedClassifier(network(), TEMPERATURE, cv=2),
    "calibrated network in a pipeline": CalibratedClassifier(
        make_pipeline(StandardScaler(), network()), TEMPERATURE, cv=2
    ),
    "calibrated pipeline": CalibratedClassifier(
        make_pipeline(StandardScaler(), LinearSVC()), TemperatureCalibrator()
    ),
}

#: Models whose own probabilities of more than two classes are normalised sigmoids.
SIGMOIDS = {
    "gradient descent": SGDClassifier(loss="log_loss", alpha=0.1, random_state=0),
    "platt": CalibratedClassifier(LinearSVC(), PlattCalibrator()),
    "platt of ridge": CalibratedClassifier(RidgeClassifier(), PlattCalibrator()),
    "sigmoid": CalibratedClassifierCV(LinearSVC(), ensemble=False),
}


@pytest.mark.filterwarnings("ignore::FutureWarning:sklearn")  # about future defaults of the search
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", SOFTMAX)
def test_probabilities_are_those_of_the_model(name, n_classes):
    X, y = flowers(n_classes)
    ev = EvidentialClassifier(SOFTMAX[name]).fit(X, y)
    proba = ev.estimator_.predict_proba(X)
    np.testing.assert_allclose(ev.predict_proba(X), proba, rtol=1e-11, atol=1e-13)
    np.testing.assert_array_equal(ev.predict(X), ev.estimator_.predict(X))
    plausible = ev.predict_bounds(X).upper
    plausible = plausible / plausible.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(plausible, proba, atol=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", SIGMOIDS)
def test_one_against_the_rest_is_read_as_a_softmax_of_log_odds(name, n_classes):
    X, y = flowers(n_classes)
    ev = EvidentialClassifier(SIGMOIDS[name])
    if n_classes == 2:
        ev.fit(X, y)
    else:
        with pytest.warns(OneVsRestWarning, match="no softmax of its outputs"):
            ev.fit(X, y)
    proba = ev.estimator_.predict_proba(X)
    if n_classes == 2:
        np.testing.assert_allclose(ev.predict_proba(X), proba, atol=1e-12)
    else:
        logits = ev.features(X) @ ev.model_.coef.T + ev.model_.intercept
        sigmoids = expit(logits)
        expected = sigmoids / sigmoids.sum(1, keepdims=True)
        if isinstance(ev.estimator_, CalibratedClassifier):  # it mixes in the base rate
            base = (np.bincount(np.unique(y, return_inverse=True)[1]) + 1) / (len(y) + 3)
            expected = (len(y) * expected + base) / (len(y) + 1)
        np.testing.assert_allclose(expected, proba, atol=1e-12)
        np.testing.assert_allclose(ev.predict_proba(X), softmax(logits, axis=1), atol=1e-12)
        np.testing.assert_array_equal(ev.predict(X), ev.estimator_.predict(X))


def test_linear_support_vectors_of_two_classes():
    X, y = flowers(2)
    ev = EvidentialClassifier(CalibratedClassifier(SVC(kernel="linear"), PlattCalibrator()))
    ev.fit(X, y)
    np.testing.assert_allclose(ev.predict_proba(X), ev.estimator_.predict_proba(X), atol=1e-12)
    with pytest.raises(NotSupportedError, match=r"each pair of its 3 classes\. Use LinearSVC"):
        ev.fit(*flowers(3))


def test_calibration_of_scikit_learn_by_temperature():
    pytest.importorskip("sklearn", minversion="1.8", reason="temperature scaling came with 1.8")
    for n_classes in (2, 3):
        X, y = flowers(n_classes)
        model = CalibratedClassifierCV(LinearSVC(), method="temperature", ensemble=False)
        ev = EvidentialClassifier(model).fit(X, y)
        np.testing.assert_allclose(ev.predict_proba(X), ev.estimator_.predict_proba(X), atol=1e-12)
        model = CalibratedClassifierCV(network(), method="temperature", ensemble=False, cv=2)
        ev = EvidentialClassifier(model).fit(X, y)
        np.testing.assert_allclose(ev.predict_proba(X), ev.estimator_.predict_proba(X), atol=1e-12)


def test_a_frozen_model_is_left_as_it_is():
    X, y = flowers(3)
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
    frozen = EvidentialClassifier(FrozenEstimator(model)).fit(X[::2], y[::2])
    assert frozen.estimator_ is model
    np.testing.assert_allclose(frozen.model_.mean, model[:-1].transform(X[::2]).mean(axis=0))
    inside = EvidentialClassifier(make_pipeline(FrozenEstimator(model[:-1]), model[-1])).fit(X, y)
    np.testing.assert_allclose(inside.model_.mean, np.zeros(4), atol=1e-12)


def test_a_frozen_model_needs_no_labels_but_checks_them():
    X, y = flowers(3)
    model = LogisticRegression().fit(X, y)
    without = EvidentialClassifier(FrozenEstimator(model)).fit(X)
    np.testing.assert_array_equal(
        without.weights(X), EvidentialClassifier(FrozenEstimator(model)).fit(X, y).weights(X)
    )
    with pytest.raises(ValueError, match="knows none of the labels of y, as 'rose'; it knows 'se"):
        EvidentialClassifier(FrozenEstimator(model)).fit(X, np.full(len(X), "rose"))
    with pytest.raises(TypeError, match=r"not its class: LogisticRegression\(\)"):
        EvidentialClassifier(LogisticRegression).fit(X, y)


def test_a_network_that_goes_on_learning_leaves_the_evidence_as_it_was():
    X, y = flowers(3)
    model = MLPClassifier((4,), random_state=0, solver="adam", max_iter=5)
    with pytest.warns(ConvergenceWarning):
        model.fit(X, y)
    ev = EvidentialClassifier(FrozenEstimator(model)).fit(X)
    before = ev.weights(X)
    model.partial_fit(X, y)
    np.testing.assert_array_equal(ev.weights(X), before)


def test_sparse_features_stay_sparse_and_agree_with_dense_ones():
    rng = np.random.default_rng(0)
    X = np.where(rng.random((120, 30)) < 0.1, rng.normal(size=(120, 30)), 0.0)
    y = rng.integers(3, size=120)
    model = LogisticRegression(solver="liblinear" if y.max() == 1 else "lbfgs")
    dense = EvidentialClassifier(model).fit(X, y)
    sparse = EvidentialClassifier(FrozenEstimator(dense.estimator_)).fit(csr_matrix(X), y)
    for a, b in zip(dense.totals(X), sparse.totals(csr_matrix(X)), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-13)
    np.testing.assert_allclose(sparse.weights(csr_matrix(X)), dense.weights(X), atol=1e-13)
    np.testing.assert_allclose(sparse.predict_proba(csr_matrix(X)), dense.predict_proba(X))


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (SVC(), r"SVC\(kernel='rbf'\) has none. Use CalibratedClassifier with an evidential"),
        (RandomForestClassifier(), r"RandomForestClassifier\(\) has none"),
        (
            make_pipeline(StandardScaler(), KNeighborsClassifier()),
            r"KNeighborsClassifier\(\) has none",
        ),
        (LinearSVC(), r"LinearSVC\(loss='squared_hinge'\) are margins.*VectorCalibrator"),
        (SGDClassifier(), r"SGDClassifier\(loss='hinge'\) are margins"),
        (FrozenEstimator(RidgeClassifier()), r"RidgeClassifier\(\) are margins"),
        (GridSearchCV(LogisticRegression(), {"C": [1]}, refit=False), "leaves no fitted model"),
        (CalibratedClassifierCV(RandomForestClassifier()), r"RandomForestClassifier\(\) has none"),
        (GridSearchCV(SVC(), {"C": [1]}), "has none"),
        (CalibratedClassifierCV(LinearSVC(), method="isotonic"), 'Use method="temperature"'),
        (CalibratedClassifierCV(LinearSVC()), r"averages 5 models.*ensemble=False"),
        (CalibratedClassifierCV(MLPClassifier()), "pass MLPClassifier itself"),
        (CalibratedClassifier(MLPClassifier(), PlattCalibrator()), "pass MLPClassifier itself"),
        (
            CalibratedClassifierCV(CalibratedClassifierCV(LinearSVC(), ensemble=False)),
            "pass CalibratedClassifierCV itself",
        ),
        (
            StackingClassifier([("a", LinearSVC())], final_estimator=LogisticRegression()),
            r"StackingClassifier\(\) has none",
        ),
        (GridSearchCV(SGDClassifier(loss="log_loss"), {"loss": ["hinge"]}), "are margins"),
        (
            GridSearchCV(make_pipeline(LogisticRegression()), {"logisticregression": [SVC()]}),
            "has none",
        ),
        (
            GridSearchCV(
                CalibratedClassifierCV(LinearSVC(), ensemble=False),
                {"estimator": [MLPClassifier((2,), max_iter=1)]},
            ),
            "pass MLPClassifier itself",
        ),
        (
            CalibratedClassifier(LinearSVC(), EvidentialMultinomialCalibrator()),
            "Use ensemble=False",
        ),
        (
            CalibratedClassifier(LinearSVC(), PlattCalibrator(), ensemble=True),
            "several are averaged",
        ),
        (CalibratedClassifier(SVC(), PlattCalibrator()), "has none"),
    ],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_what_has_no_linear_layer_is_refused_with_a_way_out(model, message):
    with pytest.raises(NotSupportedError, match=message):
        EvidentialClassifier(model).fit(*flowers(3))


class Turned(LogisticRegression):
    """A model that does more with its outputs than its class suggests."""

    def predict_proba(self, X):
        return super().predict_proba(X)[:, ::-1]


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_layer_must_reproduce_the_model(n_classes):
    with pytest.raises(NotSupportedError, match="differ from its own by up to"):
        EvidentialClassifier(Turned()).fit(*flowers(n_classes))
