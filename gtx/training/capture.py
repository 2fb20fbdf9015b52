"""A whole step of training in constant shapes, without a word to the host, and on a GPU captured as a CUDA graph."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from gtx.data import CapacityStore, MoleculeStore
from gtx.errors import printable
from gtx.training.data import OnDisk
from gtx.training.module import PropertyModule
from gtx.training.optimise import adamw
from gtx.training.settings import TrainSettings

WARM_UP = 3
"""Steps that run before a step is captured, so that libraries have made what they keep."""


@lru_cache
def side_stream(device: torch.device) -> torch.cuda.Stream:
    """The stream on which steps are tried, warmed up and captured: gradient nodes remember where they were made."""
    return torch.cuda.Stream(device)


@contextmanager
def aside(device: torch.device) -> Iterator[None]:
    """Work on the side stream of a CUDA device, between what came before and what follows; elsewhere, just work."""
    if device.type != "cuda":
        yield
        return
    stream = side_stream(device)
    stream.wait_stream(torch.cuda.current_stream(device))
    with torch.cuda.stream(stream):
        yield
    torch.cuda.current_stream(device).wait_stream(stream)


def can_capture(device: torch.device) -> bool:
    """Tell whether the device has CUDA graphs."""
    return device.type == "cuda"


def record(function: Callable[[Tensor], Tensor], given: Tensor) -> tuple[Callable[[], None], Tensor]:
    """Capture a call of a function as a CUDA graph, without running it.

    If that fails, the current stream and the generator of the device are what they were.

    Returns:
        What replays the call, and its result, which each replay overwrites.
    """
    device, graph = given.device, torch.cuda.CUDAGraph()
    generator = torch.cuda.default_generators[torch.cuda.current_device() if device.index is None else device.index]
    state = generator.clone_state()
    try:
        with aside(device), torch.cuda.graph(graph, stream=side_stream(device)):
            result = function(given)
    except BaseException:
        generator.graphsafe_set_state(state)  # the one that it has may be left in the middle of the capture
        side_stream.cache_clear()  # so may the stream
        raise
    return graph.replay, result


class Captured:
    """A function of one tensor on a device; from its fourth call on a CUDA graph that is replayed.

    Launching the kernels of a small model takes the host several times as long as the kernels themselves take the
    GPU; a captured graph is one launch. The function must have constant shapes, read nothing back and give a tensor,
    which the next call overwrites. Off a GPU, for a tensor smaller than others before, or where it cannot be
    captured, the function itself runs.

    Args:
        function: of a tensor.
        say: called with the reason, one line, if the function cannot be captured.
    """

    def __init__(self, function: Callable[[Tensor], Tensor], say: Callable[[str], None]) -> None:
        self.function, self.say = function, say
        self.calls, self.shape, self.replay, self.failed = 0, None, None, False

    def __call__(self, given: Tensor) -> Tensor:
        if self.shape is None or given.numel() > self.shape.numel():
            self.shape, self.calls, self.replay = given.shape, 0, None
        if self.failed or not can_capture(given.device):
            return self.function(given)
        if given.shape == self.shape and self.calls >= WARM_UP and (self.replay or self._record(given)):
            self.given.copy_(given)
            self.replay()
            return self.result
        self.calls += given.shape == self.shape
        with aside(given.device):
            return self.function(given)

    def _record(self, given: Tensor) -> bool:
        """Capture the function; return whether that worked."""
        self.given = given.clone()
        try:
            self.replay, self.result = record(self.function, self.given)
        except Exception as error:  # out of memory, a question to the device, shapes that depend on data, ...
            self.failed, reason = True, first_line(error)
        if self.failed:  # only now nothing refers to what the capture has made
            if given.device.type == "cuda":
                torch.cuda.synchronize()
                torch.cuda.empty_cache()
            self.say(reason)
        return not self.failed


def first_line(error: Exception) -> str:
    """The first line of an error's message, or its kind where it has none."""
    return printable(next(iter(str(error).splitlines()), "").strip() or type(error).__name__, 200)


class WholeStep:
    """Cut a batch, forward, loss, backward, clip, update: everything of a training step that the device does.

    Args:
        module: its model and task.
        train: the training molecules.
        optimiser: of the model's parameters.
        usual_share: see `PropertyModule.training_step`.

    Shapes:
        which molecules, int64 `[capacity.molecules]` on the device, to the loss `[]`.
    """

    def __init__(self, module: PropertyModule, train: CapacityStore, optimiser: Optimizer, usual_share: Tensor) -> None:
        self.module, self.train, self.optimiser, self.usual_share = module, train, optimiser, usual_share
        self.learned = [p for group in optimiser.param_groups for p in group["params"]]

    def __call__(self, index: Tensor) -> Tensor:
        self.optimiser.zero_grad(set_to_none=True)  # first, since a step may have failed behind its backward pass
        torch.clear_autocast_cache()  # weights that were cast before hold gradient nodes of another step
        batch = self.train.batch(index)
        loss = self.module.loss(batch) * (self.module.task.share(batch) / self.usual_share)
        with torch.autocast(index.device.type, enabled=False):
            loss.backward()
            if self.module.settings.clip:
                nn.utils.clip_grad_norm_(self.learned, self.module.settings.clip)
            self.optimiser.step()
            self.optimiser.zero_grad(set_to_none=True)
        return loss.detach()


class CapturedModule(PropertyModule):
    """Trains as `PropertyModule` does, on batches of constant shape, with a whole step in one call.

    Its `training_step` and `validation_step` take what `MoleculeData` yields where `constant` is set: which molecules
    make the batch. What Lightning does between forward and update is part of the step, so its hooks do nothing.
    """

    in_whole_steps = True

    def configure_optimizers(self) -> dict[str, Any]:
        return self._scheduled(self.optimiser())

    def optimiser(self) -> Optimizer:
        """AdamW whose rate is on the device, so that a captured step sees it change."""
        s = self.settings
        lr, capturable = torch.tensor(s.lr, device=self.device), self.device.type != "cpu"
        return adamw(self.model, lr, s.weight_decay, capturable=capturable, rates=s.rates)

    def on_fit_start(self) -> None:
        self.steps = self.validations = None

    def on_train_epoch_start(self) -> None:
        super().on_train_epoch_start()
        share = torch.tensor(float(self.usual_share), device=self.device)
        if self.steps is None:
            self.shares = share
            step = WholeStep(self, self.trainer.datamodule.train, self.optimizers(use_pl_optimizer=False), share)
            self.steps = Captured(step, _say)
        self.shares.copy_(share)

    def training_step(self, index: Tensor, _: int) -> Tensor:
        return self.steps(index).clone().requires_grad_()

    def backward(self, *_: Any) -> None:
        """Part of the step."""

    def optimizer_zero_grad(self, *_: Any) -> None:
        """Part of the step."""

    def optimizer_step(self, epoch: int, batch: int, optimizer: Any, closure: Callable[[], Any] | None = None) -> None:
        closure()  # the step

    def on_validation_epoch_start(self) -> None:
        rows = len(self.trainer.datamodule.val) + 1
        if self.validations is None:
            self.held = torch.full((rows, self.task.validation_channels), -torch.inf, device=self.device)
            self.validations = Captured(self._validate, _say)
        self.kept = self.held.fill_(-torch.inf)

    def validation_step(self, index: Tensor, _: int) -> None:
        self.validations(index)

    def _validate(self, index: Tensor) -> Tensor:
        batch = self.trainer.datamodule.val.batch(index)
        outputs = self.task.validation_outputs(self(batch), batch)
        self.held[batch.row] = outputs  # the row after the last is for empty places
        return self.held


def why_not(settings: TrainSettings, model: nn.Module, train: Any, processes: int) -> str | None:
    """Why a training cannot have batches of constant shape; None if it can."""
    if settings.precision in ("16-mixed", "16"):
        return "16-mixed scales its loss by what it finds"
    if processes > 1:
        return "several processes exchange gradients in every step"
    if settings.strategy.startswith("ddp"):
        return f"strategy {settings.strategy} exchanges gradients in every step"
    if isinstance(train, OnDisk):
        return "the training molecules stay on disk"
    if not isinstance(train, MoleculeStore):
        return "the examples of the task are more than molecules"
    if not getattr(model, "constant_shapes", False):
        return f"{type(model).__name__} does not say that it takes batches of constant shape (`constant_shapes`)"
    return None


def _say(reason: str) -> None:
    print(f"the step is not captured as a CUDA graph, and runs without: {reason}", file=sys.stderr)
