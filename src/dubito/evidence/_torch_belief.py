"""Bounds, masses, conflict and ignorance from weights of evidence, on tensors.

The formulas are those of `dubito.evidence.weights` (Denœux 2019, Prop. 1), O(K) per row but for
masses. No terms cancel, and every exponent is at most 0, relative to the largest plausibility of
the row; so results for weights from 1e-9 to 1e4 have the precision of their dtype.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch

from dubito.evidence._torch_rows import Formula, by_rows, check_floating, kernels_for

if TYPE_CHECKING:
    from dubito.belief import Bounds

#: Largest number of classes whose subsets are all listed.
MAX_LISTED_CLASSES = 16


class TensorBounds(NamedTuple):
    """Belief and plausibility of each class, tensors of shape (..., K).

    Attributes
    ----------
    lower, upper : Tensor of shape (..., K)
        Belief and plausibility.
    """

    lower: torch.Tensor
    upper: torch.Tensor

    @property
    def width(self) -> torch.Tensor:
        """Upper minus lower, (..., K)."""
        return self.upper - self.lower

    def numpy(self) -> Bounds:
        """Return the same as `dubito.belief.Bounds`, rows first, for `dubito.decision`."""
        from dubito.belief import Bounds  # noqa: PLC0415 - used only here

        lower, upper = (x.detach().reshape(-1, x.shape[-1]).cpu().double() for x in self[:2])
        # Rounding in half precision exceeds the tolerance of `Bounds` for sums.
        upper = upper / upper.sum(1, keepdim=True).clamp(max=1)
        lower = lower / lower.sum(1, keepdim=True).clamp(min=1)
        return Bounds(torch.minimum(lower, upper).numpy(), upper.clamp(max=1).numpy())


def bounds_from_weights(w_plus: torch.Tensor, w_minus: torch.Tensor) -> TensorBounds:
    """Return belief and plausibility of each class from total weights of evidence.

    The formulas are those of `dubito.evidence.bounds_from_weights`; differentiable. Weights that
    need no gradient go through a compiled kernel: on the CPU, and on a GPU where they are float32
    or narrower and Triton is installed (K up to 16,384).

    Parameters
    ----------
    w_plus, w_minus : Tensor of shape (..., K)
        Total weights for and against each class, finite and ≥ 0, which is not checked. Half
        precision is computed in float32 and returned in half precision.

    Returns
    -------
    TensorBounds

    Examples
    --------
    >>> import torch
    >>> from dubito.evidence.torch import bounds_from_weights
    >>> bounds = bounds_from_weights(torch.tensor([[2.0, 0.0]]), torch.tensor([[0.0, 1.0]]))
    >>> bounds.lower, bounds.upper
    (tensor([[0.9502, 0.0000]]), tensor([[1.0000, 0.0498]]))
    """
    return TensorBounds(*_from_weights(bounds, w_plus, w_minus))


def conflict_from_weights(w_plus: torch.Tensor, w_minus: torch.Tensor) -> torch.Tensor:
    """Return the conflict of the evidence: the mass of the empty set before normalising.

    As `dubito.evidence.conflict_from_weights`, differentiable. Parameters as for
    `bounds_from_weights`.

    Returns
    -------
    Tensor of shape (...)

    Examples
    --------
    >>> import torch
    >>> from dubito.evidence.torch import conflict_from_weights
    >>> conflict_from_weights(torch.tensor([[2.0, 1.0], [2.0, 0.0]]), torch.zeros(2, 2))
    tensor([0.5466, 0.0000])
    """
    return _from_weights(conflict, w_plus, w_minus)[0]


def ignorance_from_weights(w_plus: torch.Tensor, w_minus: torch.Tensor) -> torch.Tensor:
    """Return the mass of the whole frame.

    As `dubito.evidence.ignorance_from_weights`, differentiable. Parameters as for
    `bounds_from_weights`.

    Returns
    -------
    Tensor of shape (...)

    Examples
    --------
    >>> import torch
    >>> from dubito.evidence.torch import ignorance_from_weights
    >>> ignorance_from_weights(torch.tensor([[2.0, 1.0], [0.0, 0.0]]), torch.zeros(2, 2))
    tensor([0.1098, 1.0000])
    """
    return _from_weights(ignorance, w_plus, w_minus)[0]


def mass_from_weights(w_plus: torch.Tensor, w_minus: torch.Tensor) -> torch.Tensor:
    """Return the masses of all non-empty sets of classes, in bit-mask order.

    As `dubito.evidence.mass_from_weights`, differentiable: column i - 1 is the set whose members
    are the bits of i. Parameters as for `bounds_from_weights`, K at most 16.

    Returns
    -------
    Tensor of shape (..., 2^K - 1)

    Examples
    --------
    >>> import torch
    >>> from dubito.evidence.torch import mass_from_weights
    >>> mass_from_weights(torch.tensor([[2.0, 1.0]]), torch.zeros(1, 2))
    tensor([[0.7015, 0.1887, 0.1098]])
    """
    return _from_weights(mass, w_plus, w_minus)[0]


def bounds(w_plus: torch.Tensor, w_minus: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return what `bounds_from_weights` returns, for rows that have been checked."""
    if kernels := kernels_for(w_plus, w_minus):
        return kernels.bounds(w_plus, w_minus)
    row = _scaled(w_plus, w_minus)
    upper = _at_most_one(row.plausible / row.total)
    return upper * _at_most_one(row.belief_ratio), upper


def conflict(w_plus: torch.Tensor, w_minus: torch.Tensor) -> tuple[torch.Tensor]:
    r"""Return what `conflict_from_weights` returns, for rows that have been checked.

    It is computed as a sum of non-negative terms. The empty set gets mass where two classes, or one
    class and its complement, are supported. With k the first class supported, that is
    :math:`\sum_k(1-e^{-w^+_k})\,e^{-\sum_{l<k}w^+_l}(1-e^{-w^-_k-\sum_{l>k}w^+_l})`; plus
    :math:`e^{-\sum_kw^+_k}\prod_kq_k`, where no class is supported and all are ruled out.
    """
    if kernels := kernels_for(w_plus, w_minus):
        return (kernels.conflict(w_plus, w_minus),)
    before = _shifted(w_plus, 0.0).cumsum(-1)
    after = _shifted(w_plus.flip(-1), 0.0).cumsum(-1).flip(-1)
    some = (_support(w_plus) * torch.exp(-before) * _support(w_minus + after)).sum(-1)
    none = torch.exp(-w_plus.sum(-1)) * _support(w_minus).prod(-1)
    return (_at_most_one(some + none),)


def ignorance(w_plus: torch.Tensor, w_minus: torch.Tensor) -> tuple[torch.Tensor]:
    """Return what `ignorance_from_weights` returns, for rows that have been checked."""
    if kernels := kernels_for(w_plus, w_minus):
        return (kernels.ignorance(w_plus, w_minus),)
    row = _scaled(w_plus, w_minus)
    log_frame = -w_minus.sum(-1) - row.shift[..., 0] - row.total[..., 0].log()
    return (_at_most_one(log_frame.exp()),)


def mass(w_plus: torch.Tensor, w_minus: torch.Tensor) -> tuple[torch.Tensor]:
    """Return what `mass_from_weights` returns, for rows that have been checked."""
    n_classes = w_plus.shape[-1]
    if n_classes > MAX_LISTED_CLASSES:
        raise ValueError(
            f"Masses of all sets are listed for at most {MAX_LISTED_CLASSES} classes; got "
            f"{n_classes}. Bounds, conflict and ignorance have no such limit."
        )
    row = _scaled(w_plus, w_minus)
    # Factors relative to the largest one do not underflow where D is far smaller than 1.
    least = w_minus.detach().amin(-1, keepdim=True)
    not_excluded, excluded = torch.exp(least - w_minus), _support(w_minus)
    product, size = torch.ones_like(least), torch.zeros_like(least[:1])
    for k in range(n_classes):
        product = torch.cat(
            [product * excluded[:, k, None], product * not_excluded[:, k, None]], dim=1
        )
        size = torch.cat([size, size + 1], dim=1)
    listed = product[:, 1:] * torch.exp(-size[:, 1:] * least - row.shift) / row.total
    alone = torch.tensor([(1 << k) - 1 for k in range(n_classes)], device=w_plus.device)
    return (listed.index_copy(1, alone, bounds(w_plus, w_minus)[0]),)


class _ScaledTerms(NamedTuple):
    """Terms common to the formulas, per row, with M the `shift`, the largest :math:`w^+_k-w^-_k`.

    `plausible` is :math:`e^{w^+_k-w^-_k-M}`, at most 1; `total` is :math:`De^{-M}`, between 1 and
    2K; `belief_ratio` is belief over plausibility.
    """

    plausible: torch.Tensor
    belief_ratio: torch.Tensor
    total: torch.Tensor
    shift: torch.Tensor


def _scaled(w_plus: torch.Tensor, w_minus: torch.Tensor) -> _ScaledTerms:
    difference = w_plus - w_minus
    with torch.no_grad():
        shift = difference.amax(-1, keepdim=True)
        error = _rounding_error(w_plus, w_minus, difference)
    plausible = torch.exp(difference - shift + error)
    no_support, support, opposition = torch.exp(-w_plus), _support(w_plus), _support(w_minus)
    # 1 - ∏q is the sum over k of the probability that k is the first class not ruled out.
    before = _shifted(opposition, 1.0).cumprod(-1)
    after = _shifted(opposition.flip(-1), 1.0).cumprod(-1).flip(-1)
    total = (plausible * (support + no_support * before)).sum(-1, keepdim=True)
    return _ScaledTerms(plausible, support + no_support * before * after, total, shift)


def _support(weight: torch.Tensor) -> torch.Tensor:
    return -torch.expm1(-weight)


def _shifted(x: torch.Tensor, first: float) -> torch.Tensor:
    """Return columns moved one to the right: cumulative sums then exclude their own column."""
    return torch.cat([torch.full_like(x[..., :1], first), x[..., :-1]], dim=-1)


def _rounding_error(a: torch.Tensor, b: torch.Tensor, difference: torch.Tensor) -> torch.Tensor:
    """Return a - b minus its rounded value, exactly (Knuth's TwoSum)."""
    minus_b = difference - a
    return (a - (difference - minus_b)) - (b + minus_b)


def _at_most_one(x: torch.Tensor) -> torch.Tensor:
    """Return x clipped to 1 with its gradient unchanged."""
    return x - (x.detach() - 1).clamp(min=0)


def _from_weights(
    formula: Formula, w_plus: torch.Tensor, w_minus: torch.Tensor
) -> tuple[torch.Tensor, ...]:
    """Return a formula of checked weights, computed in chunks of rows."""
    check_floating("w_plus", w_plus)
    check_floating("w_minus", w_minus)
    if w_plus.shape != w_minus.shape:
        raise ValueError(
            "w_plus and w_minus must have one shape, (..., K); "
            f"got {tuple(w_plus.shape)} and {tuple(w_minus.shape)}."
        )
    if not w_plus.ndim or w_plus.shape[-1] < 2:
        raise ValueError(f"Weights need at least 2 classes; got shape {tuple(w_plus.shape)}.")
    lead, n_classes = w_plus.shape[:-1], w_plus.shape[-1]
    dtype = torch.promote_types(w_plus.dtype, w_minus.dtype)
    rows = [w.reshape(-1, n_classes).to(dtype) for w in (w_plus, w_minus)]
    if formula is mass:
        results = by_rows(formula, *rows, width=2**n_classes)
    elif kernels_for(*rows):  # no chunks: the kernels allocate only their results
        results = formula(*rows)
    else:
        results = by_rows(formula, *rows, width=n_classes)
    return tuple(x.reshape(lead + x.shape[1:]) for x in results)
