"""Where windows come from: one file a dataset, one line in this table."""

from __future__ import annotations

from typing import Any

from expclr.registry import Registry
from expclr.windows import Windows

__all__ = ["DATASETS", "load_dataset"]

DATASETS = Registry(
    "dataset",
    {
        "uci_har": "expclr.datasets.uci_har:load",
        "hapt": "expclr.datasets.hapt:load",
        "sleep_edf": "expclr.datasets.sleep_edf:load",
        "afdb": "expclr.datasets.afdb:load",
        "mitdb": "expclr.datasets.mitdb:load",
        "ucr": "expclr.datasets.ucr:load",
        "hydraulic": "expclr.datasets.hydraulic:load",
        "machine": "expclr.datasets.machine:load",
    },
)


def load_dataset(name: str, root: str | None = None, **options: Any) -> tuple[Windows, Windows]:
    """Load a dataset by name as (train, test).

    Parameters
    ----------
    name : str
        A key of ``DATASETS`` or a ``"module:function"`` of your own.
    root : str, optional
        Folder of the raw data, ``<root>/<name>/...``; default the environment variable
        EXPCLR_DATA, else the user's data folder.
    **options
        Choices of that dataset, named in its docstring.
    """
    train, test = DATASETS[name](root=root, **options)
    return train, test
