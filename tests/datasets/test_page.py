"""The page on datasets says what the result file says."""

import json
import re
from pathlib import Path

import pytest

HOME = Path(__file__).parents[2]
PAGE = (HOME / "docs" / "datasets.md").read_text(encoding="utf-8")
RESULT = json.loads((HOME / "benchmarks" / "results" / "datasets.json").read_text())


def row(choice: str) -> list[str]:
    """The cells of a dataset's line."""
    (line,) = [line for line in PAGE.splitlines() if line.startswith(f"| `{choice}` |")]
    return [cell.strip() for cell in line.strip("|").split("|")]


@pytest.mark.parametrize("choice", [c for c in RESULT["datasets"] if "ecg88" not in c])
def test_counts_are_those_measured(choice: str) -> None:
    found = RESULT["datasets"][choice]
    _, windows, shape, classes, groups, features = row(choice)
    train, test = found["train"], found["test"]
    assert windows == f"{train['windows']} + {test['windows']}"
    rate = f" at {found['sfreq']:g} Hz" if found["sfreq"] else ""
    assert shape == f"{found['channels']} x {found['timepoints']}{rate}"
    assert int(classes) == len(train["classes"])
    known = [str(part["groups"]) for part in (train, test) if part["groups"]]
    assert re.findall(r"\d+", groups) == known
    assert not found["features"] or features.startswith(str(found["features"]))
    assert (found["shared_groups"], found["test_windows_also_in_train"]) == (0, 0)


def test_the_rhythms_of_each_record_are_those_measured() -> None:
    assert "\n".join(RESULT["mitdb_table"]) in PAGE


def test_accuracies_and_memory_are_those_measured() -> None:
    probes = RESULT["uci_har"]
    for name in ("linear_accuracy", "nearest_accuracy"):
        assert f"{100 * probes[name]:.2f} %" in PAGE
    for found in RESULT["own"].values():
        sizes = " | ".join(f"{found[k]} MB" for k in ("source_mb", "store_mb", "peak_mb"))
        assert sizes in PAGE


def test_the_goals_of_loading_are_met() -> None:
    har = RESULT["datasets"]["uci_har"]
    assert har["first_load_seconds"] < 15
    assert har["second_load_seconds"] < 0.3
    assert RESULT["uci_har"]["largest_difference_to_hapt"] < 1e-5
    assert RESULT["uci_har"]["linear_accuracy"] == pytest.approx(0.960, abs=0.002)
    assert RESULT["uci_har"]["nearest_accuracy"] == pytest.approx(0.879, abs=0.002)
