"""An estimate of a training's memory and time, measured on its largest batch before it starts."""

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

from gtx.data import CapacitySampler, PairBudgetSampler
from gtx.errors import InputError
from gtx.training.capture import WARM_UP, Captured, CapturedModule, aside
from gtx.training.data import free_memory

STATES = 5  # numbers kept per weight: itself, its gradient, two moments of AdamW, its average
SHARE = 0.7  # of the free memory that a batch may take


@dataclass(frozen=True)
class Forecast:
    """Estimated cost of an epoch.

    Attributes:
        batches: batches of an epoch.
        pairs: pairs of atoms of all molecules, the work of an epoch.
        memory: bytes at the peak, of the largest batch: what is kept for the backward pass, and the weights' states.
        seconds: of an epoch, training alone.
        budget: pairs of a batch that the memory at hand holds; what was asked for, or less.
    """

    batches: int
    pairs: int
    memory: int
    seconds: float
    budget: int

    def times(self, many: float) -> Forecast:
        """For so many times the molecules."""
        counts = {name: round(many * getattr(self, name)) for name in ("batches", "pairs")}
        return replace(self, seconds=many * self.seconds, **counts)

    def __str__(self) -> str:
        return (
            f"{self.batches} {'batch' if self.batches == 1 else 'batches'} an epoch, {self.pairs:,} pairs of atoms; "
            f"estimated: {self.memory / 2**20:,.0f} MB peak memory, {_duration(self.seconds)} per epoch"
        )


def forecast(
    model: nn.Module,
    cut: Callable[[Tensor], Any],
    sampler: PairBudgetSampler | CapacitySampler,
    loss: Callable[[Any], Tensor],
    device: torch.device,
    budget: int,
    free: int | None = None,
    captured: bool = False,
) -> Forecast:
    """Try the batch with most pairs, forward and backward, twice; the model and the random numbers stay as they were.

    Args:
        model: on the device it will be trained on.
        cut: from which molecules, int64 on the device, to the batch.
        sampler: says which molecules.
        loss: of a batch, by the model.
        device: of the model.
        budget: pairs of a batch that were asked for.
        free: bytes of memory at hand; default as the device says.
        captured: the training will replay its step as a CUDA graph, so that is what is timed.
    """
    batches = sampler.batches()
    work = [sampler.work(batch) for batch in batches]
    rows = batches[work.index(max(work))].to(device)
    timed = max(work)  # pairs of the batch whose seconds are taken
    parameters = {p.untyped_storage().data_ptr() for p in model.parameters()}
    kept: dict[int, int] = {}

    def remember(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in parameters:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor.detach()  # the tensor itself would hold the node that holds it, and all that it keeps

    devices = [device] if device.type == "cuda" else []
    was_training = model.training
    try:
        with torch.random.fork_rng(devices), aside(device) if captured else nullcontext():
            model.train()
            largest = cut(rows)
            for _ in range(2):  # the first warms up
                kept.clear()
                begun = time.perf_counter()
                with torch.autograd.graph.saved_tensors_hooks(remember, lambda tensor: tensor):
                    value = loss(largest)
                value.backward()
                if devices:
                    torch.cuda.synchronize()
                seconds = time.perf_counter() - begun
                del value  # its gradient nodes are of this pass: a capture must make its own
            del largest
            if captured:
                usual = max(batches, key=len)  # a molecule alone in its batch is not captured
                timed = sampler.work(usual)
                seconds = _replayed(lambda rows: _step(model, loss, cut(rows)), usual.to(device))
    finally:
        torch.clear_autocast_cache()
        model.zero_grad(set_to_none=True)
        model.train(was_training)
    weights = STATES * sum(p.numel() * p.element_size() for p in model.parameters())
    activations = sum(kept.values())
    free = free_memory(device) if free is None else free
    room = SHARE * free - weights
    if activations > room:
        budget = max(1, int(max(work) * max(room, 0) / activations))
    return Forecast(len(batches), sum(work), activations + weights, seconds * sum(work) / timed, budget)


def _step(model: nn.Module, loss: Callable[[Any], Tensor], batch: Any) -> Tensor:
    torch.clear_autocast_cache()  # weights that were cast before hold gradient nodes of another pass
    value = loss(batch)
    value.backward()
    model.zero_grad(set_to_none=True)
    return value.detach()


def _replayed(step: Callable[[Tensor], Tensor], rows: Tensor) -> float:
    """Seconds of a step that a CUDA graph replays, or of the step itself where there can be none."""
    trial = Captured(step, lambda _: None)  # training says why it cannot
    for _ in range(WARM_UP + 2):  # recorded in the last call but one
        begun = time.perf_counter()
        float(trial(rows))  # waits for it
    return time.perf_counter() - begun


def _duration(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 60 else f"{seconds / 60:.1f} min"


class ForecastFirst(Callback):
    """Before training starts: says what an epoch will take, and lowers the budget of pairs where memory is short.

    The budget changes the result, so it is state of the checkpoint: a run that goes on keeps its batches, whatever
    memory is at hand by then.

    Args:
        say: print it on standard error.

    Attributes:
        budget: pairs of a batch; None before training starts.
    """

    def __init__(self, say: bool = True) -> None:
        self.say = say
        self.budget: int | None = None

    def setup(self, trainer: Trainer, module: LightningModule, stage: str) -> None:
        trainer.datamodule.before_batches = partial(self._forecast, trainer, module)

    def _forecast(self, trainer: Trainer, module: LightningModule) -> None:
        data = trainer.datamodule
        begun_with, asked = self.budget, data.budget
        data.budget = begun_with or asked
        with trainer.precision_plugin.forward_context():
            found = self._try(module, data)
        fits = int(trainer.strategy.reduce(torch.tensor(float(found.budget), device=module.device), reduce_op="min"))
        self.budget = data.budget = begun_with or min(asked, fits)
        if self.say and trainer.is_global_zero:
            print(found, file=sys.stderr)
            if fits < self.budget:
                print(f"memory is short for batches of {self.budget:,} pairs, as this run began", file=sys.stderr)
            elif self.budget < asked:
                print(f"memory is short: batches of {self.budget:,} pairs instead", file=sys.stderr)

    def state_dict(self) -> dict[str, Any]:
        return {"budget": self.budget}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.budget = state["budget"]

    def _try(self, module: LightningModule, data: Any) -> Forecast:
        """Forecast with the budget of the data, which is halved until the largest batch fits into the memory."""
        captured = isinstance(module, CapturedModule) and module.device.type == "cuda"
        share, tried = float(module.task.share(data.train) / module.task.share(data.trial)), math.inf
        while True:
            sampler, found = data.sampler(data.trial, shuffle=True), None
            work = max(sampler.work(batch) for batch in sampler.batches())
            if work >= tried:
                raise InputError(
                    f"the memory of {module.device} does not hold one training step of the largest molecule, of "
                    f"{int(data.trial.sizes.max())} atoms: take a smaller model, or leave large molecules out by "
                    "--max-atoms"
                )
            with suppress(torch.OutOfMemoryError):  # outside, the error holds no tensor any more
                found = forecast(
                    *(module.model, data.trial.batch, sampler, module.loss, module.device, data.budget),
                    captured=captured,
                )
            if found is not None:
                return found.times(share)
            torch.cuda.empty_cache()
            tried, data.budget = work, max(1, min(data.budget, work) // 2)
