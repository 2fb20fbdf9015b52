"""Coordinates of atoms: read onto molecules, or made by embedding; and hydrogen atoms removed and put back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from rdkit import Chem
from rdkit.Chem import rdDistGeom, rdForceFieldHelpers
from rdkit.Geometry import Point3D

from gtx.molecules.graphs import without_hydrogens
from gtx.molecules.reading import MoleculeError, read_smiles

_RADIUS = Chem.GetPeriodicTable().GetRcovalent  # Å; 0 of an unknown element
_SHORTEST, _LONGEST = 0.55, 1.6  # sums of covalent radii; a geminal distance has 1.6 and more


def with_coordinates(mol: Chem.Mol, coordinates: np.ndarray) -> Chem.Mol:
    """Return a copy of `mol` in the form that has as many atoms as there are coordinates, with these as its conformer.

    The coordinates, flat or `[k, 3]` in Å, are those of the atoms of `mol`, of `mol` without hydrogen atoms, or of
    `mol` and the hydrogens that RDKit's `AddHs` appends. A `MoleculeError` says that k is none of these numbers, that
    one is not finite, or that bonded atoms are nowhere near a bond's length apart.
    """
    flat = np.asarray(coordinates, dtype=np.float64).ravel()
    if len(flat) % 3 or not np.isfinite(flat).all():
        raise MoleculeError(f"expected coordinates as finite numbers, three per atom; {len(flat)} numbers came")
    points = flat.reshape(-1, 3)
    forms = {form.GetNumAtoms(): form for form in (Chem.AddHs(mol), Chem.RemoveHs(mol), Chem.Mol(mol))}
    if len(points) not in forms:
        expected = " or ".join(map(str, sorted(forms)))
        raise MoleculeError(f"coordinates for {len(points)} atoms came; the molecule has {expected}")
    form = forms[len(points)]
    _check_bonds(form, points)
    conformer = Chem.Conformer(len(points))
    for i, point in enumerate(points.tolist()):
        conformer.SetAtomPosition(i, Point3D(*point))
    conformer.Set3D(True)
    form.RemoveAllConformers()
    form.AddConformer(conformer)
    return form


def _check_bonds(mol: Chem.Mol, points: np.ndarray) -> None:
    """Raise a `MoleculeError` that names two bonded atoms whose distance is no bond's, as in another order of atoms."""
    for bond in mol.GetBonds():
        ends = bond.GetBeginAtom(), bond.GetEndAtom()
        radii = [_RADIUS(atom.GetAtomicNum()) for atom in ends]
        (i, one), (j, other) = sorted((atom.GetIdx(), atom.GetSymbol()) for atom in ends)
        distance, usual = np.linalg.norm(points[i] - points[j]), sum(radii)
        if all(radii) and not _SHORTEST * usual <= distance <= _LONGEST * usual:
            raise MoleculeError(
                f"atoms {i} ({one}) and {j} ({other}), counted from 0, are bonded and {distance:.2f} Å apart, expected "
                f"{_SHORTEST * usual:.2f} to {_LONGEST * usual:.2f}: coordinates must be in Å and in the order of the "
                "text's atoms, hydrogens that it does not name last"
            )


def restore_hydrogens(bare: Chem.Mol, original: Chem.Mol) -> Chem.Mol:
    """Add hydrogen atoms at their coordinates in the original molecule, as far as the atoms still have them.

    Where standardising removed protons from an atom of `without_hydrogens(original)`, the hydrogen atoms farthest from
    it are left out. Protons that it added stay implicit.
    """
    full, points = Chem.RWMol(bare), original.GetConformer().GetPositions()
    conformer = full.GetConformer()
    nodes = {atom.GetIntProp("_node"): atom.GetIdx() for atom in bare.GetAtoms()}
    for node, i in nodes.items():
        attached = _neighbours(original, node) - nodes.keys()
        distances = {j: float(np.linalg.norm(points[j] - points[node])) for j in attached}
        atom = full.GetAtomWithIdx(i)
        hydrogens = sorted(distances, key=distances.__getitem__)[: atom.GetTotalNumHs()]
        atom.SetNumExplicitHs(max(0, atom.GetNumExplicitHs() - len(hydrogens)))
        for j in hydrogens:
            added = full.AddAtom(Chem.Atom(1))
            full.AddBond(i, added, Chem.BondType.SINGLE)
            conformer.SetAtomPosition(added, Point3D(*points[j].tolist()))
    full.UpdatePropertyCache(strict=False)
    return full.GetMol()


# --- Conformers of a molecule that came without coordinates, the same however the molecule was written.

CONFORMER_VERSION = 1
"""Raised whenever the same molecule would get another conformer."""

LARGEST = 500
"""Atoms, hydrogens included, of the largest molecule embedded: the cost grows with the cube, and no clock stops it."""

_SEED = 2015
_ATTEMPTS = 20  # from either start; what ends a vain search, as a clock is not the same twice
_SECONDS = 10  # for either start; RDKit looks at the clock between attempts
_STEPS = 500  # of minimisation


class Conformer(NamedTuple):
    """Conformer of a molecule: the coordinates of its n atoms in space.

    Attributes:
        positions: coordinates of the atoms in Å, float32 `[n, 3]`; NaN where unknown.
        warnings: reason for unknown coordinates, and a note if a force field other than MMFF94 was used.
    """

    positions: np.ndarray
    warnings: tuple[str, ...]


def make_conformer(mol: Chem.Mol, number: int = 0) -> Conformer:
    """Generate a conformer of a molecule by ETKDGv3, minimised in the force field MMFF94.

    The conformer depends only on the canonical isomeric SMILES, to which all hydrogens are added. The geometry is
    embedded from a fixed seed and minimised for at most 500 steps. A stereocentre or double bond of unknown
    configuration gets a configuration. If MMFF94 lacks parameters, UFF is used; if UFF lacks parameters too, the
    embedded geometry is not minimised. A warning reports both cases.

    The relative positions of the components of a salt or mixture are unknown. Only the largest component is embedded,
    and the atoms of the others have no positions.

    Source: Riniker & Landrum 2015 (10.1021/acs.jcim.5b00654), Wang et al. 2020 (10.1021/acs.jcim.0c00025); Halgren
    1996, in RDKit by Tosco et al. 2014 (10.1186/s13321-014-0037-3).

    Args:
        mol: molecule with or without hydrogen atoms; an existing conformer is ignored.
        number: number of the conformer, which determines the seed; small and stiff molecules have the same conformer
            for each number.

    Returns:
        Positions of the atoms of `mol`, in order. If no conformer can be made, all positions are NaN, and no error is
        raised.
    """
    positions = np.full((mol.GetNumAtoms(), 3), np.nan, np.float32)
    bare, number_of = without_hydrogens(mol)
    smiles = Chem.MolToSmiles(bare)
    output_order = bare.GetPropsAsDict(True, True)["_smilesAtomOutputOrder"]
    order = [number_of[i] for i in output_order]  # atoms of mol along the SMILES
    try:
        parts = [read_smiles(part, remove_hydrogens=False) for part in smiles.split(".")]
        sizes = [part.GetNumAtoms() for part in parts]
        first = sizes.index(max(sizes))
        full = Chem.AddHs(parts[first])
        warnings = _embed(full, _SEED + number)
    except MoleculeError as reason:
        return Conformer(positions, (f"no conformer could be made: {reason}; distances are unknown",))
    points = full.GetConformer().GetPositions()
    if len(parts) > 1:
        warnings.append(f"one of {len(parts)} parts has a conformer; distances to and in the others are unknown")
    for i, atom in enumerate(order[sum(sizes[:first]) :][: sizes[first]]):
        positions[atom] = points[i]
        removed = _neighbours(mol, atom) - set(order)
        added = [j for j in _neighbours(full, i) if j >= sizes[first]]
        for hydrogen, j in zip(sorted(removed), sorted(added), strict=False):  # mol may have none
            positions[hydrogen] = points[j]
    return Conformer(positions, tuple(warnings))


def _neighbours(mol: Chem.Mol, atom: int) -> set[int]:
    return {neighbour.GetIdx() for neighbour in mol.GetAtomWithIdx(atom).GetNeighbors()}


def _embed(mol: Chem.Mol, seed: int) -> list[str]:
    """Embed `mol`, which has all its hydrogens, and return warnings; `MoleculeError` if that fails."""
    if (size := mol.GetNumAtoms()) > LARGEST:
        raise MoleculeError(f"it has {size} atoms with its hydrogens; the limit is {LARGEST}")
    for anywhere in (False, True):  # atoms placed anywhere is slower, and finds what the usual start does not
        parameters = rdDistGeom.ETKDGv3()
        settings = {"randomSeed": seed, "useRandomCoords": anywhere, "maxIterations": _ATTEMPTS}
        for name, value in (settings | {"timeout": _SECONDS, "trackFailures": True}).items():
            setattr(parameters, name, value)
        if rdDistGeom.EmbedMolecule(mol, parameters) == 0:
            break
    else:
        raise MoleculeError(_reason(parameters.GetFailureCounts()))
    warnings = _minimise(mol) if size > 1 else []
    if not np.isfinite(mol.GetConformer().GetPositions()).all():
        raise MoleculeError("minimising it gave no finite numbers")
    return warnings


def _reason(counts: Sequence[int]) -> str:
    causes = {rdDistGeom.EmbedFailureCauses.values[i]: count for i, count in enumerate(counts)}
    if causes[rdDistGeom.EmbedFailureCauses.EXCEEDED_TIMEOUT]:
        return f"ETKDG took longer than {_SECONDS} s"
    most = max(causes, key=causes.__getitem__)
    return f"ETKDG gave up after {2 * _ATTEMPTS} attempts, most often at: {most.name.replace('_', ' ').lower()}"


def _minimise(mol: Chem.Mol) -> list[str]:
    if rdForceFieldHelpers.MMFFHasAllMoleculeParams(mol):
        rdForceFieldHelpers.MMFFOptimizeMolecule(mol, maxIters=_STEPS)
        return []
    if rdForceFieldHelpers.UFFHasAllMoleculeParams(mol):
        rdForceFieldHelpers.UFFOptimizeMolecule(mol, maxIters=_STEPS)
        return ["the conformer is minimised in UFF, as MMFF94 lacks parameters"]
    return ["the conformer is not minimised, as MMFF94 and UFF lack parameters"]
