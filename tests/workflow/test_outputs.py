"""What is said of the data."""

from __future__ import annotations

from pathlib import Path

from gtx.dataset import DataSettings, load
from gtx.workflow.outputs import data_lines
from tests.tables import molecules, write


def test_a_column_of_molecules_that_was_found_by_its_cells_is_said(tmp_path: Path) -> None:
    rows = molecules(20)[["smiles", "gap"]].to_numpy().tolist()
    for column, said in ("structure", True), ("SMILES", False):
        source = write(tmp_path / "data.csv", rows, [column, "gap"])
        lines = data_lines(load(DataSettings(str(source), ("gap",))))
        assert (f"{source}: the molecules are those of column 'structure'" in lines) is said
