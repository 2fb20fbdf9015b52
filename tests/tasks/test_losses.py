"""Losses leave out blanks, in value and in gradient."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F

from gtx.tasks import BinaryClassification, MulticlassClassification, Regression
from gtx.tasks.metrics import masked_mean, smoothed_cross_entropy

PLAIN = {
    "mse": (Regression(("a", "b", "c"), loss="mse"), F.mse_loss),
    "mae": (Regression(("a", "b", "c"), loss="mae"), F.l1_loss),
    "huber": (Regression(("a", "b", "c"), loss="huber"), F.huber_loss),
    "own": (Regression(("a", "b", "c"), loss=lambda output, target: (output - target).abs() ** 3), None),
    "binary": (BinaryClassification(("a", "b", "c")), F.binary_cross_entropy_with_logits),
    "several": (replace(MulticlassClassification(("a", "b", "c")), classes=[("0", "1")] * 3), None),
}


@pytest.mark.parametrize("name", PLAIN)
def test_is_the_plain_loss_of_what_was_observed(name: str) -> None:
    task, plain = PLAIN[name]
    output = torch.randn(7, task.out_channels, dtype=torch.float64, requires_grad=True)
    target = torch.rand(7, 3, dtype=torch.float64).round()
    blank = torch.rand(7, 3) < 0.4
    loss = masked_mean(task.elementwise, output, target.masked_fill(blank, torch.nan))
    if name == "several":  # two outputs of each target
        expected = F.cross_entropy(output.view(7, 3, 2)[~blank], target[~blank].long())
        blank = blank.repeat_interleave(2, 1)
    else:
        own = (output[~blank] - target[~blank]).abs().pow(3).mean()
        expected = plain(output[~blank], target[~blank]) if plain else own
    torch.testing.assert_close(loss, expected)
    (got,) = torch.autograd.grad(loss, output)
    (gradient,) = torch.autograd.grad(expected, output)
    torch.testing.assert_close(got, gradient)
    assert not got[blank].any()


def test_blanks_alone_give_zero_with_a_gradient() -> None:
    output = torch.randn(4, 2, requires_grad=True)
    loss = masked_mean(Regression(("a", "b")).elementwise, output, torch.full((4, 2), torch.nan))
    loss.backward()
    assert loss.item() == 0 and not output.grad.any()


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 1.0])
def test_smoothed_cross_entropy_is_the_divergence_and_a_constant(smoothing: float) -> None:
    first, second = torch.randn(2, 9, 6, dtype=torch.float64)
    labels = torch.randint(6, (9,))
    target = F.one_hot(labels, 6).double() * (1 - smoothing) + smoothing / 6

    def divergence(logits: torch.Tensor) -> torch.Tensor:
        return F.kl_div(logits.log_softmax(-1), target, reduction="sum") / 9

    entropy = -torch.xlogy(target, target).sum() / 9
    for logits in (first, second):
        loss = smoothed_cross_entropy(logits, labels, smoothing)
        torch.testing.assert_close(loss, divergence(logits) + entropy)
        torch.testing.assert_close(loss, F.cross_entropy(logits, labels, label_smoothing=smoothing))


def test_padding_has_no_say() -> None:
    logits = torch.randn(7, 5, dtype=torch.float64, requires_grad=True)
    labels = torch.tensor([1, -100, 4, 0, -100, 2, 2])
    loss = smoothed_cross_entropy(logits, labels)
    torch.testing.assert_close(loss, smoothed_cross_entropy(logits[labels >= 0], labels[labels >= 0]))
    (grad,) = torch.autograd.grad(loss, logits)
    assert grad.any(1).tolist() == (labels >= 0).tolist()
    alone = smoothed_cross_entropy(logits, torch.full((7,), -100))
    alone.backward()
    assert alone.item() == 0 and not logits.grad.any()
