"""The base class of explanations that are drawn as one molecule and described in text."""

from __future__ import annotations

import re
import textwrap
from abc import ABC, abstractmethod
from html import escape
from pathlib import Path

from gtx.explain.explanation import check_name
from gtx.files import write_text

SIZE = (520, 400)
"""Width and height of a molecule, in pixels."""
LINE, LETTERS = 19, 66  # height of a line of the legend, and how much it holds


class Drawn(ABC):
    """A finding about one molecule."""

    @abstractmethod
    def text(self) -> str:
        """Describe the result in lines of text."""

    @abstractmethod
    def drawing(self) -> str:
        """The molecule with what was found, as an SVG element of the size `SIZE` or a little higher."""

    @abstractmethod
    def legend(self) -> list[str]:
        """Explain the drawing in lines of text."""

    def svg(self) -> str:
        """The molecule with what was found, and below it what the colours mean."""
        drawing = self.drawing()
        width, height = (float(re.search(rf'{side}="([\d.]+)', drawing)[1]) for side in ("width", "height"))
        lines = [part for line in self.legend() for part in textwrap.wrap(line, LETTERS)]
        words = "".join(
            f'<text x="{width / 2}" y="{height + LINE * (k + 1)}" text-anchor="middle" font-family="sans-serif" '
            f'font-size="13" fill="#222">{escape(line)}</text>'
            for k, line in enumerate(lines)
        )
        whole = height + LINE * (len(lines) + 1)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{whole:g}" viewBox="0 0 {width:g} '
            f'{whole:g}"><rect width="100%" height="100%" fill="#fff"/>{drawing}{words}</svg>'
        )

    def _repr_svg_(self) -> str:
        return self.svg()

    def save(self, path: str | Path) -> None:
        """Write the picture, or for `.html` a page with it and the text."""
        check_name(path)
        page = f"<!doctype html><meta charset=utf-8>{self.svg()}<pre>{escape(self.text())}</pre>\n"
        write_text(Path(path), page if Path(path).suffix == ".html" else self.svg() + "\n")
