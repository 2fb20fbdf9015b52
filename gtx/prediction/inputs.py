"""Molecules from Python: one SMILES or RDKit molecule, or many in a list, an array, a column or a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from gtx.base.errors import InputError, printable
from gtx.data.rows import ARROW, FIRST_ROWS, MoleculeColumn, find_column, molecule_columns, smiles_index
from gtx.data.tables import FILE_NAME
from gtx.molecules.perception import Text, list_order_doubt
from gtx.molecules.reading import molecule_text

if TYPE_CHECKING:
    from gtx.data.featurising import FeaturisationResult
    from gtx.data.rows import RowFeatures
    from gtx.prediction.model_file import ModelFileHeader


def as_frame(table: Any) -> Any:
    """Convert a table or column of polars or Arrow to pandas; return anything else unchanged."""
    return table.to_pandas() if hasattr(table, "to_pandas") else table


def smiles_list(smiles: Any, usual: str | None = None) -> list[Any]:
    """List molecules, each unchanged: one SMILES or RDKit molecule; a list, an array, a column; or those of a table,
    whose column of molecules was called `usual` in training.
    """
    smiles = as_frame(smiles)
    if isinstance(smiles, (str, Path)) and FILE_NAME.search(str(smiles)):
        raise InputError(
            f"expected SMILES, got the name of a file, {printable(str(smiles))!r}: read it into a table first, such as "
            "pandas.read_csv(path), or write its predictions to a file with predict_table(path, out)"
        )
    if molecule_text(smiles) is not None:
        return [smiles]
    if isinstance(smiles, pd.DataFrame):
        sides = (usual or "").split(ARROW)  # of reactions in two columns, `reactants>>products`
        if len(sides) > 1 and {*sides} <= {*map(str, smiles.columns)}:
            return _cells(smiles, usual)
        return smiles.iloc[:, _column(smiles, usual)].tolist()
    if isinstance(smiles, (Mapping, bytes)) or not isinstance(smiles, Iterable):
        raise InputError(f"expected a SMILES or several of them, got a value of type {type(smiles).__name__}")
    if isinstance(smiles, np.ndarray) and smiles.ndim != 1:
        if smiles.ndim != 2 or smiles.shape[1] != 1:
            raise InputError(f"expected SMILES [n], got an array of shape {list(smiles.shape)}")
        smiles = smiles[:, 0]
    return list(smiles)


def component_rows(rows: Any, names: Sequence[str]) -> list[tuple[Any, ...]]:
    """List rows of K molecules, each unchanged: of a table with columns of these names, or of sequences of K SMILES."""
    rows = as_frame(rows)
    expected = f"expected rows of {len(names)} SMILES, {', '.join(names)}, or a table with columns of these names"
    if isinstance(rows, pd.DataFrame):
        return list(zip(*(_cells(rows, name) for name in names), strict=True))
    if isinstance(rows, (str, Mapping, bytes)) or not isinstance(rows, Iterable):
        raise InputError(f"{expected}; got a value of type {type(rows).__name__}")
    components = []
    for i, row in enumerate(rows):
        row = (None,) * len(names) if is_gap(row) else row
        if isinstance(row, str) or not isinstance(row, Iterable) or len(tuple(row)) != len(names):
            raise InputError(f"{expected}; number {i}, counted from 0, is {printable(repr(row))}")
        components.append(tuple(row))
    return components


def _cells(table: pd.DataFrame, name: str | None) -> list[Any]:
    """Return the cells of a column; of reactions in two columns, `reactants>>products`, the reactions."""
    columns = list(map(str, table.columns))
    sides = [table.iloc[:, find_column(columns, side)].tolist() for side in (name or "").split(ARROW)]
    return sides[0] if len(sides) == 1 else [ARROW.join(map(str, as_texts(row))) for row in zip(*sides, strict=True)]


def is_gap(cell: Any) -> bool:
    """Return whether a cell is a missing value: None, NaN, `pd.NA` or `pd.NaT`."""
    return pd.api.types.is_scalar(cell) and bool(pd.isna(cell))


def as_texts(molecules: Iterable[Any], coordinates: bool = False, ordered: bool = False) -> list[Text]:
    """Convert SMILES and RDKit molecules, or tuples of them, to texts, see `gtx.molecules.reading.molecule_text`.

    A gap (None, NaN or another missing value of pandas) becomes an empty text, and anything else the text that `repr`
    gives: neither can be read as a molecule.
    """

    def text(one: Any) -> str:
        written = molecule_text(one, coordinates, ordered)
        return written if written is not None else "" if is_gap(one) else repr(one)

    return [tuple(map(text, one)) if isinstance(one, tuple) else text(one) for one in molecules]


def first_cells(table: pd.DataFrame) -> list[list[str]]:
    """Return the cells of the first rows as texts."""
    first = table.head(FIRST_ROWS)
    rows = first.astype(object).where(first.notna(), "").to_numpy().tolist()
    return [[molecule_text(cell) or str(cell) for cell in row] for row in rows]


def _column(table: pd.DataFrame, usual: str | None) -> int:
    """Return the position of the column of molecules: the only one, by its name, or by its cells."""
    columns = list(map(str, table.columns))
    if not columns:
        raise InputError("expected a table with a column of SMILES, got one without columns")
    if len(columns) == 1:
        return 0
    named = next(iter(molecule_columns(first_cells(table))), 0)
    remedy = f"call it {usual or 'smiles'!r}, or give that column alone, such as frame[{columns[named]!r}]"
    return smiles_index(columns, MoleculeColumn(None, usual), lambda: first_cells(table), remedy)


def with_columns(
    header: ModelFileHeader, done: FeaturisationResult, texts: Sequence[Text], rows: Sequence[RowFeatures | None]
) -> FeaturisationResult:
    """Attach the feature columns of a model to featurised texts, and warn of predicted lists in doubtful order."""
    done = header.features.attach(done, rows, texts, header.featuriser)
    if not header.predicts_lists:
        return done
    warnings = list(done.warnings)
    for i in done.good:
        if doubt := list_order_doubt(header.featuriser, str(texts[i])):
            warnings[i] = (*warnings[i], f"{doubt.reason}; {doubt.usual}")
    return replace(done, warnings=warnings)
