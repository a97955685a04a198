"""Parts larger than memory: which groups are held out, and how they are written."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from expclr.datasets.parts import features_key, held_out, save_part, split_key
from expclr.errors import DataError
from expclr.features import FEATURES
from expclr.windows import Windows

PEAK = """
import sys
from pathlib import Path
import numpy as np
from expclr.datasets.parts import save_part

def kilobytes(what):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(what))

n, many = 30_000, 10
X = np.random.default_rng(0).normal(size=(n // many, 1, 2000)).astype(np.float32)
pieces = ((np.arange(i, n, many), X) for i in range(many))
before = kilobytes("VmRSS")
save_part(Path(sys.argv[1]), (n, 1, 2000), pieces, {"name": "large"})
print((kilobytes("VmHWM") - before) * 1024)
"""


def test_pieces_go_to_their_rows_and_changes_come_after_the_features(tmp_path: Path) -> None:
    X = np.arange(24, dtype=np.float32).reshape(6, 1, 4) ** 2
    pieces = [(np.array([4, 0, 2]), X[[4, 0, 2]]), (slice(1, 2), X[1:2]), (slice(3, 6, 2), X[3::2])]
    known = {"y": np.arange(6) % 2, "sfreq": 4.0, "name": "squares"}
    save_part(tmp_path / "plain", X.shape, pieces, known)
    save_part(
        tmp_path / "changed",
        X.shape,
        pieces,
        known,
        features="basic",
        changes=[(slice(0, 3), np.negative), (slice(4, 9), np.zeros_like)],
    )
    plain, changed = Windows.load(tmp_path / "plain"), Windows.load(tmp_path / "changed")
    np.testing.assert_array_equal(plain.X, X)
    assert (plain.name, plain.sfreq, plain.y.tolist()) == ("squares", 4, [0, 1, 0, 1, 0, 1])
    np.testing.assert_array_equal(changed.X, np.concatenate([-X[:3], X[3:4], 0 * X[4:]]))
    mean = [name.endswith("_mean") for name in changed.feature_names].index(True)
    np.testing.assert_allclose(changed.F[:, mean], X.mean(axis=(1, 2)))


def test_an_infinite_value_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="NaN or inf"):
        save_part(tmp_path / "a", (1, 1, 2), [(slice(0, 1), np.array([[[1, np.inf]]], "f4"))], {})


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no /proc to read memory from")
def test_rows_that_lie_far_apart_do_not_hold_the_store_in_memory(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PEAK, str(tmp_path / "part")]
    peak = int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    size = (tmp_path / "part" / "X.npy").stat().st_size
    assert size == 30_000 * 2000 * 4 + 128
    assert peak < size / 2


def test_a_split_leaves_no_part_empty() -> None:
    with pytest.raises(DataError, match="leaves no group in one part"):
        held_out(["a"], ["a", "a"])
    assert split_key([203, "201-202"]) == ["203", "201-202"]
    assert split_key(0.3) == 0.3


def test_kept_features_are_made_anew_when_their_extractor_changes(monkeypatch):
    old = features_key("basic")
    changed = replace(FEATURES["basic"], version="later")
    monkeypatch.setattr(sys.modules["expclr.features.basic"], "basic", changed)
    assert features_key("basic") != old
    assert features_key(None) is None
