"""Stereochemistry that does not depend on how the molecule was written: CIP labels, asked of a canonical form."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from rdkit import Chem
from rdkit.Chem import BondStereo, ChiralType, rdCIPLabeler, rdqueries

LABEL = "_CIPCode"
"""RDKit's property of atoms and bonds that holds their label."""

UNDECIDED = "?"
"""The label of a centre or double bond whose configuration was given but could not be named."""

_MAX_ITERATIONS = 100_000  # of the labeller: about 0.1 s; most molecules need fewer than 10,000
_MAX_SYMMETRIES = 500
_TAGGED = rdqueries.HasChiralTagQueryAtom()
_NO_STEREO = (BondStereo.STEREONONE, BondStereo.STEREOANY)


class _Elements(NamedTuple):
    """Stereocentres and stereo bonds, by index."""

    atoms: list[int]
    bonds: list[int]


@contextmanager
def legacy_perception() -> Iterator[None]:
    """Within, RDKit reads and writes with its older stereo perception, whatever the caller's setting.

    The newer one (2026.09) forgets centres of symmetric rings, such as those of a pentahalocyclopentane, and which
    ones depends on the order of atoms.
    """
    before = Chem.GetUseLegacyStereoPerception()
    Chem.SetUseLegacyStereoPerception(True)
    try:
        yield
    finally:
        Chem.SetUseLegacyStereoPerception(before)


def label_stereo(mol: Chem.Mol) -> str:
    """Label stereocentres R, S, r, s and double bonds E, Z in place; return the canonical isomeric SMILES.

    The rules are those of Hanson et al. (2018, 10.1021/acs.jcim.8b00324) as in RDKit's `rdCIPLabeler`. Where branches
    differ in nothing but their own stereochemistry (inositols, 1,4-disubstituted cyclohexanes, meso compounds), the
    labeller's answer can depend on the order of atoms and bonds, so it is asked about one canonical form instead.
    What stays too symmetric for that is labelled `UNDECIDED`.
    """
    with legacy_perception():
        return _labelled(mol)


def _labelled(mol: Chem.Mol) -> str:
    smiles = Chem.MolToSmiles(mol)
    elements = _stereo_elements(mol, smiles)
    if not any(elements):
        return smiles
    if _forget_ring_stereo(mol, elements.atoms):
        smiles = Chem.MolToSmiles(mol)
    dependent = _dependent(mol, elements)
    if not any(dependent):
        _label(mol, elements)
        return smiles
    text, order = _canonical_form(mol)
    form = _read(text)
    if form is None or form.GetNumAtoms() != len(order):
        _label(mol, _Elements(*(sorted(set(a) - set(d)) for a, d in zip(elements, dependent, strict=True))))
        _mark(mol, dependent)
        return smiles
    _label(form, _stereo_elements(form, text))
    copy_labels(form, mol, order)
    return text


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


def _stereo_elements(mol: Chem.Mol, smiles: str) -> _Elements:
    """Those of `mol`; its SMILES spares the search in most molecules."""
    atoms = [atom.GetIdx() for atom in mol.GetAtomsMatchingQuery(_TAGGED)] if "@" in smiles else []
    bonds = range(mol.GetNumBonds()) if "/" in smiles else ()
    return _Elements(atoms, [k for k in bonds if mol.GetBondWithIdx(k).GetStereo() not in _NO_STEREO])


def _forget_ring_stereo(mol: Chem.Mol, centres: list[int]) -> bool:
    """Drop RDKit's notes on which centres of a ring go together, if there are any.

    By these the writer inverts all centres of a ring at once, which is right for pairs and wrong in chiro-inositol.
    """
    noted = [atom for atom in map(mol.GetAtomWithIdx, centres) if atom.HasProp("_ringStereoAtoms")]
    for atom in noted:
        atom.ClearProp("_ringStereoAtoms")
    return bool(noted)


def _dependent(mol: Chem.Mol, elements: _Elements) -> _Elements:
    """The centres and double bonds with two branches that are alike but for stereochemistry."""
    if len(elements.atoms) + len(elements.bonds) < 2:
        return _Elements([], [])
    rank = list(Chem.CanonicalRankAtoms(_flat(mol), breakTies=False))

    def alike(atom: Chem.Atom, besides: int = -1) -> bool:
        branches = [rank[n.GetIdx()] for n in atom.GetNeighbors() if n.GetIdx() != besides]
        return len(set(branches)) < len(branches)

    def alike_at_an_end(bond: Chem.Bond) -> bool:
        begin, end = bond.GetBeginAtom(), bond.GetEndAtom()
        return alike(begin, end.GetIdx()) or alike(end, begin.GetIdx())

    return _Elements(
        [i for i in elements.atoms if alike(mol.GetAtomWithIdx(i))],
        [k for k in elements.bonds if alike_at_an_end(mol.GetBondWithIdx(k))],
    )


def _canonical_form(mol: Chem.Mol) -> tuple[str, list[int]]:
    """The least SMILES over all ways to number the flat molecule canonically, and `mol`'s atoms in its order.

    Both are empty if there are too many ways.
    """
    flat = _flat(mol)
    rank = list(Chem.CanonicalRankAtoms(flat))
    symmetries = flat.GetSubstructMatches(flat, uniquify=False, maxMatches=_MAX_SYMMETRIES)
    if len(symmetries) == _MAX_SYMMETRIES:
        return "", []

    def written(image: tuple[int, ...]) -> tuple[str, list[int]]:
        order = sorted(range(len(rank)), key=lambda i: rank[image[i]])
        numbered = Chem.RenumberAtoms(mol, order)
        numbered.SetIntProp("_StereochemDone", 1)  # or writing would perceive stereochemistry anew
        text = Chem.MolToSmiles(numbered, canonical=False)
        return text, [order[i] for i in numbered.GetPropsAsDict(True, True)["_smilesAtomOutputOrder"]]

    return min(map(written, symmetries))


def _read(text: str) -> Chem.Mol | None:
    params = Chem.SmilesParserParams()
    params.removeHs = False
    return Chem.MolFromSmiles(text, params) if text else None


def _label(mol: Chem.Mol, elements: _Elements) -> None:
    if not any(elements):
        return  # two empty lists would mean everything
    try:
        rdCIPLabeler.AssignCIPLabels(mol, *elements, maxRecursiveIterations=_MAX_ITERATIONS)
    except RuntimeError:  # too many iterations; which labels were found by then depends on the order of atoms
        _mark(mol, elements)
    else:
        _mark(mol, _Elements([i for i in elements.atoms if _not_tetrahedral(mol.GetAtomWithIdx(i))], []))


def _mark(mol: Chem.Mol, elements: _Elements) -> None:
    for i in elements.atoms:
        mol.GetAtomWithIdx(i).SetProp(LABEL, UNDECIDED)
    for k in elements.bonds:
        mol.GetBondWithIdx(k).SetProp(LABEL, UNDECIDED)


def _not_tetrahedral(atom: Chem.Atom) -> bool:
    return atom.GetChiralTag() not in (ChiralType.CHI_TETRAHEDRAL_CW, ChiralType.CHI_TETRAHEDRAL_CCW)


def _flat(mol: Chem.Mol) -> Chem.Mol:
    flat = Chem.Mol(mol)
    Chem.RemoveStereochemistry(flat)
    return flat
