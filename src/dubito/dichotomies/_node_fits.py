"""The models of all nodes: by the road that suits the classifier."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
from sklearn.naive_bayes import GaussianNB, MultinomialNB

from dubito.calibration import (
    BinningCalibrator,
    EvidentialBinningCalibrator,
    EvidentialIsotonicCalibrator,
    IsotonicCalibrator,
)
from dubito.dichotomies._estimator_nodes import LEAST, fit_estimator_nodes
from dubito.dichotomies._logistic_nodes import fit_logistic_nodes, plain_logistic
from dubito.dichotomies._naive_bayes import fit_gaussian
from dubito.dichotomies._naive_counts import fit_multinomial

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.random import Generator

    from dubito._typing import FloatArray
    from dubito.calibration.base import BaseCalibrator
    from dubito.dichotomies._leaf_rows import LeafRows
    from dubito.dichotomies.tree import DichotomyTree


#: Calibrators that go by the order of scores, and need no units.
_BY_RANK = (
    BinningCalibrator,
    EvidentialBinningCalibrator,
    EvidentialIsotonicCalibrator,
    IsotonicCalibrator,
)


class NodeModel(Protocol):
    """Scores of rows at every node."""

    def scores(self, X: Any) -> FloatArray:
        """Return the log-odds of the right side, (n, nodes), nodes in preorder."""


def fit_nodes(
    estimator: Any,
    rows: LeafRows,
    tree: DichotomyTree,
    *,
    weighted: bool,
    internal: BaseCalibrator | None,
    n_folds: int,
    n_jobs: int | None,
    rng: Generator,
) -> tuple[NodeModel, FloatArray | None]:
    """Fit the nodes of a tree; return them, and log-odds out of fold where they are calibrated.

    Those are packed, node by node, each in the order of its rows.
    """
    n_folds = 0 if internal is None else n_folds
    logistic = plain_logistic(estimator)
    if logistic is not None:
        return fit_logistic_nodes(rows, tree, logistic, n_folds=n_folds, n_jobs=n_jobs)
    fit = _naive_bayes(estimator)
    if fit is None:
        return fit_estimator_nodes(
            rows, tree, estimator, weighted=weighted, n_folds=n_folds, n_jobs=n_jobs, rng=rng
        )
    weight = rows.weight if weighted else None
    model, cross = fit(rows.gather(), weight, rows.offset, tree, estimator, n_folds=n_folds or None)
    if cross is None or isinstance(internal, _BY_RANK):
        return UncutNodes(model), cross
    return CutNodes(model), _cut(cross)


def _naive_bayes(estimator: Any) -> Callable[..., Any] | None:
    """Return the fit of all nodes at once, for the naive Bayes classifiers that have one."""
    if type(estimator) is GaussianNB and estimator.priors is None:
        return fit_gaussian
    if type(estimator) is MultinomialNB and estimator.class_prior is None:
        return fit_multinomial
    return None


@dataclass(frozen=True)
class UncutNodes:
    """Naive Bayes nodes, whose log-odds are cut after calibration.

    Features that repeat each other are counted as often as they do, and log-odds of millions come
    of it. What is cut is what ``predict_proba`` of scikit-learn rounds away: no class is
    impossible.
    """

    model: NodeModel
    #: Log-odds are kept within this once they are calibrated.
    largest: ClassVar[float] = -float(np.log(LEAST))

    def scores(self, X: Any) -> FloatArray:
        """Return the log-odds of the right side, (n, nodes)."""
        return self.model.scores(X)


class CutNodes(UncutNodes):
    """Naive Bayes nodes, whose log-odds are cut before calibration.

    A few wrong ones among millions would leave a map that goes by their size nothing to tell the
    others apart by; one that goes by their order is better without.
    """

    def scores(self, X: Any) -> FloatArray:
        """Return the log-odds of the right side, (n, nodes)."""
        return _cut(self.model.scores(X))


def _cut(scores: FloatArray) -> FloatArray:
    return np.clip(scores, -UncutNodes.largest, UncutNodes.largest)
