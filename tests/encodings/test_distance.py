"""Distances in space: unknown ones are named, none has an infinite slope, and only distance counts."""

from __future__ import annotations

import pytest
import torch
from torch_geometric.data import Batch, Data

from gtx.encodings import Encoding, GaussianDistance, PairDistance
from gtx.graph import CompleteGraph
from tests.molecules_for_tests import whole_batch

BASES = [GaussianDistance(8), GaussianDistance(8, cutoff=5.0, learned=True, pair_types=128)]
ALL = [*BASES, PairDistance()]


@pytest.mark.parametrize("encoding", ALL, ids=repr)
def test_unknown_coordinates_are_zeros_that_say_so(encoding: Encoding, batch: Batch, graph: CompleteGraph) -> None:
    _, values = encoding(batch, graph)
    unknown = batch.pos.isnan().any(-1)[graph.pair_index[0]]
    assert 0 < unknown.sum() < graph.num_pairs
    assert values[:, -1].equal((~unknown).float())
    values = values[:, [0, 2]] if isinstance(encoding, PairDistance) else values  # its bonds are known all the same
    assert values[unknown].eq(0).all()
    assert values[~unknown].ne(0).any(1).all()


@pytest.mark.parametrize("encoding", ALL, ids=repr)
def test_slopes_are_finite_and_right(encoding: Encoding, batch: Batch, graph: CompleteGraph) -> None:
    other = batch.clone()
    other.pos = batch.pos.clone().requires_grad_()
    encoding(other, graph)[1].sum().backward()
    assert other.pos.grad.isfinite().all() and other.pos.grad.any()

    few = Data(x=batch.x[:4], edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=4)
    alone = CompleteGraph.from_ptr(torch.tensor([0, 4]))

    def values(pos: torch.Tensor) -> torch.Tensor:
        few.pos = pos
        return encoding.double()(few, alone)[1][~torch.eye(4, dtype=torch.bool).flatten()]

    assert torch.autograd.gradcheck(values, batch.pos[:4].double().requires_grad_())
    encoding.float()


@pytest.mark.parametrize("encoding", ALL, ids=repr)
def test_rotation_and_translation_change_nothing(encoding: Encoding, batch: Batch, graph: CompleteGraph) -> None:
    rotation, _ = torch.linalg.qr(torch.randn(3, 3, generator=torch.Generator().manual_seed(1)))
    moved = batch.clone()
    moved.pos = batch.pos @ rotation + torch.tensor([1.0, -2.0, 3.0])
    torch.testing.assert_close(encoding(moved, graph)[1], encoding(batch, graph)[1], atol=2e-5, rtol=0)


@pytest.mark.parametrize("encoding", ALL, ids=repr)
def test_no_coordinates_is_an_error(encoding: Encoding, graph: CompleteGraph) -> None:
    with pytest.raises(ValueError, match=r"expected pos \[N, 3\] in Å, got None"):
        encoding(whole_batch(), graph)


def test_a_gaussian_is_one_at_its_centre() -> None:
    pair = Data(pos=torch.tensor([[0.0, 0, 0], [0, 4.0, 0]]), edge_index=torch.empty(2, 0, dtype=torch.long))
    _, values = GaussianDistance(6, cutoff=10.0)(pair, CompleteGraph.from_ptr(torch.tensor([0, 2])))
    assert values[1, 2] == 1 and values[0, 0] == 1
    assert values[1, 1].item() == pytest.approx(torch.tensor(-0.5).exp().item())  # one width away


def test_pair_types_scale_and_shift_by_receiver_and_sender() -> None:
    pair = Data(x=torch.tensor([[1], [2]]), pos=torch.tensor([[0.0, 0, 0], [0, 3.0, 0]]))
    graph = CompleteGraph.from_ptr(torch.tensor([0, 2]))
    plain, typed = GaussianDistance(11), GaussianDistance(11, pair_types=3)
    assert typed(pair, graph)[1].equal(plain(pair, graph)[1])
    with torch.no_grad():
        typed.scale[1, 2], typed.shift[1, 2] = 2.0, 1.0  # receiver of type 1, sender of type 2
    values = typed(pair, graph)[1].view(2, 2, -1)
    assert values[0, 1].argmax() == 7 and values[1, 0].argmax() == 3


def test_learned_ones_start_as_the_fixed_ones_do(batch: Batch, graph: CompleteGraph) -> None:
    learned, fixed = GaussianDistance(8, learned=True), GaussianDistance(8)
    assert learned(batch, graph)[1].equal(fixed(batch, graph)[1])
    assert {name for name, _ in learned.named_parameters()} == {"centres", "log_widths"}
    assert not list(fixed.parameters()) and not fixed.state_dict()


def test_pair_distance_is_distance_and_bond(batch: Batch, graph: CompleteGraph) -> None:
    _, values = PairDistance()(batch, graph)
    start, stop = batch.ptr[0], batch.ptr[1]
    of_first = values[: graph.pair_ptr[1]].view(stop, stop, 3)
    pos = batch.pos[start:stop]
    torch.testing.assert_close(of_first[..., 0], torch.cdist(pos, pos, compute_mode="donot_use_mm_for_euclid_dist"))
    assert values[:, 1].sum() == batch.num_edges and values[graph.pair_of(batch.edge_index), 1].all()


def test_sizes_that_make_no_sense() -> None:
    with pytest.raises(ValueError, match="expected at least 2 channels and a positive cutoff, got 1 and 10"):
        GaussianDistance(1)
