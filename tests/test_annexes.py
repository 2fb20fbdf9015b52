"""Annexes can be deleted: nothing of the core imports them, and their commands are gone with them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import gtx
from gtx.cli import COMMANDS, annexes, main
from gtx.lazy import annex

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
COMMAND_OF = {"export": "export", "select": "select", "serve": "serve"}
ANNEXES = [*COMMAND_OF, "fast", "sequence"]
CORE = """
import io, sys
from contextlib import redirect_stdout
from pathlib import Path
import gtx
from gtx.cli import main

assert Path(gtx.__file__).is_relative_to(Path.cwd())
with redirect_stdout(io.StringIO()) as told:
    assert main([]) == 0
assert "explain" in told.getvalue() and not any(command in told.getvalue() for command in COMMANDS)
assert all(main([command]) == 2 for command in COMMANDS)
small = "--model-arguments channels=8 layers=1 heads=2 --epochs 1 --threads 1 --accelerator cpu --no-baselines".split()
assert main(["train", "table.csv", "--target-columns", "y", "--out", "run", *small]) == 0
assert main(["predict", "run/model.gtx", "CCO"]) == 0
assert main(["explain", "run/model.gtx", "CCO", "--out", "figure.svg", "--draws", "2"]) == 0
assert main(["train", "run", "--target-columns", "y", "--out", "other"]) == 2
with redirect_stdout(io.StringIO()) as told:
    try:
        main(["predict", "--help"])
    except SystemExit:
        assert "--neighbours" in told.getvalue()
        assert "--beams" not in told.getvalue()
with redirect_stdout(io.StringIO()) as told:
    try:
        main(["train", "--help", "all"])
    except SystemExit:
        pass
assert "--task" in told.getvalue() and "sequence" not in told.getvalue()
"""


def test_without_its_annexes_the_core_works(tmp_path: Path) -> None:
    left = shutil.ignore_patterns("__pycache__", "sets")
    shutil.copytree(ROOT / "gtx", tmp_path / "gtx", ignore=left)
    for name in ANNEXES:
        shutil.rmtree(tmp_path / "gtx" / name)
    rows = [f"{'C' * (1 + i % 7)}{'ONF'[i % 3]},{i % 7 + i % 3}" for i in range(40)]
    (tmp_path / "table.csv").write_text("\n".join(["smiles,y", *rows]))
    commands = list(COMMAND_OF.values())
    words = [sys.executable, "-c", CORE.replace("COMMANDS", repr(commands))]
    plain = {"NUMBA_DISABLE_JIT": "1", "GTX_COMPILED": "0"}  # nothing is compiled for this copy
    env = os.environ | plain | {"PYTHONPATH": str(tmp_path)}
    done = subprocess.run(words, cwd=tmp_path, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    assert all(f"there is no command '{command}'" in done.stderr for command in commands)
    assert "Traceback" not in done.stderr


def test_the_command_of_an_annex_is_one_of_gtx(capsys: pytest.CaptureFixture[str]) -> None:
    found = annexes()
    assert {Path(module.__file__).parent.name: name for name, module in found.items()} == COMMAND_OF
    assert not set(found) & set(COMMANDS)
    with pytest.raises(SystemExit):
        main(["--help"])
    told = capsys.readouterr().out
    assert all(module.ABOUT in told for module in found.values())


def test_an_annex_that_is_gone_is_none_until_it_is_needed() -> None:
    assert annex("select").__doc__ and annex("no_such_room") is None
    with pytest.raises(gtx.InputError, match="a table needs gtx/no_such_room"):
        annex("no_such_room", "a table")
