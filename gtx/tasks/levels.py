"""Levels of targets: molecules, atoms or bonds, and where a store and a batch keep the values of each."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from gtx.base.errors import InputError
from gtx.data import MoleculeStore
from gtx.data.batches import ConstantShapeStore
from gtx.molecules.graphs import ATOM_INDEX, BOND_INDEX, name_code

LevelName = Literal["molecule", "atom", "bond"]


@dataclass(frozen=True)
class Level:
    """Level of targets. A store or a batch has R rows of a level, each of one molecule, whose targets `[R, T]` are its
    `field`; an item has `rows_each` of them, a bond two, one in each direction.
    """

    name: LevelName
    field: str
    rows_each: int = 1

    @property
    def lists(self) -> bool:
        """True if a cell is a list, with an item for each atom or bond of the molecule."""
        return self.name != "molecule"

    def targets(self, examples: Any) -> Tensor:
        """Return the targets `[R, T]` of a store or a batch."""
        y: Tensor | None = getattr(examples, self.field)
        if y is None:
            raise InputError(f"these molecules have no targets of {self.name}s: expected a store with {self.field}")
        return y

    def with_targets(self, store: MoleculeStore, y: Tensor) -> MoleculeStore:
        """Return a store with targets `[R, T]`, which become float64 on its device."""
        changes: dict[str, Any] = {self.field: y.double().to(store.device)}
        return replace(store, **changes)

    def truth(self, store: MoleculeStore) -> np.ndarray:
        """Return the targets of a store, each item once."""
        return self.targets(store).cpu().numpy()[:: self.rows_each]

    def ptr(self, store: MoleculeStore) -> Tensor:
        """Return int64 `[M + 1]`: molecule m has the rows `ptr[m]` to `ptr[m + 1]` of a store."""
        if self.name == "molecule":
            return torch.arange(len(store) + 1, device=store.device)
        return store.atom_ptr if self.name == "atom" else store.bond_ptr

    def owner(self, examples: Any) -> Tensor:
        """Return the molecule of each row of a store or a batch, int64 `[R]`."""
        if isinstance(examples, MoleculeStore):
            each = torch.arange(len(examples), device=examples.device)
            return torch.repeat_interleave(each, self.ptr(examples).diff())
        if self.name == "molecule":
            return torch.arange(examples.num_graphs, device=examples.batch.device)
        return examples.batch if self.name == "atom" else examples.batch[examples.edge_index[0]]

    def weights(self, examples: Any) -> Tensor | None:
        """Return the weight of each row of a store or a batch, `[R]`: that of its molecule; None without weights."""
        weights: Tensor | None = getattr(examples, "weights", None)
        return weights if weights is None or not self.lists else weights[self.owner(examples)]

    def known(self, store: MoleculeStore) -> Tensor:
        """Find the molecules with a value or a bound, bool `[M]`."""
        measured = (~self.targets(store).isnan()).any(1)
        if self.lists:
            counts = torch.zeros(len(store), dtype=torch.long, device=store.device)
            return counts.index_add(0, self.owner(store), measured.long()) > 0
        return measured if store.bounds is None else measured | (~store.bounds.isnan()).any(1)

    def share(self, examples: Any) -> int | Tensor:
        """Return the weight of a store or a batch in an epoch: the number of molecules, or of values of atoms or bonds;
        with weights their sum.
        """
        if self.lists and isinstance(examples, ConstantShapeStore):
            examples = examples.store
        weights = self.weights(examples)
        if not self.lists:
            count: int | Tensor = getattr(examples, "molecules", examples.num_graphs)
            return count if weights is None else weights.sum()
        measured = ~self.targets(examples).isnan()
        return measured.sum() if weights is None else (measured * weights[:, None]).sum()

    def kinds(self, store: MoleculeStore) -> np.ndarray:
        """Name the element of each atom, or the type of each bond, of a store: texts `[items]`."""
        if self.name == "atom":
            column = ATOM_INDEX["element"]
            names = [
                name_code("atom", column, code).removeprefix("element ") for code in store.atoms[:, column].tolist()
            ]
        else:
            column = BOND_INDEX["type"]
            names = [name_code("bond", column, code) for code in store.bond_codes[:, column].tolist()]
        return np.array(names, object)[:: self.rows_each]

    def codes(self, store: MoleculeStore) -> np.ndarray:
        """Return the codes `[items, K]` of the atoms of a store; of a bond its own and those of its two atoms,
        independent of their order: the smaller codes, then the larger.
        """
        if self.name == "atom":
            return store.atoms.numpy()
        ends = store.bonds.numpy() + store.atom_ptr.numpy()[self.owner(store).numpy()]
        one, other = (store.atoms.numpy()[end] for end in ends)
        both = [store.bond_codes.numpy(), np.minimum(one, other), np.maximum(one, other)]
        return np.concatenate(both, axis=1)[:: self.rows_each]


LEVELS: dict[LevelName, Level] = {
    "molecule": Level("molecule", "y"),
    "atom": Level("atom", "atom_y"),
    "bond": Level("bond", "bond_y", 2),
}
"""Levels by name. Atoms are in the order of the SMILES or the mol block, bonds in RDKit's order."""


def lists_of(values: np.ndarray, ptr: np.ndarray) -> list[np.ndarray]:
    """Split the rows of all molecules, `[R, ...]`: molecule m has the rows `ptr[m]` to `ptr[m + 1]`."""
    return np.split(values, ptr[1:-1]) if len(ptr) > 1 else []  # numpy makes one part of none
