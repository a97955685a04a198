"""Seconds of a CPU until a learner reads uci_har as well as the paper does (91.2 %, linear probe).

    python benchmarks/uci_har.py --choose --epochs 8 --decay 0.75 --out ...    # and others
    python benchmarks/uci_har.py --epochs 8 --decay 0.75 --out benchmarks/results/uci_har_cpu.json

The schedule is chosen on subjects held out of the training part (``--choose``); test windows are
read once for a method and encoder, after that they are refused. Labels are for the probe alone.
Seconds are of the processor, summed over its cores: other programs on the machine change them
little. Over two cores a training takes about half of them.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

from machine import machine, write

from expclr import RepresentationLearner, Windows, load_dataset
from expclr.evaluation import linear_probe

GOAL = 0.912
TEST, HELD_OUT = "test", "held-out training subjects"


def measured(train: Windows, test: Windows, settings: dict[str, Any]) -> dict[str, Any]:
    """Train, embed, probe; seconds of each."""
    clock, began = [time.process_time()], time.perf_counter()
    learner = RepresentationLearner(**settings).fit(train)
    clock.append(time.process_time())
    Z_train, Z_test = learner.transform(train), learner.transform(test)
    clock.append(time.process_time())
    accuracy = linear_probe(Z_train, train.y, Z_test, test.y)["accuracy"]
    return {
        "linear_accuracy": round(float(accuracy), 4),
        "train_cpu_seconds": round(clock[1] - clock[0], 1),
        "embed_cpu_seconds": round(clock[2] - clock[1], 1),
        "seconds_with_probe": round(time.perf_counter() - began, 1),
        "epochs": len(learner.history_),
        "windows": len(train),
    }


def trials_of(path: Path, settings: dict[str, Any], read_on: str) -> list[dict[str, Any]]:
    """Those of earlier calls; refuses a second look at the test windows."""
    trials: list[dict[str, Any]] = json.loads(path.read_text())["trials"] if path.exists() else []
    system = (settings["method"], settings["encoder"])
    for trial in trials:
        seen = (trial["settings"]["method"], trial["settings"]["encoder"])
        if read_on == TEST == trial["read_on"] and seen == system:
            raise SystemExit(f"test windows were read for {system} already: {path}")
    return trials


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--method", default="expclr")
    parser.add_argument("--encoder", default="tcn")
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--decay", type=float, default=0.99)
    parser.add_argument("--lr", type=float)
    parser.add_argument("--precision", default="bfloat16")
    parser.add_argument("--batches", default="random")
    parser.add_argument("--choose", action="store_true", help=HELD_OUT)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    settings = {
        "method": options.method,
        "encoder": options.encoder,
        "max_epochs": options.epochs,
        "lr": options.lr,
        "lr_decay": options.decay,
        "precision": options.precision,
        "batches": options.batches,
        "random_state": options.seed,
        "device": "cpu",
    }
    read_on = HELD_OUT if options.choose else TEST
    trials = trials_of(options.out, settings, read_on)
    train, test = load_dataset("uci_har")
    if options.choose:
        train, test = train.split_by_group(0.25, random_state=0)
    trial = {"read_on": read_on, "settings": settings, **measured(train, test, settings)}
    trial |= {"machine": machine()}
    write(options.out, {"goal": GOAL, "trials": [*trials, trial]})
    print(trial)


if __name__ == "__main__":
    main()
