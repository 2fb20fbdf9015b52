"""Batches of molecules within a budget, of constant shape, and of PyG."""

from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor
from torch_geometric.data import Batch, Data
from torch_geometric.utils import from_smiles

from gtx.base.errors import InputError
from gtx.data import MoleculeStore, PairBudgetSampler, featurise, from_pyg
from gtx.data.batches import ConstantShapeSampler, ConstantShapeStore, choose_batch_shape
from gtx.graph.constant_shape import BatchShape
from gtx.molecules import Featuriser
from tests.molecules_for_tests import SMILES, store

SIZES = torch.randint(1, 60, (500,), generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("shuffle", [True, False])
def test_each_molecule_once_within_the_budget(shuffle: bool) -> None:
    sampler = PairBudgetSampler(SIZES, budget=20_000, shuffle=shuffle)
    batches = list(sampler)
    assert sorted(torch.cat(batches).tolist()) == list(range(500))
    assert len(batches) == len(sampler)
    assert all(int(SIZES[b].square().sum()) <= 20_000 for b in batches)


def test_one_molecule_beyond_the_budget_is_a_batch_of_its_own_and_none_has_more_molecules_than_asked() -> None:
    batches = list(PairBudgetSampler(torch.tensor([5, 100, 5]), budget=50, shuffle=False))
    assert [b.tolist() for b in batches] == [[1], [0, 2]]
    assert max(map(len, PairBudgetSampler(SIZES, 10**9, max_molecules=7))) == 7
    with pytest.raises(ValueError, match="expected a positive budget and max_molecules, got 0 and 7"):
        PairBudgetSampler(SIZES, 0, max_molecules=7)


def test_seed_and_epoch_decide() -> None:
    def draw(seed: int, epoch: int) -> list:
        sampler = PairBudgetSampler(SIZES, 20_000, seed=seed)
        sampler.set_epoch(epoch)
        return [b.tolist() for b in sampler]

    assert draw(1, 3) == draw(1, 3)
    assert draw(1, 3) != draw(1, 4) and draw(1, 3) != draw(2, 3)


# --- Batches of constant shape: every molecule once an epoch, never too many, nearly full, and cut as plain ones are.


EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="module")
def molecules() -> MoleculeStore:
    """Real ones, of 1 to some 25 atoms."""
    smiles = pd.read_csv(EXAMPLES / "solvation.csv").smiles[::4].tolist()
    made = featurise(Featuriser(), smiles, workers=0).store
    return made.with_targets(np.arange(len(made))[:, None])


@pytest.mark.parametrize("per_batch", [1, 7, 64, 1000])
def test_every_molecule_once_and_never_too_much(molecules: MoleculeStore, per_batch: int) -> None:
    sampler = ConstantShapeStore(molecules, seed=3).sampler(per_batch, seed=3)
    batch_shape, sizes, bonds = sampler.batch_shape, molecules.sizes, molecules.bond_ptr.diff()
    seen, epochs = [], []
    for epoch in range(3):
        sampler.set_epoch(epoch)
        batches = sampler.batches()
        assert len(batches) == len(sampler)
        for batch in batches:
            which = batch[batch >= 0]
            n = sizes[which]
            assert len(batch) == batch_shape.molecules and n.tolist() == sorted(n.tolist(), reverse=True)
            assert batch[len(which) :].eq(-1).all()
            assert n.sum() < batch_shape.atoms and n.square().sum() < batch_shape.pairs
            assert bonds[which].sum() <= batch_shape.bonds
            place = 0
            for count, size in batch_shape.buckets:
                assert (n[place : place + count] <= size).all()
                place += count
        seen.append(sorted(torch.cat(batches)[torch.cat(batches) >= 0].tolist()))
        epochs.append(torch.cat(batches).tolist())
    assert seen == [list(range(len(molecules)))] * 3
    assert epochs[0] != epochs[1] or per_batch == 1000
    again = ConstantShapeStore(molecules, seed=3).sampler(per_batch, seed=3)
    assert torch.cat(again.batches()).tolist() == epochs[0]


def fullness(sampler: ConstantShapeSampler) -> float:
    """Share of the pairs in the batches of an epoch that belong to molecules."""
    return float(sampler.sizes.square().sum() / sum(sampler.work(batch) for batch in sampler.batches()))


@pytest.mark.parametrize("replicas", [2, 3])
@pytest.mark.parametrize("shape", ["constant", "any"])
def test_ranks_get_equally_many_batches_and_all_molecules(molecules: MoleculeStore, replicas: int, shape: str) -> None:
    kinds = {"constant": partial(ConstantShapeStore(molecules).sampler, 50)}
    sampler = (kinds | {"any": partial(PairBudgetSampler, molecules.sizes, 5_000)})[shape]
    ranks = [list(sampler(rank=r, replicas=replicas)) for r in range(replicas)]
    assert len(set(map(len, ranks))) == 1
    together = torch.cat([torch.cat(rank) for rank in ranks])
    assert set(together[together >= 0].tolist()) == set(range(len(molecules)))


def test_a_molecule_that_fits_no_batch_is_one_of_its_own() -> None:
    sizes, bonds = torch.tensor([3, 9, 4, 3]), torch.tensor([4, 18, 6, 50])
    sampler = ConstantShapeSampler(sizes, bonds, BatchShape(30, 200, 40, ((4, 8),)))
    batches = sorted(batch.tolist() for batch in sampler.batches())
    assert batches == [[1], [2, 0, -1, -1], [3]]
    assert [sampler.work(torch.tensor(batch)) for batch in batches] == [81, 200, 9]
    with pytest.raises(ValueError, match="at least one molecule"):
        choose_batch_shape(sizes[:0], bonds[:0], 4)


@pytest.mark.parametrize("largest", [[500], [500, 300, 200, 180]])
def test_a_few_huge_molecules_leave_the_batches_of_the_others_full(largest: list[int]) -> None:
    drawn = torch.randint(10, 39, (2000,), generator=torch.Generator().manual_seed(0))
    sizes = torch.cat([torch.tensor(largest), drawn])
    sampler = ConstantShapeSampler(sizes, 2 * sizes, choose_batch_shape(sizes, 2 * sizes, 45))
    batches = sampler.batches()
    found = torch.cat(batches)
    assert sorted(found[found >= 0].tolist()) == list(range(len(sizes)))
    alone = [int(batch) for batch in batches if len(batch) == 1]
    assert sorted(alone) == list(range(len(largest)))
    ordinary = ConstantShapeSampler(drawn, 2 * drawn, choose_batch_shape(drawn, 2 * drawn, 45))
    assert fullness(sampler) > fullness(ordinary) - 0.02


def test_a_molecule_alone_is_cut_as_a_plain_batch(molecules: MoleculeStore) -> None:
    huge = featurise(Featuriser(), ["C" * 300], workers=0).store.with_targets(np.zeros((1, 1)))
    cutter = ConstantShapeStore(MoleculeStore.join([molecules, huge]))
    batches = cutter.sampler(30).batches()
    (alone,) = (batch for batch in batches if len(batch) == 1)
    batch = cutter.batch(alone)
    assert batch.num_nodes == 300 and batch.num_graphs == 1 and "graph" not in batch
    pair = ConstantShapeStore(MoleculeStore.join([molecules.subset(torch.tensor([0])), huge]))
    assert sorted(len(batch) for batch in pair.sampler(1).batches()) == [1, 2]  # told apart by their places


# --- PyG's own molecules, and what gtx's models say of them.


def theirs(y: Tensor | None = None) -> list[Data]:
    made = [from_smiles(smiles) for smiles in SMILES]
    for data in made if y is not None else ():
        data.y = y
    return made


def test_they_become_what_gtx_makes_of_their_smiles() -> None:
    ours, mine = from_pyg(theirs()), store()
    assert ours.y is None and ours.atom_columns == mine.atom_columns
    for name in ("x", "edge_index", "edge_attr", "batch"):
        assert ours.batch()[name].equal(mine.batch(range(len(SMILES)))[name])
    assert from_pyg(Batch.from_data_list(theirs()).to_data_list()).batch().x.equal(mine.batch().x)


def test_targets_come_along() -> None:
    for y in (torch.tensor([[1.5, torch.nan]]), torch.tensor([1.5, torch.nan])):
        made = from_pyg(theirs(y)).y
        assert made.shape == (len(SMILES), 2) and made.dtype == torch.float64
        assert made[:, 0].eq(1.5).all() and made[:, 1].isnan().all()


def test_what_cannot_be_translated_is_named() -> None:
    made = theirs(torch.ones(1, 2))
    made[2].y = torch.ones(1, 3)
    with pytest.raises(InputError, match="molecule 2: expected as many targets as molecule 0, 2, got 3"):
        from_pyg(made)
    made[2].y = None
    with pytest.raises(InputError, match=r"molecule 2: .* 2, got None"):
        from_pyg(made)
    made[4].smiles = "C1CC"
    with pytest.raises(InputError, match=r"1 of 9 molecules cannot be read: molecule 4, 'C1CC', .*unclosed ring"):
        from_pyg(made)
    del made[3].smiles
    with pytest.raises(InputError, match=r"molecule 3: expected an attribute smiles that is a text, .* got None"):
        from_pyg(made)
