"""What the pages and the README say can be done, can be done: their code runs, links lead to files, the site builds."""

import json
import logging
import re
import shlex
import shutil
import socket
from pathlib import Path

import pandas as pd
import pytest
import torch
from mkdocs.commands.build import build
from mkdocs.config import load_config
from rdkit import Chem
from torch_geometric.data import Data

import gtx
from docs.hooks.reference import PACKAGES, exported
from gtx.base import additions
from gtx.cli import COMMANDS, load_command, main
from gtx.cli.options import settings_from
from gtx.training_data import load_training_table
from tests.tables import GOLDEN, unwrapped, write_shown

ROOT = Path(__file__).parents[1]
ELSEWHERE = ("scale", "serving")
"""Pages whose examples run in `tests/prediction/test_frames.py` and `tests/export`."""
DOCS = sorted(ROOT.glob("docs/*.md"))
PAGES = [*(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")), *DOCS]
RUN = [page for page in DOCS if "```python" in page.read_text() and page.stem not in ELSEWHERE]
LINES = {
    line.partition(" # ")[0].strip()
    for page in (*PAGES, ROOT / "examples" / "README.md")
    for line in unwrapped(page.read_text()).splitlines()
    if line.startswith("    gtx ") and not line.startswith("    gtx --")
}


@pytest.mark.slow
@pytest.mark.parametrize("page", RUN, ids=lambda page: page.stem)
def test_a_page_runs(page: Path, tmp_path, monkeypatch) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    exec(compile("\n".join(blocks), str(page), "exec", dont_inherit=True), {"__name__": "__main__"})
    write_shown(page.read_text(), tmp_path)
    for line in re.findall("(?m)^    gtx train (.*)$", unwrapped(page.read_text())):
        run_up_to_the_first_epoch("train", line)


@pytest.mark.slow
def test_commands_that_predict_and_select_run(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    table = pd.read_csv(ROOT / "examples" / "solvation.csv")
    for name, rows in {"measured": table[:120], "library": table[120:240], "molecules": table[120:130]}.items():
        rows.to_csv(f"{name}.csv", index=False)
    words = ["--target-columns", "dG_water", "--epochs", "1", "--no-baselines", "--no-report", "--out", "run"]
    assert main(["train", "measured.csv", *words]) == 0
    commands = [
        shlex.split(line)
        for name in ("uncertainty", "serving", "selecting")
        for line in re.findall("(?m)^(?:    )?gtx ((?:predict|select|export) .*)$", unwrapped(read_page(name)))
    ]
    assert {word for word, *_ in commands} == {"predict", "select", "export"}
    for word, *options in commands:
        if word == "export":  # which takes minutes: tests/export
            run_up_to_the_first_epoch(word, shlex.join(options))
        else:
            assert main([word, *options]) == 0


def read_page(name: str) -> str:
    """The text of a page of docs."""
    return (ROOT / "docs" / f"{name}.md").read_text()


@pytest.mark.slow
@pytest.mark.usefixtures("forks")
def test_what_replaces_an_option_of_chemprop_runs(tmp_path, monkeypatch) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    write_data()
    Path("run").mkdir()
    shutil.copy(GOLDEN / "regression.gtx", "run/model.gtx")
    rows = [row.split(" | ") for row in read_page("from-chemprop").splitlines() if row.startswith("| ")]
    cells = [row[1] for row in rows if not row[1].startswith(("none", "not needed"))]
    commands = [found for cell in cells for found in re.findall(r"`gtx (\w+) ([^`]+)`", cell) if "." in found[1]]
    options = [words for cell in cells for words in re.findall(r"`(--[^`]+)`(?! of `gtx| \(the)", cell)]
    assert len(options) > 50
    for words in options:
        target = "" if "target-columns" in words or "class-columns" in words else "--target-columns y"
        workers = "" if "--workers" in words else "--workers 0"
        run_up_to_the_first_epoch("train", f"data.csv {target} --out run/ {workers} {words}")
    for word, line in commands:
        if word in ("predict", "explain", "info"):
            assert main([word, *shlex.split(line)]) == 0
        else:
            run_up_to_the_first_epoch(word, line)


def write_data() -> None:
    """The table `data.csv` of 40 molecules with a column for each kind of target and feature."""
    table = pd.read_csv("examples/solvation.csv").head(40)
    mols = [Chem.MolFromSmiles(smiles) for smiles in table.smiles]
    table["y"] = table.dG_water
    table["logS"] = table.dG_water / 2
    table["bounded"] = ["<-6" if y < -6 else y for y in table.y]
    table["active"] = (table.y < -4).astype(int)
    table["strength"] = pd.cut(table.y, [-100, -6, -3, 100], labels=["strong", "medium", "weak"])
    table["count"] = [mol.GetNumHeavyAtoms() for mol in mols]
    table["red"], table["blue"] = 0.25, 0.75
    table["charge"] = [json.dumps([0.1 * atom.GetDegree() for atom in mol.GetAtoms()]) for mol in mols]
    table["whole"] = [0.1 * sum(atom.GetDegree() for atom in mol.GetAtoms()) for mol in mols]
    table["order"] = [json.dumps([bond.GetBondTypeAsDouble() for bond in mol.GetBonds()]) for mol in mols]
    table["site"] = [json.dumps([int(atom.GetDegree() == 1) for atom in mol.GetAtoms()]) for mol in mols]
    table["kind"] = [json.dumps([str(bond.GetBondType()) for bond in mol.GetBonds()]) for mol in mols]
    table["solvent"] = ["O", "CO", "CC#N", "CCOCC", "CCCCCC"] * 8
    chains = ["".join(f"[CH2:{k}]" for k in range(4, 4 + row)) for row in range(40)]
    table["rxn"] = [f"[CH3:1]{chain}[Br:2].[Cl-:3]>>[CH3:1]{chain}[Cl:3].[Br-:2]" for chain in chains]
    table["temperature"] = [280.0 + row for row in range(40)]
    table["confidence"] = 1.0
    table["part"] = ["train"] * 30 + ["val"] * 5 + ["test"] * 5
    table.to_csv("data.csv", index=False)


def run_up_to_the_first_epoch(word: str, line: str) -> None:
    """Read the options of a command, and if it trains read the table and divide its rows."""
    arguments = load_command(word).parse(shlex.split(line))
    if word == "train":
        data, _ = settings_from(vars(arguments))
        assert all(map(len, load_training_table(data, cache=Path("cache")).split.values())), line


@pytest.mark.parametrize("page", DOCS, ids=lambda page: page.stem)
def test_code_fits_the_width_of_a_page(page: Path) -> None:
    text = page.read_text()
    code = [line for block in re.findall(r"(?ms)^```.*?^```", text) for line in block.splitlines()]
    code += [line.removeprefix("    ") for line in text.splitlines() if line.startswith("    ")]
    assert not [line for line in code if len(line) > 88]


def test_the_page_of_the_architecture_names_files_that_there_are() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text()
    named = re.findall(r"\b((?:gtx|tests|docs|experiments)/[\w/.-]*\w)", page)
    assert not [name for name in named if not (ROOT / name).exists()]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_to_files(page: Path) -> None:
    prose = re.sub(r"`[^`\n]*`", "", page.read_text())  # a SMILES may look like a link
    links = re.findall(r"\]\((?!https?:)([^)#]+)", prose)
    assert not [link for link in links if not (page.parent / link).exists()]


def test_the_version_is_the_same_everywhere() -> None:
    assert f"\nversion: {gtx.__version__}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"## [{gtx.__version__}]" in (ROOT / "CHANGELOG.md").read_text()


@pytest.mark.parametrize("line", sorted(LINES))
def test_every_command_has_these_options(line: str, tmp_path, monkeypatch) -> None:
    if "--config" in line:
        write_shown((ROOT / "docs" / "training-options.md").read_text(), tmp_path)
        monkeypatch.chdir(tmp_path)
    _, command, *words = shlex.split(line)
    load_command(command).parse(words)


def test_the_python_of_the_readme_runs_from_top_to_bottom(tmp_path, monkeypatch) -> None:
    """On fewer molecules, for one epoch, and with a small model in place of the one that the commands train."""
    readme = (ROOT / "README.md").read_text()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run").mkdir()
    shutil.copy(GOLDEN / "regression.gtx", "run/model.gtx")
    table = pd.read_csv(ROOT / "examples" / "solvation.csv").head(60)
    names: dict = {"smiles": table.smiles, "y": table.dG_water}  # two molecules, of three atoms and of two:
    names |= {"x": torch.randn(5, 64), "data": Data(batch=torch.tensor([0, 0, 0, 1, 1]))}
    names |= {"edge_index": torch.tensor([[0, 1, 3], [1, 2, 4]]), "edge_attr": torch.randn(3, 8)}
    names["pair_attr"] = torch.randn(13, 8)
    blocks = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)
    assert len(blocks) == 2
    for block in blocks:
        exec(block.replace("Regressor()", "Regressor(epochs=1)"), names)
    assert len(readme.split()) <= 700


# --- The site: built without a network, no link broken, every page within reach.


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """The site without its search index and with two names of each package in the reference, which halves the time."""

    def refuse(*_: object) -> None:
        raise AssertionError("the site is built without a network")

    out = tmp_path_factory.mktemp("site")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", refuse)
        patch.setenv("NO_MKDOCS_2_WARNING", "1")
        config = load_config(str(ROOT / "mkdocs.yml"), site_dir=str(out))
        assert config.strict and set(config.validation.links.values()) == {logging.WARNING}  # broken links are errors
        config.extra["names_per_package"] = 2
        config.plugins["material/search"].config["enabled"] = False
        build(config)
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
