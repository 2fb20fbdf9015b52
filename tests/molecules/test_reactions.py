"""Reactions: reading, matching of atoms, codes of both sides, canonical text; pictures and fingerprints."""

import random
import re

import numpy as np
import pytest
from rdkit import Chem

from gtx.base.errors import InputError
from gtx.data.rows import is_molecule
from gtx.molecules import Featuriser, draw_molecule, morgan_counts, murcko_scaffold
from gtx.molecules.graphs import (
    ATOM_FEATURE_VALUES,
    ATOM_INDEX,
    BOND_FEATURE_VALUES,
    BOND_INDEX,
    atom_code,
    bond_code,
    name_code,
    quietly,
)
from gtx.molecules.perception import featurise_texts
from gtx.molecules.reactions import MODES, list_molecules, read_reaction
from gtx.molecules.reading import RELATIVE_STEREO

ESTER = "[CH3:1][C:2](=[O:3])[OH:4].[CH3:5][CH2:6][OH:7]>>[CH3:1][C:2](=[O:3])[O:7][CH2:6][CH3:5].[OH2:4]"
ABSTRACTION = (
    "[H:10][C:11]([H:12])[H:13].[C:6]([H:7])([H:8])([H:9])[O:1][H:2]"
    ">>[C:6]([H:7])([H:8])[O:1][H:2].[H:9][C:11]([H:10])([H:12])[H:13]"
)
SN2 = "[Br-:1].[CH3:2][C@H:3]([Cl:4])[CH2:5][CH3:6]>>[CH3:2][C@@H:3]([Br:1])[CH2:5][CH3:6].[Cl-:4]"
LEAVING = "[CH3:1][C:2](=[O:3])Cl.[NH2:4][CH3:5]>>[CH3:1][C:2](=[O:3])[NH:4][CH3:5]"
REACTIONS = [ESTER, ABSTRACTION, SN2, LEAVING]
PLAIN = Featuriser(descriptors=False, reaction="reactants-products")


def rewritten(reaction: str, seed: int) -> str:
    """Give a reaction other map numbers, another order of molecules and atoms."""
    draw = random.Random(seed)
    numbers = sorted({int(number) for number in re.findall(r":(\d+)\]", reaction)})
    new = dict(zip(numbers, draw.sample(range(1, 300), len(numbers)), strict=True))
    reaction = re.sub(r":(\d+)\]", lambda match: f":{new[int(match[1])]}]", reaction)
    parameters, sides = Chem.SmilesParserParams(), []
    parameters.removeHs = False  # type: ignore[assignment]
    for side in reaction.split(">>"):
        mol = Chem.MolFromSmiles(side, parameters)
        order = draw.sample(range(mol.GetNumAtoms()), mol.GetNumAtoms())
        parts = Chem.MolToSmiles(Chem.RenumberAtoms(mol, order), canonical=False).split(".")
        sides.append(".".join(draw.sample(parts, len(parts))))
    return ">>".join(sides)


@pytest.mark.parametrize("reaction", REACTIONS)
def test_canonical_text_is_the_reaction_whatever_its_numbers_order_or_spelling(reaction: str) -> None:
    text = PLAIN(reaction).smiles
    assert text is not None
    same = featurise_texts(PLAIN, [text, *(rewritten(reaction, seed) for seed in range(8))])
    assert set(same.smiles) == {text} and set(same.errors) == {None}
    assert PLAIN(">>".join(reversed(reaction.split(">>")))).smiles != text


def test_other_reactions_have_other_texts() -> None:
    inverted = SN2.replace("[C@@H:3]", "[C@H:3]")
    other_oxygen = ESTER.replace("[O:7][CH2:6][CH3:5].[OH2:4]", "[O:4][CH2:6][CH3:5].[OH2:7]")
    assert len({PLAIN(text).smiles for text in (SN2, inverted, ESTER, other_oxygen)}) == 4


def test_codes_are_those_of_both_sides() -> None:
    molecule, width = PLAIN(ESTER), len(ATOM_FEATURE_VALUES)
    assert len(molecule.atoms) == 7
    hydrogens = molecule.atoms[:, [ATOM_INDEX["hydrogens"], width + ATOM_INDEX["hydrogens"]]]
    assert [atom_code("hydrogens", n) for n in (1, 2)] == hydrogens[3].tolist()  # the oxygen that becomes water
    ends = list(map(tuple, molecule.bonds.T))
    absent = len(PLAIN.bond_sizes) // 2
    half = molecule.bond_codes.shape[1] // 2
    types = molecule.bond_codes[:, [BOND_INDEX["type"], half + BOND_INDEX["type"]]]
    single, gone = bond_code("type", "SINGLE"), PLAIN.bond_sizes[0] - 2
    assert absent == half
    assert types[ends.index((1, 3))].tolist() == [single, gone]
    assert types[ends.index((1, 6))].tolist() == [gone, single]
    assert types[ends.index((6, 1))].tolist() == [gone, single]
    assert name_code("bond", 0, gone) == "bond type of an atom or bond that one side lacks, or that stays the same"


def test_mapped_hydrogens_are_atoms_and_others_are_counted() -> None:
    assert len(PLAIN(ABSTRACTION).atoms) == 10
    moved = "[CH3:1][O:2][H:3].[NH3:4]>>[CH3:1][O-:2].[NH4+:4]"  # the number 3 is on one side alone
    assert len(PLAIN(moved).atoms) == 3
    assert PLAIN(moved).smiles == PLAIN("[CH3:1][OH:2].[NH3:4]>>[CH3:1][O-:2].[NH4+:4]").smiles


def test_stereocentre_that_turns_over_has_two_labels() -> None:
    centre = PLAIN(SN2).atoms[2]
    column = ATOM_INDEX["chirality"]
    labels = [ATOM_FEATURE_VALUES["chirality"][centre[i] - 1] for i in (column, len(ATOM_FEATURE_VALUES) + column)]
    assert "none" not in labels


@pytest.mark.parametrize("mode", MODES)
def test_atoms_of_one_side_are_absent_or_balanced(mode: str) -> None:
    molecule = Featuriser(descriptors=False, reaction=mode)(LEAVING)
    elements = molecule.atoms[:, ATOM_INDEX["element"]]
    chlorine = int(np.flatnonzero(elements == atom_code("element", 17))[0])
    column, width = ATOM_INDEX["hydrogens"], len(ATOM_FEATURE_VALUES)
    absent = len(ATOM_FEATURE_VALUES["hydrogens"]) + 1
    pair = molecule.atoms[chlorine, [column, width + column]].tolist()
    if mode.endswith("balanced"):
        assert absent not in pair
    else:
        assert absent in pair
    assert any("without a map number" in warning for warning in molecule.warnings)
    group = Featuriser(descriptors=False, reaction=mode)(LEAVING.replace("Cl.", "OC."))
    (bond, _) = group.bond_codes[group.bonds.min(0) >= 5]  # of the two atoms that leave
    half, absent = len(bond) // 2, len(BOND_FEATURE_VALUES["type"]) + 1
    assert (absent in (bond[0], bond[half])) != mode.endswith("balanced")


def test_a_salt_without_numbers_on_both_sides_stays_as_it_is() -> None:
    before, after = ESTER.split(">>")
    text = f"{before}.[Na+].[Cl-].CS(C)=O>>[Cl-].O=S(C)C.{after}.[Na+]"
    salt = PLAIN(text)
    assert len(salt.atoms) == 7 + 2 + 4
    assert salt.warnings == ("molecules without map numbers that are on both sides are read as unchanged",)
    assert (salt.atoms[7:, :10] == salt.atoms[7:, 10:]).all()
    assert PLAIN(salt.smiles or "").smiles == salt.smiles
    alone = featurise_texts(PLAIN, ["CCO>>CCO", f"{before}.[Na+]>>{after}.[K+]"])
    assert all("lacks atom map numbers" in (error or "") for error in alone.errors)


def test_difference_marks_what_stays() -> None:
    molecule = Featuriser(descriptors=False, reaction="reactants-difference")(ESTER)
    same = np.array(Featuriser(reaction="reactants-difference").atom_sizes[: len(ATOM_FEATURE_VALUES)]) - 1
    changed = (molecule.atoms[:, len(ATOM_FEATURE_VALUES) :] != same).any(1)
    assert changed.tolist() == [False, False, False, True, False, False, True]


ERRORS = {
    "": "the text is empty",
    "n/a": "the text stands for an empty cell",
    "CCO": "expected reactants>agents>products, with two >, got 0",
    "C>>C>>C": "got 4",
    ">>[CH4:1]": "there are no reactants",
    "[CH4:1]>>": "there are no products",
    "[CH4:1]>>[CH4:1](": "(in the products)",
    "CCO>>CC=O": "atom 0 (C) of the reactants, counted from 0, has none, and the products have 3 without a partner",
    "[CH3:1][OH:2].C>>[CH3:1][OH:2].[CH4:3]": "atom 2 (C) of the reactants",
    "[CH3:1][OH:1]>>[CH3:1][OH:2]": "the map number 1 on two atoms of the reactants",
    "[CH3:1][OH:2]>>[CH3:2][OH:1]": "the map number 1 on C in the reactants and O in the products",
}


@pytest.mark.parametrize("text", ERRORS)
def test_bad_reaction_is_an_error_with_its_reason(text: str) -> None:
    found = featurise_texts(PLAIN, [ESTER, text])
    assert found.errors[0] is None
    assert ERRORS[text] in (found.errors[1] or "")


@pytest.mark.parametrize("arrow", [">>", " >> "])
def test_an_extension_is_that_of_the_reaction_and_told(arrow: str) -> None:
    """Not of its products, where the same numbers would name other atoms."""
    found = PLAIN(f"[CH3:1].[CH3:2]{arrow}[CH3:1][CH3:2] |^1:0,1|")
    assert found.warnings == ("the extension |^1:0,1| of the reaction is ignored",)


def test_stereo_and_the_limit_of_atoms_are_those_of_both_sides() -> None:
    flat = Featuriser(reaction="reactants-products", ignore_stereo=True, max_atoms=6)
    assert flat(SN2).smiles == flat(SN2.replace("@", "")).smiles
    assert featurise_texts(flat, [ESTER]).errors == ["has 7 atoms; the limit is 6"]


def test_what_the_products_lack_is_told() -> None:
    text = "[CH3:1][Br:2]>>[CH3:1][Se]C.[Br-:2]"
    values = Featuriser(reaction="reactants-products")(text)
    assert np.isnan(values.descriptors).any() and any("PEOE_VSA" in warning for warning in values.warnings)


def test_agents_are_told_or_read() -> None:
    text = ESTER.replace(">>", ">OS(=O)(=O)O.[Na+]>")
    left_out = PLAIN(text)
    assert "OS(=O)(=O)O.[Na+]" in left_out.warnings[0]
    assert left_out.smiles == PLAIN(ESTER).smiles
    agents = Featuriser(descriptors=False, reaction="reactants-products", agents=True)
    assert len(agents(text).atoms) == 7 + 5 + 1
    assert not agents(text).warnings
    assert agents(rewritten(ESTER, 1).replace(">>", ">[Na+].O=S(O)(=O)O>")).smiles == agents(text).smiles


def test_molecule_beside_a_reaction_is_a_component() -> None:
    pairs = Featuriser(reaction="reactants-products", components=("reaction", "solvent"))
    found = featurise_texts(pairs, [(ESTER, "OCC"), ("OCC", ESTER), (ESTER, "C("), (ESTER, "C[C@H](O)CC |o1:1|")])
    assert found.component_sizes is not None
    assert found.component_sizes.tolist() == [[7, 3], [7, 5]]
    assert found.warnings[0] == () and RELATIVE_STEREO in found.warnings[3][0]
    assert ">CCO>" in (found.smiles[0] or "")
    assert 'reaction "OCC": is no reaction' in (found.errors[1] or "")
    assert 'solvent "C(": cannot be read' in (found.errors[2] or "")
    atoms = found.atoms[7:10]
    assert (atoms[:, :10] == atoms[:, 10:]).all()


@pytest.mark.parametrize("setting", [{"hydrogens": True}, {"standardise": True}, {"conformers": True}])
def test_settings_of_molecules_are_refused(setting: dict[str, bool]) -> None:
    with pytest.raises(InputError, match=f"leave out `{next(iter(setting))}`"):
        Featuriser(reaction="reactants-products", **setting)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"reaction: expected one of .* did you mean 'reactants-products'"):
        Featuriser(reaction="reactant-products")  # type: ignore[arg-type]


def test_molecules_of_a_reaction_have_no_numbers() -> None:
    assert list_molecules(ESTER) == ["CC(=O)O", "CCO", "CCOC(C)=O", "O"]
    assert list_molecules("OCC") == ["OCC"]
    assert [is_molecule(text) for text in ("C>>N", "CCO", ">10", "C>N")] == [True, True, False, False]


def test_fingerprint_scaffold_and_picture_of_a_reaction() -> None:
    counts = morgan_counts([ESTER, ">>".join(reversed(ESTER.split(">>")))])
    assert (counts[0, :1024] == counts[1, 1024:]).all()
    assert (counts[0, :1024] != counts[0, 1024:]).any()
    assert murcko_scaffold("[CH3:1][Cl:2].c1ccccc1CCO>>[CH3:1].[Cl:2]") == "c1ccccc1"
    for text, sides in ((ESTER, 2 * 7), (">>".join(reversed(LEAVING.split(">>"))), 5 + 6)):
        with quietly():
            count = read_reaction(text).places.shape[1]
        picture = draw_molecule(text, np.arange(count), numbers=True, ringed=[0])
        assert picture.count("class='note'") == sides  # every atom on the sides that have it
        assert picture.count("<circle") == 2
