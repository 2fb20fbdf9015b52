"""A training step of the default model, and where its time goes."""

from __future__ import annotations

import time
from argparse import Namespace
from collections import defaultdict
from collections.abc import Callable
from contextlib import nullcontext
from copy import deepcopy
from functools import partial
from typing import Any
from unittest.mock import patch

import torch
from torch import nn

from experiments.speed.measure import Case, default_model, featurised
from gtx.training import TrainSettings
from gtx.training.module import TrainingModule
from gtx.training.optimise import FlatAdamW, WeightAverage, adamw, flattened

MOLECULES = 30
WAYS = {
    "as trained": (False, True),
    "dropout and GELU of torch": (True, True),
    "AdamW by parameter": (False, False),
    "both": (True, False),
}
"""By name: whether dropout and GELU are torch's, and whether AdamW updates one vector for all parameters."""


def cases(options: Namespace) -> list[Case]:
    """Take training steps of the default model with 30 molecules of ESOL, in one thread: CPU time, by part of a step.

    All ways start from the same weights and take turns; a time is the least of all steps of a turn, since other
    programs can only add to it. The update includes clipping and the average of the weights.
    """
    return [Case("step", name, partial(_prepare, *way), MOLECULES, own=True) for name, way in WAYS.items()]


def _prepare(plain: bool, flat: bool) -> Callable[[], dict[str, Any]]:
    torch.set_num_threads(1)
    store = featurised("esol", 400)
    task, _, _, model = default_model(len(store))
    task = task.fitted(store)
    module = TrainingModule(deepcopy(model), task, settings := TrainSettings())
    module.model.observe(store)  # type: ignore[operator]  # a GraphTransformer
    examples = task.examples(store)
    optimiser = adamw(module.model, settings.lr, settings.weight_decay)
    optimiser = flattened(optimiser) if flat else optimiser
    weights = [p for group in optimiser.param_groups for p in group["params"]]
    average = WeightAverage(settings.ema)
    average.vectors = [p.detach().clone() for p in weights], weights
    rows = torch.arange(MOLECULES)

    def step() -> dict[str, Any]:
        parts: dict[str, list[float]] = defaultdict(list)
        for _ in range(20):
            times = [time.thread_time()]
            loss = module.loss(examples.batch(rows))
            times.append(time.thread_time())
            loss.backward()
            times.append(time.thread_time())
            if isinstance(optimiser, FlatAdamW):
                optimiser.collect_gradients()
            nn.utils.clip_grad_norm_(weights, settings.clip)
            optimiser.step()
            average.update(1000)
            optimiser.zero_grad()
            times.append(time.thread_time())
            for name, before, after in zip(("forward", "backward", "update"), times, times[1:], strict=False):
                parts[name].append(after - before)
        least = {name: min(values) for name, values in parts.items()}
        return {"seconds": sum(least.values()), **{name: f"{s * 1e3:.2f} ms" for name, s in least.items()}}

    def measured() -> dict[str, Any]:
        with patch("gtx.native.elementwise._library", lambda: None) if plain else nullcontext():
            return step()

    return measured
