"""The tables that a new user starts with."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from gtx.cli import main
from tests.tables import TINY_TRAIN, XTB9, read

ROOT = Path(__file__).parents[1]
TABLE, MOLECULES = ROOT / "examples" / "solvation.csv", ROOT / "examples" / "molecules.csv"


def test_the_values_are_those_of_xtb9_and_no_molecule_is_in_both_tables() -> None:
    table, xtb9 = pd.read_csv(TABLE), pd.read_parquet(XTB9).set_index("smiles")
    assert len(table) == 600 and table.smiles.is_unique and table.id.is_unique
    assert table.dG_water.tolist() == xtb9.solvation_water[table.smiles].tolist()
    assert not set(table.smiles) & set(pd.read_csv(MOLECULES).smiles)


@pytest.mark.slow
def test_the_first_two_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["train", str(TABLE), "--target-columns", "dG_water", "--out", str(tmp_path / "run")]
    assert main([*words, *TINY_TRAIN, "--workers=0"]) == 0
    assert "600 rows: 600 read, 0 errors" in capsys.readouterr().err
    out = tmp_path / "predictions.csv"
    assert main(["predict", str(tmp_path / "run" / "model.gtx"), str(MOLECULES), "--out", str(out)]) == 0
    assert "24 rows: 23 read, 1 error (1 with an unusable molecule), 1 with warnings" in capsys.readouterr().err
    rows = {row["name"]: row for row in read(out)}
    assert "syntax error" in rows["mistyped"]["error"] and "element Br" in rows["bromobenzene"]["warning"]
    assert all(row["dG_water_pred"] for name, row in rows.items() if name != "mistyped")
