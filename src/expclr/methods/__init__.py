"""What is minimised: one file a method, one line in this table."""

from __future__ import annotations

from typing import Any

from expclr.registry import Registry

METHODS = Registry(
    "method",
    {
        "expclr": "expclr.methods.expclr:ExpCLRLoss",
        "quadratic": "expclr.methods.quadratic:QuadraticLoss",
        "pair": "expclr.methods.pair:PairLoss",
        "cross_entropy": "expclr.methods.cross_entropy:CrossEntropy",
        "random": "expclr.methods.random_init:RandomInit",
    },
)

__all__ = ["METHODS"]


def __getattr__(name: str) -> Any:
    return METHODS.by_object_name(name)
