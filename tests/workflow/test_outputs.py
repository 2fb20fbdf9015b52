"""What is said of the data."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gtx.training_data import DataSettings, load_training_table
from gtx.training_data.loading import left_out_lines, outlier_lines
from gtx.workflow.benchmark import folds_of
from gtx.workflow.outputs import data_lines
from tests.tables import molecules, write


def test_a_column_of_molecules_that_was_found_by_its_cells_is_said_and_the_first_error(tmp_path: Path) -> None:
    rows = molecules(20)[["smiles", "gap"]].to_numpy().tolist()
    rows[3][0], rows[5][1] = "C1CC", "high"
    for column, said in ("structure", True), ("SMILES", False):
        source = write(tmp_path / "data.csv", rows, [column, "gap"])
        lines = data_lines(load_training_table(DataSettings(str(source), ("gap",))))
        assert (f"{source}: the molecules are those of column 'structure'" in lines) is said
        assert f'{source}: the first error: row 4, column "{column}", value "C1CC"' in lines[1]


def test_rows_without_a_value_are_counted_and_rows_that_disagree_are_named(tmp_path: Path) -> None:
    rows = [[s, i] for i, s in enumerate(molecules(40)["smiles"])]
    rows[5][1], rows[7][1], rows[9][1] = "", "NA", "#NV"
    rows += [[rows[0][0], 2.5], [rows[0][0], ""], [rows[1][0], 1]]
    dataset = load_training_table(
        DataSettings(str(write(tmp_path / "data.csv", rows, ["smiles", "y"])), ("y",), workers=0)
    )
    lines = data_lines(dataset)
    assert "in none of the sets: 4 molecules without any target value" in lines
    named = "2 molecules fill 5 rows, 1 of them with conflicting labels: y is 0 in row 1, 2.5 in row 41"
    assert f"repeated: {named}" in lines and dataset.files[0].row_log.summary().endswith("2 with warnings")
    assert dataset.files[0].row_log.warnings == {
        1: ['row 1, column "y", value "0": row 41, of the same molecule, has 2.5'],
        41: ['row 41, column "y", value "2.5": row 1, of the same molecule, has 0'],
    }


def test_values_far_from_the_others_are_told(tmp_path: Path) -> None:
    y = np.random.default_rng(0).normal(5, 1, 40)
    for change, said in (({}, []), ({7: 5000.0, 9: -200.0}, ["2 values far from the others, half of which lie from "])):
        rows = [[s, change.get(i, y[i])] for i, s in enumerate(molecules(40)["smiles"])]
        dataset = load_training_table(
            DataSettings(str(write(tmp_path / "data.csv", rows, ["smiles", "y"])), ("y",), workers=0)
        )
        lines = outlier_lines(dataset)
        assert len(lines) == len(said) and all(words in line for words, line in zip(said, lines, strict=True))
        assert all("; the farthest is 5000 in row 8: a typing error" in line for line in lines)
        assert set(lines) <= set(data_lines(dataset))


@pytest.mark.parametrize(
    ("settings", "cells", "reasons"),
    [
        (
            {"split_column": "part"},
            ["train"] * 40 + ["valdiation"] * 8 + ["val"] * 2 + ["test"] * 5 + [""] * 3,
            [
                '8 of 60 rows are in no part of the split; the first: row 41, column "part", value "valdiation": '
                "is none of train, val and test; did you mean 'validation'?",
                '3 of 60 rows are in no part of the split; the first: row 56, column "part", value "": is blank',
            ],
        ),
        (
            {"split": "group", "split_by": "part"},
            [f"lab {i % 9}" for i in range(57)] + [" "],
            ['1 of 60 rows is in no part of the split; the first: row 58, column "part", value " ": is blank'],
        ),
        (
            {"split": "time", "split_by": "part"},
            [f"2024-05-{1 + i % 28}" for i in range(56)] + ["03/04/2024", ""],
            [
                '1 of 60 rows is in no part of the split; the first: row 57, column "part", value "03/04/2024": is not '
                "a number or a date such as 2024-05-17",
                '1 of 60 rows is in no part of the split; the first: row 58, column "part", value "": is blank',
            ],
        ),
    ],
    ids=["column", "group", "time"],
)
def test_rows_in_no_part_of_the_split_are_counted_with_the_reason(
    tmp_path: Path, settings: dict[str, str], cells: list[str], reasons: list[str]
) -> None:
    smiles = molecules(60)["smiles"].tolist()
    rows = [[text, i, cell, int(i > 0)] for i, (text, cell) in enumerate(zip(smiles, [*cells, "x", ""], strict=True))]
    rows[58][1], rows[59][0] = "", "C1CC"  # no value, no molecule: these are said elsewhere
    source = write(tmp_path / "data.csv", rows, ["smiles", "y", "part", "weight"])
    data = DataSettings(str(source), ("y",), workers=0, weight_column="weight", **settings)
    dataset = load_training_table(data)
    lines = data_lines(dataset)
    assert [line for line in lines if "no part" in line] == [f"warning: {source}: {reason}" for reason in reasons]
    assert ("in none of the sets: 1 training molecule of weight 0" in lines) is (dataset.weightless == 1)
    assert dataset.weightless or not data.split_column
    (file,) = dataset.files
    left_out = sum(map(len, file.row_log.left_out.values())) + dataset.unlabelled + dataset.weightless
    assert sum(dataset.counts.values()) + left_out + file.row_log.num_errors == 60
    if data.split == "group":
        dataset = load_training_table(replace(data, split="random", split_by=None))
        folds_of(dataset, data, 3, 1)
        assert left_out_lines(dataset) == [f"warning: {source}: {reason}" for reason in reasons]
