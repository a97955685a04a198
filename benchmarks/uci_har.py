"""Seconds of a CPU until ExpCLR reads uci_har as well as the paper does (91.2 %, linear probe).

    python benchmarks/uci_har.py --out benchmarks/results/uci_har_cpu.json

The schedule is chosen on subjects held out of the training part (``--choose``); test windows are
read once, by the last line of the result. Seconds are of the processor, summed over its cores:
other programs on the machine change them little. Over two cores a training takes about half of
them.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

from machine import machine, write

from expclr import ExpCLR, Windows, load_dataset
from expclr.evaluation import linear_probe

GOAL = 0.912


def measured(train: Windows, test: Windows, settings: dict[str, Any]) -> dict[str, Any]:
    """Train, embed, probe; seconds of each."""
    clock = [time.process_time()]
    learner = ExpCLR(**settings).fit(train)
    clock.append(time.process_time())
    Z_train, Z_test = learner.transform(train), learner.transform(test)
    clock.append(time.process_time())
    accuracy = linear_probe(Z_train, train.y, Z_test, test.y)["accuracy"]
    steps = sum(len(train) // learner.batch_size for _ in learner.history_)
    return {
        "linear_accuracy": round(float(accuracy), 4),
        "train_cpu_seconds": round(clock[1] - clock[0], 1),
        "embed_cpu_seconds": round(clock[2] - clock[1], 1),
        "cpu_ms_per_step": round(1e3 * (clock[1] - clock[0]) / max(1, steps), 1),
        "windows": len(train),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--decay", type=float, default=0.75)
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--precision", default="bfloat16")
    parser.add_argument("--choose", action="store_true", help="on held-out training subjects")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    train, test = load_dataset("uci_har")
    if options.choose:
        train, test = train.split_by_group(0.25, random_state=0)
    settings = {
        "max_epochs": options.epochs,
        "lr": options.lr,
        "lr_decay": options.decay,
        "precision": options.precision,
        "random_state": options.seed,
        "device": "cpu",
    }
    result = measured(train, test, settings)
    part = "held-out training subjects" if options.choose else "test"
    results = {"goal": GOAL, "read_on": part, "settings": settings, **result}
    write(options.out, {"machine": machine(), **results})
    print(results)


if __name__ == "__main__":
    main()
