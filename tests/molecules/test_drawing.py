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
