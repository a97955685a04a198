"""What a training step minimises: the method's loss of a batch, whoever encodes it."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from expclr.encoders.scaled import ScaledEncoder, encode
from expclr.encoders.tcn import can_be_products
from expclr.encoders.tcn_matmul import tcn_as_products
from expclr.engine import gather
from expclr.memory import InParts
from expclr.methods.base import Batch, Encode, Method

__all__ = ["loss_of"]


def loss_of(
    encoder: nn.Module,
    method: nn.Module,
    batch: Batch,
    *,
    precision: torch.dtype = torch.float32,
    as_products: bool = False,
    parts: int = 1,
) -> Tensor:
    """The method's loss of one batch, of which each rank holds its share.

    The network computes in ``precision``, by autocast; with ``as_products`` a TCN does so as
    matrix products, and another network in float32. What is measured on embeddings stays float32.
    With several ``parts`` the batch is encoded part by part, for want of memory.
    """
    x = batch.x
    network: Any = encoder
    if isinstance(encoder, ScaledEncoder):
        # Views are drawn of scaled windows: their strengths are then in standard deviations.
        x, network = encoder.scale(batch.x), encoder.encoder
    if as_products and can_be_products(network):
        network = partial(tcn_as_products, network, precision=precision)
    elif precision != torch.float32 and not as_products:
        network = _Autocast(network, precision)
    if parts > 1:
        network = InParts(network, parts)
    assert isinstance(method, Method)
    targets = batch.features, batch.labels, batch.fixed if method.takes_fixed else None
    whole = Batch(x, batch.lengths, *[v if v is None else gather(v) for v in targets])
    return method.step(_Gathered(network, None if method.augments else batch.fixed), whole)


class _Gathered:
    """A network that gives the rows of all ranks: what a method encodes with."""

    def __init__(self, network: Any, fixed: Tensor | None) -> None:
        self.network, self.fixed = network, fixed

    def __call__(self, x: Tensor, lengths: Tensor | None) -> Tensor:
        return gather(encode(self.network, x, lengths, self.fixed))

    def __getattr__(self, name: str) -> Encode:
        """Another output of the network, as the feature map of encoder "tstcc"."""
        output: Any = getattr(self.network, name)
        return lambda x, lengths: gather(output(x, lengths))


class _Autocast:
    """A network, and its other outputs, in another precision; what comes out is float32."""

    def __init__(self, network: Any, precision: torch.dtype) -> None:
        self.network, self.precision = network, precision

    def __call__(self, x: Tensor, *args: Any, **others: Any) -> Tensor:
        with torch.autocast(x.device.type, dtype=self.precision):
            z: Tensor = self.network(x, *args, **others)
        return z.float()

    def __getattr__(self, name: str) -> _Autocast:
        return _Autocast(getattr(self.network, name), self.precision)
