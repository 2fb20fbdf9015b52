"""Which parts of a molecule have targets: its atoms, or its bonds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from torch import Tensor

from gtx.molecules.features import ATOM_PLACE, BOND_PLACE
from gtx.molecules.naming import name_code
from gtx.tasks.parts import PartTask

if TYPE_CHECKING:
    from gtx.data import MoleculeStore


class OfAtoms(PartTask):
    """The atoms of the graph, in the order in which the SMILES or the mol block has them."""

    per: ClassVar[str] = "atom"
    held: ClassVar[str] = "atom_y"

    def ptr(self, store: MoleculeStore) -> Tensor:
        return store.atom_ptr

    def molecule(self, batch: Any) -> Tensor:
        return batch.batch

    def kinds(self, store: MoleculeStore) -> list[str]:
        column = ATOM_PLACE["element"]
        return [name_code("atom", column, code).removeprefix("element ") for code in store.atoms[:, column].tolist()]

    def codes(self, store: MoleculeStore) -> np.ndarray:
        return store.atoms.numpy()


class OfBonds(PartTask):
    """The bonds between atoms of the graph, in RDKit's order of bonds.

    A bond has no direction: its outputs are a function of the sum and the difference of its atoms' states
    (`gtx.nn.BondReadout`).
    """

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
        ends = store.bonds.numpy() + store.atom_ptr.numpy()[self.owner(store).numpy()]
        one, other = (store.atoms.numpy()[end] for end in ends)
        return np.concatenate([store.bond_codes.numpy(), np.minimum(one, other), np.maximum(one, other)], axis=1)
