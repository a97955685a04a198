"""Where windows come from: one file a dataset, one line in this table."""

from __future__ import annotations

from typing import Any

import numpy as np

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
        A key of ``DATASETS`` or a ``"module:function"`` of your own; options may follow it, as on
        the command line: ``"ucr,problem=ECG5000"``.
    root : str, optional
        Folder of the raw data, ``<root>/<name>/...``; default the environment variable
        EXPCLR_DATA, else the user's data folder.
    **options
        Choices of that dataset, named in its docstring.

    Examples
    --------
    >>> _, test = load_dataset("machine,n_machines=3,test_machines=1")
    >>> test
    Windows(machine: 50 windows, 3 channels x 512 timepoints, 12 features, 6 classes, 1 groups)
    """
    from expclr.datasets.choices import check_options, split_choice

    key, chosen = split_choice(name)
    load = DATASETS[key]
    plain = {k: v.item() if isinstance(v, np.generic) else v for k, v in options.items()}
    given = {"root": root} | chosen | plain
    check_options(key, load, given)
    train, test = load(**given)
    return train, test
