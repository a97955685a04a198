"""The page in a real browser, where there is one."""

import shutil
import subprocess

import numpy as np
import pytest

from expclr.report import Report, embedding_map, write_report
from expclr.windows import Windows

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "chrome"))), None)

pytestmark = pytest.mark.skipif(BROWSER is None, reason="no chromium on this machine")


@pytest.fixture
def opened(tmp_path, parse):
    """report, hash -> (the page after its scripts ran, what the console said)."""

    def open_page(report, link=""):
        path = write_report(tmp_path / "report.html", report)
        options = [
            *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync"),
            *("--disable-background-networking", "--disable-component-update", "--disable-quic"),
            *("--enable-logging=stderr", f"--user-data-dir={tmp_path / 'profile'}"),
            *("--virtual-time-budget=4000", "--dump-dom", f"{path.as_uri()}{link}"),
        ]
        done = subprocess.run([BROWSER, *options], capture_output=True, timeout=120, check=True)
        console = [line for line in done.stderr.decode().splitlines() if "CONSOLE" in line]
        return parse(done.stdout.decode()), console

    return open_page


def has_class(page, tag, name):
    return [a for a in page.all(tag) if name in a.get("class", "").split()]


def test_every_figure_is_drawn_and_a_link_leads_to_its_window(opened, full_report):
    page, console = opened(full_report, "#point=12")
    assert console == []
    assert has_class(page, "p", "failed") == []
    marks = has_class(page, "path", "point")
    assert len(marks) > 600
    assert "Window 12" in page.texts
    assert "Kept · release" in page.texts
    assert len(has_class(page, "button", "neighbour")) == 5
    assert len(has_class(page, "svg", "wave")) == 1 + 5 + 12
    assert page.texts.count("Download CSV") == 8
    assert len(has_class(page, "path", "signal")) == 3 + 5 + 12 * 3


def test_hostile_names_run_nothing(opened, hostile, hostile_report):
    page, console = opened(hostile_report)
    assert console == []
    assert has_class(page, "p", "failed") == []
    assert page.all("img") == []
    assert len(page.all("script")) == 7 + 1
    assert hostile in page.texts


def test_a_map_of_next_to_nothing_is_drawn(opened):
    bare = Windows(np.full((1, 20, 4), np.nan), F=[[np.nan]])
    page, console = opened(Report("r", "", [embedding_map([[1.0, 2.0]], bare)]))
    assert console == []
    assert has_class(page, "p", "failed") == []
    assert "missing" in page.texts
