"""A training step of the default model, and where its time goes."""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Callable
from contextlib import nullcontext
from copy import deepcopy
from functools import lru_cache
from itertools import pairwise
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from torch import nn

from experiments.speed.measure import Case, default_model, featurised
from gtx.training import TrainSettings
from gtx.training.module import TrainingModule
from gtx.training.optimise import FlatAdamW, WeightAverage, adamw, flattened

MOLECULES = 30
PARTS = ("forward", "backward", "update")
WAYS = {
    "as trained": (False, True),
    "dropout and GELU of torch": (True, True),
    "AdamW by parameter": (False, False),
    "both": (True, False),
}
"""By name: whether dropout and GELU are torch's, and whether AdamW updates one vector for all parameters."""


def cases(options: Namespace) -> list[Case]:
    """Take training steps of the default model with 30 molecules of ESOL, in one thread: CPU time, by part of a step.

    All ways take turns step by step, from the same weights. A time is the least of all steps, since other programs can
    only add to it. The update includes clipping and the average of the weights.
    """
    rounds = 10 if options.quick else 100
    return [
        Case("step", name, lambda name=name: lambda: _least(rounds)[name], MOLECULES, once=True, own=True)
        for name in WAYS
    ]


@lru_cache
def _least(rounds: int) -> dict[str, dict[str, Any]]:
    """Measure all ways: the least time of each part of a step."""
    torch.set_num_threads(1)
    steps = {name: _step(*way) for name, way in WAYS.items()}
    times = np.array([[step() for step in steps.values()] for _ in range(rounds)]).min(0)
    return {
        name: {"seconds": float(row.sum()), **{part: f"{s * 1e3:.2f} ms" for part, s in zip(PARTS, row, strict=True)}}
        for name, row in zip(steps, times, strict=True)
    }


def _step(plain: bool, flat: bool) -> Callable[[], list[float]]:
    """Return a function that takes a step and returns the CPU seconds of its parts."""
    store = featurised("esol", MOLECULES)
    task, _, _, model = default_model(900)
    task, settings = task.fitted(store), TrainSettings()
    module, examples = TrainingModule(deepcopy(model), task, settings), task.examples(store)
    optimiser = adamw(module.model, settings.lr, settings.weight_decay)
    optimiser = flattened(optimiser) if flat else optimiser
    weights = [p for group in optimiser.param_groups for p in group["params"]]
    average = WeightAverage(settings.ema)
    average.vectors = [p.detach().clone() for p in weights], weights

    def step() -> list[float]:
        times = [time.thread_time()]
        loss = module.loss(examples.batch())
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
        return [after - before for before, after in pairwise(times)]

    def with_loops_or_without() -> list[float]:
        with patch("gtx.native.elementwise._library", lambda: None) if plain else nullcontext():
            return step()

    return with_loops_or_without
