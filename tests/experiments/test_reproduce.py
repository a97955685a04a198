"""Rerunning the paper: everything once in small, and nothing lost to a kill."""

import errno
import json
import os
import signal
import subprocess
import sys
import time

import pytest

from expclr.errors import ConfigError, DataError
from expclr.experiments import reproduce as program
from expclr.experiments.cells import cells_of
from expclr.experiments.choices import read_choices
from expclr.experiments.paper import runs_of
from expclr.experiments.paper_tables import all_tables, markdown
from expclr.experiments.reproduce import main, reproduce
from expclr.experiments.store import read_results
from expclr.experiments.tuning import tune

SMALL = {"smoke": True, "device": "cpu", "systems": ("expclr", "cross_entropy", "raw_features")}


def tables(folder):
    return markdown(all_tables(cells_of(read_results(folder).records)))


@pytest.fixture(scope="module")
def everything(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    assert main(["all", "--smoke", "--device", "cpu", "--out", str(folder)]) == 0
    return folder


def test_a_tiny_run_of_everything_leaves_a_result_for_each_run(everything):
    found = read_results(everything)
    assert not found.skipped
    assert len(found) == len(runs_of(["all"], "machine", 1))


def test_a_record_says_all_that_decided_its_numbers(everything):
    for record in read_results(everything).records:
        assert record["code"].startswith("0.")
        assert record["hardware"]["torch"]
        assert record["config"]["random_state"] == record["run"]["seed"]
        assert record["chosen_by"]
        assert 0 <= record["metrics"]["subset"]["linear"]["accuracy"] <= 1
        if record["config"]["embedding_dim"] < 1000 and not record["run"]["system"].startswith(
            ("rocket", "raw")
        ):
            assert {"linear", "linear_raw", "knn1", "knn1_raw"} == set(record["metrics"]["subset"])


def test_systems_without_training_are_not_mixed_up(everything):
    cells = cells_of(read_results(everything).records)
    three = [cells.mean("linear", s, "-").mean for s in ("random", "raw_features", "rocket")]
    assert len(set(three)) > 1
    assert cells.of("rocket", "-").mean("knn1") is None  # too wide: ridge regression alone
    assert cells.of("random", "-").mean("knn1") is not None


def test_what_is_finished_is_not_run_again(everything, monkeypatch):
    def never(*_, **__):
        raise AssertionError

    monkeypatch.setattr(program.Execution, "run", never)
    assert reproduce(smoke=True, device="cpu", out=everything) == 0


def test_a_run_killed_in_the_middle_goes_on_to_the_same_tables(tmp_path):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    several = SMALL | {"systems": (*SMALL["systems"], "simclr", "decoding", "kim2021", "treba")}
    reproduce(["table1"], out=whole, **several)
    words = [sys.executable, "-m", "expclr.experiments.reproduce", "table1", "--smoke"]
    words += ["--device", "cpu", "--systems", ",".join(several["systems"]), "--out", str(killed)]
    process = subprocess.Popen(words, env=os.environ | {"OMP_NUM_THREADS": "1"})
    deadline = time.monotonic() + 120
    while len(list(killed.glob("runs/*.json"))) < 2 and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    before = {path: path.read_bytes() for path in killed.glob("runs/*.json")}
    assert 2 <= len(before) < len(read_results(whole))
    reproduce(["table1"], out=killed, **several)
    assert all(path.read_bytes() == text for path, text in before.items())
    assert not read_results(killed).skipped
    assert tables(killed) == tables(whole)


def test_probes_in_processes_of_their_own_give_the_same_numbers(tmp_path, monkeypatch):
    reproduce(["table1"], out=tmp_path / "one", **SMALL)
    monkeypatch.setattr("expclr.experiments.execute.probe_processes", lambda: 1)
    reproduce(["table1"], out=tmp_path / "two", **SMALL)
    assert tables(tmp_path / "one") == tables(tmp_path / "two")


def test_waves_probed_at_once_give_the_same_numbers(tmp_path, monkeypatch):
    reproduce(["table1"], out=tmp_path / "one", **SMALL)
    monkeypatch.setattr(program.Execution, "_on_gpu", lambda *_: True)
    reproduce(["table1"], out=tmp_path / "two", **SMALL)
    assert tables(tmp_path / "one") == tables(tmp_path / "two")


def test_out_of_time_leaves_the_rest_for_later(tmp_path):
    left = reproduce(["table1"], out=tmp_path, minutes=0.0, **SMALL)
    assert left == 3
    packed = tmp_path / "packed.jsonl"
    assert reproduce(["table1"], out=tmp_path, pack=packed, **SMALL) == 0
    assert len([json.loads(line) for line in packed.read_text().splitlines()]) == 3


def test_a_full_disk_is_told_in_one_line_and_what_is_finished_stays(tmp_path, monkeypatch, capsys):
    flush, written = os.fsync, []

    def fill(handle):
        written.append(handle)
        if len(written) > 2:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        flush(handle)

    monkeypatch.setattr(os, "fsync", fill)
    words = ["table1", "--smoke", "--device", "cpu", "--out", str(tmp_path)]
    words += ["--systems", ",".join(SMALL["systems"])]
    assert main(words) == 2
    assert "No space left on device; what is finished stays" in capsys.readouterr().err
    monkeypatch.undo()
    assert [path.suffix for path in (tmp_path / "runs").iterdir()] == [".json"] * 2
    assert main(words) == 0
    assert len(read_results(tmp_path)) == 3


def test_a_failed_run_does_not_stop_the_others(tmp_path, monkeypatch, caplog):
    made = program.make_job

    def broken(run, *arguments):
        job = made(run, *arguments)
        if run.system == "cross_entropy":
            object.__setattr__(job.config, "method_params", {"no_such_setting": 1})
        return job

    monkeypatch.setattr(program, "make_job", broken)
    assert reproduce(["table1"], out=tmp_path, **SMALL) == 1
    assert len(read_results(tmp_path)) == 2
    assert "no_such_setting" in caplog.text


def test_wrong_names_are_refused_before_anything_runs(tmp_path, capsys):
    with pytest.raises(ConfigError, match="table1"):
        reproduce(["tabel1"], out=tmp_path, smoke=True)
    with pytest.raises(ConfigError, match="simcrl"):
        reproduce(["table1"], out=tmp_path, smoke=True, systems=("simcrl",))
    with pytest.raises(ConfigError, match="cpu"):
        reproduce(["table1"], data="machine", out=tmp_path, budget="cup")
    with pytest.raises(DataError, match=r"uci_har\.npz"):
        reproduce(["table1"], data="har", npz=tmp_path, out=tmp_path)
    assert main(["tabel1", "--smoke", "--out", str(tmp_path)]) == 2
    assert "table1" in capsys.readouterr().err


def test_the_plan_tells_how_long_it_will_take(tmp_path, caplog, monkeypatch):
    monkeypatch.setattr("expclr.experiments.plan.CALIBRATION", 0.03)
    caplog.set_level("INFO")
    words = {"data": "machine", "budget": "smoke", "seeds": 1, "device": "cpu", "out": tmp_path}
    left = reproduce(["table1"], systems=("expclr", "simclr"), show_only=True, **words)
    assert left == 2
    assert "2 runs to do, 0 done already" in caplog.text
    assert "a second: about" in caplog.text
    assert not list(tmp_path.glob("runs/*"))


def test_choices_are_made_inside_train_and_steer_the_runs(tmp_path):
    words = {"data": "machine", "budget": "smoke", "device": "cpu", "out": tmp_path / "tuning"}
    chosen = tune(
        systems=("expclr", "simclr"), rates=(1e-4, 1e-2), choices=tmp_path / "choices", **words
    )
    records = read_results(tmp_path / "tuning").records
    assert {r["run"]["part"] for r in records} == {"validation"}
    assert set(chosen.systems["expclr"]) == {"U", "S", "SS"}
    best = chosen.systems["simclr"]["U"]
    assert best["score"] >= max(score for _, _, score in best["grid"]) - 1e-9
    assert set(best["knob"]) == {"0.1", "0.2", "0.5"}
    with pytest.raises(DataError, match="test data"):
        cells_of(records)
    before = len(records)
    again = tune(
        systems=("expclr", "simclr"), rates=(1e-4, 1e-2), choices=tmp_path / "choices", **words
    )
    assert again == chosen
    assert len(read_results(tmp_path / "tuning")) == before
    tune(systems=("expclr",), rates=(1e-4, 1e-2), choices=tmp_path / "choices", **words)
    assert set(read_choices("machine", "smoke", tmp_path / "choices").systems) == {
        "expclr",
        "simclr",
    }


def test_a_method_of_ones_own_is_searched_run_and_shown_by_its_name(tmp_path):
    mine = "expclr.methods.rkd:RKDLoss"
    words = {"budget": "smoke", "device": "cpu", "choices": tmp_path / "made"}
    tune("machine", systems=(mine,), rates=(1e-3,), out=tmp_path / "tuning", **words)
    assert set(read_choices("machine", "smoke", tmp_path / "made").systems) == {mine}
    reproduce(["zoo"], systems=(mine, "rkd"), smoke=True, device="cpu", out=tmp_path / "results")
    rows = tables(tmp_path / "results")
    assert f"| {mine} |" in rows
    assert "| RKD distance |" in rows


def test_a_search_may_stop_before_the_labels(tmp_path):
    words = {"budget": "smoke", "device": "cpu", "out": tmp_path, "choices": tmp_path / "made"}
    both = {"systems": ("expclr", "simclr"), "rates": (1e-3,)}
    chosen = tune("machine", stages=("rates",), **both, **words)
    assert {name: set(made) for name, made in chosen.systems.items()} == {
        "expclr": {"U"},
        "simclr": {"U"},
    }
    assert "knob" not in chosen.systems["simclr"]["U"]
    with pytest.raises(ConfigError, match="stage 'rate'"):
        tune("machine", stages=("rate",), **words)


def test_a_search_goes_on_from_the_choices_that_are_kept(tmp_path):
    words = {"budget": "smoke", "device": "cpu", "systems": ("expclr",), "rates": (1e-3,)}
    made = {"choices": tmp_path / "made"}
    first = tune("machine", stages=("rates",), out=tmp_path / "a", **made, **words)
    both = tune("machine", stages=("labels",), out=tmp_path / "b", **made, **words)
    assert both.systems["expclr"]["U"] == first.systems["expclr"]["U"]
    assert set(both.systems["expclr"]) == {"U", "S", "SS"}
    trials = read_results(tmp_path / "b").records
    modes = [r["run"]["mode"] for r in trials]
    assert (modes.count("U"), modes.count("S"), modes.count("SS")) == (1, 2, 2)  # U: to go on from
    words["rates"] = (1e-2,)  # another grid: what is kept was chosen otherwise
    with pytest.raises(DataError, match="stage"):
        tune("machine", stages=("own",), out=tmp_path / "c", **made, **words)


def test_a_search_out_of_time_chooses_nothing(tmp_path):
    with pytest.raises(DataError, match="time is up"):
        tune(
            "machine",
            budget="smoke",
            device="cpu",
            out=tmp_path,
            choices=tmp_path / "choices",
            systems=("expclr",),
            minutes=1e-9,
        )
    assert not (tmp_path / "choices").exists()
