"""The example programs run, with little data and little training."""

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

import expclr
from expclr.datasets.machine import load

EXAMPLES = Path(__file__).parents[1] / "examples"
TINY = {
    "max_epochs": 1,
    "encoder_params": {"width": 8, "blocks": 3},
    "embedding_dim": 6,
    "device": "cpu",
}
SETTINGS = {
    "few_labels": TINY | {"finetune_epochs": 1},
    "search_and_outliers": TINY,
    "own_loop": {"max_epochs": 2},
}


@pytest.fixture
def example(monkeypatch, tmp_path):
    """name -> the program's main, in an empty folder, with four machines as its dataset."""
    small = load(n_machines=6, windows_per_machine=48, test_machines=2)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(EXAMPLES)
    monkeypatch.setattr(expclr, "load_dataset", lambda name: small, raising=False)

    def open_example(name):
        sys.modules.pop(name, None)
        return importlib.import_module(name).main

    return open_example


@pytest.mark.parametrize("name", SETTINGS)
def test_a_program_runs_as_it_stands(example, name, capsys):
    example(name)(**SETTINGS[name])
    assert len(capsys.readouterr().out.splitlines()) >= 2


def test_a_file_of_ones_own_becomes_a_model(example, windows, tmp_path, capsys):
    kept = {key: getattr(windows, key) for key in ("X", "F", "group")}
    np.savez("mine.npz", **kept)
    example("own_data")("mine.npz", **TINY)
    assert "for 90 % of pairs" in capsys.readouterr().out
    assert np.load("my_model.npy").shape == (16, 6)
    assert expclr.ExpCLR.load("my_model").max_epochs == 1


def test_the_loss_alone_goes_down(example):
    assert example("own_loop")(max_epochs=6) < example("own_loop")(max_epochs=1)


def test_every_program_is_run_here_and_short():
    names = {path.stem for path in EXAMPLES.glob("*.py")}
    assert names == {*SETTINGS, "own_data"}
    for path in EXAMPLES.glob("*.py"):
        assert len(path.read_text(encoding="utf-8").splitlines()) < 60
