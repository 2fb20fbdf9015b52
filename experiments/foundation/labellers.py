"""What a molecule can be labelled with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from rdkit import Chem
from rdkit.Chem import rdDistGeom, rdForceFieldHelpers

from gtx.molecules.descriptors import RDKIT_DESCRIPTORS, rdkit_descriptors

SEED = 9
TOGETHER = 32
"""Molecules of a batch of MiniMol."""


class Labels(NamedTuple):
    """Labels of n molecules and of all their atoms, as `experiments.foundation.labels.Shard`."""

    molecule: np.ndarray
    atom: np.ndarray
    atoms: np.ndarray
    error: np.ndarray


class LabelError(Exception):
    """A molecule without labels; the message is the reason."""


Label = tuple[np.ndarray, np.ndarray] | LabelError
"""Of a molecule, `[K]` and `[atoms, A]`; or why it has none."""


class Labeller(NamedTuple):
    """A kind of labels.

    Attributes:
        molecule: names of what it says of a molecule, K.
        atom: names of what it says of each atom, A.
        label: of some molecules, each one's label.
        shard: molecules a file, some minutes of work at the most.
        digits: the type by which labels of molecules are written down.
    """

    molecule: tuple[str, ...]
    atom: tuple[str, ...]
    label: Callable[[Sequence[Chem.Mol]], list[Label]]
    shard: int
    digits: type = np.float32


def one_by_one(label: Callable[[Chem.Mol], tuple[np.ndarray, np.ndarray]]) -> Callable[[Sequence[Chem.Mol]], list]:
    """Of what labels one molecule."""

    def each(mol: Chem.Mol) -> Label:
        try:
            return label(mol)
        except LabelError as reason:
            return reason

    return lambda mols: [each(mol) for mol in mols]


def of_descriptors(mol: Chem.Mol) -> tuple[np.ndarray, np.ndarray]:
    """RDKit's descriptors; none of atoms."""
    return rdkit_descriptors(mol), np.empty((mol.GetNumAtoms(), 0))


def of_xtb(mol: Chem.Mol) -> tuple[np.ndarray, np.ndarray]:
    """GFN2-xTB single points of the conformer: solvation in water and octanol (kcal/mol) and their difference, gap
    (eV), dipole (debye); partial charges of the atoms, those of hydrogens with the atom that carries them (e)."""
    from tblite.exceptions import TBLiteRuntimeError

    from experiments.xtb9.label import DEBYE, KCAL, Hartree, singlepoint

    whole = conformer(mol)
    numbers = np.array([atom.GetAtomicNum() for atom in whole.GetAtoms()])
    positions = whole.GetConformer().GetPositions()
    try:
        gas, *solvated = (singlepoint(numbers, positions, solvent=name) for name in (None, "water", "octanol"))
    except TBLiteRuntimeError as reason:
        raise LabelError("SCF failure") from reason
    water, octanol = ((float(each.get("energy")) - float(gas.get("energy"))) * KCAL for each in solvated)
    homo = int(np.nonzero(gas.get("orbital-occupations") > 1.0)[0][-1])
    orbitals = gas.get("orbital-energies")
    gap = float(orbitals[homo + 1] - orbitals[homo]) * Hartree
    dipole = float(np.linalg.norm(gas.get("dipole"))) * DEBYE
    carrier = [a.GetIdx() if a.GetIdx() < mol.GetNumAtoms() else a.GetNeighbors()[0].GetIdx() for a in whole.GetAtoms()]
    charges = np.bincount(carrier, weights=gas.get("charges"), minlength=mol.GetNumAtoms())
    return np.array([water, octanol, octanol - water, gap, dipole]), charges[:, None]


def conformer(mol: Chem.Mol) -> Chem.Mol:
    """With hydrogens after the other atoms, and one conformer by ETKDGv3 and MMFF94."""
    whole = Chem.AddHs(mol)
    if not rdForceFieldHelpers.MMFFHasAllMoleculeParams(whole):
        raise LabelError("no MMFF94 parameters")
    how = rdDistGeom.ETKDGv3()
    how.randomSeed = SEED
    how.timeout = 10  # seconds
    if rdDistGeom.EmbedMolecule(whole, how) < 0:
        raise LabelError("no conformer")
    if rdForceFieldHelpers.MMFFOptimizeMolecule(whole, maxIters=1000) != 0:
        raise LabelError("MMFF94 does not converge")
    return whole


def of_minimol(mols: Sequence[Chem.Mol]) -> list[Label]:
    """The 512 numbers of MiniMol; none of atoms."""
    from experiments.foundation.minimol import teacher

    found: list[Label] = []
    for mol in mols:
        try:
            found.append(teacher().features(Chem.MolToSmiles(mol)))
        except (ValueError, RuntimeError) as reason:
            found.append(LabelError(f"MiniMol: {reason}"))
    read = [place for place, one in enumerate(found) if not isinstance(one, LabelError)]
    for some in (read[i : i + TOGETHER] for i in range(0, len(read), TOGETHER)):
        for place, vector in zip(some, teacher().embed([found[place] for place in some]), strict=True):
            found[place] = vector, np.empty((mols[place].GetNumAtoms(), 0))
    return found


def of_jazzy(mol: Chem.Mol) -> tuple[np.ndarray, np.ndarray]:
    """Strengths of hydrogen bonds and free energies of hydration; none of atoms."""
    from jazzy.api import molecular_vector_from_smiles
    from jazzy.exception import JazzyError

    try:
        found = molecular_vector_from_smiles(Chem.MolToSmiles(mol))
    except (JazzyError, IndexError, KeyError, ValueError) as reason:
        raise LabelError(f"jazzy: {reason}") from reason
    return np.array([found[name] for name in JAZZY]), np.empty((mol.GetNumAtoms(), 0))


JAZZY = ("sdc", "sdx", "sa", "dga", "dgp", "dgtot")
LABELLERS = {
    "descriptors": Labeller(RDKIT_DESCRIPTORS, (), one_by_one(of_descriptors), shard=2_000),
    "minimol": Labeller(tuple(f"minimol_{i}" for i in range(512)), (), of_minimol, shard=10_000, digits=np.float16),
    "jazzy": Labeller(JAZZY, (), one_by_one(of_jazzy), shard=1_000),
    "xtb": Labeller(
        ("solvation_water", "solvation_octanol", "octanol_minus_water", "gap", "dipole"),
        ("charge",),
        one_by_one(of_xtb),
        shard=100,
    ),
}
"""The kinds by name. GFN2-xTB: Bannwarth, Ehlert and Grimme 2019, doi:10.1021/acs.jctc.8b01176; ALPB: Ehlert, Stahn,
Spicher and Grimme 2021, doi:10.1021/acs.jctc.1c00471. MiniMol: Kläser et al. 2024, arXiv:2404.14986. jazzy: Ghiandoni
and Caldeweyher 2023, doi:10.1038/s41598-023-30089-x."""
