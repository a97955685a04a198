"""The pages about expert features: their code runs, and every extractor has its row."""

import re
from pathlib import Path

from expclr.features import FEATURES
from expclr.features.space_named import SPACES

DOCS = Path(__file__).parents[2] / "docs" / "features"


def page(name):
    return (DOCS / f"{name}.md").read_text(encoding="utf-8")


def test_the_code_about_the_feature_space_runs():
    names = {}
    blocks = re.findall(r"^```python\n(.*?)^```$", page("space"), re.MULTILINE | re.DOTALL)
    assert len(blocks) == 2
    for text in blocks:
        exec(compile(text, "space.md", "exec"), names)


def test_every_extractor_and_every_space_is_on_a_page():
    assert [name for name in FEATURES if f"`{name}`" not in page("index")] == []
    assert [name for name in SPACES if f'`"{name}"`' not in page("space")] == []
