"""The page: one offline file, well formed, harmless, the same every time."""

import json
import re
from base64 import b64encode
from hashlib import sha256

import pytest

from expclr.errors import DataError
from expclr.report import Report, Text, render_report, write_report


def test_the_page_is_whole_and_its_links_lead_somewhere(full_report, parse):
    page = parse(render_report(full_report))
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    links = {a["href"][1:] for a in page.all("a") if a.get("href", "").startswith("#")}
    assert links <= set(ids)
    kinds = [a["data-kind"] for a in page.all("figure")]
    expected = "keyvalues lines map table lines histogram bars gallery"
    assert kinds == expected.split()
    titles = [section.title for section in full_report.sections]
    assert [title for title in titles if title not in page.texts] == []


def test_every_figure_has_words_and_numbers(full_report, parse):
    page = parse(render_report(full_report))
    assert len(page.data) == len(page.all("figure")) == 8
    for section in full_report.sections:
        if hasattr(section, "alt"):
            text = page.texts + [t.get("aria-label") for t in page.all("table")]
            assert section.alt() in text
            assert section.caption in page.texts


def test_data_blocks_are_strict_json_without_nan(full_report, parse):
    def refuse(constant):
        raise AssertionError(constant)

    blocks = [json.loads(d, parse_constant=refuse) for d in parse(render_report(full_report)).data]
    assert blocks[1]["series"][0]["y"][6] is None
    assert blocks[3]["rows"][1] == ["simclr", None, None, 9]


def test_nothing_is_fetched(full_report, parse):
    html = render_report(full_report)
    assert not re.search(r"https?:|//[a-z]+\.[a-z]|@import|url\(", html)
    page = parse(html)
    assert not [a for _, a in page.tags if "src" in a]
    assert [a["href"] for a in page.all("link")] == ["data:,"]
    policy = page.all("meta")[1]["content"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy


def test_the_policy_allows_exactly_the_page_s_own_script_and_style(full_report):
    html = render_report(full_report)
    for tag in ("script", "style"):
        text = re.search(rf"<{tag}>(.*?)</{tag}>", html, re.S).group(1)
        digest = b64encode(sha256(text.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in html


def test_600_windows_of_3_by_512_stay_under_4_megabytes(full_report, tmp_path):
    path = write_report(tmp_path / "report.html", full_report)
    assert 2_000_000 < path.stat().st_size < 4_000_000


def test_the_same_report_gives_the_same_bytes(full_report, tmp_path):
    first = write_report(tmp_path / "a.html", full_report).read_bytes()
    assert first == write_report(tmp_path / "b.html", full_report).read_bytes()


def test_words_for_screen_readers_in_a_table_do_not_widen_the_page(full_report):
    # They are placed absolutely: only a positioned box that scrolls cuts them off.
    assert re.search(r"\.unseen \{[^}]*position: absolute", render_report(full_report))
    assert re.search(r"\.scroll \{[^}]*position: relative", render_report(full_report))


def test_hostile_names_stay_text(hostile, hostile_report, parse):
    page = parse(render_report(hostile_report))
    assert len(page.all("script")) == 7 + 1
    assert page.all("img") == []
    assert not [a for _, a in page.tags if any(name.startswith("on") for name in a)]
    assert hostile in page.texts
    assert not any("<" in block for block in page.data)
    assert json.loads(page.data[1])["columns"] == [hostile]


def test_equal_titles_get_different_ids_and_no_title_goes_on(parse):
    html = render_report(Report("r", "", [Text("A b", "1"), Text("A b", "2"), Text("", "3")]))
    page = parse(html)
    assert [a["id"] for a in page.all("section")] == ["a-b", "a-b-2", "section"]
    assert len(page.all("h2")) == 2
    assert len(page.all("li")) == 2


def test_a_report_refuses_what_is_no_section():
    with pytest.raises(DataError, match="holds a str"):
        Report("r", "", ["text"])


def test_a_missing_folder_is_said_in_one_line(tmp_path):
    with pytest.raises(DataError, match="cannot write"):
        write_report(tmp_path / "no" / "report.html", Report("r"))
