from __future__ import annotations

import io

import pytest
from rdkit import Chem

from gtx.molecules import MoleculeError
from gtx.molecules.reading import molblock_smiles, sdf_records

BLOCK = Chem.MolToMolBlock(Chem.MolFromSmiles("C[C@H](N)O"))


def test_records_are_what_rdkit_reads():
    sink = io.StringIO()
    writer = Chem.SDWriter(sink)
    for smiles in ("CCO", "c1ccccc1", "[Na+].[Cl-]"):
        mol = Chem.MolFromSmiles(smiles)
        mol.SetProp("_Name", f"name of {smiles}")
        mol.SetProp("logP", "1.5")
        mol.SetProp("a <strange> name", "first\nsecond")
        writer.write(mol)
    writer.close()
    supplier = Chem.SDMolSupplier()
    supplier.SetData(sink.getvalue())
    records = list(sdf_records(sink.getvalue().splitlines(keepends=True)))
    assert len(records) == len(supplier) == 3
    for record, mol in zip(records, supplier, strict=True):
        assert record.properties == mol.GetPropsAsDict(autoConvertStrings=False)
        assert record.title == mol.GetProp("_Name")
        assert molblock_smiles(record.block) == Chem.MolToSmiles(mol)


@pytest.mark.parametrize(
    ("tail", "properties"),
    [
        (["> 25 <logP> (DT12)", "1.5", ""], {"logP": "1.5"}),
        ([">  <empty>", "", ">  <next>", "2", ""], {"empty": "", "next": "2"}),
        (["> <gap>", "a", "", "> 7 below", ""], {"gap": "a\n\n> 7 below"}),  # a blank line within a value loses nothing
        (["> <a <b> c>", "1"], {"a <b> c": "1"}),
        (["> <>", "1", ">> <x", "<y>"], {"": "1\n>> <x\n<y>"}),
        ([], {}),
    ],
)
@pytest.mark.parametrize("end", [["$$$$"], []])
def test_properties(tail, properties, end):
    (record,) = sdf_records([*BLOCK.splitlines(), *tail, *end])
    assert (record.block, record.properties) == (BLOCK, properties)


def test_records_keep_their_number():
    lines = [*BLOCK.splitlines(), "$$$$", "$$$$", *BLOCK.splitlines(), "$$$$", "", " "]
    assert [record.block for record in sdf_records(lines)] == [BLOCK, "", BLOCK]
    assert list(sdf_records([])) == []


@pytest.mark.parametrize("tail", [[">" + "<" * 4_000_000], ["> <a>", *[""] * 1_000_000, "x"]], ids=["<", "blanks"])
def test_megabytes_take_no_day_as_where_the_time_grows_with_the_square_of_the_length(tail):
    assert len(list(sdf_records([*BLOCK.splitlines(), *tail]))) == 1


def test_smiles_of_a_block():
    assert molblock_smiles(Chem.MolToMolBlock(Chem.AddHs(Chem.MolFromSmiles("OCC")))) == "CCO"
    assert molblock_smiles(BLOCK) == "C[C@H](N)O"
    with pytest.raises(MoleculeError):
        molblock_smiles(BLOCK.replace(" N ", " Qq"))
