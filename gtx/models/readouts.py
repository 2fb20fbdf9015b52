"""The last parts of a graph transformer: from nodes to a vector of each molecule, atom or bond, and to outputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch_geometric.data import Batch

from gtx.nn import Readout, SubstructureCountEmbedding
from gtx.nn.bonds import BondVectorFromAtoms
from gtx.nn.features import ClippedStandardScaler, TrainingMolecules
from gtx.nn.mlp import GELU

Level = Literal["molecule", "atom", "bond"]


class PretrainedEmbedding(nn.Module):
    """Embedding of molecules `[B, width]` by a pretrained network that is not trained further, as clipped z-scores.

    `gtx.prediction.foundation_embedding.attach_foundation` sets `embed`, a function from a batch to `[B, width]`, which
    is not part of the state dict. Batches with `embeddings` do not need it.

    Args:
        foundation: `{"sha256": of the file of the pretrained network, "width": of its embedding}`.
    """

    def __init__(self, foundation: Mapping[str, Any]) -> None:
        super().__init__()
        self.foundation: dict[str, Any] = dict(foundation)
        self.scaler: ClippedStandardScaler = ClippedStandardScaler(foundation["width"])
        self.embed: Callable[[Batch], Tensor] | None = None

    def values(self, batch: Batch) -> Tensor:
        """Return the embeddings of a batch before scaling, `[B, width]`."""
        if "embeddings" in batch:
            return batch.embeddings
        if self.embed is None:
            raise ValueError("embed: the model reads embeddings, and has no network that makes them")
        return self.embed(batch)

    def observe(self, molecules: TrainingMolecules) -> None:
        """Fit the scaling to the TRAINING molecules."""
        parts = torch.arange(len(molecules)).split(256)
        self.scaler.observe(torch.cat([self.values(molecules.batch(rows)) for rows in parts]))

    def forward(self, batch: Batch) -> Tensor:
        return self.scaler(self.values(batch).to(self.scaler.mean.dtype))


class LevelReadout(nn.Module):
    r"""Readout of a level: the vector of each molecule, atom or bond that its head reads.

    \[ z_b = [\mathrm{pool}_{i \in b}(v_i),\, m_b,\, c_b], \qquad z_i = [v_i,\, m_b,\, c_b], \qquad
       z_{sr} = [v_s + v_r,\, |v_s - v_r|,\, E(\mathrm{code}_{sr}),\, f_{sr},\, m_b,\, c_b] \]

    for a molecule b, its atoms i and its bonds (s, r), with the features f of a bond that the user gave, what
    `of_molecules` gives of the whole molecule, m, and the embedded counts of its substructures, c.

    Args:
        level: "molecule", "atom" or "bond".
        channels: width of the nodes.
        pooling: kinds of pooling of the atoms of a molecule, see `gtx.nn.Readout`; may be empty.
        bond_sizes, bond_features, virtual_nodes, substructures, foundation: as of `gtx.models.graph_transformer`.
        descriptors: number D of descriptors of a molecule, in `batch.u`.
        given: width of m if it is given, in place of that of descriptors, embedding and virtual nodes.

    Shapes:
        atoms `[N, channels]`, m `[B, *]` and for bonds their codes `[E, F]` and features `[E, K]`, to `[*, width]`.
    """

    def __init__(
        self,
        level: Level,
        channels: int,
        pooling: Sequence[str] = (),
        bond_sizes: Sequence[int] = (),
        bond_features: int = 0,
        descriptors: int = 0,
        virtual_nodes: int = 0,
        substructures: SubstructureCountEmbedding | None = None,
        foundation: Mapping[str, Any] | None = None,
        given: int | None = None,
    ) -> None:
        super().__init__()
        self.level = level
        self.pool: Readout | BondVectorFromAtoms | None = None
        if level == "molecule" and pooling:
            self.pool = Readout(channels, pooling)
        elif level == "bond":
            self.pool = BondVectorFromAtoms(channels, bond_sizes)
        own = {"molecule": 0, "atom": channels, "bond": bond_features}[level] + (self.pool.width if self.pool else 0)
        self.virtual_width: int = virtual_nodes * channels
        self.num_descriptors = descriptors
        self.descriptors: ClippedStandardScaler | None = ClippedStandardScaler(descriptors) if descriptors else None
        self.embedding: PretrainedEmbedding | None = None if foundation is None else PretrainedEmbedding(foundation)
        self.substructures = substructures
        embedded = 0 if foundation is None else foundation["width"]
        self.molecule_width: int = self.virtual_width + descriptors + embedded if given is None else given
        self.width: int = own + self.molecule_width + (substructures.width if substructures else 0)

    def observe(self, molecules: TrainingMolecules) -> None:
        """Fit the scales of descriptors and embedding and the choice of substructures to the TRAINING molecules."""
        if self.descriptors is not None:
            self.descriptors.observe(molecules.descriptors)
        if self.embedding is not None:
            self.embedding.observe(molecules)
        if self.substructures is not None:
            self.substructures.observe(molecules)

    def of_molecules(self, virtual: Tensor | None, batch: Batch) -> list[Tensor]:
        """List what every level reads of a molecule, `[B, *]` each: virtual nodes, descriptors, embedding.

        The states of the virtual nodes, `[B * count, channels]`, are given molecule by molecule.
        """
        parts = []
        if virtual is not None and self.virtual_width:
            parts.append(virtual.view(batch.num_graphs, self.virtual_width))
        if self.descriptors is not None:
            parts.append(self.descriptors(batch.u))
        return parts if self.embedding is None else [*parts, self.embedding(batch)]

    def forward(
        self, atoms: Tensor, molecules: list[Tensor], batch: Batch, bonds: tuple[Tensor, Tensor | None] | None = None
    ) -> Tensor:
        """Compute the vectors.

        Args:
            atoms: states of the atoms, `[N, channels]`.
            molecules: result of `of_molecules`.
            batch: the molecules.
            bonds: codes and features of the bonds, for the level "bond".
        """
        if self.substructures is not None:
            molecules = [*molecules, self.substructures(batch)]
        if self.level == "molecule":
            pooled = [] if self.pool is None else [self.pool(atoms, batch.batch, batch.num_graphs)]
            return torch.cat([*pooled, *molecules], -1)
        if self.level == "atom" or bonds is None or self.pool is None:
            own, molecule = [atoms], batch.batch
        else:
            codes, features = bonds
            own = [self.pool(atoms, batch.edge_index, codes), *([] if features is None else [features])]
            molecule = batch.batch[batch.edge_index[0]]
        return torch.cat([*own, *(part[molecule] for part in molecules)], -1)


class LevelOutput(nn.Module):
    """Readout of a further level and its head."""

    def __init__(self, readout: LevelReadout, head: nn.Module) -> None:
        super().__init__()
        self.readout = readout
        self.head = head


def make_head(width: int, channels: int, outputs: int, dropout: float = 0.0, zero: bool = False) -> nn.Sequential:
    """Make the head of a level, an MLP with one hidden layer; with `zero` its initial outputs are 0."""
    first, last = nn.Linear(width, channels), nn.Linear(channels, outputs)
    if zero:
        nn.init.zeros_(last.weight)
        nn.init.zeros_(last.bias)
    return nn.Sequential(first, GELU(), nn.Dropout(dropout), last)
