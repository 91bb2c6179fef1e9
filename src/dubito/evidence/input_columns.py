"""The input column that each output of a fitted transformer is computed from.

`_columns` has one function per class of transformer. Each returns a list with the input column of
every output, None for an output computed from several columns; or None instead of the list if the
columns cannot be determined. Transformers of other classes are assumed to mix all their inputs.
"""

from __future__ import annotations

from collections import Counter
from functools import singledispatch
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from scipy.sparse import issparse
from sklearn.base import OneToOneFeatureMixin
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.feature_selection import SelectorMixin
from sklearn.frozen import FrozenEstimator
from sklearn.impute import KNNImputer, MissingIndicator, SimpleImputer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    Normalizer,
    OneHotEncoder,
    PolynomialFeatures,
    SplineTransformer,
    TargetEncoder,
)

from dubito._compat import pick

if TYPE_CHECKING:
    import numpy.typing as npt

Columns: TypeAlias = list[int | None]


def input_columns(transformer: Any, n_inputs: int, n_outputs: int) -> Columns:
    """Return the input column each output feature is computed from, None if there are several.

    Parameters
    ----------
    transformer : fitted transformer, Pipeline of transformers, "passthrough" or None
        None and "passthrough" leave the columns as they are.
    n_inputs, n_outputs : int
        Numbers of columns before and after.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import PolynomialFeatures, StandardScaler
    >>> powers = make_pipeline(StandardScaler(), PolynomialFeatures(include_bias=False))
    >>> _ = powers.fit([[1, 2], [3, 5], [4, 1]])
    >>> powers[-1].get_feature_names_out(["a", "b"]).tolist()
    ['a', 'b', 'a^2', 'a b', 'b^2']
    >>> input_columns(powers, 2, 5)
    [0, 1, 0, None, 1]
    """
    columns = _columns(transformer, n_inputs)
    # If the class implies another number of outputs than there are, its columns are wrong.
    if columns is None or len(columns) != n_outputs:
        return [0 if n_inputs == 1 else None] * n_outputs
    return columns


def shown_values(
    X: Any, phi: Any, pieces: list[Any], columns: Columns, names: Any
) -> npt.NDArray[Any]:
    """Return the value to show for each piece of evidence, (n, pieces), None if it has none.

    A piece of all features computed from one input column, and of no others, shows that column's
    value; any other single feature shows its value in the layer, any other group of features none.
    """
    phi, X = (array.toarray() if issparse(array) else array for array in (phi, X))
    table = X if hasattr(X, "shape") else np.asarray(X)
    # Columns with names are taken by name, because some pipelines reorder them.
    by_name = names is not None and hasattr(table, "columns")
    n_outputs = Counter(columns)
    values = np.full((len(phi), len(pieces)), None, dtype=object)
    for piece, features in enumerate(pieces):
        sources = {columns[j] for j in features}
        column = sources.pop() if len(sources) == 1 else None
        if column is not None and n_outputs[column] == len(features):
            key = names[column] if by_name else column
            shown = pick(table, key, axis=1) if hasattr(table, "columns") else table[:, key]
            values[:, piece] = np.asarray(shown)
        elif len(features) == 1:
            values[:, piece] = phi[:, features[0]]
    return values


@singledispatch
def _columns(_transformer: Any, _n_inputs: int) -> Columns | None:
    """Return the input column of each output of a transformer; None for an unknown class."""
    return None


@_columns.register(type(None))
@_columns.register(OneToOneFeatureMixin)
def _one_to_one(_: Any, n_inputs: int) -> Columns | None:
    return list(range(n_inputs))


@_columns.register(str)
def _keyword(transformer: Any, n_inputs: int) -> Columns | None:
    return [] if transformer == "drop" else list(range(n_inputs))


@_columns.register(FrozenEstimator)
def _frozen(transformer: Any, n_inputs: int) -> Columns | None:
    return _columns(transformer.estimator, n_inputs)


@_columns.register(Pipeline)
def _pipeline(transformer: Any, n_inputs: int) -> Columns | None:
    before: Columns = list(range(n_inputs))
    for _, step in transformer.steps:
        after = _columns(step, len(before))
        if after is None or getattr(step, "n_features_in_", len(before)) != len(before):
            return None
        before = _compose(before, after)
    return before


@_columns.register(FeatureUnion)
def _union(transformer: Any, n_inputs: int) -> Columns | None:
    joined: Columns = []
    for _, part in transformer.transformer_list:
        columns = _columns(part, n_inputs)
        if columns is None:
            try:
                columns = input_columns(part, n_inputs, len(part.get_feature_names_out()))
            except (AttributeError, ValueError):  # its number of outputs is unknown
                return None
        joined += columns
    return joined


@_columns.register(ColumnTransformer)
def _by_column(transformer: Any, n_inputs: int) -> Columns | None:
    column_of: dict[int, int | None] = {}
    used: set[int] = set()
    for i, (name, part, key) in enumerate(transformer.transformers_):
        if i < len(transformer.transformers):
            picked = _positions(key, n_inputs, getattr(transformer, "feature_names_in_", ()))
        else:
            picked = [j for j in range(n_inputs) if j not in used]  # the columns left over
        used.update(picked)
        indices = transformer.output_indices_[name]
        outputs = range(indices.start, indices.stop)
        inner = input_columns(part, len(picked), len(outputs)) if outputs else []
        column_of.update(zip(outputs, _compose(list(picked), inner), strict=True))
    return [column_of[output] for output in range(len(column_of))]


@_columns.register(SelectorMixin)
def _selector(transformer: Any, _: int) -> Columns | None:
    return [int(j) for j in transformer.get_support(indices=True)]


@_columns.register(MissingIndicator)
def _missing(transformer: Any, _: int) -> Columns | None:
    return [int(j) for j in transformer.features_]


@_columns.register(SimpleImputer)
@_columns.register(KNNImputer)  # only missing values depend on other columns
def _imputer(transformer: Any, n_inputs: int) -> Columns | None:
    """Return the columns by output name: which empty columns are dropped depends on the release."""
    names = getattr(transformer, "feature_names_in_", [f"x{j}" for j in range(n_inputs)])
    column_of: dict[str, int | None] = {}
    for j, name in enumerate(names):
        for output in (name, f"missingindicator_{name}"):
            column_of[output] = None if output in column_of else j  # None: an ambiguous name
    return [column_of.get(name) for name in transformer.get_feature_names_out()]


@_columns.register(FunctionTransformer)
def _function(transformer: Any, n_inputs: int) -> Columns | None:
    one_to_one = transformer.func is None or transformer.feature_names_out == "one-to-one"
    return list(range(n_inputs)) if one_to_one else None


@_columns.register(Normalizer)
def _normalizer(_: Any, n_inputs: int) -> Columns | None:
    return [None] * n_inputs  # every output depends on the norm of the row


@_columns.register(TfidfTransformer)
def _tfidf(transformer: Any, n_inputs: int) -> Columns | None:
    return list(range(n_inputs)) if transformer.norm is None else [None] * n_inputs


@_columns.register(PolynomialFeatures)
def _polynomial(transformer: Any, _: int) -> Columns | None:
    factors = [np.flatnonzero(powers) for powers in transformer.powers_]
    return [int(inputs[0]) if len(inputs) == 1 else None for inputs in factors]


@_columns.register(SplineTransformer)
def _spline(transformer: Any, n_inputs: int) -> Columns | None:
    return _repeated([transformer.n_features_out_ // n_inputs] * n_inputs)


@_columns.register(TargetEncoder)
def _target(transformer: Any, n_inputs: int) -> Columns | None:
    return _repeated([len(transformer.encodings_) // n_inputs] * n_inputs)  # one for each class


@_columns.register(KBinsDiscretizer)
def _bins(transformer: Any, n_inputs: int) -> Columns | None:
    return _repeated([1] * n_inputs if transformer.encode == "ordinal" else transformer.n_bins_)


@_columns.register(OneHotEncoder)
def _one_hot(transformer: Any, n_inputs: int) -> Columns | None:
    counts = np.array([len(categories) for categories in transformer.categories_])
    # All infrequent categories of a column share one output.
    infrequent = getattr(transformer, "infrequent_categories_", [None] * n_inputs)
    counts -= [0 if joined is None else len(joined) - 1 for joined in infrequent]
    if transformer.drop_idx_ is not None:
        counts -= [dropped is not None for dropped in transformer.drop_idx_]
    return _repeated(counts)


def _repeated(counts: Any) -> Columns:
    """Return each column index repeated as often as it has outputs."""
    return [int(j) for j in np.repeat(np.arange(len(counts)), counts)]


def _compose(before: Columns, after: Columns) -> Columns:
    """Return the input columns of the outputs of two steps in sequence."""
    return [None if j is None else before[j] for j in after]


def _positions(key: Any, n_inputs: int, names: Any) -> list[int]:
    """Return the indices of columns given by name, index, slice, mask, or list of them."""
    position = {name: j for j, name in enumerate(names)}
    if isinstance(key, slice) and any(isinstance(end, str) for end in (key.start, key.stop)):
        # A slice by name includes its end.
        stop = None if key.stop is None else position[key.stop] + 1
        key = slice(None if key.start is None else position[key.start], stop, key.step)
    elif not isinstance(key, slice):
        listed = np.atleast_1d(np.asarray(key))
        key = listed if listed.dtype.kind in "biu" else [position[name] for name in listed]
    return [int(j) for j in np.arange(n_inputs)[key]]
