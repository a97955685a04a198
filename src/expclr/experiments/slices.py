"""The whole study in slices: choose, rerun, pack; the same command goes on where it stopped.

``python -m expclr.experiments.slices --npz FOLDER --held FOLDER --out FOLDER --minutes 6``
"""

from __future__ import annotations

import argparse
import logging
import shutil
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from expclr.errors import ConfigError, DataError
from expclr.experiments.choices import HERE as KEPT
from expclr.experiments.paper import LEARNING_RATES
from expclr.experiments.reproduce import reproduce
from expclr.experiments.store import Store
from expclr.experiments.tuning import STAGES, TUNED, OutOfTimeError, tune

__all__ = ["STUDIES", "Slice", "main"]

STUDIES = {"uci_har": ("all",), "mitdb": ("table1", "semi")}
KINDS = ("tuning", "results")

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Slice:
    """Where the study's parts lie, and what is run of it.

    Parameters
    ----------
    work : path
        Stores of trials and results, and the choices; kept between slices on one machine.
    out : path
        Gets ``tuning.jsonl``, ``results.jsonl`` and ``choices/`` of all that is finished.
    held : path, optional
        Folder with those files of earlier slices, which are not run again.
    npz : path, optional
        Folder of exported datasets instead of raw files.
    experiments : sequence of str
        Only these; default those of ``STUDIES``.
    budget, device, seeds, systems, stages, rates, per_group
        As in :func:`expclr.experiments.reproduce.reproduce` and
        :func:`expclr.experiments.tuning.tune`.
    """

    work: Path
    out: Path
    held: Path | None = None
    npz: Path | None = None
    budget: str | None = None
    device: str = "auto"
    seeds: int = 5
    experiments: Sequence[str] = ()
    systems: Sequence[str] = ()
    stages: Sequence[str] = STAGES
    rates: Sequence[float] = LEARNING_RATES
    per_group: int | None = None

    def run(self, studies: Sequence[str], minutes: float | None = None) -> bool:
        """Go on for so many minutes; return whether nothing is left."""
        self._take_up()
        until = time.monotonic() + 60 * minutes if minutes else None
        try:
            return all([self._study(name, until) for name in studies])  # noqa: C419
        except OutOfTimeError as error:
            log.warning("%s", error)
            return False
        finally:
            self.pack()

    def pack(self) -> None:
        """Write what is finished into the few files that are carried away."""
        self.out.mkdir(parents=True, exist_ok=True)
        for kind in KINDS:
            Store(self.work / kind).pack(self.out / f"{kind}.jsonl")
        if (self.work / "choices").is_dir():
            shutil.copytree(self.work / "choices", self.out / "choices", dirs_exist_ok=True)

    def _take_up(self) -> None:
        """Go on from what is held, and from the choices that the package keeps."""
        for file in sorted(KEPT.glob("*.yaml")):
            there = self.work / "choices" / file.name
            if not there.exists():
                there.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, there)
        for kind in KINDS if self.held else ():
            for file in sorted(self.held.glob(f"**/{kind}*.jsonl")):  # type: ignore[union-attr]
                Store(self.work / kind).merge([file])

    def _study(self, name: str, until: float | None) -> bool:
        common = {
            "data": name,
            "npz": self.npz,
            "budget": self.budget,
            "device": self.device,
            "choices": self.work / "choices",
            "per_group": self.per_group,
        }
        tuned = [name for name in self.systems if name in TUNED]
        if tuned or not self.systems:
            tune(
                out=self.work / "tuning",
                systems=tuned,
                stages=self.stages,
                rates=self.rates,
                minutes=_left(until),
                **common,  # type: ignore[arg-type]
            )
        left = reproduce(
            self.experiments or STUDIES[name],
            out=self.work / "results",
            seeds=self.seeds,
            systems=self.systems,
            minutes=_left(until),
            estimated=False,
            **common,  # type: ignore[arg-type]
        )
        return not left


def _left(until: float | None) -> float | None:
    return None if until is None else max(0.0, (until - time.monotonic()) / 60)


def main(arguments: Sequence[str] | None = None) -> int:
    """0: all is done, 3: the same command goes on, 2: something is wrong with what was given."""
    parser = argparse.ArgumentParser(prog="python -m expclr.experiments.slices")
    parser.add_argument("--data", default=",".join(STUDIES), help="with commas between")
    parser.add_argument("--npz", type=Path, help="folder of exported datasets")
    parser.add_argument("--held", type=Path, help="folder of what earlier slices packed")
    parser.add_argument("--work", type=Path, default=Path("runs/paper"))
    parser.add_argument("--out", type=Path, default=Path("runs/packed"))
    parser.add_argument("--budget")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--systems", default="", help="only these, with commas between")
    parser.add_argument("--experiments", default="", help="only these, with commas between")
    parser.add_argument("--stages", default=",".join(STAGES), help="of what is chosen")
    parser.add_argument("--rates", default="", help="learning rates, with commas between")
    parser.add_argument("--per-group", type=int, help="only so many windows of each group")
    parser.add_argument("--minutes", type=float, help="begin nothing new after so long")
    parser.add_argument("--pack-only", action="store_true", help="run nothing, pack what is there")
    given = vars(parser.parse_args(arguments))
    minutes, studies, pack_only = (given.pop(k) for k in ("minutes", "data", "pack_only"))
    for words in ("systems", "experiments", "stages"):
        given[words] = [word for word in given[words].split(",") if word]
    given["rates"] = [float(r) for r in given["rates"].split(",") if r] or LEARNING_RATES
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    try:
        part = Slice(**given)
        if pack_only:
            part.pack()
            return 0
        return 0 if part.run(studies.split(","), minutes) else 3
    except (ConfigError, DataError) as error:
        print(f"slices: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
