"""Models with given outputs, and reports on them."""

import numpy as np
import pytest

from dubito.belief import Bounds
from dubito.decision import interval_dominance
from dubito.report import collect

# Labels that mean something to HTML, to scripts, to Vega's paths, keys and expressions, to Jinja.
NASTY = (
    "</script><img src=x onerror=document.title='hacked'>",
    'a.b[0]["c"] \\n \'',
    "ünïcödé ☃ " + "x" * 300,
    "ünïcödé ☃ " + "x" * 300 + " and more",
    "{{ 7 * 7 }} <b>bold</b> &amp;",
    "datum.foo + alert(2)",
    "__proto__",
    "",
)


class Precise:
    """Gives row i of X, which holds row numbers, the i-th of some probabilities."""

    def __init__(self, classes, proba):
        self.classes_, self.proba = np.asarray(classes, dtype=object), np.asarray(proba)

    def predict_proba(self, X):
        return self.proba[np.asarray(X)[:, -1].astype(int)]


class Cautious(Precise):
    """The same, with bounds: a fraction of the belief is not committed."""

    def __init__(self, classes, proba, *, ignorance):
        super().__init__(classes, proba)
        self.ignorance_ = ignorance

    def predict_bounds(self, X):
        lower = (1 - self.ignorance_) * self.predict_proba(X)
        return Bounds(lower, lower + self.ignorance_)

    def predict_set(self, X):
        return interval_dominance(self.predict_bounds(X))


def make_rows(n, n_classes, *, seed=0):
    """Row numbers, probabilities, and columns drawn from them."""
    rng = np.random.default_rng(seed)
    proba = rng.dirichlet(np.full(n_classes, 0.3), size=n)
    column = (proba.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).clip(max=n_classes - 1)
    return np.arange(n)[:, None], proba, column


@pytest.fixture(scope="session")
def fakes():
    """Models with given probabilities, rows for them, and difficult names."""

    class Fakes:
        precise, cautious, rows, nasty = Precise, Cautious, staticmethod(make_rows), NASTY

    return Fakes


@pytest.fixture(scope="session")
def nasty_report(fakes):
    """Collect for two methods, with nasty names wherever names can be."""
    X, proba, column = fakes.rows(200, len(NASTY))
    labels = np.array(NASTY, dtype=object)
    models = {NASTY[0]: Cautious(labels, proba, ignorance=0.1), NASTY[1]: Precise(labels, proba)}
    names = [f"{NASTY[i % len(NASTY)]} {i}" for i in range(200)]
    return collect(models, X, labels[column], title=NASTY[0], row_names=names)
