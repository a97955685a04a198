"""The whole study in slices, on a machine without the command line's dependencies."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from expclr.errors import DataError
from expclr.experiments.cells import cells_of
from expclr.experiments.export import export
from expclr.experiments.paper_tables import all_tables, markdown
from expclr.experiments.slices import STUDIES, Slice
from expclr.experiments.slices import main as slices
from expclr.experiments.store import WANTED, Store, read_results
from expclr.experiments.tuning import tune

ROOT = Path(__file__).parents[2]
SMALL = ["--data", "machine", "--budget", "smoke", "--device", "cpu", "--seeds", "2"]
SMALL += ["--per-group", "4", "--rates", "1e-3,1e-2", "--systems", "expclr,simclr"]
# What a bare machine with torch, scikit-learn, tqdm, safetensors and PyYAML lacks.
BARE = """
import sys
class Lacks:
    def __init__(self, finder):
        self.finder = finder
    def __getattr__(self, name):
        return getattr(self.finder, name)
    def find_spec(self, name, *where):
        return None if name.split(".")[0] in {lacking} else self.finder.find_spec(name, *where)
sys.meta_path[:] = [Lacks(finder) for finder in sys.meta_path]
from expclr.experiments.slices import STUDIES, main
STUDIES["machine"] = ("table1",)
sys.exit(main(sys.argv[1:]))
"""
LACKING = {
    *("jsonargparse", "pooch", "platformdirs", "requests", "jinja2", "matplotlib", "pandas"),
    *("pyarrow", "plotly", "edfio", "wfdb", "pywt", "sleepecg", "optuna", "pydantic"),
}


@pytest.fixture
def npz(tmp_path, monkeypatch):
    monkeypatch.setitem(STUDIES, "machine", ("table1",))
    export(tmp_path / "npz", ["machine"])
    return tmp_path / "npz"


def tables(path):
    return markdown(all_tables(cells_of(read_results(path).records)))


def slice_of(tmp_path, npz, work, *others):
    places = ["--npz", npz, "--work", tmp_path / work, "--out", tmp_path / f"{work}-out"]
    return slices([*SMALL, *map(str, places), *others])


def test_slices_on_fresh_machines_end_with_what_one_run_gives(tmp_path, npz):
    assert slice_of(tmp_path, npz, "whole") == 0
    held = tmp_path / "held"
    (held / "deeper").mkdir(parents=True)
    packed = tmp_path / "whole-out"
    lines = {
        kind: (packed / f"{kind}.jsonl").read_text().splitlines() for kind in ("tuning", "results")
    }
    assert all(len(kind) > 2 for kind in lines.values())
    # The first machine was given back after half of the trials and results.
    for kind, found in lines.items():
        (held / "deeper" / f"{kind}.jsonl").write_text("\n".join(found[: len(found) // 2]) + "\n")
    assert slice_of(tmp_path, npz, "again", "--held", str(held)) == 0
    for kind, found in lines.items():
        again = (tmp_path / "again-out" / f"{kind}.jsonl").read_text().splitlines()
        assert [json.loads(a)["id"] for a in again] == [json.loads(b)["id"] for b in found]
        assert set(found[: len(found) // 2]) <= set(again)  # taken up, not run again
    for name in ("results.jsonl", "choices/machine-smoke.yaml"):
        assert (tmp_path / "again-out" / name).exists()
    assert tables(tmp_path / "again-out/results.jsonl") == tables(
        tmp_path / "whole-out/results.jsonl"
    )


def test_a_slice_without_time_packs_what_there_is_and_asks_to_go_on(tmp_path, npz):
    assert slice_of(tmp_path, npz, "none", "--minutes", "1e-9") == 3
    assert (tmp_path / "none-out" / "results.jsonl").read_text() == ""


def test_the_program_runs_where_little_is_installed(tmp_path, npz):
    words = [*SMALL[:-2], "--systems", "expclr", "--npz", str(npz)]
    words += ["--work", str(tmp_path / "work"), "--out", str(tmp_path / "out")]
    code = BARE.format(lacking=LACKING)
    found = subprocess.run(
        [sys.executable, "-c", code, *words], capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stderr
    assert len(read_results(tmp_path / "out" / "results.jsonl")) == 2


def test_the_command_file_packs_even_what_a_broken_run_left(tmp_path):
    made = dict.fromkeys(WANTED, "x") | {"id": "earlier"}
    (tmp_path / "held").mkdir()
    Store(tmp_path / "earlier").add(made)
    Store(tmp_path / "earlier").pack(tmp_path / "held" / "results.jsonl")
    words = ["bash", str(ROOT / "experiments/gpu.sh"), "0.1", "--npz", str(tmp_path)]
    words += ["--work", str(tmp_path / "work"), "--device", "cpu", "--held", str(tmp_path / "held")]
    environment = os.environ | {"OUT": str(tmp_path / "out"), "PYTHON": sys.executable}
    found = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    assert found.returncode == 2, found.stderr
    assert "uci_har.npz: write it with" in found.stderr
    (record,) = read_results(tmp_path / "out" / "results.jsonl").records
    assert record["id"] == "earlier"


def test_data_that_are_not_there_are_named_before_anything_runs(tmp_path):
    with pytest.raises(DataError, match=r"uci_har\.npz"):
        Slice(tmp_path / "work", tmp_path / "out", npz=tmp_path, device="cpu").run(["uci_har"])


def test_a_fresh_machine_goes_on_from_the_choices_of_the_package(tmp_path, npz, monkeypatch):
    kept = tmp_path / "kept"
    words = {"budget": "smoke", "device": "cpu", "npz": npz, "rates": (1e-3, 1e-2)}
    tune("machine", systems=("simclr",), out=tmp_path / "t", choices=kept, per_group=4, **words)
    monkeypatch.setattr("expclr.experiments.slices.KEPT", kept)
    assert slice_of(tmp_path, npz, "fresh", "--stages", "labels", "--systems", "simclr") == 0
    trials = read_results(tmp_path / "fresh-out" / "tuning.jsonl").records
    modes = [r["run"]["mode"] for r in trials]
    assert (modes.count("U"), modes.count("SS")) == (1, 4)  # U: what labels go on from
