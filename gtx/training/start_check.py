"""A check of captured training before it starts: batches of constant shape, and steps that are replayed.

A default must be safe. In a second or two, on a few dozen of the training molecules, everything is compared with the
plain way, which is taken wherever something differs or raises.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from pytorch_lightning.plugins import Precision
from torch import Tensor

from gtx.data import CapacityStore, MoleculeStore
from gtx.training.capture import WARM_UP, Captured, CapturedModule, WholeStep, aside, first_line
from gtx.training.data import MoleculeData, kept_features

MOST = 32
"""Molecules of a batch that is tried."""
LOSS, GRADIENT = 1e-3, 1e-2
"""Relative differences of a loss, and of a gradient or an update, from which on two ways differ. Sums in another order
and products in TF32 stay below; a molecule less in a batch does not. In 16 bits they are 30 times as wide."""


def check_capture(module: CapturedModule, data: MoleculeData, precision: Precision, device: torch.device) -> str | None:
    """Try, of the training to come, batches of constant shape and steps that are captured.

    Args:
        module: to be trained; it is moved to the device, and otherwise as before afterwards. So are random numbers.
        data: of the training, not yet moved to the device.
        precision: of the training.
        device: where it will run.

    Returns:
        In a few words why they cannot be relied on; None if they can.
    """
    try:
        module = precision.convert_module(module.to(device))
        with precision.forward_context(), _unchanged(module, device):
            cutter, batches = _sample(module, data, device)
            reason = _differs(module, cutter, batches[0]) or _strays(module, cutter, batches)
    except Exception as error:  # whatever it is: the plain way may work nevertheless
        reason = first_line(error)
    if device.type == "cuda":
        torch.cuda.empty_cache()
    return reason


def _sample(module: CapturedModule, data: MoleculeData, device: torch.device) -> tuple[CapacityStore, list[Tensor]]:
    """Training molecules of all sizes, and as many of their batches as a step is warmed up with."""
    train: MoleculeStore = data.train
    affordable = int(data.budget / float(train.sizes.square().float().mean()))
    molecules = max(1, min(MOST, affordable, data.settings.molecules_per_batch(len(train))))
    by_size = train.sizes.argsort(stable=True)
    chosen = by_size[torch.linspace(0, len(by_size) - 1, min(len(by_size), WARM_UP * molecules)).long()]
    examples = train.subset(chosen)
    cutter = CapacityStore(examples.to(device), kept_features(module.model, examples, device), data.seed)
    batches = cutter.sampler(molecules, seed=data.seed).batches()
    batches = [batch.to(device) for batch in batches if len(batch) == cutter.capacity.molecules]
    return cutter, [batches[i % len(batches)] for i in range(WARM_UP)]


def _differs(module: CapturedModule, cutter: CapacityStore, index: Tensor) -> str | None:
    """Compare the batch of constant shape with the plain one, without dropout."""
    module.eval()
    with aside(index.device):
        loss, gradient = _gradient(module, cutter.batch(index))
        plain, expected = _gradient(module, cutter.store.batch(index[index >= 0]))
    wide = _width(module)
    if not _close(loss, plain, wide * LOSS):
        return f"in constant shapes the loss of a batch is {loss:.6g}, otherwise {plain:.6g}"
    if not float((gradient - expected).norm()) <= wide * GRADIENT * float(expected.norm()):
        return f"in constant shapes the gradient norm is {float(gradient.norm()):.6g}, otherwise {expected.norm():.6g}"
    return None


def _gradient(module: CapturedModule, batch: object) -> tuple[float, Tensor]:
    learned = [p for p in module.parameters() if p.requires_grad]
    torch.clear_autocast_cache()
    loss = module.loss(batch)
    found = torch.autograd.grad(loss, learned, allow_unused=True)
    found = [torch.zeros_like(p) if g is None else g for g, p in zip(found, learned, strict=True)]
    return float(loss.detach()), torch.cat([g.flatten() for g in found])


def _strays(module: CapturedModule, cutter: CapacityStore, batches: list[Tensor]) -> str | None:
    """Compare three replayed steps with three that run as they are, and ask replays for dropout and the rate."""
    said: list[str] = []
    optimiser = module.optimiser()
    share = torch.as_tensor(float(module.task.share(cutter)) / len(batches), device=module.device)
    step = WholeStep(module, cutter, optimiser, share)
    start = _weights(module)

    module.eval()  # without dropout, so that losses agree
    replayed = Captured(step, said.append)
    losses = [float(replayed(index)) for index in batches]  # they warm up: nothing is captured yet
    moved = float((_weights(module) - start).norm())
    _put(module, start)
    for state in optimiser.state.values():
        for value in state.values():
            value.zero_()
    again = [float(replayed(index)) for index in batches]
    if said:
        return said[0]
    for loss, expected in zip(again, losses, strict=True):
        if not _close(loss, expected, _width(module) * LOSS):
            return f"the loss of a replayed step is {loss:.6g}, not {expected:.6g}"
    if not _close(found := float((_weights(module) - start).norm()), moved, 10 * GRADIENT):
        return f"three replayed steps move the weights by {found:.3g}, not {moved:.3g}"

    for group in optimiser.param_groups:
        group["lr"].zero_()
    held = _weights(module)
    replayed(batches[0])
    module.train()
    fresh = Captured(step, said.append)
    losses = [float(fresh(batches[0])) for _ in range(2 * WARM_UP)]
    if said:
        return said[0]
    if not torch.equal(_weights(module), held):
        return "a replayed step does not see that the rate is 0"
    spread, expected = (max(some) - min(some) for some in (losses[WARM_UP:], losses[:WARM_UP]))
    if expected > LOSS * abs(losses[0]) and not spread > LOSS * expected:
        return "every replayed step has the same dropout"
    return None


def _width(module: CapturedModule) -> float:
    return 30.0 if "16" in module.settings.precision else 1.0


def _close(found: float, expected: float, tolerance: float) -> bool:
    return abs(found - expected) <= tolerance * abs(expected)  # NaN is not


@contextmanager
def _unchanged(module: CapturedModule, device: torch.device) -> Iterator[None]:
    """Weights, buffers and random numbers are afterwards what they were, and there are no gradients."""
    before = [(tensor, tensor.detach().clone()) for tensor in (*module.parameters(), *module.buffers())]
    training = module.training
    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        try:
            yield
        finally:
            module.zero_grad(set_to_none=True)
            module.train(training)
            torch.clear_autocast_cache()
            with torch.no_grad():
                for tensor, value in before:
                    tensor.copy_(value)


def _weights(module: CapturedModule) -> Tensor:
    return torch.cat([p.detach().flatten() for p in module.parameters()])


def _put(module: CapturedModule, weights: Tensor) -> None:
    parameters = list(module.parameters())
    with torch.no_grad():
        for parameter, values in zip(parameters, weights.split([p.numel() for p in parameters]), strict=True):
            parameter.copy_(values.view_as(parameter))
