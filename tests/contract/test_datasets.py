"""What holds for every dataset in the registry."""

import sys
from inspect import Parameter, getdoc, signature
from pathlib import Path

import pytest

from expclr.datasets import DATASETS, load_dataset
from expclr.datasets.fetch import fetch
from expclr.datasets.source import Source
from expclr.errors import ConfigError, DataError

PAGE = (Path(__file__).parents[2] / "docs" / "datasets.md").read_text(encoding="utf-8")
EMBEDDED = ("machine",)
every = pytest.mark.parametrize("name", list(DATASETS))
fetched = pytest.mark.parametrize("name", [name for name in DATASETS if name not in EMBEDDED])


@pytest.fixture(autouse=True)
def no_data(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("EXPCLR_DATA", str(tmp_path / "raw"))
    monkeypatch.setenv("EXPCLR_CACHE", str(tmp_path / "cache"))


@every
def test_its_options_are_named_have_defaults_and_are_explained(name: str) -> None:
    parameters = dict(signature(DATASETS[name]).parameters)
    root = parameters.pop("root")
    assert root.default is None
    words = getdoc(DATASETS[name]) or ""
    for option in parameters.values():
        assert option.kind is Parameter.KEYWORD_ONLY
        assert option.default is not Parameter.empty
        assert option.annotation is not Parameter.empty
        assert option.name in words, option.name


@every
def test_it_has_a_section_on_the_page(name: str) -> None:
    assert f"\n### {name}\n" in PAGE


@every
def test_an_option_it_has_not_is_refused_before_any_file_is_looked_for(name: str) -> None:
    with pytest.raises(ConfigError, match="has no option 'nonsense'"):
        load_dataset(name, nonsense=1)


@fetched
def test_without_its_files_it_says_where_they_belong(name: str, tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        load_dataset(name)
    said = str(caught.value)
    assert str(tmp_path / "raw" / name) in said
    assert f"expclr fetch {name}" in said
    assert "\n" not in said
    assert not (tmp_path / "raw").exists()


@fetched
def test_fetch_knows_an_address_and_says_it_in_one_line(name: str, tmp_path: Path) -> None:
    source = sys.modules[DATASETS[name].__module__].SOURCE
    assert isinstance(source, Source)
    files = ("Toy",) if source.one_by_one else ()
    with pytest.raises(DataError) as caught:
        fetch(name, files=files, offline=True)
    said = str(caught.value)
    assert "get https://" in said
    assert str(tmp_path / "raw" / name) in said
    assert "\n" not in said
