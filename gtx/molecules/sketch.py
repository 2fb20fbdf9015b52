"""Drawings: atoms at positions and bonds between them, to an RDKit molecule, and a SMILES to such a drawing."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from rdkit import Chem
from rdkit.Chem import BondDir, BondStereo, BondType, rdDepictor
from rdkit.Geometry import Point3D

from gtx.molecules.graphs import clean_stereo, quietly
from gtx.molecules.reading import MoleculeError, check_graph, read_smiles, shortened

MOST_ATOMS, MOST_BONDS = 200, 300
"""Limits on a drawing."""

_ORDERS = {
    "single": BondType.SINGLE,
    "double": BondType.DOUBLE,
    "triple": BondType.TRIPLE,
    "up": BondType.SINGLE,
    "down": BondType.SINGLE,
    "either": BondType.DOUBLE,
}
KINDS = tuple(_ORDERS)
"""Types of bonds: `up` and `down` are wedges, narrow at the first atom, towards the viewer and away; `either` is a
double bond of unspecified configuration."""

_DIRECTIONS = {"up": BondDir.BEGINWEDGE, "down": BondDir.BEGINDASH, "either": BondDir.EITHERDOUBLE}
_LENGTH = 1.5  # of a bond, as RDKit places atoms
_DECIMALS = 4
_CHARGE = 9


@dataclass(frozen=True)
class SketchAtom:
    """Atom of a drawing: its element, its position in bond lengths (x to the right, y up) and its charge."""

    element: str
    x: float
    y: float
    charge: int = 0


@dataclass(frozen=True)
class SketchBond:
    """Bond of a drawing: the numbers of its two atoms, from 0, and one of `KINDS`."""

    begin: int
    end: int
    kind: str = "single"


@dataclass(frozen=True)
class Sketch:
    """Drawing of a molecule. Hydrogen atoms are not drawn: they fill the valence of each atom."""

    atoms: list[SketchAtom]
    bonds: list[SketchBond]


class ImpossibleAtoms(MoleculeError):
    """Error of atoms, by their numbers, that cannot be as they are drawn."""

    def __init__(self, message: str, atoms: list[int]) -> None:
        super().__init__(message)
        self.atoms = atoms


def read_sketch(sketch: Sketch) -> Chem.Mol:
    """Return the molecule of a drawing, its atoms in the order of the drawing.

    The configuration of centres follows from wedges, that of double bonds from the positions of atoms. A
    `MoleculeError`, whose message continues "the drawing", says that there are no atoms or too many, an unknown
    element, an impossible bond, or, as `ImpossibleAtoms`, atoms with more bonds than they can have.
    """
    with quietly():
        mol = _graph(sketch)
        check_graph(mol)
        problems = [one for one in Chem.DetectChemistryProblems(mol) if one.GetType() == "AtomValenceException"]
        if atoms := [mol.GetAtomWithIdx(one.GetAtomIdx()) for one in problems]:
            bonds = [int(sum(bond.GetBondTypeAsDouble() for bond in atom.GetBonds())) for atom in atoms]
            symbols = [f"{atom.GetSymbol()}{_charge_text(atom.GetFormalCharge())}" for atom in atoms]
            pairs = zip(symbols, bonds, strict=True)
            named = ", ".join(dict.fromkeys(f"{symbol} with {count}" for symbol, count in pairs))
            reason = f"has too many bonds at an atom: {named}; a double bond counts as two"
            raise ImpossibleAtoms(shortened(reason), [atom.GetIdx() for atom in atoms])
        Chem.SanitizeMol(mol)
        Chem.AssignChiralTypesFromBondDirs(mol)
        for bond in mol.GetBonds():
            if bond.GetBondType() == BondType.SINGLE:
                bond.SetBondDir(BondDir.NONE)
        Chem.DetectBondStereochemistry(mol)
        clean_stereo(mol)
    return mol.GetMol()


def sketch_to_smiles(sketch: Sketch) -> tuple[str, list[int]]:
    """Return the SMILES of a drawing, and how many hydrogen atoms each atom has; errors as of `read_sketch`."""
    mol = read_sketch(sketch)
    with quietly():
        return Chem.MolToSmiles(mol), [atom.GetTotalNumHs() for atom in mol.GetAtoms()]


def smiles_to_sketch(smiles: str) -> Sketch:
    """Return a drawing of a molecule, from which `sketch_to_smiles` makes the same molecule again.

    A `MoleculeError` says that it cannot be read, is too large, or has what a drawing cannot show, such as an isotope.
    """
    read = read_smiles(smiles)
    _check_size(read.GetNumAtoms(), read.GetNumBonds())
    with quietly():
        expected, mol = Chem.MolToSmiles(read), Chem.Mol(read)
    Chem.KekulizeIfPossible(mol, clearAromaticFlags=True)
    points = np.round(_lay_out(mol), _DECIMALS).tolist()
    atoms = [
        SketchAtom(atom.GetSymbol(), x, y, atom.GetFormalCharge())
        for atom, (x, y) in zip(mol.GetAtoms(), points, strict=True)
    ]
    drawn = []
    for bond in mol.GetBonds():
        if (kind := _kind(bond)) is None:
            raise MoleculeError(f"cannot be drawn: it has a bond of type {str(bond.GetBondType()).lower()}")
        drawn.append(SketchBond(bond.GetBeginAtomIdx(), bond.GetEndAtomIdx(), kind))
    sketch = Sketch(atoms, drawn)
    specified = [bond.GetStereo() != BondStereo.STEREONONE for bond in read_sketch(sketch).GetBonds()]
    unspecified = [bond.GetStereo() in (BondStereo.STEREONONE, BondStereo.STEREOANY) for bond in read.GetBonds()]
    bonds = [
        replace(bond, kind="either") if bond.kind == "double" and specified[i] and unspecified[i] else bond
        for i, bond in enumerate(sketch.bonds)
    ]
    sketch = Sketch(atoms, bonds)
    if (actual := sketch_to_smiles(sketch)[0]) != expected:
        raise MoleculeError(f"cannot be drawn without loss: {expected} would become {actual}")
    return sketch


def outline(smiles: str) -> tuple[list[tuple[str, int, int]], list[tuple[int, int, str]]]:
    """Lay a molecule out for a small picture, in few characters.

    Returns for each atom its label, empty for plain carbon, and its position in tenths of a bond length (x to the
    right, y down); for each bond its two atoms, from 0, and one of `KINDS`, or "other".
    """
    mol = Chem.Mol(read_smiles(smiles))
    _check_size(mol.GetNumAtoms())
    Chem.KekulizeIfPossible(mol, clearAromaticFlags=True)
    points = np.round(_lay_out(mol) * [10, -10]).astype(int).tolist()
    atoms = [(_label(atom), x, y) for atom, (x, y) in zip(mol.GetAtoms(), points, strict=True)]
    return atoms, [(bond.GetBeginAtomIdx(), bond.GetEndAtomIdx(), _kind(bond) or "other") for bond in mol.GetBonds()]


def _lay_out(mol: Chem.Mol) -> np.ndarray:
    """Place the atoms of a molecule, `[n, 2]` in bond lengths, and set the wedges of its bonds."""
    with quietly():
        rdDepictor.Compute2DCoords(mol)
        Chem.WedgeMolBonds(mol, mol.GetConformer())
    return mol.GetConformer().GetPositions()[:, :2] / _LENGTH


def _kind(bond: Chem.Bond) -> str | None:
    """Return which of `KINDS` a bond is, wedges included; None for any other type."""
    kinds = {BondType.SINGLE: "single", BondType.DOUBLE: "double", BondType.TRIPLE: "triple"}
    wedges = {BondDir.BEGINWEDGE: "up", BondDir.BEGINDASH: "down"}
    return wedges.get(bond.GetBondDir(), kinds.get(bond.GetBondType()))


def _label(atom: Chem.Atom) -> str:
    isotope, charge, hydrogens = atom.GetIsotope(), atom.GetFormalCharge(), atom.GetTotalNumHs()
    if atom.GetSymbol() == "C" and not isotope and not charge and atom.GetDegree():
        return ""
    several = f"H{hydrogens if hydrogens > 1 else ''}" if hydrogens else ""
    return f"{isotope or ''}{atom.GetSymbol()}{several}{_charge_text(charge).replace('-', '−')}"


def _charge_text(charge: int) -> str:
    size = abs(charge) if abs(charge) > 1 else ""
    return f"{size}{'+' if charge > 0 else '-'}" if charge else ""


def _check_size(atoms: int, bonds: int = 0) -> None:
    if not atoms:
        raise MoleculeError("has no atoms")
    if atoms > MOST_ATOMS:
        raise MoleculeError(f"has {atoms} atoms; a drawing may have {MOST_ATOMS}")
    if bonds > MOST_BONDS:
        raise MoleculeError(f"has {bonds} bonds; a drawing may have {MOST_BONDS}")


def _graph(sketch: Sketch) -> Chem.RWMol:
    """Build the atoms and bonds as drawn; valences are not checked."""
    _check_size(len(sketch.atoms), len(sketch.bonds))
    mol, count = Chem.RWMol(), len(sketch.atoms)
    places = Chem.Conformer(count)
    for i, drawn in enumerate(sketch.atoms):
        try:
            atom = Chem.Atom(drawn.element)
        except RuntimeError:
            raise MoleculeError(shortened(f"has an atom {drawn.element!r}, which is no element")) from None
        if abs(drawn.charge) > _CHARGE:
            raise MoleculeError(f"has an atom {drawn.element} of charge {drawn.charge:.9g}; the limit is {_CHARGE}")
        if not (math.isfinite(drawn.x) and math.isfinite(drawn.y)):
            raise MoleculeError(f"has an atom at ({drawn.x}, {drawn.y}), which is no place")
        atom.SetFormalCharge(drawn.charge)
        mol.AddAtom(atom)
        places.SetAtomPosition(i, Point3D(drawn.x, drawn.y, 0.0))
    for number, bond in enumerate(sketch.bonds):
        begin, end, kind = bond.begin, bond.end, bond.kind
        if not (0 <= begin < count and 0 <= end < count) or begin == end or mol.GetBondBetweenAtoms(begin, end):
            expected = f"expected two of {count}, joined once"
            raise MoleculeError(f"has a bond {number} from atom {begin} to atom {end}: {expected}")
        if kind not in KINDS:
            raise MoleculeError(shortened(f"has a bond {number} of kind {kind!r}: expected {', '.join(KINDS)}"))
        mol.AddBond(begin, end, _ORDERS[kind])
        added = mol.GetBondWithIdx(number)
        added.SetBondDir(_DIRECTIONS.get(kind, BondDir.NONE))
        if kind == "either":
            added.SetStereo(BondStereo.STEREOANY)
    mol.AddConformer(places)
    return mol
