"""The demonstration, made small: what it compares, what it writes, when it stops."""

import json

import pytest

from expclr.datasets.machine import FEATURES, load
from expclr.errors import ConfigError, DataError
from expclr.estimators import ExpCLR
from expclr.experiments import demo
from expclr.experiments.demo import run_demo
from expclr.methods import ExpCLRLoss


@pytest.fixture
def small(monkeypatch):
    """Four machines, one pass, a narrow network."""
    data = load(n_machines=4, windows_per_machine=24, test_machines=1)
    monkeypatch.setattr(demo, "load_dataset", lambda *_, **__: data)
    monkeypatch.setattr(demo, "EPOCHS", 1)
    monkeypatch.setattr(demo, "_epochs", lambda share: 1)
    monkeypatch.setattr(demo, "FRACTIONS", (0.05, 1.0))
    monkeypatch.setattr(demo, "ENCODER", {"width": 8, "blocks": 3, "finest": 64})


def test_every_system_is_read_with_few_and_with_all_labels(small, tmp_path):
    result = run_demo(tmp_path / "out")
    assert len(result.table().splitlines()) == 1 + 5
    written = json.loads((tmp_path / "out" / "metrics.json").read_text())
    assert [r["labelled_windows"] for r in written["records"]] == [6, 72] * 5
    assert written["settings"]["method_params"]["tau"] == demo.TAU
    assert {"settings", "labelled", "data", "environment", "seconds"} < set(written)
    assert 0 < written["distances"]["l_minus"] < written["distances"]["l_plus"]
    assert {row["feature"] for row in written["features"]["read"]} == set(FEATURES)
    assert all(0 <= r[probe] <= 1 for r in written["records"] for probe in ("linear", "knn1"))
    assert ExpCLR.load(tmp_path / "out" / "model").tau == demo.TAU
    page = result.report.read_text(encoding="utf-8")
    for heading in ("What is compared here", "Accuracy by number of labels", "Map of the windows"):
        assert heading in page
    run_demo(tmp_path / "out")  # over what an earlier one wrote


def test_a_bad_folder_or_seed_is_refused_before_any_work(tmp_path, monkeypatch):
    monkeypatch.setattr(demo, "load_dataset", lambda *_, **__: pytest.fail("work was begun"))
    (tmp_path / "file").touch()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").touch()
    with pytest.raises(DataError, match="is a file"):
        run_demo(tmp_path / "file")
    with pytest.raises(DataError, match="thesis"):
        run_demo(tmp_path / "mine")
    with pytest.raises(DataError, match="cannot write"):
        run_demo("/proc/demo")
    with pytest.raises(ConfigError, match="random_state is -1"):
        run_demo(tmp_path / "out", random_state=-1)


def test_one_ctrl_c_ends_it(small, tmp_path, monkeypatch):
    forward, calls = ExpCLRLoss.forward, []

    def interrupted(self, z, target):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return forward(self, z, target)

    monkeypatch.setattr(demo, "EPOCHS", 9)
    monkeypatch.setattr(ExpCLRLoss, "forward", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_demo(tmp_path / "out")
    assert len(calls) == 3
    assert not (tmp_path / "out" / "metrics.json").exists()
