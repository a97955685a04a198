"""From a Report to one HTML file that needs nothing else."""

from __future__ import annotations

import re
import unicodedata
from base64 import b64encode
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from expclr.report.palette import (
    CLASSES_DARK,
    CLASSES_LIGHT,
    RAMP_DARK,
    RAMP_LIGHT,
    css_variables,
    ramp,
)
from expclr.report.payload import embedded_json
from expclr.report.sections import Report, Section
from expclr.storage import write_text

if TYPE_CHECKING:
    from jinja2 import Environment

__all__ = ["render_report", "write_report"]

_SCRIPTS = (
    *("base", "axes", "marks", "lines", "histogram", "table", "waves"),
    *("colours", "detail", "pointer", "map", "start"),
)


def write_report(path: str | Path, report: Report) -> Path:
    """Write a report as one HTML file that opens anywhere, without a network.

    Parameters
    ----------
    path : str or Path
        Of the file; a file already there is replaced, whole or not at all.
    report : Report

    Returns
    -------
    Path
        The file.

    Examples
    --------
    >>> import tempfile
    >>> from expclr.report import Report, Text
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = write_report(folder + "/report.html", Report("A run", "It went well."))
    ...     "<h1>A run</h1>" in path.read_text(encoding="utf-8")
    True
    """
    write_text(path, render_report(report))
    return Path(path)


def render_report(report: Report) -> str:
    """The page of ``write_report`` as a string; the same report gives the same string."""
    from expclr import __version__

    script, style = _script(), _style()
    return (
        _environment()
        .get_template("page.html.j2")
        .render(
            report=report,
            sections=_named(report),
            script=script,
            style=style,
            script_hash=_hash(script),
            style_hash=_hash(style),
            version=__version__,
        )
    )


def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader("expclr.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["embedded_json"] = lambda value: Markup(embedded_json(value))
    environment.filters["unescaped"] = Markup
    return environment


def _named(report: Report) -> list[tuple[str, Section]]:
    """Each section with an id that is unique in the page."""
    seen: dict[str, int] = {}
    named = []
    for section in report.sections:
        slug = _slug(section.title)
        seen[slug] = seen.get(slug, 0) + 1
        named.append((slug if seen[slug] == 1 else f"{slug}-{seen[slug]}", section))
    return named


def _slug(title: str) -> str:
    ascii_title = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", ascii_title).strip("-") or "section"


def _script() -> str:
    parts = [_static(f"{name}.js") for name in _SCRIPTS]
    return '"use strict";\n(() => {\n' + "\n".join(parts) + "})();\n"


def _style() -> str:
    light = css_variables(CLASSES_LIGHT, ramp(RAMP_LIGHT))
    dark = css_variables(CLASSES_DARK, ramp(RAMP_DARK))
    # A printed page is white, whatever the screen was.
    colours = (
        f":root{{{light}}}\n@media screen and (prefers-color-scheme:dark){{:root{{{dark}}}}}\n"
    )
    return colours + _static("report.css")


def _static(name: str) -> str:
    return files("expclr.report").joinpath("static", name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return "sha256-" + b64encode(sha256(text.encode()).digest()).decode()
