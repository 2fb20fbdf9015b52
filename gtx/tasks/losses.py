"""Losses that leave out blanks and padding."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

LOSSES: dict[str, Callable[..., Tensor]] = {"mse": F.mse_loss, "mae": F.l1_loss, "huber": F.huber_loss}
"""Of numbers, by name: an `output` and a `target` to the loss of each, with `reduction="none"`."""


def masked_mean(
    elementwise: Callable[[Tensor, Tensor], Tensor], output: Tensor, target: Tensor, weights: Tensor | None = None
) -> Tensor:
    """The mean of a loss over the entries that were observed.

    Args:
        elementwise: of outputs and targets, the loss of each entry `[B, T]`.
        output: `[B, ...]`, as `elementwise` takes it.
        target: `[B, T]`, NaN for blanks.
        weights: how much say each entry has, 0 or more, `[B, T]` or what broadcasts to it; by default the same.

    Returns:
        A number. A batch of blanks alone gives 0, still a function of the outputs, so that every rank has gradients to
        exchange.
    """
    observed = ~target.isnan()
    # blanks are filled before the loss, not after: the gradient of a NaN is NaN even where it is masked
    dtype = torch.promote_types(output.dtype, target.dtype)  # not every loss takes two
    each = elementwise(output.to(dtype), torch.where(observed, target, 0.0).to(dtype))
    if weights is None:
        return (each * observed).sum() / observed.sum().clamp(min=1)
    say = observed * weights
    total = say.sum()
    return (each * say).sum() / torch.where(total > 0, total, 1)


def constants(values: Sequence[float], like: Tensor) -> Tensor:
    """Plain numbers as a tensor `[n]` beside another, made there: a captured step can hold no copy from the host."""
    return torch.stack([like.new_full((), value) for value in values])


def smoothed_cross_entropy(logits: Tensor, labels: Tensor, smoothing: float = 0.1) -> Tensor:
    r"""The mean cross-entropy to targets of which a share is spread over all classes evenly.

    \[ L = -\sum_w t_w \ln p_w, \qquad t_w = (1 - \varepsilon)\, [w = y] + \varepsilon / V \]

    It is the divergence \(\mathrm{KL}(t \,\|\, p)\) and a constant, the entropy of t.

    Source: Szegedy et al. 2016, section 7 (arXiv:1512.00567); \(\varepsilon = 0.1\) as Vaswani et al. 2017, section 5.4
    (arXiv:1706.03762).

    Args:
        logits: `[N, V]`.
        labels: y, int64 `[N]`; -100 for padding, which has no say.
        smoothing: \(\varepsilon\), 0 to 1.

    Returns:
        The mean over what is not padding, in nats; 0 if all is.
    """
    known = labels >= 0
    log_p = logits.log_softmax(-1)
    likely = log_p.gather(1, labels.clamp(min=0)[:, None]).squeeze(1)
    each = -(1 - smoothing) * likely - smoothing * log_p.mean(-1)
    return torch.where(known, each, 0.0).sum() / known.sum().clamp(min=1)
