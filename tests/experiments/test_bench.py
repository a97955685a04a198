"""The two-minute benchmark: every question has an answer, and a kept one to compare it with."""

import json

import pytest
import torch

from expclr.cli import main
from expclr.errors import ConfigError
from expclr.experiments import bench
from expclr.experiments.bench import SMOKE, Question, Sizes, answers, comparison

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def result():
    return answers(CPU, seconds=0, sizes=SMOKE)


def test_every_question_has_an_answer(result):
    assert all(row["a_second"] > 0 for row in result["rows"].values())
    assert result["machine"]["cores"] >= 1
    assert result["seconds"] > 0


def test_the_kept_results_answer_the_same_questions():
    kept = json.loads(bench.REFERENCES.read_text(encoding="utf-8"))
    assert "cpu" in kept
    for device, reference in kept.items():
        asked = {q.name for q in bench._questions(CPU, Sizes()) if device == "cpu"}
        assert asked <= set(reference["rows"])
        assert all(row["a_second"] > 0 for row in reference["rows"].values())


def test_a_machine_half_as_quick_has_a_ratio_of_a_half(result):
    kept = result | {
        "rows": {k: v | {"a_second": 2 * v["a_second"]} for k, v in result["rows"].items()}
    }
    lines = comparison(result, kept).splitlines()
    assert len(lines) == 1 + len(result["rows"]) + 3
    assert all(line.endswith("0.50") for line in lines[1 : 1 + len(result["rows"])])
    assert "a ratio above 1: this machine is quicker" in lines[-1]


def test_without_a_kept_result_there_is_no_ratio(result):
    lines = comparison(result, None).splitlines()
    assert all(line.split()[-2:] == ["-", "-"] for line in lines[1 : 1 + len(result["rows"])])


def test_the_quickest_call_counts_and_the_first_one_does_not():
    seconds = iter([0.001, 2.0, 1.0, 4.0, *[1.5] * 10**7])
    asked = Question("q", "things", 3, lambda: next(seconds))
    assert bench._speed(asked, CPU, 0.05) == pytest.approx(3.0)


def test_a_call_that_takes_all_the_time_is_not_repeated():
    asked = Question("q", "things", 3, iter([6.0]).__next__)
    assert bench._speed(asked, CPU, 0) == pytest.approx(0.5)


def test_a_cpu_is_measured_by_one_core(result):
    assert result["machine"]["threads"] == 1


def test_a_training_that_fails_is_no_answer(monkeypatch):
    def broken(runs):
        yield 0, RuntimeError("broken")

    monkeypatch.setattr(bench, "train_many", broken)
    with pytest.raises(RuntimeError, match="broken"):
        bench._trained(CPU, 64, 1, "auto")


def test_the_command_prints_a_table_and_writes_the_numbers(monkeypatch, tmp_path, capsys, result):
    monkeypatch.setattr(bench, "answers", lambda *_, **__: result)
    out = tmp_path / "here.json"
    assert main(["bench", "--smoke", "--device", "cpu", "--out", str(out)]) == 0
    assert "embedding" in capsys.readouterr().out
    assert json.loads(out.read_text()) == result
    assert main(["bench", "--device", "cpu"]) == 0
    assert "reference: none" not in capsys.readouterr().out


def test_an_unknown_device_is_refused():
    with pytest.raises(ConfigError, match="auto"):
        bench.bench("gpuu")
