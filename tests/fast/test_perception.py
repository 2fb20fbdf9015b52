"""The compiled way and the plain one: the same codes, descriptors, SMILES, warnings and errors for every text."""

import lzma
from collections import Counter
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from rdkit import Chem, rdBase
from rdkit.Chem import AllChem

from gtx.fast import graphs as columns
from gtx.fast import perception as fast
from gtx.fast.descriptors import unsupported
from gtx.fast.graphs import Graphs, binary, form_version
from gtx.molecules import (
    ATOM_FEATURE_VALUES,
    BOND_FEATURE_VALUES,
    FeaturisedMolecules,
    Featuriser,
    perception,
    read_smiles,
)
from gtx.molecules.perception import featurise_texts
from tests.molecules.rewriting import CAGES, ODD, SYMMETRIC, column, rewritings
from tests.molecules_for_tests import SMILES
from tests.tables import molecules

ROOT = Path(__file__).parents[2]
TABLES = [ROOT / "examples" / f"{name}.csv" for name in ("molecules", "solvation")]
EXAMPLES = [text for table in TABLES for text in column(table)][:500]
STEREO = [
    "C[C@H](N)C(=O)O", "OC(=O)[C@H](O)[C@H](O)C(=O)O", "OC[C@H](O)[C@H](O)[C@H](O)CO", "C/C=C/[C@H](O)/C=C\\C",
    "C[S@](=O)c1ccccc1", "N[Pt@SP1](N)(Cl)Cl", "C[C@H](c1ccccn1)C(C)=N", "CC[C@H](O)CC", "[2H][C@H](C)O",
    "CCCC[C@H](C)CCCCl", "C[C@H](O)c1cc[cH-]c1", "CC[N@](C)CCC", "[CH3:1][C@H](C)O", "F/C=C/F", "CC=CC(O)C=CC",
    "[13CH3][C@H](N)C(=O)O", "OC[C@@H]1CCC(=O)O1", "C[C@]12CC[C@H]3[C@@H](CC=C4C[C@@H](O)CC[C@]34C)[C@@H]1CCC2",
]  # fmt: skip
"""Named by atomic numbers near the centre, further off, by isotopes or other centres; no centres; not tetrahedral."""
METALS = [
    "[Fe+3].[C-7]", "C[Zn]C", "[Na+].[O-]c1ccccc1", "Cl[Pd]Cl", "[W-6].CCO", "C[Se]C", "C[Mg]Br", "[Li]CCCC",
    "[Cl-].[Cl-].[Ca+2]", "CC[Sn](CC)(CC)CC", "O=[As](O)(O)O", "[Og]", "CC[S+5]", "F[P-](F)(F)(F)(F)F.[NH4+]",
]  # fmt: skip
RARE = [
    "CC(C)(C)C", "C=C=C", "CC(=O)C=N", "C#CC#N", "Cc1ccccc1", "Cc1ccncc1", "CCc1ccccc1", "CC(C)c1ccco1",
    "c1ccccc1[SiH3]", "Fc1ccccc1Cl", "Brc1ccccc1I", "c1ccc2ccccc2c1", "c1ccccc1-c1ccccc1", "Nc1ccccc1O",
    "Sc1ccccc1", "O=c1cccc[nH]1", "C=Cc1ccccc1", "C=C(c1ccccc1)c1ccncc1", "C[SiH3]", "CNC", "CNc1ccccc1",
    "CN(C)c1ccccc1", "c1ccccc1N(c1ccccc1)c1ccccc1", "C=N", "CC=NC", "CC#N", "C[NH3+]", "C[NH+](C)C",
    "C[n+]1ccccc1", "C[N+](C)(C)C", "C[N+](=O)[O-]", "C[N+]#[C-]", "CN=[N+]=[N-]", "C[N-]C", "O", "CO", "COC",
    "COc1ccccc1", "CN=O", "O=S(C)C", "C[S+](C)[O-]", "CC(=O)[O-]", "C[O-]", "C=O", "CC=O", "CC(C)=O", "NC=O",
    "O=C=O", "O=Cc1ccccc1", "CC(=O)c1ccccc1", "NC(N)=O", "COC(=O)OC", "O=C(c1ccccc1)c1ccccc1", "[F-]", "[I+]",
    "[Na+]", "[Na]", "CP(C)C", "CS", "CSC", "C[S-]", "CC(=S)N", "CS(=N)C", "c1ccsc1", "C[Zn]C", "[Hf]",
    "[Sb]", "[Xe]", "CC(C)(C)c1ccccc1", "CC(C)(C)O", "CN(C)C", "N", "CP(C)(C)=O",
]  # fmt: skip
"""Between them every type of atom that Crippen's table has, but those of hydrogen."""
CHARGED = [
    "CC(=O)[O-]", "C[N+](=O)[O-]", "NC(N)=[NH2+]", "[O-]C(=O)C=CC(=O)[O-]", "C[n+]1ccccc1", "[O-]c1ccccc1[N+](=O)[O-]",
    "[NH3+]CC(=O)[O-]", "[O-]S(=O)(=O)C", "CP(=O)([O-])[O-]", "C[N+](C)(C)C.[Cl-]", "[O-][N+]([O-])=[N+]([O-])[O-]",
    "c1cc[n-]c1", "[CH2-]C=[NH+]C", "C[B-](C)(C)C", "C[Si](C)(C)O", "B(O)(O)c1ccccc1",
]  # fmt: skip
"""Charges shared by two or three ends, of both signs, left where they are."""
RINGS = [
    "C1CCC2(CC1)CCCC2", "C1CC2CC1C=C2", "C1CC2CCC1N2", "c1ccc2[nH]ccc2c1", "C1CO1", "C1=CC=CC=CC=C1", "C1CC12CC2",
    "O=C1C=CC(=O)C=C1", "C1CC2(C1)CC1(CC1)C2", "C1CC2CC(C1)C2", "c1ccc2c(c1)CC1CC2CN1",
]  # fmt: skip
"""Spiro atoms, bridgeheads, rings of every kind."""
POLAR = [
    "CC#N", "C=N", "CN", "C=[NH2+]", "C[NH3+]", "CN=C", "C[N+]#[C-]", "CN=[N+]=[N-]", "C1CN1", "CNC", "C[NH+]=C",
    "C[NH2+]C", "c1ccncc1", "c1cc[nH]c1", "c1cc[nH+]cc1", "CN1CC1", "CN(C)C", "CN(=O)=O", "C[N+](C)=C", "C[NH+](C)C",
    "Cn1cccc1", "c1ccc2cccn2c1", "c1cc2ccccn2c1", "C[n+]1ccccc1", "C[N+](C)(C)C", "C=O", "CO", "C[O-]", "C1CO1", "COC",
    "c1ccoc1", "[OH3+]", "C[OH2+]", "[NH4+]", "[NH2-]", "[n-]1cccc1", "O=n1ccccc1", "[BH4-]", "[AlH4-]", "[Si-2](C)C",
]  # fmt: skip
"""Nitrogen and oxygen by all rows of the table of Ertl and others; more hydrogens than outer electrons."""
TURNING = [
    "CCCC",
    "CC",
    "CCC#CCC",
    "FC(F)(F)CCC",
    "CC(C)(C)CCC",
    "CC(=O)OCC",
    "c1ccccc1-c1ccccc1",
    "C1CCCCC1",
    "CC(=O)SCC",
]
"""Bonds that turn, and bonds that do not count."""
LONG = ["N[C@@H](C)C(=O)" * 60 + "O", "C" * 300, "C1" + "C" * 23 + "C1"]
FAULTY = ["", "C1CC", "not a molecule", "C\tC", "CC(C)(C)(C)(C)C", "é", "c1ccccc", "C" * 1001]
KINDS = [*ODD, *CAGES, *SYMMETRIC, *STEREO, *METALS, *RARE, *CHARGED, *RINGS, *POLAR, *TURNING]
TEXTS = [*SMILES, *KINDS, *FAULTY, *EXAMPLES, *LONG, "C:C", "C$C"]
SOME = [*SMILES[:7], *ODD, *STEREO, *METALS[:4], *FAULTY, *EXAMPLES[:40]]


def both(
    monkeypatch: pytest.MonkeyPatch, featuriser: Featuriser, texts: Sequence[str], *given: object, smiles: bool = True
) -> tuple[FeaturisedMolecules, FeaturisedMolecules]:
    """The outcome of texts by the compiled way and by the plain one."""
    found = []
    for switch in ("1", "0"):
        monkeypatch.setenv("GTX_FAST", switch)
        found.append(featurise_texts(featuriser, texts, *given, smiles=smiles))
    return found[0], found[1]


def differences(one: FeaturisedMolecules, other: FeaturisedMolecules) -> dict[int, list[str]]:
    """The fields in which two outcomes of the same texts differ, by the number of the text; NaN equals NaN."""
    found: dict[int, list[str]] = {}
    rows = []
    for flat in (one, other):
        good = [error is None for error in flat.errors]
        atoms, bonds = np.cumsum(flat.atom_counts)[:-1], np.cumsum(flat.bond_counts)[:-1]
        arrays = [
            np.split(flat.atoms, atoms),
            np.split(flat.bonds, bonds, axis=1),
            np.split(flat.bond_codes, bonds),
            list(flat.descriptors),
            np.split(flat.positions, atoms) if flat.positions is not None else [None] * sum(good),
        ]
        molecules = zip(*arrays, strict=True)
        rows.append([next(molecules) if row else (None,) * len(arrays) for row in good])
    names = ("atoms", "bonds", "bond_codes", "descriptors", "positions")
    for i, (here, there) in enumerate(zip(*rows, strict=True)):
        apart = [name for name, x, y in zip(names, here, there, strict=True) if not same(x, y)]
        words = ("smiles", "errors", "warnings")
        apart += [name for name in words if getattr(one, name)[i] != getattr(other, name)[i]]
        if apart:
            found[i] = apart
    return found


def same(x: np.ndarray | None, y: np.ndarray | None) -> bool:
    if x is None or y is None:
        return x is y
    return x.dtype == y.dtype and np.array_equal(x, y, equal_nan=x.dtype.kind == "f")


@pytest.mark.parametrize("smiles", [True, False])
def test_every_kind_of_molecule(smiles: bool, monkeypatch) -> None:
    """To the last bit of a float32; and the compiled way takes none of them for one that RDKit gives up on."""
    monkeypatch.setattr("gtx.fast.descriptors._FITS", {})
    both(monkeypatch, Featuriser(), ["[H]/N=C/C"])  # whatever was read before: its N has the codes of that of CC=NC
    failing = {**vars(perception), "featurise_with_rdkit": lambda *_: pytest.fail("the plain way was taken")}
    monkeypatch.setattr(fast, "plain", SimpleNamespace(**failing))
    compiled, plain = both(monkeypatch, Featuriser(), TEXTS, smiles=smiles)
    assert {TEXTS[i]: apart for i, apart in differences(compiled, plain).items()} == {}
    assert len(compiled.atom_counts) > 300 and sum(error is not None for error in plain.errors) >= len(FAULTY)
    assert any(plain.warnings) and np.isnan(plain.descriptors).any() and any(plain.smiles) == smiles


@pytest.mark.parametrize(
    "settings", [{"hydrogens": True}, {"standardise": True}, {"max_atoms": 9, "descriptors": False}]
)
def test_every_setting(settings: dict, monkeypatch) -> None:
    for smiles in (True, False):
        for texts in (SOME, []):
            assert differences(*both(monkeypatch, Featuriser(**settings), texts, smiles=smiles)) == {}


def test_coordinates_and_mol_blocks(monkeypatch) -> None:
    mols = [Chem.MolFromSmiles(text) for text in EXAMPLES[:20]]
    for mol in mols:
        AllChem.Compute2DCoords(mol)
    places = [mol.GetConformer().GetPositions() for mol in mols]
    places[1], places[2][0], places[3] = None, np.inf, places[3][1:]
    for settings in ({}, {"hydrogens": True}, {"conformers": True}):
        few = slice(0, 6 if settings.get("conformers") else None)
        featuriser = Featuriser(coordinates=True, **settings)
        compiled, plain = both(monkeypatch, featuriser, EXAMPLES[:20][few], places[few])
        assert differences(compiled, plain) == {} and 2 <= sum(error is not None for error in plain.errors) <= 4
    crossed = Chem.MolToMolBlock(read_smiles("CC=CC")).replace("  2  3  2  0", "  2  3  2  3")  # left open
    blocks = [*map(Chem.MolToMolBlock, mols), "\n" * 5, crossed]
    compiled, plain = both(monkeypatch, Featuriser(), blocks)
    assert differences(compiled, plain) == {}
    assert (compiled.bond_codes[-6:, list(BOND_FEATURE_VALUES).index("stereo")] == 1).all()


def test_with_hydrogen_atoms_the_labels_are_the_same() -> None:
    """Not RDKit's older ones, which it gives when it reads a SMILES: here R becomes S."""
    text, column = "Cc1cc2ncn(C[C@@H](O)C[NH+](C)Cc3ccc(F)cc3)c2cc1C", list(ATOM_FEATURE_VALUES).index("chirality")
    bare, full = (Featuriser(hydrogens=hydrogens, descriptors=False)(text) for hydrogens in (False, True))
    older = [atom.GetPropsAsDict().get("_CIPCode", "none") for atom in Chem.MolFromSmiles(text).GetAtoms()]
    names = np.array(["", *ATOM_FEATURE_VALUES["chirality"]])
    ours = names[bare.atoms[:, column]].tolist()
    assert names[full.atoms[: len(ours), column]].tolist() == ours != older and {"R", "S"} & set(ours)


def test_the_environment_turns_it_off(monkeypatch) -> None:
    for switch, name in (("1", "compiled"), ("0", "plain")):
        monkeypatch.setenv("GTX_FAST", switch)
        with monkeypatch.context() as replaced:
            replaced.setattr(perception, "additions", lambda group: {"fast": lambda *_: "compiled"})
            replaced.setattr(perception, "featurise_with_rdkit", lambda *_: "plain")
            assert featurise_texts(Featuriser(), ["CCO"]) == name


def test_a_new_version_of_the_binary_form_is_read_slowly_and_said_once(monkeypatch, caplog) -> None:
    monkeypatch.setenv("GTX_FAST", "0")
    plain = featurise_texts(Featuriser(), SOME[:30])
    monkeypatch.setenv("GTX_FAST", "1")
    monkeypatch.setattr(fast, "form_version", lambda: (17, 0))
    fast._readable.cache_clear()
    try:
        with monkeypatch.context() as replaced:
            replaced.setattr(fast, "_featurise", lambda *_: pytest.fail("an unknown form was decoded"))
            for _ in range(3):
                assert differences(featurise_texts(Featuriser(), SOME[:30]), plain) == {}
    finally:
        fast._readable.cache_clear()
    (line,) = (record.getMessage() for record in caplog.records)
    assert line == (
        f"molecules are read several times slower, by RDKit's own functions: RDKit {rdBase.rdkitVersion} writes "
        "version 17.0 of its binary form, and this gtx reads version 16.4"
    )


def test_one_that_rdkit_gives_up_on_costs_the_others_nothing(monkeypatch) -> None:
    """After it was read: where its SMILES is written."""
    write = Chem.MolToSmiles

    def failing(mol: Chem.Mol) -> str:
        if mol.GetNumAtoms() == 5:
            raise RuntimeError("Pre-condition Violation\nno such thing\n")
        return write(mol)

    monkeypatch.setattr(Chem, "MolToSmiles", failing)
    compiled, plain = both(monkeypatch, Featuriser(), ["CCO", "CCCCC", "C1CC", "[2H]C", "CCCCO", "CCN"])
    assert differences(compiled, plain) == {} and compiled.smiles == ["CCO", None, None, "[2H]C", None, "CCN"]
    assert compiled.errors[1] == "cannot be featurised: Pre-condition Violation; no such thing"


@pytest.mark.benchmark
def test_the_corpus(shared_data: Path, monkeypatch) -> None:
    """As they are written, and 2,000 of them with their atoms in another order."""
    with lzma.open(shared_data / "corpus" / "corpus.smi.xz", "rt") as file:
        texts = [line.strip() for line in islice(file, 50_000)]
    texts += [written for text in texts[:2000] for written in rewritings(text, 1)]
    counts, found = Counter(), {}
    for smiles in (True, False):
        for i in range(0, len(texts), 500):
            few = texts[i : i + 500]
            compiled, plain = both(monkeypatch, Featuriser(), few, smiles=smiles)
            apart = differences(compiled, plain)
            found |= {few[k]: names for k, names in apart.items()}
            counts["texts"] += len(few)
            counts["refused by both"] += sum(error is not None for error in plain.errors)
            counts["with a warning"] += sum(map(bool, plain.warnings))
            counts["with stereo"] += sum("@" in text or "/" in text or "\\" in text for text in few)
            counts["different"] += len(apart)
            counts.update(name for names in apart.values() for name in names)
    print(dict(counts), found)
    assert not found


# --- What the compiled way reads of RDKit's binary form itself, and what it leaves to RDKit.


def test_most_molecules_take_the_fast_way() -> None:
    forms = [binary(read_smiles(text)) for text in (*molecules(100).smiles, "C[C@H](N)/C=C/C", "[Na+].[Cl-]")]
    usual, graphs = Graphs.read(forms)
    assert usual == len(forms) and unsupported(graphs).mean() < 0.1


@pytest.mark.parametrize("place", [0, 8, 12])
def test_another_version_of_the_form_is_left_alone(place: int) -> None:
    assert form_version() == columns.VERSION
    form = bytearray(binary(read_smiles("C[C@H](N)C(=O)O")))
    form[place] += 1
    assert Graphs.read([bytes(form)])[0] == 0


def test_a_form_cut_short_is_left_alone() -> None:
    """Wherever it ends: nothing beyond it is read."""
    mol = read_smiles("F/C=C/[C@H]1CC[C@@H](C(=O)[O-])CC1")
    form, end = binary(mol), None
    for length in range(len(form)):
        usual, _ = Graphs.read([form[:length], form])
        end = length if usual and end is None else end
        assert usual == 0 or end <= length, length
    rings = 1 + 4 + 7  # their mark, how many, the one: its size and atoms
    assert end == form.index(bytes([66, 1, 0, 0, 0, 6])) + rings
