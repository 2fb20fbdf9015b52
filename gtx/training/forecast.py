"""Forecast of the memory and time of a training, measured on its largest batch before it starts."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from pytorch_lightning import Callback, LightningModule, Trainer
from torch import Tensor, nn

from gtx.data import PairBudgetSampler
from gtx.data.batches import ConstantShapeSampler
from gtx.errors import InputError
from gtx.training.capture import WARM_UP, Captured, CapturedModule, on_side_stream
from gtx.training.data import MoleculeDataModule, data_module, free_memory
from gtx.training.module import TrainingModule

NUMBERS_PER_WEIGHT = 5  # the weight, its gradient, two moments of AdamW, its average
MEMORY_SHARE = 0.7  # largest share of the free memory for a batch


@dataclass(frozen=True)
class Forecast:
    """Estimated time and memory of an epoch.

    Attributes:
        batches: number of batches per epoch.
        pairs: number of atom pairs of all molecules, to which the work of an epoch is proportional.
        memory: peak memory in bytes: the activations of the largest batch, and the weights with their states.
        seconds: training time per epoch, without validation.
        budget: pairs of a batch that fit into the free memory; at most the budget of the settings.
    """

    batches: int
    pairs: int
    memory: int
    seconds: float
    budget: int

    def scaled(self, factor: float) -> Forecast:
        """Scale the counts and the time to `factor` times the molecules."""
        counts = {"batches": round(factor * self.batches), "pairs": round(factor * self.pairs)}
        return replace(self, seconds=factor * self.seconds, **counts)

    def __str__(self) -> str:
        return (
            f"{self.batches} {'batch' if self.batches == 1 else 'batches'} an epoch, {self.pairs:,} pairs of atoms; "
            f"estimated: {self.memory / 2**20:,.0f} MB peak memory, {_duration(self.seconds)} per epoch"
        )


def forecast(
    model: nn.Module,
    cut: Callable[[Tensor], Any],
    sampler: PairBudgetSampler | ConstantShapeSampler,
    loss: Callable[[Any], Tensor],
    device: torch.device,
    budget: int,
    free: int | None = None,
    captured: bool = False,
) -> Forecast:
    """Measure the batch with most pairs, forward and backward, twice; model and random state are left unchanged.

    Args:
        model: the model, on the device of the training.
        cut: function from indices of molecules, int64 on the device, to their batch.
        sampler: sampler of the batches.
        loss: loss of a batch.
        device: device of the model.
        budget: pairs of a batch in the settings.
        free: free memory in bytes; default: that of the device.
        captured: time the replay of a CUDA graph, as the training will use it.
    """
    batches = sampler.batches()
    work = [sampler.work(batch) for batch in batches]
    rows = batches[work.index(max(work))].to(device)
    timed = max(work)  # pairs of the batch that is timed
    parameters = {p.untyped_storage().data_ptr() for p in model.parameters()}
    saved: dict[int, int] = {}  # bytes by storage

    def note_size(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in parameters:
            saved[storage.data_ptr()] = storage.nbytes()
        return tensor.detach()  # the tensor itself would form a reference cycle with its gradient node

    devices = [device] if device.type == "cuda" else []
    was_training = model.training
    try:
        with torch.random.fork_rng(devices), on_side_stream(device) if captured else nullcontext():
            model.train()
            largest = cut(rows)
            for _ in range(2):  # the first warms up
                saved.clear()
                start = time.perf_counter()
                with torch.autograd.graph.saved_tensors_hooks(note_size, lambda tensor: tensor):
                    value = loss(largest)
                value.backward()
                if devices:
                    torch.cuda.synchronize()
                seconds = time.perf_counter() - start
                del value  # a captured step must make gradient nodes of its own
            del largest
            if captured:
                usual = max(batches, key=len)  # a batch of a single molecule is not captured
                timed = sampler.work(usual)
                seconds = _replayed(lambda rows: _step(model, loss, cut(rows)), usual.to(device))
    finally:
        torch.clear_autocast_cache()
        model.zero_grad(set_to_none=True)
        model.train(was_training)
    weights = NUMBERS_PER_WEIGHT * sum(p.numel() * p.element_size() for p in model.parameters())
    activations = sum(saved.values())
    free = free_memory(device) if free is None else free
    room = MEMORY_SHARE * free - weights
    if activations > room:
        budget = max(1, int(max(work) * max(room, 0) / activations))
    return Forecast(len(batches), sum(work), activations + weights, seconds * sum(work) / timed, budget)


def _step(model: nn.Module, loss: Callable[[Any], Tensor], batch: Any) -> Tensor:
    torch.clear_autocast_cache()  # cached casts of weights hold gradient nodes of another pass
    value = loss(batch)
    value.backward()
    model.zero_grad(set_to_none=True)
    return value.detach()


def _replayed(step: Callable[[Tensor], Tensor], rows: Tensor) -> float:
    """Time a step that a CUDA graph replays, in seconds; the step itself if it cannot be captured."""
    trial = Captured(step, lambda _: None)  # training reports why
    for _ in range(WARM_UP + 2):  # recorded in the last call but one
        start = time.perf_counter()
        float(trial(rows))  # waits for the device
    return time.perf_counter() - start


def _duration(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 60 else f"{seconds / 60:.1f} min"


class ForecastCallback(Callback):
    """Forecast before training starts, which lowers the budget of pairs if memory is short.

    The budget changes the result, so it is state of the checkpoint: a resumed run has the same batches, whatever the
    free memory is then.

    Args:
        verbose: print the forecast on standard error.

    Attributes:
        budget: pairs of a batch; None before training starts.
    """

    def __init__(self, verbose: bool = True) -> None:
        self.verbose = verbose
        self.budget: int | None = None

    def setup(self, trainer: Trainer, module: LightningModule, stage: str) -> None:
        data_module(trainer).before_batches = partial(self._forecast, trainer, module)

    def _forecast(self, trainer: Trainer, module: LightningModule) -> None:
        data = data_module(trainer)
        resumed, requested = self.budget, data.budget
        data.budget = resumed or requested
        if not isinstance(module, TrainingModule):
            raise TypeError(f"expected a TrainingModule, got {type(module).__name__}")
        with trainer.precision_plugin.forward_context():
            estimate = self._estimate(module, data)
        budget = torch.tensor(float(estimate.budget), device=module.device)
        fits = int(trainer.strategy.reduce(budget, reduce_op="min"))
        self.budget = data.budget = resumed or min(requested, fits)
        if self.verbose and trainer.is_global_zero:
            print(estimate, file=sys.stderr)
            if fits < self.budget:
                print(f"memory is short for batches of {self.budget:,} pairs, as this run began", file=sys.stderr)
            elif self.budget < requested:
                print(f"memory is short: batches of {self.budget:,} pairs instead", file=sys.stderr)

    def state_dict(self) -> dict[str, Any]:
        return {"budget": self.budget}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.budget = state["budget"]

    def _estimate(self, module: TrainingModule, data: MoleculeDataModule) -> Forecast:
        """Forecast with the budget of the data, which is halved until the largest batch fits into the memory."""
        captured = isinstance(module, CapturedModule) and module.device.type == "cuda"
        examples, last_work = data.examples["train"], math.inf
        while True:
            sampler, estimate = data.sampler(examples, shuffle=True), None
            work = max(sampler.work(batch) for batch in sampler.batches())
            if work >= last_work:
                raise InputError(
                    f"the memory of {module.device} does not hold one training step of the largest molecule, of "
                    f"{int(examples.sizes.max())} atoms: take a smaller model, or leave large molecules out by "
                    "--max-atoms"
                )
            with suppress(torch.OutOfMemoryError):  # after the block the error refers to no tensor any more
                estimate = forecast(
                    *(module.model, examples.batch, sampler, module.loss, module.device, data.budget),
                    captured=captured,
                )
            if estimate is not None:
                return estimate.scaled(float(module.task.share(data.examples["train"]) / module.task.share(examples)))
            torch.cuda.empty_cache()
            last_work, data.budget = work, max(1, min(data.budget, work) // 2)
