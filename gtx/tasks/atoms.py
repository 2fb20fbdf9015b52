"""Numbers of atoms, such as partial charges, which may have to sum to a total."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor
from torch_geometric.utils import softmax

from gtx.errors import InputError
from gtx.molecules.features import ATOM_COLUMNS, ATOM_PLACE
from gtx.molecules.naming import name_code
from gtx.schema import MappingOf, OrNone, Record, Value, anything, number
from gtx.tasks.losses import constants
from gtx.tasks.options import AtomOptions, learned
from gtx.tasks.parts import PartNumbers

if TYPE_CHECKING:
    from gtx.data import MoleculeStore

CHARGE = "charge"


@dataclass(frozen=True)
class AtomNumbers(PartNumbers, AtomOptions):
    r"""T numbers for each atom of the graph, in the order in which the SMILES or the mol block has them.

    With `sum_to` the numbers of a molecule sum to a total Q. What the network says of atom i, \(y_i\), leaves a
    difference, and weights that it says too distribute it:

    \[ \hat y_i = y_i + w_i \Big( Q - \sum_j y_j \Big), \qquad w_i = \frac{e^{u_i}}{\sum_j e^{u_j}} \]

    Source: Guan et al. 2021 (https://doi.org/10.1039/D0SC04823B), as chemprop's constrained predictions of atoms.

    Args:
        targets: names of the target columns.
        sum_to: "charge", the formal charge of the molecule, or a number; of every target. None: no constraint.
        gap: learned: how far the training values of a molecule are from that sum, mean over molecules and targets.

    Raises:
        InputError: `sum_to` is something else.
    """

    name: ClassVar[str] = "atoms"
    per: ClassVar[str] = "atom"
    held: ClassVar[str] = "atom_y"

    gap: float | None = learned()

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.sum_to is None or self.sum_to == CHARGE:
            return
        try:
            total = float(self.sum_to)
        except (TypeError, ValueError):
            total = torch.inf
        if not abs(total) < torch.inf:
            raise InputError(f"sum_to: expected {CHARGE} or a number, got {self.sum_to!r}")
        object.__setattr__(self, "sum_to", total)

    def ptr(self, store: MoleculeStore) -> Tensor:
        return store.atom_ptr

    def molecule(self, batch: Any) -> Tensor:
        return batch.batch

    def kinds(self, store: MoleculeStore) -> list[str]:
        column = ATOM_PLACE["element"]
        return [name_code("atom", column, code).removeprefix("element ") for code in store.atoms[:, column].tolist()]

    def codes(self, store: MoleculeStore) -> np.ndarray:
        return store.atoms.numpy()

    @property
    def out_channels(self) -> int:
        """With a total, a logit u beside each number."""
        return len(self.targets) * (1 if self.sum_to is None else 2)

    def totals(self, atoms: Tensor, molecule: Tensor, count: int, like: Tensor) -> Tensor:
        """The total of each molecule, `[count]`; NaN for one with an atom whose charge has no code.

        Args:
            atoms: codes `[N, A]`.
            molecule: int64 `[N]`, of each atom.
            count: how many molecules.
            like: gives the type of the numbers.
        """
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
        total = self.totals(batch.x, molecule, count, scaled)[:, None]
        predicted = scaled.new_zeros(count, len(self.targets)).index_add(0, molecule, scaled * sd + mean)
        missing = torch.where(total.isnan(), 0.0, total - predicted) * torch.where(sd > 0, 1 / sd, 0.0)
        return scaled + softmax(logits, molecule, num_nodes=count) * missing[molecule]

    def fitted(self, train: MoleculeStore) -> Self:
        own = super().fitted(train)
        if self.sum_to is None or own.gap is not None:
            return own
        if self.sum_to == CHARGE and train.atom_columns[ATOM_PLACE[CHARGE] :][:1] != (CHARGE,):
            columns = list(train.atom_columns)
            raise InputError(f"sum_to: expected molecules with formal charges, got atoms with {columns}")
        y, owner = self.values(train).cpu().double(), self._owner(train).cpu()
        total = self.totals(train.atoms.cpu(), owner, len(train), y)[:, None]
        off = (y.new_zeros(len(train), y.shape[1]).index_add(0, owner, y) - total).abs()
        return own if off.isnan().all() else replace(own, gap=float(off.nanmean()))  # of whole lists alone

    def answer_remarks(self, store: MoleculeStore) -> list[list[str]]:
        remarks = super().answer_remarks(store)
        if self.sum_to == CHARGE:
            unknown = self.totals(store.atoms, self._owner(store), len(store), torch.zeros(0)).isnan()
            for i in unknown.nonzero().flatten().tolist():
                remarks[i].append("the values of its atoms sum to no total: an atom's formal charge is beyond ±4")
        return remarks

    def notes(self) -> list[str]:
        if self.sum_to is None:
            return []
        total = "its formal charge" if self.sum_to == CHARGE else f"{self.sum_to:g}"
        missed = "" if self.gap is None else f"; those of the training rows miss it by {self.gap:.2g} on average"
        return [f"the predictions of a molecule's atoms sum to {total}{missed}"]

    @classmethod
    def kept_entries(cls, targets: int) -> Record:
        total = Value(f"{CHARGE} or a number", lambda value: value == CHARGE or isinstance(value, float))
        return Record({"scaler": MappingOf(anything())}, {"sum_to": OrNone(total), "gap": OrNone(number(0))})
