"""Bounds on what is read: texts that would take minutes are refused at once, and real large molecules are read."""

import random
from collections.abc import Sequence
from itertools import combinations

import pytest
from rdkit import Chem

from gtx.molecules import Featuriser, MoleculeError, read_smiles
from gtx.molecules.reading import read_molblock

PLAIN = Featuriser()


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


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param("C(" * 20_000, "20,000 parentheses are not closed", id="parentheses"),
        pytest.param("C" + "1" * 10**6, "it has 1,000,001 characters; the limit is 50,000", id="digits"),
        pytest.param("C" + "1" * 49_000, "it has 49,000 ring closure marks; the limit is 800", id="fewer digits"),
        pytest.param("C" * 50_000, "it has 50,000 atoms; the limit is 5,000", id="chain"),
        pytest.param("C1" + "C" * 4_900 + "C1", "it has 4,902 atoms in one ring system; the limit is 1,500", id="ring"),
        pytest.param(".".join("C" * 5_000), "it has 5,000 parts; the limit is 300", id="parts"),
        pytest.param(linked(50, complete(50)), "it has 2,450 ring closure marks; the limit is 800", id="K50"),
        pytest.param(
            linked(20, complete(20)),
            "it has 171 rings in a ring system of 20 atoms with three ring bonds or more; the limit is 120",
            id="K20",
        ),
        pytest.param(linked(20, bipartite(10)), "it has 2,025 relevant cycles; the limit is 1,500", id="K10,10"),
        pytest.param(phenylenes(20), "it has 1,048,596 relevant cycles; the limit is 1,500", id="2^20"),
        pytest.param(phenylenes(40), f"it has {2**40 + 40:,} relevant cycles; the limit is 1,500", id="2^40"),
        pytest.param(cyclodextrin(16), "it has 65,552 relevant cycles; the limit is 1,500", id="16 sugars"),
        pytest.param("C" * 1_001, "has 1001 atoms; the limit is 1000", id="one atom too many"),
        pytest.param(v3000(50, complete(50), "U"), "it has 1,176 rings; the limit is 400", id="block of K50"),
        pytest.param(
            v3000(40, bipartite(20), "U"),
            "it has 361 rings in a ring system of 40 atoms with three ring bonds or more; the limit is 120",
            id="block of K20,20",
        ),
        pytest.param(v3000(5_001, []), "it has 5,001 atoms; the limit is 5,000", id="block of atoms"),
        pytest.param(v3000(301, []), "it has 301 parts; the limit is 300", id="block of parts"),
        pytest.param("\n" * 10**6 + "M  END\n", "it has 1,000,007 characters; the limit is 1,000,000", id="long block"),
    ],
)
def test_what_would_take_minutes_is_refused_at_once(text: str, reason: str) -> None:
    with pytest.raises(MoleculeError) as error:
        PLAIN(text)
    assert str(error.value) in (reason, f"cannot be read: {reason}")


@pytest.mark.parametrize("text", LARGE.values(), ids=LARGE)
def test_real_large_molecules_are_read(text: str) -> None:
    heavy = read_smiles(text)
    molecule = PLAIN(text)
    assert 60 <= len(molecule.atoms) == heavy.GetNumAtoms() <= 1000
    bonds = [(bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()) for bond in heavy.GetBonds()]
    assert read_molblock(v3000(len(molecule.atoms), bonds, "U")).GetNumBonds() == len(bonds)


@pytest.mark.parametrize(
    "text", ["[C+999999999]", "[CH999999999]", "[" * 10_000, "C%", "." * 10_000, "C" + "=" * 9_000]
)
def test_odd_numbers_and_marks_are_read_or_refused(text: str) -> None:
    """And nothing else: RDKit has exceptions of its own."""
    try:
        assert read_smiles(text).GetNumAtoms() == 1
    except MoleculeError as error:
        assert str(error).startswith("cannot be read: ") and len(str(error)) < 250


def test_a_block_may_hide_no_bond() -> None:
    """Continued lines, quoted words, Windows' line ends, signs and letters behind numbers: as RDKit takes them."""
    block = v3000(31, complete(31), "U")
    with pytest.raises(MoleculeError, match="it has 435 rings") as plain:
        read_molblock(block)
    for written in (
        block.replace("\n", "\r\n"),
        block.replace("M  V30 7 1 1 ", "M  V30 7 -\nM  V30 1 -\nM  V30 1 "),
        block.replace("M  V30 7 1 1 ", "M  V30 (7 7) 1 1x "),
    ):
        assert written != block
        with pytest.raises(MoleculeError) as error:
            read_molblock(written)
        assert str(error.value) == str(plain.value)


def test_mangled_blocks_are_read_or_refused() -> None:
    generator, texts = random.Random(0), [Chem.MolToMolBlock(read_smiles(LARGE["C60"])), v3000(60, complete(9))]
    for _ in range(300):
        lines = generator.choice(texts).split("\n")
        for _ in range(generator.choice([1, 3])):
            lines[generator.randrange(len(lines))] = generator.choice(
                ["", "M  V30 -", "M  END", "  9", "x" * 80, "1 2"]
            )
        try:
            read_molblock("\n".join(lines))
        except MoleculeError as error:
            assert "\n" not in str(error)
