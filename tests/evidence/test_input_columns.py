"""The input column behind each feature, against what happens when a column is changed."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.decomposition import PCA
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
from sklearn.feature_selection import RFE, SelectFromModel, SelectKBest, VarianceThreshold
from sklearn.frozen import FrozenEstimator
from sklearn.impute import KNNImputer, MissingIndicator, SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline, make_union
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KBinsDiscretizer,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    SplineTransformer,
    StandardScaler,
    TargetEncoder,
)

from dubito.evidence.input_columns import input_columns

RNG = np.random.default_rng(5)
#: Three columns of measurements, two of small whole numbers; each label depends on all of them.
NUMBERS = np.column_stack([RNG.normal(size=(120, 3)), RNG.integers(0, 5, size=(120, 2))]) + 4.0
LABELS = np.digitize(NUMBERS.sum(axis=1) + RNG.normal(size=120), [21, 23])
FRAME = pd.DataFrame(NUMBERS, columns=list("abcde"))
GAPS = NUMBERS.copy()
GAPS[::7, 1] = np.nan
GAPS[::5, 4] = np.nan


def dense(transformer, X):
    out = transformer.transform(X)
    return np.asarray(out.toarray() if hasattr(out, "toarray") else out, dtype=float)


def columns_that_matter(transformer, X):
    """By definition: change one input column at a time and see which features move."""
    before = dense(transformer, X)
    moved = np.zeros((before.shape[1], X.shape[1]), dtype=bool)
    for j in range(X.shape[1]):
        changed = X.copy()
        order = RNG.permutation(len(X))
        if isinstance(X, pd.DataFrame):
            changed.iloc[:, j] = X.iloc[order, j].to_numpy()
        else:
            changed[:, j] = X[order, j]
        after = dense(transformer, changed)
        moved[:, j] = ~np.isclose(before, after, equal_nan=True).all(axis=0)
    return [np.flatnonzero(row).tolist() for row in moved]


def of_one(found):
    return [inputs[0] if len(inputs) == 1 else None for inputs in found]


CERTAIN = {
    "scaler": StandardScaler(),
    "min and max": MinMaxScaler(),
    "robust": RobustScaler(),
    "power": PowerTransformer(),
    "quantile": QuantileTransformer(n_quantiles=20),
    "binary": Binarizer(threshold=5),
    "ordinal": OrdinalEncoder(),
    "normalizer": Normalizer(),
    "tf-idf": TfidfTransformer(),
    "idf alone": TfidfTransformer(norm=None),
    "best": SelectKBest(k=2),
    "variance": VarianceThreshold(threshold=1.5),
    "from a model": SelectFromModel(LogisticRegression(), threshold="median"),
    "elimination": RFE(LogisticRegression(), n_features_to_select=2),
    "splines": SplineTransformer(n_knots=4),
    "splines without bias": SplineTransformer(n_knots=3, degree=2, include_bias=False),
    "powers": PolynomialFeatures(degree=3),
    "interactions": PolynomialFeatures(interaction_only=True, include_bias=False),
    "bins": KBinsDiscretizer(n_bins=3, strategy="uniform"),
    "numbers of bins": KBinsDiscretizer(
        n_bins=[2, 3, 4, 2, 3], encode="ordinal", strategy="uniform"
    ),
    "uneven bins": KBinsDiscretizer(n_bins=[2, 3, 4, 2, 3], strategy="uniform"),
    "targets of three classes": TargetEncoder(random_state=0),
    "nothing done": FunctionTransformer(),
    "logarithm": FunctionTransformer(np.log1p, feature_names_out="one-to-one"),
    "imputer": SimpleImputer(),
    "frozen": FrozenEstimator(StandardScaler().fit(NUMBERS)),
    "components": PCA(n_components=3),
    "chain": make_pipeline(
        SimpleImputer(), SelectKBest(k=3), StandardScaler(), PolynomialFeatures(degree=2)
    ),
    "chain of nothing": Pipeline([("a", "passthrough"), ("b", None)]),
    "mixed, then one by one": make_pipeline(PCA(), StandardScaler()),
    "chosen, then mixed": make_pipeline(SelectKBest(k=2), PCA(), SplineTransformer()),
    "union": make_union(StandardScaler(), PCA(n_components=2), SplineTransformer(), "passthrough"),
    "union with a part dropped": FeatureUnion([("a", SelectKBest(k=2)), ("b", "drop")]),
    "columns by number": ColumnTransformer(
        [
            ("splines", SplineTransformer(n_knots=3), [3, 0]),
            ("components", PCA(n_components=1), [1, 2]),
            ("none", StandardScaler(), []),
        ],
        remainder="passthrough",
    ),
    "columns by slice, mask and from the end": ColumnTransformer(
        [
            ("slice", StandardScaler(), slice(1, 3)),
            ("mask", PolynomialFeatures(2), [True, False, False, True, False]),
            ("end", "passthrough", [-1]),
            ("twice", "passthrough", slice(-2, None)),
        ]
    ),
    "remainder scaled": ColumnTransformer(
        [("left out", "drop", [0, 2])], remainder=StandardScaler()
    ),
    "remainder one by one, sparse": ColumnTransformer(
        [("categories", OneHotEncoder(), [3, 4])],
        remainder=SplineTransformer(),
        sparse_threshold=1,
    ),
    "columns in columns": ColumnTransformer(
        [
            (
                "inner",
                make_pipeline(
                    ColumnTransformer([("x", "passthrough", [2, 0])], remainder="passthrough"),
                    StandardScaler(),
                ),
                [4, 3, 1],
            )
        ],
        remainder="passthrough",
    ),
}


@pytest.mark.parametrize("name", CERTAIN)
def test_features_move_with_the_column_named_and_no_other(name):
    transformer = CERTAIN[name].fit(NUMBERS, LABELS)
    found = columns_that_matter(transformer, NUMBERS)
    assert input_columns(transformer, 5, len(found)) == of_one(found)


NAMED = {
    "one name": ColumnTransformer([("a", SplineTransformer(), ["c"])], remainder="passthrough"),
    "names": ColumnTransformer([("a", PolynomialFeatures(), ["d", "b"]), ("b", "drop", ["a"])]),
    "slice of names": ColumnTransformer([("a", StandardScaler(), slice("b", "d"))]),
    "from a name on": ColumnTransformer([("a", StandardScaler(), slice("d", None))]),
    "up to a name": ColumnTransformer(
        [("a", StandardScaler(), slice(None, "b"))], remainder="passthrough"
    ),
    "a function that picks": ColumnTransformer(
        [("a", StandardScaler(), make_column_selector(pattern="[bd]"))], remainder=PCA()
    ),
    "names after names": make_pipeline(
        StandardScaler().set_output(transform="pandas"),
        ColumnTransformer([("a", KBinsDiscretizer(2, strategy="uniform"), ["e"])]),
    ),
}


@pytest.mark.parametrize("name", NAMED)
def test_columns_picked_by_name(name):
    transformer = NAMED[name].fit(FRAME, LABELS)
    found = columns_that_matter(transformer, FRAME)
    assert input_columns(transformer, 5, len(found)) == of_one(found)


def test_whatever_is_made_of_one_column_is_made_of_that_column():
    table = FRAME.assign(c="red green", d="blue")
    words = ColumnTransformer(
        [
            ("words", CountVectorizer(), "c"),
            ("logarithm", FunctionTransformer(np.log1p), ["e"]),
            ("both", make_union(PCA(), FunctionTransformer()), ["a"]),
        ]
    ).fit(table)
    assert input_columns(words, 5, 5) == [2, 2, 4, 0, 0]


CATEGORIES = NUMBERS[:, 3:].astype(int)
RARE = CATEGORIES.copy()
RARE[:2, 0], RARE[2, 0], RARE[3, 1] = 7, 8, 9


@pytest.mark.parametrize(
    "encoder",
    [
        OneHotEncoder(),
        OneHotEncoder(drop="first"),
        OneHotEncoder(drop="if_binary"),
        OneHotEncoder(categories=[list(range(10)), list(range(12))], drop=[4, 5]),
        OneHotEncoder(min_frequency=3, handle_unknown="infrequent_if_exist"),
        OneHotEncoder(max_categories=3, drop="first"),
        OneHotEncoder(categories=[list(range(10)), list(range(12))]),
    ],
    ids=str,
)
@pytest.mark.parametrize("table", [CATEGORIES, RARE, np.where(RARE > 5, 1, 0)])
def test_categories(encoder, table):
    encoder.fit(table)
    names = encoder.get_feature_names_out(["x0", "x1"])
    assert input_columns(encoder, 2, len(names)) == [int(name[1]) for name in names]


@pytest.mark.parametrize("classes", [2, 3])
def test_target_encoders_make_one_feature_for_each_class_beyond_two(classes):
    encoder = TargetEncoder(random_state=0).fit(CATEGORIES, np.arange(120) % classes)
    expected = [0, 1] if classes == 2 else [0, 0, 0, 1, 1, 1]
    assert input_columns(encoder, 2, len(expected)) == expected


@pytest.mark.parametrize(
    ("imputer", "expected"),
    [
        (SimpleImputer(), [0, 1, 2, 3, 4]),
        (SimpleImputer(add_indicator=True), [0, 1, 2, 3, 4, 1, 4]),
        (KNNImputer(add_indicator=True), [0, 1, 2, 3, 4, 1, 4]),
        (MissingIndicator(), [1, 4]),
        (MissingIndicator(features="all"), [0, 1, 2, 3, 4]),
    ],
    ids=str,
)
@pytest.mark.parametrize("as_frame", [False, True])
def test_gaps_filled(imputer, expected, as_frame):
    imputer.fit(pd.DataFrame(GAPS, columns=list("abcde")) if as_frame else GAPS)
    assert input_columns(imputer, 5, len(expected)) == expected


@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize("strategy", ["mean", "most_frequent"])
def test_empty_columns_are_left_out(kept, strategy):
    empty = NUMBERS.copy()
    empty[:, 2] = np.nan
    imputer = SimpleImputer(strategy=strategy, keep_empty_features=kept).fit(empty)
    expected = [0, 1, 2, 3, 4] if kept else [0, 1, 3, 4]
    assert input_columns(imputer, 5, len(expected)) == expected


def test_names_that_could_be_two_columns_are_not_guessed():
    table = pd.DataFrame({"a": [1.0, np.nan, 2.0], "missingindicator_a": [1.0, 2.0, 3.0]})
    imputer = SimpleImputer(add_indicator=True).fit(table)
    assert input_columns(imputer, 2, 3) == [0, None, None]


@pytest.mark.parametrize("same", [None, "passthrough", Pipeline([("a", "passthrough")])])
def test_nothing_done_keeps_every_column(same):
    assert input_columns(same, 3, 3) == [0, 1, 2]


class Doubling(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Says one thing by its class and does another."""

    def fit(self, X, y=None):  # noqa: ARG002
        self.n_features_in_ = X.shape[1]
        return self

    def transform(self, X):
        return np.hstack([X, X[:, ::-1]])


@pytest.mark.parametrize(
    ("transformer", "n_outputs"),
    [
        (FunctionTransformer(np.log1p), 5),
        (make_union(FunctionTransformer(np.log1p), StandardScaler()), 10),
        (make_pipeline(FunctionTransformer(np.log1p), StandardScaler()), 5),
        (Doubling(), 10),
        (make_pipeline(Doubling(), StandardScaler()), 10),
        (ColumnTransformer([("a", Doubling(), [0, 1])]), 4),
    ],
    ids=str,
)
def test_columns_that_cannot_be_traced_are_not_named(transformer, n_outputs):
    transformer.fit(NUMBERS)
    assert dense(transformer, NUMBERS).shape[1] == n_outputs
    assert input_columns(transformer, 5, n_outputs) == [None] * n_outputs
