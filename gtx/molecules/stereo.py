"""Stereochemistry that does not depend on how the molecule was written: CIP labels."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rdkit import Chem, rdBase
from rdkit.Chem import BondStereo, ChiralType, rdCIPLabeler, rdqueries

LABEL = "_CIPCode"
"""RDKit's property of atoms and bonds that holds their label."""

UNDECIDED = "?"
"""The label of a centre or double bond whose configuration was given but could not be named."""

_MAX_ITERATIONS = 100_000  # about 0.1 s; most molecules need fewer than 10,000
_MAX_VISITS = 30_000_000  # iterations times atoms: what an iteration keeps in memory grows with the molecule
_TAGGED = rdqueries.HasChiralTagQueryAtom()
_TETRAHEDRAL_OR_NONE = (ChiralType.CHI_UNSPECIFIED, ChiralType.CHI_TETRAHEDRAL_CW, ChiralType.CHI_TETRAHEDRAL_CCW)
_NO_STEREO = (BondStereo.STEREONONE, BondStereo.STEREOANY)


@contextmanager
def legacy_perception() -> Iterator[None]:
    """Within, RDKit reads and writes with its older stereo perception, whatever the caller's setting.

    The newer one (2026.09) forgets centres of symmetric rings, such as those of a pentafluorocyclopentane, and which
    ones depends on the order of atoms.
    """
    before = Chem.GetUseLegacyStereoPerception()
    Chem.SetUseLegacyStereoPerception(True)
    try:
        yield
    finally:
        Chem.SetUseLegacyStereoPerception(before)


@contextmanager
def quietly() -> Iterator[None]:
    """Within, RDKit is silent and reads and writes with `legacy_perception`."""
    with rdBase.BlockLogs(), legacy_perception():
        yield


def label_stereo(mol: Chem.Mol) -> None:
    """Label stereocentres R, S, r, s and stereo bonds E, Z (axes M, P) in place, in the property `LABEL`.

    The rules are those of Hanson et al. (2018, 10.1021/acs.jcim.8b00324) as in RDKit's `rdCIPLabeler`. Where they would
    take too long, all are labelled `UNDECIDED`.

    Args:
        mol: read with `legacy_perception`, as `read_smiles` and `read_molblock` do.
    """
    try:
        most = min(_MAX_ITERATIONS, max(1, _MAX_VISITS // max(1, mol.GetNumAtoms())))
        rdCIPLabeler.AssignCIPLabels(mol, maxRecursiveIterations=most)
    except RuntimeError:  # too many iterations; which labels were found by then depends on the order of atoms
        bonds = [bond for bond in mol.GetBonds() if bond.GetStereo() not in _NO_STEREO]
        for owner in (*mol.GetAtomsMatchingQuery(_TAGGED), *bonds):
            owner.SetProp(LABEL, UNDECIDED)


def label_of(owner: Chem.Atom | Chem.Bond) -> str:
    """The label that `label_stereo` gave; else "none", or `UNDECIDED` for a centre that is not tetrahedral."""
    if owner.HasProp(LABEL):
        return owner.GetProp(LABEL)
    return "none" if isinstance(owner, Chem.Bond) or owner.GetChiralTag() in _TETRAHEDRAL_OR_NONE else UNDECIDED


def finish(mol: Chem.Mol) -> None:
    """Drop centres that are none in a molecule that was read without looking, as RDKit does when it reads a SMILES."""
    Chem.AssignStereochemistry(mol, cleanIt=True, force=True, flagPossibleStereoCenters=True)


def copy_labels(source: Chem.Mol, target: Chem.Mol, order: list[int]) -> None:
    """Give `target` the labels of `source` and no others; atom i of `source` is atom `order[i]` of `target`."""
    for atom in target.GetAtoms():
        atom.ClearProp(LABEL)
    for atom in source.GetAtoms():
        if atom.HasProp(LABEL):
            target.GetAtomWithIdx(order[atom.GetIdx()]).SetProp(LABEL, atom.GetProp(LABEL))
    for bond in source.GetBonds():
        if bond.HasProp(LABEL):
            ends = order[bond.GetBeginAtomIdx()], order[bond.GetEndAtomIdx()]
            target.GetBondBetweenAtoms(*ends).SetProp(LABEL, bond.GetProp(LABEL))
