"""Nested dichotomies whose nodes are logistic in one feature, as their calibrators assume."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from experiments.validity.cells import LEVEL, Cell, Kind, Tallies, grid
from experiments.validity.more_classes import draw_labels
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin

from dubito.calibration import EvidentialLogisticCalibrator
from dubito.dichotomies import DichotomyTree, NestedDichotomyClassifier

if TYPE_CHECKING:
    from experiments.validity.cells import Floats, Ints, Settings


class FeatureScore(ClassifierMixin, BaseEstimator):
    """A node model whose score is the first feature; nothing is learnt."""

    def fit(self, X: Floats, y: Ints) -> Self:
        """Keep the classes."""
        del X
        self.classes_ = np.unique(y)
        return self

    def decision_function(self, X: Floats) -> Floats:
        """Return the first feature."""
        return np.asarray(X)[:, 0]

    def predict(self, X: Floats) -> Any:
        """Return the second class where the score is positive."""
        return self.classes_[(self.decision_function(X) > 0).astype(int)]


class Truth(NamedTuple):
    """A tree, and the log-odds of the right side of each node: an intercept and a slope."""

    nested: Any
    nodes: tuple[tuple[float, float], ...]

    @property
    def tree(self) -> DichotomyTree:
        """The tree."""
        return DichotomyTree.from_nested(self.nested)

    def proba(self, X: Floats) -> Floats:
        """Return the true probabilities (n, K): products along the paths."""
        tree = self.tree
        proba = np.ones((len(X), len(tree.leaves)))
        for label in range(len(tree.leaves)):
            for node, side in tree.path(label):
                intercept, slope = self.nodes[node]
                right = expit(intercept + slope * X[:, 0])
                proba[:, label] *= right if side else 1 - right
        return proba

    def labels(self, X: Floats, rng: np.random.Generator) -> Ints:
        """Return random labels."""
        return draw_labels(self.proba(X), rng)


TRUTHS = {
    "balanced_4": Truth(((0, 1), (2, 3)), ((0.0, 1.5), (0.5, -1.0), (-0.5, 2.0))),
    "chain_5": Truth(((((0, 1), 2), 3), 4), ((-1.0, 1.5), (-0.7, -1.0), (-0.5, 1.0), (0.0, 2.0))),
    "balanced_8": Truth(
        (((0, 1), (2, 3)), ((4, 5), (6, 7))),
        ((0.0, 1.5), (0.3, -1.0), (0.0, 1.0), (-0.5, 2.0), (0.2, 0.5), (0.0, -1.5), (0.0, 0.0)),
    ),
}
#: Models of the nodes: the feature itself, or a logistic regression in three folds.
NODES = {"feature": FeatureScore(), "learnt": None}
#: Numbers of rows; with fewer, some class has none.
SIZES, QUICK_SIZES = (30, 100, 300, 1000), (100,)
ROWS = 3


def cells(*, quick: bool) -> list[Cell]:
    """List the cells."""
    return grid(("balanced_4",), QUICK_SIZES) if quick else grid(tuple(TRUTHS), SIZES)


def run_cell(cell: Cell, settings: Settings) -> dict[str, Any]:
    """Return how often the bounds of a class contain its true probability."""
    rng, truth, tallies = settings.generator(cell), TRUTHS[cell.case], Tallies()
    for _ in tallies.replicates(settings.replicates):
        X, y = _rows_of_all_classes(truth, cell.n, rng)
        query = rng.normal(size=(ROWS, 1))
        for name, estimator in NODES.items():
            model = NestedDichotomyClassifier(
                estimator,
                structure=truth.tree,
                internal=EvidentialLogisticCalibrator(),
                n_jobs=1,
                random_state=0,
            ).fit(X, y)
            for level in (LEVEL, None):
                method = "belief" if level is None else "level"
                kind = Kind(f"{method}, {name}", "typical", level)
                bounds = model.predict_bounds(query, level=level)
                tallies.add_bounds(kind, bounds, truth.proba(query))
    return tallies.result(cell)


def _rows_of_all_classes(truth: Truth, n: int, rng: np.random.Generator) -> tuple[Floats, Ints]:
    """Return rows with at least two of each class: a tree leaves out classes without rows."""
    while True:
        X = rng.normal(size=(n, 1))
        y = truth.labels(X, rng)
        if np.bincount(y, minlength=len(truth.nodes) + 1).min() >= 2:
            return X, y
