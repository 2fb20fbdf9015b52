"""A whole training step in constant shapes, on a GPU captured as a CUDA graph, and its check before training."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from functools import lru_cache
from typing import Any

import torch
from pytorch_lightning.plugins import Precision
from pytorch_lightning.utilities.types import OptimizerLRSchedulerConfig
from torch import Tensor, nn
from torch.optim import Optimizer

from gtx.base.errors import first_line
from gtx.data import MoleculeStore
from gtx.data.batches import ConstantShapeStore
from gtx.nn import MoleculeModel
from gtx.settings.training import TrainSettings
from gtx.training.data import MoleculeDataModule, precomputed_encodings_of
from gtx.training.module import TrainingModule
from gtx.training.optimise import adamw

WARM_UP = 3
"""Number of steps before one is captured, in which libraries allocate their workspaces."""


@lru_cache
def side_stream(device: torch.device) -> torch.cuda.Stream:
    """Return the stream for trial, warm-up and capture of steps, as gradient nodes are bound to their stream."""
    return torch.cuda.Stream(device)


@contextmanager
def on_side_stream(device: torch.device) -> Iterator[None]:
    """Run the block on the side stream of a CUDA device, in order with the current stream; no effect elsewhere."""
    if device.type != "cuda":
        yield
        return
    stream = side_stream(device)
    stream.wait_stream(torch.cuda.current_stream(device))
    with torch.cuda.stream(stream):
        yield
    torch.cuda.current_stream(device).wait_stream(stream)


def can_capture(device: torch.device) -> bool:
    """Return True for a device with CUDA graphs."""
    return device.type == "cuda"


def record(function: Callable[[Tensor], Tensor], argument: Tensor) -> tuple[Callable[[], None], Tensor]:
    """Capture a call of a function as a CUDA graph, without running it.

    If the capture fails, the current stream and the random generator of the device are restored.

    Returns:
        The function that replays the call, and the result, which each replay overwrites.
    """
    device, graph = argument.device, torch.cuda.CUDAGraph()
    generator = torch.cuda.default_generators[torch.cuda.current_device() if device.index is None else device.index]
    state = generator.clone_state()
    try:
        with on_side_stream(device), torch.cuda.graph(graph, stream=side_stream(device)):
            result = function(argument)
    except BaseException:
        generator.graphsafe_set_state(state)  # its own state may be left in the middle of the capture
        side_stream.cache_clear()  # so may the stream
        raise
    return graph.replay, result


class Captured:
    """Function of one tensor on a device; from the fourth call on, a recorded CUDA graph is replayed.

    Launching the kernels of a small model takes the host several times as long as the kernels themselves take the
    GPU; a captured graph is one launch. The function must have constant shapes, transfer nothing to the host and return
    a tensor, which the next call overwrites. Without a GPU, for a tensor smaller than an earlier one, or if the capture
    fails, the function itself runs.

    Args:
        function: the function.
        report: called with the reason, one line, if the function cannot be captured.
    """

    def __init__(self, function: Callable[[Tensor], Tensor], report: Callable[[str], None]) -> None:
        self.function = function
        self.report = report
        self.calls: int = 0
        self.failed: bool = False
        self.shape: torch.Size | None = None
        self.replay: Callable[[], None] | None = None

    def __call__(self, argument: Tensor) -> Tensor:
        if self.shape is None or argument.numel() > self.shape.numel():
            self.shape, self.calls, self.replay = argument.shape, 0, None
        if self.failed or not can_capture(argument.device):
            return self.function(argument)
        if argument.shape == self.shape and self.calls >= WARM_UP:
            if self.replay is None:
                self._record(argument)
            if self.replay is not None:
                self.argument.copy_(argument)
                self.replay()
                return self.result
        self.calls += argument.shape == self.shape
        with on_side_stream(argument.device):
            return self.function(argument)

    def _record(self, argument: Tensor) -> None:
        """Capture the function; if that fails, report the reason and leave `replay` None."""
        self.argument: Tensor = argument.clone()
        try:
            self.replay, self.result = record(self.function, self.argument)
        except Exception as error:  # out of memory, a transfer to the host, shapes that depend on data, ...
            self.failed, reason = True, first_line(error)
        if self.failed:  # only after the handler nothing refers to tensors of the capture
            if argument.device.type == "cuda":
                torch.cuda.synchronize()
                torch.cuda.empty_cache()
            self.report(reason)


class WholeStep:
    """Whole training step on the device: batch, forward, loss, backward, clipping, update.

    Args:
        module: module with the model and the task.
        train: batches of the training molecules.
        optimiser: optimiser of the parameters.
        usual_share: mean share of a batch, see `TrainingModule.training_step`.

    Shapes:
        indices of molecules, int64 `[batch_shape.molecules]` on the device, to the loss `[]`.
    """

    def __init__(
        self, module: TrainingModule, train: ConstantShapeStore, optimiser: Optimizer, usual_share: Tensor
    ) -> None:
        self.module = module
        self.train = train
        self.optimiser = optimiser
        self.usual_share = usual_share
        self.parameters: list[Tensor] = [p for group in optimiser.param_groups for p in group["params"]]

    def __call__(self, index: Tensor) -> Tensor:
        self.optimiser.zero_grad()  # first, since the step before may have failed after its backward pass
        torch.clear_autocast_cache()  # cached casts of weights hold gradient nodes of another step
        batch = self.train.batch(index)
        loss = self.module.loss(batch) * (self.module.task.objective.share(batch) / self.usual_share)
        with torch.autocast(index.device.type, enabled=False):
            loss.backward()
            if self.module.settings.clip:
                nn.utils.clip_grad_norm_(self.parameters, self.module.settings.clip)
            self.optimiser.step()
            self.optimiser.zero_grad()
        return loss.detach()


class CapturedModule(TrainingModule):
    """`TrainingModule` on batches of constant shape, with a whole step in one call.

    Its `training_step` and `validation_step` take the indices of the molecules of a batch, which `MoleculeDataModule`
    yields if `constant` is set. The step includes the work of Lightning between forward and update, so its hooks do
    nothing.
    """

    in_whole_steps = True

    def configure_optimizers(self) -> OptimizerLRSchedulerConfig:
        return self._scheduled(self.optimiser())

    def optimiser(self) -> Optimizer:
        """Make an AdamW with its rate on the device, so that a captured step sees it change."""
        s = self.settings
        lr, capturable = torch.tensor(s.lr, device=self.device), self.device.type != "cpu"
        return adamw(self.model, lr, s.weight_decay, capturable=capturable, rates=s.rates)

    def on_train_start(self) -> None:
        super().on_train_start()
        (optimiser,) = self.trainer.optimizers
        self.mean_share: Tensor = torch.ones((), device=self.device)
        self.steps = Captured(WholeStep(self, self.data.shaped["train"], optimiser, self.mean_share), _report)
        self.validations = Captured(self._validate, _report)

    def on_train_epoch_start(self) -> None:
        super().on_train_epoch_start()
        self.mean_share.fill_(float(self.usual_share))

    def training_step(self, index: Tensor, _: int) -> Tensor:
        return self.steps(index).clone().requires_grad_()

    def backward(self, *_: Any) -> None:
        """Do nothing: the step includes it."""

    def optimizer_zero_grad(self, *_: Any) -> None:
        """Do nothing: the step includes it."""

    def optimizer_step(self, epoch: int, batch: int, optimizer: Any, closure: Callable[[], Any] | None = None) -> None:
        if closure is not None:
            closure()  # the step

    def validation_step(self, index: Tensor, _: int) -> None:
        self.validations(index)

    def _validate(self, index: Tensor) -> Tensor:
        self._collect(self.data.shaped["val"].batch(index), "val")
        return index


def obstacle_to_capture(settings: TrainSettings, model: nn.Module, train: Any, processes: int) -> str | None:
    """Name the reason why a training cannot have batches of constant shape; None if it can."""
    if settings.precision in ("16-mixed", "16"):
        return "16-mixed scales its loss by its gradients"
    if processes > 1:
        return "several processes exchange gradients in every step"
    if not isinstance(train, MoleculeStore):
        return "the examples of the task are more than molecules"
    if not (isinstance(model, MoleculeModel) and model.constant_shapes):
        return f"{type(model).__name__} does not declare that it takes batches of constant shape (`constant_shapes`)"
    return None


def _report(reason: str) -> None:
    print(f"the step is not captured as a CUDA graph, and runs without: {reason}", file=sys.stderr)


# --- The check before training. A default must be safe: in a second or two, on a few dozen molecules, batches of
# constant shape and replayed steps are compared with plain ones, which are used if anything differs or raises.

MAX_MOLECULES = 32
"""Largest number of molecules in a batch of the check."""
LOSS, GRADIENT = 1e-3, 1e-2
"""Relative tolerance of a loss, and of a gradient or an update. The order of sums and products in TF32 stay below, a
missing molecule does not. In 16 bits the tolerance is 30 times as large."""


def check_capture(
    module: CapturedModule, data: MoleculeDataModule, precision: Precision, device: torch.device
) -> str | None:
    """Compare batches of constant shape and captured steps with plain ones, and name the first difference or error.

    The module is moved to the device; its weights and the random state are restored.
    """
    try:
        precision.convert_module(module.to(device))
        with precision.forward_context(), _unchanged(module, device):
            train, batches = _sample(module, data, device)
            reason = _compare_batches(module, train, batches[0]) or _compare_steps(module, train, batches)
    except Exception as error:  # whatever it is, the plain way may work nevertheless
        reason = first_line(error)
    if device.type == "cuda":
        torch.cuda.empty_cache()
    return reason


def _sample(
    module: CapturedModule, data: MoleculeDataModule, device: torch.device
) -> tuple[ConstantShapeStore, list[Tensor]]:
    """Select training molecules of all sizes, and `WARM_UP` batches of them."""
    train: MoleculeStore = data.examples["train"]
    affordable = int(data.budget / float(train.sizes.square().float().mean()))
    molecules = max(1, min(MAX_MOLECULES, affordable, data.settings.molecules_per_batch(len(train))))
    by_size = train.sizes.argsort(stable=True)
    chosen = by_size[torch.linspace(0, len(by_size) - 1, min(len(by_size), WARM_UP * molecules)).long()]
    examples = train.subset(chosen)
    fixed = precomputed_encodings_of(module.model, examples, device, constant=True)
    store = ConstantShapeStore(examples.to(device), fixed, data.seed)
    sampler = store.sampler(molecules, seed=data.seed)
    batches = [batch.to(device) for batch in sampler.batches() if len(batch) == sampler.batch_shape.molecules]
    return store, [batches[i % len(batches)] for i in range(WARM_UP)]


def _compare_batches(module: CapturedModule, train: ConstantShapeStore, index: Tensor) -> str | None:
    """Compare the batch of constant shape with the plain one, without dropout."""
    module.eval()
    with on_side_stream(index.device):
        loss, gradient = _gradient(module, train.batch(index))
        plain, expected = _gradient(module, train.store.batch(index[index >= 0]))
    factor = _tolerance_factor(module)
    if not _close(loss, plain, factor * LOSS):
        return f"in constant shapes the loss of a batch is {loss:.6g}, otherwise {plain:.6g}"
    if not float((gradient - expected).norm()) <= factor * GRADIENT * float(expected.norm()):
        return f"in constant shapes the gradient norm is {float(gradient.norm()):.6g}, otherwise {expected.norm():.6g}"
    return None


def _gradient(module: CapturedModule, batch: object) -> tuple[float, Tensor]:
    parameters = [p for p in module.parameters() if p.requires_grad]
    torch.clear_autocast_cache()
    loss = module.loss(batch)
    gradients = torch.autograd.grad(loss, parameters, materialize_grads=True)
    return float(loss.detach()), torch.cat([gradient.flatten() for gradient in gradients])


def _compare_steps(module: CapturedModule, train: ConstantShapeStore, batches: list[Tensor]) -> str | None:
    """Compare three replayed steps with three eager ones, and check that replays see dropout and the rate."""
    failures: list[str] = []
    optimiser = module.optimiser()
    share = torch.as_tensor(float(module.task.objective.share(train.store)) / len(batches), device=module.device)
    step = WholeStep(module, train, optimiser, share)
    start, state = _weights(module), deepcopy(module.state_dict())

    module.eval()  # without dropout, so that losses agree
    replayed = Captured(step, failures.append)
    losses = [float(replayed(index)) for index in batches]  # the warm-up, in which nothing is captured yet
    moved = float((_weights(module) - start).norm())
    module.load_state_dict(state)
    for moments in optimiser.state.values():
        for value in moments.values():
            value.zero_()
    again = [float(replayed(index)) for index in batches]
    if failures:
        return failures[0]
    for loss, expected in zip(again, losses, strict=True):
        if not _close(loss, expected, _tolerance_factor(module) * LOSS):
            return f"the loss of a replayed step is {loss:.6g}, not {expected:.6g}"
    distance = float((_weights(module) - start).norm())
    if not _close(distance, moved, 10 * GRADIENT):
        return f"three replayed steps move the weights by {distance:.3g}, not {moved:.3g}"

    for group in optimiser.param_groups:
        group["lr"].zero_()
    before = _weights(module)
    replayed(batches[0])
    module.train()
    with_dropout = Captured(step, failures.append)
    losses = [float(with_dropout(batches[0])) for _ in range(2 * WARM_UP)]
    if failures:
        return failures[0]
    if not torch.equal(_weights(module), before):
        return "a replayed step does not see that the rate is 0"
    spread, expected = (max(some) - min(some) for some in (losses[WARM_UP:], losses[:WARM_UP]))
    if expected > LOSS * abs(losses[0]) and not spread > LOSS * expected:
        return "every replayed step has the same dropout"
    return None


def _tolerance_factor(module: CapturedModule) -> float:
    return 30.0 if "16" in module.settings.precision else 1.0


def _close(value: float, expected: float, tolerance: float) -> bool:
    return abs(value - expected) <= tolerance * abs(expected)  # NaN is not


@contextmanager
def _unchanged(module: CapturedModule, device: torch.device) -> Iterator[None]:
    """Restore weights, buffers and the random state after the block, and delete gradients."""
    before, training = deepcopy(module.state_dict()), module.training
    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        try:
            yield
        finally:
            module.zero_grad(set_to_none=True)
            module.train(training)
            torch.clear_autocast_cache()
            module.load_state_dict(before)


def _weights(module: CapturedModule) -> Tensor:
    return nn.utils.parameters_to_vector(module.parameters()).detach()
