"""Batches of constant shape give what plain batches give: outputs and every gradient, of every named model."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Batch

from gtx.data import MoleculeStore
from gtx.data.batches import ConstantShapeStore, batch_with_encodings, make_constant_shape_batch, precompute_encodings
from gtx.encodings import ContinuousFeatureSpec, Encoding
from gtx.graph.constant_shape import BatchShape
from gtx.models import GraphTransformer
from tests.molecules_for_tests import in_double, store

from .test_architectures import NAMES, make

EXTRA: dict[str, dict[str, object]] = {
    "substructures, virtual nodes": {"name": "standard", "substructures": {"folded": 64}, "virtual_nodes": 2},
    "rings": {"name": "standard", "encodings": ("bonds", "ring")},
    "readouts": {"name": "standard", "readout": ("attention", "max")},
    "moments": {"name": "standard", "coordinates": True, "moments": 8},
    "few edges under a mask": {"name": "exphormer", "edge_list": False},
    "triplets in space": {"name": "tgt", "coordinates": True},
}


@pytest.fixture(autouse=True, scope="module")
def double() -> Iterator[None]:
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.fixture(scope="module")
def molecules() -> MoleculeStore:
    """Real molecules, one atom and salts among them, some with unknown coordinates."""
    plain = store()
    generator = torch.Generator().manual_seed(0)
    positions = 2.0 * torch.randn(len(plain.atoms), 3, generator=generator, dtype=torch.float32)
    positions[plain.atom_ptr[1] : plain.atom_ptr[3]] = torch.nan
    y = torch.randn(len(plain), 2, generator=generator)
    y[0, 0] = torch.nan
    return replace(plain, positions=positions).with_targets(y)


def run(model: GraphTransformer, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
    """Outputs, and the gradients of a loss that leaves blanks out."""
    model.zero_grad()
    batch = in_double(batch)
    out = model(batch)
    known = ~batch.y.isnan()
    ((out - batch.y.nan_to_num(0.0)) * known).square().sum().backward()
    return out.detach(), {n: p.grad.clone() for n, p in model.named_parameters() if p.grad is not None}


CANNOT = ["gat", "gatv2", "gaan", "exphormer"]  # they write their edges out, and the number of bonds is not constant
CANNOT += ["tokengt"]  # the number of its tokens is not constant either
CANNOT += ["transformer_m"]  # its channels are drawn anew, and with them the paths, which are not of constant shape
CASES = [*(name for name in NAMES if name not in CANNOT), *EXTRA]


@pytest.mark.parametrize("case", CASES)
def test_outputs_and_gradients_are_those_of_plain_batches(case: str, molecules: MoleculeStore) -> None:
    arguments = {"name": case} | EXTRA.get(case, {})
    model = make(arguments.pop("name"), **arguments).double()
    assert model.constant_shapes
    # two empty places, atoms, pairs and bonds left over
    batch_shape = BatchShape(120, 2000, 300, ((1, 31), (3, 24), (7, 22)))
    index = torch.tensor([8, 3, 0, 4, 7, 6, 5, 2, 1, -1, -1])
    kept = precompute_encodings(molecules, model.compute_encodings, list(model.fixed), torch.device("cpu"), 1 << 30)
    for features in (kept, None) if all(e.constant_shapes for e in model.embedding.encodings) else (kept,):
        out, gradients = run(model, make_constant_shape_batch(molecules, index, batch_shape, features))
        expected, expected_gradients = run(model, molecules.batch(index[index >= 0]))
        torch.testing.assert_close(
            run(model, batch_with_encodings(molecules, kept, index[index >= 0]))[0], expected, rtol=0, atol=1e-10
        )
        assert out.shape == (12, 2)
        torch.testing.assert_close(out[:9], expected, rtol=0, atol=1e-10)
        assert gradients.keys() == expected_gradients.keys()
        for name, gradient in gradients.items():
            scale = max(1.0, float(expected_gradients[name].abs().max()))
            torch.testing.assert_close(gradient, expected_gradients[name], rtol=0, atol=1e-10 * scale, msg=name)


def test_what_is_needed_is_kept_where_there_is_no_room(molecules: MoleculeStore) -> None:
    model = make("standard", encodings=("walk", "ring", "bonds"))
    names = list(model.fixed)
    none = precompute_encodings(molecules, model.compute_encodings, names, torch.device("cpu"), 0)
    assert not none.atoms and not none.pairs
    needed = [name for name, needed in model.fixed.items() if needed]
    assert needed == [name for name in names if "SameRing" in name]
    one = precompute_encodings(molecules, model.compute_encodings, names, torch.device("cpu"), 0, needed)
    assert one.pairs.keys() == set(needed) and one.pairs[needed[0]].dtype == torch.uint8


def test_edges_written_out_or_an_encoding_that_does_not_say_so_take_plain_batches() -> None:
    class Own(Encoding):
        node = ContinuousFeatureSpec(1)

    models = [*map(make, CANNOT), make("standard", edge_list=True), make("standard")]
    assert [model.constant_shapes for model in models] == [False] * (len(CANNOT) + 1) + [True]
    models[-1].embedding.encodings.append(Own())
    assert not models[-1].constant_shapes


@pytest.mark.slow
def test_one_compilation_without_breaks_serves_every_batch(molecules: MoleculeStore) -> None:
    model = make("standard", layers=1, heads=2, channels=8, steps=2, farthest=2, substructures={"folded": 16}).double()
    sampler = ConstantShapeStore(molecules).sampler(4)
    calls = []

    def counter(graph: torch.fx.GraphModule, inputs: list) -> object:
        calls.append(graph)
        return graph

    compiled = torch.compile(model, fullgraph=True, backend=counter)
    batches = [
        index for index in sampler.batches() if len(index) == sampler.batch_shape.molecules
    ]  # no molecule beyond it
    for index in batches:
        batch = in_double(make_constant_shape_batch(molecules, index, sampler.batch_shape))
        torch.testing.assert_close(compiled(batch), model(batch), rtol=0, atol=1e-10)
    assert len(batches) > 1 and len(calls) == 1
