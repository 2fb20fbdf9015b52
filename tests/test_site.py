"""The documentation site: built without a network, no link broken, every page within reach."""

import logging
import re
import socket
from pathlib import Path

import pytest
from mkdocs.commands.build import build
from mkdocs.config import load_config

from docs.hooks.reference import PACKAGES, exported
from gtx.base import additions
from gtx.cli import COMMANDS

ROOT = Path(__file__).parents[1]


def build_site(out: Path) -> None:
    """The site without its search index and with two names of each package in the reference, which halves the time."""
    config = load_config(str(ROOT / "mkdocs.yml"), site_dir=str(out))
    assert config.strict and set(config.validation.links.values()) == {logging.WARNING}  # broken links are errors
    config.extra["names_per_package"] = 2
    config.plugins["material/search"].config["enabled"] = False
    build(config)


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    def refuse(*_: object) -> None:
        raise AssertionError("the site is built without a network")

    out = tmp_path_factory.mktemp("site")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", refuse)
        patch.setenv("NO_MKDOCS_2_WARNING", "1")
        build_site(out)
    return out


@pytest.mark.slow
def test_pages_load_nothing_from_elsewhere(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 50
    for page in pages:
        text = page.read_text()
        loaded = re.findall(r'<(?:script|img|iframe)[^>]* src="([^"]+)|<link[^>]* href="([^"]+)', text)
        assert not [link for links in loaded for link in links if link.startswith(("http", "//"))], page


@pytest.mark.slow
def test_a_link_out_of_docs_leads_to_a_page_of_that_file(site: Path) -> None:
    text = (site / "your-own-task.html").read_text()
    link, *_ = re.findall(r'href="([^"]+gtx/tasks/numeric\.py\.html)"', text)
    assert "class NumericTask" in re.sub("<.*?>", "", (site / link).read_text())


@pytest.mark.slow
def test_notebooks_and_formulas_are_drawn(site: Path) -> None:
    text = (site / "repository" / "notebooks" / "1_attention_step_by_step.ipynb.html").read_text()
    assert text.count("data:image/png;base64,") == 7 and text.count("<math") > 10 and "$$" not in text


@pytest.mark.slow
def test_the_page_of_commands_and_the_reference_show_what_can_be_set(site: Path) -> None:
    for name in COMMANDS | additions("commands"):
        assert f'<h1 id="gtx-{name}">gtx {name}' in (site / "commands" / f"{name}.html").read_text()
    assert "--split-sizes" in (site / "commands" / "train.html").read_text()
    assert "random_state" in (site / "reference" / "gtx.html").read_text()  # an estimator's parameter


def test_every_page_of_docs_is_in_the_contents() -> None:
    contents = (ROOT / "mkdocs.yml").read_text()
    assert not [page.name for page in ROOT.glob("docs/*.md") if f" {page.name}\n" not in contents]
    named = set(re.findall(r"reference/(\S+)\.md", contents))
    rooms = {f"gtx.{path.parent.name}" for path in ROOT.glob("gtx/*/__init__.py")} | {"gtx.training_data"}
    assert named == set(PACKAGES) and named - {"gtx"} <= rooms


@pytest.mark.parametrize("package", PACKAGES)
def test_every_name_of_the_reference_is_public(package: str) -> None:
    names = exported(package, ROOT)
    module = pytest.importorskip(package)
    assert names and not [name for name in names if not hasattr(module, name)]
