"""What every benchmark notes about the machine, and how results are written."""

from __future__ import annotations

import ctypes
import json
import os
import platform
import shlex
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch


def machine() -> dict[str, Any]:
    """Hardware, versions, load and the command."""
    cuda = torch.cuda.is_available()
    return {
        "command": "python " + shlex.join(_words()),
        "device": torch.cuda.get_device_name() if cuda else _processor(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "load": round(os.getloadavg()[0], 1),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
    }


def _words() -> list[str]:
    """The command's words, but for where its results go and where earlier ones are."""
    words = list(sys.argv)
    for folder in ("--out", "--held"):
        if folder in words:
            at = words.index(folder)
            del words[at : at + 2]
    return words


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


def peak_gb(work: Callable[[], object], device: torch.device) -> float | None:
    """How far memory grows while ``work`` is done, in GB; None where that cannot be seen."""
    if device.type == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        work()
        return round((torch.cuda.max_memory_allocated(device) - before) / 1e9, 4)
    if not Path("/proc/self/clear_refs").exists():
        return None
    ctypes.CDLL(None).malloc_trim(0)  # what is free, but kept, would hide the growth
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    before = _of_status("VmRSS")
    work()
    return round((_of_status("VmHWM") - before) * 1024 / 1e9, 4)


def _of_status(name: str) -> int:
    """Kilobytes of memory of this process."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1])
    raise LookupError(name)


def quickest_ms(
    work: Callable[[], object], device: torch.device, *, repeats: int = 5, seconds: float = 10.0
) -> float:
    """Milliseconds of the quickest of some repeats, which other programs disturb least.

    Of the processor on a CPU, by the clock elsewhere; after one repeat that is not counted. No
    repeat begins when ``seconds`` are over.
    """
    clock = time.process_time if device.type == "cpu" else time.perf_counter
    times, began = [], time.perf_counter()
    while len(times) <= repeats and (len(times) < 2 or time.perf_counter() - began < seconds):
        started = clock()
        work()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        times.append(clock() - started)
    return round(1e3 * min(times[1:]), 3)
