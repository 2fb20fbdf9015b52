"""Drawings of the page's editor: to a SMILES, and from one."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from gtx.errors import InputError
from gtx.molecules import MoleculeError
from gtx.molecules.sketch import (
    KINDS,
    MOST_ATOMS,
    MOST_BONDS,
    Sketch,
    SketchAtom,
    SketchBond,
    sketch_to_smiles,
    smiles_to_sketch,
)
from gtx.serve.bodies import complaint

_STRICT = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)
_FARTHEST = 1_000


class Atom(BaseModel):
    """An atom: its place is in lengths of a bond, x to the right, y up."""

    model_config = _STRICT

    element: str = Field(pattern="^[A-Z][a-z]?$", examples=["O"])
    x: float = Field(ge=-_FARTHEST, le=_FARTHEST)
    y: float = Field(ge=-_FARTHEST, le=_FARTHEST)
    charge: int = Field(0, ge=-9, le=9)


class Bond(BaseModel):
    """A bond of two atoms, by their numbers from 0. `up` and `down` are wedges, narrow at `begin`; `either` is a double
    bond that does not say which side its substituents are on."""

    model_config = _STRICT

    begin: int
    end: int
    kind: Literal[KINDS] = "single"


class Drawing(BaseModel):
    """Atoms and bonds. Hydrogen atoms need not be drawn."""

    model_config = _STRICT

    atoms: list[Atom] = Field(max_length=MOST_ATOMS)
    bonds: list[Bond] = Field([], max_length=MOST_BONDS)


class Written(BaseModel):
    """The SMILES of a drawing, and the number of hydrogen atoms of each of its atoms."""

    smiles: str
    hydrogens: list[int]


class Impossible(BaseModel):
    """What is wrong with a drawing, and with which of its atoms."""

    error: str
    atoms: list[int] = []


def written(body: bytes) -> dict[str, Any]:
    """A drawing as JSON to what `Written` has.

    Raises:
        InputError: it is no JSON, or no drawing.
        MoleculeError: the molecule cannot be.
    """
    try:
        drawing = Drawing.model_validate_json(body)
    except ValidationError as error:
        raise InputError(complaint(error)) from None
    atoms = [SketchAtom(**dict(atom)) for atom in drawing.atoms]
    smiles, hydrogens = sketch_to_smiles(Sketch(atoms, [SketchBond(**dict(bond)) for bond in drawing.bonds]))
    return {"smiles": smiles, "hydrogens": hydrogens}


def sketched(smiles: str, most: int) -> dict[str, Any]:
    """A SMILES to what `Drawing` has.

    Raises:
        InputError: it has too many characters, cannot be read, or cannot be drawn.
    """
    if len(smiles) > most:
        raise InputError(f"expected a SMILES of at most {most:,} characters, got {len(smiles):,}")
    try:
        return asdict(smiles_to_sketch(smiles))
    except MoleculeError as reason:
        raise InputError(f"the molecule {reason}") from None
