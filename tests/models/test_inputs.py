"""A batch with other codes than gtx's is refused, and the attribute and the column are named."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch_geometric.data import Batch, Data
from torch_geometric.utils import from_smiles

from gtx.base.errors import InputError
from gtx.models import GraphTransformer, gat, standard
from gtx.molecules import Featuriser
from tests.molecules_for_tests import SMILES, whole_batch

READ = Featuriser()
SIZES = {"atom_sizes": READ.atom_sizes, "bond_sizes": READ.bond_sizes}
SMALL = {"channels": 8, "layers": 1, "heads": 2}


@pytest.fixture(scope="module")
def model() -> GraphTransformer:
    return standard(1, **SIZES, num_descriptors=READ.num_descriptors, **SMALL).eval()


def test_data_of_pyg_are_refused_and_the_way_is_said(model: GraphTransformer) -> None:
    made = [from_smiles(smiles) for smiles in SMILES]
    expected = (
        r"^batch.x: expected 10 codes for each atom, integers \[n, 10\], as gtx.molecules.Featuriser makes them; "
    )
    with pytest.raises(InputError, match=expected + r"gtx.data.from_pyg .* got torch.int64 \[\d+, 9\]$"):
        model(Batch.from_data_list(made))
    with pytest.raises(InputError, match=r"got a Data without an attribute batch; .*Batch.from_data_list"):
        model(made[0])


def put(name: str, column: int, code: int) -> Callable[[Batch], None]:
    def change(batch: Batch) -> None:
        batch[name][3, column] = code

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda b: b.update({"x": b.x.float()}), r"batch.x: .* got torch.float32 \["),
        (lambda b: b.update({"x": b.x[:, 0]}), r"batch.x: .* got torch.int64 \[\d+\]$"),
        (lambda b: b.update({"edge_attr": b.edge_attr[:, :3]}), r"batch.edge_attr: expected 4 .* bond, .* \[\d+, 3\]$"),
        (lambda b: b.update({"edge_attr": None}), "batch.edge_attr: expected 4 codes .* got none"),
        (lambda b: b.update({"u": b.u[:, :7]}), r"batch.u: expected 105 descriptors .* got torch.float32 \[9, 7\]"),
        (lambda b: b.update({"u": None}), "batch.u: expected 105 descriptors .* got none"),
        (put("x", 1, 10), "batch.x: expected codes from 0 to 9 in column 1, .* got 10 in row 3"),
        (put("x", 2, -1), "batch.x: expected codes from 0 to 5 in column 2, .* got -1 in row 3"),
        (put("edge_attr", 3, 9), "batch.edge_attr: expected codes from 0 to 2 in column 3, .* got 9 in row 3"),
    ],
    ids=range(9),
)
def test_what_does_not_suit_is_named(change: Callable, message: str, model: GraphTransformer) -> None:
    batch = whole_batch().clone()
    change(batch)
    with pytest.raises(InputError, match=message):
        model(batch)


def test_what_a_model_does_not_read_may_lack() -> None:
    batch = whole_batch()
    bare = Batch(_base_cls=Data, x=batch.x, edge_index=batch.edge_index, batch=batch.batch, ptr=batch.ptr)
    bare._num_graphs = batch.num_graphs
    assert torch.isfinite(gat(1, **SIZES, **SMALL)(bare)).all()
