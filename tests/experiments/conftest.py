"""Fixtures of the tests of experiments."""

import builtins
import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

sys.path.append(str(Path(__file__).parents[2]))

from experiments.p4 import data, depths, many, protocol


@pytest.fixture
def without_matplotlib(monkeypatch):
    """Make every import of matplotlib fail."""
    real = builtins.__import__

    def missing(name, *args, **kwargs):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", missing)


@pytest.fixture
def no_figures(request, monkeypatch):
    """Draw no figures; report as many as there are parts."""
    monkeypatch.setattr(request.module.run.figures, "draw_all", lambda results, _: len(results))


@pytest.fixture
def calls():
    """Return the calls of rounds: names of settings, and cells."""
    return []


@pytest.fixture
def count_calls(calls, monkeypatch):
    """Return a function that lists the calls of a module's rounds, and can replace the rounds."""

    def count(module, function=None):
        real = function or module.run_cell

        def run_cell(cell, settings):
            calls.append((settings.name, cell))
            return real(cell, settings)

        monkeypatch.setattr(module, "run_cell", run_cell)

    return count


@pytest.fixture
def interrupted(calls, monkeypatch):
    """Return a context in which rounds of a module are interrupted after so many calls."""

    @contextmanager
    def after(n, module):
        whole = module.run_cell

        def stopped(cell, settings):
            if len(calls) == n:
                raise KeyboardInterrupt
            return whole(cell, settings)

        with monkeypatch.context() as patch:
            patch.setattr(module, "run_cell", stopped)
            yield

    return after


@pytest.fixture
def some_rows():
    """Return a function that draws counts of overlapping classes."""

    def draw(n_classes=4, n=18, seed=0):
        rng = np.random.default_rng(seed)
        rates = rng.uniform(1, 6, size=(n_classes, 5))
        y = np.repeat(np.arange(n_classes), n)
        return data.Rows(rng.poisson(rates[y]).astype(float), y)

    return draw


@pytest.fixture
def few_rows_of_p4(some_rows, monkeypatch):
    """Replace every dataset of P4 by a small one."""
    rows = some_rows()
    monkeypatch.setattr(protocol, "rows_of", lambda *_, **__: rows)
    texts = [data.Rows(sp.csr_array(some.X), some.y) for some in (rows, some_rows(seed=1))]
    monkeypatch.setattr(data, "sector", lambda: texts)
    small = {
        "dense": data.Problem(120, 8, 4, sparse=False, test_rows=40),
        "sparse": data.Problem(120, 8, 60, sparse=True, test_rows=40),
    }
    for module in (data, many, depths):
        monkeypatch.setattr(module, "QUICK_PROBLEMS", small)
