"""Links that leave docs, such as `../README.md` or `../gtx/tasks/task.py`, lead to a page of that file.

In the repository, links lead from file to file. The site holds a page of every file outside docs that a page links to,
at `repository/`, so that no link needs a host of the repository.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from reference import LATER_IN_SEARCH
from shown import is_page, shown

LINK = re.compile(r"(?<=\]\()(?!https?:|data:|#)([^)#\s]+)")
START = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "CITATION.cff", "notebooks")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that others link to, and those that they link to."""
    root = Path(config.config_file_path).parent
    notebooks = sorted(path.relative_to(root).as_posix() for path in root.glob("notebooks/*.ipynb"))
    waiting = [*START, *notebooks]
    waiting += [link for file in files.documentation_pages() for link in _links(file.content_string, _home(file), root)]
    known = set(files.src_uris)
    while waiting:
        path = waiting.pop()
        uri = _uri(path, root)
        if uri in known or path.startswith("docs"):
            continue
        known.add(uri)
        if is_page(root / path):
            text = shown(root / path)
            files.append(File.generated(config, uri, content=f"{LATER_IN_SEARCH}\n\n{text}"))
            waiting += _links(text, path, root)
        else:
            files.append(File.generated(config, uri, abs_src_path=str(root / path)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Write links as those from page to page."""
    root, home = Path(config.config_file_path).parent, _home(page.file)
    folder = posixpath.dirname(page.file.src_uri)

    def moved(match: re.Match[str]) -> str:
        target = _target(match[1], home, root)
        return posixpath.relpath(_uri(target, root), folder or ".") if target else match[0]

    return LINK.sub(moved, markdown)


def _links(text: str, home: str, root: Path) -> Iterator[str]:
    return filter(None, (_target(link, home, root) for link in LINK.findall(text)))


def _target(link: str, home: str, root: Path) -> str | None:
    """The file of the repository that a link in the file `home` leads to; None where there is none."""
    path = posixpath.normpath(posixpath.join(posixpath.dirname(home), link))
    return path if not path.startswith("..") and (root / path).exists() else None


def _home(file: File) -> str:
    """The file of the repository that a page was made of."""
    inside = file.src_uri.removeprefix("repository/")
    if inside == file.src_uri:
        return f"docs/{inside}"
    return inside.removesuffix(".md") if file.generated_by and inside.endswith((".py.md", ".ipynb.md")) else inside


def _uri(path: str, root: Path) -> str:
    """Where in the site a file of the repository is."""
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    if (root / path).is_dir():
        return f"repository/{path}/README.md" if (root / path / "README.md").exists() else f"repository/{path}/index.md"
    return f"repository/{path}" + (".md" if is_page(root / path) and not path.endswith(".md") else "")
