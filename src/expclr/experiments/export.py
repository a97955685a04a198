"""Datasets as single files for a machine without the raw data.

``python -m expclr.experiments.export FOLDER [DATASET ...]``
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from expclr.experiments.study_data import open_study, write_parts

__all__ = ["export", "main"]


def export(folder: str | Path, datasets: Sequence[str]) -> list[Path]:
    """Write ``<folder>/<dataset>.npz`` of each dataset."""
    written = []
    for name in datasets:
        study = open_study(name)
        written.append(write_parts(Path(folder) / f"{study.name}.npz", study.train, study.test))
    return written


def main(arguments: Sequence[str] | None = None) -> int:
    """Export the datasets named on the command line."""
    parser = argparse.ArgumentParser(prog="python -m expclr.experiments.export")
    parser.add_argument("folder")
    parser.add_argument("datasets", nargs="*", default=["uci_har", "mitdb"])
    given = parser.parse_args(arguments)
    for path in export(given.folder, given.datasets):
        print(f"{path}: {path.stat().st_size / 2**20:.1f} MiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
