"""Evidence of the last linear layer of a torch model (Denœux 2019), on its device and dtype.

>>> import torch
>>> from dubito.evidence.torch import EvidentialHead
>>> _ = torch.manual_seed(0)
>>> body = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU())
>>> model = torch.nn.Sequential(body, torch.nn.Linear(8, 3))
>>> data = torch.utils.data.TensorDataset(torch.randn(100, 4))
>>> loader = torch.utils.data.DataLoader(data, batch_size=32)
>>> head = EvidentialHead.from_linear(model[1], features=loader, backbone=body)
>>> bounds = head.bounds(body(torch.randn(5, 4)))
>>> bounds.lower.shape, bool((bounds.lower <= bounds.upper).all())
(torch.Size([5, 3]), True)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

try:
    import torch
except ModuleNotFoundError as error:
    message = "dubito.evidence.torch needs PyTorch: pip install '.[torch]' in a checkout of dubito."
    raise ModuleNotFoundError(message, name="torch") from error
from torch import nn
from torch.nn import functional

from dubito._validation import TIE, NotSupportedError
from dubito.evidence import _torch_belief as belief
from dubito.evidence._torch_belief import (
    TensorBounds,
    bounds_from_weights,
    conflict_from_weights,
    ignorance_from_weights,
    mass_from_weights,
)
from dubito.evidence._torch_features import LayerInput, feature_mean
from dubito.evidence._torch_rows import Formula, by_rows, check_floating, working_dtype
from dubito.evidence._torch_weights import (
    least_commitment_penalty,
    least_committed,
    signed_weights,
    totals,
)

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "EvidentialHead",
    "LayerInput",
    "TensorBounds",
    "bounds_from_weights",
    "conflict_from_weights",
    "ignorance_from_weights",
    "least_commitment_penalty",
    "mass_from_weights",
]


class EvidentialHead(nn.Module):
    r"""Weights of evidence, bounds and masses from a linear output layer.

    Each feature :math:`\phi_j` gives class k the weight of evidence
    :math:`w_{jk}=\beta^*_{jk}\phi_j+\alpha^*_{jk}`: for the class where it is positive, against it
    where negative. Of all weights that add up to the layer's logits, these are the least
    committed: their sum of squares over the training rows is smallest (Denœux 2019, Prop. 2; eq.
    32-35 for one output). Dempster's rule combines them, and the softmax of the layer is the
    normalised plausibility of the result.

    The layer is copied, as buffers: they follow ``.to()`` and are saved, but not trained. Results
    have the dtype that features and buffers promote to; half precision is computed in float32.
    Everything is differentiable in the features. Rows are processed in chunks, so that memory does
    not grow with rows times features times classes.

    Parameters
    ----------
    coef : Tensor of shape (K, J), or (1, J) for two classes
        Weight of the layer. One row: a positive output is for class 1, a negative one for class 0.
    intercept : Tensor of shape (K,) or (1,)
        Bias of the layer.
    mean : Tensor of shape (J,)
        Means of the features over the training rows.

    See Also
    --------
    dubito.evidence.EvidenceModel : The same on arrays.

    Examples
    --------
    >>> import torch
    >>> from dubito.evidence.torch import EvidentialHead
    >>> head = EvidentialHead(torch.tensor([[0.1, 0.4]]), torch.tensor([-7.0]),
    ...                       torch.tensor([42.0, 5.0]))
    >>> patient = torch.tensor([[31.0, 8.5]])
    >>> head.weights(patient)  # the first feature is for class 0, the second for class 1
    tensor([[[1.5000, 0.0000],
             [0.0000, 1.0000]]])
    >>> bounds = head.bounds(patient)
    >>> bounds.lower, bounds.upper
    (tensor([[0.5616, 0.2771]]), tensor([[0.7229, 0.4384]]))
    >>> head.conflict(patient), head.ignorance(patient), head.predict_set(patient)
    (tensor([0.4911]), tensor([0.1613]), tensor([[ True, False]]))
    """

    coef: torch.Tensor
    intercept: torch.Tensor
    mean: torch.Tensor

    def __init__(self, coef: Any, intercept: Any, mean: Any) -> None:
        super().__init__()
        coef = torch.as_tensor(coef).detach()
        dtype = coef.dtype if coef.is_floating_point() else torch.get_default_dtype()
        self.register_buffer("coef", coef.to(dtype, copy=True))
        # Half precision would lose small differences of features around a large mean.
        for name, value, buffer_dtype in (
            ("intercept", intercept, dtype),
            ("mean", mean, working_dtype(dtype)),
        ):
            copied = torch.as_tensor(value).detach().to(coef.device, buffer_dtype, copy=True)
            self.register_buffer(name, copied)
        self._check_buffers()

    def _check_buffers(self) -> None:
        if self.coef.ndim != 2 or 0 in self.coef.shape:
            raise ValueError(
                "coef must be (K, J), or (1, J) for two classes, with at least one feature; "
                f"got shape {tuple(self.coef.shape)}."
            )
        rows, columns = self.coef.shape
        for name, size in (("intercept", rows), ("mean", columns)):
            shape = tuple(getattr(self, name).shape)
            if shape != (size,):
                raise ValueError(
                    f"{name} must be ({size},) for coef of shape ({rows}, {columns}); "
                    f"got shape {shape}."
                )
        for name, buffer in self.named_buffers():
            if not bool(buffer.isfinite().all()):
                raise ValueError(f"{name} must be finite; it has nan or infinite values.")

    @classmethod
    def from_linear(
        cls,
        linear: nn.Linear,
        *,
        features: Any = None,
        mean: Any = None,
        backbone: Callable[..., Any] | None = None,
    ) -> EvidentialHead:
        """Return the head of an output layer, from its training features or their mean.

        Parameters
        ----------
        linear : nn.Linear
            The output layer: K logits, or one logit of two classes.
        features : Tensor of shape (..., J) or iterable of batches
            Training features. Batches are tensors, or tuples that start with one, such as those
            of a DataLoader. They are read once, and averaged in float64.
        mean : Tensor of shape (J,)
            Means of the training features, instead of `features`.
        backbone : callable, optional
            The model below the layer, which turns each batch into features. It runs on the
            layer's device, without gradients, and in evaluation mode if it is a module or the
            method of one; modules that a function calls must be in that mode already. Batches
            that are dicts are passed as keywords.

        Returns
        -------
        EvidentialHead
            On the device and in the type of the layer.
        """
        if not isinstance(linear, nn.Linear) or type(linear).forward is not nn.Linear.forward:
            raise NotSupportedError(
                f"EvidentialHead reads a linear layer; got {type(linear).__name__}. For other "
                "layers with linear output pass its numbers: EvidentialHead(coef, intercept, mean)."
            )
        if (features is None) == (mean is None):
            given = "neither" if features is None else "both"
            raise ValueError(
                f"Pass the training features, or their mean; got {given}. Which weights are least "
                "committed depends on that mean: features=loader computes it."
            )
        if features is not None:
            device = linear.weight.device
            mean = feature_mean(features, linear.in_features, backbone=backbone, device=device)
        coef = linear.weight  # after the backbone has run: parametrised layers recompute it
        intercept = coef.new_zeros(len(coef)) if linear.bias is None else linear.bias
        return cls(coef, intercept, mean)

    @classmethod
    def from_model(cls, model: nn.Module, layer: nn.Linear | str, *, inputs: Any) -> EvidentialHead:
        """Return the head of the output layer of a model, from the model's training inputs.

        `LayerInput` then turns new inputs of the model into features for the head.

        Parameters
        ----------
        model : nn.Module
            Run on `inputs` as it is, without gradients and in evaluation mode.
        layer : nn.Linear or str
            Its output layer, or that layer's name.
        inputs : Tensor or iterable of batches
            Training inputs of the model, as for `from_linear`.

        Returns
        -------
        EvidentialHead

        Examples
        --------
        >>> import torch
        >>> from dubito.evidence.torch import EvidentialHead, LayerInput
        >>> _ = torch.manual_seed(0)
        >>> model = torch.nn.Sequential()
        >>> model.add_module("body", torch.nn.Linear(4, 8))
        >>> model.add_module("fc", torch.nn.Linear(8, 3))
        >>> head = EvidentialHead.from_model(model, "fc", inputs=torch.randn(100, 4))
        >>> features = LayerInput(model, "fc")
        >>> head.bounds(features(torch.randn(5, 4))).width.shape
        torch.Size([5, 3])
        """
        backbone = LayerInput(model, layer)
        return cls.from_linear(backbone.layer, features=inputs, backbone=backbone)

    @property
    def n_features(self) -> int:
        """Number of features J."""
        return self.coef.shape[1]

    @property
    def n_classes(self) -> int:
        """Number of classes K; two where the layer has one output."""
        return max(2, self.coef.shape[0])

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        """Return the logits of the layer, (..., K) or (..., 1)."""
        dtype = self._check_features(features)
        return functional.linear(features.to(dtype), self.coef.to(dtype), self.intercept.to(dtype))

    def logits(self, features: torch.Tensor) -> torch.Tensor:
        """Return the logits of the layer, (..., K) or (..., 1)."""
        return self(features)

    def proba(self, features: torch.Tensor) -> torch.Tensor:
        """Return the layer's probabilities (..., K): the normalised plausibilities."""
        logits = self(features)
        if len(self.coef) == 1:
            return torch.cat([-logits, logits], dim=-1).sigmoid()
        return logits.softmax(-1)

    def weights(self, features: torch.Tensor) -> torch.Tensor:
        """Return the weight of evidence of each feature for each class, (..., J, K).

        Negative: against the class. Of a layer with one output none is negative: evidence
        against class 1 is evidence for class 0.
        """
        return self._by_rows(self._weights, features, width=self.coef.numel())[0]

    def totals(self, features: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return `w_plus` and `w_minus`, (..., K): total weights for and against each class.

        Of a layer with one output all evidence is for one of the two classes, none against.
        """
        w_plus, w_minus = self._by_rows(self._totals, features)
        return w_plus, w_minus

    def bounds(self, features: torch.Tensor) -> TensorBounds:
        """Return belief and plausibility of each class, (..., K) each."""
        return TensorBounds(*self._from_totals(belief.bounds, features))

    def mass(self, features: torch.Tensor) -> torch.Tensor:
        """Return the masses of all sets of classes, (..., 2^K - 1), K up to 16.

        In bit-mask order: column i - 1 is the set whose members are the bits of i.
        """
        return self._from_totals(belief.mass, features, width=2**self.n_classes)[0]

    def conflict(self, features: torch.Tensor) -> torch.Tensor:
        """Return the degree of conflict of the evidence, (...), from 0 to 1."""
        return self._from_totals(belief.conflict, features)[0]

    def ignorance(self, features: torch.Tensor) -> torch.Tensor:
        """Return the mass of the whole frame, (...): 1 where there is no evidence."""
        return self._from_totals(belief.ignorance, features)[0]

    def predict_set(self, features: torch.Tensor) -> torch.Tensor:
        """Return the classes that interval dominance keeps, boolean (..., K), never empty.

        A class is excluded when another one's belief exceeds its plausibility. For other rules pass
        ``head.bounds(features).numpy()`` to `dubito.decision`.
        """
        return self._from_totals(_undominated, features)[0]

    def extra_repr(self) -> str:
        """Return the numbers of features and classes."""
        return f"n_features={self.n_features}, n_classes={self.n_classes}"

    def _from_totals(
        self, formula: Formula, features: torch.Tensor, *, width: int = 1
    ) -> tuple[torch.Tensor, ...]:
        return self._by_rows(lambda *rows: formula(*self._totals(*rows)), features, width=width)

    def _totals(self, *rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        plus, minus = totals(*rows)
        if len(self.coef) > 1:
            return plus, minus
        support = torch.cat([minus, plus], dim=1)  # of class 0 and class 1
        return support, torch.zeros_like(support)

    def _weights(self, *rows: torch.Tensor) -> tuple[torch.Tensor]:
        weights = signed_weights(*rows)
        return (weights if len(self.coef) > 1 else torch.cat([-weights, weights], dim=2).relu(),)

    def _check_features(self, features: torch.Tensor) -> torch.dtype:
        """Return the dtype of the results; raise an error for features of another shape or type."""
        check_floating("features", features)
        if features.shape[-1:] != (self.n_features,):
            raise ValueError(
                f"features must be (..., {self.n_features}), what enters the layer; "
                f"got shape {tuple(features.shape)}."
            )
        return torch.promote_types(features.dtype, self.coef.dtype)

    def _by_rows(
        self, formula: Formula, features: torch.Tensor, *, width: int = 1
    ) -> tuple[torch.Tensor, ...]:
        """Return a formula of centred features, slope and base, computed in chunks of rows."""
        dtype = self._check_features(features)
        inside = working_dtype(dtype)
        coef, intercept, mean = (x.to(inside) for x in (self.coef, self.intercept, self.mean))
        layer = least_committed(coef, intercept, mean)
        results = by_rows(
            lambda rows: formula(rows - mean, *layer),
            features.reshape(-1, self.n_features).to(dtype),
            width=max(width, self.n_features, self.n_classes),
        )
        return tuple(x.reshape(features.shape[:-1] + x.shape[1:]) for x in results)


def _undominated(w_plus: torch.Tensor, w_minus: torch.Tensor) -> tuple[torch.Tensor]:
    """Return the classes that interval dominance keeps, (n, K)."""
    lower, upper = belief.bounds(w_plus, w_minus)
    # The tolerance of two classes in `dubito.decision`, or a few rounding errors of the dtype.
    tie = max(2 * TIE, 4 * torch.finfo(upper.dtype).eps)
    # Comparisons with nan are False: such a row keeps every class.
    return (~(upper < lower.amax(-1, keepdim=True) - tie),)
