"""The rows that a model file keeps of those that it learned from, to show what a prediction rests on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np

from gtx.data.targets import parse_number
from gtx.errors import InputError
from gtx.schema import ListOf, MappingOf, Record, text, whole

MOST = 20_000
"""Of more training rows so many are kept, drawn at random: some 2 MB."""


@dataclass(frozen=True)
class TrainingRows:
    """n rows that a model learned from, as the table has them: the training rows, and where a kernel learned from the
    validation rows too, these.

    Attributes:
        smiles: canonical SMILES of each; where a row has several molecules, of all of them together.
        rows: their numbers in the table, from 1.
        values: of each target, n cells.
        trained: how many such rows there were.
    """

    smiles: Sequence[str]
    rows: Sequence[int]
    values: Mapping[str, Sequence[str]]
    trained: int

    @classmethod
    def drawn(
        cls, smiles: Sequence[str], rows: Sequence[int], values: Mapping[str, Sequence[str]], most: int = MOST
    ) -> Self:
        """All rows, or of more than `most` so many, always the same ones."""
        trained = len(smiles)
        kept = range(trained)
        if trained > most:
            kept = np.sort(np.random.default_rng(0).choice(trained, most, replace=False)).tolist()
        cells = {name: [column[i] for i in kept] for name, column in values.items()}
        return cls([smiles[i] for i in kept], [int(rows[i]) for i in kept], cells, trained)

    def __len__(self) -> int:
        return len(self.smiles)

    def column(self, name: str) -> np.ndarray:
        """What was measured of a target, `[n]`: numbers, NaN for blanks, where all cells are such, or else text."""
        numbers = np.array([parse_number(cell) for cell in self.values[name]], np.float64)
        return np.array(self.values[name], object) if np.isinf(numbers).any() else numbers

    def words(self) -> str:
        """How many they are."""
        few = "" if len(self) == self.trained else f" of {self.trained:,}, drawn at random"
        return f"{len(self):,}{few}, with SMILES and values"

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> Self:
        """What `to_dict` described.

        Raises:
            InputError: an entry is missing or of another kind, or columns differ in length.
        """
        numbers = ListOf(whole(0, 2**53), most=MOST)
        texts = ListOf(text(), most=MOST)
        kinds = {"smiles": texts, "rows": numbers, "values": MappingOf(texts), "trained": whole(0, 2**53)}
        Record(kinds).check(plain, "training")
        for name, column in {"rows": plain["rows"], **plain["values"]}.items():
            if len(column) != len(plain["smiles"]):
                expected = f"{len(plain['smiles'])} entries, one for each of training.smiles"
                raise InputError(f"training: expected {expected}, got {len(column)} of {name}")
        return cls(**{name: plain[name] for name in kinds})
