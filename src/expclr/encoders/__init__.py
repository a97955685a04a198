"""Networks from windows to embeddings: one file a network, one line in this table."""

from __future__ import annotations

from typing import Any

from expclr.registry import Registry

ENCODERS = Registry(
    "encoder",
    {
        "tcn": "expclr.encoders.tcn:TCN",
        "rocket": "expclr.encoders.rocket:Rocket",
        "hybrid": "expclr.encoders.hybrid:Hybrid",
        "inception": "expclr.encoders.inception:Inception",
        "tstcc": "expclr.encoders.tstcc:TSTCCEncoder",
    },
)

__all__ = ["ENCODERS"]


def __getattr__(name: str) -> Any:
    return ENCODERS.by_object_name(name)
