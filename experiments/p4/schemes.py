"""Base models, as described and as they seem to have been, and the six calibration schemes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from experiments.p4.boosting import RealAdaBoost
from experiments.p4.sharing import Remembered
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.tree import DecisionTreeClassifier

from dubito.dichotomies import DichotomyTree, NestedDichotomyClassifier

if TYPE_CHECKING:
    from typing import Self

    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]
    Ints = npt.NDArray[np.intp]

#: Columns of Tables 4 and 5, in their order.
SCHEMES: dict[str, dict[str, str]] = {
    "baseline": {},
    "external": {"external": "vector"},
    "platt": {"internal": "platt"},
    "both_platt": {"internal": "platt", "external": "vector"},
    "isotonic": {"internal": "isotonic"},
    "both_isotonic": {"internal": "isotonic", "external": "vector"},
}
HEADINGS = {
    "baseline": "Baseline",
    "external": "External VS",
    "platt": "Internal PS",
    "both_platt": "Both PS",
    "isotonic": "Internal IR",
    "both_isotonic": "Both IR",
}
#: Those of Tables 2 and 3.
TABLES_2_3 = ("baseline", "external")
#: scikit-learn's names.
METHODS = {"platt": "sigmoid", "isotonic": "isotonic"}
INTERNAL_CV = 3

#: The paper's base learner that each of ours stands for.
FAMILIES = {
    "logistic": "logistic",
    "gaussian": "bayes",
    "boosting": "boosted",
    "liblinear": "logistic",
    "multinomial": "bayes",
    "tree": "boosted",
}
FAMILY_NAMES = {
    "logistic": "Logistic regression",
    "bayes": "Naive Bayes",
    "boosted": "Boosted trees",
}
BASE_NAMES = {
    "logistic": "logistic regression",
    "gaussian": "Gaussian naive Bayes",
    "boosting": "50 boosted trees of depth 3",
    "liblinear": "logistic regression by liblinear",
    "multinomial": "multinomial naive Bayes",
    "tree": "one tree grown in full",
}


#: What a probability of 0 is in the parts redone.
ZERO = 1e-16


class Sure(ClassifierMixin, BaseEstimator):
    """A classifier that is believed when it says 0 or 1.

    The library takes 0 for a little less than the least probability a model has given; the paper's
    trees are sure, and wrong at 34.5 nats each.
    """

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def fit(self, X: Any, y: Ints) -> Self:
        """Fit the classifier."""
        self.fitted_ = clone(self.estimator).fit(X, y)
        self.classes_ = self.fitted_.classes_
        return self

    def predict_proba(self, X: Any) -> Floats:
        """Return its probabilities, of which none is 0."""
        return np.maximum(self.fitted_.predict_proba(X), ZERO)

    def predict(self, X: Any) -> npt.NDArray[np.generic]:
        """Return its labels."""
        found: npt.NDArray[np.generic] = self.fitted_.predict(X)
        return found


def base_model(base: str, n_trees: int) -> Any:
    """Return a base learner; None is the classifier's own logistic regression."""
    return {
        "logistic": None,
        "gaussian": GaussianNB(),
        "boosting": Remembered(RealAdaBoost(n_estimators=n_trees)),
        "liblinear": LogisticRegression(solver="liblinear"),
        "multinomial": MultinomialNB(),
        "tree": Remembered(DecisionTreeClassifier(random_state=0)),
    }[base]


def dichotomies(
    base: str, scheme: str, seed: int, *, n_trees: int = 50, structure: Any = "random"
) -> NestedDichotomyClassifier:
    """Return a nested dichotomy that is not fitted, as the paper describes it."""
    return NestedDichotomyClassifier(
        base_model(base, n_trees),
        structure=structure,
        **{"internal": None, "external": None, **SCHEMES[scheme]},
        internal_cv=INTERNAL_CV,
        n_jobs=1,
        random_state=seed,
    )


def redone(base: str, scheme: str, seed: int, classes: Ints) -> NestedDichotomyClassifier:
    """Return a nested dichotomy as those of the paper seem to have been.

    Groups of classes are cut anywhere, and internal calibration is what scikit-learn's
    `CalibratedClassifierCV` does by default: a model and its map for each fold, and the mean of
    the three probabilities.
    """
    asked = SCHEMES[scheme]
    estimator = base_model(base, 0)
    if "internal" in asked:
        folds = StratifiedKFold(INTERNAL_CV, shuffle=True, random_state=0)
        method = METHODS[asked["internal"]]
        estimator = Sure(CalibratedClassifierCV(estimator, method=method, cv=folds))
    elif base == "tree":
        estimator = Sure(estimator)
    return NestedDichotomyClassifier(
        estimator,
        structure=cut_anywhere(classes, seed),
        internal=None,
        external=asked.get("external"),
        n_jobs=1,
        random_state=seed,
    )


def cut_anywhere(classes: Ints, seed: int) -> DichotomyTree:
    """Return a tree in which the left side of a node has 1, 2, ... classes, equally likely.

    The library's "random" has every split equally likely, so that halves are the most frequent.
    """
    rng = np.random.default_rng(seed)
    left_sizes: list[int] = []
    waiting = [len(classes)]
    while waiting:
        size = waiting.pop()
        if size > 1:
            left = int(rng.integers(1, size))
            left_sizes.append(left)
            waiting += [size - left, left]
    return DichotomyTree.from_splits(rng.permutation(classes), left_sizes)
