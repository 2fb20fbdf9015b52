"""Training molecules of a model: similar ones, and those predicted anew."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import torch

from gtx.data import MoleculeStore, featurise
from gtx.data.columns import Row
from gtx.data.targets import parse_number
from gtx.errors import InputError
from gtx.kernel import TanimotoKernel
from gtx.molecules.graphs import ATOM_PLACE, BOND_PLACE
from gtx.schema import Kind, ListOf, MappingOf, Record, text, whole
from gtx.tasks.task import Answers, Task

if TYPE_CHECKING:
    from gtx.molecules import Featuriser


# --- The rows that a model file keeps of those that it learned from, to show what a prediction rests on.

MOST = 20_000
MOST_CHARACTERS = 2**20
"""Limits on the stored training rows and on the characters of their SMILES; beyond them, rows are drawn at random.
Comparing molecules first reads all stored rows, in some 2 s; molecules of hundreds of atoms in 20 s."""
LONGEST_CELL = 100_000
"""A row whose SMILES or cell has more characters is not kept."""


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
        """All rows, or of too many as many as may be kept, always the same ones."""
        trained = len(smiles)
        columns = (smiles, *values.values())
        drawn = np.random.default_rng(0).permutation(trained).tolist()
        order = [i for i in drawn if all(len(column[i]) <= LONGEST_CELL for column in columns)][:most]
        characters = np.cumsum([len(smiles[i]) for i in order])
        kept = sorted(order[: np.searchsorted(characters, MOST_CHARACTERS, side="right")])
        cells = {name: [column[i] for i in kept] for name, column in values.items()}
        return cls([smiles[i] for i in kept], [int(rows[i]) for i in kept], cells, trained)

    def __len__(self) -> int:
        return len(self.smiles)

    def column(self, name: str) -> np.ndarray:
        """Return the measured values of a target, `[n]`: numbers with NaN for blanks if every cell is a number or
        blank, otherwise text."""
        numbers = np.array([parse_number(cell) for cell in self.values[name]], np.float64)
        return np.array(self.values[name], object) if np.isinf(numbers).any() else numbers

    def describe(self) -> str:
        """State the number of rows."""
        few = "" if len(self) == self.trained else f" of {self.trained:,}, drawn at random"
        return f"{len(self):,}{few}, with SMILES and values"

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> Self:
        """Rebuild the rows from the plain values of `to_dict`.

        Raises:
            InputError: an entry is missing or of another kind, or columns differ in length.
        """
        numbers = ListOf(whole(0, 2**53), most=MOST)
        texts = ListOf(text(LONGEST_CELL), most=MOST)
        kinds: dict[str, Kind] = {
            "smiles": texts,
            "rows": numbers,
            "values": MappingOf(texts),
            "trained": whole(0, 2**53),
        }
        Record(kinds).check(plain, "training")
        if (characters := sum(map(len, plain["smiles"]))) > MOST_CHARACTERS:
            raise InputError(f"training.smiles: expected {MOST_CHARACTERS:,} characters at most, got {characters:,}")
        for name, column in {"rows": plain["rows"], **plain["values"]}.items():
            if len(column) != len(plain["smiles"]):
                expected = f"{len(plain['smiles'])} entries, one for each of training.smiles"
                raise InputError(f"training: expected {expected}, got {len(column)} of {name}")
        return cls(**{name: plain[name] for name in kinds})


# --- Molecules of a table that the model learned from: what scores of a table with targets must say beside them.


@dataclass(frozen=True)
class Overlap:
    """From how many molecules of a table the model learned.

    A kernel that has a share in the prediction learned from the validation rows too.

    Attributes:
        trained: molecules from which it did.
        rows: molecules that could be read.
        sampled: the model file keeps only some of these, so there may be more.
        metrics: scores of the other molecules alone, as in `metrics.json`; None where nothing was measured of them.
    """

    trained: int
    rows: int
    sampled: bool
    metrics: dict[str, Any] | None

    def __str__(self) -> str:
        which = f"{'at least ' * self.sampled}{self.trained:,}"
        said = f"the model was trained on {which} of these {self.rows:,} molecules"
        if self.trained == self.rows:
            return f"{said}: the scores do not apply to new molecules"
        return said if self.metrics is None else f"{said}; the other {self.rows - self.trained:,} alone:"


class Trained:
    """Follows a table as it is predicted.

    Args:
        training: what the model file keeps.
        task: of the model.
        columns: of the table.
    """

    def __init__(self, training: TrainingRows, task: Task, columns: Sequence[str]) -> None:
        self.known, self.sampled = set(training.smiles), len(training) < training.trained
        self.others = task.scores(columns)
        self.trained = self.rows = 0

    def add(self, rows: Sequence[Row], answers: Answers, smiles: Sequence[str | None]) -> None:
        """Take in some rows, their answers and their canonical SMILES."""
        new = np.array([i for i, text in enumerate(smiles) if text not in self.known], np.int64)
        self.rows += len(rows)
        self.trained += len(rows) - len(new)
        if len(new):
            self.others.add([rows[i] for i in new], answers.subset(new))

    def overlap(self) -> Overlap | None:
        """Return the overlap found; None if the model was trained on no molecule."""
        return Overlap(self.trained, self.rows, self.sampled, self.others.metrics()) if self.trained else None


# --- The training molecules that are most similar to molecules.

MORGAN = {
    "radius": 2,
    "atoms": [ATOM_PLACE[name] for name in ("element", "charge", "hydrogens", "degree")],
    "bonds": [BOND_PLACE["type"]],
}
"""Substructures that are counted: circular, within 2 bonds, as in Morgan's fingerprint, unfolded."""
CHUNK = 256  # molecules that are compared at a time


class Neighbours:
    """Compares molecules with training rows, by the Tanimoto similarity of Morgan counts.

    Args:
        training: the rows.
        featuriser: how the model reads molecules.
    """

    def __init__(self, training: TrainingRows, featuriser: Featuriser) -> None:
        whole = replace(
            constitution(featuriser),
            standardise=False,  # these are
            components=(),
            max_atoms=featuriser.max_atoms * max(1, len(featuriser.components)),
        )
        done = featurise(whole, list(training.smiles), workers=0, smiles=False)
        self.training, self.rows = training, done.good
        self.kernel = TanimotoKernel([MORGAN])
        self.kernel.set_references(done.store)

    def of(self, store: MoleculeStore, count: int) -> tuple[np.ndarray, np.ndarray]:
        """The nearest training rows of each molecule of a store, the most similar first.

        Returns:
            Which of the kept rows, int64 `[m, k]`, and their similarity, float64 `[m, k]`, from 0 to 1; k is `count`,
            or less where fewer rows are kept.
        """
        count, store = min(count, len(self.rows)), store.to("cpu")
        parts = [self.kernel.nearest(store.batch(some), count) for some in torch.arange(len(store)).split(CHUNK)] or [
            (torch.zeros(0, count, dtype=torch.long), torch.zeros(0, count, dtype=torch.double))
        ]
        place, similarity = (torch.cat(part).numpy() for part in zip(*parts, strict=True))
        return self.rows[place], similarity


def constitution(featuriser: Featuriser) -> Featuriser:
    """Return the featuriser reduced to what comparisons need."""
    return replace(featuriser, descriptors=False, molecule_features=(), coordinates=False, conformers=False)
