"""Numbers of atoms, such as partial charges, which may have to sum to a total."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor
from torch_geometric.utils import softmax

from gtx.errors import InputError, did_you_mean
from gtx.molecules.features import ATOM_COLUMNS, ATOM_PLACE
from gtx.schema import MappingOf, OrNone, Record, Value, anything, number
from gtx.tasks.losses import constants
from gtx.tasks.options import AtomOptions, learned
from gtx.tasks.part_kinds import OfAtoms
from gtx.tasks.part_numbers import PartNumbers

if TYPE_CHECKING:
    from gtx.data import FeatureColumns, MoleculeStore

CHARGE = "charge"


@dataclass(frozen=True)
class AtomNumbers(OfAtoms, PartNumbers, AtomOptions):
    r"""T numbers for each atom of the graph, in the order in which the SMILES or the mol block has them, see
    `PartNumbers`.

    With `sum_to` the numbers of a molecule sum to a total Q. What the network says of atom i, \(y_i\), leaves a
    difference, and weights that it says too distribute it:

    \[ \hat y_i = y_i + w_i \Big( Q - \sum_j y_j \Big), \qquad w_i = \frac{e^{u_i}}{\sum_j e^{u_j}} \]

    Source: Guan et al. 2021 (https://doi.org/10.1039/D0SC04823B), as chemprop's constrained predictions of atoms.

    Args:
        targets: names of the target columns.
        sum_to: "charge", the formal charge of the molecule, a number, or the name of a column that the model reads
            beside the molecule (`gtx.data.FeatureColumns`); of every target. None: no constraint.
        gap: learned: how far the training values of a molecule are from that sum, mean over molecules and targets.
        place: of that column among the descriptors, counted from their end; of `reading`.

    Raises:
        InputError: `sum_to` is no finite number.
    """

    name: ClassVar[str] = "atoms"

    gap: float | None = learned()
    place: int | None = learned()

    def __post_init__(self) -> None:
        super().__post_init__()
        total = self.sum_to
        if isinstance(total, str):  # on the command line a number is a word
            with suppress(ValueError):
                total = float(total)
        if isinstance(total, (int, float)):
            if not abs(total) < np.inf:
                raise InputError(f"sum_to: expected a finite number, got {self.sum_to!r}")
            object.__setattr__(self, "sum_to", float(total))

    def reading(self, features: FeatureColumns | None) -> Self:
        if self.sum_to == CHARGE or not isinstance(self.sum_to, str):
            return self
        names = features.names if features else ()
        if self.sum_to not in names:
            what = f"{CHARGE}, a number or one of --feature-columns"
            raise InputError(f"sum_to: expected {what}, got {self.sum_to!r}{did_you_mean(self.sum_to, names)}")
        return replace(self, place=names.index(self.sum_to) - features.width)

    @property
    def out_channels(self) -> int:
        """With a total, a logit u beside each number."""
        return len(self.targets) * (1 if self.sum_to is None else 2)

    def totals(self, atoms: Tensor, descriptors: Tensor, molecule: Tensor, like: Tensor) -> Tensor:
        """The total of each molecule, `[B]`; NaN for one with an atom whose charge has no code, or a blank column.

        Args:
            atoms: codes `[N, A]`.
            descriptors: `[B, D]`.
            molecule: int64 `[N]`, of each atom.
            like: gives the type of the numbers.
        """
        count = len(descriptors)
        if self.place is not None:
            return descriptors[:, self.place].to(like.dtype)
        if self.sum_to != CHARGE:
            return like.new_full((count,), self.sum_to)
        code = atoms[:, ATOM_PLACE[CHARGE]].to(like.dtype)
        formal = torch.where(code > 0, code - 1 + ATOM_COLUMNS[CHARGE][0], torch.nan)
        return like.new_zeros(count).index_add(0, molecule, formal)

    def settled_outputs(self, output: Tensor, batch: Any) -> Tensor:
        if self.sum_to is None:
            return output
        scaled, logits = output.chunk(2, dim=1)
        molecule, count = batch.batch, batch.num_graphs
        mean, sd = (constants(each.tolist(), scaled) for each in (self.scaler.mean, self.scaler.sd))
        total = self.totals(batch.x, batch.u, molecule, scaled)[:, None]
        predicted = scaled.new_zeros(count, len(self.targets)).index_add(0, molecule, scaled * sd + mean)
        missing = torch.where(total.isnan(), 0.0, total - predicted) * torch.where(sd > 0, 1 / sd, 0.0)
        return scaled + softmax(logits, molecule, num_nodes=count) * missing[molecule]

    def fitted(self, train: MoleculeStore) -> Self:
        own = super().fitted(train)
        if self.place is None:
            self.reading(None)  # which says what is missing
        if self.sum_to is None or own.gap is not None:
            return own
        if self.sum_to == CHARGE and train.atom_columns[ATOM_PLACE[CHARGE] :][:1] != (CHARGE,):
            columns = list(train.atom_columns)
            raise InputError(f"sum_to: expected molecules with formal charges, got atoms with {columns}")
        y, owner = self.values(train).cpu().double(), self.owner(train).cpu()
        total = self.totals(train.atoms.cpu(), train.descriptors.cpu(), owner, y)[:, None]
        off = (y.new_zeros(len(train), y.shape[1]).index_add(0, owner, y) - total).abs()
        return own if off.isnan().all() else replace(own, gap=float(off.nanmean()))  # of whole lists alone

    def answer_remarks(self, store: MoleculeStore) -> list[list[str]]:
        remarks = super().answer_remarks(store)
        if self.sum_to is not None:
            why = "an atom's formal charge is beyond ±4" if self.sum_to == CHARGE else f"{self.sum_to!r} is blank"
            unknown = self.totals(store.atoms, store.descriptors, self.owner(store), torch.zeros(0)).isnan()
            for i in unknown.nonzero().flatten().tolist():
                remarks[i].append(f"the values of its atoms sum to no total: {why}")
        return remarks

    def notes(self) -> list[str]:
        if self.sum_to is None:
            return []
        total = "its formal charge" if self.sum_to == CHARGE else self.sum_to
        total = f"{total:g}" if isinstance(total, float) else total
        missed = "" if self.gap is None else f"; those of the training rows miss it by {self.gap:.2g} on average"
        return [f"the predictions of a molecule's atoms sum to {total}{missed}"]

    def to_dict(self) -> dict[str, Any]:
        return {name: value for name, value in super().to_dict().items() if name != "place"}

    @classmethod
    def kept_entries(cls, targets: int) -> Record:
        total = Value("a text or a number", lambda value: isinstance(value, (str, float)))
        return Record({"scaler": MappingOf(anything())}, {"sum_to": OrNone(total), "gap": OrNone(number(0))})
