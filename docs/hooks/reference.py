"""A page of reference for each package: the public names, by their docstrings."""

from __future__ import annotations

import ast
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

LATER_IN_SEARCH = "---\nsearch:\n  boost: 0.001\n---"
"""Front matter of a page that a search shows behind the guides."""
EARLIER_IN_SEARCH = {
    "uncertainty.md": 6,
    "network-and-kernel.md": 6,
    "install.md": 3,
    "from-csv.md": 6,
    "targets.md": 3,
}
"""Guides that a search shows before pages that use their words, such as "interval", "kernel" and "units"."""
PACKAGES = {
    "gtx": "Load a model, and scikit-learn's estimators",
    "gtx.prediction": "Predictors and model files",
    "gtx.tasks": "Tasks: what is learned",
    "gtx.training": "Training",
    "gtx.training_data": "A table read for training",
    "gtx.data": "Tables, batches and splits",
    "gtx.molecules": "Molecules",
    "gtx.models": "Models",
    "gtx.nn": "Layers",
    "gtx.attention": "Parts of attention",
    "gtx.encodings": "Encodings",
    "gtx.graph": "Graphs: who attends to whom",
    "gtx.kernel": "Kernel ridge regression",
    "gtx.explain": "Explanations",
    "gtx.workflow": "What the commands do",
}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add `reference/<package>.md` for every package, from the names that it exports.

    The setting `names_per_package` shortens the pages.
    """
    root = Path(config.config_file_path).parent
    for package, title in PACKAGES.items():
        names = exported(package, root)[: config.extra.get("names_per_package")]
        entries = [f"::: {package}.{name}" for name in names]
        text = "\n\n".join([LATER_IN_SEARCH, f"# {title}", f"`{package}`", *entries])
        files.append(File.generated(config, f"reference/{package}.md", content=text))
    return files


def on_page_markdown(markdown: str, page: Page, **_: object) -> None:
    """Set the weight of a guide in the search."""
    if page.file.src_uri in EARLIER_IN_SEARCH:
        page.meta["search"] = {"boost": EARLIER_IN_SEARCH[page.file.src_uri]}


def exported(package: str, root: Path) -> list[str]:
    """The public names of a package or module, from its `__all__`."""
    path = root / package.replace(".", "/")
    tree = ast.parse((path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).read_text())
    assigned = [node for node in tree.body if isinstance(node, ast.Assign)]
    (names,) = (node.value for node in assigned if getattr(node.targets[0], "id", "") == "__all__")
    return sorted(ast.literal_eval(names))
