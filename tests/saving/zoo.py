"""Every estimator of dubito in its main variants, fitted, with rows to predict."""

from __future__ import annotations

import inspect
from functools import cache

import numpy as np
from scipy import sparse
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_iris
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC, LinearSVC

from dubito import calibration
from dubito.calibration import (
    AutoCalibrator,
    BinningCalibrator,
    CalibratedClassifier,
    EvidentialFusion,
    EvidentialIsotonicCalibrator,
    EvidentialLogisticCalibrator,
    EvidentialMultinomialCalibrator,
    PlattCalibrator,
    VectorCalibrator,
)
from dubito.calibration.base import BaseCalibrator
from dubito.conformal import ConformalClassifier, NoveltyAwareClassifier
from dubito.dichotomies import DichotomyTree, NestedDichotomyClassifier, NestedDichotomyEnsemble
from dubito.discriminant import ImpreciseGaussianDiscriminant
from dubito.evidence import EvidentialClassifier
from dubito.pipeline import CautiousPipeline, RejectClassifier
from dubito.testing.calibrators import draw_scores

X, NUMBERS = load_iris(return_X_y=True)
NAMES = np.array(["setosa", "versicolor", "virginica"])[NUMBERS]
NEW = X[::7] + 0.05

CALIBRATORS = {
    name: kind
    for name, kind in vars(calibration).items()
    if inspect.isclass(kind) and issubclass(kind, BaseCalibrator)
}


def scored(name, n_classes, labels):
    """Return a calibrator fitted on scores, and scores to predict."""
    scores, y = draw_scores(80, n_classes)
    if name == "EvidentialJointCalibrator":
        scores = np.stack([scores, draw_scores(80, n_classes, seed=1)[0]], axis=1)
    y = np.array(["a no", "a yes", "later", "maybe"])[y] if labels == "words" else y
    return CALIBRATORS[name]().fit(scores, y), scores[:20]


def pooled(n_classes):
    """Return the default calibrator with rows enough for all its parts."""
    scores, y = draw_scores(300, n_classes)
    return AutoCalibrator().fit(scores, y), scores[:20]


def linear():
    return LogisticRegression(max_iter=1000)


def many_rows():
    rng = np.random.default_rng(0)
    y = np.resize(np.arange(6), 120)
    counts = rng.poisson(1 + 4.0 * (y[:, None] == np.arange(12) // 2))
    return counts.astype(float), y


def nested(*, words=False, packed=False, **options):
    rows, y = many_rows()
    y = np.array(list("abcdef"))[y] if words else y
    rows = sparse.csr_matrix(rows) if packed else rows
    return NestedDichotomyClassifier(random_state=0, **options).fit(rows, y), rows[:20]


def ensemble(**options):
    rows, y = many_rows()
    model = NestedDichotomyEnsemble(n_estimators=3, random_state=0, **options)
    return model.fit(rows, y), rows[:20]


def on_iris(model, y=NAMES):
    return model.fit(X, y), NEW


def frozen(calibrator):
    return on_iris(CalibratedClassifier(FrozenEstimator(GaussianNB().fit(X, NAMES)), calibrator))


def fused(**options):
    members = [("svm", LinearSVC()), ("bayes", GaussianNB()), ("near", make_pipeline(linear()))]
    return on_iris(EvidentialFusion(members, cv=3, random_state=0, **options))


def weighed(rule):
    members = [(f"{C=}", EvidentialClassifier(LogisticRegression(C=C))) for C in (0.1, 1.0)]
    model = EvidentialFusion(members, method="masses", rule=rule)
    return model.fit(X[50:, :2], NAMES[50:]), NEW[:, :2]


def neurons(solver):
    return MLPClassifier((4,), solver=solver, max_iter=2000, tol=1e-2, random_state=0)


def mixed_table():
    """Return a table of numbers, texts and missing values."""
    import pandas as pd

    rng = np.random.default_rng(0)
    age = np.where(rng.random(90) < 0.1, np.nan, rng.normal(50, 10, 90))
    town = rng.choice(["north", "south", "west"], 90)
    y = np.where(
        rng.normal(np.nan_to_num(age, nan=50) - 50 + 8 * (town == "west"), 5) > 0, "ill", "well"
    )
    return pd.DataFrame({"age": age, "town": town, "pulse": rng.normal(70, 5, 90)}), y


def prepared(model, pipeline=CautiousPipeline):
    table, y = mixed_table()
    columns = ColumnTransformer(
        [
            ("numbers", make_pipeline(SimpleImputer(), StandardScaler()), ["age", "pulse"]),
            ("words", OneHotEncoder(handle_unknown="ignore"), ["town"]),
        ],
        sparse_threshold=0,
    )
    return pipeline([("prepare", columns), ("model", model)]).fit(table, y), table.iloc[:20]


def evidential_table():
    table, y = mixed_table()
    columns = ColumnTransformer(
        [
            ("numbers", make_pipeline(SimpleImputer(), StandardScaler()), ["age", "pulse"]),
            ("words", OneHotEncoder(), ["town"]),
        ]
    )
    model = EvidentialClassifier(make_pipeline(columns, linear()), groups="input")
    return model.fit(table, y), table.iloc[:20]


def novelty_table():
    """Return a model of unfamiliar rows whose detector reads an encoded table."""
    table, y = mixed_table()
    words = OneHotEncoder(handle_unknown="ignore")
    columns = ColumnTransformer(
        [("numbers", SimpleImputer(), ["age", "pulse"]), ("words", words, ["town"])]
    )
    model = make_pipeline(columns, linear())
    calibrated = CalibratedClassifier(model, EvidentialLogisticCalibrator(), cv=3)
    return NoveltyAwareClassifier(calibrated, rate=0.3).fit(table, y), table.iloc[:20]


def sparse_novelty():
    """Return a model of unfamiliar rows that compares wide sparse rows by angle."""
    rows, y = many_rows()
    wide = sparse.csr_matrix(np.hstack([rows, np.zeros((len(y), 600))]))
    return NoveltyAwareClassifier(MultinomialNB(), rate=0.3).fit(wide, y), wide[:20]


TREE = (((0, 1), (2, 3)), (4, 5))

MODELS = {
    **{
        f"{name}-{k}-{labels}": lambda name=name, k=k, labels=labels: scored(name, k, labels)
        for name in CALIBRATORS
        for k, labels in ((2, "words"), (2, "numbers"), (4, "words"), (4, "numbers"))
    },
    "auto-pooled": lambda: pooled(4),
    "auto-pooled-two-classes": lambda: pooled(2),
    "calibrated-named": lambda: on_iris(CalibratedClassifier(GaussianNB(), "matrix", cv=3)),
    "calibrated-evidence": lambda: on_iris(CalibratedClassifier(EvidentialClassifier(linear()))),
    "calibrated": lambda: on_iris(CalibratedClassifier(LinearSVC(), PlattCalibrator(), cv=3)),
    "calibrated-ensemble": lambda: on_iris(
        CalibratedClassifier(
            GaussianNB(), EvidentialLogisticCalibrator(), cv=StratifiedKFold(3), ensemble=True
        )
    ),
    "calibrated-frozen": lambda: frozen(EvidentialMultinomialCalibrator()),
    "calibrated-default": lambda: on_iris(CalibratedClassifier(LinearSVC(), cv=3)),
    "calibrated-pairs": lambda: on_iris(
        CalibratedClassifier(make_pipeline(StandardScaler(), SVC()), VectorCalibrator(), cv=3)
    ),
    "calibrated-forest": lambda: on_iris(
        CalibratedClassifier(RandomForestClassifier(5, random_state=0), BinningCalibrator(), cv=3)
    ),
    "calibrated-boosting": lambda: on_iris(
        CalibratedClassifier(
            HistGradientBoostingClassifier(max_iter=3), EvidentialIsotonicCalibrator(), cv=3
        )
    ),
    "calibrated-neighbours": lambda: on_iris(
        CalibratedClassifier(KNeighborsClassifier(), EvidentialIsotonicCalibrator(), cv=3)
    ),
    "calibrated-search": lambda: on_iris(
        CalibratedClassifier(
            GridSearchCV(linear(), {"C": [0.1, 1.0]}, cv=3), VectorCalibrator(), cv=3
        )
    ),
    "conformal": lambda: on_iris(ConformalClassifier(linear(), class_conditional=True)),
    "conformal-split": lambda: on_iris(
        ConformalClassifier(
            GaussianNB(), score="cumulative", randomized=True, cv=0.3, random_state=0
        )
    ),
    "conformal-frozen": lambda: on_iris(
        ConformalClassifier(FrozenEstimator(LinearSVC().fit(X, NAMES)))
    ),
    "conformal-full": lambda: on_iris(ConformalClassifier(GaussianNB(), cv="full")),
    "fusion-joint": fused,
    "fusion-independent": lambda: fused(method="independent"),
    "fusion-dempster": lambda: fused(method="independent", rule="dempster", discount=0.1),
    "fusion-calibrator": lambda: fused(
        method="independent", calibrator=EvidentialMultinomialCalibrator()
    ),
    "fusion-masses": lambda: weighed("contour"),
    "fusion-masses-cautious": lambda: weighed("cautious"),
    "evidential": lambda: on_iris(EvidentialClassifier(linear())),
    "evidential-pipeline": lambda: on_iris(
        EvidentialClassifier(make_pipeline(StandardScaler(), linear()))
    ),
    "evidential-table": evidential_table,
    "evidential-lbfgs": lambda: on_iris(EvidentialClassifier(neurons("lbfgs"))),
    "evidential-adam": lambda: on_iris(EvidentialClassifier(neurons("adam"))),
    "evidential-sgd": lambda: on_iris(EvidentialClassifier(neurons("sgd"))),
    **{
        f"discriminant-{kind}": lambda kind=kind: on_iris(
            ImpreciseGaussianDiscriminant(covariance_type=kind, c=0.5)
        )
        for kind in ("tied", "full", "diag", "spherical")
    },
    "discriminant-auto": lambda: on_iris(ImpreciseGaussianDiscriminant(c="auto", cv=3)),
    "discriminant-priors": lambda: on_iris(
        ImpreciseGaussianDiscriminant(prior_imprecision=2.0, covariance_imprecision=1.0), NUMBERS
    ),
    "novelty": lambda: on_iris(NoveltyAwareClassifier(linear(), rate=0.5)),
    "novelty-frozen": lambda: on_iris(
        NoveltyAwareClassifier(
            FrozenEstimator(make_pipeline(StandardScaler(), linear()).fit(X, NAMES)), rate=0.5
        )
    ),
    "novelty-table": novelty_table,
    "novelty-sparse": sparse_novelty,
    "reject": lambda: on_iris(RejectClassifier(linear(), cost=0.1, reject_label="none")),
    "nested": nested,
    "nested-words": lambda: nested(words=True),
    "nested-bayes": lambda: nested(estimator=MultinomialNB()),
    "nested-gaussians": lambda: nested(estimator=GaussianNB()),
    "nested-pipeline": lambda: nested(estimator=make_pipeline(StandardScaler(), linear())),
    "nested-forest": lambda: nested(estimator=RandomForestClassifier(3, random_state=0)),
    "nested-neighbours": lambda: nested(estimator=KNeighborsClassifier()),
    "nested-platt": lambda: nested(internal="platt"),
    "nested-isotonic": lambda: nested(internal="isotonic"),
    "nested-evidential": lambda: nested(internal=EvidentialLogisticCalibrator()),
    "nested-vector": lambda: nested(external="vector"),
    "nested-both": lambda: nested(internal="platt", external="vector", words=True),
    "nested-sparse": lambda: nested(packed=True),
    "nested-sparse-bayes": lambda: nested(estimator=MultinomialNB(), packed=True, internal="platt"),
    "nested-float32": lambda: nested(dtype=np.float32),
    "nested-tree": lambda: nested(structure=DichotomyTree.from_nested(TREE)),
    "nested-tuple": lambda: nested(structure=TREE),
    "ensemble": ensemble,
    "ensemble-bayes": lambda: ensemble(estimator=MultinomialNB()),
    "ensemble-trees": lambda: ensemble(
        estimator=NestedDichotomyClassifier(internal="isotonic"), pooling="arithmetic"
    ),
    "pipeline": lambda: prepared(CalibratedClassifier(LinearSVC(), PlattCalibrator(), cv=3)),
    "pipeline-discriminant": lambda: prepared(ImpreciseGaussianDiscriminant(c=0.5)),
    "pipeline-bayes": lambda: prepared(NestedDichotomyClassifier(GaussianNB())),
}

#: Types the user must name as trusted: scikit-learn does not check the indices in them.
NEIGHBOURS = (
    "sklearn.metrics._dist_metrics.EuclideanDistance64",
    "sklearn.neighbors._classification.KNeighborsClassifier",
    "sklearn.neighbors._kd_tree.KDTree",
)
TRUSTED = {"calibrated-neighbours": NEIGHBOURS, "nested-neighbours": NEIGHBOURS}


@cache
def fitted(name):
    """Return a model and its rows; fitted once."""
    return MODELS[name]()


def answers(model, rows):
    """Return all outputs of a model for some rows, by method name."""
    outputs = {"predict": model.predict(rows), "classes": np.asarray(model.classes_)}
    for question in (
        *("predict_proba", "predict_bounds", "predict_set", "predict_contour"),
        *("conflict", "critical_c", "familiarity"),
    ):
        if hasattr(model, question):
            outputs[question] = getattr(model, question)(rows)
    if "predict_bounds" in outputs:
        bounds = outputs.pop("predict_bounds")
        outputs.update(lower=bounds.lower, upper=bounds.upper)
    if hasattr(model, "predict_topk"):
        outputs.update(zip(("top labels", "top values"), model.predict_topk(rows, 2), strict=False))
    if hasattr(model, "explain"):
        outputs["text"] = np.array(model.explain(rows[:2]).text())
    return outputs
