"""A user's own data in every form becomes the same store."""

import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.datasets.edf_files import write_edf
from tests.datasets.mutations import fuzz
from tests.datasets.wfdb_files import write_record

from expclr.datasets.own import long_table, prepare
from expclr.datasets.store import load_pair
from expclr.errors import ConfigError, DataError
from expclr.windows import Windows

N, C, T = 12, 2, 16
CHANNELS = ("torque", "speed")
FEATURES = ("age", "load")


@pytest.fixture
def known(rng: np.random.Generator) -> Windows:
    """Twelve windows of four machines, which is what every form below holds."""
    return Windows(
        rng.normal(size=(N, C, T)).round(4),
        F=rng.normal(size=(N, 2)).round(4),
        y=np.arange(N) % 3,
        group=np.repeat(["m1", "m2", "m3", "m4"], 3),
        channel_names=CHANNELS,
        feature_names=FEATURES,
        class_names=("idle", "run", "stop"),
    )


def label(known: Windows, i: int) -> str:
    return known.class_names[known.y[i]]


def long_rows(known: Windows) -> list[list[str]]:
    rows = [["case", "time", *CHANNELS, "state", "machine", *FEATURES]]
    for i in range(N):
        about = [label(known, i), known.group[i], *(repr(float(v)) for v in known.F[i])]
        for t in range(T):
            x = [repr(round(float(v), 4)) for v in known.X[i, :, t]]
            rows.append([f"c{i:02d}", repr(t / 8), *x, *about])
    return rows


def write(path: Path, rows: list[list[str]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(",".join(row) for row in rows) + "\n")
    return path


def write_long(folder: Path, known: Windows) -> dict[str, Any]:
    return {"x": write(folder / "long.csv", long_rows(known)), "case": "case", "time": "time"}


def write_tidy(folder: Path, known: Windows) -> dict[str, Any]:
    head, *rows = long_rows(known)
    tidy = [["case", "time", "channel", "value", *head[4:]]]
    for c, channel in enumerate(CHANNELS):
        tidy += [[*row[:2], channel, row[2 + c], *row[4:]] for row in rows]
    tidy[1:] = sorted(tidy[1:], key=lambda row: row[0])
    return {"x": write(folder / "tidy.csv", tidy), "case": "case", "time": "time"}


def write_parquet(folder: Path, known: Windows) -> dict[str, Any]:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    pandas.read_csv(write_long(folder, known)["x"]).to_parquet(folder / "long.parquet")
    return {"x": folder / "long.parquet", "case": "case", "time": "time"}


def write_wide(folder: Path, known: Windows) -> dict[str, Any]:
    samples = [f"{channel}{t}" for channel in CHANNELS for t in range(T)]
    rows = [["state", "machine", *FEATURES, *samples]]
    for i in range(N):
        values = [repr(round(float(v), 4)) for v in known.X[i].ravel()]
        rows.append([label(known, i), known.group[i], *map(repr, known.F[i].tolist()), *values])
    return {"x": write(folder / "wide.csv", rows), "channels": CHANNELS}


def write_folder(folder: Path, known: Windows) -> dict[str, Any]:
    """Recordings in files of a machine each, the states in a column."""
    head, *rows = long_rows(known)
    for machine in sorted(set(known.group)):
        own = [row[1:] for row in rows if row[5] == machine]
        for i, row in enumerate(own):
            row[0] = repr(i / 8)
        write(folder / "recordings" / f"{machine}.csv", [head[1:], *own])
    return {"x": folder / "recordings", "time": "time", "length": T}


TABLES = [write_long, write_tidy, write_parquet, write_wide, write_folder]


def assert_same(found: Windows, known: Windows, *, names: bool = True) -> None:
    np.testing.assert_allclose(found.X, known.X, atol=1e-6)
    np.testing.assert_allclose(found.F, known.F, atol=1e-9)
    assert found.y.tolist() == known.y.tolist()
    assert found.group.tolist() == known.group.tolist()
    if names:
        assert found.channel_names == known.channel_names
        assert found.feature_names == known.feature_names
        assert found.class_names == known.class_names


@pytest.mark.parametrize("form", TABLES, ids=lambda form: form.__name__)
def test_every_form_of_table_becomes_the_same_store(
    tmp_path: Path, known: Windows, form: Any
) -> None:
    source = form(tmp_path, known)
    options = {"labels": "state", "group": "machine", "features": FEATURES}
    out = prepare(tmp_path / "out", source.pop("x"), test=None, **source, **options)
    found = Windows.load(out)
    assert_same(found, known)
    if "time" in source:
        assert found.sfreq == 8
    assert found.name == "out"


@pytest.mark.parametrize("form", ["npz", "zip-stored", "folder"])
def test_every_form_of_array_becomes_the_same_store(
    tmp_path: Path, known: Windows, form: str
) -> None:
    arrays = {"X": known.X, "F": known.F, "labels": known.y, "group": known.group}
    names = {"class_names": known.class_names, "channel_names": CHANNELS, "sfreq": 8.0}
    names["feature_names"] = FEATURES
    source = tmp_path / "a.npz"
    save = np.savez_compressed if form == "npz" else np.savez
    save(source, **arrays, **names)
    if form == "folder":
        with zipfile.ZipFile(source) as zipped:
            zipped.extractall(tmp_path / "arrays")
        source = tmp_path / "arrays"
    found = Windows.load(prepare(tmp_path / "out", source, test=None))
    assert_same(found, known)
    assert found.sfreq == 8


def test_one_npy_with_files_beside_it(tmp_path: Path, known: Windows) -> None:
    np.save(tmp_path / "signals.npy", known.X)
    np.save(tmp_path / "machines.npy", known.group)
    rows = [list(FEATURES), *([repr(v) for v in row] for row in known.F.tolist())]
    write(tmp_path / "F.csv", rows)
    write(tmp_path / "states.csv", [["state"], *([label(known, i)] for i in range(N))])
    beside = {"features": "F.csv", "labels": "states.csv", "group": "machines.npy"}
    files = {what: str(tmp_path / name) for what, name in beside.items()}
    out = prepare(tmp_path / "out", tmp_path / "signals.npy", test=None, channels=CHANNELS, **files)
    assert_same(Windows.load(out), known)


def test_files_with_a_case_are_joined_by_it(tmp_path: Path, known: Windows) -> None:
    source = write_long(tmp_path, known)
    order = np.random.default_rng(1).permutation(N)
    rows = [["case", *FEATURES], *([f"c{i:02d}", *map(repr, known.F[i].tolist())] for i in order)]
    write(tmp_path / "F.csv", [*rows, ["nobody", "1", "2"]])
    out = prepare(
        tmp_path / "out",
        source.pop("x"),
        test=None,
        features=str(tmp_path / "F.csv"),
        labels="state",
        group="machine",
        channels=CHANNELS,
        **source,
    )
    assert_same(Windows.load(out), known)
    for listed, said in ((rows[:-1], "no row for 1 cases"), ([*rows, rows[1]], "a case twice")):
        write(tmp_path / "F.csv", listed)
        with pytest.raises(DataError, match=rf"F\.csv .*{said}"):
            prepare(
                tmp_path / "out",
                tmp_path / "long.csv",
                features=str(tmp_path / "F.csv"),
                channels=CHANNELS,
            )


def test_edf_wfdb_and_npy_recordings_are_cut_alike(
    tmp_path: Path, rng: np.random.Generator
) -> None:
    digital = rng.integers(-2000, 2000, (2, 100))
    for form in ("edf", "wfdb", "npy"):
        (tmp_path / form).mkdir()
    records = {f"EEG {name}": x.reshape(5, 20) for name, x in zip("ab", digital, strict=True)}
    write_edf(tmp_path / "edf" / "night.edf", records, record_seconds=2)
    write_record(tmp_path / "wfdb", "night", digital, sfreq=10)
    np.save(tmp_path / "npy" / "night.npy", digital)
    found = [
        Windows.load(
            prepare(tmp_path / f"{form}.out", tmp_path / form, length=30, sfreq=10, test=None)
        )
        for form in ("edf", "wfdb", "npy")
    ]
    wanted = digital[:, :90].reshape(2, 3, 30).swapaxes(0, 1)
    for windows in found:
        assert windows.sfreq == 10
        assert windows.group.tolist() == ["night"] * 3
        scale = windows.X / wanted
        np.testing.assert_allclose(scale, scale[0, 0, 0], rtol=1e-2)


def test_intervals_label_the_samples(tmp_path: Path, rng: np.random.Generator) -> None:
    for name in ("mon", "tue"):
        (tmp_path / "rec").mkdir(exist_ok=True)
        np.save(tmp_path / "rec" / f"{name}.npy", rng.normal(size=(1, 100)))
    rows = [
        ["recording", "start", "end", "label"],
        ["mon", "0", "4", "u"],
        ["mon", "4.8", "10", "v"],
    ]
    path = write(tmp_path / "rec" / "labels.csv", rows)
    options = {"intervals": path, "sfreq": 10, "length": 20, "test": None}
    found = Windows.load(prepare(tmp_path / "out", tmp_path / "rec", **options))
    assert found.class_names == ("u", "v")
    assert found.y.tolist() == [0, 0, 1, 1, 1, -1, -1, -1, -1, -1]
    assert found.group.tolist() == ["mon"] * 5 + ["tue"] * 5
    for last, said in (
        (["tue", "9", "10.5", "v"], "lie outside the recording"),
        (["mon", "3", "6", "v"], "overlap"),
        (["wed", "3", "6", "v"], "no recording 'wed'"),
        (["tue", "6", "3", "v"], "end after its start"),
    ):
        write(path, [*rows, last])
        with pytest.raises(DataError, match=said):
            prepare(tmp_path / "out", tmp_path / "rec", **options)


def test_recordings_of_one_name_and_cases_of_one_name_stay_apart(tmp_path: Path) -> None:
    rows = [["case", "x"], *([case, str(t)] for case in ("1", "2") for t in range(6))]
    for day in ("mon", "tue"):
        write(tmp_path / "rec" / f"{day}.csv", rows)
    write(tmp_path / "rec" / "labels.csv", [["case", "y"], *([f"{day}/{case}", day] for day in
          ("mon", "tue") for case in "12")])  # fmt: skip
    found = Windows.load(
        prepare(
            tmp_path / "out",
            tmp_path / "rec",
            length=4,
            test=None,
            labels=str(tmp_path / "rec" / "labels.csv"),
        )
    )
    assert found.group.tolist() == ["mon/1", "mon/2", "tue/1", "tue/2"]
    assert found.y.tolist() == [0, 0, 1, 1]
    np.save(tmp_path / "rec" / "tue.npy", np.zeros((1, 6)))
    with pytest.raises(DataError, match="name of another recording"):
        prepare(tmp_path / "out", tmp_path / "rec", length=4)


def test_intervals_go_by_the_clock_of_the_recording(tmp_path: Path) -> None:
    rows = [["time", "x"], *([f"2024-05-01T12:00:{t:02d}", str(t)] for t in range(40))]
    write(tmp_path / "a.csv", rows)
    stretch = ["2024-05-01T12:00:10", "2024-05-01T12:00:30", "on"]
    write(tmp_path / "labels.csv", [["start", "end", "label"], stretch])
    out = prepare(
        tmp_path / "out",
        tmp_path / "a.csv",
        time="time",
        length=10,
        intervals=tmp_path / "labels.csv",
        test=None,
    )
    found = Windows.load(out)
    assert found.y.tolist() == [-1, 0, 0, -1]
    assert found.sfreq == 1


def test_groups_are_never_on_both_sides(tmp_path: Path, known: Windows) -> None:
    source = write_wide(tmp_path, known)
    options = {"labels": "state", "group": "machine", "features": FEATURES, **source}
    x = options.pop("x")
    train, test = load_pair(prepare(tmp_path / "a", x, test=["m2"], **options))
    rows = known.group == "m2"
    assert_same(test, known.subset(rows))
    assert_same(train, known.subset(~rows))
    train, test = load_pair(prepare(tmp_path / "b", x, test=0.5, **options))
    assert len(set(test.group)) == 2
    assert not set(train.group) & set(test.group)
    assert_same(load_pair(prepare(tmp_path / "b", x, test="m2", **options))[1], known.subset(rows))
    for test, said in ((["m9"], "no group m9"), ("m9", "no group m9"), ("m9.npz", "no file")):
        with pytest.raises(DataError, match=said):
            prepare(tmp_path / "c", x, test=test, **options)
    assert not (tmp_path / "c").exists()


def test_a_split_without_groups_is_class_by_class(tmp_path: Path, known: Windows) -> None:
    np.savez(tmp_path / "a.npz", X=known.X, y=known.y)
    train, test = load_pair(prepare(tmp_path / "a", tmp_path / "a.npz", test=0.25))
    assert (np.bincount(train.y).tolist(), np.bincount(test.y).tolist()) == ([3] * 3, [1] * 3)
    np.savez(tmp_path / "b.npz", X=known.X)
    with pytest.raises(DataError, match="needs groups or labels"):
        prepare(tmp_path / "b", tmp_path / "b.npz")


def test_a_test_source_of_its_own_shares_the_classes(tmp_path: Path, known: Windows) -> None:
    one, two = known.subset([0, 3, 6, 9]), known.subset([1, 5])
    _small(tmp_path, "one", one)
    _small(tmp_path, "two", two)
    options = {
        "x": tmp_path / "one.csv",
        "test": tmp_path / "two.csv",
        "labels": "state",
        "group": "machine",
        "channels": CHANNELS,
    }
    train, test = load_pair(prepare(tmp_path / "out", allow=["shared-groups"], **options))
    assert train.class_names == test.class_names == ("idle", "run", "stop")
    assert (train.y.tolist(), test.y.tolist()) == (one.y.tolist(), two.y.tolist())
    with pytest.raises(DataError, match="2 of 2 groups of the test part"):
        prepare(tmp_path / "out", **options)


def _small(folder: Path, name: str, part: Windows) -> None:
    head = ["state", "machine", *(f"{c}{t}" for c in CHANNELS for t in range(T))]
    rows = [
        [label(part, i), part.group[i], *map(repr, part.X[i].ravel().tolist())]
        for i in range(len(part))
    ]
    write(folder / f"{name}.csv", [head, *rows])


def test_the_same_window_on_both_sides_is_refused_unless_allowed(
    tmp_path: Path, known: Windows
) -> None:
    X = known.X.copy()
    X[7] = X[1]
    np.savez(tmp_path / "a.npz", X=X, group=known.group)
    with pytest.raises(DataError, match="1 windows of the test part are in the train part"):
        prepare(tmp_path / "out", tmp_path / "a.npz", test=["m3"])
    assert not (tmp_path / "out").exists()
    prepare(tmp_path / "out", tmp_path / "a.npz", test=["m3"], allow=["duplicates"])


def test_missing_samples_are_refused_filled_or_dropped(tmp_path: Path, known: Windows) -> None:
    X = known.X.copy()
    X[4, 1, 3:5] = np.nan
    np.savez(tmp_path / "a.npz", X=X, y=known.y, F=known.F, group=known.group)
    with pytest.raises(DataError, match="in 1 of 12 windows, first in window 4, channel 1, timep"):
        prepare(tmp_path / "out", tmp_path / "a.npz", test=None)
    options = {"x": tmp_path / "a.npz", "test": None}
    with pytest.raises(DataError, match="too long to fill"):
        prepare(tmp_path / "out", missing="interpolate", max_gap=1, **options)
    found = Windows.load(
        prepare(tmp_path / "out", missing="interpolate", max_gap=2, mask=True, **options)
    )
    assert found.X.shape == (N, C + 1, T)
    assert np.argwhere(found.X[:, 2]).tolist() == [[4, 3], [4, 4]]
    np.save(tmp_path / "F.npy", known.F)
    beside = {"features": str(tmp_path / "F.npy")}
    found = Windows.load(prepare(tmp_path / "out", missing="drop", **options, **beside))
    kept = np.arange(N) != 4
    np.testing.assert_array_equal(found.X, known.X[kept])
    np.testing.assert_array_equal(found.F, known.F[kept])
    assert found.y.tolist() == known.y[kept].tolist()


@pytest.mark.parametrize("rows", [N - 1, N + 1])
def test_rows_that_do_not_match_are_refused(tmp_path: Path, known: Windows, rows: int) -> None:
    np.savez(tmp_path / "a.npz", X=known.X, F=np.ones((rows, 2)))
    with pytest.raises(DataError, match=rf"F has {rows} rows for 12 windows"):
        prepare(tmp_path / "out", tmp_path / "a.npz", test=None)
    np.savez(tmp_path / "a.npz", X=known.X)
    np.save(tmp_path / "F.npy", np.ones((rows, 2)))
    with pytest.raises(DataError, match=rf"F\.npy has {rows} rows for 12 windows"):
        prepare(tmp_path / "out", tmp_path / "a.npz", features=str(tmp_path / "F.npy"), test=None)


def test_labels_may_be_missing(tmp_path: Path) -> None:
    rows = [["y", "a", "b"], ["10", "1", "2"], ["", "3", "4"], ["-1", "5", "6"], ["9", "7", "8"]]
    found = Windows.load(
        prepare(tmp_path / "out", write(tmp_path / "a.csv", rows), labels="y", test=None)
    )
    assert found.y.tolist() == [1, -1, -1, 0]
    assert found.class_names == ("9", "10")


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"x": "gone.csv"}, DataError, r"no file or folder .*gone\.csv"),
        ({"x": "a.xyz"}, DataError, "no known form"),
        ({"x": "empty"}, DataError, "no recording"),
        ({"labels": "stat"}, DataError, "did you mean 'state'"),
        ({"channels": "torque,sped", "case": "case"}, DataError, "did you mean 'speed'"),
        ({"step": 4}, ConfigError, "step is given without length"),
        ({"length": 0}, ConfigError, "whole numbers"),
        ({"length": 500}, DataError, "gives no window"),
        ({"missing": "guess"}, ConfigError, "interpolate"),
        ({"length": 10**30}, ConfigError, "does not fit in memory"),
        ({"length": "ten"}, ConfigError, "'ten': a whole number or null"),
        ({"sfreq": "fast"}, ConfigError, "'fast': a number or null"),
        ({"random_state": -1}, ConfigError, "from 0 on"),
        ({"labels": 5}, ConfigError, "5: a word or null"),
        ({"labels": "state", "intervals": "i.csv"}, ConfigError, "not both"),
        ({"allow": ["anything"], "test": ["c01"]}, ConfigError, "duplicates"),
    ],
)
def test_what_cannot_be_is_refused(
    tmp_path: Path, known: Windows, options: dict[str, Any], error: type[Exception], said: str
) -> None:
    source = write_long(tmp_path, known)
    (tmp_path / "a.xyz").touch()
    (tmp_path / "empty").mkdir()
    basic = {"time": "time", "channels": CHANNELS, "group": "case", "test": None}
    given = source | basic | options
    x = tmp_path / given.pop("x")
    with pytest.raises(error, match=said):
        prepare(tmp_path / "out", x, **given)
    assert not (tmp_path / "out").exists()


def test_a_store_is_made_anew_but_nothing_else_is_overwritten(
    tmp_path: Path, known: Windows
) -> None:
    (tmp_path / "mine").mkdir()
    np.save(tmp_path / "mine" / "X.npy", known.X)
    np.savez(tmp_path / "a.npz", X=known.X)
    for x, said in (("mine", "would be replaced"), ("a.npz", "no store of windows")):
        with pytest.raises(DataError, match=said):
            prepare(tmp_path / "mine", tmp_path / x, test=None)
    assert (tmp_path / "mine" / "X.npy").exists()
    for n in (6, 12):
        np.savez(tmp_path / "a.npz", X=known.X[:n], group=known.group[:n])
        prepare(tmp_path / "out", tmp_path / "a.npz")
    assert sum(map(len, load_pair(tmp_path / "out"))) == 12
    prepare(tmp_path / "out", tmp_path / "a.npz", test=None)
    assert len(Windows.load(tmp_path / "out")) == 12
    (tmp_path / "out" / "notes.txt").touch()
    with pytest.raises(DataError, match=r"notes\.txt"):
        prepare(tmp_path / "out", tmp_path / "a.npz")


def test_rows_of_a_case_must_be_together(tmp_path: Path, known: Windows) -> None:
    head, *rows = long_rows(known)
    path = write(tmp_path / "a.csv", [head, *rows[:20], *rows[40:], *rows[20:40]])
    with pytest.raises(DataError, match="sort"):
        prepare(tmp_path / "out", path, case="case", channels=CHANNELS)


def test_a_group_holds_whole_cases(tmp_path: Path, known: Windows) -> None:
    head, *rows = long_rows(known)
    rows[3][5] = "m4"
    path = write(tmp_path / "a.csv", [head, *rows])
    with pytest.raises(DataError, match="more than one machine"):
        prepare(tmp_path / "out", path, group="machine", channels=CHANNELS)


def test_columns_called_case_and_time_need_no_telling(tmp_path: Path, known: Windows) -> None:
    options = write_long(tmp_path, known)
    about = {"labels": "state", "features": FEATURES, "group": "machine", "test": None}
    found = Windows.load(prepare(tmp_path / "out", options["x"], **about))
    assert_same(found, known)
    assert found.sfreq == 8
    as_channel = {"channels": ("time", *CHANNELS), "test": None}
    found = Windows.load(prepare(tmp_path / "out", options["x"], **as_channel))
    assert found.channel_names == ("time", *CHANNELS)


def test_a_case_too_long_to_sort_in_memory_is_refused(
    tmp_path: Path, known: Windows, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = write_tidy(tmp_path, known)
    monkeypatch.setattr(long_table, "LONGEST_CASE", C * T * 18)  # time, value, channel
    prepare(tmp_path / "out", test=None, **options)
    monkeypatch.setattr(long_table, "LONGEST_CASE", C * T * 18 - 1)
    with pytest.raises(DataError, match="a column for each"):
        prepare(tmp_path / "out", test=None, **options)


def test_hidden_files_are_no_recordings(tmp_path: Path, known: Windows) -> None:
    options = write_folder(tmp_path, known)
    (options["x"] / "._m1.csv").write_bytes(bytes(9))
    (options["x"] / ".old").mkdir()
    (options["x"] / ".old" / "m1.csv").write_text("x\n1\n")
    about = {"channels": CHANNELS, "test": None}
    found = Windows.load(prepare(tmp_path / "out", **options, **about))
    assert set(found.group) == {"m1", "m2", "m3", "m4"}


@pytest.mark.parametrize("name", ["y", "group"])
def test_columns_of_codes_in_the_place_of_one_are_refused(
    tmp_path: Path, known: Windows, name: str
) -> None:
    codes = np.eye(3)[known.y]
    np.savez(tmp_path / "a.npz", X=known.X, **{name: codes})
    with pytest.raises(DataError, match=r"has shape \(12, 3\): one value"):
        prepare(tmp_path / "out", tmp_path / "a.npz", test=None)
    np.savez(tmp_path / "a.npz", X=known.X)
    np.save(tmp_path / "codes.npy", codes)
    option = {"y": "labels"}.get(name, name)
    with pytest.raises(DataError, match=r"codes\.npy has shape"):
        prepare(
            tmp_path / "out",
            tmp_path / "a.npz",
            test=None,
            **{option: str(tmp_path / "codes.npy")},
        )


def test_one_group_cannot_be_split(tmp_path: Path, known: Windows) -> None:
    np.savez(tmp_path / "a.npz", X=known.X, group=np.repeat("pump", N))
    with pytest.raises(DataError, match=r"one group, pump: .* test=None"):
        prepare(tmp_path / "out", tmp_path / "a.npz")


@pytest.mark.parametrize("times", [60, pytest.param(1000, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "form", ["arrays", "long", "tidy", "wide", "intervals", "side", "edf", "wfdb"]
)
def test_damaged_sources_raise_only_data_errors(
    tmp_path: Path, known: Windows, form: str, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", lambda handle: None)  # waiting for the disk shows nothing
    files, options = _source(tmp_path, known, form)
    x = options.pop("x")

    def read() -> None:
        prepare(tmp_path / "out", x, test=None, **options)

    assert fuzz(files, read, times=times) > times // 6


def _source(folder: Path, known: Windows, form: str) -> tuple[list[Path], dict[str, Any]]:
    """A small source, the files of it to damage, and how it is read."""
    columns: dict[str, Any] = {"labels": "state", "features": FEATURES, "group": "machine"}
    if form == "long":
        path = write(folder / "a.csv", long_rows(known)[:40])
        return [path], {"x": path, "time": "time"} | columns
    if form in ("tidy", "wide"):
        options = (write_tidy if form == "tidy" else write_wide)(folder, known)
        return [options["x"]], options | columns
    np.savez(folder / "a.npz", X=known.X[:3], y=known.y[:3])
    if form == "intervals":
        path = write(
            folder / "c.csv", [["start", "end", "label"], ["0", "4", "u"], ["5", "9", "v"]]
        )
        (folder / "d").mkdir()
        np.save(folder / "d" / "one.npy", known.X[0])
        about = {"x": folder / "d", "sfreq": 1, "length": 4, "intervals": path}
        return [path], about
    if form in ("edf", "wfdb"):
        return _recording(folder, known, form)
    path = write(folder / "e.csv", [list(FEATURES), *([["1.5", "-2"]] * 3)])
    options = {"x": folder / "a.npz", "features": str(path)}
    return [path if form == "side" else folder / "a.npz"], options


def _recording(folder: Path, known: Windows, form: str) -> tuple[list[Path], dict[str, Any]]:
    digital = (known.X[0] * 1000).astype(int)
    about = {"x": folder / "r", "length": 4, "missing": "interpolate"}
    if form == "edf":
        signals = {name: row[None] for name, row in zip(CHANNELS, digital, strict=True)}
        return [write_edf(folder / "r" / "one.edf", signals)], about
    record = write_record(folder / "r", "one", digital)
    return [record.with_suffix(end) for end in (".hea", ".dat")], about
