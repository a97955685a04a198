"""The pages about expert features: their code runs, and every extractor has its row."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from expclr.features import FEATURES, extract
from expclr.features.space_named import SPACES
from expclr.windows import Windows

ROOT = Path(__file__).parents[2]
DOCS, RESULTS = ROOT / "docs" / "features", ROOT / "benchmarks" / "results"


def page(name):
    return (DOCS / f"{name}.md").read_text(encoding="utf-8")


def test_the_code_about_the_feature_space_runs():
    names = {}
    blocks = re.findall(r"^```python\n(.*?)^```$", page("space"), re.MULTILINE | re.DOTALL)
    assert len(blocks) == 2
    for text in blocks:
        exec(compile(text, "space.md", "exec"), names)


def given(name, rng):
    """What the code of a page takes for granted."""
    if name == "har561":
        acc, gyro = rng.normal(size=(2, 600, 3))
        X, F = rng.normal(size=(3, 9, 128)), rng.normal(size=(2, 5, 4))
        return {"acc": acc, "gyro": gyro, "X": X, "F_train": F[0], "F_test": F[1]}
    if name == "ecg88":
        beats = np.exp(-(((np.arange(2500) % 200 - 100) / 4) ** 2))
        return {"X": np.stack([[beats, -beats]] * 2), "ecg": np.stack([beats, -beats])}
    if name == "index":  # two cases of 9 channels, as har561 wants them
        return {"X": rng.normal(size=(2, 9, 500)), "train": Windows(np.eye(9)[None], sfreq=9.0)}
    return {"X": 5 + rng.normal(size=(2, 2, 500))}


@pytest.mark.parametrize("name", ["index", "har561", "ecg88", "eeg29", "general"])
def test_the_code_about_extractors_runs(name, rng, tmp_path, monkeypatch):
    if name == "ecg88":
        pytest.importorskip("sleepecg")
        pytest.importorskip("pywt")
    monkeypatch.chdir(tmp_path)
    Path("inspections.csv").write_text("window,wear\n1,0.5\n")
    names = given(name, rng) | {"extract": extract}
    blocks = re.findall(r"^```python\n(.*?)^```$", page(name), re.MULTILINE | re.DOTALL)
    assert blocks
    for text in blocks:
        exec(compile(text, f"{name}.md", "exec"), names)


def test_every_extractor_and_every_space_is_on_a_page():
    assert [name for name in FEATURES if f"`{name}`" not in page("index")] == []
    assert [name for name in SPACES if f'`"{name}"`' not in page("space")] == []


def test_the_table_of_speeds_is_the_result_file(monkeypatch):
    pytest.importorskip("sleepecg")
    pytest.importorskip("pywt")
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    features = __import__("features")
    kept = json.loads((RESULTS / "features.json").read_text(encoding="utf-8"))
    assert page("index") == features.page(page("index"), kept)
    for found in kept["extractors"].values():
        assert found["ratio_cpu"] >= 10
        assert found["windows_per_cpu_second"] >= found["goal_windows_per_second"]


def test_rates_of_found_r_peaks_on_the_page_are_those_of_the_result_file():
    kept = json.loads((RESULTS / "rpeaks.json").read_text(encoding="utf-8"))["together"]
    text = " ".join(page("ecg88").split())
    for measure in ("sensitivity", "precision"):
        window, recording = (100 * kept[way][measure] for way in ("window", "recording"))
        assert f"{measure} {window:.1f} %" in text.replace(" is ", " ")
        assert f"{recording:.1f} %" in text
