"""Molecules that are large but real, and texts that would keep RDKit busy for minutes."""

from collections.abc import Sequence
from itertools import combinations


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


def nanotube(rows: int, columns: int) -> tuple[int, list[tuple[int, int]]]:
    """A sheet of hexagons rolled up: more rings than `FUSED_RINGS`, of atoms with three ring bonds."""
    bonds = [(i * columns + j, i * columns + (j + 1) % columns) for i in range(rows) for j in range(columns)]
    bonds += [(i * columns + j, (i + 1) * columns + j) for i in range(rows - 1) for j in range(i % 2, columns, 2)]
    return rows * columns, bonds


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
    "nanotube": linked(*nanotube(12, 22), "C"),
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
    "salts": ".".join(["[NH3+]CC(=O)[O-]"] * 190),
    "branches": "C(" * 900 + "C" + ")" * 900,
}
"""Up to 1,000 atoms that are no hydrogen."""
