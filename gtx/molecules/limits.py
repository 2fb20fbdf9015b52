"""Bounds on what is read, so that no text takes more than about a second or 200 MB.

RDKit has none of its own: a digit repeated a million times, a graph that joins every two of fifty atoms, or a
macrocycle of twenty phenylenes keeps it busy for minutes or fills the memory. The bounds leave room for every molecule
of a thousand atoms that chemists draw: polymers, proteins, fullerenes up to C720, cyclodextrins of ten sugars.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from rdkit import Chem

from gtx.molecules.errors import MoleculeError

MOST_CHARACTERS = {"SMILES": 50_000, "mol block": 1_000_000}
"""Of a text; C1000H2002 with every hydrogen atom written and a number on each has 30,000 as SMILES."""

MOST_ATOMS = MOST_BONDS = 5_000
"""Hydrogen atoms that are written included."""

MOST_PARTS = 300
"""Molecules in one text, separated by dots."""

MOST_RINGS = 400
"""Independent rings of a molecule: bonds - atoms + parts. C720 has 361."""

FUSED_RINGS = 120
"""A ring system may have so many independent rings, or as many as it has atoms with three ring bonds or more.

Carbon and its like stay below that. Where many atoms have six ring bonds or more, the rings to choose from explode."""

FUSED_ATOMS = 1_500
"""Of one ring system: RDKit keeps the distances of every two of them."""

MOST_CYCLES = 1_500
"""Relevant cycles (Vismara 1997, Electronic Journal of Combinatorics 4, R9), which RDKit lists one by one: those that
no shorter ones add up to. A macrocycle that can go either way around each of ten smaller rings counts 1,024 times."""

_FEW_BONDS = 40  # whatever the graph, RDKit is done with it in milliseconds
_FEW_RINGS = 10  # cannot have more than 1,023 cycles of any kind
_SHORT = 2 * MOST_RINGS  # a shorter text cannot hold more ring closures
_BRACKETS = re.compile(r"\[[^\]]*\]?")
_CLOSURE = re.compile(r"%\(\d*\)?|%\d\d|\d")
_NUMBER = re.compile(r"[ +]*(\d*)")
_WORD = re.compile(r'"[^"]*"|\([^)]*\)|\S+')


def check_smiles(text: str) -> None:
    """Check a SMILES before RDKit reads it: its length and its ring closures.

    Raises:
        MoleculeError: it is beyond a bound; the message has the bound and what came.
    """
    _check("characters", len(text), MOST_CHARACTERS["SMILES"])
    if len(text) > _SHORT:
        _check("ring closure marks", len(_CLOSURE.findall(_BRACKETS.sub("", text))), 2 * MOST_RINGS)


def check_block(text: str) -> None:
    """Check a mol block before RDKit reads it, which perceives rings even where it is told not to sanitise.

    Raises:
        MoleculeError: as `check_smiles`.
    """
    _check("characters", len(text), MOST_CHARACTERS["mol block"])
    lines = text.split("\n")
    atoms, bonds = (_v3000 if lines[3][34:39] == "V3000" else _v2000)(lines)
    _check("atoms", atoms, MOST_ATOMS)
    _check("bonds", len(bonds), MOST_BONDS)
    if len(bonds) > _FEW_BONDS or atoms > MOST_PARTS:
        check_graph(_graph(atoms, bonds))


def check_graph(mol: Chem.Mol) -> None:
    """Check a molecule before its rings are perceived: atoms, bonds, parts and rings.

    Args:
        mol: as RDKit parsed it, not sanitised.

    Raises:
        MoleculeError: as `check_smiles`.
    """
    atoms, bonds = mol.GetNumAtoms(), mol.GetNumBonds()
    _check("atoms", atoms, MOST_ATOMS)
    _check("bonds", bonds, MOST_BONDS)
    if bonds <= _FEW_BONDS and atoms <= MOST_PARTS:
        return
    parts = len(Chem.GetMolFrags(mol))
    rings = bonds - atoms + parts
    _check("parts", parts, MOST_PARTS)
    _check("rings", rings, MOST_RINGS)
    if rings <= _FEW_RINGS and atoms <= FUSED_ATOMS:
        return
    copy = Chem.Mol(mol)
    for fused in _ring_systems(copy):
        _check("atoms in one ring system", fused.atoms, FUSED_ATOMS)
        what = f"rings in a ring system of {fused.branching:,} atoms with three ring bonds or more"
        _check(what, fused.bonds - fused.atoms + 1, max(FUSED_RINGS, fused.branching))
    if rings > _FEW_RINGS:
        _check("relevant cycles", _relevant_cycles(copy), MOST_CYCLES)


class _RingSystem(NamedTuple):
    """Atoms and bonds that rings share; how many of the atoms have three bonds or more in it."""

    atoms: int
    bonds: int
    branching: int


def _ring_systems(mol: Chem.Mol) -> Iterator[_RingSystem]:
    Chem.FastFindRings(mol)  # any set of rings that covers all there are
    info = mol.GetRingInfo()
    around: dict[int, list[int]] = {}
    for bond in mol.GetBonds():
        if info.NumBondRings(bond.GetIdx()):
            i, j = bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()
            around.setdefault(i, []).append(j)
            around.setdefault(j, []).append(i)
    left = set(around)
    while left:
        front = [left.pop()]
        for atom in front:
            new = left.intersection(around[atom])
            left -= new
            front += new
        degrees = [len(around[atom]) for atom in front]
        yield _RingSystem(len(front), sum(degrees) // 2, sum(degree > 2 for degree in degrees))


def _relevant_cycles(mol: Chem.Mol) -> int:
    """How many there are; where RDKit's number of 32 bits may have overflowed, how many there can be."""
    Chem.FindRingFamilies(mol)
    info = mol.GetRingInfo()
    families = zip(info.AtomRingFamilies(), info.BondRingFamilies(), strict=True)
    most = sum(2 ** (len(bonds) - len(atoms)) for atoms, bonds in families)
    return info.NumRelevantCycles() if most < 2**31 else most


# A mol block's bonds, as pairs of numbers: read at least as leniently as RDKit does, which refuses what is wrong


def _v2000(lines: list[str]) -> tuple[int, list[tuple[int, int]]]:
    atoms, bonds = _number(lines[3][:3]), _number(lines[3][3:6])
    return atoms, [(_number(line[:3]), _number(line[3:6])) for line in lines[4 + atoms : 4 + atoms + bonds]]


def _v3000(lines: list[str]) -> tuple[int, list[tuple[int, int]]]:
    section, atoms, bonds = "", 0, []
    for line in _continued(lines):
        if line.startswith(("BEGIN", "END")):
            section = line
        elif section.startswith("BEGIN ATOM"):
            atoms += 1
        elif section.startswith("BEGIN BOND"):
            ends = _WORD.findall(line)[2:4]
            bonds += [(_number(ends[0]), _number(ends[1]))] if len(ends) == 2 else []
    return atoms, bonds


def _continued(lines: Iterable[str]) -> Iterator[str]:
    """What follows `M  V30 ` on each line; a line that ends with a hyphen goes on in the next."""
    parts: list[str] = []
    for line in lines:
        line = line.rstrip("\r")
        if line.startswith("M  V30 "):
            parts.append(line[7:].removesuffix("-"))
            if not line.endswith("-"):
                yield "".join(parts)
                parts.clear()


def _number(field: str) -> int:
    return int(_NUMBER.match(field)[1][:9] or 0)


def _graph(atoms: int, bonds: Iterable[tuple[int, int]]) -> Chem.Mol:
    graph, carbon, place = Chem.RWMol(), Chem.Atom(6), {}
    for pair in {(min(pair), max(pair)) for pair in bonds}:
        i, j = (place[end] if end in place else place.setdefault(end, graph.AddAtom(carbon)) for end in pair)
        if i != j:
            graph.AddBond(i, j, Chem.BondType.SINGLE)
    for _ in range(atoms - len(place)):
        graph.AddAtom(carbon)
    return graph


def _check(what: str, count: int, most: int) -> None:
    if count > most:
        raise MoleculeError(f"cannot be read: it has {count:,} {what}; the limit is {most:,}")
