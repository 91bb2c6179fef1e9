"""The models of all nodes: by the road that suits the classifier."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from sklearn.naive_bayes import GaussianNB, MultinomialNB

from dubito.dichotomies._estimator_nodes import fit_estimator_nodes
from dubito.dichotomies._logistic_nodes import fit_logistic_nodes, plain_logistic
from dubito.dichotomies._naive_bayes import fit_gaussian
from dubito.dichotomies._naive_counts import fit_multinomial

if TYPE_CHECKING:
    from numpy.random import Generator

    from dubito._checks import FloatArray
    from dubito.dichotomies._leaf_rows import LeafRows
    from dubito.dichotomies.tree import DichotomyTree


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
    n_folds: int,
    n_jobs: int | None,
    rng: Generator,
) -> tuple[NodeModel, FloatArray | None]:
    """Fit the nodes of a tree; return them, and log-odds out of fold where folds are asked for.

    Those are packed, node by node, each in the order of its rows.
    """
    logistic = plain_logistic(estimator)
    if logistic is not None:
        return fit_logistic_nodes(rows, tree, logistic, n_folds=n_folds, n_jobs=n_jobs)
    if type(estimator) is GaussianNB and estimator.priors is None:
        fit = fit_gaussian
    elif type(estimator) is MultinomialNB and estimator.class_prior is None:
        fit = fit_multinomial
    else:
        return fit_estimator_nodes(
            rows, tree, estimator, weighted=weighted, n_folds=n_folds, n_jobs=n_jobs, rng=rng
        )
    weight = rows.weight if weighted else None
    return fit(rows.gather(), weight, rows.offset, tree, estimator, n_folds=n_folds or None)
