"""Models of one build side by side: one step trains them all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap

from expclr.engine.device import has_kernels

__all__ = ["Stack", "blueprint"]

BETAS, EPSILON = (0.9, 0.999), 1e-8  # of Adam, as everywhere
VARYING = ("base_temperature", "delta", "tau", "temperature")  # the losses of a stack may differ in

Loss = Callable[..., Tensor]  # (model, *tensors of a batch) -> scalar


class Stack:
    """K models whose weights lie in one tensor, (K, p), with Adam and a learning rate for each.

    The loss of all is ``torch.func.vmap`` of the loss of one: matrix products become batched
    products. No number of one model depends on another, but for random masks, which are drawn
    for all at once.

    Parameters
    ----------
    models : sequence of Module
        Of one ``blueprint``; they keep their weights until ``write_back``.
    loss : callable
        From a model and the tensors of a batch to a scalar.
    """

    def __init__(self, models: Sequence[nn.Module], loss: Loss) -> None:
        self.models = list(models)
        self._one = _LossOf(models[0], loss)
        self._shapes = {k: p.shape for k, p in self._one.named_parameters()}
        self.weights = torch.stack([_flat(model) for model in models]).requires_grad_()
        self.buffers = {
            f"model.{name}": torch.stack([dict(model.named_buffers())[name] for model in models])
            for name, _ in models[0].named_buffers()
        }
        self._numbers = _numbers_that_differ(models, self.weights.device)
        self.lr = torch.zeros(len(models), 1, device=self.weights.device)
        self.steps = torch.zeros((), device=self.weights.device)
        self.first, self.second = (torch.zeros_like(self.weights.detach()) for _ in BETAS)
        self._update = _adam_of(self.weights)

    def step(self, *batch: Tensor | None) -> Tensor:
        """Train each model on its batch, tensors (K, b, ...); return the losses, (K,)."""
        losses = self._losses(self.weights, *batch)
        (gradient,) = torch.autograd.grad(losses.sum(), self.weights)
        with torch.no_grad():
            self.steps += 1
            self._update(self.weights, gradient, self.first, self.second, self.steps, self.lr)
        return losses.detach()

    def state(self) -> list[Tensor]:
        """All that a step changes."""
        return [self.weights, self.first, self.second, self.steps, *self.buffers.values()]

    def write_back(self) -> None:
        """Give the models their weights and buffers."""
        with torch.no_grad():
            for number, model in enumerate(self.models):
                weights = self._parts(self.weights[number : number + 1])
                for name, parameter in model.named_parameters():
                    parameter.copy_(weights[f"model.{name}"][0])
                for name, buffer in model.named_buffers():
                    buffer.copy_(self.buffers[f"model.{name}"][number])

    def _losses(self, weights: Tensor, *batch: Tensor | None) -> Tensor:
        def one(
            parts: dict[str, Tensor], buffers: dict[str, Tensor], numbers: list[Tensor], *rows: Any
        ) -> Any:
            with _set(self._one.model, dict(zip(self._numbers, numbers, strict=True))):
                return functional_call(self._one, parts | buffers, rows)

        dims = (0, 0, 0, *[None if rows is None else 0 for rows in batch])
        together: Any = vmap(one, in_dims=dims, randomness="different")
        numbers = list(self._numbers.values())
        losses: Tensor = together(self._parts(weights), self.buffers, numbers, *batch)
        return losses

    def _parts(self, weights: Tensor) -> dict[str, Tensor]:
        """The parameters by name, (K, ...): one split, whose gradient is one concatenation."""
        parts = weights.split([shape.numel() for shape in self._shapes.values()], dim=1)
        return {
            name: part.unflatten(1, shape) if shape else part[:, 0]
            for (name, shape), part in zip(self._shapes.items(), parts, strict=True)
        }


class _LossOf(nn.Module):
    """A model whose output is its loss: what ``functional_call`` calls."""

    def __init__(self, model: nn.Module, loss: Loss) -> None:
        super().__init__()
        self.model, self.loss = model, loss

    def forward(self, *batch: Tensor) -> Tensor:
        return self.loss(self.model, *batch)


def _numbers_that_differ(
    models: Sequence[nn.Module], device: torch.device
) -> dict[tuple[str, str], Tensor]:
    """(module, name) -> the number of each model, (K,), where they are not all the same."""
    found = {}
    for path, module in models[0].named_modules():
        for name in VARYING:
            if isinstance(getattr(module, name, None), float):
                each = [float(getattr(model.get_submodule(path), name)) for model in models]
                if len(set(each)) > 1:
                    found[path, name] = torch.tensor(each, device=device)
    return found


@contextmanager
def _set(model: nn.Module, numbers: Mapping[tuple[str, str], Tensor]) -> Iterator[None]:
    """The model with other numbers for a while."""
    before = {at: getattr(model.get_submodule(at[0]), at[1]) for at in numbers}
    try:
        for (path, name), number in numbers.items():
            setattr(model.get_submodule(path), name, number)
        yield
    finally:
        for (path, name), number in before.items():
            setattr(model.get_submodule(path), name, number)


def _flat(model: nn.Module) -> Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])


def _adam_of(weights: Tensor) -> Callable[..., None]:
    """One pass over the weights where there is a kernel for it."""
    if not has_kernels(weights):
        return _adam
    from expclr.engine.adam_kernel import stepped

    return partial(stepped, betas=BETAS, epsilon=EPSILON)


def _adam(
    weights: Tensor, gradient: Tensor, first: Tensor, second: Tensor, steps: Tensor, lr: Tensor
) -> None:
    """Adam as torch has it, in place, with a learning rate for each row."""
    beta1, beta2 = BETAS
    first.lerp_(gradient, 1 - beta1)
    second.mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
    root = second.sqrt() / (1 - beta2**steps).sqrt() + EPSILON
    weights -= lr / (1 - beta1**steps) * first / root


def blueprint(model: nn.Module) -> tuple[Any, ...]:
    """What two models must share to be stacked: modules, settings, shapes; not the weights."""
    modules = [
        (name, type(module), *sorted((k, repr(v)) for k, v in _settings(module).items()))
        for name, module in model.named_modules()
    ]
    tensors = [*model.named_parameters(), *model.named_buffers()]
    return (*modules, *((name, tuple(v.shape), v.dtype) for name, v in tensors))


def _settings(module: nn.Module) -> dict[str, Any]:
    return {
        k: v
        for k, v in vars(module).items()
        if not (k.startswith("_") or (k in VARYING and isinstance(v, float)))
    }
