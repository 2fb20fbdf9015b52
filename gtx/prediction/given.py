"""Molecules as a user hands them over: one SMILES, or many in whatever holds them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from gtx.data.columns import Wanted, column_index, listed
from gtx.errors import InputError, printable
from gtx.molecules.featuriser import Text


def given_smiles(smiles: Iterable[str] | str | pd.DataFrame, usual: str | None = None) -> list[Any]:
    """The molecules, one after the other, each as it was given.

    Args:
        smiles: one SMILES; a list, an array, a pandas column; or a table with a column of them.
        usual: what the column of a table was called in training.

    Raises:
        InputError: a table whose column cannot be told, or what holds no molecules.
    """
    if isinstance(smiles, str):
        return [smiles]
    if isinstance(smiles, pd.DataFrame):
        return smiles.iloc[:, _column(list(map(str, smiles.columns)), usual)].tolist()
    if isinstance(smiles, (Mapping, bytes)) or not isinstance(smiles, Iterable):
        raise InputError(f"expected a SMILES or several of them, got a value of type {type(smiles).__name__}")
    if isinstance(smiles, np.ndarray) and smiles.ndim != 1:
        if smiles.ndim != 2 or smiles.shape[1] != 1:
            raise InputError(f"expected SMILES [n], got an array of shape {list(smiles.shape)}")
        smiles = smiles[:, 0]
    return list(smiles)


def given_components(rows: Any, names: Sequence[str]) -> list[tuple[Any, ...]]:
    """Rows of several molecules, each as it was given.

    Args:
        rows: a table with columns of these names, or any number of sequences of K SMILES.
        names: of the K components.

    Raises:
        InputError: a column is missing, or a row has more or fewer molecules.
    """
    expected = f"expected rows of {len(names)} SMILES, {', '.join(names)}, or a table with columns of these names"
    if isinstance(rows, pd.DataFrame):
        columns = list(map(str, rows.columns))
        return list(zip(*(rows.iloc[:, column_index(columns, name)] for name in names), strict=True))
    if isinstance(rows, (str, Mapping, bytes)) or not isinstance(rows, Iterable):
        raise InputError(f"{expected}; got a value of type {type(rows).__name__}")
    found = list(rows)
    for i, row in enumerate(found):
        if isinstance(row, str) or not isinstance(row, Iterable) or len(tuple(row)) != len(names):
            raise InputError(f"{expected}; number {i}, counted from 0, is {printable(repr(row))}")
    return [tuple(row) for row in found]


def as_texts(given: Iterable[Any]) -> list[Text]:
    """As a list of texts, or of tuples of them; what is no text (a gap of a pandas column) is an empty one, which
    cannot be read."""
    return [tuple(as_texts(one)) if isinstance(one, tuple) else one if isinstance(one, str) else "" for one in given]


def _column(columns: list[str], usual: str | None) -> int:
    """The position of the column of molecules: by its name, or the only one."""
    found = Wanted(None, usual).among(columns) or list(range(len(columns)))
    if len(found) != 1:
        raise InputError(
            f"which column holds the SMILES? Expected one called {usual or 'smiles'!r}, the columns are "
            f"{listed(columns)}: give that column alone, such as frame[{columns[0]!r}]"
            if columns
            else "expected a table with a column of SMILES, got one without columns"
        )
    return found[0]
