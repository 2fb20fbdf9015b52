"""RDKit's binary form of a molecule says what its getters say."""

from __future__ import annotations

from pathlib import Path

import pytest
from rdkit import Chem

from gtx.molecules import binary, read_molblock, read_smiles
from gtx.molecules.binary import parts_of
from gtx.molecules.features import Parts, plain_parts

from .rewriting import CAGES, ODD, SYMMETRIC, sample

PEPTIDE = "N[C@@H](C)C(=O)" * 60 + "O"  # more than 255 atoms


def same(one: Parts, other: Parts) -> bool:
    """In every value; bytes or lists of them are as good."""
    plain = [(p.atoms, list(p.ends), p.bonds, [list(ring) for ring in p.rings]) for p in (one, other)]
    return plain[0] == plain[1]


@pytest.mark.parametrize("text", [*ODD, *CAGES, *SYMMETRIC, PEPTIDE, "F/C=C/F", "[13CH3:7]C", "C[C@H]([2H])O"])
def test_odd_molecules_by_either_way(text: str) -> None:
    mol = read_smiles(text)
    for form in (mol, Chem.AddHs(mol)):
        assert same(parts_of(form), plain_parts(form))


def test_real_molecules_by_either_way(shared_data: Path) -> None:
    texts = [*sample(shared_data, 100, stereo=False, seed=3), *sample(shared_data, 50, stereo=True, seed=4)]
    for text in texts:
        mol = read_smiles(text)
        assert same(parts_of(mol), plain_parts(mol)), text
        mol = read_molblock(Chem.MolToMolBlock(mol))
        assert same(parts_of(mol), plain_parts(mol)), text


def test_stereo_that_is_left_open() -> None:
    crossed = Chem.MolToMolBlock(read_smiles("CC=CC")).replace("  2  3  2  0", "  2  3  2  3")
    mol = read_molblock(crossed)
    mol.GetBondWithIdx(0).SetStereo(Chem.BondStereo.STEREOANY)  # refers to no atoms
    assert same(parts_of(mol), plain_parts(mol)) and parts_of(mol).has_stereo


def test_most_molecules_take_the_fast_way_and_the_rest_the_plain_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binary, "plain_parts", lambda mol: pytest.fail("plain"))
    for text in ("CC(=O)Oc1ccccc1C(=O)O", "C[C@H](N)/C=C/C", "[Na+].[Cl-]", "C[N+](C)(C)CC(=O)[O-]"):
        parts_of(read_smiles(text))
    for text in ("*CC", "[13CH4]", PEPTIDE):
        with pytest.raises(pytest.fail.Exception, match="plain"):
            parts_of(read_smiles(text))


def test_another_version_of_the_form_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binary, "_VERSION", b"another")
    monkeypatch.setattr(binary, "_read", lambda *_: pytest.fail("read"))
    mol = read_smiles("C[C@H](N)C(=O)O")
    assert same(parts_of(mol), plain_parts(mol))
