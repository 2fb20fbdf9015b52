"""The direction of a pair turns with the molecule, and its nearness ends at the cutoff."""

from __future__ import annotations

import pytest
import torch
from torch_geometric.data import Batch, Data

from gtx.encodings import PairUnitVector
from gtx.graph import CompleteGraph


def test_it_points_from_receiver_to_sender_and_fades() -> None:
    graph = CompleteGraph.from_ptr(torch.tensor([0, 3]))
    pos = torch.tensor([[0.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 4.0]])
    _, values = PairUnitVector(4.0)(Data(pos=pos), graph)
    values = values.view(3, 3, 4)
    assert values[0, 0].tolist() == [0, 0, 0, 1]  # an atom with itself
    assert values[0, 1].tolist() == [0, 1, 0, 0.5] and values[1, 0].tolist() == [0, -1, 0, 0.5]
    assert values[0, 2].tolist() == [0, 0, 1, 0]
    assert values[1, 2, 3] == 0  # beyond it


def test_it_turns_with_the_molecule(batch: Batch, graph: CompleteGraph) -> None:
    turn = torch.linalg.qr(torch.randn(3, 3, generator=torch.Generator().manual_seed(1))).Q
    moved = batch.clone()
    moved.pos = batch.pos @ turn.T + 3.0
    _, values = PairUnitVector()(batch, graph)
    _, turned = PairUnitVector()(moved, graph)
    torch.testing.assert_close(turned[:, :3], values[:, :3] @ turn.T, atol=1e-4, rtol=0)
    torch.testing.assert_close(turned[:, 3], values[:, 3], atol=1e-5, rtol=0)


def test_unknown_coordinates_are_zeros_and_slopes_are_finite(batch: Batch, graph: CompleteGraph) -> None:
    other = batch.clone()
    other.pos = batch.pos.clone().requires_grad_()
    _, values = PairUnitVector()(other, graph)
    unknown = batch.pos.isnan().any(-1)[graph.pair_index[0]]
    assert values[unknown].eq(0).all() and values[~unknown].ne(0).any()
    values.sin().sum().backward()
    assert other.pos.grad.isfinite().all() and other.pos.grad.any()


def test_what_is_wrong_is_named(batch: Batch, graph: CompleteGraph) -> None:
    with pytest.raises(ValueError, match="a positive cutoff, got 1 and -2"):
        PairUnitVector(-2.0)
    without = batch.clone()
    without.pos = None
    with pytest.raises(ValueError, match=r"needs coordinates: expected pos \[N, 3\]"):
        PairUnitVector()(without, graph)
