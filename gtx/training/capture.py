"""A whole step of training in constant shapes, without a word to the host, and on a GPU captured as a CUDA graph."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from gtx.data import CapacityStore, MoleculeStore
from gtx.dataset.on_disk import MoleculesOnDisk
from gtx.training.module import PropertyModule
from gtx.training.optimise import adamw
from gtx.training.settings import TrainSettings

WARM_UP = 3
"""Steps that run before a step is captured, so that libraries have made what they keep."""


class Captured:
    """A function of one tensor on a device; from its fourth call on a CUDA graph that is replayed.

    Launching the kernels of a small model takes the host several times as long as the kernels themselves take the
    GPU; a captured graph is one launch. The function must have constant shapes, read nothing back and give a tensor,
    which the next call overwrites. Off a GPU, or where it cannot be captured, the function itself runs at every call.

    Args:
        function: of a tensor.
        say: called with one line that says why the function is not captured.
    """

    def __init__(self, function: Callable[[Tensor], Tensor], say: Callable[[str], None]) -> None:
        self.function, self.say = function, say
        self.calls, self.graph, self.failed = 0, None, False

    def __call__(self, given: Tensor) -> Tensor:
        if given.device.type != "cuda" or self.failed:
            return self.function(given)
        self.calls += 1
        if self.calls <= WARM_UP:
            return self._aside(given)
        if self.graph is None and not self._capture(given):
            return self.function(given)
        self.given.copy_(given)
        self.graph.replay()
        return self.result

    def _aside(self, given: Tensor) -> Tensor:
        """The function on a stream of its own, as capturing needs it."""
        stream = torch.cuda.Stream(given.device)
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            result = self.function(given)
        torch.cuda.current_stream().wait_stream(stream)
        return result

    def _capture(self, given: Tensor) -> bool:
        """Record the function without running it; whether that was possible."""
        self.given, graph = given.clone(), torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph):
                self.result = self.function(self.given)
        except RuntimeError as error:
            self.failed = True
            torch.cuda.synchronize()
            self.say(f"the step is not captured as a CUDA graph, and runs without: {str(error).splitlines()[0]}")
            return False
        self.graph = graph
        return True


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

    def configure_optimizers(self) -> dict[str, Any]:
        return self._scheduled(self._optimiser(torch.tensor(self.settings.lr, device=self.device)))

    def _optimiser(self, lr: Tensor) -> Optimizer:
        # on the device, so that a captured step sees the rate change
        capturable = self.device.type != "cpu"
        s = self.settings
        return adamw(self.model, lr, s.weight_decay, capturable=capturable, rates=s.rates)

    def on_fit_start(self) -> None:
        self.steps = self.validations = None

    def on_train_start(self) -> None:
        for group in self.optimizers().param_groups:  # a checkpoint is read on the host
            group["lr"] = torch.as_tensor(group["lr"], device=self.device)

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
            self.held = torch.full((rows, self.task.kept_channels), -torch.inf, device=self.device)
            self.validations = Captured(self._validate, _say)
        self.kept = self.held.fill_(-torch.inf)

    def validation_step(self, index: Tensor, _: int) -> None:
        self.validations(index)

    def _validate(self, index: Tensor) -> Tensor:
        batch = self.trainer.datamodule.val.batch(index)
        self.held[batch.row] = self.task.kept(self(batch), batch)  # the row after the last is for empty places
        return self.held


def why_not(settings: TrainSettings, model: nn.Module, train: Any, processes: int) -> str | None:
    """Why a training cannot have batches of constant shape; None if it can."""
    if settings.precision in ("16-mixed", "16"):
        return "16-mixed scales its loss by what it finds"
    if settings.strategy == "fsdp":
        return "each process holds its share of the weights"
    if processes > 1:
        return "several processes exchange gradients in every step"
    if isinstance(train, MoleculesOnDisk):
        return "the training molecules stay on disk"
    if not isinstance(train, MoleculeStore):
        return "the examples of the task are more than molecules"
    if not getattr(model, "constant_shapes", False):
        return f"{type(model).__name__} does not say that it takes batches of constant shape (`constant_shapes`)"
    return None


def _say(line: str) -> None:
    print(line, file=sys.stderr)
