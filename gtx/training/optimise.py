"""How weights are updated: AdamW with a warm-up, then a cosine or an inverse square root."""

from __future__ import annotations

import math

from torch import Tensor, nn
from torch.optim import AdamW
from torch.optim.lr_scheduler import LambdaLR

from gtx.nn import CodeEmbedding


def adamw(
    model: nn.Module, lr: float | Tensor, weight_decay: float, fused: bool = True, capturable: bool = False
) -> AdamW:
    """AdamW (Loshchilov & Hutter 2019) that decays matrices alone: no norm, bias, scale or embedding.

    Args:
        model: whose parameters are learned.
        lr: learning rate, the peak of the schedule; a number, or a tensor `[]` on the device of the parameters.
        weight_decay: decay per step, times the learning rate.
        fused: one kernel for all parameters, on a CPU five times as quick as any other way; Lightning does not clip
            gradients with it in mixed precision.
        capturable: a CUDA graph can hold its steps.
    """
    embeddings = (m for m in model.modules() if isinstance(m, nn.Embedding | CodeEmbedding))
    tables = {id(p) for m in embeddings for p in m.parameters(recurse=False)}
    learned = [p for p in model.parameters() if p.requires_grad]

    def group(decayed: bool) -> list[nn.Parameter]:
        return [p for p in learned if (p.dim() > 1 and id(p) not in tables) == decayed]

    groups = [{"params": group(True), "weight_decay": weight_decay}, {"params": group(False), "weight_decay": 0.0}]
    return AdamW([g for g in groups if g["params"]], lr=lr, fused=fused, capturable=capturable)


def warmup_cosine(optimiser: AdamW, steps: int, warmup: float) -> LambdaLR:
    """A linear rise over the first `warmup` (a fraction) of `steps`, then half a cosine down to 0."""
    rise = max(1, round(warmup * steps))

    def factor(step: int) -> float:
        if step < rise:
            return (step + 1) / (rise + 1)
        return 0.5 + 0.5 * math.cos(math.pi * min(1.0, (step - rise) / max(1, steps - rise)))

    return LambdaLR(optimiser, factor)


def warmup_inverse_sqrt(optimiser: AdamW, warmup: int) -> LambdaLR:
    r"""A linear rise over the first `warmup` steps, then a fall with the inverse square root of the step.

    \[ \mathrm{rate}_t = \mathrm{peak} \cdot \min\Bigl(\frac{t}{w}, \sqrt{\frac{w}{t}}\Bigr), \qquad t = 1, 2, \ldots \]

    The peak is the optimiser's rate; \((d\, w)^{-1/2}\) for d channels and w = 4000 gives Vaswani et al. 2017, eq. 3
    (arXiv:1706.03762).

    Args:
        optimiser: whose rate is the peak.
        warmup: w, steps, at least 1.
    """
    if warmup < 1:
        raise ValueError(f"expected a warm-up of at least 1 step, got {warmup}")
    return LambdaLR(optimiser, lambda step: min((step + 1) / warmup, math.sqrt(warmup / (step + 1))))
