"""GINE and GPS as one builds them from PyG's parts, and a plain training loop.

    python -m experiments.rivals.pyg --jobs 2

GINE: Hu et al. 2020, arXiv:1905.12265; GPS: Rampášek et al. 2022, arXiv:2205.12454, with random walks
(`AddRandomWalkPE`) as its encoding. Atoms and bonds are gtx's codes, the readout is sum, mean and maximum, and whether
a molecule's descriptors are joined to it is one of the things that are tuned.

The command tries eight configurations of each (3 or 5 layers, dropout 0 or 0.2, descriptors or none) on the validation
rows of `mat/freesolv` (first split) for regression and of `scaffold/bace` for classification; the best one is used on
all sets. Test rows are not used. A finished configuration is not repeated.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch_geometric.data import Batch, Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GINEConv, GPSConv, global_add_pool, global_max_pool, global_mean_pool
from torch_geometric.transforms import AddRandomWalkPE

from experiments import archive, mat, scaffold
from experiments.archive import RESULTS
from experiments.public_sets import FitResult, LoadedRun, Run
from experiments.recipe import Job, options_of, run_jobs
from experiments.record import commit
from gtx.errors import InputError

STEPS = 16
EPOCHS, RATE, DECAY, CLIP = 60, 1e-3, 1e-5, 1.0
LARGEST = 5.0  # z-scores of descriptors beyond it are cut there
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


CONFIGURATIONS = tuple(Configuration(*how) for how in product((3, 5), (0.0, 0.2), (False, True)))
TUNED_ON = {"regression": mat.SETS["freesolv"], "classification": scaffold.SETS["bace"]}
KINDS = ("gine", "gps")


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


def fit_predict(loaded: LoadedRun) -> FitResult:
    """Train with the configuration that was best for the task.

    Raises:
        InputError: the model has not been tuned yet.
    """
    number = best(loaded.run.model, loaded.dataset.task.name)
    how = CONFIGURATIONS[number]
    found = fitted(loaded, how)
    settings = {"configuration": number, **how._asdict(), "tuned_on": TUNED_ON[loaded.dataset.task.name].name}
    settings["descriptors"] &= loaded.data.featuriser.num_descriptors > 0  # some benchmarks bar them
    settings |= {"loss": loss_of(loaded), "descriptors_missing": found.gaps}
    return FitResult(found.prediction, found.parameters, settings)


def loss_of(loaded: LoadedRun) -> str:
    """The benchmark's own metric where that is the absolute error, as gtx has it there."""
    if loaded.dataset.task.discrete:
        return "bce"
    return "mae" if loaded.run.public_set.metric == "mae" else "mse"


class Fitted(NamedTuple):
    """A trained network's predictions `[m, T]`, number of parameters and validation loss; descriptors it lacked; and
    the seconds of each epoch."""

    prediction: np.ndarray
    parameters: int
    val_loss: float
    gaps: int
    seconds: list[float]


def fitted(loaded: LoadedRun, how: Configuration, epochs: int = EPOCHS) -> Fitted:
    """Train with one configuration and predict all molecules."""
    data, classes = loaded.dataset, loaded.dataset.task.discrete
    featuriser, seed = loaded.data.featuriser, loaded.run.seed
    u, gaps = scaled(data.store.descriptors, data.split["train"])
    y, mean, sd = data.store.y.float(), 0.0, 1.0
    if not classes:
        learnt = data.store.y[data.split["train"]]
        mean = learnt.nanmean(0)
        sd = (learnt - mean).square().nanmean(0).sqrt()
        y = ((data.store.y - mean) / sd).float()
    molecules = data.store.batch(torch.arange(len(data.store))).to_data_list()
    for number, molecule in enumerate(molecules):
        molecule.u, molecule.y = u[number : number + 1], y[number : number + 1]
    if loaded.run.model == "gps":
        molecules = with_walks(molecules)
    torch.manual_seed(seed)
    sizes = featuriser.atom_sizes, featuriser.bond_sizes
    network = Network(loaded.run.model, how, *sizes, u.shape[1], y.shape[1])
    parts = ([molecules[i] for i in data.split[part]] for part in ("train", "val"))
    trained = train_network(network, *parts, loss_of(loaded), seed, epochs)
    out = network_outputs(network, molecules).double()
    prediction = out.sigmoid() if classes else out * sd + mean
    return Fitted(prediction.numpy(), sum(p.numel() for p in network.parameters()), trained.loss, gaps, trained.seconds)


def scaled(u: torch.Tensor, train: np.ndarray) -> tuple[torch.Tensor, int]:
    """Clipped z-scores of the training rows, 0 where a descriptor could not be computed; and how many could not."""
    u = u.double()
    learnt = u[train]
    mean = learnt.nanmean(0)
    sd = (learnt - mean).square().nanmean(0).sqrt()
    z = ((u - mean) / torch.where(sd > 0, sd, 1.0)).clamp(-LARGEST, LARGEST)
    return z.nan_to_num(0.0).float(), int(u.isnan().sum())


def best(kind: str, task: str, results: Path = RESULTS) -> int:
    """The number of the configuration with the least validation loss.

    Raises:
        InputError: a configuration has not been tried.
    """
    found = {run["name"]: run["val"]["loss"] for run in archive.runs(results, "tuning", TUNED_ON[task].folder)}
    losses = {number: found.get(f"{kind}-{number}") for number in range(len(CONFIGURATIONS))}
    if missing := [f"{kind}-{number}" for number, loss in losses.items() if loss is None]:
        where = f"{results / archive.RUNS} lacks {', '.join(missing)} of {TUNED_ON[task].name}"
        raise InputError(f"{kind} is not tuned: {where}; run python -m experiments.rivals.pyg")
    return min(losses, key=losses.get)


def tune(kind: str, task: str, number: int, results: Path, runs: Path) -> None:
    """Try one configuration, and write its validation loss."""
    run, how = Run(TUNED_ON[task], kind, 0, 0), CONFIGURATIONS[number]
    loaded, begun = LoadedRun.of(run, runs), time.perf_counter()
    found = fitted(loaded, how)
    result = {
        "recipe": "tuning",
        "folder": run.public_set.folder,
        "name": f"{kind}-{number}",
        "set": run.public_set.name,
        "model": kind,
        "val": {"loss": found.val_loss},
        "parameters": found.parameters,
        "settings": {"number": number, **how._asdict()},
        "seconds": round(time.perf_counter() - begun, 1),
        "commit": commit(),
    }
    archive.put(results, result)


def main(words: Sequence[str] | None = None) -> int:
    """Try what has not been tried, each in a process of its own."""
    parser = options_of(__doc__)
    parser.add_argument("--models", nargs="+", default=KINDS, choices=KINDS)
    parser.add_argument("--tasks", nargs="+", default=list(TUNED_ON), choices=list(TUNED_ON))
    parser.add_argument("--numbers", nargs="+", type=int, default=range(len(CONFIGURATIONS)))
    options = parser.parse_args(words)
    each = product(options.models, options.tasks, options.numbers)
    return int(run_jobs([_job(*one, options) for one in each], options, "tuning"))


def _job(kind: str, task: str, number: int, options: argparse.Namespace) -> Job:
    command = f"python -m experiments.rivals.pyg --models {kind} --tasks {task} --numbers {number}"
    key = TUNED_ON[task].folder, f"{kind}-{number}"
    return Job(key, command, lambda: tune(kind, task, number, options.out, options.runs))


if __name__ == "__main__":
    sys.exit(main())
