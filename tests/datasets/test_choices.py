"""Options of a dataset behind its name."""

from pathlib import Path

import numpy as np
import pytest

from expclr.cli import main
from expclr.datasets import load_dataset
from expclr.datasets.choices import split_choice
from expclr.datasets.opening import open_data, open_part
from expclr.errors import ConfigError, DataError
from expclr.windows import Windows

SMALL = "machine,n_machines=4,windows_per_machine=5,test_machines=1"


def load_mine(root: str | None = None, *, rows: int = 2) -> tuple[Windows, Windows]:
    """A dataset of one's own."""
    return Windows(np.zeros((rows, 1, 4))), Windows(np.ones((1, 1, 4)))


@pytest.mark.parametrize(
    ("text", "name", "options"),
    [
        ("uci_har", "uci_har", {}),
        ("mitdb,split=[201-202,103],fold=2", "mitdb", {"split": ["201-202", 103], "fold": 2}),
        ("hapt, features=null, classes=har6", "hapt", {"features": None, "classes": "har6"}),
        ("a:b,mask=true,test=.3", "a:b", {"mask": True, "test": 0.3}),
        ("ucr,train=/a/b,c.ts", "ucr", {"train": "/a/b,c.ts"}),
    ],
)
def test_name_and_options_are_told_apart(text: str, name: str, options: dict[str, object]) -> None:
    assert split_choice(text) == (name, options)


def test_options_behind_the_name_are_those_of_the_call() -> None:
    written = load_dataset(f"{SMALL},random_state=3")
    given = load_dataset(
        "machine", n_machines=4, windows_per_machine=5, test_machines=1, random_state=3
    )
    for a, b in zip(written, given, strict=True):
        np.testing.assert_array_equal(a.X, b.X)
    assert len(open_part(SMALL, "test")) == 5
    assert len(open_data(f"{__name__}:load_mine,rows=7")[0]) == 7


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("machine,n_machine=4", "did you mean 'n_machines'"),
        ("machine,n_machines=many", "'many': a whole number"),
        ("hydraulic,test=half", "'half': a number"),
        ("hydraulic,sensors=3", "3: a list"),
        ("ucr,mask=1", "1: true or false"),
        ("machine,n_machines=[3", "cannot be read"),
        ("machin,n_machines=3", "did you mean 'machine'"),
        ("machine,n_machines=true", "True: a whole number"),
        ("machine,random_state=-1", "-1: a number from 0 on"),
        ("hydraulic,label=3", "3: a word"),
        ("hydraulic,sensors=[]", "no sensors"),
        ("mitdb,split=null", "None: a word or a number or a list"),
        ("mitdb,split=[[103]]", "a list is wanted"),
        ("ucr,max_gap=.nan", "nan: a whole number or null"),
        ("ucr,missing=guess", "'guess': 'error' or 'interpolate' or 'drop'"),
        ("sleep_edf,wake_minutes=1000000", "0 to 1440"),
    ],
)
def test_wrong_options_are_refused(text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        load_dataset(text)


def test_numbers_of_numpy_are_numbers() -> None:
    train, _ = load_dataset(
        "machine", n_machines=np.int64(3), windows_per_machine=np.int16(2), test_machines=1
    )
    assert len(train) == 4


def test_a_wrong_name_is_refused_where_data_are_opened() -> None:
    with pytest.raises(DataError, match="did you mean 'machine'"):
        open_data("machin,n_machines=3")


def test_the_commands_take_options_behind_the_name(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["data", "info", SMALL]) == 0
    assert "train: 15 windows of 3 groups" in capsys.readouterr().out
    assert main(["prepare", SMALL]) == 0
    assert "test: Windows(machine: 5 windows" in capsys.readouterr().out
    assert main(["prepare", "machine,n_machine=4"]) == 2
    assert "did you mean 'n_machines'" in capsys.readouterr().err
