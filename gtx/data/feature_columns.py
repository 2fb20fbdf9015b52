"""What a table knows of a row beside its molecule, such as a temperature, as further inputs of a model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from gtx.data.columns import column_index
from gtx.data.featurising import Featurised
from gtx.data.lists import cell_text, parse_list, place_lists
from gtx.data.magnitude import LARGEST
from gtx.data.rows import Row, RowFeatures, Table
from gtx.data.targets import COMMA_HINT, has_comma, parse_number
from gtx.errors import InputError, printable
from gtx.molecules import Featuriser

BAD_FEATURE = "with an unusable feature"


@dataclass(frozen=True)
class FeatureColumns:
    """Columns of numbers that a model reads beside the molecule, scaled on the training rows.

    Those of the molecule join its descriptors and are seen at the readout. Those of its atoms and bonds are lists, see
    `gtx.data.lists.parse_list`, and are seen where atoms and bonds are embedded. Prediction needs all of them.

    Attributes:
        names: of the columns with a number for the molecule.
        blanks: a cell, or a number of a list, may be blank. It then counts as the mean of the training rows, and a
            second number, 1 where it is blank and 0 elsewhere, says so. Otherwise a blank is an error of its row.
        atoms: of the columns with a list of numbers, one for each atom of the graph.
        bonds: likewise for each bond, in RDKit's order of bonds.

    Raises:
        InputError: a name is there twice.
    """

    names: tuple[str, ...] = ()
    blanks: bool = False
    atoms: tuple[str, ...] = ()
    bonds: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for kind in ("names", "atoms", "bonds"):
            object.__setattr__(self, kind, tuple(getattr(self, kind)))
        if twice := [name for name in self.columns if self.columns.count(name) > 1]:
            raise InputError(f"feature column {twice[0]!r} is given twice")

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of all of them."""
        return (*self.names, *self.atoms, *self.bonds)

    @property
    def width(self) -> int:
        """F, how many numbers a molecule has."""
        return len(self.names) * (1 + self.blanks)

    @property
    def widths(self) -> dict[str, int]:
        """How many numbers each atom and each bond has, under the names of a store's fields; none that is 0."""
        widths = {"atom_features": len(self.atoms), "bond_features": len(self.bonds)}
        return {name: width * (1 + self.blanks) for name, width in widths.items() if width}

    @property
    def options(self) -> list[str]:
        """The options of the command line that name them."""
        kinds = {"feature": self.names, "atom-feature": self.atoms, "bond-feature": self.bonds}
        return [f"--{kind}-columns" for kind, names in kinds.items() if names]

    @property
    def unknown(self) -> RowFeatures:
        """A row of which nothing is known."""
        return RowFeatures(np.zeros(self.width, np.float32), {}, {})

    @property
    def remedy(self) -> str:
        """What to do where a feature is missing."""
        return f"give a table with a column for each of: SMILES, {', '.join(map(printable, self.columns))}"

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        parts = {"atoms": list(self.atoms), "bonds": list(self.bonds)}
        return {"names": list(self.names), "blanks": self.blanks} | {k: v for k, v in parts.items() if v}

    def check(self, featuriser: Featuriser) -> None:
        """Raise an `InputError` if molecules are read so that a list may not be in the order of their atoms."""
        if not self.widths:
            return
        option = self.options[-1]
        if featuriser.components:
            raise InputError(f"{option} are for one molecule a row: leave out --smiles-columns")
        if featuriser.standardise:
            raise InputError(f"{option} are of the atoms as they are written: leave out --standardise")

    def of_table(self, table: Table) -> Table:
        """The same table, its rows with `features`; a cell that cannot be used is its row's error.

        Raises:
            InputError: the table lacks a column, or has several of that name.
        """
        places = [self._place(table.columns, name) for name in self.columns]

        def rows() -> Iterator[Row]:
            for row in table.rows:
                if row.error:
                    yield row
                    continue
                try:
                    yield row._replace(features=self._read([row.cells[place] for place in places]))
                except _UnusableError as wrong:
                    cell = printable(row.cells[places[wrong.number]])
                    name = printable(self.columns[wrong.number])
                    yield row._replace(error=f'column "{name}", value "{cell}": {wrong}', fault=BAD_FEATURE)

        return replace(table, rows=rows())

    def of_columns(self, given: Mapping[str, Sequence[Any]], count: int) -> list[RowFeatures]:
        """Features of n molecules that are no rows of a table.

        Args:
            given: columns by name, such as a pandas table; others may be there. A list of numbers may also be its text.
            count: n.

        Raises:
            InputError: a column is missing, of another length, or holds what cannot be used.
        """
        columns = []
        for name in self.columns:
            if name not in given:
                raise InputError(f"this model needs the feature {name!r}: {self.remedy}")
            columns.append(list(given[name]))
            if (found := len(columns[-1])) != count:
                raise InputError(f"feature {name!r}: expected {count} values, one for each molecule, got {found}")
        rows = []
        for i in range(count):
            try:
                rows.append(self._read([cell_text(column[i]) for column in columns]))
            except _UnusableError as wrong:
                value = printable(repr(columns[wrong.number][i]))
                said = f"feature {self.columns[wrong.number]!r} of number {i}, counted from 0, {value}"
                raise InputError(f"{said}: {wrong}") from None
        return rows

    def of_one(self, given: Mapping[str, Any]) -> list[RowFeatures]:
        """The same of one molecule, its values by name.

        Raises:
            InputError: one is missing, or cannot be used.
        """
        if missing := [name for name in self.columns if name not in given]:
            option = f"--features {printable(missing[0])}=VALUE, or features={{{missing[0]!r}: VALUE}} in Python"
            raise InputError(f"this model needs the feature {missing[0]!r} of the molecule: give {option}")
        return self.of_columns({name: [value] for name, value in given.items()}, 1)

    def joined(self, done: Featurised, rows: Sequence[RowFeatures | None]) -> Featurised:
        """What became of n texts, with what their rows say beside them.

        A list of another length than its molecule has atoms or bonds is an error of the text.

        Args:
            done: the outcome.
            rows: of each text; those of texts that could not be read are not looked at.
        """
        good, errors = done.good, list(done.errors)
        own = [rows[i] for i in good]
        numbers = np.array([row.molecule for row in own], np.float32).reshape(len(own), self.width)
        store = done.store.with_features(numbers)
        for name in self.widths:
            atoms = name == "atom_features"
            ptr, columns = (store.atom_ptr, self.atoms) if atoms else (store.bond_ptr, self.bonds)
            lists = [row.atoms if atoms else row.bonds for row in own]
            values, wrong = place_lists(lists, columns, ptr.numpy(), "atom" if atoms else "bond")
            store = replace(store, **{name: torch.from_numpy(self._marked(values))})
            for molecule, (column, reason) in wrong.items():
                errors[good[molecule]] = f'column "{printable(column)}" {reason}'
        fitting = np.flatnonzero([errors[i] is None for i in good])
        return replace(done, store=store if len(fitting) == len(good) else store.subset(fitting), errors=errors)

    def _place(self, columns: Sequence[str], name: str) -> int:
        try:
            return column_index(columns, name)
        except InputError as error:
            raise InputError(f"feature column {name!r}: {error}; {self.remedy}") from None

    def _read(self, cells: Sequence[str]) -> RowFeatures:
        """What the cells of a row say, in the order of `columns`.

        Raises:
            _UnusableError: which of them cannot be used.
        """
        first = len(self.names)
        numbers = [self._number(i, cell) for i, cell in enumerate(cells[:first])]
        found = {self.columns[i]: self._list(i, cell) for i, cell in enumerate(cells[first:], first)}
        atoms, bonds = (
            {name: found[name] for name in names if found[name] is not None} for names in (self.atoms, self.bonds)
        )
        return RowFeatures(self._marked(np.array(numbers, np.float64)), atoms, bonds)

    def _number(self, i: int, cell: str) -> float:
        number = parse_number(cell)
        if abs(number) <= LARGEST or (self.blanks and np.isnan(number)):
            return number
        raise _UnusableError(i, no_feature(cell, self.blanks))

    def _list(self, i: int, cell: str) -> np.ndarray | None:
        try:
            values = parse_list(cell)
        except InputError as reason:
            raise _UnusableError(i, str(reason)) from None
        if not self.blanks and (values is None or np.isnan(values).any()):
            per = "bond" if self.columns[i] in self.bonds else "atom"
            raise _UnusableError(i, f"expected a list of numbers, one for each {per}, without blanks")
        return values

    def _marked(self, numbers: np.ndarray) -> np.ndarray:
        """Numbers `[..., C]` that can be used, and which of them are blank; float32."""
        parts = [numbers, np.isnan(numbers)] if self.blanks else [numbers]
        return np.concatenate(parts, axis=-1).astype(np.float32)


def no_feature(cell: str, blanks: bool) -> str:
    """Why a cell cannot be a feature."""
    number = parse_number(cell)
    wrong = "is blank" if np.isnan(number) else "is not a number" if np.isinf(number) else "is too large"
    hint = f", {COMMA_HINT}" if has_comma(cell) else ""
    return f"{wrong}; expected a number of at most {LARGEST:g}{' or a blank' if blanks else ''}{hint}"


class _UnusableError(Exception):
    """A cell that cannot be used: the number of its column, and why."""

    def __init__(self, number: int, reason: str) -> None:
        super().__init__(reason)
        self.number = number
