"""Several conformers are one molecule: their order is nothing, copies of one are one, and unknown ones do not count."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch_geometric.data import Batch

from gtx.data import MoleculeStore
from gtx.models import MultiConformerModel
from gtx.molecules import Featuriser, make_conformer
from tests.models.test_architectures import make
from tests.molecules_for_tests import store

SMILES = ["CCCO", "CC(=O)NC", "C"]
POOLS = pytest.mark.parametrize("pool", ["mean", "attention"])


@pytest.fixture(scope="module")
def molecules() -> MoleculeStore:
    """Three conformers of each; of the second molecule the last is unknown."""
    read = [Featuriser().read(smiles) for smiles in SMILES]
    positions = np.concatenate(
        [np.concatenate([make_conformer(mol, number).positions for number in range(3)], 1) for mol in read]
    )
    made = replace(store(SMILES), positions=torch.from_numpy(positions))
    made.positions[made.atom_ptr[1] : made.atom_ptr[2], 6:] = torch.nan
    return made


@pytest.fixture(scope="module")
def batch(molecules: MoleculeStore) -> Batch:
    return molecules.batch(torch.arange(3))


def pooled(pool: str, name: str = "torchmd_net") -> MultiConformerModel:
    return MultiConformerModel(make(name, coordinates=True), pool).eval()


def of(batch: Batch, *numbers: int) -> Batch:
    """Some of the conformers, in the order given."""
    other = batch.clone()
    other.pos = torch.cat([batch.pos.split(3, 1)[number] for number in numbers], 1)
    return other


@POOLS
def test_one_conformer_is_the_model_itself_and_copies_of_it_are_one(pool: str, batch: Batch) -> None:
    net = pooled(pool)
    one = net.model(of(batch, 0))
    torch.testing.assert_close(net(of(batch, 0)), one)
    torch.testing.assert_close(net(of(batch, 0, 0, 0)), one)


@POOLS
@pytest.mark.parametrize("name", ["torchmd_net", "standard"])
def test_the_order_of_conformers_does_not_matter_but_they_do(pool: str, name: str, batch: Batch) -> None:
    net = pooled(pool, name)
    out = net(batch)
    torch.testing.assert_close(net(of(batch, 2, 0, 1)), out)
    assert (net(of(batch, 0))[0] - out[0]).abs().max() > 1e-5
    for i in range(3):
        alone = batch.get_example(i)
        torch.testing.assert_close(net(Batch.from_data_list([alone])), out[i : i + 1])


@POOLS
def test_an_unknown_conformer_does_not_count(pool: str, batch: Batch) -> None:
    net = pooled(pool)
    _, weights = net.conformers(batch)
    assert weights[1, 2] == 0 and weights[:, :2].gt(0).all()
    torch.testing.assert_close(weights.sum(1), torch.ones(3))
    torch.testing.assert_close(net(batch)[1], net(of(batch, 0, 1))[1])
    assert (weights[0] == weights[0, 0]).all() == (pool == "mean")
    nothing = of(batch, 0, 1)
    nothing.pos = torch.full_like(nothing.pos, torch.nan)
    one = of(nothing, 0)
    torch.testing.assert_close(net(nothing), net.model(one))


@POOLS
def test_gradients_reach_every_weight(pool: str, batch: Batch) -> None:
    net = pooled(pool).train()
    net(batch).square().sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in net.parameters())
    if pool == "attention":
        assert net.weigh.weight.grad.abs().sum() > 0


def test_what_is_wrong_is_named(batch: Batch) -> None:
    with pytest.raises(ValueError, match='expected the pool "mean" or "attention", got \'sum\''):
        pooled("sum")
    with pytest.raises(ValueError, match="expected a model per molecule, got atom"):
        MultiConformerModel(make("standard", coordinates=True, per="atom"))
    other = batch.clone()
    other.pos = batch.pos[:, :4]
    with pytest.raises(ValueError, match=r"expected pos \[N, 3 K\] of K conformers, got \[10, 4\]"):
        pooled("mean")(other)
