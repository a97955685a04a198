"""Missing samples: refused with count and place, filled, or left out."""

import numpy as np
import pytest

from expclr.datasets.missing import Missing, fill_gaps, gap_lengths
from expclr.errors import ConfigError, DataError

NAN = np.nan


def slowly_filled(row: list[float]) -> list[float]:
    """Each gap on the line between its neighbours; at an end the nearest sample."""
    known = [i for i, v in enumerate(row) if v == v]
    out = []
    for i, v in enumerate(row):
        left = [k for k in known if k <= i]
        right = [k for k in known if k >= i]
        if v == v:
            out.append(v)
        elif left and right:
            a, b = left[-1], right[0]
            out.append(row[a] + (row[b] - row[a]) * (i - a) / (b - a))
        else:
            out.append(row[(left or right)[-1 if left else 0]])
    return out


@pytest.fixture
def holes(rng: np.random.Generator) -> np.ndarray:
    X = rng.normal(size=(20, 3, 17)).astype(np.float32)
    X[rng.random(X.shape) < 0.3] = NAN
    X[:, :, 5] = 1.0
    return X


def test_gaps_are_filled_on_straight_lines(holes: np.ndarray) -> None:
    filled = fill_gaps(holes, np.isnan(holes))
    wanted = [[slowly_filled(row) for row in window] for window in holes.astype(float).tolist()]
    np.testing.assert_allclose(filled, wanted, rtol=1e-5, atol=1e-6)


def test_gap_lengths_are_the_longest_runs(holes: np.ndarray) -> None:
    def slow(row: np.ndarray) -> int:
        runs = "".join("x" if v else " " for v in row).split(" ")
        return max(len(run) for run in runs)

    gone = np.isnan(holes)
    assert gap_lengths(gone).tolist() == [[slow(row) for row in window] for window in gone]


def test_refusal_has_count_and_first_place() -> None:
    X = np.zeros((4, 2, 10), np.float32)
    X[1, 1, 7] = X[3, 0, 2] = NAN
    missing = Missing()
    missing.apply(X[:1])
    missing.apply(X[1:])
    with pytest.raises(DataError, match="in 2 of 4 windows, first in window 1, channel 1, timep"):
        missing.finish("a.csv")


def test_only_gaps_up_to_the_longest_are_filled() -> None:
    X = np.ones((2, 1, 12), np.float32)
    X[0, 0, 3:6] = X[1, 0, 3:7] = NAN
    missing = Missing("interpolate", 3)
    missing.apply(X[:1])
    missing.finish("a.csv")
    missing.apply(X[1:])
    with pytest.raises(DataError, match="too long to fill in 1 of 2"):
        missing.finish("a.csv")


def test_a_channel_without_any_sample_is_never_filled() -> None:
    missing = Missing("interpolate", 10**6)
    missing.apply(np.full((1, 1, 5), NAN, np.float32))
    with pytest.raises(DataError, match="1 of 1"):
        missing.finish("a.csv")


def test_the_mask_marks_filled_samples_of_any_channel() -> None:
    X = np.ones((1, 2, 6), np.float32)
    X[0, 0, 2] = X[0, 1, 4] = NAN
    filled, _ = Missing("interpolate", mask=True).apply(X)
    assert filled[0].tolist() == [[1] * 6, [1] * 6, [0, 0, 1, 0, 1, 0]]


def test_windows_with_gaps_can_be_left_out(caplog: pytest.LogCaptureFixture) -> None:
    X = np.ones((3, 1, 6), np.float32)
    X[1, 0, 2] = NAN
    missing = Missing("drop")
    _, keep = missing.apply(X)
    missing.finish("a.csv")
    assert keep.tolist() == [True, False, True]
    assert "left out 1 of 3" in caplog.text


def test_padding_is_not_missing() -> None:
    X = np.full((1, 1, 6), NAN, np.float32)
    X[0, 0, :4] = 1
    missing = Missing()
    missing.apply(X, np.array([4]))
    missing.finish("a.csv")


def test_infinite_values_and_unknown_policies_are_refused() -> None:
    missing = Missing("drop")
    missing.apply(np.array([[[0, 0, 0, np.inf]]], np.float32))
    with pytest.raises(DataError, match=r"a\.csv .* window 0, channel 0, timepoint 3"):
        missing.finish("a.csv")
    with pytest.raises(ConfigError, match="interpolate"):
        Missing("fill")
