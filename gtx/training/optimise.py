"""How weights are updated: AdamW with a warm-up, then a cosine or an inverse square root."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from torch import Tensor, nn
from torch.optim import AdamW
from torch.optim.lr_scheduler import LambdaLR

from gtx.nn import CodeEmbedding

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
