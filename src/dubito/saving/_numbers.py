"""Numbers that compiled code follows without a look: they must lead somewhere.

Sparse matrices, support vector machines, one-hot encoders and random states are used by code that
asks nobody whether an index exists, for scipy and scikit-learn made them. Those of a file are
looked at here, as trees are in `dubito.saving._trees`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

#: How many numbers a Mersenne twister keeps.
_TWISTER = 624


def numbers_are_in_order(part: Any) -> bool:
    """Say whether an object's numbers can be followed safely; True for what has none to follow."""
    from sklearn.preprocessing import OneHotEncoder  # noqa: PLC0415 - slow to import
    from sklearn.svm import SVC, NuSVC  # noqa: PLC0415

    if sparse.issparse(part):
        return _matrix_is_in_order(part)
    if isinstance(part, np.random.RandomState):
        return 0 <= part.get_state(legacy=False)["state"]["pos"] <= _TWISTER
    if isinstance(part, SVC | NuSVC) and "support_vectors_" in vars(part):
        return _machine_is_in_order(part)
    if isinstance(part, OneHotEncoder) and "_n_features_outs" in vars(part):
        return _encoder_is_in_order(part)
    return True


def _matrix_is_in_order(matrix: Any) -> bool:
    try:
        matrix.check_format(full_check=True)
    except ValueError:
        return False
    return True


def _machine_is_in_order(machine: Any) -> bool:
    vectors, counts = machine.support_vectors_, np.asarray(machine._n_support)
    k, n = len(machine.classes_), vectors.shape[0]
    pairs = k * (k - 1) // 2
    coefficients = (machine.dual_coef_, machine._dual_coef_)
    packed = sparse.issparse(vectors)
    return bool(
        k > 1
        and machine.kernel in ("linear", "poly", "rbf", "sigmoid")
        and machine._sparse is packed
        and vectors.shape == (n, machine.n_features_in_)
        and counts.shape == (k,)
        and (counts >= 0).all()
        and counts.sum() == n
        and np.shape(machine.support_) == (n,)
        and all(array.shape == (k - 1, n) for array in coefficients)
        and all(sparse.issparse(array) is packed for array in coefficients)
        and (not packed or all(array.nnz == (k - 1) * n for array in coefficients))
        and np.shape(machine.intercept_) == np.shape(machine._intercept_) == (pairs,)
        and np.shape(machine._probA) == np.shape(machine._probB)
        and np.shape(machine._probA) in ((0,), (pairs,))
    )


def _encoder_is_in_order(encoder: Any) -> bool:
    """Say whether each category of a column becomes one of the column's features."""
    widths = encoder._n_features_outs
    dropped = encoder._drop_idx_after_grouping
    grouped = getattr(encoder, "_infrequent_enabled", False)
    if not len(widths) == len(encoder.categories_) == encoder.n_features_in_:
        return False
    if dropped is not None and np.shape(dropped) != np.shape(widths):
        return False
    for column, categories in enumerate(encoder.categories_):
        codes = np.arange(len(categories))
        if grouped and (mapping := encoder._default_to_infrequent_mappings[column]) is not None:
            codes = np.asarray(mapping)
            rare = np.asarray(encoder._infrequent_indices[column])
            if codes.shape != (len(categories),) or not ((rare >= 0) & (rare < len(codes))).all():
                return False
        if dropped is not None and dropped[column] is not None:
            codes = codes[codes != dropped[column]]
            codes = codes - (codes > dropped[column])
        if not ((codes >= 0) & (codes < widths[column])).all():
            return False
    return True
