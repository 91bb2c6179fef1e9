"""Small support vector machines on a kernel matrix, by LIBSVM."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from sklearn import config_context
from sklearn.svm import SVC

if TYPE_CHECKING:
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]
    Ints = npt.NDArray[np.intp]
    Bools = npt.NDArray[np.bool_]

#: Score of a class with no training row, and of the others when it is the only one. A support
#: vector machine that sees a single label has w = 0 and b = +1 or -1: these are its decisions.
MARGIN = 1.0


class Kernel(NamedTuple):
    """A kernel and its cost; `width` is gamma times `unit`, None for the linear kernel."""

    width: float | None
    cost: float
    unit: str = "variance"


#: RBF, C = 1, gamma = 1 / number of features.
LIBSVM_DEFAULT = Kernel(1.0, 1.0, "features")


class Machine(NamedTuple):
    """Trained machines, one for each event: dual coefficients, with the intercepts last."""

    rows: Floats
    kernel: Kernel
    weights: Floats

    def decide(self, X: Floats) -> Floats:
        """Return the decision values, one column for each event."""
        return gram(X, self.rows, self.kernel) @ self.weights[:-1] + self.weights[-1]


def scaled(X: Floats, train: Ints) -> Floats:
    """Scale each feature to [0, 1] over the training rows."""
    low, high = X[train].min(axis=0), X[train].max(axis=0)
    return (X - low) / np.where(high > low, high - low, 1.0)


def gram(A: Floats, fit: Floats, kernel: Kernel) -> Floats:
    """Return the kernel of each row of A with each training row."""
    product = A @ fit.T
    if kernel.width is None:
        return product
    d = fit.shape[1]
    unit = d * (fit.var() or 1.0) if kernel.unit == "variance" else float(d)
    distance = (A * A).sum(axis=1)[:, None] + (fit * fit).sum(axis=1) - 2 * product
    return np.exp(-kernel.width / unit * np.maximum(distance, 0.0))


def train(rows: Floats, events: Bools, kernel: Kernel) -> Machine:
    """Train a machine for each column of events, all on the same rows with the same kernel."""
    # A copy: for a matrix times its own transpose, BLAS uses another routine, whose last digits
    # differ from those of stored rounds.
    matrix = gram(rows, rows.copy(), kernel)
    weights = np.zeros((len(rows) + 1, events.shape[1]))
    for k, here in enumerate(events.T):
        if here.all() or not here.any():
            weights[-1, k] = MARGIN if here.any() else -MARGIN
            continue
        # Validating the same matrix thousands of times would take longer than training on it.
        with config_context(assume_finite=True, skip_parameter_validation=True):
            svc = SVC(kernel="precomputed", C=kernel.cost).fit(matrix, here)
        weights[svc.support_, k] = svc.dual_coef_[0]
        weights[-1, k] = svc.intercept_[0]
    return Machine(rows, kernel, weights)


def one_vs_all(y: Ints, n_classes: int) -> Bools:
    """Return the events "of class k", one column for each class."""
    return y[:, None] == np.arange(n_classes)
