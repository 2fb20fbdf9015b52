"""GINE and GPS as one builds them from PyG's parts, and a plain training loop.

GINE: Hu et al. 2020, arXiv:1905.12265; GPS: Rampášek et al. 2022, arXiv:2205.12454, with random walks
(`AddRandomWalkPE`) as its encoding. Atoms and bonds are gtx's codes, the readout is sum, mean and maximum, and whether
a molecule's descriptors are joined to it is one of the things that are tuned.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch_geometric.data import Batch, Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GINEConv, GPSConv, global_add_pool, global_max_pool, global_mean_pool
from torch_geometric.transforms import AddRandomWalkPE

STEPS = 16
EPOCHS, RATE, DECAY, CLIP = 60, 1e-3, 1e-5, 1.0
LOSSES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "mse": nn.functional.mse_loss,
    "mae": nn.functional.l1_loss,
    "bce": nn.functional.binary_cross_entropy_with_logits,
}


class Configuration(NamedTuple):
    """What is tuned.

    Attributes:
        layers: of the network.
        dropout: after every layer and in the head.
        descriptors: joined to the readout.
        channels: width.
        heads: of GPS's attention.
        batch: molecules of a batch.
    """

    layers: int
    dropout: float
    descriptors: bool
    channels: int = 128
    heads: int = 4
    batch: int = 32


class Trained(NamedTuple):
    """The best validation loss, its epoch, and the seconds of each epoch, validation included."""

    loss: float
    epoch: int
    seconds: list[float]


class Network(nn.Module):
    """Embeddings, layers, readout, head.

    Args:
        kind: "gine" or "gps".
        how: the configuration.
        atom_sizes, bond_sizes: codes of each column.
        num_descriptors: of a molecule.
        targets: outputs.
    """

    def __init__(
        self,
        kind: str,
        how: Configuration,
        atom_sizes: tuple[int, ...],
        bond_sizes: tuple[int, ...],
        num_descriptors: int,
        targets: int,
    ) -> None:
        super().__init__()
        width = how.channels
        self.kind, self.how = kind, how
        self.atoms = nn.ModuleList(nn.Embedding(size, width) for size in atom_sizes)
        self.bonds = nn.ModuleList(nn.Embedding(size, width) for size in bond_sizes)
        self.walks = nn.Linear(STEPS, width) if kind == "gps" else None
        convolutions = [GINEConv(_mlp(width)) for _ in range(how.layers)]
        if kind == "gps":
            convolutions = [GPSConv(width, conv, heads=how.heads, dropout=how.dropout) for conv in convolutions]
        self.layers = nn.ModuleList(convolutions)
        self.norms = nn.ModuleList(nn.BatchNorm1d(width) for _ in range(how.layers if kind == "gine" else 0))
        self.head = nn.Sequential(
            nn.Linear(3 * width + how.descriptors * num_descriptors, width),
            nn.ReLU(),
            nn.Dropout(how.dropout),
            nn.Linear(width, targets),
        )

    def forward(self, batch: Batch) -> Tensor:
        x = sum(table(batch.x[:, i]) for i, table in enumerate(self.atoms))
        e = sum(table(batch.edge_attr[:, i]) for i, table in enumerate(self.bonds))
        if self.kind == "gps":
            x = x + self.walks(batch.random_walk_pe)
            for layer in self.layers:
                x = layer(x, batch.edge_index, batch.batch, edge_attr=e)
        else:
            for layer, norm in zip(self.layers, self.norms, strict=True):
                x = x + nn.functional.dropout(
                    norm(layer(x, batch.edge_index, e)).relu(), self.how.dropout, self.training
                )
        pooled = [pool(x, batch.batch) for pool in (global_add_pool, global_mean_pool, global_max_pool)]
        return self.head(torch.cat([*pooled, *([batch.u] if self.how.descriptors else [])], 1))


def with_walks(molecules: list[Data]) -> list[Data]:
    """The molecules with their random walks, made once before training."""
    transform = AddRandomWalkPE(STEPS)
    return [transform(molecule) for molecule in molecules]


def train_network(
    network: Network, molecules: list[Data], val: list[Data], kind: str, seed: int, epochs: int = EPOCHS
) -> Trained:
    """Train with AdamW and a cosine; the weights that are best on the validation molecules are left in the network.

    Args:
        network: what is trained.
        molecules: with targets `y` `[1, T]`, scaled or classes, NaN for blanks.
        val: molecules that the epoch is chosen on.
        kind: of the loss, one of `LOSSES`.
        seed: of batches and dropout.
        epochs: passes over the molecules.
    """
    torch.manual_seed(seed)
    # a batch of one atom has no variance to normalise by
    size = network.how.batch
    loader = DataLoader(molecules, size, shuffle=True, drop_last=len(molecules) % size == 1)
    optimiser = torch.optim.AdamW(network.parameters(), lr=RATE, weight_decay=DECAY)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, epochs)
    y = torch.cat([molecule.y for molecule in val])
    best, best_epoch, weights, seconds = float("inf"), -1, {}, []
    for epoch in range(epochs):
        begun = time.perf_counter()
        network.train()
        for batch in loader:
            optimiser.zero_grad()
            loss(network(batch), batch.y, kind).backward()
            nn.utils.clip_grad_norm_(network.parameters(), CLIP)
            optimiser.step()
        schedule.step()
        found = float(loss(network_outputs(network, val), y, kind))
        if found < best:
            best, best_epoch = found, epoch
            weights = {name: value.clone() for name, value in network.state_dict().items()}
        seconds.append(time.perf_counter() - begun)
    network.load_state_dict(weights)
    return Trained(best, best_epoch, seconds)


def loss(out: Tensor, y: Tensor, kind: str) -> Tensor:
    """Mean over the values that are there."""
    known = ~y.isnan()
    return LOSSES[kind](out[known], y[known])


@torch.no_grad()
def network_outputs(network: Network, molecules: list[Data]) -> Tensor:
    """Outputs `[n, T]`."""
    network.eval()
    return torch.cat([network(batch) for batch in DataLoader(molecules, 128)])


def _mlp(width: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(width, 2 * width), nn.ReLU(), nn.Linear(2 * width, width))
