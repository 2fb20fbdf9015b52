"""Substructures of a molecule, ever smaller: what can be peeled off its rim, and what is left as a molecule."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rdkit import Chem, rdBase

Atoms = frozenset[int]


def peelings(mol: Chem.Mol, atoms: Atoms) -> list[Atoms]:
    """The connected substructures that are left when an end of a chain, or a whole ring, is taken off.

    Rings are those of the smallest set; of a ring that shares atoms with another that is still whole, its own atoms go.

    Args:
        mol: the molecule.
        atoms: a connected substructure of it.
    """
    rings = [ring for ring in map(frozenset, mol.GetRingInfo().AtomRings()) if ring <= atoms]
    ends = (frozenset({atom}) for atom in atoms.difference(*rings))
    own = (ring.difference(*(other for other in rings if other is not ring)) for ring in rings)
    left = dict.fromkeys(atoms - part for part in (*ends, *own) if part)
    return [rest for rest in left if rest and _connected(mol, rest)]


def _connected(mol: Chem.Mol, atoms: Atoms) -> bool:
    reached, edge = set(), {min(atoms)}
    while edge:
        reached |= edge
        edge = {
            near.GetIdx() for atom in edge for near in mol.GetAtomWithIdx(atom).GetNeighbors() if near.GetIdx() in atoms
        } - reached
    return len(reached) == len(atoms)


def as_molecule(mol: Chem.Mol, atoms: Iterable[int]) -> str | None:
    """The SMILES of a substructure, hydrogens in place of the bonds that were cut; None where it is no molecule."""
    atoms = set(atoms)
    with rdBase.BlockLogs():
        for cut in _cuts(mol, atoms):
            try:
                Chem.SanitizeMol(cut)
            except Chem.MolSanitizeException:
                continue
            return Chem.MolToSmiles(cut)
    return None


def _cuts(mol: Chem.Mol, atoms: set[int]) -> Iterator[Chem.RWMol]:
    """With aromatic bonds as they are, which keeps rings aromatic; then as single and double ones."""
    yield _cut(Chem.RWMol(mol), atoms)
    kekulised = Chem.RWMol(mol)
    Chem.Kekulize(kekulised, clearAromaticFlags=True)
    yield _cut(kekulised, atoms)


def _cut(mol: Chem.RWMol, atoms: set[int]) -> Chem.RWMol:
    for bond in list(mol.GetBonds()):
        ends = bond.GetBeginAtom(), bond.GetEndAtom()
        within = [end.GetIdx() in atoms for end in ends]
        if any(within) and not all(within):
            kept = ends[within.index(True)]
            order = 1 if bond.GetIsAromatic() else int(bond.GetBondTypeAsDouble())
            kept.SetNumExplicitHs(kept.GetNumExplicitHs() + order)
            kept.SetChiralTag(Chem.ChiralType.CHI_UNSPECIFIED)
    for atom in sorted(set(range(mol.GetNumAtoms())) - atoms, reverse=True):
        mol.RemoveAtom(atom)
    return mol
