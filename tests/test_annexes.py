"""Annexes can be deleted: nothing of the core imports or names them, and what they add is gone with them."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import gtx
from gtx.base import additions
from gtx.cli import COMMANDS, main
from tests.tables import GOLDEN

ROOT = Path(__file__).parents[1]
ADDED = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]
ANNEXES = sorted({value.split(":")[0].split(".")[1] for group in ADDED.values() for value in group.values()})
FORKS = """
import importlib, os, sys

for module in "torch torch_geometric pytorch_lightning torchmetrics rdkit.Chem pandas sklearn.ensemble".split():
    importlib.import_module(module)
for folder in sys.argv[1:]:
    if not os.fork():
        os.chdir(folder)
        sys.path.insert(0, folder)
        said = os.open("said", os.O_WRONLY | os.O_CREAT)
        os.dup2(said, 1)
        os.dup2(said, 2)
        exec(open("script.py").read())
        sys.exit()
    assert os.wait()[1] == 0, open(f"{folder}/said").read()
"""
"""One process, which imports the large libraries once, and a fork of it for each folder."""
TRAIN = """
small = "--model-arguments channels=8 layers=1 heads=2 --epochs 1 --threads 1 --accelerator cpu".split()
small += ["--no-baselines", "--no-report"]
assert main(["train", "table.csv", "--target-columns", "y", "--out", "run", *small]) == 0
assert main(["explain", "run/model.gtx", "CCO", "--out", "figure.svg", "--draws", "2"]) == 0
"""
CORE = """
import io
from contextlib import redirect_stdout, suppress
from pathlib import Path

os.environ["GTX_FAST"] = SWITCH
import gtx
from gtx.cli import main

assert Path(gtx.__file__).is_relative_to(Path.cwd())

def printed(*words):
    with redirect_stdout(io.StringIO()) as out, suppress(SystemExit):
        main(list(words))
    return out.getvalue()

listed = printed()
assert "explain" in listed and not any(f" {command} " in listed for command in GONE)
assert all(f" {command} " in listed for command in LEFT)
assert all(main([command, "run/model.gtx"]) == 2 for command in GONE)
assert ("sequence" in printed("train", "--help", "all")) == SEQUENCE
assert main(["predict", MODEL, "CCO"]) == 0
assert (main(["predict", SEQUENCE_MODEL, "CCO"]) == 0) == SEQUENCE
"""


def install(folder: Path, name: str, added: dict[str, dict[str, str]]) -> None:
    """Write what an installation notes of a package beside the package, which has these entry points."""
    notes = folder / f"{name.replace('-', '_')}-0.1.0.dist-info"
    notes.mkdir()
    (notes / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.1.0\n")
    lines = [f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in entries.items()) for group, entries in added.items()]
    (notes / "entry_points.txt").write_text("\n".join(lines))


def prepare(folder: Path, deleted: list[str]) -> list[str]:
    """Make a folder of gtx without some annexes, and a script; return the commands that are gone."""
    (folder / "gtx").mkdir(parents=True)
    for path in (ROOT / "gtx").iterdir():
        if path.name not in deleted:
            (folder / "gtx" / path.name).symlink_to(path)
    install(folder, "gtx", ADDED)
    rows = [f"{'C' * (1 + i % 7)}{'ONF'[i % 3]},{i % 7 + i % 3}" for i in range(40)]
    (folder / "table.csv").write_text("\n".join(["smiles,y", *rows]))
    gone = [name for name, module in ADDED["gtx.commands"].items() if module.split(".")[1] in deleted]
    values = {
        "GONE": gone,
        "LEFT": sorted(set(ADDED["gtx.commands"]) - set(gone)),
        "SEQUENCE": "sequence" not in deleted,
        "SEQUENCE_MODEL": str(GOLDEN / "sequence.gtx"),
        "MODEL": str(GOLDEN / "mix.gtx"),
        "SWITCH": "1" if "fast" in deleted else "0",
    }
    lines = [f"{name} = {value!r}\n" for name, value in values.items()]
    (folder / "script.py").write_text("".join([*lines, CORE, TRAIN if deleted == ANNEXES else ""]))
    return gone


@pytest.mark.slow
def test_without_an_annex_the_others_work(tmp_path) -> None:
    """Every second one, the others, and all: then a model is trained too."""
    folders = {tmp_path / "some": ANNEXES[::2], tmp_path / "others": ANNEXES[1::2], tmp_path / "all": ANNEXES}
    gone = {folder: prepare(folder, deleted) for folder, deleted in folders.items()}
    env = os.environ | {"NUMBA_DISABLE_JIT": "1", "GTX_COMPILED": "0"}  # compile nothing
    words = [sys.executable, "-c", FORKS, *folders]
    done = subprocess.run(words, cwd=tmp_path, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    for folder, deleted in folders.items():
        said = (folder / "said").read_text()
        assert all(f"there is no command '{command}'" in said for command in gone[folder])
        assert "Traceback" not in said
        assert ("task.name: expected one of" in said) == ("sequence" in deleted), folder


def test_the_installed_gtx_has_the_entry_points_of_its_project() -> None:
    """If this fails, install again: pip install -e ."""
    for group, entries in ADDED.items():
        assert set(entries) <= set(additions(group.removeprefix("gtx.")))


def test_an_annex_that_lacks_a_package_says_which(monkeypatch, tmp_path) -> None:
    (tmp_path / "broken_annex.py").write_text("import package_that_nobody_has")
    install(tmp_path, "broken-annex", {"gtx.commands": {"broken": "broken_annex"}})
    monkeypatch.syspath_prepend(tmp_path)
    additions.cache_clear()
    try:
        with pytest.raises(gtx.InputError, match="broken_annex, an annex of gtx, needs package_that_nobody_has"):
            additions("commands")
    finally:
        additions.cache_clear()


def test_the_command_of_an_annex_is_one_of_gtx(capsys) -> None:
    commands = additions("commands")
    assert not set(commands) & set(COMMANDS)
    assert main(["--help"]) == 0
    printed = capsys.readouterr().out
    assert all(module.ABOUT in printed for module in commands.values())


def test_nobody_names_another_annex() -> None:
    for file in sorted((ROOT / "gtx").rglob("*.py")):
        code = re.sub(r'"{3}.*?"{3}|#.*', "", file.read_text(), flags=re.DOTALL)
        named = set(re.findall(rf"\bgtx\.({'|'.join(ANNEXES)})\b", code))
        assert named <= {file.relative_to(ROOT / "gtx").parts[0]}, file
