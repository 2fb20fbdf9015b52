"""Readouts pool each molecule by itself; one without atoms gives zeros."""

from __future__ import annotations

import pytest
import torch

from gtx.nn import Readout

BATCH = torch.tensor([0, 0, 0, 2])


@pytest.mark.parametrize(
    ("kind", "of"),
    [("sum", lambda x: x.sum(0)), ("mean", lambda x: x.mean(0)), ("max", lambda x: x.max(0).values)],
)
def test_pools_each_molecule(kind: str, of: object) -> None:
    x = torch.randn(4, 5) - 3.0
    expected = torch.stack([of(x[:3]), torch.zeros(5), of(x[3:])])
    torch.testing.assert_close(Readout(5, [kind])(x, BATCH, 3), expected)


def test_attention_pooling_is_a_weighted_mean_by_a_learned_score() -> None:
    readout = Readout(5, ["attention"])
    x = torch.randn(4, 5)
    weights = readout.parts[0].gate_nn(x[:3]).softmax(0)
    torch.testing.assert_close(readout(x, BATCH, 3)[0], (weights * x[:3]).sum(0))
    torch.testing.assert_close(readout(x, BATCH, 3)[2], x[3])


def test_side_by_side() -> None:
    readout = Readout(5, ["sum", "max", "attention"])
    assert readout(torch.randn(4, 5), BATCH, 3).shape == (3, readout.width) == (3, 15)
    assert repr(readout) == "Readout(sum, max, attention)"
