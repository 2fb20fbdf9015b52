"""Several conformers of a molecule, pooled to one vector."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Literal

import torch
from torch import Tensor, nn
from torch_geometric.data import Batch

from gtx.models.graph_transformer import GraphTransformer
from gtx.nn import TrainingSet


class OverConformers(nn.Module):
    r"""A model of molecules in space that reads several conformers of each: their vectors are pooled before the head.

    \[ y = \mathrm{head}\Bigl( \sum_k a_k z_k \Bigr), \qquad a_k = 1 / K \quad \text{or} \quad
       a_k = \operatorname{softmax}_k (w \cdot z_k) \]

    with the model's vector \(z_k\) of conformer k (`GraphTransformer.embed`), over the K conformers that are known. No
    energy enters and no Boltzmann weight. Neither the order of the conformers matters, nor, for the mean, that all are
    there twice. A molecule without any is read as one whose coordinates are unknown. Time and memory are those of K
    molecules.

    Source: attention over the members of a set, Ilse et al. 2018 (arXiv:1802.04712), without the gate; over conformers,
    Axelrod & Gómez-Bombarelli 2020 (arXiv:2012.08452).

    Args:
        model: of one conformer, which predicts for molecules.
        pool: "mean" or "attention".

    Shapes:
        a batch whose `pos` is `[N, 3 K]`, the coordinates of the first conformer and then of the next, Å, NaN where
        unknown, to `[B, out_channels]`. `gtx.data.MoleculeStore` cuts such batches out of `positions` of this shape.

    Raises:
        ValueError: another word for pool, or a model of atoms or bonds; in `forward`, coordinates of another shape.
    """

    def __init__(self, model: GraphTransformer, pool: Literal["mean", "attention"] = "mean") -> None:
        super().__init__()
        if pool not in ("mean", "attention"):
            raise ValueError(f'expected the pool "mean" or "attention", got {pool!r}')
        if model.per != "molecule":
            raise ValueError(f"conformers of molecules are pooled: expected a model per molecule, got {model.per}")
        self.model, self.pool = model, pool
        self.weigh = nn.Linear(model.width, 1, bias=False) if pool == "attention" else None

    @property
    def constant_shapes(self) -> bool:
        """As of the model."""
        return self.model.constant_shapes

    @property
    def fixed(self) -> dict[str, bool]:
        """As of the model: what is fixed does not look at coordinates."""
        return self.model.fixed

    def fixed_features(self, batch: Batch, names: Sequence[str]) -> dict[str, tuple[Tensor | None, Tensor | None]]:
        """As of the model."""
        return self.model.fixed_features(batch, names)

    def forward(self, batch: Batch) -> Tensor:
        """Predictions `[B, out_channels]`, in the scaled units of training."""
        return self.model.head(self.embed(batch))

    def embed(self, batch: Batch) -> Tensor:
        """One vector per molecule, `[B, width]`."""
        each, weights = self.conformers(batch)
        return (weights.unsqueeze(-1) * each).sum(1)

    def conformers(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """The vector of each conformer, `[B, K, width]`, and its weight, `[B, K]`: 0 for one that is not known."""
        pos = batch.pos
        if pos is None or pos.dim() != 2 or pos.shape[1] % 3 or not pos.shape[1]:
            raise ValueError(f"expected pos [N, 3 K] of K conformers, got {None if pos is None else list(pos.shape)}")
        each, known = [], []
        for place in pos.split(3, 1):
            one = copy(batch)
            one.pos = place
            each.append(self.model.embed(one))
            placed = torch.zeros(batch.num_graphs, dtype=torch.long, device=pos.device)
            known.append(placed.index_add_(0, batch.batch, place.isfinite().all(1).long()) > 0)
        vectors, there = torch.stack(each, 1), torch.stack(known, 1)
        there = torch.cat([there[:, :1] | ~there.any(1, keepdim=True), there[:, 1:]], 1)
        score = vectors.new_zeros(there.shape) if self.weigh is None else self.weigh(vectors).squeeze(-1)
        return vectors, score.masked_fill(~there, -torch.inf).softmax(1)

    def observe(self, molecules: TrainingSet, more: bool = False) -> None:
        """As of the model."""
        self.model.observe(molecules, more)

    def unseen(self, batch: Batch) -> list[list[tuple[str, int, int]]]:
        """As of the model."""
        return self.model.unseen(batch)
