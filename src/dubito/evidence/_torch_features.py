"""The input features of a linear layer of a model, and their mean over batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

if TYPE_CHECKING:
    from collections.abc import Iterator


class LayerInput(nn.Module):
    """A module that returns the input of one layer of a model, called like the model.

    Parameters
    ----------
    model : nn.Module
        Any model; it is run in its current mode.
    layer : nn.Module or str
        The layer, or its name in the model, as in ``model.named_modules()``.

    Examples
    --------
    >>> import torch
    >>> from dubito.evidence.torch import LayerInput
    >>> model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU(), torch.nn.Linear(3, 2))
    >>> features = LayerInput(model, "2")
    >>> features(torch.ones(5, 4)).shape
    torch.Size([5, 3])
    """

    def __init__(self, model: nn.Module, layer: nn.Module | str) -> None:
        super().__init__()
        modules = model.named_modules(remove_duplicate=False)  # a layer may have two names
        names = {name: module for name, module in modules if name}
        if isinstance(layer, str) and layer not in names:
            known = ", ".join(name for name, m in names.items() if isinstance(m, nn.Linear))
            raise ValueError(
                f"The model has no layer {layer!r}; its linear layers are: {known or 'none'}."
            )
        if not isinstance(layer, str) and all(layer is not module for module in names.values()):
            raise ValueError("layer is not part of the model; pass one of its modules or a name.")
        self.model = model
        self.layer = names[layer] if isinstance(layer, str) else layer

    def forward(self, *args: Any, **kwargs: Any) -> torch.Tensor:
        """Run the model and return the input of the layer."""
        inputs: list[torch.Tensor] = []

        def record(_: nn.Module, given: tuple[Any, ...], named: dict[str, Any]) -> None:
            inputs.append(given[0] if given else named["input"])

        hook = self.layer.register_forward_pre_hook(record, with_kwargs=True)
        try:
            self.model(*args, **kwargs)
        finally:
            hook.remove()
        if len(inputs) != 1:
            raise ValueError(
                f"The model calls the layer {len(inputs)} times in one pass; "
                "the features are what enters it when it is called once."
            )
        return inputs[0]


def feature_mean(
    features: Any, n_features: int, *, backbone: Callable[..., Any] | None, device: torch.device
) -> torch.Tensor:
    """Return the mean of the features over all rows, in float64, (J,) on the CPU."""
    total = torch.zeros(n_features, dtype=torch.float64)
    count = 0
    with torch.no_grad(), _evaluation_mode(backbone):
        for batch in _batches(features):
            rows = _features_of(batch, backbone, device)
            if rows.shape[-1:] != (n_features,):
                raise ValueError(
                    f"The layer takes {n_features} features, but a batch has shape "
                    f"{tuple(rows.shape)}. Pass what enters the layer, or a `backbone` that "
                    "turns batches into it."
                )
            rows = rows.reshape(-1, n_features)
            rows = rows.cpu() if rows.device.type == "mps" else rows  # mps has no float64
            total += rows.sum(0, dtype=torch.float64).cpu()
            count += len(rows)
    if not count:
        raise ValueError("features holds no rows; the mean of the features needs some.")
    if not bool(total.isfinite().all()):
        raise ValueError("features has nan or infinite values; the mean needs finite ones.")
    return total / count


def _batches(features: Any) -> Iterable[Any]:
    if isinstance(features, torch.Tensor):
        return [features]
    if hasattr(features, "__array__"):
        return [torch.as_tensor(features)]
    if isinstance(features, Mapping) or not isinstance(features, Iterable):
        raise TypeError(
            "features must be a tensor or an iterable of batches, such as a DataLoader; "
            f"got {type(features).__name__}."
        )
    return features


def _features_of(
    batch: Any, backbone: Callable[..., Any] | None, device: torch.device
) -> torch.Tensor:
    """Return the features of a batch: a tensor, (tensor, ...) or the keywords of a backbone."""
    if isinstance(batch, tuple | list) and batch:
        batch = batch[0]
    if isinstance(batch, Mapping) and backbone is not None:
        keywords = {k: v.to(device) if hasattr(v, "to") else v for k, v in batch.items()}
        batch = backbone(**keywords)
    elif isinstance(batch, torch.Tensor) and backbone is not None:
        batch = backbone(batch.to(device))
    if not isinstance(batch, torch.Tensor):
        source = "backbone returned" if backbone is not None else "a batch is"
        raise TypeError(
            f"Batches must be tensors, or tuples that start with one; {source} "
            f"{type(batch).__name__}."
        )
    return batch


@contextmanager
def _evaluation_mode(backbone: Callable[..., Any] | None) -> Iterator[None]:
    """Put a module, or the module of a bound method, in evaluation mode within a with block."""
    model = backbone if isinstance(backbone, nn.Module) else getattr(backbone, "__self__", None)
    modules = list(model.modules()) if isinstance(model, nn.Module) else []
    modes = [module.training for module in modules]
    for module in modules:
        module.training = False
    try:
        yield
    finally:
        for module, training in zip(modules, modes, strict=True):
            module.training = training
