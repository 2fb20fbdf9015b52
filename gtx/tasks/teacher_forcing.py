"""How well sequences are written."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence

import torch
from torch import Tensor, nn

from gtx.data import PairBudgetSampler
from gtx.sequence import Examples


def count(logits: Tensor, labels: Tensor, ptr: Tensor) -> Tensor:
    """What `metrics` are made of, for each of B sequences.

    Args:
        logits: `[N, V]`, each step given the true ones before it (teacher forcing).
        labels: int64 `[N]`, what should be written, the ends included.
        ptr: int64 `[B + 1]`; sequence b has the labels `ptr[b]` to `ptr[b + 1]`, one at least.

    Returns:
        float64 `[B, 3]`: the sum of -ln p of the labels, how many they are, how many are the likeliest token.
    """
    surprise = -logits.detach().log_softmax(-1).gather(1, labels[:, None]).squeeze(1)
    right = logits.argmax(-1) == labels
    each = torch.stack([surprise.double(), torch.ones_like(surprise).double(), right.double()], 1)
    owner = torch.repeat_interleave(ptr.diff())
    return each.new_zeros(len(ptr) - 1, 3).index_add_(0, owner, each)


@torch.inference_mode()
def count_all(model: nn.Module, examples: Examples, pairs: int = 50_000) -> Tensor:
    """`count` of every example, `[M, 3]`, on the model's device and in evaluation mode.

    Args:
        model: gives logits of what comes after each token.
        examples: molecules and what is to be written.
        pairs: budget of a batch in pairs of tokens or atoms.
    """
    device = next(model.parameters()).device
    examples, counts = examples.to(device), torch.zeros(len(examples), 3, dtype=torch.float64)
    for rows in PairBudgetSampler(examples.sizes.cpu(), pairs, shuffle=False).batches():
        batch = examples.batch(rows.to(device))
        read, labels = batch.targets.teacher_forced()
        counts[rows] = count(model(batch.source, read), labels, read.ptr).cpu()
    return counts


def metrics(counts: Tensor) -> dict[str, float | None]:
    r"""Scores of teacher-forced sequences.

    Args:
        counts: of `count`, `[n, 3]`.

    Returns:
        `loss`, the mean of \(-\ln p\) per label, in nats; `perplexity`, its exponential, at least 1;
        `token_accuracy`, the share of labels that are the likeliest token; `sequence_accuracy`, the share of sequences
        of which all are, those that greedy writing gets exactly. None of nothing.
    """
    names = ("loss", "perplexity", "token_accuracy", "sequence_accuracy")
    if len(counts) == 0:
        return dict.fromkeys(names)
    surprise, labels, right = counts.sum(0).tolist()
    loss = surprise / labels
    whole = float((counts[:, 2] == counts[:, 1]).double().mean())
    return dict(zip(names, (loss, math.exp(min(loss, 700.0)), right / labels, whole), strict=True))


def exact(written: Sequence[Hashable], truth: Sequence[Hashable]) -> float | None:
    """The share of sequences (or texts) written exactly as they should be; None of none.

    Raises:
        ValueError: not as many were written as there are.
    """
    if len(written) != len(truth):
        raise ValueError(f"expected {len(truth)} sequences, one for each that is true, got {len(written)}")
    return sum(a == b for a, b in zip(written, truth, strict=True)) / len(truth) if truth else None
