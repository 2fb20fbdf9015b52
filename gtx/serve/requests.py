"""Bodies of requests: tables of molecules, requests for explanations, and drawings of the page's editor."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import asdict
from itertools import islice
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, JsonValue, TypeAdapter, ValidationError

from gtx.data.columns import Row, Table, damage
from gtx.data.feature_columns import cell_text
from gtx.data.targets import add_component_columns
from gtx.errors import InputError, did_you_mean, printable
from gtx.molecules import MoleculeError
from gtx.molecules.sketch import (
    MOST_ATOMS,
    MOST_BONDS,
    Sketch,
    SketchAtom,
    SketchBond,
    sketch_to_smiles,
    smiles_to_sketch,
)
from gtx.prediction import ModelFileHeader
from gtx.prediction.streaming import open_for_model

TABLE_TYPES = ("text/csv", "chemical/x-daylight-smiles", "chemical/x-mdl-sdfile")
"""Content types of tables; a page of another site cannot send them without a preflight request, unlike a form's."""

_EXAMPLE = ["CC(=O)Nc1ccc(O)cc1", "CC(=O)Oc1ccccc1C(=O)O", "Cn1cnc2c1c(=O)n(C)c(=O)n2C", "CCO", "c1ccccc1"]

METHODS = ("substructures", "shapley", "attention")


class ExplainRequest(BaseModel):
    """Molecule to explain, and the method, as in `gtx explain`."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    smiles: str = Field(examples=["CC(=O)Nc1ccc(O)cc1"])
    method: str = Field("substructures", pattern=f"^({'|'.join(METHODS)})$")
    target: str | None = Field(None, description="default: the first target of the model")
    features: dict[str, float | str | list[float | None] | None] = Field(
        {}, description="values of the feature columns, by name"
    )


_COLUMNS = TypeAdapter(dict[str, list[JsonValue]])


class TooMany(InputError):
    """Request with too many rows."""


def needed(header: ModelFileHeader) -> list[str]:
    """List the columns that a request in JSON needs."""
    return [*(header.featuriser.components or ["smiles"]), *(header.features.columns if header.features else ())]


def schema(header: ModelFileHeader) -> dict[str, Any]:
    """Build the JSON schema of a request in JSON, for OpenAPI."""
    molecules = header.featuriser.components or ("smiles",)
    number = {"type": ["number", "null"]} if header.features and header.features.blanks else {"type": "number"}
    lists = {"type": ["array", "null"] if header.features and header.features.blanks else "array", "items": number}
    kinds = {name: lists if name in _lists(header) else number for name in needed(header)}
    kinds |= {name: {"type": "string"} for name in molecules}
    return {
        "type": "object",
        "properties": {name: {"type": "array", "items": kind} for name, kind in kinds.items()},
        "required": list(kinds),
        "additionalProperties": False,
        "examples": [{name: _examples(header, name, ["CCO", "c1ccccc1"], [1.0, 2.0]) for name in kinds}],
    }


def example(header: ModelFileHeader) -> str:
    """Write an example of a table that the model can read."""
    molecules, columns = header.featuriser.components or ["smiles"], needed(header)
    if len(columns) == 1:
        return "\n".join(_EXAMPLE)
    cells = [[*_EXAMPLE[i:], *_EXAMPLE[:i]] for i in range(len(molecules))]
    for name in columns[len(molecules) :]:
        values = _examples(header, name, _EXAMPLE, [1] * len(_EXAMPLE))
        cells.append([" ".join(map(str, np.atleast_1d(value))) for value in values])
    return "\n".join(map(",".join, [columns, *zip(*cells, strict=True)]))


def read_json(header: ModelFileHeader, body: bytes) -> Table:
    """Read a table from columns of JSON, `{"smiles": ["CCO", ...]}`, all of the same length.

    Raises:
        InputError: the body is no JSON, a column is missing or unknown, or a cell has the wrong type.
    """
    try:
        columns = _COLUMNS.validate_json(body, strict=True)
    except ValidationError as error:
        raise InputError(complaint(error)) from None
    names, molecules, lists = needed(header), header.featuriser.components or ("smiles",), _lists(header)
    kinds = {name: "text" if name in molecules else "list" if name in lists else "number" for name in names}
    for name in columns:
        if name not in names:
            near = did_you_mean(name, names)
            raise InputError(f'unknown column "{printable(name)}"{near or ";"} this model reads {", ".join(names)}')
    if missing := [name for name in names if name not in columns]:
        raise InputError(f'column "{missing[0]}" is missing; this model reads {", ".join(names)}')
    lengths = {len(cells) for cells in columns.values()}
    if len(lengths) > 1:
        shown = ", ".join(f'"{name}" {len(columns[name])}' for name in names)
        raise InputError(f"expected columns of one length, got {shown}")
    texts = [[_text(name, i, cell, kinds[name]) for i, cell in enumerate(columns[name], 1)] for name in names]
    first = names.index(molecules[0])

    def rows() -> Iterator[Row]:
        for number, cells in enumerate(zip(*texts, strict=True), start=1):
            yield Row(number, list(cells), cells[first], error=damage(cells[first]))

    table = Table(names, molecules[0], rows(), lengths.pop())
    if len(molecules) > 1:
        table = add_component_columns(table, molecules[1:])
    return header.features.read_table(table) if header.features else table


def read_text(header: ModelFileHeader, body: bytes) -> Table:
    """Read a table: a CSV, lines of SMILES or an SDF, recognised by its first lines.

    Raises:
        InputError: the body is compressed, a workbook, or no such table.
    """
    if body.startswith((b"\x1f\x8b", b"PAR1")):
        raise InputError("expected text: a CSV, lines of SMILES or an SDF, not compressed and not Parquet")
    return open_for_model(header, io.BufferedReader(io.BytesIO(body)))


def all_rows(table: Table, most: int) -> list[Row]:
    """Read all rows of a table.

    Raises:
        TooMany: the table has more than `most` rows.
    """
    rows = list(islice(table.rows, most + 1))
    if len(rows) > most:
        raise TooMany(f"expected at most {most:,} molecules in a request, got more; gtx predict has no limit")
    return rows


def read_explain_request(body: bytes) -> ExplainRequest:
    """Read a request for an explanation.

    Raises:
        InputError: the body is no JSON, or an entry is missing, unknown or of the wrong type.
    """
    try:
        return ExplainRequest.model_validate_json(body)
    except ValidationError as error:
        raise InputError(complaint(error)) from None


def _lists(header: ModelFileHeader) -> tuple[str, ...]:
    """List the columns whose cells are lists, with a number for each atom or bond."""
    return (*header.features.atoms, *header.features.bonds) if header.features else ()


def _examples(header: ModelFileHeader, name: str, smiles: list[str], numbers: list[float]) -> list[Any]:
    """Make example cells of a column."""
    if name not in _lists(header):
        return smiles if name not in (header.features.names if header.features else ()) else numbers
    of_atoms = header.features is not None and name in header.features.atoms
    mols = map(header.featuriser.read, smiles)
    counts = [mol.GetNumAtoms() if of_atoms else mol.GetNumBonds() for mol in mols]
    return [[number] * count for number, count in zip(numbers, counts, strict=True)]


def _text(name: str, row: int, cell: JsonValue, kind: str) -> str:
    """Write a cell of JSON as the text of a table."""
    if kind == "text" and isinstance(cell, str):
        return cell
    if kind != "text" and cell is None:
        return ""
    if kind == "list" and isinstance(cell, list):
        return cell_text(cell)
    if kind == "number" and isinstance(cell, int | float) and not isinstance(cell, bool) and abs(cell) < float("inf"):
        return repr(cell)
    raise InputError(f'row {row}, column "{name}": expected a {kind}, got {_kind(cell)}')


def _kind(cell: JsonValue) -> str:
    """Name the type of a cell for an error; a text is quoted."""
    if isinstance(cell, str):
        return f'"{printable(cell)}"'
    kinds = {bool: "true or false", int: "a number", float: "a number", list: "a list", dict: "an object"}
    return next((word for kind, word in kinds.items() if isinstance(cell, kind)), "null")


def complaint(error: ValidationError) -> str:
    """Describe the first error of a request, in one line."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    place = ".".join(printable(str(part)) for part in first["loc"])
    reason = f"{place}: {first['msg']}" if place else first["msg"]
    return f"the request cannot be used: {reason}"


_STRICT = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)
_FARTHEST = 1_000


class Atom(BaseModel):
    """Atom of a drawing; its position is in bond lengths, x to the right, y up."""

    model_config = _STRICT

    element: str = Field(pattern="^[A-Z][a-z]?$", examples=["O"])
    x: float = Field(ge=-_FARTHEST, le=_FARTHEST)
    y: float = Field(ge=-_FARTHEST, le=_FARTHEST)
    charge: int = Field(0, ge=-9, le=9)


class Bond(BaseModel):
    """Bond of two atoms, by their numbers from 0.

    `up` and `down` are wedges, narrow at `begin`; `either` is a double bond of unknown configuration.
    """

    model_config = _STRICT

    begin: int
    end: int
    kind: Literal["single", "double", "triple", "up", "down", "either"] = "single"


class Drawing(BaseModel):
    """Atoms and bonds of a drawing; hydrogen atoms may be left out."""

    model_config = _STRICT

    atoms: list[Atom] = Field(max_length=MOST_ATOMS)
    bonds: list[Bond] = Field([], max_length=MOST_BONDS)


class DrawingSmiles(BaseModel):
    """SMILES of a drawing, and the number of hydrogen atoms at each of its atoms."""

    smiles: str
    hydrogens: list[int]


class DrawingError(BaseModel):
    """Error of a drawing, with the numbers of the atoms that cause it."""

    error: str
    atoms: list[int] = []


def smiles_of(body: bytes) -> dict[str, Any]:
    """Convert a drawing as JSON to a `DrawingSmiles` as JSON.

    Raises:
        InputError: the body is no JSON, or no drawing.
        MoleculeError: the molecule is impossible.
    """
    try:
        drawing = Drawing.model_validate_json(body)
    except ValidationError as error:
        raise InputError(complaint(error)) from None
    atoms = [SketchAtom(**dict(atom)) for atom in drawing.atoms]
    smiles, hydrogens = sketch_to_smiles(Sketch(atoms, [SketchBond(**dict(bond)) for bond in drawing.bonds]))
    return {"smiles": smiles, "hydrogens": hydrogens}


def drawing_of(smiles: str, most: int) -> dict[str, Any]:
    """Convert a SMILES to a `Drawing` as JSON.

    Raises:
        InputError: it has too many characters, cannot be read, or cannot be drawn.
    """
    if len(smiles) > most:
        raise InputError(f"expected a SMILES of at most {most:,} characters, got {len(smiles):,}")
    try:
        return asdict(smiles_to_sketch(smiles))
    except MoleculeError as reason:
        raise InputError(f"the molecule {reason}") from None
