"""What is minimised: one file a method, one line in this table."""

from __future__ import annotations

from typing import Any

from expclr.registry import Registry

METHODS = Registry(
    "method",
    {
        "expclr": "expclr.methods.expclr:ExpCLRLoss",
        "expclr_plus": "expclr.methods.expclr_plus:ExpCLRPlus",
        "quadratic": "expclr.methods.quadratic:QuadraticLoss",
        "pair": "expclr.methods.pair:PairLoss",
        "relaxed": "expclr.methods.relaxed:RelaxedContrastiveLoss",
        "logratio": "expclr.methods.logratio:LogRatioLoss",
        "simclr": "expclr.methods.simclr:NTXentLoss",
        "supcon": "expclr.methods.supcon:SupConLoss",
        "sleepprior": "expclr.methods.sleepprior:SleepPriorLoss",
        "treba": "expclr.methods.treba:TrebaLoss",
        "decoding": "expclr.methods.decoding:FeatureDecoding",
        "tstcc": "expclr.methods.tstcc:TSTCC",
        "rankncontrast": "expclr.methods.rankncontrast:RankNContrastLoss",
        "yaware": "expclr.methods.yaware:YAwareLoss",
        "softclt": "expclr.methods.softclt:SoftCLTLoss",
        "domainssl": "expclr.methods.domainssl:DomainSSLLoss",
        "rkd": "expclr.methods.rkd:RKDLoss",
        "cross_entropy": "expclr.methods.cross_entropy:CrossEntropy",
        "random": "expclr.methods.random_init:RandomInit",
    },
)

__all__ = ["METHODS"]


def __getattr__(name: str) -> Any:
    return METHODS.by_object_name(name)
