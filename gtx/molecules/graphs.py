"""Molecules in arrays: codes of atoms and bonds, their numbering and stereochemistry."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from rdkit import Chem, rdBase
from rdkit.Chem import BondStereo, ChiralType, rdCIPLabeler, rdqueries

# --- Featurised molecules: one in arrays, and many concatenated.


class Molecule(NamedTuple):
    """One featurised molecule: integer codes of its n atoms and m bonds, descriptors and, if known, coordinates.

    Attributes:
        atoms: codes of atoms, uint8 `[n, A]`, one code per atom and column of `ATOM_FEATURE_VALUES`.
        bonds: sender and receiver of every bond in both directions, int32 `[2, 2m]`.
        bond_codes: codes of bonds, uint8 `[2m, F]`, one code per directed bond and column of `BOND_FEATURE_VALUES`.
        positions: coordinates in Å, float32 `[n, 3]`, NaN for atoms without a conformer; or None.
        descriptors: descriptors, float32 `[D]`, NaN for a descriptor that could not be computed.
        smiles: canonical isomeric SMILES; None if not requested.
        warnings: messages for the user.
    """

    atoms: np.ndarray
    bonds: np.ndarray
    bond_codes: np.ndarray
    positions: np.ndarray | None
    descriptors: np.ndarray
    smiles: str | None
    warnings: tuple[str, ...]


class FeaturisedMolecules(NamedTuple):
    """Arrays of m featurised molecules (N atoms, E directed bonds in all), read from n texts with errors and warnings.

    Arrays are as in `gtx.data.MoleculeStore`; `smiles`, `errors` and `warnings` have one entry per text.
    """

    atoms: np.ndarray  # uint8 [N, A]
    bonds: np.ndarray  # int32 [2, E], numbered within each molecule
    bond_codes: np.ndarray  # uint8 [E, F]
    descriptors: np.ndarray  # float32 [m, D]
    atom_counts: np.ndarray  # int64 [m]
    bond_counts: np.ndarray  # int64 [m]
    positions: np.ndarray | None  # float32 [N, 3] in Å, NaN where unknown
    smiles: list[str | None]  # canonical; None where the text could not be read, or none was asked for
    errors: list[str | None]  # why it could not be read
    warnings: list[tuple[str, ...]]
    component_sizes: np.ndarray | None = None  # int64 [m, K], atoms of each component; None for single molecules

    @classmethod
    def of(cls, molecule: Molecule) -> FeaturisedMolecules:
        """Make a batch of one molecule."""
        atoms, bonds, bond_codes, positions, descriptors, smiles, warnings = molecule
        counts = np.array([len(atoms)]), np.array([len(bond_codes)])
        return cls(atoms, bonds, bond_codes, descriptors[None], *counts, positions, [smiles], [None], [warnings])

    @classmethod
    def join(cls, chunks: Sequence[FeaturisedMolecules]) -> FeaturisedMolecules:
        """Concatenate the outcomes of chunks of texts, one or more."""
        joined: list[Any] = []
        for name, *columns in zip(cls._fields, *chunks, strict=True):
            if isinstance(columns[0], list):
                joined.append(list(chain.from_iterable(columns)))
            else:
                arrays = [column for column in columns if column is not None]
                joined.append(np.concatenate(arrays, axis=1 if name == "bonds" else 0) if arrays else None)
        return cls(*joined)

    @property
    def molecule(self) -> Molecule:
        """Single molecule of a batch of one."""
        (values,), (smiles,), (warnings,) = self.descriptors, self.smiles, self.warnings
        return Molecule(self.atoms, self.bonds, self.bond_codes, self.positions, values, smiles, warnings)


# --- Atoms and bonds as small integer codes, one per column of `ATOM_FEATURE_VALUES` and `BOND_FEATURE_VALUES`.
#
# Code 0 means "other": a value the table does not list. Value i of a column has code i + 1.

ATOM_FEATURE_VALUES: dict[str, tuple[Any, ...]] = {
    "element": tuple(range(1, 119)),
    "charge": tuple(range(-4, 5)),
    "hydrogens": tuple(range(5)),
    "degree": tuple(range(9)),
    "hybridisation": ("S", "SP", "SP2", "SP3", "SP2D", "SP3D", "SP3D2"),
    "aromatic": (False, True),
    "ring": (0, *range(3, 25)),
    "chirality": ("none", "R", "S", "r", "s"),
    "radical": tuple(range(5)),
    "isotope": (False, True),
}
"""Values of each categorical atom feature, such as element or charge; value i has the code i + 1, others have 0.

element: atomic number. charge: formal, in e. hydrogens: attached ones that are not nodes. degree: neighbours that are
nodes. ring: size of the smallest ring through the atom, 0 outside rings. chirality: CIP label. radical: unpaired
electrons. isotope: a mass number is given.
"""

BOND_FEATURE_VALUES: dict[str, tuple[Any, ...]] = {
    "type": ("SINGLE", "DOUBLE", "TRIPLE", "AROMATIC", "DATIVE"),
    "stereo": ("none", "E", "Z", "e", "z", "M", "P", "m", "p"),
    "conjugated": (False, True),
    "ring": (False, True),
}
"""Values of each categorical bond feature, with codes like those of atoms; stereo is the CIP label."""


def atom_code(name: str, value: object) -> int:
    """Return the code of a value in a column of atoms."""
    return _ATOM[ATOM_INDEX[name]].get(value, 0)


def bond_code(name: str, value: object) -> int:
    """Return the code of a value in a column of bonds."""
    return _BOND[BOND_INDEX[name]].get(value, 0)


_ATOM = [{value: code for code, value in enumerate(values, 1)} for values in ATOM_FEATURE_VALUES.values()]
_BOND = [{value: code for code, value in enumerate(values, 1)} for values in BOND_FEATURE_VALUES.values()]
ATOM_INDEX = {name: place for place, name in enumerate(ATOM_FEATURE_VALUES)}
BOND_INDEX = {name: place for place, name in enumerate(BOND_FEATURE_VALUES)}


# --- Names of codes.


def name_code(kind: str, column: int, code: int) -> str:
    """Describe a code, for messages: `element Xe`, `atom charge 3`, `bond type DATIVE`, `atom ring of another kind`."""
    columns = list((ATOM_FEATURE_VALUES if kind == "atom" else BOND_FEATURE_VALUES).items())
    name, values = columns[column % len(columns)]
    where = "" if column < len(columns) else " on the other side"  # of a reaction, which has the columns twice
    if code > len(values):
        return f"{kind} {name} of an atom or bond that one side lacks, or that stays the same"
    if name == "element":
        return f"element {Chem.GetPeriodicTable().GetElementSymbol(values[code - 1]) if code else 'unknown'}{where}"
    return f"{kind} {name} {values[code - 1] if code else 'of another kind'}{where}"


# --- Stereochemistry that does not depend on how the molecule was written: CIP labels.

LABEL = "_CIPCode"
"""RDKit's property of atoms and bonds that holds their label."""

UNNAMED = "stereochemistry that CIP rules could not name is ignored"
"""Warning for a molecule with a label that is `UNDECIDED`."""

UNDECIDED = "?"
"""Label of a centre or double bond whose configuration is specified but could not be named."""

_MAX_ITERATIONS = 100_000  # about 0.1 s; most molecules need fewer than 10,000
_MAX_VISITS = 30_000_000  # iterations times atoms: what an iteration keeps in memory grows with the molecule
_TAGGED = rdqueries.HasChiralTagQueryAtom()
_TETRAHEDRAL_OR_NONE = (ChiralType.CHI_UNSPECIFIED, ChiralType.CHI_TETRAHEDRAL_CW, ChiralType.CHI_TETRAHEDRAL_CCW)
_NO_STEREO = (BondStereo.STEREONONE, BondStereo.STEREOANY)


_LOCK, _SETTINGS = Lock(), list[bool]()  # that of the caller, then of those who came while another was reading


@contextmanager
def quietly() -> Iterator[None]:
    """Suppress RDKit's messages, and let it read and write with its older stereo perception, whatever the caller's
    setting, which comes back when the last thread is done.

    The newer one (2026.09) loses some centres of symmetric rings, such as those of a pentafluorocyclopentane, depending
    on the order of atoms.
    """
    with _LOCK:
        _SETTINGS.append(Chem.GetUseLegacyStereoPerception())
        Chem.SetUseLegacyStereoPerception(True)
    try:
        with rdBase.BlockLogs():
            yield
    finally:
        with _LOCK:
            before = _SETTINGS.pop()
            if not _SETTINGS:
                Chem.SetUseLegacyStereoPerception(before)


def assign_stereo_labels(mol: Chem.Mol) -> None:
    """Label stereocentres (R, S, r, s) and stereo bonds (E, Z; axes M, P), as the RDKit property `LABEL` of a molecule.

    The rules are those of Hanson et al. (2018, 10.1021/acs.jcim.8b00324) as in RDKit's `rdCIPLabeler`. Where they would
    take too long, all are labelled `UNDECIDED`.
    """
    try:
        most = min(_MAX_ITERATIONS, max(1, _MAX_VISITS // max(1, mol.GetNumAtoms())))
        rdCIPLabeler.AssignCIPLabels(mol, maxRecursiveIterations=most)
    except RuntimeError:  # too many iterations; which labels were found by then depends on the order of atoms
        centres: list[Chem.Atom | Chem.Bond] = list(mol.GetAtomsMatchingQuery(_TAGGED))
        centres += [bond for bond in mol.GetBonds() if bond.GetStereo() not in _NO_STEREO]
        for centre in centres:
            centre.SetProp(LABEL, UNDECIDED)


def stereo_label(centre: Chem.Atom | Chem.Bond) -> str:
    """Return the label by `assign_stereo_labels`; else "none", or `UNDECIDED` for a centre that is not tetrahedral."""
    if centre.HasProp(LABEL):
        return centre.GetProp(LABEL)
    return "none" if isinstance(centre, Chem.Bond) or centre.GetChiralTag() in _TETRAHEDRAL_OR_NONE else UNDECIDED


def clean_stereo(mol: Chem.Mol) -> None:
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


# --- The atoms and bonds of an RDKit molecule as codes, column by column.

_ATOM_CODES: dict[str, Callable[[Chem.Atom], object]] = {
    "element": Chem.Atom.GetAtomicNum,
    "charge": Chem.Atom.GetFormalCharge,
    "hydrogens": Chem.Atom.GetTotalNumHs,
    "degree": Chem.Atom.GetDegree,
    "hybridisation": lambda atom: atom.GetHybridization().name,
    "aromatic": Chem.Atom.GetIsAromatic,
    "ring": lambda atom: atom.GetOwningMol().GetRingInfo().MinAtomRingSize(atom.GetIdx()),
    "chirality": stereo_label,
    "radical": Chem.Atom.GetNumRadicalElectrons,
    "isotope": lambda atom: atom.GetIsotope() > 0,
}
_BOND_CODES: dict[str, Callable[[Chem.Bond], object]] = {
    "type": lambda bond: bond.GetBondType().name,
    "stereo": stereo_label,
    "conjugated": Chem.Bond.GetIsConjugated,
    "ring": Chem.Bond.IsInRing,
}


def encode_atoms(mol: Chem.Mol) -> np.ndarray:
    """Encode the atoms, uint8 `[n, len(ATOM_FEATURE_VALUES)]`; chirality is the label of `assign_stereo_labels`."""
    rows = [[atom_code(name, _ATOM_CODES[name](atom)) for name in ATOM_FEATURE_VALUES] for atom in mol.GetAtoms()]
    return np.array(rows, np.uint8).reshape(-1, len(ATOM_FEATURE_VALUES))


def bond_edge_index(mol: Chem.Mol) -> np.ndarray:
    """Return the senders and receivers of the bonds, int32 `[2, 2m]`, both ways of bond k in columns 2k and 2k + 1."""
    ends = [(bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()) for bond in mol.GetBonds()]
    return np.array([way for i, j in ends for way in ((i, j), (j, i))], np.int32).reshape(-1, 2).T


def encode_bonds(mol: Chem.Mol) -> np.ndarray:
    """Encode the directed bonds, uint8 `[2m, len(BOND_FEATURE_VALUES)]`, in the order of `bond_edge_index`."""
    rows = [[bond_code(name, _BOND_CODES[name](bond)) for name in BOND_FEATURE_VALUES] for bond in mol.GetBonds()]
    return np.array(rows, np.uint8).reshape(-1, len(BOND_FEATURE_VALUES)).repeat(2, axis=0)


def without_hydrogens(mol: Chem.Mol) -> tuple[Chem.Mol, list[int]]:
    """Make hydrogen atoms implicit where possible; return the molecule, and the numbers of its atoms in `mol`."""
    for atom in mol.GetAtoms():
        atom.SetIntProp("_node", atom.GetIdx())
    bare = Chem.RemoveHs(mol)
    return bare, [atom.GetIntProp("_node") for atom in bare.GetAtoms()]


class GraphCodes(NamedTuple):
    """Codes of a molecule or of one side of a reaction.

    Attributes:
        bare: the RDKit molecule without hydrogen atoms, with labels of stereochemistry.
        atoms, bonds, bond_codes: as in `Molecule`.
    """

    bare: Chem.Mol
    atoms: np.ndarray
    bonds: np.ndarray
    bond_codes: np.ndarray

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warning that a stereocentre or bond has no label; empty if all have."""
        named = self.atoms[:, ATOM_INDEX["chirality"]].all() and self.bond_codes[:, BOND_INDEX["stereo"]].all()
        return () if named else (UNNAMED,)


def encode_graph(mol: Chem.Mol, hydrogens: bool) -> GraphCodes:
    """Encode a molecule; if it may have `hydrogens` as atoms, its labels are those of the molecule without them."""
    bare, order = without_hydrogens(mol) if hydrogens else (mol, None)
    assign_stereo_labels(bare)
    if order is not None:
        copy_labels(bare, mol, order)
    return GraphCodes(bare, encode_atoms(mol), bond_edge_index(mol), encode_bonds(mol))
