"""Distances along bonds, and attention by them."""

from __future__ import annotations

import numpy as np
import torch

from gtx.explain import average_attention_by_distance, shortest_path_lengths, to_dense_matrices

CHAIN = np.array([[0, 1, 1, 2], [1, 0, 2, 1]])  # 0-1-2, and an atom apart


def test_bond_distances() -> None:
    apart = np.inf
    expected = [[0, 1, 2, apart], [1, 0, 1, apart], [2, 1, 0, apart], [apart, apart, apart, 0]]
    assert shortest_path_lengths(CHAIN, 4).tolist() == expected
    assert shortest_path_lengths(np.zeros((2, 0), int), 2).tolist() == [[0, apart], [apart, 0]]


def test_mean_weight_of_pairs_equally_far_apart() -> None:
    weights = np.arange(16.0).reshape(1, 4, 4)
    distances, means = average_attention_by_distance(weights, shortest_path_lengths(CHAIN, 4))
    assert distances.tolist() == [0, 1, 2, np.inf]
    expected = [[(0 + 5 + 10 + 15) / 4, (1 + 4 + 6 + 9) / 4, (2 + 8) / 2, (3 + 7 + 11 + 12 + 13 + 14) / 6]]
    np.testing.assert_allclose(means, expected)


def test_receivers_stand_in_rows_of_the_matrix() -> None:
    edges = torch.tensor([[2, 0], [1, 0]])  # sender 2 into receiver 1, and 0 into itself
    matrix = to_dense_matrices(torch.tensor([[0.5, 0.25], [1.0, 2.0]]), edges, 3)
    assert matrix.shape == (2, 3, 3)
    assert matrix[:, 1, 2].tolist() == [0.5, 0.25] and matrix[:, 0, 0].tolist() == [1.0, 2.0]
    assert float(matrix.sum()) == 3.75
