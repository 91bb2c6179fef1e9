"""Which types a model file may name, and by which skops loaders they may be created.

Trusted are plain values and arrays; reviewed estimators of scikit-learn; the classes of dubito's
model packages; a short list of helpers of numpy, scipy and scikit-learn that hold plain values; and
what the user names. All but the user's may be created only by the skops loaders that `save` uses
for them. Functions and other callables are trusted only if the user names them.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from dubito.saving.archive import ModelFileError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dubito.saving.archive import TypeReference

#: Valid full names of types. Anything else is not shown to the user, who might paste it.
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*")

#: The packages that define models. The others read, write, download or plot.
MODEL_PACKAGES = (
    "_numerics",
    "belief",
    "calibration",
    "conformal",
    "dichotomies",
    "discriminant",
    "evidence",
    "pipeline",
)

#: Estimators of scikit-learn that are loaded without being named by the user, by module. skops
#: trusts all estimators; these were reviewed with forged files in mind: what they hold is used as
#: numbers, as options or as further estimators, all of which `refuse_odd_parts` checks. Not listed
#: are those that open files (text vectorizers), that use indices of the file unchecked (nearest
#: neighbours, clusters), and those that no classifier needs.
_REVIEWED = {
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

#: Tree structures that are loaded without being named by the user if `dubito.saving.indices` finds
#: their indices valid, and their skops loaders.
TREE = "sklearn.tree._tree.Tree"
TREE_PREDICTOR = "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor"
CHECKED = {TREE: frozenset({"TreeNode"}), TREE_PREDICTOR: frozenset({"ObjectNode"})}

#: Loaders that set attributes or fill a named tuple, and the one that calls the class instead.
_BY_STATE = frozenset({"ObjectNode", "TupleNode"})
_BY_CALL = "ConstructorFromReduceNode"

#: Reviewed types that hold values only: creating one runs nothing that the file chooses.
HELPERS: dict[str, frozenset[str]] = {
    "numpy.dtype": frozenset({"DTypeNode"}),
    "sklearn.utils._bunch.Bunch": frozenset({"DictNode"}),
    **dict.fromkeys(
        (
            "scipy.sparse._csc.csc_array",
            "scipy.sparse._csc.csc_matrix",
            "scipy.sparse._csr.csr_array",
            "scipy.sparse._csr.csr_matrix",
        ),
        frozenset({"SparseMatrixNode"}),
    ),
    **dict.fromkeys(
        (
            "sklearn.calibration._CalibratedClassifier",
            "sklearn.calibration._SigmoidCalibration",
            "sklearn.compose._column_transformer._RemainderColsList",  # before 1.9
            "sklearn.compose._column_transformer.make_column_selector",
            "sklearn.metrics._scorer._PassthroughScorer",
            "sklearn.model_selection._split.GroupKFold",
            "sklearn.model_selection._split.KFold",
            "sklearn.model_selection._split.ShuffleSplit",
            "sklearn.model_selection._split.StratifiedGroupKFold",
            "sklearn.model_selection._split.StratifiedKFold",
            "sklearn.model_selection._split.StratifiedShuffleSplit",
            "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
            "sklearn.neural_network._stochastic_optimizers.SGDOptimizer",
            "sklearn.utils._metadata_requests.MetadataRequest",
            "sklearn.utils._metadata_requests.MethodMetadataRequest",
        ),
        frozenset({"ObjectNode"}),
    ),
}

_NUMBERS = frozenset(
    {
        *(f"numpy.float{bits}" for bits in (16, 32, 64)),
        *(f"numpy.{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)),
        *("numpy.bool", "numpy.bool_", "numpy.longdouble", "numpy.longlong", "numpy.ulonglong"),
    }
)

#: Loader of skops -> the plain types it may create. "TypeNode": skops stores the type of the keys
#: of every dict; `refuse_odd_parts` allows a type anywhere else only if it is that of a number.
_PLAIN_TYPES: dict[str, frozenset[str]] = {
    "BytearrayNode": frozenset({"builtins.bytearray"}),
    "BytesNode": frozenset({"builtins.bytes"}),
    "DictNode": frozenset({"builtins.dict", "collections.OrderedDict"}),
    "ListNode": frozenset({"builtins.list"}),
    "MaskedArrayNode": frozenset({"numpy.ma.MaskedArray", "numpy.ma.core.MaskedArray"}),
    "NdArrayNode": frozenset({"numpy.ndarray", "numpy.str_", *_NUMBERS}),
    "RandomGeneratorNode": frozenset({"numpy.random._generator.Generator"}),
    "RandomStateNode": frozenset({"numpy.random.mtrand.RandomState"}),
    "SetNode": frozenset({"builtins.set"}),
    "SliceNode": frozenset({"builtins.slice"}),
    "TupleNode": frozenset({"builtins.tuple"}),
    "TypeNode": frozenset(
        {"builtins.bool", "builtins.float", "builtins.int", "builtins.str", "numpy.str_", *_NUMBERS}
    ),
}

#: Modules of scikit-learn's losses, links and bins, which skops trusts, and the loader of each.
_LOSSES = {
    "_loss": "LossNode",  # as compiled modules of scikit-learn before 1.7 call themselves
    "sklearn._loss._loss": "LossNode",
    "sklearn._loss.link": "ObjectNode",
    "sklearn._loss.loss": "ObjectNode",
    "sklearn.ensemble._hist_gradient_boosting.binning": "ObjectNode",
    "sklearn.linear_model._sgd_fast": "LossNode",
}

#: Modules of estimators that hold trees.
_WITH_TREES = ("sklearn.ensemble.", "sklearn.tree.")

#: Modules that run programs, open files or use the network: no message says how to allow them.
_NO_PART_OF_A_MODEL = frozenset(
    {
        *("builtins", "ctypes", "importlib", "nt", "os", "pickle", "posix", "pty", "runpy"),
        *("shutil", "socket", "subprocess", "sys"),
    }
)


@cache
def reviewed_names() -> frozenset[str]:
    """Return the full names of the reviewed estimators, by the modules that define them."""
    found = (
        getattr(import_module(module), name, None)
        for module, names in _REVIEWED.items()
        for name in names
    )
    return frozenset(full_name(cls) for cls in found if cls is not None)


def full_name(cls: type) -> str:
    """Return the name of a type with its module."""
    return f"{cls.__module__}.{cls.__qualname__}"


def model_class(name: str) -> type | None:
    """Return the class of a model package that has this full name, or None.

    It must be defined in the module named: functions, imported names and attributes of classes do
    not count.
    """
    module_name, _, class_name = name.rpartition(".")
    package, _, within = module_name.partition(".")
    if package != "dubito" or within.partition(".")[0] not in MODEL_PACKAGES:
        return None
    try:
        found = vars(import_module(module_name)).get(class_name)
    except ImportError:
        return None
    named_so = isinstance(found, type) and (found.__module__, found.__qualname__)
    return found if named_so == (module_name, class_name) else None


def loaders_of(name: str) -> frozenset[str]:
    """Return the loaders that may create objects of a type that the user has not named."""
    if name in reviewed_names():
        return frozenset({"ObjectNode"})
    if name in HELPERS or name in CHECKED:
        return HELPERS.get(name) or CHECKED[name]
    cls = model_class(name)
    if cls is None:
        return frozenset()
    # A class with its own __reduce__, as DichotomyTree, checks its arguments when it is called.
    called = any("__reduce__" in vars(base) for base in cls.__mro__ if base is not object)
    return _BY_STATE | {_BY_CALL} if called else _BY_STATE


def allowed_names(
    untrusted: Iterable[str], references: Sequence[TypeReference], trusted: Sequence[str], path: str
) -> list[str]:
    """Return the types to load beyond those skops trusts, or raise an error.

    Both lists must allow the file: skops trusts types that are not trusted here, and may find names
    that are not found here.
    """
    names = set(untrusted)
    found = {reference.name for reference in references}
    refused = {
        reference.name
        for reference in references
        if not _is_allowed(reference, skops_trusts=reference.name not in names)
    }
    refused |= names - found
    refused -= set(trusted)
    if any(name.startswith(_WITH_TREES) for name in refused):
        # Trees in such an ensemble cannot be checked: the user must name them as well.
        refused |= (CHECKED.keys() & found) - set(trusted)
    if refused:
        raise ModelFileError(refusal(sorted(refused), path))
    return sorted(names)


def _is_allowed(reference: TypeReference, *, skops_trusts: bool) -> bool:
    if reference.loader == "JsonNode" or reference.name in _PLAIN_TYPES.get(reference.loader, ()):
        return True
    if skops_trusts and _LOSSES.get(reference.name.rpartition(".")[0]) == reference.loader:
        return True
    return reference.loader in loaders_of(reference.name)


def refusal(names: Sequence[str], path: str, why: str | None = None) -> str:
    """Return the message that names untrusted types and, where reasonable, how to allow them."""
    if not all(map(_NAME.fullmatch, names)):
        return (
            f"{path} was not loaded: it names what cannot be a name in Python. The file may have "
            "been made to do harm."
        )
    named = ", ".join(names)
    found = f"{path} was not loaded: {why or f'it names {named}'}."
    if any(name.partition(".")[0] in _NO_PART_OF_A_MODEL for name in names):
        return f"{found} No model needs that; the file may have been made to do harm."
    if any(name.partition(".")[0] == "dubito" for name in names):
        return (
            f"{found} This version of dubito saves no such model: the file comes from another "
            "version, or somebody changed it. Fit the model again."
        )
    flags = " ".join(f"--trust {name}" for name in names)
    return (
        f"{found} Made by a stranger, such parts can do harm. If you know who made the file, allow "
        f"them: load(path, trusted={list(names)!r}), or {flags} on the command line."
    )


def full_names(trusted: Any) -> list[str]:
    """Return the names of the types a user trusts."""
    if isinstance(trusted, bool | str | type) or not hasattr(trusted, "__iter__"):
        raise TypeError(
            "trusted must be a list of types or of their full names, as in "
            f"['xgboost.sklearn.XGBClassifier']. Got {trusted!r} instead."
        )
    return [full_name(item) if isinstance(item, type) else str(item) for item in trusted]
