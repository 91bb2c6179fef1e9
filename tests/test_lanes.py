"""The quick lane (``--quick``): every test function, every value of its parameters."""

import importlib.util
from pathlib import Path
from types import SimpleNamespace

ROOT = Path(__file__).parents[1]
spec = importlib.util.spec_from_file_location("lanes", ROOT / "conftest.py")
lanes = importlib.util.module_from_spec(spec)
spec.loader.exec_module(lanes)


class Case:
    """A test case with parameters, as pytest collects it."""

    def __init__(self, name="test", *, slow=False, **params):
        self.path, self.originalname, self.name = ROOT, name, f"{name}{params}"
        self.slow = slow
        if params:
            self.callspec = SimpleNamespace(params=params)

    def get_closest_marker(self, name):
        return name == "slow" and self.slow


def left_in(cases, *, quick=True):
    """The cases that run."""
    out = []

    def deselected(items):
        out.extend(items)

    hook = SimpleNamespace(pytest_deselected=deselected)
    config = SimpleNamespace(getoption=lambda _: quick, hook=hook)
    items = list(cases)
    lanes.pytest_collection_modifyitems(config, items)
    assert {*items, *out} == set(cases)
    return items


def test_every_value_of_every_parameter_runs():
    cases = [Case(a=a, b=b, c=[b]) for a in range(5) for b in "xyz"]
    kept = left_in(cases)
    assert {case.callspec.params["a"] for case in kept} == set(range(5))
    assert {case.callspec.params["b"] for case in kept} == set("xyz")
    different = [Case(a=a, b=b) for a in range(5) for b in "xyz"]
    assert len(left_in(different)) == 5


def test_tests_without_parameters_run_unless_slow():
    plain, slow = Case("plain"), Case("slow", slow=True)
    assert left_in([plain, slow]) == [plain]
    assert left_in([plain, slow], quick=False) == [plain, slow]


def test_each_estimator_check_runs_once_for_each_class():
    def check_one():
        """A check."""

    def check_two():
        """Another check."""

    class First:
        """An estimator."""

    class Second:
        """Another estimator."""

    cases = [
        Case(estimator=kind(), check=check)
        for kind in (First, First, Second)
        for check in (check_one, check_two)
    ]
    assert left_in(cases) == [*cases[:2], *cases[4:]]
