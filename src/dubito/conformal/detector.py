"""The default novelty detector, and the scores of any detector."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import StandardScaler, normalize
from sklearn.utils.validation import check_is_fitted, validate_data

from dubito._numerics.row_subsets import row_chunks
from dubito._wording import name_rows

if TYPE_CHECKING:
    from dubito._typing import FloatArray, IntArray

#: Sparse rows with more columns than this are taken for text or counts, and compared by angle.
_MANY_COLUMNS = 500

#: Largest number of entries in the arrays of one chunk of rows: 64 MiB.
_CHUNK_ENTRIES = 2**23

#: Scaled values are clipped to this size, so that squares stay finite.
_LARGEST_SCALED = 1e100


class NeighbourDistances(BaseEstimator):
    r"""Novelty detector: minus the mean distance to the nearest training rows, after scaling.

    Dense rows, and sparse ones with up to 500 columns (tables with one-hot columns), have each
    column divided by its standard deviation, and the distance is Euclidean. A column that is
    constant in training is left in its own units: it adds to the distance of rows with another
    value only. Missing values (nan) count as the column's mean, in sparse rows as 0.

    Sparse rows with more columns are text or counts. Their lengths depend on how long a text is,
    and division by standard deviations would give the rarest words the largest effect, so they are
    scaled to unit length: the Euclidean distance is then :math:`\sqrt{2-2\cos}`. A further column
    is 1 for rows without any entry.

    Parameters
    ----------
    n_neighbors : int, default 5
    max_rows : int, default 20000
        Training rows that are stored; a random sample where there are more.
    random_state : int, default 0
        Seed of that sample.

    Notes
    -----
    Only arrays are stored: the search compares each row with all stored rows, in chunks of bounded
    memory, at a cost of n times `max_rows` times the number of columns.
    """

    def __init__(
        self, n_neighbors: int = 5, *, max_rows: int = 20_000, random_state: int = 0
    ) -> None:
        self.n_neighbors = n_neighbors
        self.max_rows = max_rows
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002 - as scikit-learn's detectors
        """Store the scaled training rows, at most `max_rows` of them."""
        rows = self._checked_rows(X, reset=True)
        self.by_angle_ = bool(sparse.issparse(rows) and rows.shape[1] > _MANY_COLUMNS)
        if not self.by_angle_:
            self.scaler_ = StandardScaler(with_mean=not sparse.issparse(rows)).fit(rows)
        n = rows.shape[0]
        if n > self.max_rows:
            drawn = np.random.default_rng(self.random_state).choice(n, self.max_rows, replace=False)
            rows = rows[np.sort(drawn)]
        self.rows_ = self._scaled(rows)
        self.n_neighbors_ = min(self.n_neighbors, self.rows_.shape[0])
        return self

    def score_samples(self, X: Any) -> FloatArray:
        """Return minus the mean distance of each row to its nearest training rows."""
        check_is_fitted(self)
        rows = self._checked_rows(X, reset=False)
        search = NearestNeighbors(n_neighbors=self.n_neighbors_, algorithm="brute").fit(self.rows_)
        chunks = row_chunks(rows.shape[0], 1, self._chunk_rows())
        distances = [self._mean_distances(search, self._scaled(rows[part])) for part in chunks]
        return -np.concatenate([np.empty(0), *distances])

    def _mean_distances(self, search: NearestNeighbors, rows: Any) -> FloatArray:
        # The search computes distances by differences of large products, whose rounding depends on
        # the chunk: rows at equal distances would not tie.
        nearest = search.kneighbors(rows, return_distance=False)
        return _distances(rows, self.rows_, nearest).mean(axis=1)

    def _chunk_rows(self) -> int:
        """Return the number of rows in a chunk, limited by the memory of their distances."""
        n, columns = self.rows_.shape
        entries = n if sparse.issparse(self.rows_) else self.n_neighbors_ * columns
        return int(max(1, min(_CHUNK_ENTRIES // max(entries, 1), 8192)))

    def _checked_rows(self, X: Any, *, reset: bool) -> Any:
        """Return rows as an array or sparse matrix of numbers; an error if they hold none."""
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
        # Dense rows are affordable: there are few columns, and a chunk has few rows.
        scaled = scaled.toarray() if sparse.issparse(scaled) else scaled
        np.nan_to_num(scaled, copy=False, nan=0.0)
        return np.clip(scaled, -_LARGEST_SCALED, _LARGEST_SCALED, out=scaled)


def _are_numbers(X: Any) -> bool:
    """Return whether all columns can be read as numbers."""
    try:
        np.asarray(X).astype(np.float64, copy=False)
    except (TypeError, ValueError):
        return False
    return True


def _distances(rows: Any, others: Any, nearest: IntArray) -> FloatArray:
    """Return the Euclidean distances (n, k) of rows to their nearest others, given by index."""
    if not sparse.issparse(rows):
        return np.sqrt(((rows[:, None, :] - others[nearest]) ** 2).sum(axis=2))
    repeated = rows[np.repeat(np.arange(rows.shape[0]), nearest.shape[1])]
    difference = repeated - others[nearest.ravel()]
    squares = np.asarray(difference.multiply(difference).sum(axis=1)).reshape(nearest.shape)
    return np.sqrt(squares)


def novelty_scores(detector: Any, rows: Any) -> FloatArray:
    """Return novelty scores, higher for less normal rows."""
    novelty = -np.asarray(detector.score_samples(rows), dtype=np.float64)
    if np.isnan(novelty).any():
        raise ValueError(
            f"{type(detector).__name__}.score_samples gives nan in "
            f"{name_rows(np.flatnonzero(np.isnan(novelty)))}. Use another detector, or one in a "
            "pipeline that scales the rows."
        )
    return novelty


def check_detector(detector: Any) -> None:
    """Raise an error for a detector that cannot score new rows."""
    if detector is not None and not hasattr(detector, "score_samples"):
        raise TypeError(
            f"detector must have score_samples, higher for more normal rows, as IsolationForest() "
            f"or LocalOutlierFactor(novelty=True) do; {detector!r} has none."
        )
