"""Words of code in a line, such as `--some-option`, are not broken at their hyphens."""

from __future__ import annotations

import re

from mkdocs.structure.pages import Page

CODE = re.compile(r"(?<!<pre>)(?<!<pre><span></span>)<code>([^<]*)</code>")
WORD = re.compile(r"[^\s]*-[^\s]*")
CELL = re.compile(r"<t[dh].*?</t[dh]>", re.DOTALL)
LONGEST = 32
"""Longest code that is not broken at its spaces either, in the cells of tables."""


def on_page_content(content: str, page: Page, **kwargs: object) -> str:
    """Mark words of code, and short code in the cells of tables, by the class `whole`."""
    return CODE.sub(_words, CELL.sub(lambda cell: CODE.sub(_short, cell[0]), content))


def _short(code: re.Match[str]) -> str:
    return f'<code class="whole">{code[1]}</code>' if len(code[1]) <= LONGEST else code[0]


def _words(code: re.Match[str]) -> str:
    words = WORD.sub(
        lambda word: f'<span class="whole">{word[0]}</span>' if len(word[0]) <= LONGEST else word[0], code[1]
    )
    return f"<code>{words}</code>"
