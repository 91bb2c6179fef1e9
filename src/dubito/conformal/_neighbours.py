"""How far a row lies from the training rows: the novelty detector used by default."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import StandardScaler, normalize
from sklearn.utils.validation import check_is_fitted, validate_data

if TYPE_CHECKING:
    from dubito._checks import FloatArray, IntArray

#: Sparse rows with more columns than this are taken for text or counts, and compared by angle.
_MANY_COLUMNS = 500

#: Numbers that the arrays of one chunk may hold.
_CHUNK = 1 << 23

#: Scaled values beyond this are cut, so that squares stay finite.
_LARGEST = 1e100


class NeighbourDistances(BaseEstimator):
    r"""Minus the mean distance to the nearest training rows, after scaling.

    Dense rows, and sparse ones with up to 500 columns (tables with one-hot columns), have each
    column divided by its standard deviation, and the distance is Euclidean. A column that is
    constant in training is left in its own units: it adds nothing between rows that share the
    constant, and much for a row that does not. Missing values (nan) count as the column's mean, in
    sparse rows as 0.

    Sparse rows with more columns are text or counts. Their lengths say how long a text is, and
    division by standard deviations would let the rarest words decide, so they are scaled to unit
    length: the Euclidean distance is then :math:`\sqrt{2-2\cos}`. Rows without any entry share a
    direction of their own.

    Parameters
    ----------
    n_neighbors : int, default 5
    max_rows : int, default 20000
        Training rows that are kept, drawn at random from more.
    random_state : int, default 0
        Of that draw.

    Notes
    -----
    Nothing but arrays is kept: the search compares each row with all that are kept, in chunks of
    bounded memory, at a cost of n times `max_rows` times the number of columns.
    """

    def __init__(
        self, n_neighbors: int = 5, *, max_rows: int = 20_000, random_state: int = 0
    ) -> None:
        self.n_neighbors = n_neighbors
        self.max_rows = max_rows
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002 - as scikit-learn's detectors
        """Keep the scaled training rows, or as many of them as are allowed."""
        rows = self._read(X, reset=True)
        self.by_angle_ = bool(sparse.issparse(rows) and rows.shape[1] > _MANY_COLUMNS)
        if not self.by_angle_:
            self.scaler_ = StandardScaler(with_mean=not sparse.issparse(rows)).fit(rows)
        n = rows.shape[0]
        if n > self.max_rows:
            drawn = np.random.default_rng(self.random_state).choice(n, self.max_rows, replace=False)
            rows = rows[np.sort(drawn)]
        self.rows_ = self._scaled(rows)
        return self

    def score_samples(self, X: Any) -> FloatArray:
        """Return minus the mean distance of each row to its nearest training rows."""
        check_is_fitted(self)
        rows = self._read(X, reset=False)
        search = NearestNeighbors(
            n_neighbors=min(self.n_neighbors, self.rows_.shape[0]), algorithm="brute"
        ).fit(self.rows_)
        step = self._rows_at_a_time()
        parts = (rows[i : i + step] for i in range(0, rows.shape[0], step))
        distances = [self._mean_distances(search, self._scaled(part)) for part in parts]
        return -np.concatenate([np.empty(0), *distances])

    def _mean_distances(self, search: NearestNeighbors, rows: Any) -> FloatArray:
        # The search finds squared distances as differences of large products, which makes them
        # depend on the chunk in the last digits: too inexact where many rows are equally far.
        nearest = search.kneighbors(rows, return_distance=False)
        return _distances(rows, self.rows_, nearest).mean(axis=1)

    def _rows_at_a_time(self) -> int:
        """Return how many rows fit in a chunk: their neighbours, or all distances if sparse."""
        n, columns = self.rows_.shape
        needed = n if sparse.issparse(self.rows_) else self.n_neighbors * columns
        return int(max(1, min(_CHUNK // max(needed, 1), 8192)))

    def _read(self, X: Any, *, reset: bool) -> Any:
        if np.ndim(X) == 1 and _are_numbers(X):
            X = np.asarray(X).reshape(-1, 1)  # scores of two classes
        if np.ndim(X) == 1 or not (sparse.issparse(X) or _are_numbers(X)):
            raise TypeError(
                "the novelty detector compares rows of numbers; these hold text or other objects. "
                "Put what encodes them and the classifier in one Pipeline, as "
                "make_pipeline(ColumnTransformer(...), LogisticRegression()), and pass that as the "
                "estimator; or pass a detector that reads such rows."
            )
        return validate_data(
            self, X, reset=reset, dtype=np.float64, accept_sparse="csr",
            ensure_all_finite="allow-nan",
        )  # fmt: skip

    def _scaled(self, rows: Any) -> Any:
        if self.by_angle_:
            empty = np.asarray(abs(rows).sum(axis=1)).ravel() == 0
            return sparse.csr_matrix(sparse.hstack([normalize(rows), empty[:, None].astype(float)]))
        scaled = self.scaler_.transform(rows)
        scaled = scaled.toarray() if sparse.issparse(scaled) else scaled  # a chunk, few columns
        np.nan_to_num(scaled, copy=False, nan=0.0)
        return np.clip(scaled, -_LARGEST, _LARGEST, out=scaled)


def _are_numbers(X: Any) -> bool:
    """Say whether all columns can be read as numbers."""
    try:
        np.asarray(X).astype(np.float64, copy=False)
    except (TypeError, ValueError):
        return False
    return True


def _distances(rows: Any, others: Any, nearest: IntArray) -> FloatArray:
    """Return the Euclidean distances (n, k) of rows to those of the others that are named."""
    if not sparse.issparse(rows):
        return np.sqrt(((rows[:, None, :] - others[nearest]) ** 2).sum(axis=2))
    repeated = rows[np.repeat(np.arange(rows.shape[0]), nearest.shape[1])]
    apart = repeated - others[nearest.ravel()]
    squares = np.asarray(apart.multiply(apart).sum(axis=1)).reshape(nearest.shape)
    return np.sqrt(squares)
