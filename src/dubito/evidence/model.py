"""Weights of evidence from the coefficients of a linear layer (Denœux 2019, sections 3 and 4)."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import issparse
from scipy.special import expit, log_expit, log_softmax, softmax

from dubito._numerics import evidence_weights
from dubito._numerics.row_subsets import row_chunks
from dubito._validation import as_float_array, check_rows_match
from dubito._wording import counted, name_rows
from dubito.belief import Frame
from dubito.evidence.weights import (
    bounds_from_weights,
    conflict_from_weights,
    ignorance_from_weights,
    mass_from_weights,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from dubito._typing import FloatArray, IntArray
    from dubito.belief import Bounds, MassBatch


#: Largest number of entries of a sparse matrix made dense at a time: 32 MiB.
_CHUNK_ENTRIES = 2**22


class EvidenceModel:
    r"""The evidence in features, from a linear layer with softmax or logistic output.

    Feature j gives class k the weight of evidence :math:`w_{jk}=\beta^*_{jk}\phi_j+\alpha^*_{jk}`:
    for the class where positive, against it where negative. Of all weights whose normalised
    plausibilities are the layer's probabilities, these are the least committed: their sum of
    squares over the training rows is smallest (Denœux 2019, Prop. 2),

    .. math::
        \beta^*_{jk}=\beta_{jk}-\tfrac1K\sum_l\beta_{jl},\qquad
        \alpha^*_{jk}=\tfrac1J\Bigl(\beta^*_{0k}+\sum_q\beta^*_{qk}\mu_q\Bigr)-\beta^*_{jk}\mu_j .

    With one output for two classes there is one weight for each feature, for class 1 where
    positive and for class 0 where negative (eq. 32-35). Written as a softmax of two outputs the
    same evidence is divided equally between both, with the same masses.

    Parameters
    ----------
    coef : array-like of shape (K, J), or (1, J) or (J,) for two classes
        Coefficients of the layer, as scikit-learn has them. Other libraries leave the first of K
        classes out: add a row of zeros for it.
    intercept : array-like of shape (K,), or (1,) for two classes
    mean : array-like of shape (J,)
        Means :math:`\mu` of the features over the training rows.
    classes : sequence of K labels, optional
        By default 0, 1, ..., K-1.
    groups : sequence of J labels, optional
        Features with the same label form one piece of evidence, such as the columns that encode
        one category or one smooth function: only the sum of their weights counts as for or
        against a class. By default each feature is a piece by itself, as in the paper.

    Attributes
    ----------
    coef, intercept, mean : ndarray
        As given.
    classes : tuple
    pieces : tuple
        Labels of the pieces of evidence: feature numbers, or the groups in order of appearance.
    slope : ndarray of shape (J, K), or (J, 1)
        :math:`\beta^*`.
    offset : ndarray of shape (J, K), or (J, 1)
        :math:`\alpha^*`. Without groups.
    cutoffs : ndarray of shape (J, K), or (J, 1)
        The values of the features at which their weights change sign, :math:`-\alpha^*/\beta^*`;
        nan for weights that do not. Without groups.

    Notes
    -----
    All methods take `phi`, the features that enter the layer: an array or sparse matrix of shape
    (n, J).

    Examples
    --------
    >>> from dubito.evidence import EvidenceModel
    >>> model = EvidenceModel([[0.1, 0.4]], [-7.0], mean=[42.0, 5.0], classes=["well", "ill"])
    >>> model.cutoffs.ravel()
    array([46.,  6.])
    >>> model.weights([[31.0, 8.5]]).round(2)
    array([[[1.5, 0. ],
            [0. , 1. ]]])
    >>> bounds = model.bounds([[31.0, 8.5]])
    >>> bounds.lower.round(2), bounds.upper.round(2)
    (array([[0.56, 0.28]]), array([[0.72, 0.44]]))
    >>> model.conflict([[31.0, 8.5]]).round(2)
    array([0.49])
    """

    def __init__(
        self,
        coef: npt.ArrayLike,
        intercept: npt.ArrayLike,
        mean: npt.ArrayLike,
        *,
        classes: Sequence[Any] | npt.NDArray[Any] | None = None,
        groups: Sequence[Any] | npt.NDArray[Any] | None = None,
    ) -> None:
        self.coef = np.atleast_2d(_read_only_copy(as_float_array(coef, "coef", ndim=(1, 2))))
        self.intercept = _read_only_copy(as_float_array(intercept, "intercept", ndim=(0, 1)))
        self.mean = _read_only_copy(as_float_array(mean, "mean", ndim=1))
        self._check_shapes()
        self.classes = _read_classes(classes, max(len(self.coef), 2))
        self.pieces, self._order, self._starts = _read_groups(groups, len(self.mean))
        self.slope = np.ascontiguousarray((self.coef if self.binary else _centred(self.coef)).T)
        at_mean = self.coef @ self.mean + self.intercept
        #: Weight of every piece at the mean of the features: equal for all pieces.
        self._base = (at_mean if self.binary else _centred(at_mean)) / len(self.pieces)

    def _check_shapes(self) -> None:
        n_outputs, n_features = self.coef.shape
        if n_outputs == 0 or n_features == 0:
            raise ValueError(f"coef must have a row and a column; got shape {self.coef.shape}.")
        if len(self.intercept) != n_outputs:
            raise ValueError(
                f"intercept must have one number for each of the {counted(n_outputs, 'row')} of "
                f"coef; got {len(self.intercept)}."
            )
        if len(self.mean) != n_features:
            raise ValueError(
                f"mean must have one number for each of the {counted(n_features, 'feature')} "
                f"(columns of coef); got {len(self.mean)}."
            )

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.classes)

    @property
    def n_pieces(self) -> int:
        """Number of pieces of evidence."""
        return len(self.pieces)

    @property
    def members(self) -> list[IntArray]:
        """The features of each piece."""
        return np.split(self._order, self._starts[1:-1])

    @property
    def binary(self) -> bool:
        """Whether the layer has one output, for two classes."""
        return len(self.coef) == 1

    @property
    def offset(self) -> FloatArray:
        r"""The constants :math:`\alpha^*` of the weights."""
        self._refuse_groups("offset")
        return self._base - self.slope * self.mean[:, None]

    @property
    def cutoffs(self) -> FloatArray:
        """The values of the features at which their weights change sign."""
        self._refuse_groups("cutoffs")
        shift = np.full(self.slope.shape, np.nan)
        np.divide(self._base, self.slope, out=shift, where=self.slope != 0)
        return self.mean[:, None] - shift

    def _refuse_groups(self, what: str) -> None:
        if self.n_pieces < len(self.mean):
            raise AttributeError(
                f"{what}: there is none for each feature where groups of features are one piece of "
                "evidence. Use a model without groups."
            )

    def weights(self, phi: npt.ArrayLike) -> FloatArray:
        """Return the weight of evidence of each piece for each class.

        Returns
        -------
        ndarray of shape (n, pieces, K)
            Negative: against the class. With one output for two classes no weight is negative:
            evidence against one class is evidence for the other.
        """
        return self._weights_of(range(self.n_pieces), self._read(phi))

    def _weights_of(self, chosen: range, phi: Any) -> FloatArray:
        """Return the weights of the chosen pieces, (n, pieces, K); `phi` is checked."""
        starts = self._starts[chosen.start : chosen.stop + 1]
        features = self._order[starts[0] : starts[-1]]
        dense = phi[:, features].toarray() if issparse(phi) else phi[:, features]
        parts = (dense - self.mean[features])[:, :, None] * self.slope[features]
        weights = np.add.reduceat(parts, starts[:-1] - starts[0], axis=1) + self._base
        if not self.binary:
            return weights
        return np.maximum(np.concatenate([-weights, weights], axis=-1), 0.0)

    def totals(self, phi: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
        r"""Return the total weights of evidence for and against each class.

        Returns
        -------
        w_plus, w_minus : ndarray of shape (n, K)
            :math:`w^+_k=\sum_j\max(0,w_{jk})` and :math:`w^-_k=\sum_j\max(0,-w_{jk})` (eq. 27).
            With one output for two classes all evidence is for one of them, and `w_minus` is zero.
        """
        return self._totals(self._read(phi))

    def _totals(self, phi: Any) -> tuple[FloatArray, FloatArray]:
        if issparse(phi) and self.n_pieces == len(self.mean):
            plus, minus = evidence_weights.sparse_totals(
                (phi.data, phi.indices, phi.indptr), self.slope, self.offset
            )
        else:
            plus, minus = self._dense_totals(phi)
        if not self.binary:
            return plus, minus
        return np.concatenate([minus, plus], axis=1), np.zeros((len(plus), 2))

    def _dense_totals(self, phi: Any) -> tuple[FloatArray, FloatArray]:
        """Return totals; sparse values are made dense in blocks of rows."""
        layer, layout = (self.slope, self.mean, self._base), (self._order, self._starts)
        if not issparse(phi):
            return evidence_weights.totals(phi, layer, layout)
        chunks = row_chunks(max(phi.shape[0], 1), len(self.mean), _CHUNK_ENTRIES)
        parts = [evidence_weights.totals(phi[rows].toarray(), layer, layout) for rows in chunks]
        plus, minus = zip(*parts, strict=True)
        return np.concatenate(plus), np.concatenate(minus)

    def bounds(self, phi: npt.ArrayLike) -> Bounds:
        """Return belief and plausibility of each class, (n, K); see `bounds_from_weights`."""
        return bounds_from_weights(*self.totals(phi))

    def _bounds_around_proba(self, phi: npt.ArrayLike) -> Bounds:
        """Return `bounds`, lowered where the belief exceeds the probability."""
        features = self._read(phi)
        return bounds_from_weights(*self._totals(features)).including(self._proba(features))

    def mass(self, phi: npt.ArrayLike) -> MassBatch:
        """Return the mass functions that combine all evidence; see `mass_from_weights`."""
        return mass_from_weights(*self.totals(phi), classes=self.classes)

    def piece_mass(self, phi: npt.ArrayLike, piece: int) -> MassBatch:
        """Return the mass functions of one piece of evidence alone; their combination is `mass`.

        `piece` is its index in `pieces`. The batch is dense, for up to 20 classes.
        """
        try:
            index = range(self.n_pieces)[piece]
        except (IndexError, TypeError):
            raise IndexError(
                f"piece must be a number from 0 to {self.n_pieces - 1}; got {piece!r}."
            ) from None
        weight = self._weights_of(range(index, index + 1), self._read(phi))[:, 0]
        return mass_from_weights(
            np.maximum(weight, 0.0), np.maximum(-weight, 0.0), classes=self.classes
        )

    def proba(self, phi: npt.ArrayLike) -> FloatArray:
        """Return the layer's probabilities, (n, K), which are the normalised plausibilities."""
        return self._proba(self._read(phi))

    def _proba(self, features: Any) -> FloatArray:
        logits = self._logits(features)
        return expit(logits) if self.binary else softmax(logits, axis=1)

    def log_proba(self, phi: npt.ArrayLike) -> FloatArray:
        """Return the logarithms of `proba`, accurate also where probabilities underflow to 0."""
        logits = self._logits(self._read(phi))
        return log_expit(logits) if self.binary else log_softmax(logits, axis=1)

    def _logits(self, features: Any) -> FloatArray:
        """Return the outputs of the layer; for two classes the log-odds of each."""
        logits = features @ self.coef.T + self.intercept
        return np.concatenate([-logits, logits], axis=1) if self.binary else logits

    def conflict(self, phi: npt.ArrayLike) -> FloatArray:
        """Return the degree of conflict of the evidence, (n,); see `conflict_from_weights`."""
        return conflict_from_weights(*self.totals(phi))

    def ignorance(self, phi: npt.ArrayLike) -> FloatArray:
        """Return the mass of the whole frame, (n,); see `ignorance_from_weights`."""
        return ignorance_from_weights(*self.totals(phi))

    def _read(self, phi: Any) -> Any:
        """Return features as finite numbers, dense or in compressed rows."""
        if issparse(phi):
            features = phi.tocsr(copy=True).astype(np.float64, copy=False)
            features.sum_duplicates()
            if not np.isfinite(features.data).all():
                rows = np.flatnonzero(~np.isfinite(features.sum(axis=1)))
                raise ValueError(f"phi has nan or infinite values in {name_rows(rows)}.")
        else:
            features = as_float_array(phi, "phi", ndim=2)
        if features.shape[1] != len(self.mean):
            raise ValueError(
                f"phi must have a column for each of the {counted(len(self.mean), 'feature')}; "
                f"got {features.shape[1]}."
            )
        return features

    def __repr__(self) -> str:
        pieces = counted(len(self.pieces), "piece")
        return f"EvidenceModel({pieces} of evidence, {counted(len(self.classes), 'class')})"


def _read_only_copy(values: FloatArray) -> FloatArray:
    """Return a read-only copy: some models change their coefficients in place."""
    copy = np.array(values, ndmin=1)
    copy.flags.writeable = False
    return copy


def _centred(values: FloatArray) -> FloatArray:
    """Return values minus their mean over classes; differences within rounding are exactly 0."""
    centred = values - values.mean(axis=0)
    rounding = 4 * np.finfo(float).eps * np.abs(values).max(axis=0)
    return np.where(np.abs(centred) > rounding, centred, 0.0)


def _read_classes(classes: Any, n_classes: int) -> tuple[Any, ...]:
    labels = Frame(range(n_classes) if classes is None else classes).labels
    if len(labels) != n_classes:
        raise ValueError(f"classes names {len(labels)} classes; coef is for {n_classes}.")
    return labels


def _read_groups(groups: Any, n_features: int) -> tuple[tuple[Any, ...], IntArray, IntArray]:
    """Return the pieces, the features ordered by piece, and the index where each piece begins."""
    # A list: in an array, 1 and "1" would be equal.
    labels = list(range(n_features) if groups is None else groups)
    if isinstance(groups, str) or not all(isinstance(label, Hashable) for label in labels):
        raise ValueError(f"groups must list one label for each feature; got {groups!r}.")
    check_rows_match("groups", len(labels), "coef (features in columns)", n_features)
    number = {label: piece for piece, label in enumerate(dict.fromkeys(labels))}
    piece_of = np.array([number[label] for label in labels], dtype=np.intp)
    order = np.argsort(piece_of, kind="stable")
    return tuple(number), order, np.searchsorted(piece_of[order], np.arange(len(number) + 1))
