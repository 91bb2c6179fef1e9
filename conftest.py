"""What is collected: examples of installed extras alone, and the short run with ``--quick``.

The short run has every test function that is not marked slow and is not about the experiments.
Of a parametrized test it runs a few cases, none marked slow, that together have every value of
every parameter in such cases; of scikit-learn's estimator checks each one once for every class of
estimator. Tests marked data are skipped where no folder holds the files.
"""

import os
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import settings

# Compiled kernels load on first use, so single examples may be slow. In CI the examples are the
# same on every run: a change fails for what it did, not for what was drawn.
settings.register_profile("dubito", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.register_profile("quick", settings.get_profile("dubito"), max_examples=20)

_ROOT = Path(__file__).parent
#: Left out of the short run: reproductions of papers, and a page whose examples fit large trees.
_SLOW_PATHS = [_ROOT / "tests" / "experiments", _ROOT / "docs" / "how_to" / "dichotomies.md"]
_NEEDS = {
    "torch": ["src/dubito/evidence/torch.py", "src/dubito/evidence/_torch_*.py"],
    "triton": ["src/dubito/evidence/_triton.py"],
}

collect_ignore_glob = [
    pattern
    for extra, patterns in _NEEDS.items()
    if find_spec(extra) is None
    for pattern in patterns
]


def pytest_addoption(parser):
    """Add the option of the short run."""
    parser.addoption("--quick", action="store_true", help="every behaviour, fewer combinations")


def pytest_configure(config):
    """Draw fewer hypothesis examples in the short run, where a test does not say how many."""
    settings.load_profile("quick" if config.getoption("--quick") else "dubito")


def pytest_collection_modifyitems(config, items):
    """Skip tests without their data; leave out slow tests and cases in the short run."""
    if not os.environ.get("DUBITO_DATA"):
        absent = pytest.mark.skip(reason="DUBITO_DATA names no folder with the benchmark files")
        for item in items:
            if item.get_closest_marker("data"):
                item.add_marker(absent)
    if config.getoption("--quick"):
        runs = _quick(items)
        config.hook.pytest_deselected(items=[item for item in items if item not in runs])
        items[:] = [item for item in items if item in runs]


def _quick(items):
    """Return the tests of the short run."""
    functions = {}
    for item in items:
        if not _is_slow(item):
            functions.setdefault(_function(item), []).append(item)
    return {item for cases in functions.values() for item in _cover(cases)}


def _is_slow(item):
    """Return whether a test is marked slow or belongs to the slow paths."""
    return item.get_closest_marker("slow") or any(map(item.path.is_relative_to, _SLOW_PATHS))


def _function(item):
    """Return what the cases of a test have in common: scikit-learn's checks are one test."""
    if _is_estimator_check(item):
        return "scikit-learn"
    return item.nodeid.partition("[")[0]


def _is_estimator_check(item):
    """Return whether a test is one of scikit-learn's checks of one estimator."""
    return {"estimator", "check"} <= _params(item).keys()


def _params(item):
    """Return the parameters of a test case by name."""
    return item.callspec.params if hasattr(item, "callspec") else {}


def _cover(cases):
    """Return cases of one test function that together have every value of its parameters."""
    values = {case: _values(case) for case in cases}
    missing = set().union(*values.values())
    chosen = [case for case in cases if not values[case]]  # no parameters
    while missing:
        best = max(cases, key=lambda case: len(values[case] & missing))  # the first of the best
        chosen.append(best)
        missing -= values[best]
    return chosen


def _values(case):
    """Return the parameter values of a case: (name, value), or estimator class and check."""
    params = _params(case)
    if _is_estimator_check(case):
        check = params["check"]
        return {(type(params["estimator"]), getattr(check, "func", check).__name__)}
    return {(name, _key(value)) for name, value in params.items()}


def _key(value):
    """Return what equal values have in common; of values without a hash, the identity."""
    try:
        hash(value)
    except TypeError:
        return id(value)
    return type(value), value
