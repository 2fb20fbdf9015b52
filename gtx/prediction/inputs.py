"""Molecules from Python: one SMILES or RDKit molecule, or many in a list, an array, a column or a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from gtx.base.errors import InputError, printable
from gtx.data.cells import cell_text
from gtx.data.featurising import featurise
from gtx.data.rows import (
    ARROW,
    FIRST_ROWS,
    MoleculeColumn,
    Row,
    Table,
    find_column,
    listed,
    molecule_columns,
    smiles_index,
)
from gtx.data.tables import FILE_NAME
from gtx.molecules.perception import Text, list_order_doubt
from gtx.molecules.reading import molecule_text

if TYPE_CHECKING:
    from gtx.data import FeatureColumns, FeaturisationResult
    from gtx.data.rows import RowFeatures
    from gtx.molecules import Featuriser


def read_molecules(
    molecules: Any,
    featuriser: Featuriser,
    features: FeatureColumns,
    usual: str | None = None,
    lists: bool = False,
    **options: Any,
) -> tuple[list[Any], FeaturisationResult]:
    """List molecules, or tuples of those of a row, each unchanged, and featurise them with their feature columns.

    Args:
        molecules: see `gtx.prediction.Predictor.predict`.
        featuriser: settings of reading, with the names of several molecules per row.
        features: feature columns of the model; a cell that cannot be used is an error of its row.
        usual: name of the column of molecules in training.
        lists: whether lists of values of atoms or bonds are predicted.
        options: further options of `gtx.data.featurise`.
    """
    molecules = as_frame(molecules)
    every = list_molecules(molecules, featuriser.components, usual, features.columns)
    rows = _read_features(molecules, features, len(every))
    empty: Text = ("",) * len(featuriser.components) or ""
    texts = as_texts(every, featuriser.coordinates, ordered=lists or bool(features.widths))
    texts = [empty if row.error else text for row, text in zip(rows, texts, strict=True)]
    done = featurise(featuriser, texts, **options)
    done = replace(done, errors=[row.error or error for row, error in zip(rows, done.errors, strict=True)])
    return every, with_columns(done, texts, [row.features for row in rows], featuriser, features, lists)


def _read_features(molecules: Any, features: FeatureColumns, count: int) -> Sequence[Row]:
    """Read the feature columns of a table of `count` molecules: rows with features or an error, and nothing else."""
    if not features.columns:
        return [Row(0, [], "")] * count
    if not isinstance(molecules, pd.DataFrame):
        raise InputError(f"this model reads {listed(features.columns)} too: {features.remedy}")
    names, read = list(map(str, molecules.columns)), {name.strip() for name in features.columns}
    columns = [
        list(map(cell_text, molecules.iloc[:, i].tolist())) if name.strip() in read else [""] * count
        for i, name in enumerate(names)
    ]
    rows = (Row(0, list(cells), "") for cells in zip(*columns, strict=True))
    return list(features.read_table(Table(names, "", rows)).rows)


def list_molecules(
    molecules: Any, components: Sequence[str], usual: str | None = None, read: Sequence[str] = ()
) -> list[Any]:
    """List molecules unchanged, or tuples of those of a row; see `smiles_list` and `component_rows`."""
    return component_rows(molecules, components) if components else smiles_list(molecules, usual, read)


def as_frame(table: Any) -> Any:
    """Convert a table or column of polars or Arrow to pandas; return anything else unchanged."""
    return table.to_pandas() if hasattr(table, "to_pandas") else table


def smiles_list(smiles: Any, usual: str | None = None, read: Sequence[str] = ()) -> list[Any]:
    """List molecules, each unchanged: one SMILES or RDKit molecule; a list, an array, a column; or those of a table,
    see `smiles_place`.
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
        return smiles.iloc[:, smiles_place(smiles, usual, read)].tolist()
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


def smiles_place(table: pd.DataFrame, usual: str | None = None, read: Sequence[str] = ()) -> int:
    """Return the position of the column of molecules: the only one beside the feature columns `read`; that with the
    `usual` name of training; or the only one whose cells are molecules, see `gtx.data.rows.smiles_index`.
    """
    columns = list(map(str, table.columns))
    rest = [i for i, name in enumerate(columns) if name not in read]
    names = [columns[i] for i in rest]
    if not rest:
        got = f"one of {listed(columns)} alone" if columns else "one without columns"
        raise InputError(f"expected a table with a column of SMILES, got {got}")
    if len(rest) == 1:
        return rest[0]
    first = first_cells(table.iloc[:, rest])
    likely = names[next(iter(molecule_columns(first)), 0)]
    alone = f"leave out all columns but one beside {listed(read)}" if read else f"give that alone, as frame[{likely!r}]"
    remedy = f"call it {usual or 'smiles'!r}, or {alone}"
    return rest[smiles_index(names, MoleculeColumn(None, usual), lambda: first, remedy)]


def unusable_molecules(molecules: Sequence[Any], errors: Sequence[str | None]) -> str | None:
    """Make a message with the number of unusable molecules and the first of them; None if all are usable."""
    bad = [i for i, error in enumerate(errors) if error]
    if not bad:
        return None
    (text,) = as_texts([molecules[bad[0]]])
    shown = f"{printable(text)!r} " if isinstance(text, str) else ""
    first = f"the first is number {bad[0]}, counted from 0: {shown}{errors[bad[0]]}"
    return f"{len(bad)} of {len(molecules)} SMILES cannot be used; {first}"


def with_columns(
    done: FeaturisationResult,
    texts: Sequence[Text],
    rows: Sequence[RowFeatures | None],
    featuriser: Featuriser,
    features: FeatureColumns,
    lists: bool = False,
) -> FeaturisationResult:
    """Attach feature columns to featurised texts, and warn of predicted lists in doubtful order."""
    done = features.attach(done, rows, texts, featuriser)
    if not lists:
        return done
    warnings = list(done.warnings)
    for i in done.good:
        if doubt := list_order_doubt(featuriser, str(texts[i])):
            warnings[i] = (*warnings[i], f"{doubt.reason}; {doubt.usual}")
    return replace(done, warnings=warnings)
