"""CXSMILES extensions and enhanced stereochemistry: one rule for texts, SMILES files, mol blocks and RDKit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from rdkit import Chem

from gtx.data import featurise
from gtx.data.tables import open_table
from gtx.molecules import Featuriser, MoleculeError, read_smiles
from gtx.molecules.reading import RELATIVE_STEREO, molecule_text
from gtx.prediction.inputs import as_texts

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
    return read | {"text": text, "RDKit": as_texts([mol])[0]}


@pytest.mark.parametrize("fast", ["0", "1"])
@pytest.mark.parametrize(("text", "flat"), RELATIVE)
def test_relative_and_racemic_centres_are_unspecified_with_a_warning_in_every_way(
    text: str, flat: str, fast: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
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


def test_absolute_groups_are_read_as_they_are() -> None:
    mol = Featuriser()("C[C@H](O)CC |a:1|")
    assert (mol.smiles, mol.warnings) == ("CC[C@H](C)O", ())
    assert molecule_text(Chem.MolFromSmiles("C[C@H](O)CC")) == "CC[C@H](C)O"


@pytest.mark.parametrize(
    ("text", "smiles", "warning"),
    [
        ("C[C@H](O)CC |r|", "CCC(C)O", RELATIVE_STEREO),
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


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("CCO |foo|", "RDKit does not understand the extension |foo|"),
        ("C[C@H](O)CC |o1:9|", "the extension names atom 9 of 5, from 0"),
        ("C[C@H](O)CC |o1:1", "white space or a control character inside the SMILES"),
        ("CCO |o1:1| name", "white space or a control character inside the SMILES"),
        ("C1CC |o1:1|", "unclosed ring"),
    ],
)
def test_what_cannot_be_read_is_refused(text: str, reason: str) -> None:
    with pytest.raises(MoleculeError, match=reason.replace("|", r"\|")):
        read_smiles(text)


def test_coordinates_in_space_of_an_extension_are_coordinates() -> None:
    found = Featuriser(coordinates=True)("OCC |(2,0,0.5;1,0,0;0,0,1)|")
    np.testing.assert_allclose(found.positions, [[2, 0, 0.5], [1, 0, 0], [0, 0, 1]])
    with pytest.raises(MoleculeError, match="has no coordinates in space"):
        Featuriser(coordinates=True)("CCO |(0,0,;1,0,;2,0,)|")


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
