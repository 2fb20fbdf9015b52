"""What was read of a table: its files, and the molecules with labels."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from gtx.data import Duplicates, Ledger, MoleculeStore, Nearest, Row, Split, column_index, nearest
from gtx.errors import InputError
from gtx.tasks import Task


@dataclass(frozen=True)
class File:
    """One of the files read: its rows are `start` to `start + len(rows)` of all rows.

    Where a row has several molecules, `components` names their columns, of which `smiles_column` is the first.
    """

    source: str
    columns: list[str]
    smiles_column: str
    rows: list[Row]
    ledger: Ledger
    start: int
    components: tuple[str, ...] = ()

    def cells(self, column: str) -> list[str]:
        """The cells of a column, but for rows that are broken.

        Raises:
            InputError: there is no such column, or several.
        """
        with named(self):
            place = column_index(self.columns, column)
        return [row.cells[place] for row in self.rows if not row.error]


@dataclass(frozen=True)
class Dataset:
    """All rows of the files, and the molecules that could be read.

    Attributes:
        files: the table, then the files of validation and test rows, if any.
        task: what is learned, settled by the table.
        store: the m molecules that could be read, with targets `[m, T]` in their own units, NaN for blanks.
        rows: int64 `[m]`, the molecules' row indices among all rows.
        smiles: their canonical SMILES.
        split: molecule indices of "train", "val" and "test"; molecules without any label are in none.
        split_words: how the rows were divided.
        duplicates: molecules found more than once.
        leaked: molecules on both sides of two parts.
    """

    files: list[File]
    task: Task
    store: MoleculeStore
    rows: np.ndarray
    smiles: list[str]
    split: Split
    split_words: str
    duplicates: Duplicates
    leaked: dict[tuple[str, str], int]

    @property
    def y(self) -> np.ndarray:
        """float64 `[m, T]`: the targets in their own units."""
        return self.store.y.numpy()

    @property
    def unlabelled(self) -> int:
        """How many molecules could be read and have neither a value nor a bound of any target."""
        blank = self.store.y.isnan().all(1)
        if self.store.bounds is not None:
            blank &= self.store.bounds.isnan().all(1)
        return int(blank.sum())

    errors_stand: ClassVar[str] = "each stands in the row's predictions"
    """Where all messages are found."""

    @property
    def train(self) -> MoleculeStore:
        """The molecules that train."""
        return self.store.subset(self.split["train"])

    @property
    def counts(self) -> dict[str, int]:
        """How many molecules each part has."""
        return {part: len(index) for part, index in self.split.items()}

    @property
    def smiles_column(self) -> str:
        """Of the table, the column with the molecules."""
        return self.files[0].smiles_column

    def fitted(self) -> Task:
        """The task with what it learns of the training rows before the network is, see `Task.fitted`."""
        return self.task.fitted(self.task.labelled(self.train))

    @cached_property
    def nearest(self) -> Nearest | None:
        """How similar test molecules (or, without any, validation molecules) are to the training molecules."""
        judged = next((part for part in ("test", "val") if len(self.split[part])), None)
        return None if judged is None else nearest(self.smiles, self.split, judged)

    def without_test(self) -> Dataset:
        """The molecules that train and validate alone: whoever chooses by this cannot have seen the test rows."""
        kept = np.sort(np.concatenate([self.split["train"], self.split["val"]]))
        split = {part: np.searchsorted(kept, self.split[part]) for part in ("train", "val")}
        return replace(
            self,
            store=self.store.subset(kept),
            rows=self.rows[kept],
            smiles=[self.smiles[i] for i in kept],
            split={**split, "test": np.array([], np.int64)},
            leaked={parts: number for parts, number in self.leaked.items() if "test" not in parts},
        )

    def place(self, molecule: int) -> tuple[File, Row]:
        """The file and the row of a molecule."""
        at = self.rows[molecule]
        file = next(file for file in reversed(self.files) if file.start <= at)
        return file, file.rows[at - file.start]

    def place_words(self, molecule: int) -> str:
        """In which row a molecule stands, and of which file, if there are several."""
        file, row = self.place(molecule)
        return f"row {row.number}" + (f" of {file.source}" if len(self.files) > 1 else "")


@contextmanager
def named(file: File) -> Iterator[None]:
    """An error of within says which file it is about."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{file.source}: {error}") from None
