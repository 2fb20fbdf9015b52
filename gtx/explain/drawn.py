"""What can be drawn as one molecule and told in lines of text."""

from __future__ import annotations

from abc import ABC, abstractmethod
from html import escape
from pathlib import Path

from gtx.explain.explanation import check_name
from gtx.files import write_text


class Drawn(ABC):
    """A finding about one molecule."""

    @abstractmethod
    def text(self) -> str:
        """What was found, in lines of text."""

    @abstractmethod
    def svg(self) -> str:
        """The molecule with what was found."""

    def _repr_svg_(self) -> str:
        return self.svg()

    def save(self, path: str | Path) -> None:
        """Write the picture, or for `.html` a page with it and the text."""
        check_name(path)
        page = f"<!doctype html><meta charset=utf-8>{self.svg()}<pre>{escape(self.text())}</pre>\n"
        write_text(Path(path), page if Path(path).suffix == ".html" else self.svg() + "\n")
