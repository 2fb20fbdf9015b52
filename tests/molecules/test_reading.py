"""Reading: what is accepted, and that every refusal says why, in one line and nowhere else."""

import io
import random
from pathlib import Path

import numpy as np
import pytest
from rdkit import Chem
from rdkit.Chem import AllChem

from gtx.data import featurise
from gtx.data.tables import open_table
from gtx.molecules import Featuriser, MoleculeError, read_smiles
from gtx.molecules.graphs import quietly
from gtx.molecules.reading import RELATIVE_STEREO, molblock_smiles, read_molblock, sdf_records, standardise_molecule
from gtx.prediction.inputs import as_texts

from .rewriting import ODD, column, rewritings

BLOCK = Chem.MolToMolBlock(Chem.MolFromSmiles("CCO"))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "the text is empty"),
        (" NA ", "the text stands for an empty cell"),
        ("#N/A", "the text stands for an empty cell"),
        ("C\tC", "white space or a control character"),
        ("CC\x00O", "white space or a control character"),
        ("C\u00a0C", "white space or a control character"),
        ("C\u2212C", "'−' is no character of a SMILES"),
        ("C1CC", "unclosed ring"),
        ("C1CC1C(", "syntax error; check for mistakes around position 7"),
        ("CC)", "extra close parentheses; check for mistakes around position 3"),
        ("c1cccc1", "Can't kekulize mol. Unkekulized atoms: 0 1 2 3 4"),
        ("CC(C)(C)(C)C", "Explicit valence for atom # 1 C, 5, is greater than permitted"),
        ("cc", "non-ring atom 0 marked aromatic"),
        ("CQ", "syntax error; check for mistakes around position 2"),
        ("C>>C", "it is a reaction, which gtx train reads with --reaction-column"),
        ("N->[Fe]>O>N", "it is a reaction"),
        ("Q->[Fe]", "syntax error"),
        ("CCO |foo|", "RDKit does not understand the extension |foo|"),
        ("C[C@H](O)CC |o1:9|", "the extension names atom 9 of 5, from 0"),
        ("C[C@H](O)CC |o1:1", "white space or a control character inside the SMILES"),
        ("CCO |o1:1| name", "white space or a control character inside the SMILES"),
        ("C1CC |o1:1|", "unclosed ring"),
    ],
)
def test_refusals_name_the_reason(text: str, reason: str, capfd) -> None:
    with pytest.raises(MoleculeError) as error:
        read_smiles(text)
    assert reason in str(error.value) and str(error.value).startswith("cannot be read: ")
    assert "\n" not in str(error.value) and "[" not in str(error.value)  # no second line, no time stamp
    assert capfd.readouterr() == ("", "")


def test_outer_blanks_map_numbers_and_written_hydrogens() -> None:
    assert Chem.MolToSmiles(read_smiles("  [CH3:7][OH:1]\n")) == "CO"
    assert read_smiles("[H]C([H])([H])[H]").GetNumAtoms() == 1
    assert read_smiles("[H]C([H])([H])[H]", remove_hydrogens=False).GetNumAtoms() == 5
    assert all(read_smiles(text).GetNumAtoms() == 1 for text in ("[H]C", "[0H]C", "[#1]C", "[H:1]C"))
    assert read_smiles("[2H]C").GetNumAtoms() == read_smiles("[H][H]").GetNumAtoms() == 2


@pytest.mark.parametrize("fast", ["0", "1"])
@pytest.mark.parametrize("text", ["[CH3:1][C@H](C)O", "CC(C)O |atomProp:0.molAtomMapNumber.7|"])
def test_numbers_make_no_other_molecule(text: str, fast: str, monkeypatch) -> None:
    """Nor a centre of an atom with two methyl groups, of which one has a number."""
    monkeypatch.setenv("GTX_FAST", fast)
    block = Chem.MolToV3KMolBlock(Chem.MolFromSmiles(text))
    read = [Featuriser(descriptors=False)(each) for each in (text, block)]
    assert [molecule.smiles for molecule in read] == ["CC(C)O"] * 2


def test_mangled_text_never_raises_anything_else(shared_data: Path, capfd) -> None:
    generator, good, bad = random.Random(0), 0, 0
    texts = column(shared_data / "scaffold" / "bbbp.csv")
    for _ in range(300):
        text = list(generator.choice(texts))
        for _ in range(generator.choice([1, 1, 3])):
            place = generator.randrange(len(text))
            text[place : place + generator.randrange(2)] = generator.choice("CNOcno()[]=#@+-/\\123%.:$* >")
        try:
            read_smiles("".join(text))
            good += 1
        except MoleculeError as error:
            bad += 1
            assert "\n" not in str(error) and "no reason" not in str(error), "".join(text)
    assert good > 20 and bad > 80
    assert capfd.readouterr() == ("", "")


def test_mol_blocks_keep_coordinates_and_stereochemistry() -> None:
    mol = Chem.AddHs(Chem.MolFromSmiles("C[C@H](N)C(=O)O"))
    AllChem.EmbedMolecule(mol, randomSeed=1)
    for block in (Chem.MolToMolBlock(mol), Chem.MolToV3KMolBlock(mol), Chem.MolToMolBlock(mol).replace("\n", "\r\n")):
        again = read_molblock(block)
        assert Chem.MolToSmiles(again) == "C[C@H](N)C(=O)O"
        assert abs(again.GetConformer().GetPositions() - mol.GetConformer().GetPositions()[:6]).max() < 1e-3
        assert read_molblock(block, remove_hydrogens=False).GetNumAtoms() == 13


@pytest.mark.parametrize(
    ("block", "reason"),
    [
        (BLOCK.replace("M  END\n", ""), "Problems encountered parsing Mol data"),
        (BLOCK.replace("  3  2", "  x  2", 1), "Cannot convert ' x' to unsigned int on line 4"),
        ("\n".join(BLOCK.split("\n")[:5]), "EOF hit while reading atoms"),
        (BLOCK.replace(" O ", " Qq"), "Element 'Qq' not found"),
        (BLOCK.replace("  1  2  1", "  1  9  1"), "Range Error"),
        (BLOCK.replace("  1  2  1", "  1 €2  1"), "no reason"),  # RDKit quotes half of the letter
        ("", "four lines or more; 0 came"),
        ("one line", "four lines or more; 1 came"),
        ("form\x0cfeeds\x0care\x0cno\x0clines", "four lines or more; 1 came"),
        ("\n\n\n  0  0  0  0  0  0  0  0  0  0999 V2000\nM  END\n", "it has no atoms"),
    ],
)
def test_refused_mol_blocks_name_the_reason(block: str, reason: str, capfd) -> None:
    with pytest.raises(MoleculeError) as error:
        read_molblock(block)
    assert reason in str(error.value) and "\n" not in str(error.value) and len(str(error.value)) < 150
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("remove_hydrogens", [True, False])
def test_molecules_are_what_rdkit_reads(remove_hydrogens: bool, shared_data: Path) -> None:
    """Step by step, for those that need a step alone."""
    params = Chem.SmilesParserParams()
    params.allowCXSMILES, params.parseName, params.removeHs = False, False, remove_hydrogens
    texts = [
        *ODD,
        *column(shared_data / "scaffold" / "tox21.csv")[:400],
        *column(shared_data / "scaffold" / "bbbp.csv"),
    ]
    read = 0
    for text in texts[:150]:
        with quietly():
            if (expected := Chem.MolFromSmiles(text, params)) is None:
                continue
            full = Chem.MolToSmiles(Chem.AddHs(expected))
            for written, mol in ((text, expected), (full, Chem.MolFromSmiles(full, params))):
                ours = read_smiles(written, remove_hydrogens)
                assert ours.ToBinary() == mol.ToBinary(), written  # every property of every atom and bond
                assert Chem.MolToSmiles(ours) == Chem.MolToSmiles(mol), written
                read += 1
    assert read > 250


# --- Standardising: what goes, what stays, and that the order of atoms has no say.


@pytest.mark.parametrize(
    ("smiles", "expected"),
    [
        ("[Na+].CC(=O)[O-]", "CC(=O)O"),
        ("C[NH3+].[Cl-]", "CN"),
        ("[NH3+]CC(=O)[O-]", "NCC(=O)O"),
        ("c1cc[nH+]cc1", "c1ccncc1"),
        ("OP([O-])(=O)[O-].[Ca+2]", "O=P(O)(O)O"),
        ("C[N+](C)(C)CC(=O)[O-]", "C[N+](C)(C)CC(=O)[O-]"),
        ("C[N+](C)(C)C.[Br-]", "C[N+](C)(C)C"),
        ("O=[N+]([O-])c1ccccc1", "O=[N+]([O-])c1ccccc1"),
        ("C[C@H]([NH3+])C(=O)[O-]", "C[C@H](N)C(=O)O"),
        ("[2H]C([2H])[NH3+]", "[2H]C([2H])N"),
        ("O=c1cc[nH]cc1", "O=c1cc[nH]cc1"),
        ("CCO.OCC", "CCO"),
        ("[Fe+2]", "[Fe+2]"),
        ("*", "*"),
    ],
)
def test_standardised(smiles: str, expected: str) -> None:
    for written in (smiles, *rewritings(smiles, 4)):
        mol = read_smiles(written)
        assert Chem.MolToSmiles(standardise_molecule(mol)) == expected
        assert Chem.MolToSmiles(mol) == Chem.MolToSmiles(read_smiles(smiles))  # the molecule itself is left alone


# ---


ALCOHOL = Chem.MolToMolBlock(Chem.MolFromSmiles("C[C@H](N)O"))


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
    (record,) = sdf_records([*ALCOHOL.splitlines(), *tail, *end])
    assert (record.block, record.properties) == (ALCOHOL, properties)


def test_records_keep_their_number():
    lines = [*ALCOHOL.splitlines(), "$$$$", "$$$$", *ALCOHOL.splitlines(), "$$$$", "", " "]
    assert [record.block for record in sdf_records(lines)] == [ALCOHOL, "", ALCOHOL]
    assert list(sdf_records([])) == []


@pytest.mark.parametrize("tail", [[">" + "<" * 4_000_000], ["> <a>", *[""] * 1_000_000, "x"]], ids=["<", "blanks"])
def test_megabytes_take_no_day_as_where_the_time_grows_with_the_square_of_the_length(tail):
    assert len(list(sdf_records([*ALCOHOL.splitlines(), *tail]))) == 1


# --- CXSMILES extensions and enhanced stereochemistry: one rule for texts, SMILES files, mol blocks and RDKit.


RELATIVE = (
    ("C[C@H](O)CC |o1:1|", "CCC(C)O"),
    ("C[C@H](O)CC |&1:1|", "CCC(C)O"),
    ("C[C@H](O)[C@H](F)CC |&1:1,3|", "CCC(F)C(C)O"),
    ("C[C@H](O)[C@H](F)CC |a:1,o2:3|", "C[C@H](O)C(F)CC"),  # one centre is absolute
    ("[H][C@](C)(O)CC |o1:1|", "CCC(C)O"),
    ("C[C@H](O)/C=C/C |o1:1|", "C/C=C/C(C)O"),  # a double bond is in no group
)


def ways(text: str, folder: Path) -> dict[str, str]:
    """Texts of molecules that come from a table, a SMILES file, SDF and RDKit."""
    mol = Chem.MolFromSmiles(text)
    (folder / "t.csv").write_text(f'smiles,y\n"{text}",1\n')
    (folder / "t.txt").write_text(f"id\tsmiles\ty\n1\t{text}\t1\n")
    (folder / "t.smi").write_text(f"{text} a name\n")
    (folder / "words.smi").write_text(f"id smiles y\nmol-1 {text} 1\n")
    with Chem.SDWriter(str(folder / "t.sdf")) as writer:
        writer.SetForceV3000(True)
        writer.write(mol)
    read = {}
    for name in ("t.csv", "t.txt", "t.smi", "words.smi", "t.sdf"):
        table = open_table(folder / name)
        (row,) = table.rows
        assert row.error is None
        read[name] = row.text
        if "name" in table.columns and name == "t.smi":
            assert row.cells == [text, "a name"]
    return read | {"text": text, "line": f"{text}\n", "RDKit": as_texts([mol])[0]}


@pytest.mark.parametrize("fast", ["0", "1"])
@pytest.mark.parametrize(("text", "flat"), RELATIVE)
def test_relative_and_racemic_centres_are_unspecified_with_a_warning_in_every_way(
    text: str, flat: str, fast: str, tmp_path, monkeypatch
) -> None:
    monkeypatch.setenv("GTX_FAST", fast)
    texts = ways(text, tmp_path)
    plain = Featuriser()(flat)
    for standardise in (False, True):
        done = featurise(Featuriser(standardise=standardise), list(texts.values()), workers=0)
        assert done.errors == [None] * len(texts)
        assert dict(zip(texts, done.smiles, strict=True)) == dict.fromkeys(texts, plain.smiles)
        assert dict(zip(texts, done.warnings, strict=True)) == dict.fromkeys(texts, (RELATIVE_STEREO,))
        codes = done.store.atoms.numpy().reshape(len(texts), *plain.atoms.shape)
        for atoms in codes:
            np.testing.assert_array_equal(np.sort(atoms, 0), np.sort(plain.atoms, 0))
    flat_reading = featurise(Featuriser(ignore_stereo=True), list(texts.values()), workers=0)
    assert flat_reading.warnings == [()] * len(texts)  # it ignores all stereochemistry, as asked


def test_a_molecule_of_rdkit_that_is_none_is_an_error_of_its_row(capfd) -> None:
    texts = as_texts([Chem.MolFromSmiles("c1cccc1", sanitize=False)] * 2, ordered=True)
    done = featurise(Featuriser(), texts, workers=0)
    assert all("Can't kekulize mol" in (error or "") for error in done.errors)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("text", "smiles", "warning"),
    [
        ("C[C@H](O)CC |r|", "CCC(C)O", RELATIVE_STEREO),
        ("C[C@H](O)CC |a:1|", "CC[C@H](C)O", None),
        ("[CH2]C |^1:0|", "[CH2]C", None),
        ("C |^1:0|", "[CH3]", None),
        ("[NH3][Pt] |C:0.0|", "[NH3]->[Pt]", None),
        ("C1=CCCCCCCC1 |t:0|", "C1=C/CCCCCCC/1", None),
        ("C1=CC=CC=C1 |c:0,2,4|", "c1ccccc1", None),
        ("C[CH](F)Cl |(0,0,;1,0,;2,0,;1,1,),wU:1.1|", "C[C@H](F)Cl", None),
        ("CCO |(0,0,;1,0,;2,0,)|", "CCO", None),
        ("CCO |lp:2:2|", "CCO", None),
        ("CCO.Cl |f:0.1|", "CCO.Cl", None),
        ("CCO |$;;$|", "CCO", None),
        ("CCO |$_AV:a;b;c$|", "CCO", None),
        ("*CC |$_R1;;$|", "*CC", None),
        ("CC |$;Ph$|", "CC", "the label of an atom is ignored: Ph"),
        ("*CC* |Sg:n:1,2::ht|", "*CC*", "the brackets of a polymer are ignored: the molecule is its repeat unit"),
        ("CCO |LN:1:1.3|", "CCO", "of the extension |LN:1:1.3| gtx ignores LN"),
        ("*C.c1ccccc1 |m:0:2.3.4|", "*C.c1ccccc1", "of the extension |m:0:2.3.4| gtx ignores m"),
    ],
)
def test_other_extensions_are_read_or_named(text: str, smiles: str, warning: str | None) -> None:
    found = Featuriser(descriptors=False)(text)
    assert (found.smiles, found.warnings) == (smiles, () if warning is None else (warning,))


def test_coordinates_in_space_of_an_extension_are_coordinates() -> None:
    found = Featuriser(coordinates=True)("OCC |(2,0,0.5;1,0,0;0,0,1)|")
    np.testing.assert_allclose(found.positions, [[2, 0, 0.5], [1, 0, 0], [0, 0, 1]])
    with pytest.raises(MoleculeError, match="has no coordinates in space"):
        Featuriser(coordinates=True)("CCO |(0,0,;1,0,;2,0,)|")
    with pytest.raises(MoleculeError, match="has coordinates that are not finite numbers"):
        Featuriser(coordinates=True)("C |(1e39,0,1)|")


def test_mol_blocks_say_the_same() -> None:
    block = Chem.MolToMolBlock(Chem.MolFromSmiles("CC"))
    labelled = block.replace("M  END", "A    2\nPh\nM  END")
    assert Featuriser()(labelled).warnings == ("the label of an atom is ignored",)
    polymer = Chem.MolToMolBlock(Chem.MolFromSmiles("*CC* |Sg:n:1,2::ht|"))
    for text in (polymer, Chem.MolToV3KMolBlock(Chem.MolFromSmiles("*CC* |Sg:n:1,2::ht|"))):
        assert Featuriser(descriptors=False)(text).warnings == (
            "the brackets of a polymer are ignored: the molecule is its repeat unit",
        )
    assert Featuriser()(block).warnings == ()
