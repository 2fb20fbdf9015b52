"""Batches of constant shape: every molecule once an epoch, never too many, nearly full, and cut as plain ones are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from gtx.data import CapacitySampler, MoleculeStore, cut_to_capacity, featurise, fitting_capacity
from gtx.graph import Capacity
from gtx.molecules import Featuriser

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="module")
def molecules() -> MoleculeStore:
    """Six hundred real ones, of 1 to some 25 atoms."""
    smiles = pd.read_csv(EXAMPLES / "solvation.csv").smiles.tolist()
    made = featurise(Featuriser(), smiles, workers=0).store
    return made.with_targets(np.arange(len(made))[:, None])


@pytest.mark.parametrize("per_batch", [1, 7, 64, 1000])
def test_every_molecule_once_and_never_too_much(molecules: MoleculeStore, per_batch: int) -> None:
    sampler = CapacitySampler.fitting(molecules, per_batch, seed=3)
    capacity, sizes, bonds = sampler.capacity, molecules.sizes, molecules.bond_ptr.diff()
    seen, epochs = [], []
    for epoch in range(3):
        sampler.set_epoch(epoch)
        batches = sampler.batches()
        assert len(batches) == len(sampler)
        for batch in batches:
            which = batch[batch >= 0]
            n = sizes[which]
            assert len(batch) == capacity.molecules and n.tolist() == sorted(n.tolist(), reverse=True)
            assert batch[len(which) :].eq(-1).all()
            assert n.sum() < capacity.atoms and n.square().sum() < capacity.pairs
            assert bonds[which].sum() <= capacity.bonds
            place = 0
            for count, size in capacity.buckets:
                assert (n[place : place + count] <= size).all()
                place += count
        seen.append(sorted(torch.cat(batches)[torch.cat(batches) >= 0].tolist()))
        epochs.append(torch.cat(batches).tolist())
    assert seen == [list(range(len(molecules)))] * 3
    assert epochs[0] != epochs[1] or per_batch == 1000
    again = CapacitySampler.fitting(molecules, per_batch, seed=3)
    assert torch.cat(again.batches()).tolist() == epochs[0]


def test_batches_are_full(molecules: MoleculeStore) -> None:
    for per_batch in (32, 128):
        sampler = CapacitySampler.fitting(molecules, per_batch)
        assert sampler.fullness() > 0.9
        padded = sum(count * size**2 for count, size in sampler.capacity.buckets)
        assert padded < 2 * sampler.capacity.pairs


def test_ranks_share_the_batches(molecules: MoleculeStore) -> None:
    ranks = [list(CapacitySampler.fitting(molecules, 50, rank=r, replicas=2)) for r in range(2)]
    assert len(ranks[0]) == len(ranks[1])
    together = torch.cat([torch.cat(rank) for rank in ranks])
    assert set(together[together >= 0].tolist()) == set(range(len(molecules)))


def test_a_batch_is_the_plain_one_and_a_ghost(molecules: MoleculeStore) -> None:
    sampler = CapacitySampler.fitting(molecules, 40)
    for index in sampler.batches():
        batch, which = cut_to_capacity(molecules, index, sampler.capacity), index[index >= 0]
        plain = molecules.batch(which)
        n, e, b = plain.num_nodes, plain.edge_index.shape[1], len(which)
        for name, count in (("x", n), ("batch", n), ("edge_attr", e), ("u", b), ("y", b), ("row", b)):
            assert torch.equal(batch[name][:count], plain[name]), name
        assert batch.edge_index[:, :e].equal(plain.edge_index)
        assert batch.num_graphs == len(index) + 1 and batch.molecules == b
        shape = (sampler.capacity.atoms, sampler.capacity.bonds, len(index) + 1)
        assert (len(batch.x), batch.edge_index.shape[1], len(batch.y)) == shape
        # the ghost and empty places: no code, no target, no row; its bonds join it to itself
        assert not batch.x[n:].any() and not batch.edge_attr[e:].any() and batch.y[b:].isnan().all()
        assert batch.edge_index[:, e:].eq(sampler.capacity.atoms - 1).all() and batch.row[b:].eq(-1).all()


def test_a_molecule_that_fits_no_batch_is_named() -> None:
    sizes, bonds = torch.tensor([3, 9, 4]), torch.tensor([4, 18, 6])
    with pytest.raises(ValueError, match="but molecule 1 has 9 and 18"):
        CapacitySampler(sizes, bonds, Capacity(30, 200, 40, ((4, 8),)))
    with pytest.raises(ValueError, match="at least one molecule"):
        fitting_capacity(sizes[:0], bonds[:0], 4)


def test_one_huge_molecule_among_small_ones() -> None:
    sizes = torch.tensor([300] + [5] * 200)
    sampler = CapacitySampler(sizes, 2 * sizes, fitting_capacity(sizes, 2 * sizes, 20))
    found = torch.cat(sampler.batches())
    assert sorted(found[found >= 0].tolist()) == list(range(201))
    assert sampler.capacity.buckets[0] == (1, 300)
