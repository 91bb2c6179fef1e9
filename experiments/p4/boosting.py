"""Real AdaBoost, the default of scikit-learn's AdaBoost in 2019, since removed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.tree import DecisionTreeClassifier

if TYPE_CHECKING:
    from typing import Self

    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

#: Lower bound of a tree's probabilities before their logarithm is taken.
LEAST = np.finfo(np.float64).eps


class RealAdaBoost(ClassifierMixin, BaseEstimator):
    r"""Real AdaBoost (SAMME.R of Zhu et al., 2009) for two classes, on small trees.

    Tree m has :math:`h_m(x)=\tfrac12\log\frac{p_m(x)}{1-p_m(x)}`; weights of rows are multiplied
    by :math:`e^{-y h_m(x)}` with y = ±1, and the log-odds are :math:`\frac{2}{M}\sum_m h_m(x)`:
    scikit-learn divided by the number of trees M. Boosting ends early if a tree makes no mistake.
    """

    def __init__(self, *, n_estimators: int = 50, max_depth: int = 3, seed: int = 0) -> None:
        self.n_estimators = n_estimators
        self.max_depth = max_depth
        self.seed = seed

    def fit(self, X: Floats, y: npt.ArrayLike) -> Self:
        """Grow the trees one after the other."""
        X = np.asarray(X, dtype=np.float32)  # the type of trees: converted once
        self.classes_, event = np.unique(y, return_inverse=True)
        sign = 2.0 * event - 1.0
        weight = np.full(len(sign), 1 / len(sign))
        rng = np.random.RandomState(self.seed)
        self.trees_: list[DecisionTreeClassifier] = []
        for _ in range(self.n_estimators):
            tree = DecisionTreeClassifier(max_depth=self.max_depth, random_state=rng)
            self.trees_.append(tree.fit(X, event, sample_weight=weight))
            margin = sign * _half_log_odds(tree, X)
            if not weight[margin <= 0].sum() > 0:
                break
            weight = weight * np.exp(-margin)
            weight /= weight.sum()
        return self

    def decision_function(self, X: Floats) -> Floats:
        """Return log-odds of the second class."""
        X = np.asarray(X, dtype=np.float32)
        return 2 * np.mean([_half_log_odds(tree, X) for tree in self.trees_], axis=0)

    def predict_proba(self, X: Floats) -> Floats:
        """Return probabilities, both with full relative precision near 0."""
        odds = self.decision_function(X)
        return np.exp(np.column_stack([-np.logaddexp(0, odds), -np.logaddexp(0, -odds)]))

    def predict(self, X: Floats) -> npt.NDArray[np.generic]:
        """Return the more probable class."""
        return self.classes_[(self.decision_function(X) > 0).astype(np.intp)]


def _half_log_odds(tree: DecisionTreeClassifier, X: npt.NDArray[np.float32]) -> Floats:
    logs = np.log(np.maximum(tree.predict_proba(X), LEAST))
    return 0.5 * (logs[:, 1] - logs[:, 0])
