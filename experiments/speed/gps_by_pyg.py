"""GPS as one builds it from PyG's parts: `GPSConv`, `GINEConv`, `AddRandomWalkPE`, its `DataLoader`, a plain loop.

After PyG's own example (`examples/graph_gps.py`), with the atoms, bonds, descriptors, width, depth, readout and head of
gtx's default model, so that the same molecules go through as many channels.
"""

from __future__ import annotations

import time

import torch
from torch import Tensor, nn
from torch_geometric.data import Batch, Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GINEConv, GPSConv, global_add_pool, global_max_pool, global_mean_pool
from torch_geometric.transforms import AddRandomWalkPE

STEPS = 16


class GPS(nn.Module):
    """GPS over molecules.

    Args:
        atom_sizes: codes of each atom column.
        bond_sizes: codes of each bond column.
        num_descriptors: global features joined to the readout.
        channels: width.
        layers: depth.
        heads: of the attention.
        dropout: of branches and MLPs.
    """

    def __init__(
        self,
        atom_sizes: tuple[int, ...],
        bond_sizes: tuple[int, ...],
        num_descriptors: int,
        channels: int,
        layers: int = 4,
        heads: int = 8,
        dropout: float = 0.1,
    ) -> None:
        super().__init__()
        self.atoms = nn.ModuleList(nn.Embedding(size, channels) for size in atom_sizes)
        self.bonds = nn.ModuleList(nn.Embedding(size, channels) for size in bond_sizes)
        self.walks = nn.Linear(STEPS, channels)
        self.layers = nn.ModuleList(
            GPSConv(channels, GINEConv(_mlp(channels, channels)), heads=heads, dropout=dropout) for _ in range(layers)
        )
        self.head = nn.Sequential(
            nn.Linear(3 * channels + num_descriptors, channels),
            nn.GELU(),
            nn.Dropout(dropout),
            nn.Linear(channels, 1),
        )

    def forward(self, batch: Batch) -> Tensor:
        x = sum(table(batch.x[:, i]) for i, table in enumerate(self.atoms)) + self.walks(batch.random_walk_pe)
        e = sum(table(batch.edge_attr[:, i]) for i, table in enumerate(self.bonds))
        for layer in self.layers:
            x = layer(x, batch.edge_index, batch.batch, edge_attr=e)
        pooled = [pool(x, batch.batch) for pool in (global_add_pool, global_mean_pool, global_max_pool)]
        return self.head(torch.cat([*pooled, batch.u], 1))


def with_walks(molecules: list[Data]) -> list[Data]:
    """The molecules with their random walks, made once before training."""
    transform = AddRandomWalkPE(STEPS)
    return [transform(molecule) for molecule in molecules]


def train(model: GPS, parts: dict[str, list[Data]], epochs: int, batch_size: int, workers: int = 0) -> list[float]:
    """Train with AdamW on mean squared errors, and give the seconds of each epoch, validation included.

    Args:
        model: GPS.
        parts: molecules of "train" and "val", `y` scaled.
        epochs: passes over the training molecules.
        batch_size: molecules of a batch.
        workers: of the training loader.
    """
    more = {"num_workers": workers, "persistent_workers": workers > 0}
    loader = DataLoader(
        parts["train"], batch_size, shuffle=True, drop_last=len(parts["train"]) % batch_size == 1, **more
    )
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=1e-2)
    seconds = []
    for _ in range(epochs):
        begun = time.perf_counter()
        model.train()
        for batch in loader:
            optimiser.zero_grad()
            loss = nn.functional.mse_loss(model(batch), batch.y)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()
        predict(model, parts["val"])
        seconds.append(time.perf_counter() - begun)
    return seconds


@torch.no_grad()
def predict(model: GPS, molecules: list[Data]) -> Tensor:
    """Outputs `[n]`."""
    model.eval()
    return torch.cat([model(batch)[:, 0] for batch in DataLoader(molecules, 128)])


def _mlp(channels: int, hidden: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(channels, hidden), nn.GELU(), nn.Linear(hidden, channels))
