"""What is said of the data."""

from __future__ import annotations

from pathlib import Path

from gtx.dataset import DataSettings, load
from gtx.workflow.outputs import data_lines
from tests.tables import molecules, write


def test_a_column_of_molecules_that_was_found_by_its_cells_is_said_and_the_first_error(tmp_path: Path) -> None:
    rows = molecules(20)[["smiles", "gap"]].to_numpy().tolist()
    rows[3][0], rows[5][1] = "C1CC", "high"
    for column, said in ("structure", True), ("SMILES", False):
        source = write(tmp_path / "data.csv", rows, [column, "gap"])
        lines = data_lines(load(DataSettings(str(source), ("gap",))))
        assert (f"{source}: the molecules are those of column 'structure'" in lines) is said
        assert f'{source}: the first error: row 4, column "{column}", value "C1CC"' in lines[1]


def test_it_is_said_how_near_test_molecules_are_and_what_follows_when_none_validate(tmp_path: Path) -> None:
    rows = [[s, i, "train" if i < 30 else "test"] for i, s in enumerate(molecules(40)["smiles"])]
    source = str(write(tmp_path / "data.csv", rows, ["smiles", "y", "part"]))
    leakage, warning = data_lines(load(DataSettings(source, ("y",), split_column="part", workers=0)))[-2:]
    said = (
        "leakage: no molecule stands in two parts; Tanimoto similarity of 10 test molecules to their nearest training"
    )
    assert leakage.startswith(said) and "median 0." in leakage
    assert warning.startswith("warning: no rows validate: the last epoch is kept, --patience stops nothing")
    assert not any("no rows validate" in line for line in data_lines(load(DataSettings(source, ("y",), workers=0))))
