"""One HTML file that shows what was run and what came out, without a network.

A report is a title, a lead in plain words and a list of sections, each a small dataclass:

>>> from expclr.report import KeyValues, Lines, Report, Series, Text, write_report
>>> loss = Lines("Loss", [Series("train", [1, 2, 3], [0.9, 0.5, 0.4])], x_label="epoch",
...              y_label="loss", caption="Lower is better.")
>>> report = Report("A run", "Three epochs.", [Text("Data", "600 windows."), loss])
>>> [section.kind for section in report.sections]
['text', 'lines']
"""

from expclr.report.bars import Bars
from expclr.report.charts import Histogram, Lines, Mark, Series
from expclr.report.embedding import embedding_map
from expclr.report.gallery import Gallery, gallery
from expclr.report.maps import EmbeddingMap, Projection
from expclr.report.ratios import pair_ratios
from expclr.report.render import render_report, write_report
from expclr.report.sections import KeyValues, Report, Section, Text
from expclr.report.tables import Table
from expclr.report.waveforms import Waveforms

__all__ = [
    "Bars",
    "EmbeddingMap",
    "Gallery",
    "Histogram",
    "KeyValues",
    "Lines",
    "Mark",
    "Projection",
    "Report",
    "Section",
    "Series",
    "Table",
    "Text",
    "Waveforms",
    "embedding_map",
    "gallery",
    "pair_ratios",
    "render_report",
    "write_report",
]
