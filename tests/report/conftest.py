"""Made windows and a report with a section of every kind."""

from html.parser import HTMLParser

import numpy as np
import pytest

from expclr.report import (
    Bars,
    EmbeddingMap,
    Gallery,
    Histogram,
    KeyValues,
    Lines,
    Mark,
    Projection,
    Report,
    Series,
    Table,
    Text,
    Waveforms,
    gallery,
    pair_ratios,
)
from expclr.windows import Windows

HOSTILE = "</script><script>alert(1)</script><!--<img src=x onerror=alert(2)>\"'&{{7*7}}"
CLASSES = ("walking", "upstairs", "downstairs", "sitting", "standing", "lying")


class Page(HTMLParser):
    """Tags with attributes, text by tag, and the data blocks of a page."""

    def __init__(self, html):
        super().__init__(convert_charrefs=True)
        self.tags, self.texts, self.data, self.open = [], [], [], None
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.open = (tag, dict(attrs))

    def handle_endtag(self, tag):
        self.open = None

    def handle_data(self, data):
        if self.open == ("script", {"type": "application/json", "class": "data"}):
            self.data.append(data)
        elif not (self.open and self.open[0] in ("script", "style")):
            self.texts.append(data)

    def all(self, tag):
        return [attributes for name, attributes in self.tags if name == tag]


@pytest.fixture(scope="session")
def parse():
    return Page


@pytest.fixture(scope="session")
def made():
    """(windows, Z): 600 windows of 3 x 512, 6 classes, 12 features with missing values."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 6, 600)
    time = np.arange(512) / 50
    waves = np.sin(2 * np.pi * (0.5 + y[:, None, None]) * time + np.arange(3)[:, None])
    X = waves * (1 + y[:, None, None]) + 0.1 * rng.normal(size=(600, 3, 512))
    F = np.column_stack([X.mean(axis=2), X.std(axis=2), np.abs(X).max(axis=2), X[:, :, 0]])
    Z = np.nan_to_num(F @ rng.normal(size=(12, 16)))
    F[rng.random(F.shape) < 0.05] = np.nan
    names = tuple(f"feature {i}" for i in range(12))
    group = rng.integers(0, 20, 600)
    windows = Windows(
        X, F=F, y=y, group=group, sfreq=50.0, feature_names=names, class_names=CLASSES, name="made"
    )
    return windows, Z


@pytest.fixture(scope="session")
def full_report(made):
    windows, Z = made
    epochs = np.arange(1, 31)
    ratios = np.random.default_rng(1).lognormal(0, 1, 5000)
    rows = [("expclr", 0.95, 0.01, 12), ("simclr", float("nan"), None, 9)]
    return Report(
        "A run",
        "What was done and found.",
        [
            KeyValues("What was run", {"config": {"lr": 0.003}, "seconds": {"train": 4.2}}),
            Lines(
                "Loss",
                [Series("train", epochs, np.where(epochs == 7, np.nan, 1 / epochs))],
                x_label="epoch",
                y_label="loss",
                caption="Lower is better.",
            ),
            EmbeddingMap(
                "Map",
                [Projection("first", Z[:, :2]), Projection("second", Z[:, 2:4])],
                caption="One mark for each window.",
                classes=windows.y,
                class_names=windows.class_names,
                features=windows.F,
                feature_names=windows.feature_names,
                waveforms=Waveforms.of(windows),
                neighbours=(np.arange(600)[:, None] + np.arange(1, 6)) % 600,
                distances=np.ones((600, 5)),
                typical_distance=2.0,
                group=windows.group,
            ),
            Table(
                "Results",
                ("method", "accuracy", "se", "seconds"),
                rows,
                best={"accuracy": "high"},
                errors={"accuracy": "se"},
            ),
            Lines(
                "Few labels",
                [Series("expclr", [5, 10, 100], [0.7, 0.8, 0.9], low=[0.6] * 3, high=[0.95] * 3)],
                x_label="labels (%)",
                y_label="accuracy",
                log_x=True,
                caption="Higher is better.",
            ),
            pair_ratios(ratios, 0.2, 5.0),
            Bars("Read", ["mean", "slope"], [0.9, -0.1], x_label="R²", caption="1 is best."),
            gallery(windows, per_class=2),
            Text("In words", "It went well.", items=["first", "second"]),
        ],
    )


@pytest.fixture
def hostile():
    """A name that tries to become markup."""
    return HOSTILE


@pytest.fixture
def hostile_report(hostile):
    windows = Windows(np.zeros((2, 1, 4)), channel_names=(hostile,))
    waves = Waveforms.of(windows)
    kinds = {"x_label": hostile, "caption": hostile}
    chart = {"y_label": hostile, **kinds}
    return Report(
        hostile,
        hostile,
        [
            Text(hostile, hostile, items=[hostile]),
            KeyValues(hostile, {hostile: hostile, "b": {hostile: hostile}}, caption=hostile),
            Table(hostile, (hostile,), [(hostile,)], caption=hostile),
            Lines(hostile, [Series(hostile, [1, 2], [1, 2])], **chart),
            Histogram(hostile, [0, 1], [1], marks=[Mark(0.5, hostile)], **chart),
            Bars(hostile, [hostile], [1.0], **kinds),
            EmbeddingMap(
                hostile,
                [Projection(hostile, np.eye(2), hostile)],
                caption=hostile,
                classes=np.array([0, 0]),
                class_names=(hostile,),
                features=np.eye(2),
                feature_names=(hostile, hostile),
                waveforms=waves,
                group=[hostile, hostile],
            ),
            Gallery(
                hostile, {hostile: [0]}, waveforms=waves, labels=[hostile] * 2, caption=hostile
            ),
        ],
    )
