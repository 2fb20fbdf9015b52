"""The code in the pages of docs runs, from top to bottom of each page."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from pathlib import Path

import pandas as pd
import pytest
from rdkit import Chem

from gtx.cli import command_module, main, train
from gtx.cli.parser import Parser
from gtx.dataset import load_dataset
from tests.tables import unwrapped, write_shown

ROOT = Path(__file__).parents[1]
PAGES = [
    *sorted((ROOT / "docs").glob("your-own-*.md")),
    *(ROOT / "docs" / f"coming-from-{what}.md" for what in ("pyg", "scikit-learn")),
    *(ROOT / "docs" / f"start-{who}.md" for who in ("lightning", "pyg", "sklearn")),
    ROOT / "docs" / "attentions.md",
    *(
        ROOT / "docs" / f"{name}.md"
        for name in (
            "atoms-and-bonds",
            "batches",
            "components",
            "conformers",
            "domain",
            "explaining",
            "features",
            "foundation",
            "index",
            "molecules-in-space",
            "rationales",
            "splits",
            "tuning",
            "with-a-forest",
        )
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    code = "\n".join(blocks)
    assert code
    exec(compile(code, str(page), "exec", dont_inherit=True), {"__name__": "__main__"})
    write_shown(page.read_text(), tmp_path)
    read: set[str] = set()
    for line in re.findall("(?m)^    gtx train (.*)$", unwrapped(page.read_text())):
        run_up_to_the_first_epoch("train", line, read)
    if pytest.stem == "coming-from-chemprop":
        rows = [row for row in pytest.read_text().splitlines() if row.startswith("|")]
        commands = [command for row in rows for command in re.findall(r"`gtx (\w+) ([^`]+)`", row)]
        assert len(commands) > 50
        Path("run").mkdir()
        shutil.copy(ROOT / "tests" / "prediction" / "golden" / "regression.gtx", "run/model.gtx")
        for word, line in commands:
            if word in ("predict", "explain", "info"):
                assert main([word, *shlex.split(line)]) == 0
            else:
                run_up_to_the_first_epoch(word, line, read)


def run_up_to_the_first_epoch(word: str, line: str, read: set[str]) -> None:
    """Read the options of a command, and if it trains read the table and divide its rows, once for each of `read`."""
    module, parser = command_module(word), Parser(f"gtx {word}")
    module.add(parser)
    arguments = parser.parse(shlex.split(line))
    if word == "train":
        data, _ = train.settings_of(arguments)
        if repr(data) not in read:
            read.add(repr(data))
            assert all(map(len, load_dataset(data).split.values())), line


@pytest.mark.parametrize("page", sorted(ROOT.glob("docs/*.md")), ids=lambda page: page.stem)
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text())
    assert not [link for link in links if not (page.parent / link).exists()]


@pytest.mark.parametrize("page", sorted(ROOT.glob("docs/*.md")), ids=lambda page: page.stem)
def test_code_fits_the_width_of_a_page(page: Path) -> None:
    text = page.read_text()
    code = [line for block in re.findall(r"(?ms)^```.*?^```", text) for line in block.splitlines()]
    code += [line.removeprefix("    ") for line in text.splitlines() if line.startswith("    ")]
    assert not [line for line in code if len(line) > 88]


def test_the_page_of_the_architecture_names_files_that_there_are_and_every_room() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text()
    named = re.findall(r"\b((?:gtx|tests|docs|experiments)/[\w/.-]*\w)", page)
    assert not [name for name in named if not (ROOT / name).exists()]
    rooms = page[page.index("## Rooms") :]
    folders = [folder.name for folder in (ROOT / "gtx").iterdir() if (folder / "__init__.py").exists()]
    assert not [name for name in folders if not re.search(rf"\b{name}\b", rooms)]
