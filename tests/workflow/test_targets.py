"""How the cells of targets are read is said before training."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import gtx
from gtx.base.errors import InputError
from gtx.cli import main
from gtx.data import FeatureColumns
from gtx.molecules import Featuriser
from gtx.tasks import InferredTask, Regression
from gtx.training_data import DataSettings, count_weightless, left_out_lines, load_training_table, outlier_lines
from gtx.workflow.benchmark import folds_of
from gtx.workflow.outputs import constant_lines, data_lines
from tests.tables import GOLDEN, TINY_TRAIN, load, molecules, read, write

KERNEL = ["--model=kernel", "--no-baselines", "--no-report", "--no-progress", "--workers=0"]


def table(path: Path, cells: list[object]) -> Path:
    return write(path, [list(row) for row in zip(molecules(60).smiles, cells, strict=False)], ["smiles", "y"])


def lines(path: Path, **settings: object) -> list[str]:
    return data_lines(load_training_table(DataSettings(str(path), ("y",), workers=0, **settings)))


def test_an_odd_cell_is_an_error_of_its_row_and_said(tmp_path, capsys) -> None:
    cells = ["active", "inactive"] * 30
    cells[7] = "1"
    file = table(tmp_path / "t.csv", cells)
    assert main(["train", str(file), "--target-columns=y", f"--out={tmp_path / 'run'}", *KERNEL]) == 0
    said = capsys.readouterr().err.splitlines()
    assert any("60 rows: 59 read, 1 error (1 with a bad target)" in line for line in said)
    (odd,) = (line for line in said if "learned as two classes, 'inactive' and 'active'; 1 of 60 cells holds" in line)
    assert said.index(odd) < next(i for i, line in enumerate(said) if line.startswith("leakage"))
    assert "y: y_pred is the probability of the positive class, 'active'; the other class is 'inactive'" in said


def test_where_few_rows_can_be_used_the_reason_is_said(tmp_path) -> None:
    cells: list[object] = ["n.d."] * 58
    file = table(tmp_path / "t.csv", [*cells, 1.5, 2.5])
    words = r"only 2 rows of .*t.csv can be used; 60 rows: 2 read, 58 errors \(58 with a bad target\): row 1.*'?n.d.'?"
    with pytest.raises(InputError, match=words):
        lines(file, task=Regression("y"))


def test_of_several_reasons_the_commonest_is_quoted(tmp_path, capsys) -> None:
    rows = [["C1CC", 0.5], *([text, 0.5] for text in molecules(60).smiles)]
    words = [str(write(tmp_path / "t.csv", rows, ["smiles", "y"])), "--target-columns=y", "--task=atoms"]
    assert main(["train", *words, f"--out={tmp_path / 'run'}", *KERNEL]) == 2
    said = capsys.readouterr().err
    assert "60 with a bad target, 1 with an unusable molecule): row 2, column" in said and said.endswith("atoms\n")


# --- Relations in a column of their own, as in tables of ChEMBL.

RELATIONS = ["'='", "'>'", "'<'", "=", "", "'~'", "'>='", "<=", "'>>'", "'='"]
HEADER = ["Smiles", "Standard Relation", "Standard Value"]


def chembl(path: Path, relations: list[str] = RELATIONS) -> Path:
    frame = molecules(60)
    cells = zip(frame.smiles, relations * 6, frame.gap.round(2), strict=False)
    return write(path, [list(row) for row in cells], HEADER)


def test_a_column_of_relations_makes_bounds(tmp_path, capsys) -> None:
    file, run = chembl(tmp_path / "t.csv"), tmp_path / "run"
    words = ["--target-columns=Standard Value", "--relation-column=Standard Relation"]
    assert main(["train", str(file), *words, f"--out={run}", "--workers=0", *TINY_TRAIN]) == 0
    assert "beside values" not in capsys.readouterr().err
    task = gtx.load(run / "model.gtx").task
    assert task.relation_column == "Standard Relation" and task.censored
    assert [{name: row[name] for name in HEADER} for row in read(run / "predictions.csv")] == read(file)
    task = Regression("Standard Value", relation_column="Standard Relation")
    data = DataSettings(str(file), task=task, workers=0)
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
    rows = [[row["Smiles"], row["Standard Value"]] for row in read(file)]
    bare = str(write(tmp_path / "b.csv", rows, HEADER[::2]))
    assert main(["predict", str(run / "model.gtx"), bare, f"--out={tmp_path / 'q.csv'}"]) == 0
    said = "there is no column 'Standard Relation' with relations, and all values are read as"
    assert said in capsys.readouterr().err


def test_relations_that_are_not_read_are_said(tmp_path, capsys) -> None:
    file = chembl(tmp_path / "t.csv")
    lines = data_lines(load_training_table(DataSettings(str(file), ("Standard Value",), workers=0)))
    hint = "warning: column 'Standard Relation' has relations of bounds (12 '>', 6 '<', 6 '>=', 6 '<=') beside values"
    (said,) = (line for line in lines if "relations of bounds" in line)
    assert said.startswith(f"{hint} that are read") and "--relation-column learns from bounds" in said
    exact = chembl(tmp_path / "e.csv", ["'='", "'~'"] * 5)
    exact = DataSettings(str(exact), ("Standard Value",), workers=0)
    assert not any("relations of bounds" in line for line in data_lines(load_training_table(exact)))
    rows = [[row["Smiles"], row["Standard Relation"], row["Standard Value"]] for row in read(file)]
    scored = write(tmp_path / "s.csv", rows, ["smiles", "rel", "solvation_water"])
    assert main(["predict", str(GOLDEN / "mix.gtx"), str(scored), f"--out={tmp_path / 'p.csv'}"]) == 0
    assert "column 'rel' has relations of bounds (12 '>'" in capsys.readouterr().err


def test_a_relation_that_is_none_is_an_error_of_its_row(tmp_path) -> None:
    rows = [["C" * n, "=", n] for n in range(1, 12)]
    rows[2][1:], rows[4][1:], rows[5][1:] = ["about", 3], ["<", ">5"], [">", ">6"]
    rows[7][1:], rows[8][1:], rows[9][1:], rows[10][1:] = ["-", 8], ["1", 9], [">", "NA"], ["about", ""]
    data = load(tmp_path / "t.csv", rows, ["smiles", "r", "y"], task=InferredTask("y", relation_column="r"))
    errors = data.files[0].row_log.errors
    assert list(errors) == [3, 5, 8, 9] and "=, ~, >, >=, <, <= or blank" in errors[5]
    assert 'value "about 3"' in errors[3] and 'value "- 8"' in errors[8] and 'value "1 9"' in errors[9]
    assert data.store.bounds[3, 0] == 6


# --- What is said of the data.


def test_a_column_of_molecules_that_was_found_by_its_cells_is_said_and_the_first_error(tmp_path) -> None:
    rows = molecules(20)[["smiles", "gap"]].to_numpy().tolist()
    rows[3][0], rows[5][1] = "C1CC", "high"
    for column, said in ("structure", True), ("SMILES", False):
        source = write(tmp_path / "data.csv", rows, [column, "gap"])
        lines = data_lines(load_training_table(DataSettings(str(source), ("gap",))))
        assert (f"{source}: the molecules are those of column 'structure'" in lines) is said
        assert f'{source}: the first error: row 4, column "{column}", value "C1CC"' in lines[1]


def test_rows_without_a_value_are_counted_and_rows_that_disagree_are_named(tmp_path) -> None:
    rows = [[s, i] for i, s in enumerate(molecules(40)["smiles"])]
    rows[5][1], rows[7][1], rows[9][1] = "", "NA", "#NV"
    rows += [[rows[0][0], 2.5], [rows[0][0], ""], [rows[1][0], 1]]
    dataset = load(tmp_path / "data.csv", rows, ["smiles", "y"], target_columns=("y",))
    lines = data_lines(dataset)
    assert "in none of the sets: 4 molecules without any target value" in lines
    named = "2 molecules fill 5 rows, 1 of them with conflicting labels: y is 0 in row 1, 2.5 in row 41"
    assert f"repeated: {named}" in lines and dataset.files[0].row_log.summary().endswith("2 with warnings")
    assert dataset.files[0].row_log.warnings == {
        1: ['row 1, column "y", value "0": row 41, of the same molecule, has 2.5'],
        41: ['row 41, column "y", value "2.5": row 1, of the same molecule, has 0'],
    }


def test_what_does_not_vary_in_training_is_told(tmp_path) -> None:
    rows = [[s, 4.5, f"{i % 2}", 1.7e9 + i, i] for i, s in enumerate(molecules(40)["smiles"])]
    header, features = ["smiles", "y", "flag", "time", "ph"], FeatureColumns(("time", "ph"))
    dataset = load(tmp_path / "data.csv", rows, header, target_columns=("y", "flag"), features=features)
    target, time = constant_lines(dataset, features)
    assert target == "warning: y is 4.5 in every training row with a value: nothing can be learned"
    assert "time is 1.7e+09 in the training rows, read as constant: of large" in time
    assert {target, time} <= set(data_lines(dataset, features))
    estimator = gtx.MoleculeRegressor(model="kernel", settings={"kernel_parts": ["substructures"]}, workers=0)
    with pytest.warns(UserWarning, match="y is 4.5 in every training row with a value"):
        estimator.fit([row[0] for row in rows], [row[1] for row in rows])


def test_bounds_are_counted_in_each_part(tmp_path) -> None:
    parts, smiles = ("train", "val", "test"), molecules(24).smiles
    rows = [[text, i if i % 4 else f">{i}", 2.5, parts[i % 3]] for i, text in enumerate(smiles)]
    task = Regression(("y", "same"), censored=True)
    dataset = load(tmp_path / "data.csv", rows, ["smiles", "y", "same", "part"], task=task, split_column="part")
    assert "values that are bounds: 2 of 16 train, 2 of 16 val, 2 of 16 test" in data_lines(dataset)
    told = "warning: same is 2.5 in every training row with a value: nothing can be learned"
    assert constant_lines(dataset, FeatureColumns()) == [told]


def test_values_far_from_the_others_are_told(tmp_path) -> None:
    y = np.random.default_rng(0).normal(5, 1, 40)
    for change, said in (({}, []), ({7: 5000.0, 9: -200.0}, ["2 values far from the others, half of which lie from "])):
        rows = [[s, change.get(i, y[i])] for i, s in enumerate(molecules(40)["smiles"])]
        dataset = load(tmp_path / "data.csv", rows, ["smiles", "y"], target_columns=("y",))
        lines = outlier_lines(dataset)
        assert len(lines) == len(said) and all(words in line for words, line in zip(said, lines, strict=True))
        assert all("; the farthest is 5000 in row 8: a typing error" in line for line in lines)
        assert set(lines) <= set(data_lines(dataset))


TIMES = [f"2024-05-{1 + i % 28}" for i in range(56)]


@pytest.mark.parametrize(
    ("settings", "cells", "reasons"),
    [
        (
            {"split_column": "part"},
            ["train"] * 40 + ["valdiation"] * 8 + ["val"] * 2 + ["test"] * 5 + [""] * 3,
            [
                (8, 41, "valdiation", "is none of train, val and test; did you mean 'validation'?"),
                (3, 56, "", "is blank"),
            ],
        ),
        (
            {"split": "group", "split_by": "part"},
            [f"lab {i % 9}" for i in range(57)] + [" "],
            [(1, 58, " ", "is blank")],
        ),
        (
            {"split": "time", "split_by": "part"},
            [*TIMES, "03/04/2024", ""],
            [(1, 57, "03/04/2024", "is not a number or a date such as 2024-05-17"), (1, 58, "", "is blank")],
        ),
    ],
    ids=["column", "group", "time"],
)
def test_rows_in_no_part_of_the_split_are_counted_with_the_reason(tmp_path, settings, cells, reasons) -> None:
    smiles = molecules(60)["smiles"].tolist()
    rows = [[text, i, cell, int(i > 0)] for i, (text, cell) in enumerate(zip(smiles, [*cells, "x", ""], strict=True))]
    rows[58][1], rows[59][0] = "", "C1CC"  # no value, no molecule: these are said elsewhere
    source = write(tmp_path / "data.csv", rows, ["smiles", "y", "part", "weight"])
    data = DataSettings(str(source), ("y",), workers=0, weight_column="weight", **settings)
    dataset = load_training_table(data)
    lines, told = data_lines(dataset), []
    for count, row, value, why in reasons:
        words = f"{count} of 60 rows {'is' if count == 1 else 'are'} in no part of the split; the first: row {row}"
        told.append(f'warning: {source}: {words}, column "part", value "{value}": {why}')
    assert [line for line in lines if "no part" in line] == told
    assert ("in none of the sets: 1 training molecule of weight 0" in lines) is (count_weightless(dataset) == 1)
    assert count_weightless(dataset) or not data.split_column
    (file,) = dataset.files
    left_out = sum(map(len, file.row_log.left_out.values())) + dataset.unlabelled + count_weightless(dataset)
    assert sum(dataset.counts.values()) + left_out + file.row_log.num_errors == 60
    if data.split == "group":
        dataset = load_training_table(replace(data, split="random", split_by=None))
        folds_of(dataset, data, 3, 1)
        assert left_out_lines(dataset) == told


def test_notes_call_a_reaction_a_reaction(tmp_path) -> None:
    chains = ["".join(f"[CH2:{k}]" for k in range(3, i)) for i in range(3, 43)]
    rows = [[f"{chain}[CH2:1][Br:2]>>{chain}[CH3:1].[BrH:2]", i] for i, chain in enumerate(chains)]
    rows += [[rows[0][0], 7], [rows[1][0], ""]]
    options = {"smiles_column": "rxn", "featuriser": Featuriser(reaction="reactants-difference")}
    dataset = load(tmp_path / "data.csv", rows, ["rxn", "y"], target_columns=("y",), **options)
    lines = data_lines(dataset)
    assert "in none of the sets: 1 reaction without any target value" in lines
    repeated = "repeated: 2 reactions fill 4 rows, 1 of them with conflicting labels"
    assert any(line.startswith(repeated) for line in lines)
    assert "each repeated reaction in one part" in dataset.split_summary
    assert dataset.files[0].row_log.warnings[1][-1].endswith("row 41, of the same reaction, has 7")
