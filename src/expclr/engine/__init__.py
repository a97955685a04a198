"""Device, seeds, ranks and speed: everything a training step needs that is not the model."""

from expclr.engine.adam import adam, set_lr
from expclr.engine.capture import CapturedEpoch, CaptureError
from expclr.engine.device import has_kernels, resolve_device, seeded, shared_memory
from expclr.engine.ranks import average_gradients, gather, rank_of, share_of_rank

__all__ = [
    "CaptureError",
    "CapturedEpoch",
    "adam",
    "average_gradients",
    "gather",
    "has_kernels",
    "rank_of",
    "resolve_device",
    "seeded",
    "set_lr",
    "share_of_rank",
    "shared_memory",
]
