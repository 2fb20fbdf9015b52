"""What the README says can be done, can be done."""

import re
import shlex
import shutil
from pathlib import Path

import pandas as pd
import pytest
import torch
from torch_geometric.data import Data

import gtx
from gtx.cli import load_command
from tests.tables import GOLDEN, unwrapped, write_shown

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
COMMANDS = {
    line.partition(" # ")[0].strip()
    for page in (*PAGES, ROOT / "examples" / "README.md", *ROOT.glob("docs/*.md"))
    for line in unwrapped(page.read_text()).splitlines()
    if line.startswith("    gtx ") and not line.startswith("    gtx --")
}


@pytest.mark.parametrize("page", [*PAGES, *sorted(ROOT.glob("docs/*.md"))], ids=lambda page: page.stem)
def test_links_lead_to_files(page: Path) -> None:
    prose = re.sub(r"`[^`\n]*`", "", page.read_text())  # a SMILES may look like a link
    links = re.findall(r"\]\((?!https?:)([^)#]+)", prose)
    assert not [link for link in links if not (page.parent / link).exists()]


def test_the_version_is_the_same_everywhere() -> None:
    assert f"\nversion: {gtx.__version__}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"## [{gtx.__version__}]" in (ROOT / "CHANGELOG.md").read_text()


@pytest.mark.parametrize("line", sorted(COMMANDS))
def test_every_command_has_these_options(line: str, tmp_path, monkeypatch) -> None:
    if "--config" in line:
        write_shown((ROOT / "docs" / "training-options.md").read_text(), tmp_path)
        monkeypatch.chdir(tmp_path)
    _, command, *words = shlex.split(line)
    load_command(command).parse(words)


def test_the_python_runs_from_top_to_bottom(tmp_path, monkeypatch) -> None:
    """On fewer molecules, for one epoch, and with a small model in place of the one that the commands train."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run").mkdir()
    shutil.copy(GOLDEN / "regression.gtx", "run/model.gtx")
    table = pd.read_csv(ROOT / "examples" / "solvation.csv").head(60)
    names: dict = {"smiles": table.smiles, "y": table.dG_water}  # two molecules, of three atoms and of two:
    names |= {"x": torch.randn(5, 64), "data": Data(batch=torch.tensor([0, 0, 0, 1, 1]))}
    names |= {"edge_index": torch.tensor([[0, 1, 3], [1, 2, 4]]), "edge_attr": torch.randn(3, 8)}
    names["pair_attr"] = torch.randn(13, 8)
    blocks = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert len(blocks) == 2
    for block in blocks:
        exec(block.replace("Regressor()", "Regressor(epochs=1)"), names)
    assert len(README.split()) <= 700
