"""What every benchmark notes about the machine, and how results are written."""

from __future__ import annotations

import json
import os
import platform
import shlex
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch


def machine() -> dict[str, Any]:
    """Hardware, versions, load and the command."""
    cuda = torch.cuda.is_available()
    return {
        "command": "python " + shlex.join(sys.argv),
        "device": torch.cuda.get_device_name() if cuda else _processor(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "load": round(os.getloadavg()[0], 1),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
    }


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor()


def write(path: Path, results: dict[str, Any]) -> None:
    """Write results as JSON and show where."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(results, indent=1) + "\n")
    print(path)
