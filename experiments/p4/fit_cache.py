"""Cache of model fits that several calibration schemes have in common.

With one seed, schemes have the same tree, rows in the same order and the same folds: Baseline and
both internal schemes fit the same models, and so do the three with an external calibrator.
"""

from __future__ import annotations

from contextlib import contextmanager
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Self

    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

_fits: dict[bytes, Any] = {}


@contextmanager
def cached_fits() -> Iterator[dict[bytes, Any]]:
    """Keep the fits of `CachedFit` until the end of the block; yields the cache."""
    _fits.clear()
    try:
        yield _fits
    finally:
        _fits.clear()


class CachedFit(ClassifierMixin, BaseEstimator):
    """A classifier that takes its fit from the cache if these rows were fitted before."""

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def fit(self, X: Floats, y: npt.ArrayLike) -> Self:
        """Fit, or take the fit to these rows from the cache."""
        key = _digest(X, np.asarray(y), repr(self.estimator))
        if key not in _fits:
            _fits[key] = clone(self.estimator).fit(X, y)
        self.fitted_ = _fits[key]
        self.classes_ = self.fitted_.classes_
        return self

    def predict_proba(self, X: Floats) -> Floats:
        """Return the probabilities of the classifier."""
        found: Floats = self.fitted_.predict_proba(X)
        return found

    def predict(self, X: Floats) -> npt.NDArray[np.generic]:
        """Return its labels."""
        found: npt.NDArray[np.generic] = self.fitted_.predict(X)
        return found


def _digest(X: Floats, y: npt.NDArray[np.generic], parameters: str) -> bytes:
    summed = blake2b(f"{parameters} {X.shape} {X.dtype} {y.dtype}".encode(), digest_size=16)
    summed.update(np.ascontiguousarray(X))
    summed.update(np.ascontiguousarray(y))
    return summed.digest()
