"""PyG's GINE and GPS, with the configuration that was best on the validation rows of one set for each task.

`python -m experiments.rivals.tuning` tries the configurations.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch

from experiments.public_sets import FitResult, LoadedRun
from experiments.rivals.configurations import CONFIGURATIONS, TUNED_ON, best
from experiments.rivals.networks import EPOCHS, Configuration, Network, network_outputs, train_network, with_walks

CLIP = 5.0


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
    z = ((u - mean) / torch.where(sd > 0, sd, 1.0)).clamp(-CLIP, CLIP)
    return z.nan_to_num(0.0).float(), int(u.isnan().sum())
