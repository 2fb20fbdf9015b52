from __future__ import annotations

from pathlib import Path

import pytest

from gtx.data.tables import check_source, open_table
from gtx.errors import InputError


@pytest.mark.parametrize("name", ["mols.csv", "a/b.smi.gz", "/no/where", "./x", "C.sdf", "my_molecules", Path("CCO")])
def test_what_can_only_be_a_file(name):
    with pytest.raises(InputError, match="no such file"):
        open_table(name)


def test_several_smiles_are_rows_and_the_name_of_a_file_is_none(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("CCN").touch()
    table = open_table(["CCO", "C1CC", "C/C=C/C"])
    assert (table.columns, table.length) == (["smiles"], 3)
    assert [(row.number, row.text) for row in table.rows] == [(1, "CCO"), (2, "C1CC"), (3, "C/C=C/C")]
    for name in ("CCN", "mols.csv", "-", "./C"):
        with pytest.raises(InputError, match=f"must be SMILES, and {name} is the name of a file: give one file alone"):
            open_table(["CCO", name])


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("esoll", "there is no file or public set 'esoll'; did you mean 'esol'? As a SMILES it cannot be read: "),
        ("solubilty", "there is no file or public set 'solubilty'; did you mean 'solubility.csv'? As a SMILES it "),
        ("sub/librry.sdf", "no such file: sub/librry.sdf; did you mean 'sub/library.sdf'?"),
        ("C1CC", "there is no file or public set 'C1CC', and as a SMILES it cannot be read: unclosed ring"),
        ("C\0", r"there is no file or public set 'C\\x00', and as a SMILES it "),
    ],
)
def test_a_word_that_is_nothing_is_refused_with_a_near_name(name, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for file in ("solubility.csv", "sub/library.sdf"):
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).touch()
    with pytest.raises(InputError) as refusal:
        check_source(name, ["esol", "freesolv", "scaffold/esol", "scaffold/tox21"])
    assert str(refusal.value).startswith(message)


@pytest.mark.parametrize("name", ["-", "CCO", "C/C=C/C", __file__, Path(__file__), Path(__file__).parent])
def test_what_is_something_is_not(name):
    check_source(name, ["CC0"])
