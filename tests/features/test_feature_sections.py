"""The report's sections about expert features: shares of the distance, and what got in."""

import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from expclr import ExpCLR
from expclr.datasets.machine import load
from expclr.experiments.feature_record import FEWEST, SHOWN, distance_percent, feature_record
from expclr.experiments.feature_sections import (
    ROWS,
    feature_sections,
    readability_sections,
    share_section,
)
from expclr.experiments.measure import measure
from expclr.experiments.story import model_report
from expclr.features import FEATURES, FeatureSpace
from expclr.features.report import FeatureReport
from expclr.report import Report, render_report
from expclr.windows import Windows


@pytest.fixture
def windows(rng):
    F = rng.normal(size=(90, 3))
    F[::7, 2] = np.nan
    X = np.repeat(F[:, :1, None], 8, axis=2)
    names = ("load", "speed", "wear")
    return Windows(X, F=F, group=np.arange(90) // 10, feature_names=names)


def learner_of(windows):
    space = FeatureSpace(weights={"load": 4}).fit(windows.F, feature_names=windows.feature_names)
    return SimpleNamespace(feature_space_=space)


def sections_of(learner, windows, Z):
    return feature_sections(feature_record(learner, windows, Z))


def test_what_was_embedded_is_read_and_the_rest_is_not(windows):
    Z = windows.F[:, :1].astype(np.float32)
    shares, chart, table = sections_of(learner_of(windows), windows, Z)
    assert shares.names[0] == "load"
    assert sum(shares.values) == pytest.approx(100)
    assert chart.names[0] == "load"
    assert chart.values[0] > 0.99
    assert max(chart.values[1:]) < 0.2
    assert table.rows[0][0] == "load"
    wear = next(row for row in table.rows if row[0] == "wear")
    assert wear[3] == pytest.approx(np.mean(~np.isnan(windows.F[:, 2])))


def test_the_page_shows_them(windows):
    sections = sections_of(learner_of(windows), windows, windows.F[:, :1].astype(np.float32))
    html = render_report(Report("Test", "A lead.", sections))
    for text in ("What the expert features weigh", "got into the embedding", "wear"):
        assert text in html


def test_the_report_of_a_model_has_them():
    train, test = load(n_machines=4, windows_per_machine=12, test_machines=2)
    learner = ExpCLR(max_epochs=0).fit(train, train.F)
    report = model_report(learner, test, measure(learner, train, test))
    titles = [getattr(section, "title", "") for section in report.sections]
    assert "What the expert features weigh" in titles
    assert "Which expert features got into the embedding" in titles


def test_many_columns_are_shown_by_their_ends(rng):
    F = rng.normal(size=(50, 100))
    shares = share_section(distance_percent(FeatureSpace().fit(F), F))
    assert len(shares.names) == SHOWN
    assert shares.names[-1] == f"{100 - SHOWN + 1} others together"
    assert sum(shares.values) == pytest.approx(100)
    r2 = np.linspace(-1, 1, 100)
    report = FeatureReport(tuple(f"f{j}" for j in range(100)), r2, r2, np.ones(100))
    chart, table = readability_sections(report.rows())
    assert (chart.names[0], chart.names[-1], len(chart.names)) == ("f99", "f0", SHOWN)
    assert min(chart.values) == 0
    assert len(table.rows) == ROWS
    assert "10 best and the 10 worst of 100" in chart.caption


def test_columns_of_an_extractor_are_put_together_by_their_names(rng):
    names = FEATURES["ecg88"].names(["MLII", "V"])
    F = rng.normal(size=(40, len(names)))
    shares = share_section(distance_percent(FeatureSpace().fit(F, feature_names=names), F))
    assert "MLII_swt*" in shares.names
    assert "V_rri*" in shares.names
    assert sum(shares.values) == pytest.approx(100)
    one = shares.values[shares.names.index("MLII_swt*")]
    assert one == pytest.approx(100 * 40 / 176, rel=0.05)


def test_without_features_or_with_few_windows_there_is_less(windows):
    learner, Z = learner_of(windows), np.zeros((90, 2), np.float32)
    assert sections_of(learner, windows.with_(F=None, feature_names=()), Z) == []
    assert sections_of(SimpleNamespace(), windows, Z) == []
    few = windows.subset(slice(0, FEWEST - 1))
    assert len(sections_of(learner, few, Z[: FEWEST - 1])) == 1


def test_one_group_alone_is_read_in_random_halves(windows):
    one = windows.with_(group=np.zeros(90, int))
    assert len(sections_of(learner_of(one), one, one.F[:, :1].astype(np.float32))) == 3


def test_extras_that_messages_name_exist():
    root = Path(__file__).parents[2]
    toml = (root / "pyproject.toml").read_text(encoding="utf-8")
    known = set(re.findall(r"^(\w+) = \[", toml.split("[project.optional-dependencies]")[1], re.M))
    texts = [*(root / "src/expclr/features").glob("*.py"), *(root / "docs/features").glob("*.md")]
    named = {
        (path.name, extra)
        for path in texts
        for extra in re.findall(r"expclr\[(\w+)\]", path.read_text(encoding="utf-8"))
    }
    assert named
    assert {pair for pair in named if pair[1] not in known} == set()
