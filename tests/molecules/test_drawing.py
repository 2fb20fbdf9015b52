"""Drawings by hand become molecules, and molecules become pictures."""

import random
import re
import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np
import pytest
from rdkit import Chem

from gtx.molecules import Featuriser, MoleculeError, draw_attention, draw_molecule, read_smiles
from gtx.molecules.sketch import ImpossibleAtoms, Sketch, SketchAtom, SketchBond, sketch_to_smiles, smiles_to_sketch
from tests.molecules_for_tests import SMILES
from tests.tables import molecules

from .rewriting import ODD

DRAWN = [
    *(smiles for smiles in SMILES if "[2H]" not in smiles),
    *("C/C=C\\C", "CC=CC", "C\\C=C\\C=C/C=CC", "CC(=NO)C", "C[S@](=O)CC", "C[C@@H]1CC[C@H](O)CC1", "C#C[N+](C)(C)C"),
    *("C[N+](=O)[O-]", "[O-]c1ccccc1", "c1cc[nH]c1", "C[Se]C", "O=[PH](O)O", "[Fe+2]", "NC(=N)N", "C=C=C"),
]


def written(smiles: str) -> str:
    return Chem.MolToSmiles(read_smiles(smiles))


@pytest.mark.parametrize("smiles", [*DRAWN, *molecules(12)["smiles"]])
def test_what_is_drawn_is_the_same_molecule(smiles: str) -> None:
    sketch = smiles_to_sketch(smiles)
    found, hydrogens = sketch_to_smiles(sketch)
    assert found == written(smiles)
    assert hydrogens == [atom.GetTotalNumHs() for atom in read_smiles(smiles).GetAtoms()]
    places = np.array([(atom.x, atom.y) for atom in sketch.atoms])
    lengths = [np.hypot(*(places[bond.begin] - places[bond.end])) for bond in sketch.bonds]
    assert not lengths or 0.7 < np.median(lengths) < 1.3


@pytest.mark.parametrize("smiles", ["C[C@H](N)C(=O)O", "C/C(F)=C(Cl)\\C", "C[C@@H]1CC[C@H](O)CC1"])
def test_a_drawing_may_be_turned_and_renumbered_and_its_mirror_image_is_another(smiles: str) -> None:
    sketch, random_ = smiles_to_sketch(smiles), random.Random(0)
    order = random_.sample(range(len(sketch.atoms)), len(sketch.atoms))
    turned = [replace(atom, x=-3 * atom.y + 7, y=3 * atom.x) for atom in sketch.atoms]
    renumbered = [replace(bond, begin=order.index(bond.begin), end=order.index(bond.end)) for bond in sketch.bonds]
    random_.shuffle(renumbered)
    assert sketch_to_smiles(Sketch([turned[i] for i in order], renumbered))[0] == written(smiles)
    mirrored = Sketch([replace(atom, x=-atom.x) for atom in sketch.atoms], sketch.bonds)
    chiral = any(mark in written(smiles) for mark in ("[C@H](N)", "[C@@H](N)"))
    assert (sketch_to_smiles(mirrored)[0] != written(smiles)) == chiral


@pytest.mark.parametrize(
    ("smiles", "reason"),
    [
        ("[13CH4]", r"cannot be drawn without loss: \[13CH4\] would become C"),
        ("[CH3]", "cannot be drawn without loss"),
        ("[NH3]->[Fe]", "a bond of type dative"),
        ("C1CC", "cannot be read: unclosed ring"),
        ("C" * 201, "has 201 atoms; a drawing may have 200"),
    ],
)
def test_a_molecule_that_a_drawing_would_change_is_refused(smiles: str, reason: str) -> None:
    with pytest.raises(MoleculeError, match=reason):
        smiles_to_sketch(smiles)


def star(element: str, arms: int, kind: str = "single", charge: int = 0) -> Sketch:
    """An atom with so many carbons around it."""
    atoms = [SketchAtom(element, 0, 0, charge), *(SketchAtom("C", np.cos(i), np.sin(i)) for i in range(arms))]
    return Sketch(atoms, [SketchBond(0, i + 1, kind) for i in range(arms)])


def test_atoms_with_too_many_bonds_are_named() -> None:
    for sketch, reason in (
        (star("C", 5), "C with 5"),
        (star("N", 2, "double"), "N with 4"),
        (star("O", 4, charge=1), "O+"),
    ):
        with pytest.raises(ImpossibleAtoms, match=f"too many bonds at an atom: {reason.replace('+', '[+]')}") as caught:
            sketch_to_smiles(sketch)
        assert caught.value.atoms == [0]
    assert sketch_to_smiles(star("N", 4, charge=1))[0] == "C[N+](C)(C)C"
    both = Sketch([*star("C", 5).atoms, *star("F", 2).atoms], [*star("C", 5).bonds, SketchBond(6, 7), SketchBond(6, 8)])
    with pytest.raises(ImpossibleAtoms) as caught:
        sketch_to_smiles(both)
    assert caught.value.atoms == [0, 6]


C = SketchAtom("C", 0, 0)
WRONG = {
    "has no atoms": Sketch([], []),
    "'Xx', which is no element": Sketch([SketchAtom("Xx", 0, 0)], []),
    "which is no place": Sketch([SketchAtom("C", float("nan"), 0)], []),
    "from atom 0 to atom 0": Sketch([C], [SketchBond(0, 0)]),
    "from atom 0 to atom 5: expected two of 2": Sketch([C, C], [SketchBond(0, 5)]),
    "joined once": Sketch([C, C], [SketchBond(0, 1), SketchBond(1, 0)]),
    "of kind 'bent': expected single": Sketch([C, C], [SketchBond(0, 1, "bent")]),
    "has 201 atoms": Sketch([C] * 201, []),
    "has 325 bonds; a drawing may have 300": Sketch([C] * 26, [SketchBond(i, j) for i in range(26) for j in range(i)]),
    "rings in a ring system": Sketch([C] * 24, [SketchBond(i, j) for i in range(24) for j in range(i)]),
}


@pytest.mark.parametrize("reason", WRONG)
def test_what_is_no_drawing(reason: str, capfd) -> None:
    with pytest.raises(MoleculeError, match=reason):
        sketch_to_smiles(WRONG[reason])
    assert capfd.readouterr() == ("", "")  # RDKit's own complaints and traces stay inside


# --- Pictures: well-formed, self-contained, with the shading and the scale that the numbers ask for.


ASPIRIN = "CC(=O)Oc1ccccc1C(=O)O"
SVG = "{http://www.w3.org/2000/svg}"


def parse(svg: str) -> ET.Element:
    element = ET.fromstring(svg)
    assert element.tag == f"{SVG}svg" and "http" not in svg.replace("http://www.w3.org/", "")
    return element


def fills(svg: str) -> list[str]:
    """Colours of the discs behind atoms, in the order of atoms."""
    return re.findall(r"<ellipse[^>]*fill:(#[0-9A-Fa-f]{6})", svg)


@pytest.mark.parametrize("smiles", [ASPIRIN, *ODD, "C:C", "N[C@@H](C)C(=O)" * 60 + "O"])
def test_anything_readable_can_be_drawn(smiles: str) -> None:
    element = parse(draw_molecule(smiles, title="a < b & c", size=(260, 180)))
    assert (element.get("width"), element.get("height")) == ("260", "180")


def test_values_shade_atoms_red_and_blue() -> None:
    svg = draw_molecule("CCO", [1.0, 0.0, -1.0])
    red, white, blue = (tuple(int(c[i : i + 2], 16) for i in (1, 3, 5)) for c in fills(svg))
    assert red[0] > red[2] and blue[2] > blue[0] and white == (255, 255, 255)
    labels = [text.text for text in parse(svg).iter(f"{SVG}text")]
    assert labels[-3:] == ["-1", "0", "1"]


def test_attention_is_darkest_where_the_weight_is_largest() -> None:
    weights = np.full((13, 13), 0.01)
    weights[4, 7], weights[7, 2] = 0.88, 0.88  # row 4 is the receiver's, column 4 is not
    svg = draw_attention(ASPIRIN, weights, receiver=4)
    brightness = [sum(int(c[i : i + 2], 16) for i in (1, 3, 5)) for c in fills(svg)]
    assert len(brightness) == 13 and int(np.argmin(brightness)) == 7 and sorted(brightness)[1] > 750
    assert [text.text for text in parse(svg).iter(f"{SVG}text")][-3:] == ["0", "0.44", "0.88"]
    rings = list(parse(svg).iter(f"{SVG}circle"))
    assert len(rings) == 1
    assert parse(draw_attention("C", np.ones((1, 1)), 0)) is not None


def test_rings_and_numbers() -> None:
    plain, ringed = draw_molecule("CCO", [1, 0, 2]), draw_molecule("CCO", [1, 0, 2], ringed=[0, 2])
    assert len(list(parse(plain).iter(f"{SVG}circle"))) == 0 and len(list(parse(ringed).iter(f"{SVG}circle"))) == 2
    for svg in (draw_molecule("CCO", numbers=True), draw_attention("CCO", np.eye(3), 0, numbers=True)):
        assert [path.get("class") for path in parse(svg).iter(f"{SVG}path")].count("note") == 3
    assert "note" not in draw_molecule("CCO")


def test_a_molecule_is_drawn_with_the_atoms_it_has_and_flat() -> None:
    mol = Featuriser(standardise=True).read("[Na+].CCCCC(=O)[O-]")
    flat = draw_molecule(mol, np.arange(7))
    assert len(fills(flat)) == 7
    conformer = Chem.Conformer(7)
    conformer.Set3D(True)  # all atoms in one point: seen as it stands, it would be a dot
    mol.AddConformer(conformer)
    assert draw_molecule(mol, np.arange(7)) == flat


def test_numbers_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match=r"4 values came for 3 atoms \(9 with hydrogens\)"):
        draw_molecule("CCO", [1, 2, 3, 4])
    with pytest.raises(ValueError, match="receiver 3 is not among the 3 atoms"):
        draw_attention("CCO", np.eye(3), 3)
    with pytest.raises(ValueError, match=r"\[n, n\]"):
        draw_attention("CCO", np.ones(3), 0)
    with pytest.raises(MoleculeError):
        draw_molecule("C1CC")
