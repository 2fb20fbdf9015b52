"""The batch that the encodings' tests share."""

import pytest
import torch
from torch_geometric.data import Batch

from gtx.graph import CompleteGraph
from tests.molecules_for_tests import RINGS, SMILES, whole_batch


@pytest.fixture(scope="module")
def batch() -> Batch:
    made = whole_batch([*SMILES, *RINGS])
    made.pos = torch.randn(made.num_nodes, 3, generator=torch.Generator().manual_seed(0))
    made.pos[made.batch == 4] = torch.nan  # coordinates that are unknown
    return made


@pytest.fixture(scope="module")
def graph(batch: Batch) -> CompleteGraph:
    return CompleteGraph.from_batch(batch.batch)
