"""Labels of the data set xtb9: conformer, GFN2-xTB relaxation and single points of every candidate.

One JSON line a candidate, failures with their `status`, so that a run that was killed goes on where it was.

    OMP_NUM_THREADS=1 python -m experiments.xtb9.label        # reads candidates.smi, appends to labels.jsonl

GFN2-xTB: Bannwarth, Ehlert and Grimme, J. Chem. Theory Comput. 2019, 15, 1652, doi:10.1021/acs.jctc.8b01176.
ALPB: Ehlert, Stahn, Spicher and Grimme, J. Chem. Theory Comput. 2021, 17, 4250, doi:10.1021/acs.jctc.1c00471.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import numpy as np
from ase import Atoms
from ase.data import covalent_radii
from ase.optimize import LBFGS
from ase.units import Bohr, Hartree
from rdkit import Chem, RDLogger
from rdkit.Chem import rdDistGeom, rdForceFieldHelpers
from rich.progress import track
from tblite.ase import TBLite
from tblite.exceptions import TBLiteRuntimeError
from tblite.interface import Calculator

from experiments.xtb9.generate import CANDIDATES

LABELS = Path("build/xtb9/labels.jsonl")
METHOD = "GFN2-xTB"
SEED = 9
CONFORMERS = 5
FMAX = 0.05  # eV/Å
MAX_STEPS = 300
BONDED = 1.25  # times the sum of covalent radii
KCAL = 627.5094740631  # kcal/mol a hartree
DEBYE = 2.541746473  # debye an atomic unit of dipole
UNPAIRED = {"H": 1, "C": 2, "N": 3, "O": 2, "F": 1, "S": 2, "Cl": 1}  # ground-state atoms: doublet, triplet, quartet


class LeftOutError(Exception):
    """A candidate left out; the message is the reason that the data card counts."""


def conformer(smiles: str) -> Chem.Mol:
    """Add hydrogens and one conformer, the lowest by MMFF94 of `CONFORMERS` by ETKDGv3."""
    mol = Chem.AddHs(Chem.MolFromSmiles(smiles))
    if not rdForceFieldHelpers.MMFFHasAllMoleculeParams(mol):
        raise LeftOutError("no MMFF94 parameters")
    params = rdDistGeom.ETKDGv3()
    params.randomSeed = SEED
    ids = list(rdDistGeom.EmbedMultipleConfs(mol, CONFORMERS, params))
    if not ids:
        raise LeftOutError("no conformer")
    energies = [e for _, e in rdForceFieldHelpers.MMFFOptimizeMoleculeConfs(mol, maxIters=1000)]
    best = Chem.Conformer(mol.GetConformer(ids[int(np.argmin(energies))]))
    mol.RemoveAllConformers()
    mol.AddConformer(best, assignId=True)
    return mol


def relax(mol: Chem.Mol) -> int:
    """Move the conformer to the GFN2-xTB minimum in the gas phase; return the number of LBFGS steps."""
    atoms = Atoms([a.GetSymbol() for a in mol.GetAtoms()], mol.GetConformer().GetPositions())
    atoms.calc = TBLite(method=METHOD, verbosity=0)
    optimizer = LBFGS(atoms, logfile=None)
    if not optimizer.run(fmax=FMAX, steps=MAX_STEPS):
        raise LeftOutError("relaxation not converged")
    mol.GetConformer().SetPositions(atoms.get_positions())
    return optimizer.get_number_of_steps()


def bonds_by_distance(numbers: np.ndarray, positions: np.ndarray) -> set[tuple[int, int]]:
    """Find pairs i < j closer than `BONDED` times the sum of their covalent radii; positions (n, 3) in Å."""
    distance = np.linalg.norm(positions[:, None] - positions[None], axis=-1)  # (n, n)
    limit = BONDED * (covalent_radii[numbers][:, None] + covalent_radii[numbers][None])
    return {(int(i), int(j)) for i, j in zip(*np.nonzero(np.triu(distance < limit, 1)), strict=True)}


def check_bonds(mol: Chem.Mol) -> None:
    """Leave out a molecule whose bonds by distance are not those of its graph."""
    numbers = np.array([a.GetAtomicNum() for a in mol.GetAtoms()])
    graph = {tuple(sorted((b.GetBeginAtomIdx(), b.GetEndAtomIdx()))) for b in mol.GetBonds()}
    if bonds_by_distance(numbers, mol.GetConformer().GetPositions()) != graph:
        raise LeftOutError("rearranged")


def singlepoint(numbers: np.ndarray, positions: np.ndarray, uhf: int = 0, solvent: str | None = None):
    """Compute GFN2-xTB at positions (n, 3) in Å, in an ALPB solvent (solution state 'gsolv') if named."""
    calculator = Calculator(METHOD, numbers, positions / Bohr, uhf=uhf)
    calculator.set("verbosity", 0)
    if solvent is not None:
        calculator.add("alpb-solvation", solvent, "gsolv")
    return calculator.singlepoint()


def properties(numbers: np.ndarray, positions: np.ndarray):
    """Compute gap (eV), dipole (debye) and free energies of solvation (kcal/mol), and the result in the gas phase."""
    gas = singlepoint(numbers, positions)
    energy, orbitals, occupations = map(gas.get, ("energy", "orbital-energies", "orbital-occupations"))
    homo = int(np.nonzero(occupations > 1.0)[0][-1])
    found = {
        "gap": float(orbitals[homo + 1] - orbitals[homo]) * Hartree,
        "dipole": float(np.linalg.norm(gas.get("dipole"))) * DEBYE,
    }
    for solvent in ("water", "octanol"):
        solvated = float(singlepoint(numbers, positions, solvent=solvent).get("energy"))
        found[f"solvation_{solvent}"] = (solvated - float(energy)) * KCAL
    return found, gas


@cache
def free_atom(symbol: str) -> float:
    """Compute the energy of the free atom in its ground-state multiplicity, hartree."""
    return float(singlepoint(Atoms(symbol).numbers, np.zeros((1, 3)), uhf=UNPAIRED[symbol]).get("energy"))


def targets(numbers: np.ndarray, positions: np.ndarray) -> dict[str, float]:
    """Compute the five labels of one geometry; positions (n, 3) in Å. Units: eV, debye, then kcal/mol."""
    found, gas = properties(numbers, positions)
    atoms = sum(free_atom(symbol) for symbol in Atoms(numbers=numbers).symbols)
    return found | {"atomisation": (atoms - float(gas.get("energy"))) * KCAL}


def heavy_stereo(mol: Chem.Mol) -> Chem.Mol:
    """Return the heavy-atom graph with the stereochemistry of the conformer; hydrogens that set an E/Z bond go too."""
    Chem.RemoveStereochemistry(mol)
    Chem.AssignStereochemistryFrom3D(mol)
    params = Chem.RemoveHsParameters()
    params.removeDefiningBondStereo = True
    for atom in mol.GetAtoms():
        atom.SetIntProp("_source", atom.GetIdx())
    heavy = Chem.RemoveHs(mol, params)
    Chem.AssignStereochemistry(heavy, cleanIt=True, force=True)
    return heavy


def written(mol: Chem.Mol) -> tuple[str, list[int]]:
    """Write canonical isomeric SMILES, and for each atom of `AddHs(MolFromSmiles(smiles))` its index in `mol`."""
    heavy = heavy_stereo(mol)
    source = [atom.GetIntProp("_source") for atom in heavy.GetAtoms()]
    smiles = Chem.MolToSmiles(heavy)
    for _ in range(4):  # writing is not always idempotent: read back until the text stays
        source = [source[i] for i in heavy.GetPropsAsDict(True, True)["_smilesAtomOutputOrder"]]
        heavy = Chem.MolFromSmiles(smiles)
        again = Chem.MolToSmiles(heavy)
        if again == smiles:
            break
        smiles = again
    else:
        raise LeftOutError("SMILES not canonical")
    hydrogens = [n.GetIdx() for i in source for n in mol.GetAtomWithIdx(i).GetNeighbors() if n.GetAtomicNum() == 1]
    return smiles, source + hydrogens


def label_molecule(candidate: str) -> dict:
    """Make one record: the SMILES of the geometry, its five labels, coordinates in the order of the SMILES (Å)."""
    mol = conformer(candidate)
    try:
        steps = relax(mol)
        check_bonds(mol)
        smiles, order = written(mol)
        numbers = np.array([mol.GetAtomWithIdx(i).GetAtomicNum() for i in order])
        positions = mol.GetConformer().GetPositions()[order]
        positions = np.round(positions - positions.mean(axis=0), 3)  # as stored, so that a relabel agrees
        values = targets(numbers, positions)
    except TBLiteRuntimeError as error:
        raise LeftOutError("SCF failure") from error
    coordinates = [round(float(x), 3) for x in positions.ravel()]
    return {"smiles": smiles, "steps": steps, **values, "coordinates": coordinates}


def whole_lines(path: Path) -> list[dict]:
    """Read the records of a JSONL file; a torn last line is cut off the file."""
    if not path.exists():
        return []
    text = path.read_bytes()
    end = text.rfind(b"\n") + 1
    if end != len(text):
        with path.open("r+b") as file:
            file.truncate(end)
    return [json.loads(line) for line in text[:end].splitlines()]


if __name__ == "__main__":
    RDLogger.DisableLog("rdApp.warning")
    done = {record["candidate"] for record in whole_lines(LABELS)}
    with LABELS.open("a") as file:
        for candidate in track([smiles for smiles in CANDIDATES.read_text().split() if smiles not in done]):
            try:
                record = {"status": "ok", **label_molecule(candidate)}
            except LeftOutError as reason:
                record = {"status": str(reason)}
            file.write(json.dumps({"candidate": candidate, **record}) + "\n")
            file.flush()
