"""Pictures: well-formed, self-contained, with the shading and the scale that the numbers ask for."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from rdkit import Chem

from gtx.molecules import Featuriser, MoleculeError, draw_attention, draw_molecule

from .rewriting import ODD

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


@pytest.mark.parametrize("smiles", ["C" * 300, "C1" + "C" * 200 + "1"])
def test_a_large_molecule_has_no_marks_of_close_contacts(smiles: str) -> None:
    assert "#FF0000" not in draw_molecule(smiles, size=(260, 180))  # hydrocarbons have no red atom


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


def test_attention_without_a_softmax_may_be_negative() -> None:
    blue, white, red = fills(draw_attention("CCO", np.array([[-1.0, 0.0, 0.5]] * 3), 1))
    assert blue.startswith("#33") and white == "#FFFFFF" and red.upper() > "#E0"


def test_hydrogens_may_have_values_too() -> None:
    assert len(fills(draw_molecule("CO", np.arange(6)))) == 6


def test_rings_and_numbers() -> None:
    plain, ringed = draw_molecule("CCO", [1, 0, 2]), draw_molecule("CCO", [1, 0, 2], ringed=[0, 2])
    assert len(list(parse(plain).iter(f"{SVG}circle"))) == 0 and len(list(parse(ringed).iter(f"{SVG}circle"))) == 2
    for svg in (draw_molecule("CCO", numbers=True), draw_attention("CCO", np.eye(3), 0, numbers=True)):
        assert [text.text for text in parse(svg).iter(f"{SVG}text") if text.get("class") == "number"] == ["0", "1", "2"]
    assert "number" not in draw_molecule("CCO")


@pytest.mark.parametrize("smiles", [ASPIRIN, "CC(C)NCC(O)COc1cccc2ccccc12.Cl", "C1CC2CCC1CC2"])
def test_numbers_of_atoms_collide_with_nothing(smiles: str) -> None:
    count = Chem.MolFromSmiles(smiles).GetNumAtoms()
    svg = draw_molecule(smiles, np.ones(count), size=(310, 230), numbers=True)
    numbers = [text for text in parse(svg).iter(f"{SVG}text") if text.get("class") == "number"]
    font = float(numbers[0].get("font-size"))
    middles = np.array([(float(text.get("x")), float(text.get("y")) - 0.36 * font) for text in numbers])
    discs = np.array(re.findall(r"<ellipse cx='([\d.]+)' cy='([\d.]+)'", svg), float)
    radius = float(re.search(r"rx='([\d.]+)'", svg)[1])
    letters = " ".join(re.findall(r"<path class='atom-\d+' d='([^']*)'", svg))
    drawn = [np.array(re.findall(r"([\d.]+)[ ,]([\d.]+)", letters), float).reshape(-1, 2), middles]
    for i, middle in enumerate(middles):
        assert np.linalg.norm(middle - discs, axis=1).argmin() == i  # a number stands nearest to its own atom
        assert np.linalg.norm(middle - discs, axis=1).min() > radius
        assert np.linalg.norm(middle - drawn[0], axis=1).min(initial=99) > 0.4 * font
        assert np.linalg.norm(middle - np.delete(drawn[1], i, axis=0), axis=1).min() > font
    assert middles.min() > 0 and (middles < (310, 230)).all()


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


@pytest.mark.parametrize("smiles", ["CF", "CP", "CS", "CCl", "CBr", "CI", "CO", "CN"])
def test_the_colours_of_elements_are_readable_on_white(smiles):
    colours = set(re.findall(r"(?:fill|stroke):(#[0-9A-Fa-f]{6})", draw_molecule(smiles))) - {"#000000", "#FFFFFF"}
    assert colours
    for colour in colours:
        red, green, blue = (
            v / 12.92 if v <= 0.03928 else ((v + 0.055) / 1.055) ** 2.4
            for v in (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
        )
        luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue
        assert 1.05 / (luminance + 0.05) > (3.9 if smiles == "CO" else 4.5)  # pure red has 4.0
