"""Are R peaks better found in the whole recording, or in each window of ten seconds by itself?

    EXPCLR_DATA=... python benchmarks/rpeaks.py

Both against the beats that cardiologists marked in the MIT-BIH Arrhythmia Database, on both leads
of each record that is there; a peak is right within 150 ms of a mark. Sensitivity is the share of
marks that were found, precision the share of peaks that are right.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import wfdb
from numpy.typing import NDArray
from tqdm import tqdm

from expclr.features.rpeaks import DETECTOR, find_rpeaks

RESULTS = Path(__file__).parent / "results" / "rpeaks.json"
BEATS = set("NLRBAaJSVrFejnE/fQ?")  # the database's symbols for a beat
SECONDS, TOLERANCE = 10.0, 0.15

Peaks = NDArray[np.int64]


def whole(x: NDArray[np.float64], sfreq: float) -> Peaks:
    return find_rpeaks(x, sfreq)


def by_window(x: NDArray[np.float64], sfreq: float) -> Peaks:
    length = round(SECONDS * sfreq)
    starts = range(0, len(x) - length + 1, length)
    return np.concatenate([s + find_rpeaks(x[s : s + length], sfreq) for s in starts])


def counts(peaks: Peaks, marks: Peaks, within: float) -> NDArray[np.int64]:
    """Marks, marks found, peaks, peaks that are right."""
    found = sum(distance(mark, peaks) <= within for mark in marks)
    right = sum(distance(peak, marks) <= within for peak in peaks)
    return np.array([len(marks), found, len(peaks), right])


def distance(at: int, others: Peaks) -> float:
    """To the nearest of sorted positions."""
    i = np.searchsorted(others, at)
    return float(min((abs(at - other) for other in others[max(0, i - 1) : i + 1]), default=np.inf))


def rates(total: NDArray[np.int64]) -> dict[str, float]:
    marks, found, peaks, right = total.tolist()
    return {"sensitivity": round(found / marks, 4), "precision": round(right / peaks, 4)}


def measure(header: Path) -> dict[str, NDArray[np.int64]]:
    """Counts of both ways, over the leads of a record."""
    record = wfdb.rdrecord(str(header.with_suffix("")))
    notes = wfdb.rdann(str(header.with_suffix("")), "atr")
    marks = notes.sample[[symbol in BEATS for symbol in notes.symbol]]
    end = len(record.p_signal) // round(SECONDS * record.fs) * round(SECONDS * record.fs)
    result = {}
    for name, way in (("recording", whole), ("window", by_window)):
        peaks = [way(lead[:end], float(record.fs)) for lead in record.p_signal.T]
        within = TOLERANCE * record.fs
        leads = [counts(p, marks[marks < end], within) for p in peaks]
        result[name] = np.sum(leads, axis=0)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    headers = sorted((Path(os.environ["EXPCLR_DATA"]) / "mitdb").glob("[12][0-9][0-9].hea"))
    found = {path.stem: measure(path) for path in tqdm(headers, "records", disable=None)}
    ways: dict[str, Any] = {
        way: rates(np.sum([record[way] for record in found.values()], axis=0))
        for way in ("recording", "window")
    }
    each = {name: {way: rates(n) for way, n in record.items()} for name, record in found.items()}
    text = json.dumps({"detector": DETECTOR, "together": ways, "records": each}, indent=1)
    options.out.write_text(text + "\n", encoding="utf-8")
    print(json.dumps(ways, indent=1))


if __name__ == "__main__":
    main()
