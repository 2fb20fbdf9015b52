"""How well sequences are written."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence

import torch
from torch import Tensor


def count(logits: Tensor, labels: Tensor, ptr: Tensor) -> Tensor:
    """What `metrics` are made of; counts of batches, or of processes, add up.

    Args:
        logits: `[N, V]` of B sequences, each step given the true ones before it (teacher forcing).
        labels: int64 `[N]`, what should be written, the ends included.
        ptr: int64 `[B + 1]`; sequence b has the labels `ptr[b]` to `ptr[b + 1]`.

    Returns:
        float64 `[5]`: the sum of -ln p of the labels; labels; those that are the likeliest token; sequences; those of
        which every label is.
    """
    log_p = logits.detach().log_softmax(-1).gather(1, labels[:, None]).double().sum()
    right = (logits.argmax(-1) == labels).long()
    owner = torch.repeat_interleave(ptr.diff())
    wrong = torch.zeros(len(ptr) - 1, dtype=torch.long, device=ptr.device).index_add_(0, owner, 1 - right)
    numbers = (len(labels), right.sum(), len(wrong), (wrong == 0).sum())
    return torch.stack([-log_p, *(torch.as_tensor(n, device=log_p.device).double() for n in numbers)])


def metrics(counts: Tensor) -> dict[str, float | None]:
    r"""Scores of teacher-forced sequences.

    Args:
        counts: of `count`, summed.

    Returns:
        `perplexity` \(\exp(-\overline{\ln p})\) per label, at least 1; `token_accuracy`, the share of labels that are
        the likeliest token; `sequence_accuracy`, the share of sequences of which all are, which are those that greedy
        writing gets exactly. None where there was nothing.
    """
    surprise, labels, right, sequences, whole = counts.tolist()
    return {
        "perplexity": math.exp(min(surprise / labels, 700.0)) if labels else None,
        "token_accuracy": right / labels if labels else None,
        "sequence_accuracy": whole / sequences if sequences else None,
    }


def exact(written: Sequence[Hashable], truth: Sequence[Hashable]) -> float | None:
    """The share of sequences (or texts) written exactly as they should be; None of none.

    Raises:
        ValueError: not as many were written as there are.
    """
    if len(written) != len(truth):
        raise ValueError(f"expected {len(truth)} sequences, one for each that is true, got {len(written)}")
    return sum(a == b for a, b in zip(written, truth, strict=True)) / len(truth) if truth else None
