"""What a model reads of the molecules that it will be trained on."""

from __future__ import annotations

from typing import Protocol

from torch import Tensor
from torch_geometric.data import Batch


class TrainingSet(Protocol):
    """M molecules, N atoms and E directed bonds in all, such as a `gtx.data.MoleculeStore`.

    Attributes:
        atoms: `[N, A]`, codes of the atoms.
        bond_codes: `[E, F]`, codes of the bonds.
        descriptors: `[M, D]`, global features; NaN where one could not be computed.
        atom_features, bond_features: `[N, K]` and `[E, K]`, for models that read any; otherwise they need not be there.
    """

    atoms: Tensor
    bond_codes: Tensor
    descriptors: Tensor

    def __len__(self) -> int: ...

    def batch(self, index: Tensor) -> Batch:
        """The molecules `index` (int64 `[B]`), as a model takes them."""
