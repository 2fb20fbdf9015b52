"""A molecule's channels of the graph and of space are on or off, and what is off does not count."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch
from torch_geometric.data import Batch

from gtx.encodings import GaussianDistance, NodeDegree, ShortestPathLength, TransformerM3DEncoding
from gtx.graph import CompleteGraph
from gtx.nn import TransformerMPairEncoding
from tests.molecules_for_tests import whole_batch


@pytest.fixture(scope="module")
def batch() -> Batch:
    """Ethanol again and again; the coordinates of the second molecule are unknown."""
    made = whole_batch(["CCO"] * 200)
    made.pos = torch.randn(made.num_nodes, 3, generator=torch.Generator().manual_seed(0))
    made.pos[3:6] = torch.nan
    return made


@pytest.fixture(scope="module")
def graph(batch: Batch) -> CompleteGraph:
    return CompleteGraph.from_batch(batch.batch)


def make(modes: Sequence[float] = (0.2, 0.5, 0.3)) -> TransformerMPairEncoding:
    torch.manual_seed(0)
    return TransformerMPairEncoding(
        [NodeDegree(), ShortestPathLength(4)], [TransformerM3DEncoding(GaussianDistance(6))], 5, 4, modes
    )


def test_either_alone_or_both_as_often_as_is_said(batch: Batch, graph: CompleteGraph) -> None:
    layer = make()
    flat, space = layer.switches(batch, graph)
    assert flat[1] and not space[1]  # without coordinates there is no choice
    known = torch.arange(200) != 1
    for share, found in zip((0.2, 0.5, 0.3), (flat & ~space, space & ~flat, flat & space), strict=True):
        assert abs(found[known].double().mean() - share) < 4 * (share * (1 - share) / 199) ** 0.5
    again, _ = layer.switches(batch, graph)
    assert not torch.equal(again, flat)
    flat, space = layer.eval().switches(batch, graph)
    assert flat.all() and torch.equal(space, known)


@pytest.mark.parametrize("mode", ["flat", "space", "both"])
def test_what_is_off_does_not_count_and_what_is_on_adds_up(mode: str, batch: Batch, graph: CompleteGraph) -> None:
    layer = make({"flat": (1, 0, 0), "space": (0, 1, 0), "both": (0, 0, 1)}[mode])
    on = [torch.tensor(mode in ("flat", "both")), torch.tensor(mode in ("space", "both"))]
    nodes, pairs = layer(batch, graph)
    (flat_nodes, flat_pairs), (space_nodes, space_pairs) = layer.flat(batch, graph), layer.space(batch, graph)
    unplaced = graph.batch == 1
    torch.testing.assert_close(nodes[unplaced], flat_nodes[unplaced])
    torch.testing.assert_close(nodes[~unplaced], (on[0] * flat_nodes + on[1] * space_nodes)[~unplaced])
    of_pair = unplaced[graph.pair_index[1]]
    torch.testing.assert_close(pairs[~of_pair], (on[0] * flat_pairs + on[1] * space_pairs)[~of_pair])
    assert space_nodes.std() > 0.01 < flat_pairs.std()


def test_bad_settings_are_named() -> None:
    for modes in ((0.5, 0.5), (0.5, 0.6, 0.1), (-0.5, 1.0, 0.5)):
        with pytest.raises(ValueError, match="the probabilities of three modes, with sum 1, got"):
            make(modes)
    with pytest.raises(ValueError, match=r"expected encodings of the graph .* got none"):
        TransformerMPairEncoding([], [TransformerM3DEncoding(GaussianDistance(6))], 5, 4)
