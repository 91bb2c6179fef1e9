"""What is collected: examples of installed extras alone, and with ``--quick`` the quick lane.

The quick lane runs every test function that is not marked slow and is not about the experiments.
Of a parametrized test it runs a few cases that together have every value of every parameter; of
scikit-learn's estimator checks each one once for every class of estimator.
"""

import os
from importlib.util import find_spec
from pathlib import Path

from hypothesis import settings

# Compiled kernels load on first use, so single examples may be slow. In CI the examples are the
# same on every run: a change fails for what it did, not for what was drawn.
settings.register_profile("dubito", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.register_profile("quick", settings.get_profile("dubito"), max_examples=20)

_EXPERIMENTS = Path(__file__).parent / "tests" / "experiments"
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
    """Add the option of the quick lane."""
    parser.addoption("--quick", action="store_true", help="every behaviour, fewer combinations")


def pytest_configure(config):
    """Draw fewer hypothesis examples in the quick lane, where a test does not say how many."""
    settings.load_profile("quick" if config.getoption("--quick") else "dubito")


def pytest_collection_modifyitems(config, items):
    """Leave out slow tests and further combinations of parameters in the quick lane."""
    if not config.getoption("--quick"):
        return
    functions = {}
    for item in items:
        functions.setdefault((item.path, getattr(item, "originalname", item.name)), []).append(item)
    kept = {item for cases in functions.values() for item in _cover(cases)}
    runs = {item for item in kept if not _is_slow(item)}
    config.hook.pytest_deselected(items=[item for item in items if item not in runs])
    items[:] = [item for item in items if item in runs]


def _is_slow(item):
    """Return whether a test is marked slow or belongs to the reproductions of papers."""
    return item.get_closest_marker("slow") or item.path.is_relative_to(_EXPERIMENTS)


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
    spec = getattr(case, "callspec", None)
    if spec is None:
        return set()
    if {"estimator", "check"} <= spec.params.keys():
        check = spec.params["check"]
        name = getattr(check, "func", check).__name__
        return {(type(spec.params["estimator"]), name)}
    return {(name, _key(value)) for name, value in spec.params.items()}


def _key(value):
    """Return what equal values have in common; of values without a hash, the identity."""
    try:
        hash(value)
    except TypeError:
        return id(value)
    return type(value), value
