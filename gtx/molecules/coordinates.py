"""Coordinates onto molecules, and hydrogen atoms off them."""

from __future__ import annotations

import numpy as np
from rdkit import Chem
from rdkit.Geometry import Point3D

from gtx.molecules.reading import MoleculeError

_RADIUS = Chem.GetPeriodicTable().GetRcovalent  # Å; 0 of an unknown element
_SHORTEST, _LONGEST = 0.55, 1.6  # sums of covalent radii; a geminal distance has 1.6 and more


def with_coordinates(mol: Chem.Mol, coordinates: np.ndarray) -> Chem.Mol:
    """Return a copy of `mol` in the form that has as many atoms as there are coordinates, with these as its conformer.

    Args:
        mol: as it was read, hydrogen atoms of the text included.
        coordinates: flat or `[k, 3]` in Å; k is the number of atoms of `mol`, of `mol` without hydrogen atoms, or of
            `mol` and the hydrogens that RDKit's `AddHs` appends.

    Raises:
        MoleculeError: k is none of these, a coordinate is not finite, or bonded atoms are nowhere near a bond's length
            apart.
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


def without_hydrogens(mol: Chem.Mol) -> tuple[Chem.Mol, list[int]]:
    """`mol` with its hydrogen atoms made implicit where they can be, and its atoms' numbers in `mol`."""
    for atom in mol.GetAtoms():
        atom.SetIntProp("_node", atom.GetIdx())
    bare = Chem.RemoveHs(mol)
    return bare, [atom.GetIntProp("_node") for atom in bare.GetAtoms()]


def with_given_hydrogens(bare: Chem.Mol, given: Chem.Mol) -> Chem.Mol:
    """`bare` with the hydrogen atoms of `given` at their places, as far as its atoms still have them.

    Where standardising took protons from an atom, the hydrogen atoms farthest from it are left out. Where it gave some,
    these are counted, to be placed later.

    Args:
        bare: what `without_hydrogens(given)` returned, standardised or not.
        given: with a conformer.
    """
    full, points = Chem.RWMol(bare), given.GetConformer().GetPositions()
    conformer = full.GetConformer()
    nodes = {atom.GetIntProp("_node"): atom.GetIdx() for atom in bare.GetAtoms()}
    for node, i in nodes.items():
        near = {atom.GetIdx() for atom in given.GetAtomWithIdx(node).GetNeighbors()} - nodes.keys()
        nearest = sorted(near, key=lambda j, node=node: np.linalg.norm(points[j] - points[node]))
        atom = full.GetAtomWithIdx(i)
        hydrogens = nearest[: atom.GetTotalNumHs()]
        atom.SetNumExplicitHs(max(0, atom.GetNumExplicitHs() - len(hydrogens)))
        for j in hydrogens:
            added = full.AddAtom(Chem.Atom(1))
            full.AddBond(i, added, Chem.BondType.SINGLE)
            conformer.SetAtomPosition(added, Point3D(*points[j].tolist()))
    full.UpdatePropertyCache(strict=False)
    return full.GetMol()
