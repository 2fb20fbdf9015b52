"""Drawings over HTTP: to a SMILES and from one, and what is refused."""

import json
from typing import Any

import pytest

from tests.serve.conftest import Client

ETHANOL = {
    "atoms": [{"element": "C", "x": 0, "y": 0}, {"element": "C", "x": 1, "y": 0}, {"element": "O", "x": 2, "y": 0.5}],
    "bonds": [{"begin": 0, "end": 1}, {"begin": 1, "end": 2, "kind": "single"}],
}


def changed(**change: Any) -> dict[str, Any]:
    return ETHANOL | change


def test_a_drawing_is_written_and_drawn_again(client: Client) -> None:
    found = client.post("/smiles", ETHANOL)
    assert found.status == 200 and found.json() == {"smiles": "CCO", "hydrogens": [3, 2, 1]}
    drawing = client.get("/sketch?smiles=C%5BC@H%5D(N)C(=O)%5BO-%5D").json()
    assert {bond["kind"] for bond in drawing["bonds"]} > {"double"} and drawing["atoms"][-1]["charge"] == -1
    assert client.post("/smiles", drawing).json()["smiles"] == "C[C@H](N)C(=O)[O-]"


def test_an_atom_that_cannot_be_is_told_with_its_number(client: Client) -> None:
    found = client.post("/smiles", changed(bonds=[{"begin": 0, "end": 2}, {"begin": 1, "end": 2, "kind": "double"}]))
    assert found.status == 422 and found.json()["atoms"] == [2]
    assert found.json()["error"].startswith("the molecule has too many bonds at an atom: O with 3;")


HOSTILE = {
    "no JSON": b"{",
    "no atoms": changed(atoms=[]),
    "a script for an element": changed(atoms=[{"element": "<script>", "x": 0, "y": 0}], bonds=[]),
    "no element": changed(atoms=[{"element": "Zz", "x": 0, "y": 0}], bonds=[]),
    "no place": b'{"atoms": [{"element": "C", "x": NaN, "y": 0}]}',
    "a charge beyond all": changed(atoms=[{"element": "C", "x": 0, "y": 0, "charge": 10**30}], bonds=[]),
    "a long name": changed(atoms=[{"element": "C" * 10_000, "x": 0, "y": 0}], bonds=[]),
    "another kind": changed(bonds=[{"begin": 0, "end": 1, "kind": "aromatic"}]),
    "an atom that is not there": changed(bonds=[{"begin": 0, "end": 3}]),
    "too many atoms": changed(atoms=ETHANOL["atoms"] * 100),
    "all atoms joined": {
        "atoms": ETHANOL["atoms"] * 8,
        "bonds": [{"begin": i, "end": j} for i in range(24) for j in range(i)],
    },
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_no_drawing_is_refused_in_one_line(client: Client, name: str) -> None:
    found = client.post("/smiles", HOSTILE[name])
    error = found.json()["error"]
    assert found.status == 422 and error and "\n" not in error and len(error) < 300
    assert error.startswith(("the request cannot be used: ", "the request is no JSON: ", "the molecule "))
    assert client.post("/smiles", ETHANOL).status == 200  # it goes on


def test_hostile_smiles_and_types(client: Client) -> None:
    for smiles in ("", "%3Cscript%3E", "C" * 201, "C" * 2001, "%5B13CH4%5D", "C%00"):
        found = client.get(f"/sketch?smiles={smiles}")
        assert found.status == 422 and "\n" not in found.json()["error"]
    assert client.ask("POST", "/smiles", json.dumps(ETHANOL).encode(), "text/plain").status == 415
