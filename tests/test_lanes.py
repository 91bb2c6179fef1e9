"""The short run (``--quick``): every test function, every value of its parameters."""

import importlib.util
from pathlib import Path
from types import SimpleNamespace

ROOT = Path(__file__).parents[1]
spec = importlib.util.spec_from_file_location("collection", ROOT / "conftest.py")
collection = importlib.util.module_from_spec(spec)
spec.loader.exec_module(collection)


class Case:
    """A test case with parameters, as pytest collects it."""

    def __init__(self, name="test", *, slow=False, **params):
        self.path, self.nodeid = ROOT, f"{name}[{params}]"
        self.slow, self.added = slow, []
        if params:
            self.callspec = SimpleNamespace(params=params)

    def get_closest_marker(self, name):
        return name == "slow" and self.slow

    def add_marker(self, mark):
        self.added.append(mark)


def left_in(cases, *, quick=True):
    """The cases that run."""
    out = []

    def deselected(items):
        out.extend(items)

    hook = SimpleNamespace(pytest_deselected=deselected)
    config = SimpleNamespace(getoption=lambda _: quick, hook=hook)
    items = list(cases)
    collection.pytest_collection_modifyitems(config, items)
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


def test_a_value_that_slow_cases_share_with_others_runs():
    slow, quick, alone = Case(a=1, b=1, slow=True), Case(a=1, b=2), Case(a=2, b=2)
    assert left_in([slow, quick, alone]) == [quick, alone]


def test_tests_without_their_data_are_skipped(monkeypatch):
    case = Case("needs_data")
    case.get_closest_marker = lambda name: name == "data"
    for folder in ("some/folder", ""):
        monkeypatch.setenv("DUBITO_DATA", folder)
        left_in([case], quick=False)
        assert len(case.added) == (not folder)


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
    again = [Case("other", estimator=First(), check=check_one)]
    assert left_in(cases + again) == [*cases[:2], *cases[4:]]
