"""Formulas in LaTeX become MathML, which browsers draw without a script."""

from __future__ import annotations

import html
import re

from latex2mathml.converter import convert
from mkdocs.structure.pages import Page

FORMULA = re.compile(r'<(?P<tag>span|div) class="arithmatex">\\[(\[](?P<latex>.*?)\\[)\]]</(?P=tag)>', re.DOTALL)


def on_page_content(content: str, page: Page, **kwargs: object) -> str:
    r"""Replace what the extension arithmatex has found: `$...$`, `$$...$$`, `\(...\)` and `\[...\]`."""
    return FORMULA.sub(_drawn, content)


def _drawn(match: re.Match[str]) -> str:
    latex = html.unescape(match["latex"])
    if match["tag"] == "span":
        return convert(latex, display="inline")
    return f'<div class="formula">{convert(latex, display="block")}</div>'
