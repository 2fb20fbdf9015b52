"""Batches keep to their budget, hold each molecule once, and are decided by seed and epoch alone."""

from __future__ import annotations

import pytest
import torch

from gtx.data import PairBudgetSampler

SIZES = torch.randint(1, 60, (500,), generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("shuffle", [True, False])
def test_each_molecule_once_within_the_budget(shuffle: bool) -> None:
    sampler = PairBudgetSampler(SIZES, budget=20_000, shuffle=shuffle)
    batches = list(sampler)
    assert sorted(torch.cat(batches).tolist()) == list(range(500))
    assert len(batches) == len(sampler)
    assert all(int(SIZES[b].square().sum()) <= 20_000 for b in batches)


def test_one_molecule_beyond_the_budget_is_a_batch_of_its_own() -> None:
    batches = list(PairBudgetSampler(torch.tensor([5, 100, 5]), budget=50, shuffle=False))
    assert [b.tolist() for b in batches] == [[1], [0, 2]]


def test_no_more_molecules_than_asked() -> None:
    assert max(map(len, PairBudgetSampler(SIZES, 10**9, max_molecules=7))) == 7


def test_seed_and_epoch_decide() -> None:
    def draw(seed: int, epoch: int) -> list:
        sampler = PairBudgetSampler(SIZES, 20_000, seed=seed)
        sampler.set_epoch(epoch)
        return [b.tolist() for b in sampler]

    assert draw(1, 3) == draw(1, 3)
    assert draw(1, 3) != draw(1, 4) and draw(1, 3) != draw(2, 3)


@pytest.mark.parametrize("replicas", [2, 3])
def test_ranks_get_equally_many_and_all_molecules(replicas: int) -> None:
    ranks = [list(PairBudgetSampler(SIZES, 20_000, rank=r, replicas=replicas)) for r in range(replicas)]
    assert len(set(map(len, ranks))) == 1
    assert set(torch.cat([b for rank in ranks for b in rank]).tolist()) == set(range(500))
