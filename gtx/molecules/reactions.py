"""Reactions: atom-mapped reaction SMILES, read and written, and the codes of their two sides.

The graph is the condensed graph of reaction (Varnek et al. 2005, https://doi.org/10.1007/s10822-005-9008-0; with neural
networks Heid and Green 2022, https://doi.org/10.1021/acs.jcim.1c00975): its atoms are those of both sides, its bonds
those of either side. A molecule beside a reaction, such as a solvent, is a reaction in which nothing changes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from typing import NamedTuple, get_args

import numpy as np
from rdkit import Chem

from gtx.molecules.graphs import (
    ATOM_FEATURE_VALUES,
    ATOM_INDEX,
    BOND_FEATURE_VALUES,
    GraphCodes,
    quietly,
    without_hydrogens,
)
from gtx.molecules.reading import (
    MoleculeError,
    is_blank,
    map_numbers,
    parse_smiles,
    read_smiles,
    shortened,
    split_extension,
)
from gtx.settings import ReactionMode

# --- Reading: the two sides of a reaction, and which atom is which.

SIDES = ("reactants", "products")
AGENTS = "agents over the arrow are left out, see --agents: "
"""Beginning of the warning about agents that the model does not read."""

_ARROW = re.compile(r"(?<!-)>")  # "->" is a dative bond
_KEEP_NUMBERED = Chem.RemoveHsParameters()
_KEEP_NUMBERED.removeMapped = False  # type: ignore[assignment]  # RDKit's stubs type no setting
_KEEP_NUMBERED.updateExplicitCount = True  # type: ignore[assignment]


class Reaction(NamedTuple):
    """Two sides of a reaction.

    Attributes:
        molecules: reactants and products; agents that the model reads are on both sides.
        places: index of each of the n atoms of the graph on both sides, int `[2, n]`; -1 where it is absent.
        agents: the agents over the arrow, which are no part of the graph.
        warnings: messages for the user.
    """

    molecules: tuple[Chem.Mol, Chem.Mol]
    places: np.ndarray
    agents: str = ""
    warnings: tuple[str, ...] = ()


def is_reaction(text: str) -> bool:
    """Return whether a text is a reaction SMILES rather than a molecule."""
    return len(_ARROW.split(split_extension(text.strip())[0])) > 1


def _split(text: str) -> tuple[list[str], str]:
    """Split a reaction SMILES into reactants, agents and products, and its extension; `MoleculeError` if it is none."""
    smiles, extension = split_extension(text.strip())
    parts = [part.strip() for part in _ARROW.split(smiles)]
    if is_blank(smiles):
        raise MoleculeError(f"is no reaction: the text {'stands for an empty cell' if smiles else 'is empty'}")
    if len(parts) != 3:
        raise MoleculeError(f"is no reaction: expected reactants>agents>products, with two >, got {len(parts) - 1}")
    return parts, extension


def join_texts(texts: Sequence[str]) -> str:
    """Join the SMILES of the components of a row to one text; molecules beside a reaction stand over its arrow."""
    if not is_reaction(texts[0]):
        return ".".join(texts)
    before, _, after = _ARROW.split(texts[0])
    return f"{before}>{'.'.join(texts[1:])}>{after}"


def read_sides(text: str) -> tuple[Chem.Mol, ...]:
    """Read the molecule of a SMILES, or the reactants and the products of a reaction, without map numbers."""
    if not is_reaction(text):
        return (read_smiles(text),)
    (reactants, _, products), _ = _split(text)
    return read_smiles(reactants), read_smiles(products)


def read_largest(text: str) -> Chem.Mol:
    """Read the molecule of a SMILES, or the largest reactant of a reaction, as `read_sides`."""
    mol = read_sides(text)[0]
    if not is_reaction(text):
        return mol
    return max(Chem.GetMolFrags(mol, asMols=True), key=lambda one: (one.GetNumHeavyAtoms(), Chem.MolToSmiles(one)))


def list_molecules(text: str) -> list[str]:
    """List the SMILES of the molecules of a reaction, without map numbers; of a molecule its own SMILES."""
    if not is_reaction(text):
        return [text]
    return [smiles for side in read_sides(text) for smiles in Chem.MolToSmiles(side).split(".")]


def read_reaction(text: str, agents: bool = False) -> Reaction:
    """Read an atom-mapped reaction SMILES, `reactants>agents>products`, within `quietly`.

    Atoms with the same map number are the same atom. Hydrogens are atoms where both sides have them with one number;
    all others are counted with their neighbours. An atom without a number, or with a number that only one side has, is
    an atom of that side alone; where that leaves open which atom is which, the reaction is refused. With `agents`,
    those over the arrow are molecules of both sides.
    """
    (reactants, between, products), extension = _split(text)
    before, after = (_read_side(part, side) for part, side in zip((reactants, products), SIDES, strict=True))
    before, after = _without_lone_hydrogens(before, after), _without_lone_hydrogens(after, before)
    places, warnings = _match(before, after)
    if extension:
        warnings.append(f"the extension {shortened(extension)} of the reaction is ignored")
    if between and agents:
        beside = _without_lone_hydrogens(_read_side(between, "agents"), Chem.Mol())
        own = np.arange(beside.GetNumAtoms())
        shifts = np.array([[before.GetNumAtoms()], [after.GetNumAtoms()]])
        before, after = Chem.CombineMols(before, beside), Chem.CombineMols(after, beside)
        Chem.SanitizeMol(before)
        Chem.SanitizeMol(after)
        return Reaction((before, after), np.concatenate([places, own + shifts], 1), "", tuple(warnings))
    if between:
        warnings.append(f"{AGENTS}{shortened(between)}")
    return Reaction((before, after), places, between, tuple(warnings))


def read_unchanged(text: str) -> Reaction:
    """Read a molecule as a reaction in which nothing changes, within `quietly`."""
    mol = parse_smiles(text)
    return Reaction((mol, mol), np.arange(mol.GetNumAtoms()) + np.zeros((2, 1), int))


def _read_side(text: str, side: str) -> Chem.Mol:
    if not text:
        raise MoleculeError(f"is no reaction with two sides: there are no {side}")
    try:
        return parse_smiles(text, remove_hydrogens=False)
    except MoleculeError as reason:
        raise MoleculeError(f"{reason} (in the {side})") from None


def _without_lone_hydrogens(mol: Chem.Mol, other: Chem.Mol) -> Chem.Mol:
    """Make the hydrogens implicit that have no number which the other side has too."""
    shared = set(map_numbers(other))
    for atom, number in zip(mol.GetAtoms(), map_numbers(mol), strict=True):
        atom.SetAtomMapNum(number if number in shared else 0)
    mol = Chem.RemoveHs(mol, _KEEP_NUMBERED)
    for atom in mol.GetAtoms():
        atom.SetAtomMapNum(0)
    return mol


def _match(before: Chem.Mol, after: Chem.Mol) -> tuple[np.ndarray, list[str]]:
    """Match the atoms of two sides by their numbers: places `[2, n]` as in `Reaction`, and warnings."""
    mols, numbers = (before, after), (map_numbers(before), map_numbers(after))
    for side, own in zip(SIDES, numbers, strict=True):
        if twice := sorted(number for number in set(own) if number and own.count(number) > 1):
            raise MoleculeError(f"has the map number {twice[0]} on two atoms of the {side}")
    warnings = []
    if {*numbers[0]} & {*numbers[1]} - {0} and (spectators := _match_spectators(mols, numbers)):
        for number, (i, j) in enumerate(spectators, start=1 + max(*numbers[0], *numbers[1])):
            numbers[0][i] = numbers[1][j] = number
        warnings.append("molecules without map numbers that are on both sides are read as unchanged")
    place = [{number: i for i, number in enumerate(own) if number} for own in numbers]
    pairs = [(place[0][number], place[1][number]) for number in numbers[0] if number in place[1]]
    alone = [[i for i, number in enumerate(numbers[k]) if number not in place[1 - k]] for k in (0, 1)]
    for k, side in enumerate(SIDES):
        bare = [i for i in alone[k] if not numbers[k][i]]
        if bare and alone[1 - k]:
            atom = f"atom {bare[0]} ({mols[k].GetAtomWithIdx(bare[0]).GetSymbol()}) of the {side}, counted from 0,"
            other = f"the {SIDES[1 - k]} have {len(alone[1 - k])} without a partner"
            raise MoleculeError(f"lacks atom map numbers: {atom} has none, and {other}: which atom becomes which?")
        if bare:
            many = f"{len(bare)} atoms" if len(bare) > 1 else "1 atom"
            warnings.append(f"{many} of the {side} without a map number: read as absent from the {SIDES[1 - k]}")
    for i, j in pairs:
        one, other = before.GetAtomWithIdx(i), after.GetAtomWithIdx(j)
        if one.GetAtomicNum() != other.GetAtomicNum():
            elements = f"{one.GetSymbol()} in the reactants and {other.GetSymbol()} in the products"
            raise MoleculeError(f"has the map number {numbers[0][i]} on {elements}")
    places = [*pairs, *((i, -1) for i in alone[0]), *((-1, j) for j in alone[1])]
    return np.array(places, int).reshape(-1, 2).T, warnings


def _match_spectators(mols: Sequence[Chem.Mol], numbers: Sequence[Sequence[int]]) -> list[tuple[int, int]]:
    """Pair the atoms of molecules without a number that are on both sides, such as a salt."""
    orders: tuple[dict[str, list[list[int]]], ...] = ({}, {})
    for mol, own, found in zip(mols, numbers, orders, strict=True):
        for atoms in Chem.GetMolFrags(mol):
            if not any(own[i] for i in atoms):
                smiles = Chem.MolFragmentToSmiles(mol, atoms)
                order = mol.GetPropsAsDict(includePrivate=True, includeComputed=True)["_smilesAtomOutputOrder"]
                found.setdefault(smiles, []).append(list(order))
    both = [pair for smiles, each in orders[0].items() for pair in zip(each, orders[1].get(smiles, ()), strict=False)]
    return [pair for one, other in both for pair in zip(one, other, strict=True)]


# --- Codes of both sides: the modes, and the values beside those of molecules.

MODES: tuple[ReactionMode, ...] = get_args(ReactionMode)
"""Modes, which say what the two halves of the codes are; the default first.

Where an atom or a bond is as before, a difference has the code "same". An atom of one side only has the code "absent"
on the other, or, balanced, the codes of its own side."""

EXTRA = ("absent", "same")
"""Values of every column of a reaction beside those of `ATOM_FEATURE_VALUES` and `BOND_FEATURE_VALUES`, after them."""


def code_sizes(values: dict[str, tuple], sides: int) -> tuple[int, ...]:
    """Return the number of codes of each column, "other" included: of molecules, or of both sides of reactions."""
    extra = len(EXTRA) if sides > 1 else 0
    return tuple(len(one) + 1 + extra for one in values.values()) * sides


def extra_codes(values: dict[str, tuple], name: str) -> np.ndarray:
    """Return the code of "absent" or "same" in each column, uint8 `[C]`."""
    return np.array([len(one) + 1 + EXTRA.index(name) for one in values.values()], np.uint8)


def join_codes(mode: str, codes: np.ndarray, values: dict[str, tuple]) -> np.ndarray:
    """Make the codes of a mode, uint8 `[n, 2C]`, from those before and after, `[2, n, C]`."""
    before, after = codes
    first, second = (after, before) if mode.startswith("products") else (before, after)
    if "difference" in mode:
        second = np.where(first == second, extra_codes(values, "same"), second)
    return np.concatenate([first, second], 1)


def unite_atoms(sides: Sequence[GraphCodes], places: np.ndarray, balanced: bool) -> np.ndarray:
    """Return the codes of the n atoms of both sides, uint8 `[2, n, A]`, for the `places` of a `Reaction`.

    If balanced, an atom of one side only has its codes on the other side too, or else its element alone.
    """
    there = places >= 0
    atoms = np.zeros((*places.shape, len(ATOM_FEATURE_VALUES)), np.uint8)
    atoms[:] = extra_codes(ATOM_FEATURE_VALUES, "absent")
    for k, side in enumerate(sides):
        atoms[k, there[k]] = side.atoms[places[k, there[k]]]
    columns = slice(None) if balanced else ATOM_INDEX["element"]
    for k in (0, 1):
        atoms[k, ~there[k], columns] = atoms[1 - k, ~there[k], columns]
    return atoms


def unite_bonds(sides: Sequence[GraphCodes], places: np.ndarray, balanced: bool) -> tuple[np.ndarray, np.ndarray]:
    """Unite the bonds of two sides: int32 `[2, 2m]`, both directions of each, and codes `[2, 2m, F]`.

    If balanced, a bond of atoms that are both of one side only has its codes on the other side too.
    """
    absent = extra_codes(BOND_FEATURE_VALUES, "absent")
    codes: dict[tuple[int, int], list[np.ndarray]] = {}
    for k, side in enumerate(sides):
        node = np.zeros(len(side.atoms), int)
        node[places[k, places[k] >= 0]] = np.flatnonzero(places[k] >= 0)
        for (i, j), code in zip(node[side.bonds.T[::2]].tolist(), side.bond_codes[::2], strict=True):
            both = codes.setdefault((min(i, j), max(i, j)), [absent, absent])
            both[k] = code
            if balanced and (places[1 - k, [i, j]] < 0).all():
                both[1 - k] = code
    ends = np.array(list(codes), np.int32).reshape(-1, 2)
    bonds = np.stack([ends, ends[:, ::-1]], 1).reshape(-1, 2).T
    shape = (len(codes), 2, len(BOND_FEATURE_VALUES))
    table = np.array(list(codes.values()), np.uint8).reshape(shape).transpose(1, 0, 2)
    return np.ascontiguousarray(bonds), table.repeat(2, axis=1)


# --- Canonical numbers, which do not depend on those given.


def canonical_numbers(atoms: np.ndarray, bonds: np.ndarray, bond_codes: np.ndarray) -> list[int]:
    """Find canonical numbers for the n atoms of a reaction, from 1, whatever their order.

    RDKit ranks the atoms of a graph in which every kind of atom `[n, *]`, and every kind of bond `[m, *]` between the
    atoms `bonds` `[2, m]`, is an isotope of a dummy atom.
    """
    graph, start = Chem.RWMol(), 1
    for codes in (atoms, bond_codes):
        kinds, kind = np.unique(codes, axis=0, return_inverse=True) if len(codes) else ((), np.zeros(0, int))
        for isotope in (kind.reshape(-1) + start).tolist():
            dummy = Chem.Atom(0)
            dummy.SetIsotope(isotope)
            graph.AddAtom(dummy)
        start += len(kinds)
    for bond, ends in enumerate(bonds.T.tolist(), len(atoms)):
        for end in ends:
            graph.AddBond(end, bond, Chem.BondType.SINGLE)
    mol = graph.GetMol()
    mol.UpdatePropertyCache(strict=False)
    Chem.FastFindRings(mol)
    ranks = np.array(list(Chem.CanonicalRankAtoms(mol, breakTies=True))[: len(atoms)], int)
    return (ranks.argsort().argsort() + 1).tolist()


# --- Text of a reaction, by map numbers.


def write_reaction(reaction: Reaction, numbers: Sequence[int]) -> str:
    """Write a reaction SMILES with a map number for each atom of the graph."""
    texts = []
    for mol, place in zip(reaction.molecules, reaction.places, strict=True):
        copy = Chem.Mol(mol)
        for number, i in zip(numbers, place.tolist(), strict=True):
            if i >= 0:
                copy.GetAtomWithIdx(i).SetAtomMapNum(number)
        texts.append(Chem.MolToSmiles(copy))
    return ">>".join(texts)


# --- An RDKit molecule with the atoms of the graph, for pictures and explanations.

_TEXT, _WITH_AGENTS = "_reaction", "_reaction_with_agents"
"""Properties of an RDKit molecule made from a reaction: its text, and whether the agents are part of the graph."""


def read_graph(text: str, agents: bool = False) -> Chem.Mol:
    """Read the molecule of a SMILES; of a reaction a molecule with the atoms and bonds of both sides.

    Bonds of the products alone have no order.
    """
    if not is_reaction(text):
        return read_smiles(text)
    with quietly():
        reaction = read_reaction(text, agents)
        (before, after), places = reaction.molecules, reaction.places
        mol = Chem.RWMol(before)
        at = {atom: i for atom, i in enumerate(places[0].tolist()) if i >= 0}
        node = {i: atom for atom, i in enumerate(places[1].tolist()) if i >= 0}
        for i, atom in node.items():
            if atom not in at:
                at[atom] = mol.AddAtom(after.GetAtomWithIdx(i))
        for bond in after.GetBonds():
            ends = at[node[bond.GetBeginAtomIdx()]], at[node[bond.GetEndAtomIdx()]]
            if mol.GetBondBetweenAtoms(*ends) is None:
                mol.AddBond(*ends, Chem.BondType.ZERO)
        graph = Chem.RenumberAtoms(mol.GetMol(), [at[atom] for atom in range(places.shape[1])])
        graph.UpdatePropertyCache(strict=False)
        Chem.GetSymmSSSR(graph)
    graph.SetProp(_TEXT, text)
    graph.SetBoolProp(_WITH_AGENTS, agents)
    return graph


class Box(NamedTuple):
    """Place of a drawn molecule in the picture, in pixels."""

    x: int
    y: int
    width: int
    height: int


class DrawnSides(NamedTuple):
    """What is drawn of a molecule: itself, or the two sides of a reaction, with the number of each atom in the graph;
    and the agents over the arrow.
    """

    molecules: Sequence[Chem.Mol]
    atoms: Sequence[Sequence[int]]
    agents: str = ""

    def lay_out(self, others: int, title: str, size: tuple[int, int]) -> tuple[list[Box], str]:
        """Lay out a row: this molecule and others beside it; or an arrow between the sides, and the others over it.

        Returns the box of each picture, and the SVG elements between them: arrow, agents and title.
        """
        width, height = size
        text = 'text-anchor="middle" font-family="sans-serif" fill="#111"'
        below = f'<text x="{width / 2}" y="{height - 6}" font-size="12" {text}>{_shorten(title, width // 7)}</text>'
        if len(self.molecules) == 1:
            own = width // (1 + others)
            return [Box(k * own, 0, own, height) for k in range(1 + others)], below if others else ""
        side = int((0.38 if others else 0.45) * width)
        top = 14 if self.agents else 0  # below the agents
        own = int(height / 2 - top) // max(1, others)
        boxes = [Box(0, 0, side, height), Box(width - side, 0, side, height)]
        boxes += [Box(side, top + k * own, width - 2 * side, own) for k in range(others)]
        gap, agents = 0.005 * width, _shorten(self.agents, width // 6)
        arrow = (
            f'<path d="M{side + gap:.1f} {height / 2}H{width - side - gap:.1f}m-6 -4l6 4l-6 4" fill="none" '
            f'stroke="#111" stroke-width="1.5"/><text x="{width / 2}" y="11" font-size="10" {text}>{agents}</text>'
        )
        return boxes, arrow + below


def _shorten(text: str, letters: int) -> str:
    return escape(text if len(text) <= letters else f"{text[: letters - 1]}…")


def drawn_sides(graph: Chem.Mol, hydrogens: bool = True) -> DrawnSides:
    """Return what is drawn of a molecule that `read_graph` has read; of a reaction with or without its hydrogens."""
    if not graph.HasProp(_TEXT):
        return DrawnSides([graph], [range(graph.GetNumAtoms())])
    molecules: list[Chem.Mol] = []
    atoms: list[list[int]] = []
    with quietly():
        reaction = read_reaction(graph.GetProp(_TEXT), graph.GetBoolProp(_WITH_AGENTS))
        for mol, place in zip(reaction.molecules, reaction.places, strict=True):
            own = place.argsort(kind="stable")[(place < 0).sum() :].tolist()
            if not hydrogens:
                mol, order = without_hydrogens(mol)
                own = [own[i] for i in order]
            molecules.append(mol)
            atoms.append(own)
    return DrawnSides(molecules, atoms, reaction.agents)
