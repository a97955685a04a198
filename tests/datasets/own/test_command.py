"""The command prepare, on one's own files."""

from pathlib import Path

import numpy as np
import pytest

from expclr.cli import main
from expclr.datasets.store import load_pair
from expclr.windows import Windows


@pytest.fixture
def source(tmp_path: Path, rng: np.random.Generator) -> str:
    """Eight windows of the groups 201 to 204."""
    path = tmp_path / "a.npz"
    np.savez(path, X=rng.normal(size=(8, 1, 5)), group=np.repeat([201, 202, 203, 204], 2))
    return str(path)


@pytest.mark.parametrize(
    ("test", "held"),
    [("203", ["203"]), ("201,204", ["201", "204"]), ("203,", ["203"]), ("0.5", None)],
)
def test_groups_or_a_fraction_are_held_out(
    tmp_path: Path, source: str, test: str, held: list[str] | None
) -> None:
    out = str(tmp_path / "out")
    assert main(["prepare", "mine", "--x", source, "--out", out, "--test", test]) == 0
    train, tested = load_pair(out)
    found = sorted(set(tested.group.astype(str)))
    assert found == held if held else len(found) == 2
    assert not set(train.group) & set(tested.group)
    assert train.name == "mine"


def test_nothing_is_held_out_when_asked(tmp_path: Path, source: str) -> None:
    out = str(tmp_path / "out")
    assert main(["prepare", "mine", "--x", source, "--out", out, "--test", "null"]) == 0
    assert len(Windows.load(out)) == 8


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--test", "209"], "no group 209: known are 201, 202, 203, 204"),
        (["--test", "other.npz"], "no file or folder other.npz"),
        (["--length", "10"], "holds windows already"),
        (["--missing", "guess"], "guess"),
    ],
)
def test_what_cannot_be_is_one_line_and_exit_2(
    tmp_path: Path,
    source: str,
    words: list[str],
    said: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["prepare", "mine", "--x", source, "--out", str(tmp_path / "out"), *words]) == 2
    error = capsys.readouterr().err.strip()
    assert said in error
    assert "\n" not in error
    assert not (tmp_path / "out").exists()
