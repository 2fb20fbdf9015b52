"""How often each circular substructure occurs in a molecule."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch_geometric.data import Batch

from gtx.graph import circular_labels
from gtx.nn.dropout import Dropout
from gtx.nn.training_set import TrainingSet

FARTHEST = 20
"""The largest radius, in bonds; a substructure as large hardly occurs in a second molecule."""


class Substructures(nn.Module):
    r"""A linear map of the logarithms of how often each circular substructure occurs.

    Every atom starts with a label made of its codes; in each round it takes the labels of its neighbours in, with the
    codes of the bonds to them, so that after r rounds a label stands for all within r bonds:

    \[ l_i^{r+1} = h\Bigl(l_i^r, \sum_{j \to i} h(l_j^r, b_{ij})\Bigr), \qquad
       u = W\, \mathrm{dropout}\bigl(\log(1 + c)\bigr), \quad
       c_k = \bigl|\{(i, r) : l_i^r \bmod K = k,\ r \le R\}\bigr| \]

    Source: the subtree kernel of Shervashidze et al. 2011 (JMLR 12:2539); with atoms and bonds of molecules the labels
    are those of Morgan's fingerprint (Rogers and Hahn 2010, 10.1021/ci100050t), folded to K.

    Counts that too few training molecules have are left out, once `observe` has seen these: nothing can be learned of
    them but the molecules themselves. Integers wrap around alike everywhere.

    Args:
        channels: width of u.
        atoms: columns of `batch.x` that make the first label; default all.
        bonds: columns of `batch.edge_attr`; default all.
        radius: R, in bonds.
        folded: K, kinds of substructures told apart.
        least: a count is used if so many training molecules have it.
        dropout: of counts, in training.

    Shapes:
        a batch of B molecules (`x` `[N, A]`, `edge_index` `[2, E]`, `edge_attr` `[E, F]`, `batch` `[N]`) to
        `[B, channels]`.
    """

    def __init__(
        self,
        channels: int,
        atoms: Sequence[int] | None = None,
        bonds: Sequence[int] | None = None,
        radius: int = 2,
        folded: int = 2048,
        least: int = 3,
        dropout: float = 0.8,
    ) -> None:
        super().__init__()
        if not 0 <= radius <= FARTHEST or folded < 1:
            raise ValueError(
                f"expected a radius from 0 to {FARTHEST} and at least 1 folded, got radius={radius} and folded={folded}"
            )
        self.width, self.radius, self.folded, self.least = channels, radius, folded, least
        self.atoms, self.bonds = (None if one is None else list(one) for one in (atoms, bonds))
        self.dropout = Dropout(dropout)
        self.embedding = nn.Linear(folded, channels, bias=False)
        nn.init.normal_(self.embedding.weight, std=0.02)
        self.register_buffer("used", torch.ones(folded, dtype=torch.bool))

    def labels(self, batch: Batch) -> Tensor:
        """`circular_labels` of the columns and the radius, int64 `[radius + 1, N]`."""
        return circular_labels(batch, self.radius, self.atoms, self.bonds)

    def counts(self, batch: Batch) -> Tensor:
        """How often each substructure occurs, int64 `[B, folded]`."""
        kind = (self.labels(batch).remainder(self.folded) + batch.batch * self.folded).flatten()
        counts = kind.new_zeros(batch.num_graphs * self.folded).index_add_(0, kind, torch.ones_like(kind))
        return counts.view(batch.num_graphs, self.folded)

    def observe(self, molecules: TrainingSet) -> None:
        """Learn from the TRAINING molecules which substructures occur often enough."""
        batches = (molecules.batch(rows) for rows in torch.arange(len(molecules)).split(512))
        self.used.copy_(sum((self.counts(batch) > 0).sum(0) for batch in batches) >= self.least)

    def forward(self, batch: Batch) -> Tensor:
        counts = self.counts(batch) * self.used
        return self.embedding(self.dropout(counts.to(self.embedding.weight.dtype).log1p()))

    def __repr__(self) -> str:
        return f"Substructures({self.width}, radius={self.radius}, folded={self.folded}, dropout={self.dropout.p})"
