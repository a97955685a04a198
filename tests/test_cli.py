import json
import os
import subprocess
import sys
import time

import numpy as np
import pytest

from expclr.cli import main
from expclr.commands import COMMANDS
from expclr.estimators import RepresentationLearner

SMALL = [
    "--encoder_params",
    '{"width": 8, "blocks": 3}',
    "--batch_size",
    "16",
    "--embedding_dim",
    "6",
    "--device",
    "cpu",
]


@pytest.fixture
def data(windows, tmp_path):
    """A folder with a train and a test part."""
    train, test = windows.split_by_group([4, 5])
    train.save(tmp_path / "data" / "train")
    test.save(tmp_path / "data" / "test")
    return str(tmp_path / "data")


@pytest.fixture
def run(data, tmp_path):
    folder = str(tmp_path / "run")
    assert main(["train", data, "--out", folder, "--max_epochs", "2", *SMALL]) == 0
    return folder


def _fails(capsys, *words):
    """The one line on stderr of a command that is the user's error."""
    assert main(list(words)) == 2
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("expclr: ")
    return lines[0]


def test_a_run_is_trained_fine_tuned_embedded_and_measured(run, data, tmp_path, capsys):
    tuned, Z = str(tmp_path / "tuned"), str(tmp_path / "Z.npy")
    assert main(["finetune", run, data, tuned, "--label_fraction", "0.5"]) == 0
    assert main(["embed", tuned, data, Z]) == 0
    assert np.load(Z).shape == (16, 6)
    assert main(["evaluate", tuned, data]) == 0
    assert "linear" in capsys.readouterr().out
    metrics = json.loads((tmp_path / "tuned" / "metrics.json").read_text())
    assert 0 <= metrics["probes"]["linear"]["accuracy"] <= 1
    assert metrics["distances"]["l_minus"] <= metrics["distances"]["l_plus"]
    assert main(["certify", tuned, data]) == 0
    assert "confidence 95 %" in capsys.readouterr().out
    assert main(["search", tuned, data, data, "--k", "2"]) == 0
    lines = capsys.readouterr().out.strip().splitlines()
    assert len(lines) == 1 + 2 * 16
    assert lines[1].startswith("0,1,")
    assert main(["report", tuned, data]) == 0
    page = (tmp_path / "tuned" / "report.html").read_text()
    assert "Loss during training" in page
    assert "http:" not in page


def test_own_tables_become_windows_with_features(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rows = [(case, t) for case in range(1, 9) for t in range(40)]
    lines = [f"{case},{t / 10},{(t * case * 0.37) % 5:.2f}\n" for case, t in rows]
    (tmp_path / "runs.csv").write_text("case,time,torque\n" + "".join(lines))
    words = ["--x", "runs.csv", "--case", "case", "--time", "time", "--length", "10"]
    assert main(["prepare", "mine", *words, "--test", "0.25"]) == 0
    assert main(["features", "basic", "data/mine"]) == 0
    assert main(["features", "basic", "data/mine"]) == 0
    assert capsys.readouterr().out.count("unchanged") == 2
    assert main(["data", "info", "data/mine"]) == 0
    assert "8" in capsys.readouterr().out
    assert main(["train", "data/mine", "--max_epochs", "1", *SMALL]) == 0


def test_a_known_dataset_is_prepared_by_name(capsys):
    assert main(["prepare", "machine"]) == 0
    assert "test: Windows(machine: 600 windows" in capsys.readouterr().out


def test_a_run_folder_says_what_it_was(run):
    learner = RepresentationLearner.load(run)
    assert learner.max_epochs == 2
    assert [r["epoch"] for r in learner.history_] == [0, 1]
    assert sorted(os.listdir(run)) == [
        "config.yaml",
        "encoder.safetensors",
        "env.json",
        "feature_space.json",
        "feature_space.safetensors",
        "finetune_history.jsonl",
        "history.jsonl",
        "model.json",
    ]


def test_an_npz_is_data(windows, tmp_path):
    path = tmp_path / "w.npz"
    np.savez(path, X=windows.X, F=windows.F, y=windows.y, group=windows.group)
    out = str(tmp_path / "run")
    assert main(["train", str(path), "--out", out, "--max_epochs", "1", *SMALL]) == 0


def test_the_name_of_a_run_is_the_hash_of_settings_and_data(data, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for epochs in ("1", "1", "2"):
        assert main(["train", data, "--max_epochs", epochs, *SMALL]) == 0
    assert len(os.listdir("runs")) == 2


def test_settings_come_from_a_file_and_from_dotted_words(data, tmp_path):
    settings = tmp_path / "run.yaml"
    settings.write_text("max_epochs: 1\nlr: 0.002\nmethod_params: {tau: 0.25}\n")
    out = str(tmp_path / "run")
    words = ["--config", str(settings), "--out", out, *SMALL, "--method_params.delta", "2.0"]
    assert main(["train", data, *words]) == 0
    learner = RepresentationLearner.load(out)
    assert learner.lr == 0.002
    assert learner.method_params == {"tau": 0.25, "delta": 2.0}


def test_the_settings_a_run_wrote_can_be_given_back(run, data, tmp_path):
    out = str(tmp_path / "again")
    assert main(["train", data, "--config", f"{run}/config.yaml", "--out", out]) == 0
    models = [RepresentationLearner.load(folder) for folder in (run, out)]
    assert models[0].config == models[1].config
    assert [r["loss"] for r in models[0].history_] == [r["loss"] for r in models[1].history_]


TRAINING = """
import sys
sys.exit(__import__("expclr.cli", fromlist=["main"]).main(sys.argv[1:]))
"""


def test_a_killed_run_resumes_to_the_same_model(data, tmp_path):
    out = tmp_path / "run"
    words = ["train", data, "--max_epochs", "40", *SMALL]
    process = subprocess.Popen(
        [sys.executable, "-c", TRAINING, *words, "--out", str(out)],
        env=os.environ | {"OMP_NUM_THREADS": "1"},  # as many as here: bits depend on it
    )
    state = out / "checkpoint" / "state.json"
    while not (state.exists() and len(json.loads(state.read_text())["history"]) > 2):
        assert process.poll() is None
        time.sleep(0.01)
    process.kill()
    process.wait()
    done = len(json.loads(state.read_text())["history"])
    assert 2 < done < 40
    assert main([*words, "--out", str(out), "--resume", "true"]) == 0
    assert main([*words, "--out", str(tmp_path / "whole")]) == 0
    resumed, whole = (RepresentationLearner.load(p) for p in (out, tmp_path / "whole"))
    assert [r["loss"] for r in resumed.history_] == [r["loss"] for r in whole.history_]
    assert not (out / "checkpoint").exists()
    assert main([*words, "--out", str(out), "--resume", "true"]) == 0  # finished: nothing to do


def test_user_errors_are_one_line_and_exit_2(run, data, tmp_path, capsys):
    out = str(tmp_path / "new")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").touch()
    (tmp_path / "words.npz").write_text("not an archive")
    (tmp_path / "binary.yaml").write_bytes(b"\x80\x81")
    np.savez(tmp_path / "other.npz", Z=np.zeros(3))
    cases = {
        "did you mean 'train'": ["trian"],
        "did you mean 'expclr'": ["train", data, "--method", "expcrl", "--out", out],
        "your own data need --x": ["prepare", "nowhere"],
        "has no raw files": ["fetch", "machine"],
        "no data 'nowhere'": ["train", "nowhere", "--out", out],
        "lr": ["train", data, "--lr", "fast", "--out", out],
        "epochs": ["train", data, "--epochs", "3", "--out", out],
        "batch_size is 1": ["train", data, "--batch_size", "1", "--out", out],
        "no text file": ["train", data, "--config", str(tmp_path / "binary.yaml")],
        "no setting 'simlarity': did you mean 'similarity'": [
            *("train", data, "--out", out, "--method_params.simlarity", "linear")
        ],
        "embedding_dim is 0": ["train", data, "--embedding_dim", "0", "--out", out],
        "random_state is -1": ["train", data, "--random_state", "-1", "--out", out],
        "proc/demo": ["demo", "--out", "/proc/demo"],
        "missing.yaml": ["train", data, "--config", "missing.yaml", "--out", out],
        "cannot write /proc/run": ["train", data, "--out", "/proc/run"],
        "holds 'thesis.tex'": ["train", data, "--out", str(tmp_path / "mine")],
        "is no whole .npz": ["train", str(tmp_path / "words.npz"), "--out", out],
        "has the keys Z": ["train", str(tmp_path / "other.npz"), "--out", out],
        "no folder": ["embed", "nothing", data, out],
        "part is 'middle'": ["embed", run, data, out, "--part", "middle"],
        "has no test part": ["evaluate", run, f"{data}/train"],
        "above 0 and up to 1": ["finetune", run, data, out, "--label_fraction", "0"],
    }
    for words, command in cases.items():
        assert words in _fails(capsys, *command)


def test_the_help_of_every_command_explains_its_words(capsys):
    assert main(["--help"]) == 0
    overview = capsys.readouterr().out
    for name in COMMANDS:
        assert f"  {name} " in overview
        with pytest.raises(SystemExit) as stopped:
            main([name, "--help"])
        assert stopped.value.code == 0
        assert f"expclr {name}" in capsys.readouterr().out


def test_help_imports_neither_torch_nor_scikit_learn():
    code = """
import sys
from expclr.cli import main
main(["--help"])
try:
    main(["train", "--help"])
except SystemExit:
    print([m for m in ("torch", "sklearn", "scipy") if m in sys.modules])
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip().endswith("[]")


def test_importing_the_package_imports_no_heavy_module():
    code = (
        "import sys, expclr; print([m for m in ('torch', 'sklearn', 'scipy') if m in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_doctor_names_versions_devices_and_extras(capsys):
    assert main(["doctor"]) == 0
    printed = capsys.readouterr().out
    for word in ("torch", "devices", "EXPCLR_DATA", "extra ecg"):
        assert word in printed


def test_the_version_is_printed(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("expclr 0.")


@pytest.mark.filterwarnings("default:X has")
def test_a_transposed_signal_is_noticed_once(windows, tmp_path, caplog):
    np.savez(tmp_path / "w.npz", X=windows.X.transpose(0, 2, 1), F=windows.F)
    words = ["--out", str(tmp_path / "run"), "--max_epochs", "1", *SMALL]
    assert main(["train", str(tmp_path / "w.npz"), *words]) == 0
    assert caplog.text.count("transpose?") == 1


def test_a_bare_switch_is_true_and_dashes_are_as_good_as_underscores(tmp_path, capsys):
    out = str(tmp_path / "results")
    words = ["reproduce", "table1", "--smoke", "--show-only", "--out", out, "--device", "cpu"]
    assert main(words) == 0
    assert "runs left" in capsys.readouterr().out
    assert main([*words[:2], "--smoke", "false", "--data", "no_such", "--out", out]) == 2


def test_a_page_about_results_needs_the_folder_alone(tmp_path, capsys):
    assert main(["report", str(tmp_path)]) == 2
    assert "holds no results" in capsys.readouterr().err


def test_a_reader_that_has_seen_enough_is_no_error(data):
    words = [sys.executable, "-c", TRAINING, "data", "info", data]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 0
