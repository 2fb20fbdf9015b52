"""Numbers of bonds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from torch import Tensor

from gtx.molecules.features import BOND_PLACE
from gtx.molecules.naming import name_code
from gtx.tasks.parts import PartNumbers

if TYPE_CHECKING:
    from gtx.data import MoleculeStore


@dataclass(frozen=True)
class BondNumbers(PartNumbers):
    """T numbers for each bond between atoms of the graph, in RDKit's order of bonds, see `PartNumbers`.

    A bond has no direction: its number is a function of the sum and the difference of its atoms' states
    (`gtx.nn.BondReadout`).
    """

    name: ClassVar[str] = "bonds"
    per: ClassVar[str] = "bond"
    held: ClassVar[str] = "bond_y"
    rows_each: ClassVar[int] = 2

    def ptr(self, store: MoleculeStore) -> Tensor:
        return store.bond_ptr

    def molecule(self, batch: Any) -> Tensor:
        return batch.batch[batch.edge_index[0]]

    def kinds(self, store: MoleculeStore) -> list[str]:
        column = BOND_PLACE["type"]
        return [name_code("bond", column, code) for code in store.bond_codes[:, column].tolist()]

    def codes(self, store: MoleculeStore) -> np.ndarray:
        """Of the bond, and of its two atoms in whichever order: of each column the smaller code, and the larger."""
        ends = store.bonds.numpy() + store.atom_ptr.numpy()[self._owner(store).numpy()]
        one, other = (store.atoms.numpy()[end] for end in ends)
        return np.concatenate([store.bond_codes.numpy(), np.minimum(one, other), np.maximum(one, other)], axis=1)
