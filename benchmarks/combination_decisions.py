"""Two decisions of the section "Encoder and objective": self-training, and a network's lead."""

from __future__ import annotations

from typing import Any

import numpy as np
from combination_systems import Row
from numpy.typing import NDArray

from expclr.choice import CANDIDATES, LEAD

KEYS = ("r2", "seconds")
LEADS = (0.0, 0.01, 0.02, 0.03, 0.05)

SELF_TRAINING = """### Self-training

Decided inside of train, on a fifth of its groups that is drawn anew for each seed: after
fine-tuning on few labels, the encoder as it was before is fine-tuned again, with every other
training window whose predicted class has a probability above the threshold
(`self_training=0.95`). It is the default only if it takes nothing away on any dataset; on
hydraulic that is not shown, so it is off unless asked for. 0.95 was fixed before the test windows
were read. Accuracy in %, and what self-training adds to it, mean ± standard error of paired seeds:
"""

AUTO = """### The network that is taken by itself

`encoder="auto"` trains each network for a short while on train and reads the features on groups
left out. A dearer network must lead by more than what another seed changes. "R2 elsewhere": what
the networks so taken score in the trials of the other seeds, mean of the datasets; "time": of a
trial with the network taken, as a multiple of rocket's.
"""


def self_training_lines(results: dict[str, dict[str, Any]]) -> list[str]:
    """Gains by dataset and share of labels, where trials were made."""
    rows = {
        name: [row for row in found["trials"]["rows"] if "threshold" in row]
        for name, found in results.items()
        if "trials" in found
    }
    rows = {name: of_one for name, of_one in rows.items() if of_one}
    if not rows:
        return []
    some = next(iter(rows.values()))
    thresholds = [t for t in dict.fromkeys(row["threshold"] for row in some) if t is not None]
    heads = " | ".join(f"p > {threshold}" for threshold in thresholds)
    lines = [f"| dataset | labels | seeds | labels alone | {heads} |"]
    lines += ["| --- | ---: | ---: | ---: |" + " ---: |" * len(thresholds)]
    for name, of_one in rows.items():
        for share in dict.fromkeys(row["labels"] for row in of_one):
            scores = {t: by_seed(of_one, share, t) for t in (None, *thresholds)}
            gains = [spoken(paired(scores[t], scores[None]), sign="+") for t in thresholds]
            alone = np.array(list(scores[None].values()))
            cells = [name, f"{share:.0%}", str(len(alone)), spoken(alone), *gains]
            lines.append(f"| {' | '.join(cells)} |")
    commands = [c for name in rows for c in results[name]["trials"]["commands"]]
    commands = [command for command in commands if "--self-training" in command]
    return [SELF_TRAINING, *lines, "", *block(commands)]


def block(commands: list[str]) -> list[str]:
    """Commands as a block of a page; nothing for none."""
    return ["```bash", *(f"$ {c}" for c in commands), "```", ""] if commands else []


def by_seed(rows: list[Row], share: float, threshold: float | None) -> dict[int, float]:
    return {
        row["seed"]: row["accuracy"]
        for row in rows
        if row["labels"] == share and row["threshold"] == threshold
    }


def paired(ours: dict[int, float], others: dict[int, float]) -> NDArray[np.float64]:
    return np.array([ours[seed] - others[seed] for seed in sorted(set(ours) & set(others))])


def spoken(values: NDArray[np.float64], *, sign: str = "") -> str:
    """Mean and standard error in percent."""
    mean = f"{100 * values.mean():{sign}.1f}"
    if len(values) < 2:
        return mean
    return f"{mean} ± {100 * values.std(ddof=1) / len(values) ** 0.5:.1f}"


def lead_lines(results: dict[str, dict[str, Any]]) -> list[str]:
    """What different leads would have taken, where there are trials of several seeds."""
    trials = {}
    for name, found in results.items():
        rows = [row["tried"] for row in found.get("auto", {}).get("rows", [])]
        if len(rows) > 1 and all(len(tried) == len(CANDIDATES) for tried in rows):
            trials[name] = [np.array([[t[k] for t in tried] for tried in rows]) for k in KEYS]
    if not trials:
        return []
    lines = [f"| lead | {' | '.join(trials)} | R2 elsewhere | time |"]
    lines += ["| ---: |" + " --- |" * len(trials) + " ---: | ---: |"]
    for lead in LEADS:
        taken, elsewhere, times = [], [], []
        for r2, seconds in trials.values():
            chosen = [int(np.flatnonzero(s >= s.max() - lead)[0]) for s in r2]
            taken.append(", ".join(CANDIDATES[k] for k in chosen))
            others = [np.delete(r2, i, 0)[:, k].mean() for i, k in enumerate(chosen)]
            elsewhere.append(np.mean(others))
            times.append(np.mean([seconds[:, k].mean() / seconds[:, 0].mean() for k in chosen]))
        name = f"**{lead:g}**" if lead == LEAD else f"{lead:g}"
        cells = [name, *taken, f"{np.mean(elsewhere):.3f}", f"{np.mean(times):.1f}"]
        lines.append(f"| {' | '.join(cells)} |")
    return [AUTO, *lines, ""]
