"""How the cells of targets are read is said before training, by every command that reads a table."""

from __future__ import annotations

from pathlib import Path

import pytest

from gtx.cli import main
from gtx.errors import InputError
from gtx.tasks import Regression
from gtx.training_data import DataSettings, load_training_table
from gtx.workflow.outputs import data_lines
from tests.tables import molecules, write

KERNEL = ["--model=kernel", "--no-baselines", "--no-report", "--no-progress", "--workers=0"]


def table(path: Path, cells: list[object]) -> Path:
    return write(path, [list(row) for row in zip(molecules(60).smiles, cells, strict=False)], ["smiles", "y"])


def lines(path: Path, **settings: object) -> list[str]:
    return data_lines(load_training_table(DataSettings(str(path), ("y",), workers=0, **settings)))


def test_an_odd_cell_is_an_error_of_its_row_and_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cells = ["active", "inactive"] * 30
    cells[7] = "1"
    file = table(tmp_path / "t.csv", cells)
    assert main(["train", str(file), "--target-columns=y", f"--out={tmp_path / 'run'}", *KERNEL]) == 0
    said = capsys.readouterr().err.splitlines()
    assert any("60 rows: 59 read, 1 error (1 with a bad target)" in line for line in said)
    (odd,) = (line for line in said if "learned as two classes, 'inactive' and 'active'; 1 of 60 cells holds" in line)
    assert said.index(odd) < next(i for i, line in enumerate(said) if line.startswith("leakage"))
    assert "y: y_pred is the probability of the positive class, 'active'; the other class is 'inactive'" in said


def test_a_benchmark_says_it_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = table(tmp_path / "t.csv", [-1, 1] * 30)
    words = ["benchmark", str(file), "--target-columns=y", "--folds=2", f"--out={tmp_path / 'b'}", "--model=kernel"]
    assert main([*words, "--no-progress", "--workers=0"]) == 0
    said = capsys.readouterr().err
    assert "y: learned as two classes, as it holds two different numbers, -1 and 1; --task regression" in said
    assert "y_pred is the probability of the positive class, '1'" in said


def test_where_few_rows_can_be_used_the_reason_is_said(tmp_path: Path) -> None:
    cells: list[object] = ["n.d."] * 58
    file = table(tmp_path / "t.csv", [*cells, 1.5, 2.5])
    words = r"only 2 rows of .*t.csv can be used; 60 rows: 2 read, 58 errors \(58 with a bad target\): row 1.*'?n.d.'?"
    with pytest.raises(InputError, match=words):
        lines(file, task=Regression("y"))
