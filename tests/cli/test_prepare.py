from __future__ import annotations

from pathlib import Path

import pytest

from gtx.cli import main

PREPARE = ["prepare", "data.csv", "--out", "store", "--workers", "0"]


def test_molecules_are_prepared_and_not_twice(data_csv: None, capsys: pytest.CaptureFixture) -> None:
    assert main(PREPARE) == 0 and main(PREPARE) == 0
    said = capsys.readouterr().err
    assert (
        "2 rows: 2 read, 0 errors\nfiles: 1; shards: 1, 1 of them from earlier runs; molecules: 2\nwritten to store"
        in said
    )
    assert main([*PREPARE, "--hydrogens"]) == 2
    assert (
        "gtx: store holds another store with other settings or data: featuriser.hydrogens (false there, true now)"
        in capsys.readouterr().err
    )


def test_a_set_without_molecules_is_no_success(data_csv: None, capsys: pytest.CaptureFixture) -> None:
    Path("data.csv").write_text("smiles\nC1CC\n")
    assert main(PREPARE) == 2
    assert "1 rows" not in (said := capsys.readouterr().err) and "1 row: 0 read, 1 error" in said
