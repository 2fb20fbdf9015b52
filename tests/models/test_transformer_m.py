"""One model for molecules as graphs and in space: either alone is enough."""

from __future__ import annotations

import pytest
import torch
from torch_geometric.data import Batch

from gtx.models import GraphTransformer
from tests.models.test_architectures import make
from tests.molecules_for_tests import located, whole_batch


@pytest.fixture(scope="module")
def batch() -> Batch:
    return located(whole_batch())


def model(modes: tuple[float, ...], training: bool = True) -> GraphTransformer:
    return make("transformer_m", coordinates=True, modes=modes, dropout=0.0).train(training)


def without_coordinates(batch: Batch) -> Batch:
    other = batch.clone()
    other.pos = torch.full_like(batch.pos, torch.nan)
    return other


def test_a_molecule_without_coordinates_is_a_graph(batch: Batch) -> None:
    as_graph = model((1, 0, 0))(batch)
    torch.testing.assert_close(model((0.2, 0.5, 0.3))(without_coordinates(batch)), as_graph)
    torch.testing.assert_close(model((0.2, 0.5, 0.3), False)(without_coordinates(batch)), as_graph)
    both = model((0.2, 0.5, 0.3), training=False)(batch)
    assert torch.equal(both[1], as_graph[1]) and (both[0] - as_graph[0]).abs().max() > 1e-4


def test_in_space_alone_bonds_do_not_count(batch: Batch) -> None:
    other = batch.clone()
    keep = (batch.batch[batch.edge_index[0]] == 1) | (torch.arange(batch.num_edges) % 2 == 0)
    other.edge_index, other.edge_attr = batch.edge_index[:, keep], batch.edge_attr[keep]
    for modes, same in (((0, 1, 0), True), ((0, 0, 1), False)):
        assert torch.allclose(model(modes)(other), model(modes)(batch), atol=1e-6) == same
