"""The same molecule, written otherwise, and what of it must not change."""

import csv
import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from rdkit import Chem, rdBase
from rdkit.Chem.inchi import MolToInchiKey

from gtx.molecules import ATOM_FEATURE_VALUES, BOND_FEATURE_VALUES, Molecule

SYMMETRIC = [
    "OC1C(O)C(O)C(O)C(O)C1O",
    "FC1C(F)C(F)C(F)C1F",
    "FC1C(F)C(F)C1F",
    "CC1C(O)C(C)C1O",
    "CC1CCC(C)CC1",
    "CC1CCC2(CC1)CCC(C)CC2",
    "CC1CC2CC(C)CC2C1",
    "OC1C(O)C2C(O)C(O)C12",
    "OC1CCC(C(F)C2CCC(O)CC2)CC1",
    "CC=C1CC(=CC)CC(=CC)C1",
    "CC(F)C(O)C(C)F",
    "OC(C(O)C(=O)O)C(=O)O",
    "CC=CC(O)C=CC",
    "C1CCC2CCCCC2C1",
]
"""Centres whose branches differ in stereochemistry alone: where labels go wrong first."""

CAGES = [
    "C1C2CC3CC1CC(C2)C3",
    "C12C3C4C1C5C2C3C45",
    "C1CC2CCC1CC2",
    "C12C3C1C23",
    "C1CN2CCC1CC2",
    "C1N2CN3CN1CN(C2)C3",
    "P12P3P1P23",
    "c1ccc2c(c1)C1c3ccccc3C2c2ccccc12",
    "c1cc2cc3ccc(cc4nc(cc5ccc(cc1n2)[nH]5)C=C4)[nH]3",
]
"""Molecules whose set of smallest rings is a matter of choice."""

ODD = [
    "[H][H]",
    "[H+]",
    "[2H]C([2H])O",
    "*",
    "*CC",
    "[He]",
    "[Na+].[Cl-]",
    "O=C([O-])CC[Se]C.[K+]",
    "[CH3]",
    "[O][O]",
    "[CH2]",
    "C[N+](C)(C)CC(=O)[O-]",
    "CN(=O)=O",
    "[Cu+2].[O-]S(=O)(=O)[O-]",
    "N->[Pt](<-N)(Cl)Cl",
    "C[Hg]C",
    "B1OBOBO1",
    "C$C",
    "[13CH4]",
    "[C-]#[O+]",
    "F[Si-2](F)(F)(F)(F)F",
]
"""Salts, charges, isotopes, radicals, metals, single atoms, dummies."""


def column(path: Path, name: str = "smiles") -> list[str]:
    with path.open() as file:
        return [row[name] for row in csv.DictReader(file)]


def sample(folder: Path, per_set: int, stereo: bool, seed: int = 0) -> list[str]:
    """Real molecules, `per_set` of each of four sets; `stereo` asks for those with stereochemistry."""
    chosen = []
    for name in ("zinc12k/zinc12k", "scaffold/bbbp", "scaffold/bace", "scaffold/tox21"):
        texts = [t for t in column(folder / f"{name}.csv") if not stereo or set(t) & set("@/\\")]
        chosen += random.Random(seed).sample(texts, min(per_set, len(texts)))
    with rdBase.BlockLogs():
        return [text for text in chosen if Chem.MolFromSmiles(text)]


def inchi_key(text: str) -> str:
    return MolToInchiKey(Chem.MolFromSmiles(text))


def rewritings(text: str, count: int, seed: int = 0) -> Iterator[str]:
    """Random SMILES of the same molecule; InChI is the judge, as RDKit can write a wrong centre in symmetric rings."""
    generator = random.Random(seed)
    with rdBase.BlockLogs():
        mol, key = Chem.MolFromSmiles(text), inchi_key(text)
        found, tried = 0, 0
        while found < count and (tried := tried + 1) < 10 * count:
            order = generator.sample(range(mol.GetNumAtoms()), mol.GetNumAtoms())
            written = Chem.MolToSmiles(Chem.RenumberAtoms(mol, order), canonical=False, doRandom=True)
            if Chem.MolFromSmiles(written) is not None and inchi_key(written) == key:
                found += 1
                yield written


def coloured_graph(molecule: Molecule) -> tuple:
    """All codes as an invariant: three rounds of neighbourhood colours, sorted."""
    colours = [tuple(row) for row in molecule.atoms.tolist()]
    bonds = list(zip(*molecule.bonds.tolist(), map(tuple, molecule.bond_codes.tolist()), strict=True))
    for _ in range(3):
        around: list[list] = [[] for _ in colours]
        for sender, receiver, bond in bonds:
            around[receiver].append((bond, colours[sender]))
        colours = [hash((own, *sorted(seen))) for own, seen in zip(colours, around, strict=True)]
    return tuple(sorted(colours))


def labels(molecule: Molecule) -> tuple[str, str]:
    """CIP labels of atoms and of bonds, sorted."""
    atom, bond = list(ATOM_FEATURE_VALUES).index("chirality"), list(BOND_FEATURE_VALUES).index("stereo")
    atoms = np.array(["?", *ATOM_FEATURE_VALUES["chirality"]])[molecule.atoms[:, atom]]
    bonds = np.array(["?", *BOND_FEATURE_VALUES["stereo"]])[molecule.bond_codes[::2, bond]]
    return "".join(sorted(atoms[atoms != "none"])), "".join(sorted(bonds[bonds != "none"]))
