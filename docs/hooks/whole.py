"""Words of code in a table, such as `--some-option`, are not broken at their hyphens."""

from __future__ import annotations

import re

from mkdocs.structure.pages import Page

CELL = re.compile(r"<td.*?</td>", re.DOTALL)
CODE = re.compile(r"(?<=<code>).*?(?=</code>)", re.DOTALL)
WORD = re.compile(r"[^\s<>]*-[^\s<>]*")
LONGEST = 32
"""Code of up to so many characters is not broken at its spaces either."""


def on_page_content(content: str, page: Page, **kwargs: object) -> str:
    """Mark code in the cells of tables by the class `whole`."""
    return CELL.sub(lambda cell: CODE.sub(_marked, cell[0]), content)


def _marked(code: re.Match[str]) -> str:
    if "<" in code[0]:
        return code[0]
    if len(code[0]) <= LONGEST:
        return f'<span class="whole">{code[0]}</span>'
    return WORD.sub(r'<span class="whole">\g<0></span>', code[0])
