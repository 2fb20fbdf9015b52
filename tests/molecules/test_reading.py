"""Reading: what is accepted, and that every refusal says why, in one line and nowhere else."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from rdkit import Chem
from rdkit.Chem import AllChem

from gtx.molecules import MoleculeError, read_smiles
from gtx.molecules.graphs import quietly
from gtx.molecules.reading import read_molblock, standardise_molecule

from .rewriting import ODD, column, rewritings

BLOCK = Chem.MolToMolBlock(Chem.MolFromSmiles("CCO"))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "the text is empty"),
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
    ],
)
def test_refusals_name_the_reason(text: str, reason: str, capfd: pytest.CaptureFixture) -> None:
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


def test_mangled_text_never_raises_anything_else(shared_data: Path, capfd: pytest.CaptureFixture) -> None:
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
def test_refused_mol_blocks_name_the_reason(block: str, reason: str, capfd: pytest.CaptureFixture) -> None:
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
