"""Centres that compiled code names: RDKit's labels, all of them, and no others."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from rdkit import Chem
from rdkit.Chem.EnumerateStereoisomers import EnumerateStereoisomers, StereoEnumerationOptions

from gtx.fast.stereocentres import label_centres
from gtx.molecules import ATOM_FEATURE_VALUES, Featuriser, read_smiles
from gtx.molecules.graphs import assign_stereo_labels, quietly, stereo_label
from gtx.molecules.perception import featurise_texts
from gtx.molecules.reading import skim_smiles
from tests.fast.sample_graphs import graphs_of
from tests.molecules.rewriting import SYMMETRIC, rewritings, sample

CHIRALITY = list(ATOM_FEATURE_VALUES).index("chirality")
NAMES = np.array(["", *ATOM_FEATURE_VALUES["chirality"]])


def names(texts: Sequence[str]) -> list[list[str] | None]:
    """The labels of all atoms of each molecule as they are read at first; None where any are left to RDKit."""
    with quietly():
        mols = [skim_smiles(text)[0] for text in texts]
    usual, graphs = graphs_of(mols)
    named, left = label_centres(graphs)
    assert not (named & left).any()
    found: dict[int, list[str]] = {}
    for k in np.flatnonzero(~left).tolist():
        atoms, _ = graphs.codes(k)
        found[id(usual[k])] = NAMES[atoms[:, CHIRALITY]].tolist()
    return [found.get(id(mol)) for mol in mols]


def by_rdkit(text: str) -> list[str]:
    mol = read_smiles(text)
    assign_stereo_labels(mol)
    return [stereo_label(atom) for atom in mol.GetAtoms()]


def isomers(texts: Sequence[str]) -> list[str]:
    """Two stereoisomers of each, their atoms in another order."""
    options = StereoEnumerationOptions(maxIsomers=2, rand=1, unique=False)
    mols = [mol for text in texts for mol in EnumerateStereoisomers(Chem.MolFromSmiles(text), options)]
    return [Chem.MolToSmiles(mol, canonical=False, doRandom=True) for mol in mols]


def test_real_molecules(shared_data: Path) -> None:
    texts = sample(shared_data, 100, stereo=True, seed=10)
    texts += [written for text in texts[::2] for written in rewritings(text, 1)]
    texts += isomers(sample(shared_data, 50, stereo=False, seed=11))
    ours = names(texts)
    for text, labels in zip(texts, ours, strict=True):
        assert labels in (None, by_rdkit(text)), text
    assert sum(labels is not None for labels in ours) > 0.6 * len(texts)


@pytest.mark.parametrize(
    "smiles",
    [
        "C[C@H](N)C(=O)O",  # by the neighbours of neighbours
        "CC[C@H](C)CN",
        "CC[C@@H](O)CC=C",  # one set further
        "C[C@H](CO)CN",
        "CC(C)[C@H](CCl)CC",
        "C[C@](F)(Cl)Br",
        "O[C@H](c1ccccc1)C=C",
        "OC[C@@H]1CCC(=O)O1",  # in a ring
        "C[C@H](c1ccco1)C#N",
    ],
)
def test_named_at_once(smiles: str) -> None:
    assert names([smiles]) == [by_rdkit(smiles)] and {"R", "S"} & set(by_rdkit(smiles))


@pytest.mark.parametrize(
    "smiles",
    [
        "C[C@H](N)/C=C/C",  # a stereo bond
        "CC[C@H](O)CC",  # none
        "C[C@H](c1ccccn1)C(C)=N",  # mesomeric forms disagree
        "C[C@H](c1ncccc1)C(C)=N",
        "C[C@H](c1ccncc1)c1ccnnc1",
        "CCCC[C@H](C)CCCCl",  # too far
        "C[S@](=O)c1ccccc1",  # no carbon
        "[2H][C@H](C)O",
        "[13CH3][C@H](N)C(=O)O",  # an isotope
        "OC[C@H](O)[C@@H](O)[C@H](O)CO",
        "C[C@H](O)c1cc[cH-]c1",  # a charge that moves
    ],
)
def test_left_to_rdkit(smiles: str) -> None:
    assert names([smiles]) == [None]


def test_one_molecule_does_not_depend_on_the_others() -> None:
    texts = ["CC[C@H](O)CC", "C[C@H](N)C(=O)O", "C", "C[C@@H](N)C(=O)O", "CCCC[C@H](C)CCCCl", "CC[C@@H](O)CC=C"]
    assert names(texts) == [names([text])[0] for text in texts] != [None] * 6


def test_branches_that_rdkit_would_compare_at_length_are_left_to_it() -> None:
    """Two equal branches of a neighbour: only where nothing but hydrogen atoms follows them."""
    short, long = "CC(C)[C@H](C)C(CO)CN", "CCC(CC)[C@H](C)C(C)C"
    assert names([short, long]) == [by_rdkit(short), None]


def test_with_and_without_canonical_smiles_the_codes_are_the_same(shared_data: Path) -> None:
    """Without, RDKit need not look at centres that compiled code names, nor at those that are none."""
    texts = [*sample(shared_data, 100, stereo=True, seed=12), "[CH3:1][C@H](C)O", *SYMMETRIC, "CC[C@H](O)CC"]
    texts += [*isomers(SYMMETRIC), "CC[N@](C)CCC", "c1(ccc(cc1)SC)CC(N1[C@H](CN(CC1)C(=O)C)C[N@]1CC[C@H](C1)O)=O"]
    with_smiles, without = (featurise_texts(Featuriser(), texts, smiles=smiles) for smiles in (True, False))
    for name in ("atoms", "bonds", "bond_codes", "descriptors"):
        assert np.array_equal(getattr(with_smiles, name), getattr(without, name)), name
    assert with_smiles.warnings == without.warnings and set(without.smiles) == {None}


def test_canonical_smiles_are_those_of_molecules_read_by_rdkit_alone(shared_data: Path) -> None:
    texts = [*sample(shared_data, 50, stereo=True, seed=13), *isomers(SYMMETRIC), "[CH3:1][C@H](C)O"]
    found = featurise_texts(Featuriser(descriptors=False), texts).smiles
    for text, ours in zip(texts, found, strict=True):
        with quietly():
            mol = Chem.MolFromSmiles(text)
            for atom in mol.GetAtoms():
                atom.SetAtomMapNum(0)
            assign_stereo_labels(mol)
            assert Chem.MolToSmiles(mol) == ours


def test_with_hydrogen_atoms_the_labels_are_the_same() -> None:
    """Not RDKit's older ones, which it gives when it reads a SMILES: here R becomes S."""
    text = "Cc1cc2ncn(C[C@@H](O)C[NH+](C)Cc3ccc(F)cc3)c2cc1C"
    bare, full = (Featuriser(hydrogens=hydrogens, descriptors=False)(text) for hydrogens in (False, True))
    older = [atom.GetPropsAsDict().get("_CIPCode", "none") for atom in Chem.MolFromSmiles(text).GetAtoms()]
    ours = NAMES[bare.atoms[:, CHIRALITY]].tolist()
    assert NAMES[full.atoms[: len(ours), CHIRALITY]].tolist() == ours == by_rdkit(text) != older
