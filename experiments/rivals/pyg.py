"""GINE and GPS as one builds them from PyG's parts, and a plain training loop.

GINE: Hu et al. 2020, arXiv:1905.12265; GPS: Rampášek et al. 2022, arXiv:2205.12454, with random walks
(`AddRandomWalkPE`) as its encoding. Atoms and bonds are gtx's codes, the readout is sum, mean and maximum, and whether
a molecule's descriptors are joined to it is one of the things that were tuned.

Eight configurations of each (3 or 5 layers, dropout 0 or 0.2, descriptors or none) were tried on the validation rows of
`mat/freesolv` (first split) for regression and of `scaffold/bace` for classification, by a recipe that is no longer
kept (commit 24ad587); `results/runs.csv` has the losses, in the lines `tuning`. The best one is used on all sets.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch_geometric.data import Batch, Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GINEConv, GPSConv, global_add_pool, global_max_pool, global_mean_pool
from torch_geometric.transforms import AddRandomWalkPE

from experiments.runs import Run

STEPS = 16
EPOCHS, RATE, DECAY, CLIP = 60, 1e-3, 1e-5, 1.0
LARGEST = 5.0  # z-scores of descriptors beyond it are cut there
LOSSES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "mse": nn.functional.mse_loss,
    "mae": nn.functional.l1_loss,
    "bce": nn.functional.binary_cross_entropy_with_logits,
}


class Configuration(NamedTuple):
    """Choices that are tuned: layers, dropout after each and in the head, descriptors at the readout."""

    layers: int
    dropout: float
    descriptors: bool
    channels: int = 128
    heads: int = 4
    batch: int = 32


CONFIGURATIONS = tuple(Configuration(*how) for how in product((3, 5), (0.0, 0.2), (False, True)))
BEST = {"gine": {"regression": 5, "classification": 3}, "gps": {"regression": 1, "classification": 2}}
"""Number of the configuration with the least validation loss."""
TUNED_ON = {"regression": "mat/freesolv", "classification": "scaffold/bace"}


class Network(nn.Module):
    """Embeddings, layers, readout, head."""

    def __init__(
        self,
        kind: str,
        how: Configuration,
        atom_sizes: Sequence[int],
        bond_sizes: Sequence[int],
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
        if self.walks is not None:
            x = x + self.walks(batch.random_walk_pe)
            for layer in self.layers:
                x = layer(x, batch.edge_index, batch.batch, edge_attr=e)
        else:
            for layer, norm in zip(self.layers, self.norms, strict=True):
                h = norm(layer(x, batch.edge_index, e)).relu()
                x = x + nn.functional.dropout(h, self.how.dropout, self.training)
        pooled = [pool(x, batch.batch) for pool in (global_add_pool, global_mean_pool, global_max_pool)]
        if self.how.descriptors:
            pooled.append(batch.u)
        return self.head(torch.cat(pooled, 1))


def _mlp(width: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(width, 2 * width), nn.ReLU(), nn.Linear(2 * width, width))


def train_network(
    network: Network, molecules: list[Data], val: list[Data], kind: str, seed: int, epochs: int = EPOCHS
) -> tuple[float, list[float]]:
    """Train with AdamW and a cosine, and leave the weights that are best on the validation molecules in the network.

    Targets are `y` `[1, T]` of a molecule, scaled or classes, NaN for blanks; `kind` is one of `LOSSES`. Returned are
    the best validation loss, and the seconds of each epoch, validation included.
    """
    torch.manual_seed(seed)
    size = network.how.batch  # a batch of one atom has no variance to normalise by
    loader = DataLoader(molecules, size, shuffle=True, drop_last=len(molecules) % size == 1)
    optimiser = torch.optim.AdamW(network.parameters(), lr=RATE, weight_decay=DECAY)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, epochs)
    y = torch.cat([molecule.y for molecule in val])
    best, weights, seconds = float("inf"), {}, []
    for _ in range(epochs):
        begun = time.perf_counter()
        network.train()
        for batch in loader:
            optimiser.zero_grad()
            loss(network(batch), batch.y, kind).backward()
            nn.utils.clip_grad_norm_(network.parameters(), CLIP)
            optimiser.step()
        schedule.step()
        score = float(loss(network_outputs(network, val), y, kind))
        if score < best:
            best, weights = score, {name: value.clone() for name, value in network.state_dict().items()}
        seconds.append(time.perf_counter() - begun)
    network.load_state_dict(weights)
    return best, seconds


def loss(out: Tensor, y: Tensor, kind: str) -> Tensor:
    """Average over the values that are there."""
    known = ~y.isnan()
    return LOSSES[kind](out[known], y[known])


@torch.no_grad()
def network_outputs(network: Network, molecules: list[Data]) -> Tensor:
    """Compute outputs `[n, T]`."""
    network.eval()
    return torch.cat([network(batch) for batch in DataLoader(molecules, 128)])


class Trained(NamedTuple):
    """A trained network: predictions `[m, T]` of all molecules, validation loss, seconds of each epoch, and facts."""

    prediction: np.ndarray
    loss: float
    seconds: list[float]
    parameters: int
    settings: dict[str, Any]


def train_and_predict(run: Run, how: Configuration, epochs: int = EPOCHS) -> Trained:
    """Train with one configuration and predict all molecules."""
    data, classes = run.dataset, run.dataset.task.discrete
    kind = "bce" if classes else "mae" if run.public_set.metric == "mae" else "mse"
    u, missing = scaled(data.store.descriptors, data.split["train"])
    y, mean, sd = data.store.y.float(), 0.0, 1.0
    if not classes:
        train_y = data.store.y[data.split["train"]]
        mean = train_y.nanmean(0)
        sd = (train_y - mean).square().nanmean(0).sqrt()
        y = ((data.store.y - mean) / sd).float()
    molecules = data.store.batch(torch.arange(len(data.store))).to_data_list()
    for number, molecule in enumerate(molecules):
        molecule.u, molecule.y = u[number : number + 1], y[number : number + 1]
    if run.model == "gps":
        molecules = list(map(AddRandomWalkPE(STEPS), molecules))  # once, before training
    torch.manual_seed(run.seed)
    sizes = run.data.featuriser.atom_sizes, run.data.featuriser.bond_sizes
    network = Network(run.model, how, *sizes, u.shape[1], y.shape[1])
    train, val = ([molecules[i] for i in data.split[part]] for part in ("train", "val"))
    best, seconds = train_network(network, train, val, kind, run.seed, epochs)
    out = network_outputs(network, molecules).double()
    prediction = (out.sigmoid() if classes else out * sd + mean).numpy()
    settings = {**how._asdict(), "loss": kind, "descriptors_missing": missing}
    settings["descriptors"] &= run.data.featuriser.num_descriptors > 0  # some benchmarks bar them
    return Trained(prediction, best, seconds, sum(p.numel() for p in network.parameters()), settings)


def scaled(u: Tensor, train: np.ndarray) -> tuple[Tensor, int]:
    """Compute clipped z-scores by the training rows, 0 for a descriptor that is missing, and count the missing ones."""
    u = u.double()
    mean = u[train].nanmean(0)
    sd = (u[train] - mean).square().nanmean(0).sqrt()
    z = ((u - mean) / torch.where(sd > 0, sd, 1.0)).clamp(-LARGEST, LARGEST)
    return z.nan_to_num(0.0).float(), int(u.isnan().sum())


def fit_predict(run: Run) -> tuple[np.ndarray, dict[str, Any]]:
    """Train with the configuration that was best for the task."""
    task = run.dataset.task.name
    number = BEST[run.model][task]
    trained = train_and_predict(run, CONFIGURATIONS[number])
    settings = {"configuration": number, **trained.settings, "tuned_on": TUNED_ON[task]}
    return trained.prediction, {"parameters": trained.parameters, "settings": settings}
