"""PyG's GINE and GPS, with the configuration that was best on the validation rows of one set per task.

`python -m experiments.rivals.tuning` tries the configurations.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch

from experiments.problem import Answer, Problem
from experiments.rivals.networks import Configuration, Network, outputs, train, with_walks
from experiments.rivals.tuning import CONFIGURATIONS, TUNED_ON, best

CLIP = 5.0


def answer(problem: Problem) -> Answer:
    """Train with the configuration that was best for the task.

    Raises:
        InputError: the model has not been tuned yet.
    """
    number = best(problem.run.model, problem.dataset.task.name)
    how = CONFIGURATIONS[number]
    found = fitted(problem, how)
    settings = {"configuration": number, **how._asdict(), "tuned_on": TUNED_ON[problem.dataset.task.name].name}
    settings["descriptors"] &= problem.data.featuriser.num_descriptors > 0  # some benchmarks bar them
    settings |= {"loss": loss_of(problem), "descriptors_missing": found.gaps}
    return Answer(found.prediction, found.parameters, settings)


def loss_of(problem: Problem) -> str:
    """The benchmark's own metric where that is the absolute error, as gtx has it there."""
    if problem.dataset.task.discrete:
        return "bce"
    return "mae" if problem.run.benchmark.metric == "mae" else "mse"


class Fitted(NamedTuple):
    """A trained network's predictions `[m, T]`, number of parameters and validation loss; descriptors it lacked."""

    prediction: np.ndarray
    parameters: int
    val_loss: float
    gaps: int


def fitted(problem: Problem, how: Configuration) -> Fitted:
    """Train with one configuration and predict all molecules."""
    data, classes = problem.dataset, problem.dataset.task.discrete
    featuriser, seed = problem.data.featuriser, problem.run.seed
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
    if problem.run.model == "gps":
        molecules = with_walks(molecules)
    torch.manual_seed(seed)
    sizes = featuriser.atom_sizes, featuriser.bond_sizes
    network = Network(problem.run.model, how, *sizes, u.shape[1], y.shape[1])
    parts = ([molecules[i] for i in data.split[part]] for part in ("train", "val"))
    loss, _ = train(network, *parts, loss_of(problem), seed)
    out = outputs(network, molecules).double()
    prediction = out.sigmoid() if classes else out * sd + mean
    return Fitted(prediction.numpy(), sum(p.numel() for p in network.parameters()), loss, gaps)


def scaled(u: torch.Tensor, train: np.ndarray) -> tuple[torch.Tensor, int]:
    """Clipped z-scores of the training rows, 0 where a descriptor could not be computed; and how many could not."""
    u = u.double()
    learnt = u[train]
    mean = learnt.nanmean(0)
    sd = (learnt - mean).square().nanmean(0).sqrt()
    z = ((u - mean) / torch.where(sd > 0, sd, 1.0)).clamp(-CLIP, CLIP)
    return z.nan_to_num(0.0).float(), int(u.isnan().sum())
