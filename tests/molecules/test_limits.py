"""Bounds on what is read: texts that would take minutes are refused at once, and real large molecules are read."""

import random

import pytest
from rdkit import Chem

from gtx.molecules import Featuriser, MoleculeError, read_smiles
from gtx.molecules.reading import read_molblock

from .large import LARGE, bipartite, complete, cyclodextrin, linked, phenylenes, v3000

PLAIN = Featuriser()


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
