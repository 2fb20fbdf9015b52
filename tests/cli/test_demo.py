"""`gtx demo`, and the two tables that a new user starts with."""

import os
import re
import shlex
from pathlib import Path

import pandas as pd
import pytest

from gtx.cli import main
from tests.tables import XTB9

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_the_values_are_those_of_xtb9_and_no_molecule_is_in_both_tables() -> None:
    table, xtb9 = pd.read_csv(EXAMPLES / "solvation.csv"), pd.read_parquet(XTB9).set_index("smiles")
    assert len(table) == 600 and table.smiles.is_unique and table.id.is_unique
    assert table.dG_water.tolist() == xtb9.solvation_water[table.smiles].tolist()
    assert not set(table.smiles) & set(pd.read_csv(EXAMPLES / "molecules.csv").smiles)


@pytest.mark.slow
def test_a_first_model_and_what_to_do_with_it(tmp_path, capfd) -> None:
    out = tmp_path / "my first"
    assert main(["demo", "--epochs=1", f"--out={out}"]) == 0
    screen, notes = capfd.readouterr()
    assert notes.startswith("gtx demo: about")  # before anything slow
    assert "600 rows: 600 read, 0 errors" in notes
    assert "24 rows: 23 read, 1 error (1 with an unusable molecule), 1 with warnings" in notes
    opened, typed = screen.split("\nopen ")[1].split("\ntype ")
    parts = (filter(None, part.splitlines()) for part in (opened, typed))
    files, shown = ([re.split(r"\s{3,}", line.strip())[0] for line in lines] for lines in parts)
    assert all(os.path.exists(file) for file in files) and len(files) == 2
    table = pd.read_csv(files[1]).set_index("name")
    assert len(table) == 24 and table.index[table.dG_water_pred.isna()].tolist() == ["mistyped"]
    assert "syntax error" in table.error["mistyped"] and "element Br" in table.warning["bromobenzene"]
    commands = list(map(shlex.split, shown))
    assert [words[1] for words in commands] == ["predict", "explain", "serve", "train", "train"]
    assert main(commands[0][1:]) == 0 and "CC(=O)Oc1ccccc1C(=O)O" in capfd.readouterr().out
