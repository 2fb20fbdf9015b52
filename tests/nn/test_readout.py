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


def test_attention_pooling_is_one_learned_query_for_all() -> None:
    """softmax_i(w·v_i + b) v_i, summed: attention whose receiver asks the same of every molecule."""
    readout = Readout(5, ["attention"]).double()
    x = torch.randn(4, 5, dtype=torch.float64)
    linear = readout.parts[0].gate_nn
    expected = torch.zeros(3, 5, dtype=torch.float64)  # the second molecule has no atoms
    for molecule in (0, 2):
        nodes = [i for i in range(4) if BATCH[i] == molecule]
        scores = torch.stack([(linear.weight[0] * x[i]).sum() + linear.bias[0] for i in nodes])
        for weight, i in zip(scores.exp() / scores.exp().sum(), nodes, strict=True):
            expected[molecule] = expected[molecule] + weight * x[i]
    torch.testing.assert_close(readout(x, BATCH, 3), expected, atol=1e-10, rtol=0)
