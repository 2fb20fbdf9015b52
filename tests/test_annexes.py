"""Annexes can be deleted: nothing of the core imports or names them, and what they add is gone with them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import gtx
from gtx.base.annexes import additions
from gtx.cli import COMMANDS, main

ROOT = Path(__file__).parents[1]
ADDED = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]
ANNEXES = sorted({value.split(":")[0].split(".")[1] for group in ADDED.values() for value in group.values()})
TRAIN = """
small = "--model-arguments channels=8 layers=1 heads=2 --epochs 1 --threads 1 --accelerator cpu --no-baselines".split()
assert main(["train", "table.csv", "--target-columns", "y", "--out", "run", *small]) == 0
assert main(["explain", "run/model.gtx", "CCO", "--out", "figure.svg", "--draws", "2"]) == 0
"""
CORE = """
import io
from contextlib import redirect_stdout, suppress
from pathlib import Path
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
MORE
assert main(["predict", "MODEL", "CCO"]) == 0
assert (main(["predict", "SEQUENCE_MODEL", "CCO"]) == 0) == SEQUENCE
"""


def install(folder: Path, name: str, added: dict[str, dict[str, str]]) -> None:
    """Write what an installation notes of a package beside the package, which has these entry points."""
    notes = folder / f"{name.replace('-', '_')}-0.1.0.dist-info"
    notes.mkdir()
    (notes / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.1.0\n")
    lines = [f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in entries.items()) for group, entries in added.items()]
    (notes / "entry_points.txt").write_text("\n".join(lines))


@pytest.mark.slow
@pytest.mark.parametrize("deleted", [[name] for name in ANNEXES] + [ANNEXES], ids=[*ANNEXES, "all"])
def test_without_an_annex_the_others_work(deleted: list[str], tmp_path: Path) -> None:
    """All annexes gone: a model is trained too."""
    shutil.copytree(ROOT / "gtx", tmp_path / "gtx", ignore=shutil.ignore_patterns("__pycache__", "sets"))
    install(tmp_path, "gtx", ADDED)
    for name in deleted:
        shutil.rmtree(tmp_path / "gtx" / name)
    rows = [f"{'C' * (1 + i % 7)}{'ONF'[i % 3]},{i % 7 + i % 3}" for i in range(40)]
    (tmp_path / "table.csv").write_text("\n".join(["smiles,y", *rows]))
    gone = [name for name, module in ADDED["gtx.commands"].items() if module.split(".")[1] in deleted]
    golden = ROOT / "tests" / "prediction" / "golden"
    values = {
        "GONE": repr(gone),
        "LEFT": repr(sorted(set(ADDED["gtx.commands"]) - set(gone))),
        "SEQUENCE_MODEL": str(golden / "sequence.gtx"),
        "SEQUENCE": repr("sequence" not in deleted),
        "MODEL": str(golden / "mix.gtx"),
        "MORE": TRAIN if deleted == ANNEXES else "",
    }
    script = CORE
    for word, value in values.items():
        script = script.replace(word, value)
    env = os.environ | {"PYTHONPATH": str(tmp_path), "NUMBA_DISABLE_JIT": "1", "GTX_COMPILED": "0"}  # compile nothing
    env |= {} if "fast" in deleted else {"GTX_FAST": "0"}
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    assert all(f"there is no command '{command}'" in done.stderr for command in gone)
    assert "Traceback" not in done.stderr
    assert ("task.name: expected one of" in done.stderr) == ("sequence" in deleted)


def test_the_installed_gtx_has_the_entry_points_of_its_project() -> None:
    """If this fails, install again: pip install -e ."""
    for group, entries in ADDED.items():
        assert set(entries) <= set(additions(group.removeprefix("gtx.")))


def test_an_annex_that_lacks_a_package_says_which(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "broken_annex.py").write_text("import package_that_nobody_has")
    install(tmp_path, "broken-annex", {"gtx.commands": {"broken": "broken_annex"}})
    monkeypatch.syspath_prepend(tmp_path)
    additions.cache_clear()
    try:
        with pytest.raises(gtx.InputError, match="broken_annex, an annex of gtx, needs package_that_nobody_has"):
            additions("commands")
    finally:
        additions.cache_clear()


def test_the_command_of_an_annex_is_one_of_gtx(capsys: pytest.CaptureFixture[str]) -> None:
    commands = additions("commands")
    assert not set(commands) & set(COMMANDS)
    assert main(["--help"]) == 0
    printed = capsys.readouterr().out
    assert all(module.ABOUT in printed for module in commands.values())


def test_the_core_names_no_annex() -> None:
    for file in sorted((ROOT / "gtx").rglob("*.py")):
        if file.relative_to(ROOT / "gtx").parts[0] not in ANNEXES:
            code = re.sub(r'"{3}.*?"{3}|#.*', "", file.read_text(), flags=re.DOTALL)
            assert not re.search(rf"\bgtx\.({'|'.join(ANNEXES)})\b", code), file
