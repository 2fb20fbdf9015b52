"""Features of atoms and bonds, and the featuriser."""

import json
import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rdkit import Chem, rdBase
from rdkit.Chem import AllChem
from rdkit.Chem.EnumerateStereoisomers import EnumerateStereoisomers, StereoEnumerationOptions

from gtx.molecules import ATOM_FEATURE_VALUES, BOND_FEATURE_VALUES, Featuriser, Molecule, MoleculeError, read_smiles
from gtx.molecules import graphs as stereo
from gtx.molecules.descriptors import MOLECULE_FEATURES
from gtx.molecules.graphs import ATOM_INDEX, BOND_INDEX, quietly
from gtx.molecules.perception import featurise_texts

from .rewriting import CAGES, ODD, SYMMETRIC, coloured_graph, inchi_key, labels, rewritings, sample

FEATURISER = Featuriser(descriptors=False)


def atoms(smiles: str, column: str) -> list:
    """Values of one column; None for other."""
    values = (None, *ATOM_FEATURE_VALUES[column])
    return [values[code] for code in FEATURISER(smiles).atoms[:, ATOM_INDEX[column]]]


def bonds(smiles: str, column: str) -> list:
    values = (None, *BOND_FEATURE_VALUES[column])
    return [values[code] for code in FEATURISER(smiles).bond_codes[::2, BOND_INDEX[column]]]


@pytest.mark.parametrize(
    ("smiles", "column", "expected"),
    [
        ("CC(=O)[O-]", "element", [6, 6, 8, 8]),
        ("*[Og]", "element", [None, 118]),
        ("CC(=O)[O-]", "charge", [0, 0, 0, -1]),
        ("[Fe+3].[C-7]", "charge", [3, None]),
        ("CC(=O)O", "hydrogens", [3, 0, 0, 1]),
        ("CC(C)(C)C", "degree", [1, 4, 1, 1, 1]),
        ("CC#CC=C", "hybridisation", ["SP3", "SP", "SP", "SP2", "SP2"]),
        ("FS(F)(F)(F)(F)F", "hybridisation", ["SP3", "SP3D2"] + ["SP3"] * 5),
        ("c1cc[nH]c1C", "aromatic", [True] * 5 + [False]),
        ("C1CC1C2CCCC2C", "ring", [3, 3, 3, 5, 5, 5, 5, 5, 0]),
        ("C1CCC1CC12CCCCC1CC2", "ring", [4, 4, 4, 4, 0, 4, 6, 6, 6, 6, 4, 4, 4]),
        ("C" * 3 + "1" + "C" * 22 + "C1", "ring", [0, 0] + [24] * 24),
        ("C1" + "C" * 23 + "C1", "ring", [None] * 25),
        ("[CH3].[O][O].[CH2]", "radical", [1, 1, 1, 2]),
        ("[13CH4].C", "isotope", [True, False]),
        ("C[N+](C)(C)C", "hydrogens", [3, 0, 3, 3, 3]),
    ],
)
def test_atom_columns(smiles: str, column: str, expected: list) -> None:
    assert atoms(smiles, column) == expected


@pytest.mark.parametrize(
    ("smiles", "column", "expected"),
    [
        ("C=CC#N", "type", ["DOUBLE", "SINGLE", "TRIPLE"]),
        ("C1=CC=CC=C1C", "type", ["AROMATIC"] * 5 + ["SINGLE", "AROMATIC"]),
        ("N->[Pt]", "type", ["DATIVE"]),
        ("C$C", "type", [None]),
        ("C=CC=CCC", "conjugated", [True, True, True, False, False]),
        ("C1CC1C", "ring", [True, True, False, True]),
    ],
)
def test_bond_columns(smiles: str, column: str, expected: list) -> None:
    assert sorted(map(str, bonds(smiles, column))) == sorted(map(str, expected))


def test_bonds_go_both_ways() -> None:
    mol, found = read_smiles("CC(=O)Oc1ccccc1C(=O)O"), FEATURISER("CC(=O)Oc1ccccc1C(=O)O")
    ends, codes = found.bonds, found.bond_codes
    assert ends.dtype == np.int32 and codes.dtype == np.uint8 and ends.shape == (2, len(codes)) == (2, 26)
    assert (ends[:, ::2] == ends[::-1, 1::2]).all() and (codes[::2] == codes[1::2]).all()
    assert {frozenset(pair) for pair in ends.T.tolist()} == {
        frozenset((bond.GetBeginAtomIdx(), bond.GetEndAtomIdx())) for bond in mol.GetBonds()
    }


@pytest.mark.parametrize("text", [*CAGES, *ODD])
def test_cages_and_odd_molecules_however_written(text: str) -> None:
    molecule = FEATURISER(text)
    for written in rewritings(text, 8):
        assert coloured_graph(FEATURISER(written)) == coloured_graph(molecule), written


@pytest.mark.slow
def test_real_molecules_however_written(shared_data: Path) -> None:
    """Aromatic or not, with hydrogens or without, and with their atoms in another order."""
    with_hydrogens = Featuriser(descriptors=False, hydrogens=True)
    texts = [*sample(shared_data, 14, stereo=True), *sample(shared_data, 6, stereo=False, seed=1)]
    labelled = 0
    for text in texts:
        molecule, mol = FEATURISER(text), read_smiles(text)
        assert inchi_key(molecule.smiles) == inchi_key(text)
        labelled += labels(molecule) != ("", "")
        kekulised = Chem.Mol(mol)
        Chem.Kekulize(kekulised, clearAromaticFlags=True)
        styles = [
            Chem.MolToSmiles(kekulised, kekuleSmiles=True, canonical=False),
            Chem.MolToSmiles(mol, allHsExplicit=True, allBondsExplicit=True),
            Chem.MolToSmiles(Chem.AddHs(mol)),
            *rewritings(text, 2),
        ]
        for written in styles:
            again = FEATURISER(written)
            assert coloured_graph(again) == coloured_graph(molecule), (text, written)
            assert again.smiles == molecule.smiles, (text, written)
        graphs = {coloured_graph(with_hydrogens(written)) for written in (text, *styles[2:])}
        assert len(graphs) == 1, text
    assert len(texts) > 60 and labelled > 40


# --- CIP labels: right where the literature is clear, and the same however the molecule is written.


def isomers(flat: str, tried: int = 16) -> list[str]:
    """A SMILES of each stereoisomer of `flat`, as InChI tells them apart."""
    options = StereoEnumerationOptions(maxIsomers=tried, unique=False, rand=0)
    written = [Chem.MolToSmiles(mol) for mol in EnumerateStereoisomers(Chem.MolFromSmiles(flat), options)]
    return sorted({inchi_key(text): text for text in written}.values())


@pytest.mark.parametrize(
    ("smiles", "atoms", "bonds"),
    [
        ("C[C@H](N)C(=O)O", "S", ""),  # L-alanine
        ("N[C@@H](CS)C(=O)O", "R", ""),  # L-cysteine
        ("OC(=O)[C@H](O)[C@@H](O)C(=O)O", "RR", ""),  # L-tartaric acid
        ("OC(=O)[C@H](O)[C@H](O)C(=O)O", "RS", ""),  # meso-tartaric acid
        ("OC[C@H](O)[C@@H](O)[C@H](O)CO", "RSr", ""),  # xylitol, (2R,3r,4S)
        ("OC[C@H](O)[C@H](O)[C@H](O)CO", "RSs", ""),  # ribitol, (2R,3s,4S)
        ("C/C=C/C", "", "E"),
        ("C/C=C\\C", "", "Z"),
        ("C/C=C/[C@H](O)/C=C\\C", "S", "EZ"),
        ("[2H][C@H](O)C", "S", ""),  # by isotope alone
        ("C[S@](=O)c1ccccc1", "S", ""),
        ("CC(N)C(=O)O", "", ""),
    ],
)
def test_known_labels(smiles: str, atoms: str, bonds: str) -> None:
    assert labels(FEATURISER(smiles)) == (atoms, bonds)


@pytest.mark.parametrize("flat", SYMMETRIC)
def test_symmetric_molecules_keep_their_labels(flat: str) -> None:
    for isomer in isomers(flat):
        molecule = FEATURISER(isomer)
        for written in rewritings(isomer, 6):
            assert coloured_graph(FEATURISER(written)) == coloured_graph(molecule), written


@pytest.mark.parametrize(
    ("flat", "count"), [("OC1C(O)C(O)C(O)C(O)C1O", 9), ("CC1CCC(C)CC1", 2), ("OC(C(O)C(=O)O)C(=O)O", 3)]
)
def test_stereoisomers_are_told_apart(flat: str, count: int) -> None:
    """The nine inositols, 1,4-dimethylcyclohexane, tartaric acid."""
    written = isomers(flat, 64)
    assert len({coloured_graph(FEATURISER(isomer)) for isomer in written}) == len(written) == count


@pytest.mark.parametrize("legacy", [True, False])
def test_the_callers_perception_changes_nothing_and_is_left_alone(legacy: bool) -> None:
    texts = [written for isomer in isomers("FC1C(F)C(F)C(F)C1F") for written in rewritings(isomer, 10)]
    expected = [coloured_graph(FEATURISER(text)) for text in texts]
    before = Chem.GetUseLegacyStereoPerception()
    Chem.SetUseLegacyStereoPerception(legacy)
    try:
        assert [coloured_graph(FEATURISER(text)) for text in texts] == expected
        assert Chem.GetUseLegacyStereoPerception() is legacy
        first, second = quietly(), quietly()  # of two threads
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert Chem.GetUseLegacyStereoPerception()
        second.__exit__(None, None, None)
        assert Chem.GetUseLegacyStereoPerception() is legacy
    finally:
        Chem.SetUseLegacyStereoPerception(before)


def test_what_takes_too_long_is_undecided_and_said(monkeypatch) -> None:
    monkeypatch.setattr(stereo, "_MAX_ITERATIONS", 1)
    molecule = FEATURISER("C/C=C/[C@H]1CC[C@@H](C)CC1")
    assert labels(molecule) == ("??", "?")
    assert molecule.warnings == ("stereochemistry that CIP rules could not name is ignored",)


def test_square_planar_is_said_to_be_ignored() -> None:
    molecule = FEATURISER("N[Pt@SP1](N)(Cl)Cl")
    assert labels(molecule) == ("?", "") and molecule.warnings


# --- The featuriser: settings, coordinates, hydrogens, limits, hashes.


ALANINE = "C[C@H](N)C(=O)O"
SPACE = Featuriser(coordinates=True)
NODES = Featuriser(coordinates=True, hydrogens=True)


@pytest.fixture(scope="module")
def alanine() -> Chem.Mol:
    """L-alanine in space: six heavy atoms, then seven hydrogens."""
    mol = Chem.AddHs(Chem.MolFromSmiles(ALANINE))
    assert AllChem.EmbedMolecule(mol, randomSeed=1) == 0
    return mol


@pytest.fixture(scope="module")
def places(alanine: Chem.Mol) -> np.ndarray:
    return alanine.GetConformer().GetPositions()


def elements(molecule: Molecule) -> list[int]:
    return molecule.atoms[:, ATOM_INDEX["element"]].tolist()


def test_coordinates_of_heavy_atoms_or_of_all(places: np.ndarray) -> None:
    heavy = places[:6].astype(np.float32)
    for given in (places, places[:6], places.ravel(), places[:6].ravel().tolist()):
        molecule = SPACE(ALANINE, given)
        assert (molecule.positions == heavy).all() and molecule.positions.dtype == np.float32
    assert Featuriser()(ALANINE, places).positions is None


def test_hydrogens_as_nodes_keep_their_coordinates(alanine: Chem.Mol, places: np.ndarray) -> None:
    for molecule in (NODES(ALANINE, places), NODES(Chem.MolToMolBlock(alanine))):
        assert elements(molecule) == [6, 6, 7, 6, 8, 8] + [1] * 7
        assert np.abs(molecule.positions - places).max() < 1e-4
    added = NODES(ALANINE, places[:6])  # hydrogens that RDKit places
    assert elements(added) == elements(molecule) and np.isfinite(added.positions).all()


@pytest.mark.parametrize(
    ("smiles", "expected", "placed"),
    [
        (ALANINE, ALANINE, 0),
        ("[Na+].C[C@H]([NH3+])C(=O)[O-].O", ALANINE, 1),  # the acid's proton has no place yet
        ("c1cc[nH+]cc1.[Cl-]", "c1ccncc1", 0),
        ("c1cc[nH]c1", "c1cc[nH]c1", 0),
        ("[2H]C([2H])[NH3+]", "[2H]C([2H])N", 0),
        ("C[C@@](F)(Cl)[NH3+]", "C[C@@](N)(F)Cl", 0),
        ("[H][H]", "[H][H]", 0),
    ],
)
def test_standardising_keeps_the_hydrogens_that_were_given(smiles: str, expected: str, placed: int) -> None:
    mol = Chem.AddHs(Chem.MolFromSmiles(smiles))
    assert AllChem.EmbedMolecule(mol, randomSeed=1) == 0
    given = mol.GetConformer().GetPositions()
    for arguments in ((smiles, given), (Chem.MolToMolBlock(mol),)):
        molecule = replace(NODES, standardise=True)(*arguments)
        assert molecule.smiles == expected
        assert len(molecule.atoms) == Chem.AddHs(Chem.MolFromSmiles(expected)).GetNumAtoms()
        apart = np.linalg.norm(molecule.positions[:, None] - given, axis=-1).min(axis=1)
        assert (apart > 1e-3).sum() == placed
        bonds = np.linalg.norm(np.diff(molecule.positions[molecule.bonds], axis=0)[0], axis=-1)
        assert bonds.min() > 0.6 and bonds.max() < 2  # what belongs together is together


def test_explicit_hydrogens_in_the_text_have_their_places(alanine: Chem.Mol, places: np.ndarray) -> None:
    order = np.random.default_rng(0).permutation(13).tolist()
    written = Chem.RenumberAtoms(alanine, order)
    text = Chem.MolToSmiles(written, canonical=False)
    order = [order[i] for i in written.GetPropsAsDict(True, True)["_smilesAtomOutputOrder"]]
    molecule = SPACE(text, places[order])
    kept = [i for i in order if i < 6]
    assert (molecule.positions == places[kept].astype(np.float32)).all()
    assert (SPACE(text, places[kept]).positions == molecule.positions).all()
    assert molecule.smiles == ALANINE


def test_coordinates_in_another_order_are_noticed(places: np.ndarray) -> None:
    """Bonds of an impossible length, as of ethanol in the order of PyG's QM9; a shaken molecule passes."""
    ethanol = Chem.AddHs(Chem.MolFromSmiles("CCO"))
    AllChem.EmbedMolecule(ethanol, randomSeed=1)
    right = ethanol.GetConformer().GetPositions()
    NODES("CCO", right + np.random.default_rng(0).normal(0, 0.1, right.shape))
    wrong = right[[2, 1, 0, 3, 4, 5, 6, 7, 8]]
    reason = (
        r"atoms 0 \(C\) and 3 \(H\), counted from 0, are bonded and 2\.\d\d Å apart, expected 0\.59 to 1\.71: .*order"
    )
    with pytest.raises(MoleculeError, match=reason):
        NODES("CCO", wrong)
    for scale in (0.1, 1.8897):  # nm and bohr
        with pytest.raises(MoleculeError, match=r"are bonded and .* in Å"):
            SPACE(ALANINE, places * scale)


def test_coordinates_that_do_not_fit_or_are_none(alanine: Chem.Mol) -> None:
    for count in (5, 12):
        with pytest.raises(MoleculeError, match=f"coordinates for {count} atoms came; the molecule has 6 or 13"):
            SPACE(ALANINE, np.zeros((count, 3)))
    for given in ([0.0] * 17, [np.nan] * 18, [np.inf] * 18):
        with pytest.raises(MoleculeError, match="finite numbers, three per atom"):
            SPACE(ALANINE, given)
    flat = Chem.Mol(alanine)
    AllChem.Compute2DCoords(flat)
    for text in (ALANINE, Chem.MolToMolBlock(flat)):
        with pytest.raises(MoleculeError, match="no coordinates in space; this model needs them"):
            SPACE(text)


def test_the_limit_names_both_numbers() -> None:
    with pytest.raises(MoleculeError, match="has 5 atoms; the limit is 4"):
        Featuriser(max_atoms=4, hydrogens=True)("C")
    assert len(Featuriser()("N[C@@H](C)C(=O)" * 60 + "O").atoms) == 301


@pytest.mark.parametrize("settings", [{}, {"standardise": True}, {"hydrogens": True, "conformers": True}])
def test_odd_molecules_pass_in_silence(settings: dict, capfd) -> None:
    for text in [*ODD, "C:C"]:
        featuriser = Featuriser(**settings)
        molecule = featuriser(text)
        assert len(molecule.atoms) and molecule.smiles and np.isfinite(molecule.descriptors[:10]).all()
        assert all(array.flags.writeable for array in molecule[:3])  # or torch.from_numpy would complain
        assert (molecule.atoms < featuriser.atom_sizes).all() and (molecule.bond_codes < featuriser.bond_sizes).all()
        assert molecule.bonds.shape == (2, len(molecule.bond_codes)) and (molecule.bonds < len(molecule.atoms)).all()
        assert molecule.positions is None or np.isfinite(molecule.positions).all() or "unknown" in molecule.warnings[-1]
    assert capfd.readouterr() == ("", "")


def test_settings_make_a_round_trip() -> None:
    featuriser = Featuriser(max_atoms=50, hydrogens=True, descriptors=False)
    again = Featuriser.from_dict(json.loads(json.dumps(featuriser.to_dict())))
    assert again == featuriser == pickle.loads(pickle.dumps(featuriser)) and again.hash == featuriser.hash
    with pytest.raises(ValueError, match="unknown featuriser settings: colour"):
        Featuriser.from_dict({"colour": 1})
    made = Featuriser(conformers=True)
    assert made.coordinates and made == Featuriser(coordinates=True, conformers=True)
    assert made.hash != SPACE.hash and Featuriser.from_dict(made.to_dict()) == made


def test_every_setting_is_in_the_hash(monkeypatch) -> None:
    plain = Featuriser()
    other = {"max_atoms": 7, "molecule_features": ("maccs",), "components": ("solute", "solvent")}
    others = [replace(plain, **{name: other.get(name, not value)}) for name, value in plain.to_dict().items()]
    assert len({featuriser.hash for featuriser in [plain, *others]}) == len(plain.to_dict()) + 1
    before = plain.hash, plain.cache_key
    monkeypatch.setattr(rdBase, "rdkitVersion", "1999.01.1")
    assert plain.hash == before[0] and plain.cache_key != before[1]
    rdkit = Featuriser(molecule_features=("rdkit",))
    before = plain.hash, rdkit.hash  # another version of RDKit may have other descriptors
    monkeypatch.setitem(MOLECULE_FEATURES, "rdkit", MOLECULE_FEATURES["rdkit"]._replace(names=("MolWt",)))
    assert plain.hash == before[0] and rdkit.hash != before[1]


@pytest.mark.parametrize("fast", ["0", "1"])
def test_stereo_can_be_left_unread(fast: str, monkeypatch) -> None:
    monkeypatch.setenv("GTX_FAST", fast)
    flat = Featuriser(ignore_stereo=True)
    pairs = [(ALANINE, ALANINE.replace("@", "@@")), ("F/C=C/F", "F/C=C\\F"), ("C[C@@H]1C[C@H]1[2H]", "CC1CC1[2H]")]
    pairs.append(("N=CC", "[H]/N=C/C"))
    for one, other in pairs:
        found, others = (featurise_texts(flat, [text, "CCO"]) for text in (one, other))
        for name, values in found._asdict().items():
            assert np.array_equal(values, getattr(others, name)), (one, name)
        assert not np.array_equal(Featuriser()(one).smiles, Featuriser()(other).smiles)
        plain = featurise_texts(Featuriser(), [found.smiles[0], "CCO"])
        assert np.array_equal(found.atoms[:, 7], plain.atoms[:, 7]) and found.smiles == plain.smiles
    block = Chem.MolToMolBlock(Chem.MolFromSmiles(ALANINE))
    assert flat(block).smiles == flat(ALANINE).smiles == "CC(N)C(=O)O"
    for settings in ({"hydrogens": True}, {"standardise": True}, {"conformers": True}):
        assert replace(flat, **settings)(ALANINE).smiles == "CC(N)C(=O)O"


@pytest.mark.parametrize("settings", [{}, {"hydrogens": True}, {"standardise": True}, {"descriptors": False}])
def test_many_at_once_are_what_each_is_alone(settings: dict, shared_data: Path) -> None:
    featuriser = Featuriser(**settings)
    texts = [*ODD, "C1CC", "", *sample(shared_data, 15, stereo=False)]
    flat = featurise_texts(featuriser, texts)
    alone = [featuriser(text) for text, error in zip(texts, flat.errors, strict=True) if not error]
    assert len(alone) == len(texts) - 2 and [error is None for error in flat.errors] == [bool(s) for s in flat.smiles]
    assert np.array_equal(flat.atoms, np.concatenate([m.atoms for m in alone]))
    assert np.array_equal(flat.bonds, np.concatenate([m.bonds for m in alone], axis=1))
    assert np.array_equal(flat.bond_codes, np.concatenate([m.bond_codes for m in alone]))
    assert np.array_equal(flat.descriptors, np.stack([m.descriptors for m in alone]), equal_nan=True)
    assert flat.atom_counts.tolist() == [len(m.atoms) for m in alone]
    assert flat.bond_counts.tolist() == [len(m.bond_codes) for m in alone]
    assert [s for s in flat.smiles if s] == [m.smiles for m in alone]
    assert [w for w, e in zip(flat.warnings, flat.errors, strict=True) if not e] == [m.warnings for m in alone]
