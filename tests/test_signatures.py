"""The same parameter has the same name, default and place in every class and function."""

from __future__ import annotations

import inspect
from collections import Counter
from importlib import import_module
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import LinearSVC

import dubito
from dubito import metrics, plots, report
from dubito.decision import reject

PACKAGES = ("calibration", "conformal", "evidence", "discriminant", "dichotomies", "pipeline")

ESTIMATORS = {
    name: getattr(package, name)
    for package in (import_module(f"dubito.{name}") for name in PACKAGES)
    for name in package.__all__
    if inspect.isclass(getattr(package, name)) and hasattr(getattr(package, name), "fit")
}

#: Parameters that may be given by position: what an estimator is around.
BY_POSITION = {
    "CalibratedClassifier": ["estimator", "calibrator"],
    "EvidentialFusion": ["estimators"],
    "CautiousPipeline": ["steps"],
    "ConformalClassifier": ["estimator"],
    "EvidentialClassifier": ["estimator"],
    "NestedDichotomyClassifier": ["estimator"],
    "NestedDichotomyEnsemble": ["estimator"],
    "NoveltyAwareClassifier": ["estimator"],
    "RejectClassifier": ["estimator"],
}

#: Defaults that differ from those of the other classes: (parameter, class) -> default, reason.
OTHER_DEFAULTS = {
    ("cv", "NestedDichotomyClassifier"): (3, "three folds in each node (Leathart et al. 2019)"),
    ("cv", "EvidentialFusion"): (None, 'method="masses" has no folds and refuses a given cv'),
    ("ridge", "EvidentialJointCalibrator"): (0.0, "as published (Minary et al. 2017)"),
    ("ridge", "PlattCalibrator"): (0.0, "as published (Platt 1999): its targets are smoothed"),
    ("calibrator", "EvidentialFusion"): (None, "the calibrator that fits the method"),
    ("estimator", "CalibratedClassifier"): (None, "X are scores"),
    ("estimator", "NestedDichotomyClassifier"): (None, "logistic regression at each node"),
    ("estimator", "NestedDichotomyEnsemble"): (None, "a nested dichotomy with its defaults"),
    ("strategy", "RejectClassifier"): ("pignistic", "which risk counts, not how bins are cut"),
}

REQUIRED = inspect.Parameter.empty
_EQUAL_BINS = "every point of a curve is as certain as the others"
_OF_THE_MODEL = "by default that of a RejectClassifier"

#: The same for metrics, displays, the report and `reject`.
OTHER_FUNCTION_DEFAULTS = {
    ("boundary", "MassDisplay.from_estimator"): (False, "curves of masses are drawn there already"),
    ("cost", "reject"): (REQUIRED, "elsewhere it marks a point, or is that of the model"),
    ("grid_resolution", "MassDisplay.from_estimator"): (100, "all masses of each point"),
    ("kind", "EvidenceDisplay.from_estimator"): ("waterfall", "the other kinds need a piece"),
    ("sets", "evaluate"): (None, "a model has them"),
    ("strategy", "ReliabilityDisplay.from_estimator"): ("quantile", _EQUAL_BINS),
    ("strategy", "ReliabilityDisplay.from_predictions"): ("quantile", _EQUAL_BINS),
    ("strategy", "collect"): (None, _OF_THE_MODEL),
    ("strategy", "reject"): ("pignistic", "which risk counts, not how bins are cut"),
    ("strategy", "reliability_curve"): ("quantile", _EQUAL_BINS),
    ("strategy", "write_report"): (None, _OF_THE_MODEL),
    ("theta", "ContourDisplay.from_predictions"): (REQUIRED, "no calibrator chooses the points"),
    ("y", "DecisionRegionDisplay.from_estimator"): (None, "labels are drawn, not compared with"),
    ("y", "EvidenceDisplay.from_estimator"): (None, "labels are drawn, not compared with"),
    ("y", "evaluate"): (None, "arrays of predictions come without it"),
    ("y_proba", "ErrorRejectDisplay.from_predictions"): (None, "bounds have pignistic ones"),
    ("y_proba", "evaluate"): (None, "its own error says which arguments are missing"),
}

#: Displays whose second argument is no table of rows: display -> parameters after the estimator.
OTHER_ROWS = {"ContourDisplay": "scores", "TreeDisplay": None}

#: Displays of other predictions than labels with probabilities or bounds.
OTHER_PREDICTIONS = {"ContourDisplay": ["theta", "contour"]}

#: Classes whose methods are those of scikit-learn's Pipeline: they pass on any options.
PASSES_ON = {"CautiousPipeline"}

#: Methods of a model inside, which pass on any options.
OF_THE_INNER_MODEL = "dubito.pipeline._inner_methods"

#: Methods with another default of y: (method, class) -> the reason.
OPTIONAL_LABELS = {
    ("fit", "EvidentialClassifier"): "a frozen estimator needs no labels",
    ("fit", "NoveltyAwareClassifier"): "a frozen estimator needs no labels",
}

POSITIONAL = inspect.Parameter.POSITIONAL_OR_KEYWORD
KEYWORD = inspect.Parameter.KEYWORD_ONLY


def parameters(function):
    return [p for p in inspect.signature(function).parameters.values() if p.name != "self"]


def init_parameters(name):
    return parameters(ESTIMATORS[name].__init__)


def public_methods(name):
    """Return the public methods of a class, also those that only some settings have."""
    found = {}
    for method in dir(ESTIMATORS[name]):
        member = inspect.getattr_static(ESTIMATORS[name], method)
        generated = method in {"get_params", "get_metadata_routing"} or method.startswith("set_")
        if method.startswith("_") or generated or isinstance(member, property):
            continue
        # `available_if` keeps the method in `fn`.
        function = getattr(member, "fn", getattr(member, "_function", member))
        if inspect.isfunction(function):
            found[method] = function
    return found


def defaults_that_differ(named):
    """Return (parameter, owner) -> default where it is not the most frequent one of its name."""
    differ = {}
    for parameter in {p.name for given in named.values() for p in given}:
        found = {
            owner: p.default for owner, given in named.items() for p in given if p.name == parameter
        }
        usual = Counter(map(repr, found.values())).most_common(1)[0][0]
        differ |= {(parameter, o): value for o, value in found.items() if repr(value) != usual}
    return differ


def defaults(table):
    """Return the defaults of a table of exceptions, without the reasons."""
    return {key: default for key, (default, _) in table.items()}


def assert_same_order(named):
    for (one, given), (other, more) in combinations(named.items(), 2):
        first, second = [p.name for p in given], [p.name for p in more]
        common = [name for name in first if name in second]
        assert common == [name for name in second if name in first], (one, other)


def test_every_public_estimator_is_compared():
    assert len(ESTIMATORS) > 22
    others = {"save", "load", "NotSupportedError"}
    assert set(dubito._SHORTCUTS) - others <= set(ESTIMATORS)


def test_parameters_of_one_name_have_one_default():
    named = {name: init_parameters(name) for name in ESTIMATORS if name not in PASSES_ON}
    assert defaults_that_differ(named) == defaults(OTHER_DEFAULTS)


def test_common_parameters_are_in_the_same_order():
    assert_same_order({name: init_parameters(name) for name in ESTIMATORS})


@pytest.mark.parametrize("name", ESTIMATORS)
def test_parameters_are_keyword_only_after_the_estimator(name):
    by_position = [p.name for p in init_parameters(name) if p.kind is POSITIONAL]
    assert by_position == BY_POSITION.get(name, [])
    assert {p.kind for p in init_parameters(name)} <= {POSITIONAL, KEYWORD}


@pytest.mark.parametrize(
    ("parameter", "default"),
    [
        ("n_jobs", None),
        ("random_state", None),
        ("targets", "light"),
        ("input", "margin"),
        ("floor", "auto"),
        ("classes", None),
        ("holdout_size", "auto"),
        ("response_method", "auto"),
    ],
)
def test_defaults_of_the_design(parameter, default):
    found = [p.default for name in ESTIMATORS for p in init_parameters(name) if p.name == parameter]
    assert len(found) >= 2
    assert found == [default] * len(found)


def test_folds_and_hold_out_sizes_have_one_name():
    names = {p.name for name in ESTIMATORS for p in init_parameters(name)}
    folds = {name for name in names if name.endswith("cv") or "fold" in name}
    assert folds == {"cv"}
    assert {name for name in names if name.endswith("_size")} == {"holdout_size"}
    assert {name for name in names if "seed" in name or "random_state" in name} == {"random_state"}


def test_methods_of_one_name_take_the_same_parameters():
    by_method = {}
    for name in sorted(set(ESTIMATORS) - PASSES_ON):
        for method, function in public_methods(name).items():
            if function.__module__ != OF_THE_INNER_MODEL:
                by_method.setdefault(method, {})[name] = parameters(function)
    differ = set()
    for method, owners in by_method.items():
        # Calibrators call their rows scores.
        positional = {
            owner: [
                ("X" if p.name == "scores" else p.name, repr(p.default))
                for p in given
                if p.kind is POSITIONAL
            ]
            for owner, given in owners.items()
        }
        usual = Counter(map(str, positional.values())).most_common(1)[0][0]
        differ |= {(method, owner) for owner, given in positional.items() if str(given) != usual}
        keywords = {o: [p for p in given if p.kind is KEYWORD] for o, given in owners.items()}
        assert not defaults_that_differ(keywords), method
        assert_same_order(keywords)
    assert differ == set(OPTIONAL_LABELS)


@pytest.mark.parametrize("name", sorted(set(ESTIMATORS) - PASSES_ON))
def test_methods_have_the_signatures_of_the_design(name):
    methods = {m: [str(p.name) for p in parameters(f)] for m, f in public_methods(name).items()}
    assert methods["fit"][1:] == ["y", "sample_weight"]
    if "contour" in methods:
        assert methods["contour"] == ["scores", "theta"]
    if "predict_bounds" in methods:
        level = parameters(public_methods(name)["predict_bounds"])[1]
        assert (level.name, level.default, level.kind) == ("level", None, POSITIONAL)
    if "predict_set" in methods:
        _, rule, *more = parameters(public_methods(name)["predict_set"])
        assert (rule.name, rule.default, rule.kind) == ("rule", None, POSITIONAL)
        assert more[-1].kind is inspect.Parameter.VAR_KEYWORD
        assert {p.kind for p in more[:-1]} <= {KEYWORD}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_log_probabilities_wherever_there_are_probabilities(name):
    methods = dir(ESTIMATORS[name])
    assert ("predict_log_proba" in methods) == ("predict_proba" in methods)
    for inner in (KNeighborsClassifier(), LinearSVC()):  # KNeighborsClassifier has no logarithms
        model = unfitted(name, inner)
        assert hasattr(model, "predict_log_proba") == hasattr(model, "predict_proba")


@pytest.mark.parametrize(
    "name",
    ["CalibratedClassifier", "ConformalClassifier", "EvidentialFusion", "NoveltyAwareClassifier"],
)
def test_prefit_is_answered_with_frozen_estimator(name):
    with pytest.raises(ValueError, match=r"FrozenEstimator\(model\)"):
        unfitted(name).set_params(cv="prefit").fit([[0.0], [1.0]], [0, 1])


METRICS = {
    name: parameters(getattr(metrics, name))
    for name in metrics.__all__
    if inspect.isfunction(getattr(metrics, name))
}


@pytest.mark.parametrize("name", sorted(set(METRICS) - {"mean_set_size"}))
def test_metrics_begin_with_true_labels_and_predictions(name):
    first, second, *more = METRICS[name]
    assert first.name == "y_true"
    assert second.name in {"y_proba", "sets", "y_pred"}
    assert "sample_weight" in [p.name for p in more if p.kind is KEYWORD]


DISPLAYS = {
    f"{name}.{method}": parameters(getattr(display, method))
    for name, display in ((name, getattr(plots, name)) for name in plots.__all__)
    for method in sorted(dir(display))
    if method.startswith("from_") or method == "plot"
}
REPORT = {name: parameters(getattr(report, name)) for name in report.__all__}


def test_parameters_of_functions_have_one_default():
    named = METRICS | DISPLAYS | REPORT | {"reject": parameters(reject)}
    assert defaults_that_differ(named) == defaults(OTHER_FUNCTION_DEFAULTS)


def test_parameters_of_functions_are_in_the_same_order():
    assert_same_order({name: given for name, given in METRICS.items() if name != "evaluate"})
    # `kind` of ErrorRejectDisplay is an option of `plot`, that of EvidenceDisplay is computed.
    made = {name: given for name, given in DISPLAYS.items() if "from_" in name}
    assert_same_order(
        {name: [p for p in given if p.name != "kind"] for name, given in made.items()}
    )
    assert_same_order({name: given for name, given in DISPLAYS.items() if ".plot" in name})
    assert_same_order(REPORT)


@pytest.mark.parametrize("name", plots.__all__)
def test_displays_begin_with_the_estimator_or_with_true_labels(name):
    first, *more = DISPLAYS[f"{name}.from_estimator"]
    assert (first.name, first.kind) == ("estimator", POSITIONAL)
    second = OTHER_ROWS.get(name, "X")
    assert [p.name for p in more if p.kind is POSITIONAL][:1] == ([second] if second else [])
    if f"{name}.from_predictions" in DISPLAYS:
        by_position = [p for p in DISPLAYS[f"{name}.from_predictions"] if p.kind is POSITIONAL]
        shared = OTHER_PREDICTIONS.get(name, ["y_true", by_position[1].name])
        assert [p.name for p in by_position] == shared
        assert by_position[1].name in {"y_proba", "belief", "contour"}


@pytest.mark.parametrize("name", DISPLAYS)
def test_displays_draw_on_given_axes_and_pass_on_options(name):
    given = {p.name: p for p in DISPLAYS[name]}
    assert given["ax"].default is None
    assert given["kwargs"].kind is inspect.Parameter.VAR_KEYWORD
    if name.endswith(".plot"):
        assert [p.name for p in DISPLAYS[name] if p.kind is POSITIONAL] == ["ax"]


def test_displays_have_the_defaults_of_the_functions_that_they_call():
    for display, function in (
        ("ReliabilityDisplay.from_predictions", metrics.reliability_curve),
        ("ErrorRejectDisplay.from_predictions", metrics.reject_cost_curve),
    ):
        called = {p.name: p.default for p in parameters(function) if p.kind is KEYWORD}
        drawn = {p.name: p.default for p in DISPLAYS[display]}
        common = called.keys() & drawn.keys()
        assert len(common) >= 2
        assert {name: drawn[name] for name in common} == {name: called[name] for name in common}


def test_the_report_has_one_set_of_options():
    options = [(p.name, p.default) for p in REPORT["collect"] if p.kind is KEYWORD]
    written = [(p.name, p.default) for p in REPORT["write_report"] if p.kind is KEYWORD]
    assert written == [*options, ("force", False)]


def test_the_cost_of_declining_has_one_name():
    by_class = {p.name for name in ESTIMATORS for p in init_parameters(name)}
    by_function = {p.name for given in (METRICS | DISPLAYS | REPORT).values() for p in given} | {
        p.name for p in parameters(reject)
    }
    costs = {name for name in by_class | by_function if "cost" in name}
    assert costs == {"cost", "costs"}  # one, or several to compute a curve at


def unfitted(name, inner=None):
    """Return an estimator of this class, around `inner` where it is around another."""
    inner = LogisticRegression() if inner is None else inner
    required = {
        "EvidentialFusion": {"estimators": [("a", inner)]},
        "CautiousPipeline": {"steps": [("model", dubito.RejectClassifier(inner))]},
    }
    around = any(p.name == "estimator" for p in init_parameters(name))
    default = {"estimator": inner} if around else {}
    return ESTIMATORS[name](**required.get(name, default))


#: Methods that fit, or that read parameters alone.
NEED_NO_FIT = {
    *("fit", "fit_predict", "fit_transform", "held_out_proba"),
    *("node_map_spec", "set_callbacks", "get_feature_names_out"),
}

#: What methods need besides rows.
ARGUMENTS = {
    "y": [0, 1, 0],
    "theta": [0.5],
    "gamma": [0.5],
    "piece": 0,
    "depth": 1,
    "k": 1,
}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_methods_before_the_fit_raise_not_fitted_error(name):
    model = unfitted(name)
    called = 0
    for method, function in public_methods(name).items():
        if method in NEED_NO_FIT or not hasattr(model, method):
            continue
        needed = [p for p in parameters(function) if p.default is inspect.Parameter.empty]
        rows = np.zeros((3, 2))
        given = [
            rows if p.name in {"X", "scores"} else ARGUMENTS[p.name]
            for p in needed
            if p.kind is POSITIONAL
        ]
        with pytest.raises(NotFittedError):
            getattr(model, method)(*given)
        called += 1
    assert called >= 4


@pytest.mark.parametrize("name", ESTIMATORS)
def test_rows_without_a_label_are_named(name):
    scores = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
    labels = np.array(["a", None, "b", "a"], dtype=object)
    with pytest.raises(ValueError, match=r"y has no label in row 1\. Drop"):
        unfitted(name).fit(scores, labels)


#: Packages whose public names are listed in `signatures.txt`.
LISTED = (*PACKAGES, "belief", "decision", "metrics", "plots", "datasets", "report", "saving")


def signature_lines():
    """Return each public class and function with its parameters and defaults, without types."""
    lines = {}
    for package in LISTED:
        module = import_module(f"dubito.{package}")
        for name in module.__all__:
            function = getattr(module, name)
            if not callable(function) or (
                inspect.isclass(function) and issubclass(function, Exception)
            ):
                continue
            plain = [
                p.replace(annotation=inspect.Parameter.empty)
                for p in inspect.signature(function).parameters.values()
            ]
            lines.setdefault(name, f"{package}.{name}{inspect.Signature(plain)}")
    return sorted(lines.values())


def test_public_signatures_change_on_purpose_only():
    """Edit ``signatures.txt`` where a change is meant, and tell users in the change log."""
    listed = (Path(__file__).parent / "signatures.txt").read_text(encoding="utf-8").splitlines()
    assert signature_lines() == listed
