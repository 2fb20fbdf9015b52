"""What a batch must hold: gtx's codes, and the features of atoms and bonds that the user gives."""

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch_geometric.data import Batch, Data
from torch_geometric.utils import from_smiles

from gtx.base.errors import InputError
from gtx.data import MoleculeStore
from gtx.data.batches import make_constant_shape_batch
from gtx.graph.constant_shape import BatchShape
from gtx.models import ARCHITECTURES, GraphTransformer, build_model, gat, standard
from gtx.molecules import Featuriser
from gtx.nn.features import UserFeatureProjection
from gtx.testing import example_batch
from tests.molecules_for_tests import CODE_SIZES, SMILES, in_double, renumbered, store, whole_batch

from .test_architectures import NAMES, close

NO_BONDS = ["transformer", "gat", "gaan", "mat", "torchmd_net"]


def given(seed: int = 0) -> MoleculeStore:
    """Real molecules with two numbers of each atom and one of each bond, of which some are unknown."""
    plain, generator = store(), torch.Generator().manual_seed(seed)
    atoms = 3 + torch.randn(len(plain.atoms), 2, generator=generator)
    bonds = torch.randn(plain.bonds.shape[1] // 2, 1, generator=generator).repeat_interleave(2, 0)
    atoms[5, 1], bonds[:2] = torch.nan, torch.nan
    return replace(plain, atom_features=atoms, bond_features=bonds)


@pytest.fixture(scope="module")
def molecules() -> MoleculeStore:
    return given()


def make(name: str, molecules: MoleculeStore, **arguments: object) -> GraphTransformer:
    torch.manual_seed(0)
    usual = {**CODE_SIZES, "channels": 16, "layers": 2}
    usual |= {"heads": 4, "coordinates": ARCHITECTURES[name].coordinates == "needed", "atom_features": 2}
    model = ARCHITECTURES[name].make(2, **usual | {"bond_features": int(name not in NO_BONDS)} | arguments)
    model.observe(molecules)
    return model.eval()


@pytest.mark.parametrize("name", NAMES)
def test_they_reach_the_output_whatever_the_order_of_the_atoms(name: str, molecules: MoleculeStore) -> None:
    model, batch = make(name, molecules), molecules.batch()
    batch.pos = example_batch(positions="partial").pos
    out = model(batch)
    assert out.isfinite().all()
    for kind, bonded in (("atom", slice(None)), ("bond", [0, 3, 4])) if name not in NO_BONDS else (("atom", [1, 2]),):
        other = batch.clone()
        other[f"{kind}_features"] = given(1).batch()[f"{kind}_features"]
        assert (model(other) != out).any(1)[bonded].all(), kind
    close(model(renumbered(batch)[0]), out, 1e-5)
    model.train()(batch).square().sum().backward()
    assert [key for key, p in model.named_parameters() if p.grad is None] == []


@pytest.mark.parametrize("per", ["molecule", "atom", "bond"])
def test_batches_of_constant_shape_and_edge_lists_have_them_too(per: str, molecules: MoleculeStore) -> None:
    model = make("standard", molecules, per=per).double()
    index = torch.tensor([8, 3, 0, 4, 7, 6, 5, 2, 1, -1, -1])
    plain = in_double(molecules.batch(index[:9]))
    expected = model(plain)
    whole = in_double(
        make_constant_shape_batch(molecules, index, BatchShape(120, 2000, 300, ((1, 31), (3, 24), (7, 22))))
    )
    torch.testing.assert_close(model(whole)[: len(expected)], expected, rtol=0, atol=1e-7)
    listed = make("standard", molecules, per=per, edge_list=True).double()
    torch.testing.assert_close(listed(plain), expected, rtol=0, atol=1e-7)


def test_a_bond_is_told_by_its_own_number(molecules: MoleculeStore) -> None:
    model, batch = make("standard", molecules, per="bond", layers=1), molecules.batch()
    batch.bond_features[10:12] += 1
    moved = (model(batch) - model(molecules.batch())).abs().sum(1)
    assert moved.argmax().item() in (10, 11)
    torch.testing.assert_close(moved[10], moved[11])


def test_they_are_scaled_by_the_training_molecules_and_the_unknown_adds_nothing(molecules: MoleculeStore) -> None:
    features = UserFeatureProjection("atom_features", 2, 4)
    features.observe(molecules)
    known = molecules.atom_features[:, 0]
    torch.testing.assert_close(features.scaler.mean[0], known.mean())
    torch.testing.assert_close(1 / features.scaler.scale[0], known.std(correction=0))
    rows = torch.tensor([[torch.nan, torch.nan], features.scaler.mean.tolist()])
    embedded = torch.randn(2, 4)
    torch.testing.assert_close(features(Data(atom_features=rows), embedded), embedded)


def test_molecules_without_them_are_refused(molecules: MoleculeStore) -> None:
    model = make("standard", molecules)
    with pytest.raises(ValueError, match=r"atom_features: expected \[n, 2\], see gtx.data.FeatureColumns; got none"):
        model(store().batch())
    with pytest.raises(ValueError, match=r"bond_features: expected \[n, 1\].*got \[188, 3\]"):
        model(replace(molecules, bond_features=torch.zeros(molecules.bonds.shape[1], 3)).batch())


# --- A batch with other codes than gtx's is refused, and the attribute and the column are named.


READ = Featuriser()
PRETRAINED = {"sha256": "a", "width": 3}
SMALL = {"channels": 8, "layers": 1, "heads": 2}


@pytest.fixture(scope="module")
def model() -> GraphTransformer:
    return standard(1, **CODE_SIZES, num_descriptors=READ.num_descriptors, **SMALL).eval()


def test_data_of_pyg_are_refused_and_the_way_is_said(model: GraphTransformer) -> None:
    made = [from_smiles(smiles) for smiles in SMILES]
    expected = (
        r"^batch.x: expected 10 codes for each atom, integers \[n, 10\], as gtx.molecules.Featuriser makes them; "
    )
    with pytest.raises(InputError, match=expected + r"gtx.data.from_pyg .* got torch.int64 \[\d+, 9\]$"):
        model(Batch.from_data_list(made))
    with pytest.raises(InputError, match=r"got a Data without an attribute batch; .*Batch.from_data_list"):
        model(made[0])


@pytest.mark.parametrize(("make", "name", "near"), [(standard, "chanels", "channels"), (gat, "head", "heads")])
def test_an_argument_that_is_not_there_is_named(make: Callable, name: str, near: str) -> None:
    words = f"^the model {make.__name__} has no argument '{name}'; did you mean '{near}'"
    with pytest.raises(TypeError, match=words):
        make(1, **CODE_SIZES, **{name: 8})


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("kernel", {"labels": [[{"atoms": [0]}]]}, r"^labels\[0\]\[0\].radius: this entry is missing$"),
        ("kernel", {"labels": [[{"radius": "1"}]]}, "radius: expected a whole number, got '1'$"),
        ("kernel", {"labels": [[{"radius": 21}]]}, "radius: expected a number of at most 20, got 21$"),
        ("kernel", {"labels": [[{"radius": 1, "atoms": [10]}]]}, r"expected atoms columns from 0 to 9, got \[10\]$"),
        ("kernel", {"labels": [[{"radius": 1, "bond": [0]}]]}, r"expected radius, atoms and bonds, got \['bond'\]$"),
        ("torchmd_net", {"attention_dropout": 0.5}, "torchmd_net has no dropout of attention weights, got 0.5"),
        ("kernel", {"foundation": PRETRAINED | {"sides": [[3], [3]]}}, "foundation: expected sides None, got"),
        ("gatt", {}, "its model 'gatt' is unknown; gtx has standard"),
    ],
)
def test_an_argument_at_fault_is_named(name: str, arguments: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build_model({"name": name, "arguments": {"out_channels": 1, **CODE_SIZES, **arguments}})


def test_a_pretrained_network_that_is_not_there_and_an_encoding_that_gtx_lacks() -> None:
    with pytest.raises(ValueError, match="the model reads embeddings, and has no network that makes them"):
        standard(1, **CODE_SIZES, **SMALL, foundation=PRETRAINED)(whole_batch())
    with pytest.raises(ValueError, match=r"expected encodings out of bonds, path, .*, got \['paths'\]"):
        standard(1, **CODE_SIZES, encodings=["paths"])


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
    assert torch.isfinite(gat(1, **CODE_SIZES, **SMALL)(bare)).all()
