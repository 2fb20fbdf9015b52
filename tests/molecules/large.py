"""Molecules that are large but real, and texts that would keep RDKit busy for minutes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import combinations

import numpy as np
from rdkit import Chem


def fullerene(frequency: int) -> str:
    """SMILES of an icosahedral cage C(20 f²): the faces of an icosahedron, each divided into f², are the atoms."""
    golden = (1 + 5**0.5) / 2
    corners = np.array([v for s in (1, -1) for t in (golden, -golden) for v in ((0, s, t), (s, t, 0), (t, 0, s))])
    near = np.isclose(np.linalg.norm(corners[:, None] - corners, axis=-1), 2)
    sides: dict[frozenset, list[int]] = {}
    atoms = 0
    for a, b, c in combinations(range(12), 3):
        if not (near[a, b] and near[b, c] and near[a, c]):
            continue

        def point(i: int, j: int, a: int = a, b: int = b, c: int = c) -> tuple[float, ...]:
            whole = corners[a] * (frequency - i - j) + corners[b] * i + corners[c] * j
            return tuple(np.round(whole, 6) + 0.0)

        for i in range(frequency):
            for j in range(frequency - i):
                small = [(point(i, j), point(i + 1, j), point(i, j + 1))]
                if i + j < frequency - 1:
                    small.append((point(i + 1, j), point(i + 1, j + 1), point(i, j + 1)))
                for triangle in small:
                    for side in combinations(triangle, 2):
                        sides.setdefault(frozenset(side), []).append(atoms)
                    atoms += 1
    return aromatic(atoms, list(sides.values()))


def aromatic(atoms: int, bonds: Sequence[Sequence[int]]) -> str:
    """SMILES of carbon atoms with aromatic bonds."""
    mol = Chem.RWMol()
    for _ in range(atoms):
        mol.GetAtomWithIdx(mol.AddAtom(Chem.Atom(6))).SetIsAromatic(True)
    for i, j in bonds:
        mol.AddBond(i, j, Chem.BondType.AROMATIC)
        mol.GetBondBetweenAtoms(i, j).SetIsAromatic(True)
    Chem.SanitizeMol(mol)
    return Chem.MolToSmiles(mol)


def v3000(atoms: int, bonds: Sequence[tuple[int, int]], element: str = "C") -> str:
    """A mol block with single bonds, all atoms at the origin."""
    lines = ["", "", "", "  0  0  0     0  0            999 V3000", "M  V30 BEGIN CTAB"]
    lines += [f"M  V30 COUNTS {atoms} {len(bonds)} 0 0 0", "M  V30 BEGIN ATOM"]
    lines += [f"M  V30 {i + 1} {element} 0 0 0 0" for i in range(atoms)]
    lines += ["M  V30 END ATOM", "M  V30 BEGIN BOND"]
    lines += [f"M  V30 {k + 1} 1 {i + 1} {j + 1}" for k, (i, j) in enumerate(bonds)]
    return "\n".join([*lines, "M  V30 END BOND", "M  V30 END CTAB", "M  END", ""])


def linked(atoms: int, bonds: Sequence[tuple[int, int]], element: str = "[U]") -> str:
    """SMILES of any graph: every bond is a ring closure between parts."""
    texts = [element] * atoms
    for k, (i, j) in enumerate(bonds, 10):
        label = f"%{k}" if k < 100 else f"%({k})"
        texts[i] += label
        texts[j] += label
    return ".".join(texts)


def honeycomb(rows: int, columns: int) -> tuple[int, list[tuple[int, int]]]:
    """A sheet of hexagons without loose ends."""
    bonds = [(i * columns + j, i * columns + j + 1) for i in range(rows) for j in range(columns - 1)]
    bonds += [(i * columns + j, (i + 1) * columns + j) for i in range(rows - 1) for j in range(i % 2, columns, 2)]
    while loose := {atom for atom, count in Counter(sum(bonds, ())).items() if count == 1}:
        bonds = [bond for bond in bonds if not loose & set(bond)]
    place = {atom: i for i, atom in enumerate(sorted(set(sum(bonds, ()))))}
    return len(place), [(place[i], place[j]) for i, j in bonds]


def complete(atoms: int) -> list[tuple[int, int]]:
    return list(combinations(range(atoms), 2))


def bipartite(atoms: int) -> list[tuple[int, int]]:
    return [(i, atoms + j) for i in range(atoms) for j in range(atoms)]


def phenylenes(count: int) -> str:
    """A macrocycle of para-phenylenes, which has 2^count ways around."""
    return "C1%99=CC=C(C=C1)" + "C1=CC=C(C=C1)" * (count - 2) + "C1=CC=C%99C=C1"


def cyclodextrin(count: int) -> str:
    glucose = "[C@H]2[C@H](O)[C@@H](O)[C@H](O[C@@H]2CO)O"
    return "O1" + glucose * (count - 1) + "[C@H]2[C@H](O)[C@@H](O)[C@@H]1O[C@@H]2CO"


C60 = (
    "c12c3c4c5c1c1c6c7c2c2c8c3c3c9c4c4c%10c5c5c1c1c6c6c%11c7c2c2c7c8c3c3c8c9c4c4c9c%10c5c5c1c1c6c6c%11c2c2c7c3c3c8c4"
    "c4c9c5c1c1c6c2c3c41"
)
LARGE = {
    "C60": C60,
    "C500": fullerene(5),
    "C720": fullerene(6),
    "beta-cyclodextrin": cyclodextrin(7),
    "ten sugars": cyclodextrin(10),
    "ten phenylenes": phenylenes(10),
    "peptide": "N[C@@H](C)C(=O)" * 190 + "O",
    "cyclic peptide": "N1[C@@H](C)C(=O)" + "N[C@@H](C)C(=O)" * 150 + "N[C@@H](C)C1=O",
    "polystyrene": "CC(c1ccccc1)" * 125,
    "cellulose": "O" + "[C@H]1[C@H](O)[C@@H](O)[C@H](O[C@@H]1CO)O" * 80 + "C",
    "polyethylene": "C" * 1000,
    "all hydrogens": "[H]C([H])([H])" + "C([H])([H])" * 990 + "[H]",
    "numbers": "".join(f"[CH2:{i}]" for i in range(1, 999)),
    "diene": "C" + "/C=C/C=C" * 240 + "/C",
    "graphene": aromatic(*honeycomb(6, 20)),
    "salts": ".".join(["[NH3+]CC(=O)[O-]"] * 190),
    "branches": "C(" * 900 + "C" + ")" * 900,
}
"""Up to 1,000 atoms that are no hydrogen."""
