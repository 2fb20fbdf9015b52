"""Columns that a model reads beside the molecule, among them lists of atoms and bonds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from shlex import quote
from typing import Any

import numpy as np
import torch

from gtx.base.errors import InputError, did_you_mean, printable
from gtx.data.cells import LARGEST, attach_lists, cell_text, comma_advice, parse_list, parse_number
from gtx.data.featurising import FeaturisationResult
from gtx.data.rows import Row, RowFeatures, Table, find_column
from gtx.molecules import Featuriser
from gtx.molecules.perception import Text, list_order_doubt

# --- Feature columns, such as a temperature: inputs of a model beside the molecule.

BAD_FEATURE = "with an unusable feature"


@dataclass(frozen=True)
class FeatureColumns:
    """Numeric columns of a table that a model reads as additional input features, scaled by the training rows.

    Features of a molecule are appended to the descriptors, which the network reads after the readout. Features of atoms
    and bonds are lists, see `gtx.data.cells.parse_list`, and are added to the embeddings of atoms and bonds.
    Prediction needs all feature columns.

    Attributes:
        names: names of the columns with a number for each molecule.
        blanks: whether a cell, or a number of a list, may be blank. A blank is replaced by the mean of the training
            rows, and a second feature is 1 where the first is blank and 0 elsewhere. Otherwise a blank is an error of
            its row.
        atoms: names of the columns with a list of numbers, one for each atom of the graph.
        bonds: names of the columns with a list of numbers, one for each bond, in RDKit's order of bonds.

    Raises:
        InputError: a name occurs twice, or names are one text.
    """

    names: tuple[str, ...] = ()
    blanks: bool = False
    atoms: tuple[str, ...] = ()
    bonds: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for kind in ("names", "atoms", "bonds"):
            if isinstance(value := getattr(self, kind), str):
                raise InputError(f"{kind} of features: expected a list of column names, got the text {value!r}")
            object.__setattr__(self, kind, tuple(value))
        if twice := [name for name in self.columns if self.columns.count(name) > 1]:
            raise InputError(f"feature column {twice[0]!r} is given twice")

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of all feature columns."""
        return (*self.names, *self.atoms, *self.bonds)

    @property
    def width(self) -> int:
        """Number F of features of a molecule."""
        return len(self.names) * (1 + self.blanks)

    @property
    def widths(self) -> dict[str, int]:
        """Number of features of each atom and each bond, by the field of the store; zeros are left out."""
        widths = {"atom_features": len(self.atoms), "bond_features": len(self.bonds)}
        return {name: width * (1 + self.blanks) for name, width in widths.items() if width}

    def network_inputs(self, featuriser: Featuriser) -> dict[str, Any]:
        """Return the arguments of a network that reads the molecules of a featuriser and these features."""
        inputs = {"coordinates": featuriser.coordinates, "num_descriptors": featuriser.num_descriptors + self.width}
        return {**featuriser.input_sizes, **inputs, **self.widths}

    @property
    def options(self) -> list[str]:
        """Options that choose the feature columns, in backquotes."""
        kinds = {"feature": self.names, "atom_feature": self.atoms, "bond_feature": self.bonds}
        return [f"`{kind}_columns`" for kind, names in kinds.items() if names]

    @property
    def blank_row(self) -> RowFeatures:
        """Features of a row in which all feature cells are blank."""
        return RowFeatures(np.zeros(self.width, np.float32), {})

    @property
    def remedy(self) -> str:
        """Advice for the user where a feature is missing."""
        return f"give a table with a column for each of: SMILES, {', '.join(map(printable, self.columns))}"

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as plain values, for JSON."""
        parts = {"atoms": list(self.atoms), "bonds": list(self.bonds)}
        return {"names": list(self.names), "blanks": self.blanks} | {k: v for k, v in parts.items() if v}

    def check(self, featuriser: Featuriser) -> None:
        """Raise an `InputError` if the featuriser may change the order of atoms, on which lists depend."""
        if not self.widths:
            return
        option = self.options[-1]
        if featuriser.unit != "molecule":
            raise InputError(f"{option} are for one molecule a row: leave out `smiles_columns` and `reaction_column`")
        if featuriser.standardise:
            raise InputError(f"{option} are of the atoms as they are written: leave out `standardise`")

    def read_table(self, table: Table) -> Table:
        """Add `features` to the rows of a table that has all columns; a cell that cannot be used is an error of its
        row.
        """
        if not self.columns:
            return table
        places = [self._place(table.columns, name) for name in self.columns]

        def rows() -> Iterator[Row]:
            for row in table.rows:
                if row.error:
                    yield row
                    continue
                try:
                    yield row._replace(features=self._read([row.cells[place] for place in places]))
                except InputError as error:
                    yield row._replace(error=str(error), category=BAD_FEATURE)

        return replace(table, rows=rows())

    def read_one(self, cells: Mapping[str, Any]) -> RowFeatures:
        """Read the features of one molecule, numbers, lists or texts of such by name; `InputError` if one is unknown,
        missing or unusable.
        """
        for name in cells:
            if name not in self.columns:
                reads = ", ".join(map(printable, self.columns)) or "no features beside the molecule"
                hint = did_you_mean(name, self.columns) or ";"
                raise InputError(f"unknown feature {name!r}{hint} this model reads {reads}")
        if missing := [name for name in self.columns if name not in cells]:
            word = quote(f"{printable(missing[0])}=VALUE")
            option = f"--features {word}, or features={{{missing[0]!r}: VALUE}} in Python"
            raise InputError(f"this model needs the feature {missing[0]!r} of the molecule: give {option}")
        return self._read([cell_text(cells[name]) for name in self.columns])

    def attach(
        self,
        done: FeaturisationResult,
        rows: Sequence[RowFeatures | None],
        texts: Sequence[Text],
        featuriser: Featuriser,
    ) -> FeaturisationResult:
        """Attach the features of rows to featurised molecules.

        A list whose length is not the number of atoms or bonds of its molecule, or whose order is not clear, is an
        error of the text.
        """
        if not self.columns:
            return done
        good, errors = done.good, list(done.errors)
        features = [row for row in (rows[i] for i in good) if row is not None]
        numbers = np.array([row.molecule for row in features], np.float32).reshape(len(features), self.width)
        store = done.store.with_features(numbers)
        for name in self.widths:
            atoms = name == "atom_features"
            ptr, columns = (store.atom_ptr, self.atoms) if atoms else (store.bond_ptr, self.bonds)
            lists = [row.lists for row in features]
            values, misfits = attach_lists(lists, columns, ptr.numpy(), "atom" if atoms else "bond")
            tensors: dict[str, Any] = {name: torch.from_numpy(self._with_indicators(values))}
            store = replace(store, **tensors)
            for molecule, (column, reason) in misfits.items():
                errors[good[molecule]] = f'column "{printable(column)}" {reason}'
        for i in good if self.widths else ():
            row, text = rows[i], texts[i]
            if row is not None and row.lists and isinstance(text, str) and errors[i] is None:
                doubt = list_order_doubt(featuriser, text)
                errors[i] = f"{doubt.reason}: for training, {doubt.remedy}" if doubt else None
        fitting = np.flatnonzero([errors[i] is None for i in good])
        return replace(done, store=store if len(fitting) == len(good) else store.subset(fitting), errors=errors)

    def _place(self, columns: Sequence[str], name: str) -> int:
        try:
            return find_column(columns, name)
        except InputError as error:
            raise InputError(f"feature column {name!r}: {error}; {self.remedy}") from None

    def _read(self, cells: Sequence[str]) -> RowFeatures:
        """Read the cells of a row, in the order of `columns`; an `InputError` names the cell that cannot be used."""
        numbers, lists = [], {}
        for name, cell in zip(self.columns, cells, strict=True):
            try:
                if name in self.names:
                    numbers.append(self._number(cell))
                else:
                    values, per = parse_list(cell), "atom" if name in self.atoms else "bond"
                    if not self.blanks and (values is None or np.isnan(values).any()):
                        raise InputError(f"expected a list of numbers, one for each {per}, without blanks")
                    if values is not None:
                        lists[name] = values
            except InputError as reason:
                raise InputError(f'column "{printable(name)}", value "{printable(cell)}": {reason}') from None
        return RowFeatures(self._with_indicators(np.array(numbers, np.float64)), lists)

    def _number(self, cell: str) -> float:
        number = parse_number(cell)
        if abs(number) <= LARGEST or (self.blanks and np.isnan(number)):
            return number
        reason = "is blank" if np.isnan(number) else "is not a number" if np.isinf(number) else "is too large"
        expected = f"expected a number of at most {LARGEST:g}{' or a blank' if self.blanks else ''}"
        raise InputError(f"{reason}; {expected}{comma_advice([cell])}")

    def _with_indicators(self, numbers: np.ndarray) -> np.ndarray:
        """Append to numbers `[..., C]`, if blanks are allowed, 1 for each blank and 0 for each other; float32."""
        parts = [numbers, np.isnan(numbers)] if self.blanks else [numbers]
        return np.concatenate(parts, axis=-1).astype(np.float32)


NO_FEATURES = FeatureColumns()
"""No feature columns: a model reads molecules alone."""
