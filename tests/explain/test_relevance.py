"""Scores of three atoms, by hand."""

from __future__ import annotations

import torch

from gtx.explain import attention_rollout, gradient_weighted_attention, score_atoms_by_attention

FIRST = torch.tensor([[1.0, 0, 0], [1, 0, 0], [0, 1, 0]])  # 0 and 1 look at 0, 2 looks at 1
SECOND = torch.tensor([[1.0, 0, 0], [0, 1, 0], [0, 1, 0]])  # 2 looks at 1 again


def test_rollout_by_hand() -> None:
    reached = attention_rollout(torch.stack([FIRST, SECOND]))
    # first layer, halved with the residual: rows (1 0 0), (1/2 1/2 0), (0 1/2 1/2)
    # second layer: row 2 is half its own first row and half that of atom 1
    expected = torch.tensor([[1, 0, 0], [0.5, 0.5, 0], [0.25, 0.5, 0.25]])
    torch.testing.assert_close(reached, expected)
    everyone = torch.arange(3)
    torch.testing.assert_close(
        score_atoms_by_attention(reached, everyone, everyone), torch.tensor([1.75, 1.0, 0.25]) / 3
    )


def test_rollout_of_no_layer_is_the_residual_and_rows_sum_to_one() -> None:
    torch.testing.assert_close(attention_rollout(torch.zeros(0, 3, 3)), torch.eye(3))
    weights = torch.randn(4, 7, 7, generator=torch.Generator().manual_seed(0)).softmax(-1)
    torch.testing.assert_close(attention_rollout(weights).sum(1), torch.ones(7))


def test_gradient_weighted_by_hand() -> None:
    weights = torch.stack([FIRST, SECOND])[:, None]
    gradients = torch.ones(2, 1, 3, 3)
    gradients[0, 0, 2, 1] = -1.0  # what 2 takes from 1 in the first layer lowers the output: it does not count
    gradients[1, 0, 2, 1] = 2.0
    # after layer 1: I + rows (1 0 0), (1 0 0), (0 0 0); layer 2 adds twice row 1 = (1 1 0) to row 2, and to rows 0, 1
    expected = torch.tensor([[3.0, 0, 0], [2, 1, 0], [2, 2, 0]])
    torch.testing.assert_close(gradient_weighted_attention(weights, gradients), expected)


def test_gradient_weighted_equals_a_plain_loop() -> None:
    generator = torch.Generator().manual_seed(1)
    weights = torch.rand(3, 2, 5, 5, generator=generator, dtype=torch.float64)
    gradients = torch.randn(3, 2, 5, 5, generator=generator, dtype=torch.float64)
    relevance = [[float(i == j) for j in range(5)] for i in range(5)]
    for a, g in zip(weights.tolist(), gradients.tolist(), strict=True):
        mean = [[sum(max(a[h][i][j] * g[h][i][j], 0) for h in range(2)) / 2 for j in range(5)] for i in range(5)]
        relevance = [
            [relevance[i][j] + sum(mean[i][k] * relevance[k][j] for k in range(5)) for j in range(5)] for i in range(5)
        ]
    expected = torch.tensor(relevance, dtype=torch.float64) - torch.eye(5, dtype=torch.float64)
    torch.testing.assert_close(gradient_weighted_attention(weights, gradients), expected)


def test_nodes_that_are_no_atoms_carry_but_have_no_score() -> None:
    # atoms 0 and 2 know each other only through node 1
    through = torch.tensor([[0.0, 1, 0], [0, 0, 1], [0, 1, 0]])
    reached = attention_rollout(torch.stack([through, through]))
    assert reached[0, 2] == 0.25
    atoms, virtual = torch.tensor([0, 2]), torch.tensor([1])
    torch.testing.assert_close(score_atoms_by_attention(reached, atoms, virtual), reached[1, [0, 2]])
    torch.testing.assert_close(score_atoms_by_attention(reached, atoms, atoms), reached[[0, 2]].mean(0)[[0, 2]])
