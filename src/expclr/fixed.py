"""What a network makes of windows without any weight: computed once, then read from memory."""

from __future__ import annotations

import tempfile
from collections import OrderedDict
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from tqdm import tqdm

from expclr.encoders.scaled import ScaledEncoder
from expclr.windows import Windows

__all__ = ["FixedFeatures", "compute_fixed"]

IN_MEMORY = 2**30  # bytes; more goes to a file that vanishes with the process
KEPT = 4  # sets of windows: those of training, the labelled ones, those asked about last


@torch.inference_mode()
def compute_fixed(
    encoder: ScaledEncoder,
    X: NDArray[np.float32],
    lengths: NDArray[np.int64] | None,
    *,
    device: torch.device,
) -> Tensor:
    """``encoder.fixed`` of all windows, (n, c, t) -> (n, k), chunk by chunk."""
    size = 256 if device.type == "cpu" else 4096
    dtype: torch.dtype = getattr(encoder.encoder, "fixed_dtype", torch.float32)
    kept: NDArray[Any] | None = None
    encoder.to(device).eval()
    starts = range(0, len(X), size)
    for start in tqdm(starts, "fixed features", disable=len(starts) < 4 or None, leave=False):
        x = torch.from_numpy(np.array(X[start : start + size])).to(device)  # X may be read-only
        real = None if lengths is None else torch.from_numpy(lengths[start : start + size])
        part = encoder.fixed(x, None if real is None else real.to(device)).to(dtype).cpu().numpy()
        kept = _store((len(X), part.shape[1]), part.dtype) if kept is None else kept
        kept[start : start + size] = part
    assert kept is not None
    return torch.from_numpy(kept)


def _store(shape: tuple[int, int], dtype: np.dtype[Any]) -> NDArray[Any]:
    if shape[0] * shape[1] * dtype.itemsize <= IN_MEMORY:
        return np.empty(shape, dtype)
    with tempfile.TemporaryFile(prefix="expclr-") as file:
        # It has no name, and its room goes with the last reference: nothing is left on kill -9.
        return np.memmap(file, dtype, "w+", shape=shape)


class FixedFeatures:
    """The fixed features of the windows seen last: an encoder is asked once for each set.

    Not copied and not saved with an estimator: what is in it can be computed again.
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[str, Tensor] = OrderedDict()

    def of(
        self, encoder: ScaledEncoder, windows: Windows, *, device: torch.device
    ) -> Tensor | None:
        """(n, k), or None for an encoder without a fixed part."""
        if not encoder.has_fixed or not len(windows):
            return None
        key = windows.content()
        if key not in self._kept:
            self._keep(key, compute_fixed(encoder, windows.X, windows.lengths, device=device))
        self._kept.move_to_end(key)
        return self._kept[key]

    def share(self, windows: Windows, rows: NDArray[np.int64]) -> None:
        """Take the rows of windows that are known for the windows at these rows."""
        if self._kept and (whole := self._kept.get(windows.content())) is not None:
            self._keep(windows.subset(rows).content(), whole[torch.from_numpy(rows)])

    def _keep(self, key: str, values: Tensor) -> None:
        self._kept[key] = values
        while len(self._kept) > KEPT:
            self._kept.popitem(last=False)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        copied = type(self)()
        copied._kept = self._kept.copy()  # the tensors are only read
        return copied

    def __reduce__(self) -> tuple[type[Self], tuple[()]]:
        return type(self), ()
