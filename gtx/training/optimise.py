"""Optimisation: AdamW, schedules, averaged weights and the selection of the best epoch."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from pytorch_lightning import Callback, LightningModule, Trainer
from torch import Tensor, nn
from torch.optim import AdamW, Optimizer
from torch.optim.lr_scheduler import LambdaLR
from torch.optim.swa_utils import get_ema_multi_avg_fn

from gtx.data import MoleculeStore
from gtx.errors import InputError, did_you_mean
from gtx.nn import CodeEmbedding
from gtx.tasks import Task

# --- Which validation score decides the epoch that is kept.

LOSS = "loss"


def check_selection(task: Task, keep_by: str | None, validated: bool) -> None:
    """Raise an `InputError` unless a task has the score, and there are validation rows to be scored.

    Args:
        task: what is learned.
        keep_by: the name of one of the task's metrics, or "loss"; None for the task's own choice.
        validated: whether there are validation rows.
    """
    if keep_by is None:
        return
    known = [*task.validated, LOSS]
    if keep_by not in known:
        near = did_you_mean(keep_by, known)
        raise InputError(f"keep_by: expected one of {', '.join(known)} for {task.name}, got {keep_by!r}{near}")
    if not validated:
        raise InputError(f"keep_by: no rows validate, so no epoch has a validation {keep_by}; leave it out")


def selecting(task: Task, val: MoleculeStore, keep_by: str | None) -> Callable[[Tensor], dict[str, float]]:
    """`Task.validation`, whose `val_score` is a metric of the user's choice, first in order: as it is where lower is
    better, else its negative.

    Args:
        task: what is learned, fitted.
        val: validation rows.
        keep_by: as `check_selection` takes it.

    Returns:
        A function of what was `kept` of the rows, `[n, K]`. It raises an `InputError` if the rows do not define the
        metric, and gives NaN, which no epoch is kept by, if the predictions are not finite.
    """
    scores = task.validation(val)
    if keep_by is None:
        return scores
    lower, column = keep_by == LOSS or task.metrics[keep_by].lower, f"val_{keep_by}"

    def selected(kept: Tensor) -> dict[str, float]:
        found = scores(kept)
        value = found.get(column, math.nan)
        if math.isnan(value) and math.isfinite(found.get("val_loss", 0.0)) and bool(kept.isfinite().all()):
            raise InputError(f"keep_by: the validation rows do not define {keep_by}; too few of their values differ")
        return {column: value} | found | {"val_score": value if lower else -value}

    return selected


# --- The average of the weights, and the best of it.


class WeightAverage(Callback):
    r"""An exponential moving average of the weights, in whose place they stand during validation.

    After step t, \(\bar w \leftarrow d_t \bar w + (1 - d_t) w\) with \(d_t = \min(d, (1 + t) / (10 + t))\), so that the
    initial weights are soon forgotten. One fused operation per step: a quarter of what Lightning's `WeightAveraging`
    costs at its best, a twentieth of its default. The state resumes exactly.

    Args:
        decay: d, per step; 0 follows the weights.
    """

    def __init__(self, decay: float) -> None:
        self.decay = decay
        self.average: list[Tensor] = []

    def on_train_start(self, trainer: Trainer, module: LightningModule) -> None:
        self.parameters = [p for p in module.parameters() if p.requires_grad]
        start = self.average or self.parameters
        self.average = [mean.detach().to(p.device, copy=True) for mean, p in zip(start, self.parameters, strict=True)]

    @torch.no_grad()
    def on_train_batch_end(self, trainer: Trainer, *_: Any) -> None:
        step = trainer.global_step
        decay = min(self.decay, (1 + step) / (10 + step))
        get_ema_multi_avg_fn(decay)(self.average, self.parameters, step)

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """The module holds the averaged weights within."""
        self._swap()
        try:
            yield
        finally:
            self._swap()

    def on_validation_start(self, *_: Any) -> None:
        self._swap()

    def on_validation_end(self, *_: Any) -> None:
        self._swap()

    def _swap(self) -> None:
        with torch.no_grad():  # in place: a captured step knows the weights by where they lie
            held = [weight.clone() for weight in self.parameters]
            torch._foreach_copy_(self.parameters, self.average)
            torch._foreach_copy_(self.average, held)

    def state_dict(self) -> dict[str, Any]:
        with self.in_place():
            return {"average": [p.detach().clone() for p in self.parameters]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.average = state["average"]


class KeepBest(Callback):
    """Keeps the averaged weights of the best epoch, and stops when there was no better one for long.

    The best epoch is that with the lowest `val_score`, the later one of equals. Epochs of the first half count only
    until the second has begun, which looks for its best anew: on a few dozen validation rows an early epoch can win by
    luck, and the rate has yet to fall. Without validation the last epoch is kept. The weights travel inside the
    checkpoint, so that what is best and how far the run has come can never disagree, whenever it is killed.

    Args:
        average: whose weights are kept.
        patience: stop after so many epochs whose score is not lower than the best before; 0 never stops.

    Attributes:
        epoch: the best so far, -1 before the first.
        score: its `val_score`, infinite without validation.
        waited: epochs since a score was lower than all before.
    """

    def __init__(self, average: WeightAverage, patience: int = 0) -> None:
        self.average, self.patience = average, patience
        self.score, self.epoch, self.weights, self.waited = math.inf, -1, {}, 0

    def on_train_start(self, trainer: Trainer, module: LightningModule) -> None:
        self._stop(trainer)  # a run that was killed between its last epoch and its end

    def on_train_epoch_end(self, trainer: Trainer, module: LightningModule) -> None:
        score = float(trainer.callback_metrics.get("val_score", math.inf))
        score = math.inf if math.isnan(score) else score
        anew = self.epoch < trainer.max_epochs // 2 <= trainer.current_epoch
        self.waited = 0 if anew or score < self.score else self.waited + 1
        if anew or score <= self.score:
            self.score, self.epoch = score, trainer.current_epoch
            with self.average.in_place():
                self.weights = {k: v.detach().clone() for k, v in module.model.state_dict().items()}
        self._stop(trainer)

    def _stop(self, trainer: Trainer) -> None:
        trainer.should_stop |= 0 < self.patience <= self.waited

    def state_dict(self) -> dict[str, Any]:
        return {"score": self.score, "epoch": self.epoch, "weights": self.weights, "waited": self.waited}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.score, self.epoch, self.weights = state["score"], state["epoch"], state["weights"]
        self.waited = state["waited"]


# --- How weights are updated: AdamW with a warm-up, then a cosine or an inverse square root.

ALL = "all"
"""The part of a model that is all of it."""


def rate_of(parameter: str, rates: Mapping[str, float]) -> float:
    """The share of the learning rate that a parameter has; 1 if no part that it belongs to is named.

    Args:
        parameter: its name, such as `layers.0.norm.weight`.
        rates: shares by part: a module or a parameter, such as `layers` or `layers.0`, or `all`. The smallest part
            that a parameter belongs to decides.
    """
    own = [part for part in rates if part == ALL or f"{parameter}.".startswith(f"{part}.")]
    return rates[max(own, key=lambda part: (part != ALL, len(part)))] if own else 1.0


def freeze(model: nn.Module, rates: Mapping[str, float]) -> None:
    """Let the parts whose share of the rate is 0 be as they are: their parameters need no gradient.

    Raises:
        ValueError: a part is none of the model's, or nothing is left to learn.
    """
    names = [name for name, _ in model.named_parameters()]
    for part in rates:
        if part != ALL and not any(f"{name}.".startswith(f"{part}.") for name in names):
            parts = ", ".join(dict.fromkeys(name.partition(".")[0] for name in names))
            raise ValueError(f"rates: the model has no part {part!r}; it has {parts}")
    for name, parameter in model.named_parameters():
        if rate_of(name, rates) == 0:
            parameter.requires_grad_(False)
    if not any(p.requires_grad for p in model.parameters()):
        raise ValueError("rates: every part has 0, so nothing would learn")


def check_head_first(model: nn.Module, rates: Mapping[str, float], head_first: float | None) -> None:
    """Raise a `ValueError` where no part that learns would wait for others."""
    learned = [rate_of(name, rates) for name, p in model.named_parameters() if p.requires_grad]
    if head_first and min(learned) >= 1:
        raise ValueError(
            f"head_first: no part waits for the first {head_first:.0%} of the steps, for all that learns has the whole "
            "rate; name a slower part, such as --rates all=0.1 head=1"
        )


def adamw(
    model: nn.Module,
    lr: float | Tensor,
    weight_decay: float,
    fused: bool = True,
    capturable: bool = False,
    rates: Mapping[str, float] | None = None,
) -> AdamW:
    """AdamW (Loshchilov & Hutter 2019) that decays matrices alone: no norm, bias, scale or embedding.

    Args:
        model: whose parameters are learned.
        lr: learning rate, the peak of the schedule; a number, or a tensor `[]` on the device of the parameters.
        weight_decay: decay per step, times the learning rate.
        fused: one kernel for all parameters, on a CPU five times as quick as any other way; Lightning does not clip
            gradients with it in mixed precision.
        capturable: a CUDA graph can hold its steps.
        rates: shares of the rate by part, see `rate_of`; the group of a part with another rate has the entry `share`.
    """
    embeddings = (m for m in model.modules() if isinstance(m, nn.Embedding | CodeEmbedding))
    tables = {id(p) for m in embeddings for p in m.parameters(recurse=False)}
    learned = [(rate_of(name, rates or {}), p) for name, p in model.named_parameters() if p.requires_grad]

    def group(share: float, decayed: bool) -> list[nn.Parameter]:
        return [p for own, p in learned if own == share and (p.dim() > 1 and id(p) not in tables) == decayed]

    groups = [
        {"params": group(share, decayed), "lr": lr * share, "weight_decay": weight_decay * decayed, "share": share}
        for share in sorted({own for own, _ in learned}, reverse=True)
        for decayed in (True, False)
    ]
    return AdamW([g for g in groups if g["params"]], fused=fused, capturable=capturable)


def settle(optimiser: Optimizer, schedule: LambdaLR | None, device: torch.device, captured: bool) -> None:
    """Have AdamW, whose state may come from a checkpoint of another kind of device, work on this one.

    Args:
        optimiser: any other is left as it is.
        schedule: of its rate.
        device: of the parameters.
        captured: rates and numbers of steps are on the device, so that a captured step sees them change.
    """
    if not isinstance(optimiser, AdamW):
        return

    def rate(value: float | Tensor) -> float | Tensor:
        return torch.as_tensor(value, device=device) if captured else float(value)

    for group in optimiser.param_groups:
        group["lr"], group["capturable"] = rate(group["lr"]), captured and device.type != "cpu"
    if schedule is not None:
        schedule.base_lrs = [rate(value) for value in schedule.base_lrs]
    for state in optimiser.state.values() if captured else ():
        state["step"] = state["step"].to(device)


def warmup_cosine(optimiser: AdamW, steps: int, warmup: float, head_first: float = 0.0) -> LambdaLR:
    """A linear rise over the first `warmup` (a fraction) of `steps`, then half a cosine down to 0.

    Over the first `head_first` (a fraction) of the steps, the parts that have less than the whole rate have none.
    """
    rise = max(1, round(warmup * steps))

    def factor(step: int) -> float:
        if step < rise:
            return (step + 1) / (rise + 1)
        return 0.5 + 0.5 * math.cos(math.pi * min(1.0, (step - rise) / max(1, steps - rise)))

    return _scheduled(optimiser, factor, round(head_first * steps))


def warmup_inverse_sqrt(optimiser: AdamW, warmup: int, wait: int = 0) -> LambdaLR:
    r"""A linear rise over the first `warmup` steps, then a fall with the inverse square root of the step.

    \[ \mathrm{rate}_t = \mathrm{peak} \cdot \min\Bigl(\frac{t}{w}, \sqrt{\frac{w}{t}}\Bigr), \qquad t = 1, 2, \ldots \]

    The peak is the optimiser's rate; \((d\, w)^{-1/2}\) for d channels and w = 4000 gives Vaswani et al. 2017, eq. 3
    (arXiv:1706.03762).

    Args:
        optimiser: whose rate is the peak.
        warmup: w, steps, at least 1.
        wait: steps at first in which the parts that have less than the whole rate have none.
    """
    if warmup < 1:
        raise ValueError(f"expected a warm-up of at least 1 step, got {warmup}")
    return _scheduled(optimiser, lambda step: min((step + 1) / warmup, math.sqrt(warmup / (step + 1))), wait)


def _scheduled(optimiser: AdamW, factor: Callable[[int], float], wait: int) -> LambdaLR:
    def waiting(step: int) -> float:
        return 0.0 if step < wait else factor(step)

    return LambdaLR(optimiser, [factor if g.get("share", 1.0) >= 1 else waiting for g in optimiser.param_groups])
