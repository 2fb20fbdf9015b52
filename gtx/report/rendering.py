"""A page as one file: it holds its pictures and its style, and loads nothing."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from gtx.files import write_text
from gtx.report.context import RunReport
from gtx.report.gallery import Gallery
from gtx.report.words import PARTS, count, flat, in_unit, number, score, signed


def render(path: str | os.PathLike[str], template: str, report: RunReport, gallery: Gallery, **more: Any) -> list[str]:
    """Write a page: no script, no link that it needs, light or dark.

    Args:
        path: the file; it appears whole or not at all.
        template: extends `base.html`.
        report: what it says.
        gallery: that has drawn the pictures.
        more: what else the template asks for.

    Returns:
        The gallery's notes on what could not be drawn.
    """
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"number": number, "score": score, "signed": signed, "in_unit": in_unit, "count": count}
    html = environment.get_template(template).render(
        report=report,
        data=report.data,
        parts=PARTS,
        judged=PARTS[report.judged],
        missing=gallery.notes(),
        settings=list(flat(report.settings)),
        **more,
    )
    path = Path(path)
    write_text(path, html)
    return [f"{path.name}: {note}" for note in gallery.notes()]
