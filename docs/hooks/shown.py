"""How a file of the repository is shown as a page: Markdown as it is, a notebook with its outputs, code as code."""

from __future__ import annotations

import json
from pathlib import Path

LANGUAGES = {".py": "python", ".c": "c", ".toml": "toml", ".cff": "yaml", ".yaml": "yaml", ".yml": "yaml", "": "text"}
"""Suffixes of files that are shown as code; any other file, such as a picture, is copied as it is."""


def is_page(path: Path) -> bool:
    """Whether a file or folder becomes a page."""
    return path.is_dir() or path.suffix in {".md", ".ipynb", *LANGUAGES}


def shown(path: Path) -> str:
    """The Markdown of a page.

    Args:
        path: a file or folder for which `is_page` holds.
    """
    if path.is_dir():
        inside = sorted(p.name for p in path.iterdir() if not p.name.startswith(("_", ".")))
        return "\n".join([f"# {path.name}", "", *(f"* `{name}`" for name in inside)])
    text = path.read_text()
    if path.suffix == ".md":
        return text
    if path.suffix == ".ipynb":
        return "\n\n".join(_cell(cell) for cell in json.loads(text)["cells"])
    return f"# {path.name}\n\n" + _fenced(text, LANGUAGES[path.suffix])


def _cell(cell: dict) -> str:
    """A cell of a notebook, and what it printed and drew when it was stored; the tests run it."""
    source = "".join(cell["source"])
    if cell["cell_type"] != "code":
        return source
    return "\n\n".join([_fenced(source, "python"), *map(_output, cell["outputs"])])


def _output(output: dict) -> str:
    if output["output_type"] == "stream":
        return _fenced("".join(output["text"]), "text")
    data = {kind: "".join(content) for kind, content in output["data"].items()}
    if "image/png" in data:
        return f"![](data:image/png;base64,{''.join(data['image/png'].split())})"
    for kind in ("image/svg+xml", "text/html"):
        if kind in data:  # in one line, or Markdown would read blank lines and indents
            drawn = data[kind][data[kind].find("<svg") :] if kind == "image/svg+xml" else data[kind]
            return f'<div class="output">{" ".join(drawn.split())}</div>'
    return _fenced(data["text/plain"], "text")


def _fenced(text: str, language: str) -> str:
    return f"~~~~{language}\n{text.rstrip()}\n~~~~"
