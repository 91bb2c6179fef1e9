"""Which types a model file may name, and how objects of them may be made.

Trusted are plain values and arrays; the estimators of scikit-learn that are vouched for; classes of
dubito's model rooms; a short list of helpers of numpy, scipy and scikit-learn that hold plain
values; and what the user names. All but the user's may be made only in the ways in which `save`
writes them. Functions, and whatever else could be called, are never trusted unasked.
"""

from __future__ import annotations

import re
from importlib import import_module
from typing import TYPE_CHECKING, Any

from dubito.saving._errors import ModelFileError
from dubito.saving._trees import CHECKED
from dubito.saving._vouched import vouched_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dubito.saving._schema import Use

#: What Python calls a type. Anything else is not repeated to the user, who may paste it somewhere.
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*")

#: The rooms whose classes models are made of. Other rooms read, write, download or plot.
MODEL_ROOMS = (
    "_kernels",
    "belief",
    "calibration",
    "conformal",
    "dichotomies",
    "discriminant",
    "evidence",
    "pipeline",
)

#: Loaders that set attributes or fill a named tuple, and the one that calls the class.
_BY_STATE = frozenset({"ObjectNode", "TupleNode"})
_BY_CALL = "ConstructorFromReduceNode"

#: Read and found to hold values alone: making one runs nothing of the file's choosing.
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

#: Loader -> the plain values it may make. Types stand beside the keys of every dict; elsewhere
#: `refuse_odd_parts` lets numbers' types pass alone.
_PLAIN: dict[str, frozenset[str]] = {
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

#: Modules whose small objects skops trusts by itself, and by which loaders.
_LOSSES = {
    "_loss": "LossNode",  # as compiled modules of scikit-learn before 1.7 call themselves
    "sklearn._loss._loss": "LossNode",
    "sklearn._loss.link": "ObjectNode",
    "sklearn._loss.loss": "ObjectNode",
    "sklearn.ensemble._hist_gradient_boosting.binning": "ObjectNode",
    "sklearn.linear_model._sgd_fast": "LossNode",
}

_WITH_TREES = ("sklearn.ensemble.", "sklearn.tree.")

#: Modules that run, open or fetch things: how to allow them is not even told.
_NO_PART_OF_A_MODEL = frozenset(
    {
        *("builtins", "ctypes", "importlib", "nt", "os", "pickle", "posix", "pty", "runpy"),
        *("shutil", "socket", "subprocess", "sys"),
    }
)


def model_class(name: str) -> type | None:
    """Return the class of a model room that has this full name, or None.

    It must be defined where the name says: functions, what a module only imports, and anything
    reached through a class are none.
    """
    module_name, _, class_name = name.rpartition(".")
    package, _, within = module_name.partition(".")
    if package != "dubito" or within.partition(".")[0] not in MODEL_ROOMS:
        return None
    try:
        found = vars(import_module(module_name)).get(class_name)
    except ImportError:
        return None
    named_so = isinstance(found, type) and (found.__module__, found.__qualname__)
    return found if named_so == (module_name, class_name) else None


def loaders_of(name: str) -> frozenset[str]:
    """Return by which loaders objects of a type may be made without the user's word."""
    if name in vouched_names():
        return frozenset({"ObjectNode"})
    if name in HELPERS or name in CHECKED:
        return HELPERS.get(name) or CHECKED[name]
    kind = model_class(name)
    if kind is None:
        return frozenset()
    # A class that says itself that pickles call it, as DichotomyTree does, checks what it is given.
    called = any("__reduce__" in vars(base) for base in kind.__mro__ if base is not object)
    return _BY_STATE | {_BY_CALL} if called else _BY_STATE


def allowed_names(
    untrusted: Iterable[str], uses: Sequence[Use], trusted: Sequence[str], path: str
) -> list[str]:
    """Return the types to load beyond those skops trusts, or refuse the file.

    skops may trust more than is trusted here, and find names where none are looked for here: both
    must have nothing to say against the file.
    """
    names = set(untrusted)
    found = {use.name for use in uses}
    refused = {use.name for use in uses if not _is_allowed(use, skops_trusts=use.name not in names)}
    refused |= names - found
    refused -= set(trusted)
    if any(name.startswith(_WITH_TREES) for name in refused):
        # They could not be looked through in there: all is asked for at once.
        refused |= (CHECKED.keys() & found) - set(trusted)
    if refused:
        raise ModelFileError(refusal(sorted(refused), path))
    return sorted(names)


def _is_allowed(use: Use, *, skops_trusts: bool) -> bool:
    if use.loader == "JsonNode" or use.name in _PLAIN.get(use.loader, ()):
        return True
    if skops_trusts and _LOSSES.get(use.name.rpartition(".")[0]) == use.loader:
        return True
    return use.loader in loaders_of(use.name)


def refusal(names: Sequence[str], path: str, why: str | None = None) -> str:
    """Say which types stand in the way, and how to allow them where an honest model may need it."""
    if not all(map(_NAME.fullmatch, names)):
        return (
            f"{path} was not loaded: it names what has no name in Python. The file may have been "
            "made to do harm."
        )
    named = ", ".join(names)
    found = f"{path} was not loaded: {why or f'it names {named}'}."
    if any(name.partition(".")[0] in _NO_PART_OF_A_MODEL for name in names):
        return f"{found} No model needs that; the file may have been made to do harm."
    if any(name.partition(".")[0] == "dubito" for name in names):
        return (
            f"{found} This dubito saves no model so: the file comes from another version of it, or "
            "somebody changed it. Fit the model again."
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
    return [
        f"{item.__module__}.{item.__qualname__}" if isinstance(item, type) else str(item)
        for item in trusted
    ]
