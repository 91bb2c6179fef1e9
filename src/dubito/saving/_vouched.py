"""The estimators of scikit-learn that are made from a file without the user's word.

skops trusts all of them. Listed here are those that were read with a forger in mind: what they hold
is used as numbers, as plain choices, or as further estimators, all looked at by `refuse_odd_parts`.
Left out are those that open files (text vectorizers), that follow numbers of the file without a
look (nearest neighbours, clusters), and those nobody needs for a classifier.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module

_VOUCHED = {
    "sklearn.calibration": ("CalibratedClassifierCV",),
    "sklearn.compose": ("ColumnTransformer",),
    "sklearn.decomposition": ("FactorAnalysis", "FastICA", "IncrementalPCA", "PCA", "TruncatedSVD"),
    "sklearn.discriminant_analysis": (
        "LinearDiscriminantAnalysis",
        "QuadraticDiscriminantAnalysis",
    ),
    "sklearn.dummy": ("DummyClassifier",),
    "sklearn.ensemble": (
        "AdaBoostClassifier",
        "BaggingClassifier",
        "ExtraTreesClassifier",
        "HistGradientBoostingClassifier",
        "RandomForestClassifier",
        "StackingClassifier",
        "VotingClassifier",
    ),
    "sklearn.feature_selection": ("RFE", "SelectFromModel", "VarianceThreshold"),
    "sklearn.frozen": ("FrozenEstimator",),
    "sklearn.impute": ("MissingIndicator", "SimpleImputer"),
    "sklearn.isotonic": ("IsotonicRegression",),
    "sklearn.kernel_approximation": ("Nystroem", "RBFSampler"),
    "sklearn.linear_model": (
        "ElasticNet",
        "Lasso",
        "LinearRegression",
        "LogisticRegression",
        "LogisticRegressionCV",
        "PassiveAggressiveClassifier",
        "Perceptron",
        "Ridge",
        "RidgeClassifier",
        "RidgeClassifierCV",
        "SGDClassifier",
    ),
    "sklearn.model_selection": ("FixedThresholdClassifier", "GridSearchCV", "RandomizedSearchCV"),
    "sklearn.multiclass": ("OneVsOneClassifier", "OneVsRestClassifier"),
    "sklearn.naive_bayes": (
        "BernoulliNB",
        "CategoricalNB",
        "ComplementNB",
        "GaussianNB",
        "MultinomialNB",
    ),
    "sklearn.neural_network": ("MLPClassifier",),
    "sklearn.pipeline": ("FeatureUnion", "Pipeline"),
    "sklearn.preprocessing": (
        "Binarizer",
        "FunctionTransformer",
        "KBinsDiscretizer",
        "LabelBinarizer",
        "LabelEncoder",
        "MaxAbsScaler",
        "MinMaxScaler",
        "Normalizer",
        "OneHotEncoder",
        "OrdinalEncoder",
        "PolynomialFeatures",
        "PowerTransformer",
        "QuantileTransformer",
        "RobustScaler",
        "StandardScaler",
        "TargetEncoder",
    ),
    "sklearn.random_projection": ("GaussianRandomProjection", "SparseRandomProjection"),
    "sklearn.svm": ("LinearSVC", "NuSVC", "SVC"),
    "sklearn.tree": ("DecisionTreeClassifier", "ExtraTreeClassifier"),
}


@cache
def vouched_names() -> frozenset[str]:
    """Return the full names of these classes, by the modules that define them."""
    found = (
        getattr(import_module(module), name, None)
        for module, names in _VOUCHED.items()
        for name in names
    )
    return frozenset(f"{kind.__module__}.{kind.__qualname__}" for kind in found if kind is not None)
