"""Features of atoms and bonds that the user gives reach the prediction of every model that embeds atoms and bonds."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from gtx.data import MoleculeStore
from gtx.data.batches import make_constant_shape_batch
from gtx.graph.constant_shape import BatchShape
from gtx.models import ARCHITECTURES, GraphTransformer
from gtx.nn.features import UserFeatureProjection
from tests.molecules_for_tests import located, renumbered, store

from .test_architectures import FEATURISER, NAMES, close

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
    usual = {"atom_sizes": FEATURISER.atom_sizes, "bond_sizes": FEATURISER.bond_sizes, "channels": 16, "layers": 2}
    usual |= {"heads": 4, "coordinates": ARCHITECTURES[name].coordinates == "needed", "atom_features": 2}
    model = ARCHITECTURES[name].make(2, **usual | {"bond_features": int(name not in NO_BONDS)} | arguments)
    model.observe(molecules)
    return model.eval()


@pytest.mark.parametrize("name", NAMES)
def test_they_reach_the_output_whatever_the_order_of_the_atoms(name: str, molecules: MoleculeStore) -> None:
    model, batch = make(name, molecules), located(molecules.batch())
    out = model(batch)
    assert out.isfinite().all()
    for kind, bonded in (("atom", slice(None)), ("bond", [0, 3, 4])) if name not in NO_BONDS else (("atom", [1, 2]),):
        other = batch.clone()
        other[f"{kind}_features"] = given(1).batch()[f"{kind}_features"]
        assert (model(other) != out).any(1)[bonded].all(), kind
    other, order = renumbered(batch)
    other.atom_features = batch.atom_features[order]
    close(model(other), out, 1e-5)
    model.train()(batch).square().sum().backward()
    assert [key for key, p in model.named_parameters() if p.grad is None] == []


@pytest.mark.parametrize("name", NO_BONDS)
def test_a_model_without_bonds_refuses_features_of_bonds(name: str, molecules: MoleculeStore) -> None:
    with pytest.raises(ValueError, match="embeds neither bonds nor pairs cannot read bond_features"):
        make(name, molecules, bond_features=1)


@pytest.mark.parametrize("per", ["molecule", "atom", "bond"])
def test_batches_of_constant_shape_and_edge_lists_have_them_too(per: str, molecules: MoleculeStore) -> None:
    def double(batch: object) -> object:
        return batch.apply(lambda values: values.double() if values.is_floating_point() else values)

    model = make("standard", molecules, per=per).double()
    index = torch.tensor([8, 3, 0, 4, 7, 6, 5, 2, 1, -1, -1])
    plain = double(molecules.batch(index[:9]))
    expected = model(plain)
    whole = double(make_constant_shape_batch(molecules, index, BatchShape(120, 2000, 300, ((1, 31), (3, 24), (7, 22)))))
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
    torch.testing.assert_close(features(replace_features(rows), embedded), embedded)


def replace_features(values: Tensor) -> object:
    return type("Atoms", (), {"atom_features": values})()


def test_molecules_without_them_are_refused(molecules: MoleculeStore) -> None:
    model = make("standard", molecules)
    with pytest.raises(ValueError, match=r"atom_features: expected \[n, 2\], see gtx.data.FeatureColumns; got none"):
        model(store().batch())
    with pytest.raises(ValueError, match=r"bond_features: expected \[n, 1\].*got \[188, 3\]"):
        model(replace(molecules, bond_features=torch.zeros(molecules.bonds.shape[1], 3)).batch())
