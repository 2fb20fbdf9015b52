"""Tests of `gtx.cli.demo`."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

import pandas as pd
import pytest

from gtx.cli import main


@pytest.mark.slow
def test_a_first_model_and_what_to_do_with_it(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "first"
    assert main(["demo", "--epochs=1", f"--out={out}"]) == 0
    screen, notes = capfd.readouterr()
    assert notes.startswith("gtx demo: about")  # before anything slow
    opened, typed = screen.split("\nopen ")[1].split("\ntype ")
    files = [line.split()[0] for line in opened.splitlines() if line]
    assert all(os.path.exists(file) for file in files) and len(files) == 2
    table = pd.read_csv(files[1])
    assert len(table) == 24 and table.dG_water_pred.notna().sum() == 23 and table.error.notna().sum() == 1
    commands = [shlex.split(re.split(r"\s{3,}", line.strip())[0]) for line in typed.splitlines() if line]
    assert [words[1] for words in commands] == ["predict", "explain", "serve", "train", "train"]
    assert main(commands[0][1:]) == 0 and "CC(=O)Oc1ccccc1C(=O)O" in capfd.readouterr().out
