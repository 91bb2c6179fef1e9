"""Base learners, as the paper describes them and as inferred; the six calibration schemes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from experiments.p4.boosting import RealAdaBoost
from experiments.p4.fit_cache import CachedFit
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

#: The paper's base learner that each of ours corresponds to.
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


#: Lower bound of probabilities in the part `redone`.
ZERO = 1e-16


class FlooredProbabilities(ClassifierMixin, BaseEstimator):
    """A classifier whose probabilities of 0 are raised to `ZERO`.

    The library replaces 0 by somewhat less than the smallest positive probability of the model; the
    paper did not: a wrong class of probability 1 costs 34.5 nats in its tables.
    """

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def fit(self, X: Any, y: Ints) -> Self:
        """Fit the classifier."""
        self.fitted_ = clone(self.estimator).fit(X, y)
        self.classes_ = self.fitted_.classes_
        return self

    def predict_proba(self, X: Any) -> Floats:
        """Return its probabilities, at least `ZERO`."""
        return np.maximum(self.fitted_.predict_proba(X), ZERO)

    def predict(self, X: Any) -> npt.NDArray[np.generic]:
        """Return its labels."""
        found: npt.NDArray[np.generic] = self.fitted_.predict(X)
        return found


def base_model(base: str, n_trees: int) -> Any:
    """Return a base learner; None stands for the classifier's own logistic regression."""
    return {
        "logistic": None,
        "gaussian": GaussianNB(),
        "boosting": CachedFit(RealAdaBoost(n_estimators=n_trees)),
        "liblinear": LogisticRegression(solver="liblinear"),
        "multinomial": MultinomialNB(),
        "tree": CachedFit(DecisionTreeClassifier(random_state=0)),
    }[base]


def dichotomies(
    base: str, scheme: str, seed: int, *, n_trees: int = 50, structure: Any = "random"
) -> NestedDichotomyClassifier:
    """Return an unfitted nested dichotomy as the paper describes it."""
    return NestedDichotomyClassifier(
        base_model(base, n_trees),
        structure=structure,
        **{"internal": None, "external": None, **SCHEMES[scheme]},
        cv=INTERNAL_CV,
        n_jobs=1,
        random_state=seed,
    )


def redone(base: str, scheme: str, seed: int, classes: Ints) -> NestedDichotomyClassifier:
    """Return an unfitted nested dichotomy as inferred from the published numbers.

    All sizes of the left group of classes are equally likely. Internal calibration is that of
    scikit-learn's `CalibratedClassifierCV` by default: a model and its map for each fold, and the
    mean of the three probabilities.
    """
    options = SCHEMES[scheme]
    estimator = base_model(base, 0)
    if "internal" in options:
        folds = StratifiedKFold(INTERNAL_CV, shuffle=True, random_state=0)
        method = METHODS[options["internal"]]
        estimator = FlooredProbabilities(CalibratedClassifierCV(estimator, method=method, cv=folds))
    elif base == "tree":
        estimator = FlooredProbabilities(estimator)
    return NestedDichotomyClassifier(
        estimator,
        structure=uniform_left_sizes(classes, seed),
        internal=None,
        external=options.get("external"),
        n_jobs=1,
        random_state=seed,
    )


def uniform_left_sizes(classes: Ints, seed: int) -> DichotomyTree:
    """Return a random tree: the left side of a node has 1, 2, ... classes with equal chances.

    With the library's "random" every split is equally likely, so halves are the most frequent.
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
