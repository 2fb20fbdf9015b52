"""How the cells of targets are read is said before training, by every command that reads a table."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import gtx
from gtx.base.errors import InputError
from gtx.cli import main
from gtx.tasks import BinaryClassification, Regression
from gtx.training_data import DataSettings, load_training_table
from gtx.workflow.outputs import data_lines
from tests.tables import TINY_TRAIN, molecules, read, write

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


@pytest.mark.slow
def test_a_benchmark_says_it_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = table(tmp_path / "t.csv", [-1, 1] * 30)
    words = [
        "benchmark",
        str(file),
        "--target-columns=y",
        "--test-folds=2",
        f"--out={tmp_path / 'b'}",
        "--model=kernel",
    ]
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


# --- Relations in a column of their own, as in tables of ChEMBL.

RELATIONS = ["'='", "'>'", "'<'", "=", "", "'~'", "'>='", "<=", "'>>'", "'='"]
HEADER = ["Smiles", "Standard Relation", "Standard Value"]


def chembl(path: Path, relations: list[str] = RELATIONS) -> Path:
    frame = molecules(60)
    cells = zip(frame.smiles, relations * 6, frame.gap.round(2), strict=False)
    return write(path, [list(row) for row in cells], HEADER)


def test_a_column_of_relations_makes_bounds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, run = chembl(tmp_path / "t.csv"), tmp_path / "run"
    words = ["--target-columns=Standard Value", "--relation-column=Standard Relation"]
    assert main(["train", str(file), *words, f"--out={run}", "--workers=0", *TINY_TRAIN]) == 0
    assert "beside values" not in capsys.readouterr().err
    task = gtx.load(run / "model.gtx").task
    assert task.relation_column == "Standard Relation" and task.censored
    assert [{name: row[name] for name in HEADER} for row in read(run / "predictions.csv")] == read(file)
    data = DataSettings(str(file), ("Standard Value",), relation_column="Standard Relation", workers=0)
    store, gap = load_training_table(data).store, molecules(60).gap.round(2).to_numpy()
    kind = np.array([RELATIONS[i % 10].strip("'")[:1] for i in range(60)])
    for values, signs in ((store.y[:, 0], "=~"), (store.bounds[:, 0], ">"), (store.bounds[:, 1], "<")):
        there = ~np.isnan(values.numpy())
        np.testing.assert_array_equal(there, [(sign in signs if sign else signs == "=~") for sign in kind])
        np.testing.assert_array_equal(values.numpy()[there], gap[there])
    assert main(["predict", str(run / "model.gtx"), str(file), f"--out={tmp_path / 'p.csv'}"]) == 0
    assert "bounds 30, bounds_kept 0." in capsys.readouterr().err
    kept = gtx.load(run / "model.gtx").header.training.values["Standard Value"]
    assert any(cell.startswith(">=") for cell in kept) and any(cell[0].isdigit() for cell in kept)
    bare = write(
        tmp_path / "b.csv", [[row["Smiles"], row["Standard Value"]] for row in read(file)], [HEADER[0], HEADER[2]]
    )
    assert main(["predict", str(run / "model.gtx"), str(bare), f"--out={tmp_path / 'q.csv'}"]) == 0
    assert (
        "there is no column 'Standard Relation' with relations, and all values are read as" in capsys.readouterr().err
    )


def test_relations_that_are_not_read_are_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = chembl(tmp_path / "t.csv")
    lines = data_lines(load_training_table(DataSettings(str(file), ("Standard Value",), workers=0)))
    hint = (
        "column 'Standard Relation' has relations of bounds (12 '>', 6 '<', 6 '>=', 6 '<=') beside values that are read"
    )
    (said,) = (line for line in lines if "relations of bounds" in line)
    assert said.startswith(f"warning: {hint}") and "--relation-column learns from bounds" in said
    exact = chembl(tmp_path / "e.csv", ["'='", "'~'"] * 5)
    exact = DataSettings(str(exact), ("Standard Value",), workers=0)
    assert not any("relations of bounds" in line for line in data_lines(load_training_table(exact)))
    golden = str(Path(__file__).parents[1] / "prediction" / "golden" / "mix.gtx")
    rows = [[row["Smiles"], row["Standard Relation"], row["Standard Value"]] for row in read(file)]
    scored = write(tmp_path / "s.csv", rows, ["smiles", "rel", "solvation_water"])
    assert main(["predict", golden, str(scored), f"--out={tmp_path / 'p.csv'}"]) == 0
    assert "column 'rel' has relations of bounds (12 '>'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"target_columns": ("gap", "dipole")},
            "--relation-column: expected one target, whose relations these are",
        ),
        ({"task": BinaryClassification("gap")}, "--relation-column: values of the task classification have no bounds"),
        ({"relation_column": "gap"}, "'gap' is a target; it cannot have the relations too"),
        ({"relation_column": "nothing"}, "there is no column 'nothing'"),
    ],
)
def test_what_relations_cannot_be_read_is_refused(settings: dict, message: str, tmp_path: Path) -> None:
    file = write(
        tmp_path / "t.csv", [["C", ">", 1, 2], ["CC", "=", 0, 2], ["CCC", "", 2, 3]], ["smiles", "r", "gap", "dipole"]
    )
    given = {"target_columns": ("gap",), "relation_column": "r", "workers": 0} | settings
    if "task" in settings:
        del given["target_columns"]
    with pytest.raises(InputError, match=message):
        load_training_table(DataSettings(str(file), **given))


def test_a_relation_that_is_none_is_an_error_of_its_row(tmp_path: Path) -> None:
    rows = [["C" * n, "=", n] for n in range(1, 8)]
    rows[2][1:], rows[4][1:], rows[5][1:] = ["about", 3], ["<", ">5"], [">", ">6"]
    file = write(tmp_path / "t.csv", rows, ["smiles", "r", "y"])
    data = load_training_table(DataSettings(str(file), ("y",), relation_column="r", workers=0))
    errors = data.files[0].row_log.errors
    assert list(errors) == [3, 5] and 'value "about3"' in errors[3] and "=, ~, >, >=, <, <= or blank" in errors[5]
    assert data.store.bounds[3, 0] == 6
