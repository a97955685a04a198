"""Windows and groups that are on both sides of a split."""

from pathlib import Path

import numpy as np
import pytest

from expclr.datasets.checks import check_split, duplicated_windows, shared_groups
from expclr.errors import ConfigError, DataError
from expclr.windows import Windows


def windows(X: np.ndarray, group: list[object] | None = None) -> Windows:
    return Windows(X, group=group)


def test_all_duplicates_are_found_in_memory_and_on_disk(
    tmp_path: Path, rng: np.random.Generator
) -> None:
    X = rng.normal(size=(3000, 2, 5)).astype(np.float32)
    train, test = X[:2000].copy(), X[2000:].copy()
    test[[3, 900]] = train[[1999, 0]]
    wanted = [
        [i, j] for j in range(1000) for i in range(2000) if not (train[i, 0, 0] - test[j, 0, 0])
    ]
    assert len(wanted) == 2
    assert duplicated_windows(windows(train), windows(test)).tolist() == wanted
    for name, part in (("train", train), ("test", test)):
        np.save(tmp_path / f"{name}.npy", part)
    found = duplicated_windows(tmp_path / "train.npy", tmp_path / "test.npy")
    assert found.tolist() == wanted


def test_nearly_the_same_is_not_the_same() -> None:
    X = np.arange(10, dtype=np.float32).reshape(1, 1, 10)
    assert not len(duplicated_windows(windows(X), windows(np.nextafter(X, 99))))


def test_a_sensor_that_is_off_is_no_duplicate() -> None:
    X = np.full((4, 2, 8), 3.0)
    check_split(windows(X), windows(X))


def test_a_group_on_both_sides_is_refused_unless_allowed(rng: np.random.Generator) -> None:
    train = windows(rng.normal(size=(3, 1, 4)), ["a", "b", "b"])
    test = windows(rng.normal(size=(2, 1, 4)), ["b", "c"])
    assert shared_groups(train, test) == ["b"]
    with pytest.raises(DataError, match="1 of 2 groups of the test part"):
        check_split(train, test)
    check_split(train, test, allow=["shared-groups"])


def test_a_duplicate_is_refused_with_its_place_unless_allowed(rng: np.random.Generator) -> None:
    X = rng.normal(size=(5, 1, 4))
    with pytest.raises(DataError, match="first test window 1 = train window 2"):
        check_split(windows(X[:3]), windows(X[[4, 2]]))
    check_split(windows(X[:3]), windows(X[[4, 2]]), allow=["duplicates"])
    with pytest.raises(ConfigError, match="shared-groups"):
        check_split(windows(X), windows(X), allow=["duplicate"])
