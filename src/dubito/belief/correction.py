"""Corrections of a source before it is combined: discounting and conditioning."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from dubito._validation import as_float_array, labelled
from dubito._wording import name_rows
from dubito.belief._kernels import moebius
from dubito.belief._products import merge_equal_sets
from dubito.belief._sources import AnyMass, as_batches, as_given, normalised
from dubito.belief.batch import MassBatch
from dubito.belief.errors import TotalConflictError
from dubito.belief.frame import DENSE_LIMIT, Frame, Label, Subset

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dubito._typing import FloatArray


def discount(source: AnyMass, rate: npt.ArrayLike | Mapping[Label, float]) -> AnyMass:
    r"""Return a discounted source: part of its mass is moved to larger sets.

    Parameters
    ----------
    source : MassFunction or MassBatch
    rate : float, array-like or mapping
        The unreliability of the source, in [0, 1]; 0 changes nothing.

        - A number, or an (n, 1) column with one per row: Shafer's discounting,
          :math:`m'(A)=(1-\alpha)m(A)` and :math:`m'(\Omega)=(1-\alpha)m(\Omega)+\alpha`.
        - K numbers, a mapping from labels to numbers (labels left out count 0), or an (n, K)
          array: contextual discounting (Mercier, Quost and Denœux 2008). Independently for each
          class k, with probability :math:`\alpha_k` class k is added to a set without it: the
          source may have excluded class k wrongly.

    Examples
    --------
    >>> from dubito.belief import MassFunction, discount
    >>> m = MassFunction({"a": 1.0}, frame=["a", "b"])
    >>> discount(m, 0.2)
    MassFunction({('a',): 0.8, ('a', 'b'): 0.2}, frame=['a', 'b'])
    >>> discount(m, {"a": 0.5})
    MassFunction({('a',): 1}, frame=['a', 'b'])
    """
    (batch,) = as_batches(source)
    given = _in_frame_order(rate, batch.frame)
    rates = _check_rates(given, batch)
    by_class = np.ndim(given) == 1 or rates.shape[1] > 1
    corrected = _discount_by_class(batch, rates) if by_class else _discount_all(batch, rates)
    return as_given(corrected, source)


def _in_frame_order(rate: npt.ArrayLike | Mapping[Label, float], frame: Frame) -> npt.ArrayLike:
    """Return labelled rates in the order of the frame, others unchanged."""
    by_label = labelled(rate)
    if by_label is None:
        return rate  # type: ignore[return-value]
    rates: list[float] = [0.0] * len(frame)
    for label, value in by_label.items():
        rates[frame.positions([label])[0]] = value
    return rates


def _check_rates(rate: npt.ArrayLike, batch: MassBatch) -> FloatArray:
    """Return rates as (1 or n, 1 or K)."""
    n_classes = len(batch.frame)
    rates = as_float_array(rate, "rate", ndim=(0, 1, 2))
    if ((rates < 0) | (rates > 1)).any():
        raise ValueError(f"rate must lie in [0, 1]. Got {rate!r} instead.")
    if rates.ndim == 1 and len(rates) != n_classes:
        raise ValueError(
            f"rate has {len(rates)} entries for {n_classes} classes. One rate per row is a column: "
            "rate[:, None]."
        )
    rates = np.atleast_2d(rates)
    if rates.shape[0] not in {1, len(batch)} or rates.shape[1] not in {1, n_classes}:
        raise ValueError(
            f"rate must be a number, ({n_classes},), ({len(batch)}, 1) or "
            f"({len(batch)}, {n_classes}); got shape {rates.shape}."
        )
    return rates


def _discount_all(batch: MassBatch, rates: FloatArray) -> MassBatch:
    """Return the batch discounted by Shafer's rule, at rates (1 or n, 1)."""
    mass = (1 - rates) * batch.mass
    whole = np.flatnonzero(batch.focal.all(axis=1))
    if len(whole):
        mass[:, whole] += rates
        return MassBatch._trusted(batch.frame, batch.focal, mass)
    focal = np.vstack([batch.focal, np.ones((1, len(batch.frame)), dtype=bool)])
    mass = np.hstack([mass, np.broadcast_to(rates, (len(batch), 1))])
    return MassBatch._trusted(batch.frame, focal, mass)


def _discount_by_class(batch: MassBatch, rates: FloatArray) -> MassBatch:
    """Return the batch discounted by contextual rates (1 or n, K)."""
    rates = np.broadcast_to(rates, (len(batch), len(batch.frame)))
    discounted = np.flatnonzero(rates.any(axis=0)).tolist()
    n_classes = len(batch.frame)
    if n_classes <= DENSE_LIMIT and len(batch.focal) << len(discounted) >= 1 << n_classes:
        full = moebius.spread_to_supersets(batch.to_array(), rates)
        return MassBatch._from_full(batch.frame, full, subnormal=bool(full[:, 0].any()))
    # A focal set becomes 2^d sets: its unions with each set of the d discounted classes outside it.
    _check_set_count(1 << int((~batch.focal[:, discounted]).sum(axis=1).max(initial=0)))
    for k in discounted:
        batch = _discount_class(batch, k, rates[:, k, None])
    return batch


def _check_set_count(n_sets: int) -> None:
    """Raise an error for more focal sets than can be listed."""
    if n_sets > 1 << DENSE_LIMIT:
        raise ValueError(
            f"contextual discounting would list more than 2^{DENSE_LIMIT} focal sets. Give fewer "
            "classes a rate above 0, or discount all at one rate."
        )


def _discount_class(batch: MassBatch, k: int, rate: FloatArray) -> MassBatch:
    """Return the batch with class k added to each set with probability `rate`, (n, 1)."""
    _check_set_count(2 * len(batch.focal))
    without = ~batch.focal[:, k]
    joined = batch.focal[without]
    joined[:, k] = True
    moved = batch.mass[:, without] * rate
    kept = batch.mass.copy()
    kept[:, without] *= 1 - rate
    focal = np.vstack([batch.focal, joined])
    return merge_equal_sets(MassBatch._trusted(batch.frame, focal, np.hstack([kept, moved])), focal)


def condition(source: AnyMass, subset: Subset) -> AnyMass:
    r"""Return a source conditioned on a subset that contains the truth (Dempster's conditioning).

    :math:`m(A|B)=\sum_{C\cap B=A}m(C)/\mathrm{Pl}(B)`, the same as combining with all mass on B.

    Raises
    ------
    TotalConflictError
        Where the subset is impossible for the source, :math:`\mathrm{Pl}(B)=0`.

    Examples
    --------
    >>> from dubito.belief import MassFunction, condition
    >>> m = MassFunction({"a": 0.5, ("b", "c"): 0.3, ("a", "b", "c"): 0.2})
    >>> condition(m, ["b", "c"])
    MassFunction({('b', 'c'): 1}, frame=['a', 'b', 'c'])
    """
    (batch,) = as_batches(source)
    inside = batch.frame.to_indicator(subset)
    if not inside.any():
        raise ValueError("subset is empty; the truth cannot lie in it.")
    impossible = np.flatnonzero(~(batch.pl(subset) > 0))
    if len(impossible):
        raise TotalConflictError(
            impossible,
            f"the subset to condition on has plausibility 0 in {name_rows(impossible)}. "
            "Discount the source first.",
        )
    return as_given(normalised(merge_equal_sets(batch, batch.focal & inside)), source)
