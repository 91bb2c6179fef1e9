"""Least committed weights of evidence of a linear layer (Denœux 2019, Prop. 2), on tensors."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch.utils.checkpoint import checkpoint

from dubito.evidence._torch_rows import (
    check_floating,
    chunk_size,
    is_transformed,
    kernels_for,
    needs_grad,
    working_dtype,
)

if TYPE_CHECKING:
    from torch import nn

_recomputed = partial(checkpoint, use_reentrant=False, preserve_rng_state=False)


class LeastCommittedLayer(NamedTuple):
    r"""The least committed weights :math:`w_{jk}=\beta^*_{jk}(\phi_j-\mu_j)+b_k`.

    That is eq. 38 of Denœux 2019 with :math:`\alpha^*_{jk}=b_k-\beta^*_{jk}\mu_j`, where
    :math:`b_k` is the centred output at the mean of the features divided by their number. Centred
    features avoid cancellation with a large mean.
    """

    slope: torch.Tensor  # (J, K), or (J, 1) for a binary layer
    base: torch.Tensor  # (K,) or (1,)


def least_committed(
    coef: torch.Tensor, intercept: torch.Tensor, mean: torch.Tensor
) -> LeastCommittedLayer:
    """Return the least committed weights of a layer."""
    if len(coef) > 1:
        coef = coef - coef.mean(0)
        intercept = intercept - intercept.mean()
    at_mean = intercept + (coef * mean).sum(1)
    return LeastCommittedLayer(coef.T.contiguous(), at_mean / coef.shape[1])


def signed_weights(centred: torch.Tensor, slope: torch.Tensor, base: torch.Tensor) -> torch.Tensor:
    """Return the weight of each feature for each class, (n, J, K) from features (n, J)."""
    return torch.addcmul(base, centred[:, :, None], slope)


def totals(
    centred: torch.Tensor, slope: torch.Tensor, base: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return sums of positive and negative parts of the weights over features, (n, K) each."""
    if kernels := kernels_for(centred, slope, base):
        return kernels.totals(centred, slope, base)
    n, n_features = centred.shape
    step = max(1, chunk_size(centred.device) // max(1, n * slope.shape[1]))
    inputs = centred, slope, base
    recompute = step < n_features and needs_grad(*inputs) and not is_transformed(*inputs)
    plus = minus = centred.new_zeros(n, slope.shape[1])
    for j in range(0, n_features, step):
        block = centred[:, j : j + step], slope[j : j + step], base
        # Recompute a block in the backward pass: storing all of them takes too much memory.
        added = _recomputed(_block_totals, *block) if recompute else _block_totals(*block)
        plus, minus = plus + added[0], minus + added[1]
    return plus, minus


def _block_totals(
    centred: torch.Tensor, slope: torch.Tensor, base: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    w = signed_weights(centred, slope, base)
    return w.relu().sum(1), (-w).relu().sum(1)


def least_commitment_penalty(linear: nn.Linear, features: torch.Tensor) -> torch.Tensor:
    r"""Return the mean sum of squared weights of evidence of a batch, to be added to its loss.

    With the means :math:`\mu_j` and variances :math:`s_j^2` of the features in the batch, it is
    the minimum of eq. 36 of Denœux 2019 (eq. 32 for one output), reached at the least committed
    :math:`\alpha^*` of Prop. 2, divided by the number of rows:

    .. math:: \sum_{j=1}^Js_j^2\sum_{k=1}^K{\beta^*_{jk}}^2
              +\frac1J\sum_{k=1}^K\Bigl(\beta^*_{0k}+\sum_{j=1}^J\beta^*_{jk}\mu_j\Bigr)^2 .

    It costs as much time as the layer itself. For centred features it is the sum of Remark 1; the
    remark's heuristic, :math:`\lambda_1\sum\beta_j^2+\lambda_2\beta_0^2`, is the ``weight_decay``
    of torch's optimisers on this layer, and equivalent if all features have mean 0 and one
    variance.

    Parameters
    ----------
    linear : nn.Linear
        The output layer: K logits, or one logit of two classes.
    features : Tensor of shape (..., J)
        What enters the layer. Gradients reach the layer and the features; with
        ``features.detach()`` the layer alone.

    Returns
    -------
    Tensor of shape ()
        In float32 at least: squares of half precision overflow.

    Examples
    --------
    >>> import torch
    >>> from dubito.evidence.torch import least_commitment_penalty
    >>> linear = torch.nn.Linear(2, 1)
    >>> with torch.no_grad():
    ...     _ = linear.weight.copy_(torch.tensor([[1.0, -2.0]]))
    ...     _ = linear.bias.fill_(1.0)
    >>> features = torch.tensor([[1.0, 1.0], [-1.0, -1.0]])  # mean 0, variance 1
    >>> least_commitment_penalty(linear, features).item()  # 1² + 2² + 1²/2
    5.5
    """
    check_floating("features", features)
    coef = linear.weight
    if features.shape[-1:] != coef.shape[1:]:
        raise ValueError(
            f"features must be (..., {coef.shape[1]}), as the layer takes them; "
            f"got shape {tuple(features.shape)}."
        )
    dtype = working_dtype(torch.promote_types(features.dtype, coef.dtype))
    rows, coef = features.reshape(-1, coef.shape[1]).to(dtype), coef.to(dtype)
    if not len(rows):
        raise ValueError("features has no rows; the penalty is a mean over rows.")
    intercept = coef.new_zeros(len(coef)) if linear.bias is None else linear.bias.to(dtype)
    mean = rows.mean(0)
    slope, base = least_committed(coef, intercept, mean)
    variance = (rows - mean).square().mean(0)
    return (variance @ slope.square()).sum() + coef.shape[1] * base.square().sum()
