"""What a report is made of: a title, a lead and sections, here those made of words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Protocol, runtime_checkable

from expclr.errors import DataError
from expclr.report.formats import words

__all__ = ["KeyValues", "Report", "Section", "Text"]


@runtime_checkable
class Section(Protocol):
    """One part of a report.

    A kind is a dataclass like this, a macro of that name in ``templates/sections.html.j2``
    and, if anything moves, a function of that name in ``static/``. A section without a title
    goes on under the heading before it.
    """

    @property
    def kind(self) -> str:
        """Name of the macro and of the JavaScript function that show the section."""

    @property
    def title(self) -> str:
        """Heading of the section; empty to go on under the one before."""

    def payload(self) -> dict[str, Any] | None:
        """What the JavaScript function is given, or None when the macro shows it all."""


@dataclass(frozen=True)
class Report:
    """A report: what ``write_report`` writes.

    Parameters
    ----------
    title : str
        Heading of the page.
    lead : str
        What was done and found, in a few plain sentences.
    sections : sequence of sections
        In the order of reading.
    """

    title: str
    lead: str = ""
    sections: Sequence[Section] = ()

    def __post_init__(self) -> None:
        for section in self.sections:
            if not isinstance(section, Section):
                raise DataError(
                    f"a report holds a {type(section).__name__}: sections such as Text, Table or "
                    "Lines are wanted"
                )


@dataclass(frozen=True)
class Text:
    """Paragraphs, and a list after them when ``items`` are given.

    Examples
    --------
    >>> Text("What we saw", "Distances follow the features.").paragraphs
    ('Distances follow the features.',)
    """

    title: str
    paragraphs: Sequence[str] | str = ()
    _: KW_ONLY
    items: Sequence[str] = ()
    kind: ClassVar[str] = "text"

    def __post_init__(self) -> None:
        if isinstance(self.paragraphs, str):
            object.__setattr__(self, "paragraphs", (self.paragraphs,))

    def payload(self) -> None:
        return None


@dataclass(frozen=True)
class KeyValues:
    """Names and values, such as what was run; a mapping inside becomes a block of its own.

    Examples
    --------
    >>> KeyValues("Run", {"seconds": 4.2, "config": {"lr": 0.003, "tau": 1.0}}).blocks()
    [('', [('seconds', '4.2')]), ('config', [('lr', '0.003'), ('tau', '1')])]
    """

    title: str
    values: Mapping[str, Any]
    _: KW_ONLY
    caption: str = ""
    kind: ClassVar[str] = "keyvalues"

    def blocks(self) -> list[tuple[str, list[tuple[str, str]]]]:
        """(heading, rows) for each block, the loose values first."""
        loose = [(k, words(v)) for k, v in self.values.items() if not isinstance(v, Mapping)]
        nested = [
            (str(heading), [(str(k), words(v)) for k, v in inner.items()])
            for heading, inner in self.values.items()
            if isinstance(inner, Mapping)
        ]
        return ([("", loose)] if loose else []) + nested

    def payload(self) -> dict[str, Any]:
        rows = [[heading, key, value] for heading, rows in self.blocks() for key, value in rows]
        return {"columns": ["part", "name", "value"], "rows": rows}
