"""Cutting cases into windows, however their samples are dealt out in chunks."""

from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from expclr.datasets.own import cutting
from expclr.datasets.own.chunks import Chunk, Clock, seconds
from expclr.datasets.own.cutting import cut_windows, whole_cases
from expclr.errors import ConfigError, DataError

CASES = {"a": 57, "b": 3, "c": 20, "d": 41}


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cutting, "BLOCK", 200)


@pytest.fixture
def whole(rng: np.random.Generator) -> list[Chunk]:
    """Four cases of two channels, with labels and a feature."""
    return [
        Chunk(
            case,
            rng.normal(size=(n, 2)).astype(np.float32),
            label=rng.choice(["u", "v", "w"], n),
            F=rng.normal(size=(n, 3)),
        )
        for case, n in CASES.items()
    ]


def dealt(chunks: list[Chunk], rng: np.random.Generator) -> list[Chunk]:
    """The same samples in chunks of random length."""
    parts = []
    for chunk in chunks:
        cuts = np.sort(rng.integers(0, len(chunk) + 1, 4)).tolist()
        edges = [0, *cuts, len(chunk)]
        parts += [chunk.part(a, b) for a, b in pairwise(edges) if b > a]
    return parts


@pytest.mark.parametrize(("length", "step"), [(8, 8), (8, 3), (5, 11), (1, 1), (41, 2), (20, 100)])
def test_windows_do_not_depend_on_chunks(
    whole: list[Chunk], rng: np.random.Generator, length: int, step: int
) -> None:
    X, label, F, case = [], [], [], []
    for chunk in whole:
        for start in range(0, len(chunk) - length + 1, step):
            at = slice(start, start + length)
            X.append(chunk.X[at].T)
            votes = Counter(chunk.label[at].tolist())
            label.append(min(votes, key=lambda v: (-votes[v], v)))
            F.append(chunk.F[at].mean(axis=0))
            case.append(chunk.case)
    for _ in range(5):
        blocks = list(cut_windows(dealt(whole, rng), length, step))
        np.testing.assert_array_equal(np.concatenate([b.X for b in blocks]), X)
        assert np.concatenate([b.label for b in blocks]).tolist() == label
        assert np.concatenate([b.case for b in blocks]).tolist() == case
        assert np.concatenate([b.group for b in blocks]).tolist() == case
        np.testing.assert_allclose(np.concatenate([b.F for b in blocks]), F)


def test_whole_cases_are_padded_to_the_longest(
    whole: list[Chunk], rng: np.random.Generator, tmp_path: Path
) -> None:
    constant = [
        Chunk(c.case, c.X, label=np.repeat(c.case, len(c)), F=c.F, group="g") for c in whole
    ]
    blocks = list(whole_cases(dealt(constant, rng), tmp_path, "here"))
    X = np.concatenate([b.X for b in blocks])
    assert np.concatenate([b.lengths for b in blocks]).tolist() == list(CASES.values())
    for x, chunk in zip(X, constant, strict=True):
        np.testing.assert_array_equal(x[:, : len(chunk)], chunk.X.T)
        assert not x[:, len(chunk) :].any()
    assert np.concatenate([b.label for b in blocks]).tolist() == list(CASES)
    F = np.concatenate([b.F for b in blocks])
    np.testing.assert_allclose(F, [c.F.mean(axis=0) for c in whole])
    assert not list(tmp_path.iterdir())


def test_a_feature_that_is_missing_everywhere_stays_missing() -> None:
    chunk = Chunk("a", np.zeros((4, 1)), F=np.array([[1, np.nan], [3, np.nan]] * 2))
    (block,) = cut_windows([chunk], 4, 4)
    np.testing.assert_array_equal(block.F, [[2, np.nan]])


def test_a_case_taken_whole_has_one_label(tmp_path: Path) -> None:
    chunk = Chunk("a", np.zeros((2, 1)), label=np.array(["u", "v"]))
    with pytest.raises(DataError, match="case a has the labels u, v"):
        list(whole_cases([chunk], tmp_path, "here"))


def test_padding_that_would_fill_memory_is_refused(tmp_path: Path) -> None:
    chunks = [Chunk(str(i), np.zeros((1, 1), np.float32)) for i in range(2000)]
    chunks.append(Chunk("long", np.zeros((100_000, 1), np.float32)))
    with pytest.raises(DataError, match="1 to 100000 samples"):
        list(whole_cases(chunks, tmp_path, "here"))


def test_a_case_too_long_for_one_window_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cutting, "LARGEST_WINDOW", 8000)
    chunks = [Chunk("short", np.zeros((900, 2))), Chunk("long", np.zeros((1100, 2)))]
    assert sum(len(block.X) for block in whole_cases(chunks[:1], tmp_path, "here")) == 1
    with pytest.raises(DataError, match=r"case long of 1,100 samples .* length="):
        list(whole_cases(chunks, tmp_path, "here"))
    with pytest.raises(ConfigError, match="length is 1001"):
        list(cut_windows(chunks, 1001, 1))


def test_labels_that_are_no_classes_are_refused() -> None:
    chunk = Chunk("a", np.zeros((3000, 1)), label=np.arange(3000).astype(str))
    with pytest.raises(DataError, match="3000 different values"):
        list(cut_windows([chunk], 10, 10))


@pytest.mark.parametrize(("length", "step"), [(0, 1), (4, 0), (-1, 1)])
def test_impossible_lengths_are_refused(length: int, step: int) -> None:
    with pytest.raises(ConfigError, match="whole numbers"):
        list(cut_windows([], length, step))


def timed(*times: float, case: str = "a") -> Chunk:
    return Chunk(case, np.arange(len(times), dtype=np.float32)[:, None], time=np.array(times))


def run(*chunks: Chunk, longest: int = 100) -> list[float]:
    parts = list(Clock("here", longest).run(chunks))
    return np.concatenate([part.X[:, 0] for part in parts]).tolist()


def test_what_times_skip_becomes_missing_samples() -> None:
    whole = run(timed(0, 0.1, 0.2, 0.5, 0.6))
    np.testing.assert_array_equal(whole, [0, 1, 2, np.nan, np.nan, 3, 4])
    np.testing.assert_array_equal(run(timed(0, 0.1, 0.2), timed(0.4, 0.5)), [0, 1, 2, np.nan, 0, 1])


def test_a_new_case_starts_its_own_clock() -> None:
    assert run(timed(0, 1, 2), timed(0, 1, case="b"), timed(500, 501, case="c")) == [
        *(0, 1, 2),
        *(0, 1),
        *(0, 1),
    ]


def test_a_long_gap_is_cut_short_but_stays_too_long_to_fill() -> None:
    assert len(run(timed(0, 1, 2, 3, 10**9, 10**9 + 1), longest=5)) == 6 + 6


def test_jitter_is_no_gap() -> None:
    assert run(timed(0, 1.1, 1.9, 3.0, 4.2)) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("times", "said"),
    [
        ((0, 1, 1, 2), "do not increase"),
        ((0, 2, 1), "do not increase"),
        ((0, np.nan, 2), "without a time"),
        (tuple(np.cumsum(np.linspace(0.1, 3, 40))), "unevenly"),
        (tuple(np.cumsum([1.0] * 40 + [90.0] * 30)), "mostly gaps"),
    ],
)
def test_times_that_are_no_clock_are_refused(times: tuple[float, ...], said: str) -> None:
    with pytest.raises(DataError, match=said):
        run(timed(*times))


def test_a_case_with_a_slower_clock_is_refused() -> None:
    with pytest.raises(DataError, match=r"case b has a sample every 10 s, others every 1 s"):
        run(timed(0, 1, 2, 3), timed(0, 10, 20, 30, case="b"))
    assert len(run(timed(0, 1, 2, 3), timed(0, 5, 6, 7, 8, case="b"))) == 4 + 9  # only a gap


def test_times_are_numbers_or_dates() -> None:
    dates = np.array(["2024-05-01T12:00:00", "2024-05-01 12:00:00.25"])
    assert np.diff(seconds(dates, "here"))[0] == pytest.approx(0.25, abs=1e-6)
    zones = np.array(["2024-05-01T12:00:00+02:00", "2024-05-01 10:00:00Z", "2024-05-01T10:00:00"])
    assert len(set(seconds(zones, "here").tolist())) == 1
    for cell in ("noon", "2024-13-01", "01.05.2024"):
        with pytest.raises(DataError, match="ISO dates"):
            seconds(np.array([cell]), "here")
