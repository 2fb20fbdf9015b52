"""Cutting batches out of a store, against PyG's `Batch.from_data_list` and its `DataLoader` with workers.

Every batch of a shuffled epoch over 10,000 molecules of ZINC-12k, 128 at a time; the same molecules with the same
contents, in the store's flat tensors or as a list of `Data`. The workers of the `DataLoader` live on from epoch to
epoch, and the first epoch, in which they start, does not count; their own memory is not in the peak.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Iterable

import torch
from torch_geometric.data import Batch
from torch_geometric.loader import DataLoader

from experiments.speed.harness import Work
from experiments.speed.pages import megabytes, milliseconds, molecule_rate
from experiments.speed.samples import featurised
from gtx.data import MoleculeStore, PairBudgetSampler

COUNT = 128
STORE, SAMPLER, LIST = "gtx: MoleculeStore.batch", "gtx: with its PairBudgetSampler", "PyG: Batch.from_data_list"
LOADERS = {f"PyG: DataLoader, {workers} workers": workers for workers in (0, 1, 2)}
FIGURES = {
    f"per batch of {COUNT}": lambda record: milliseconds(record, record["batches"]),
    "molecules per second": molecule_rate,
    "peak memory": megabytes,
    "time over gtx": None,
}
TABLE = "Batches", ["how"], FIGURES


def groups(options: Namespace) -> list[list[str]]:
    return [[STORE, SAMPLER, LIST, *LOADERS]]


def make(name: str, options: Namespace) -> Work:
    whole = featurised("zinc12k", 1000 if options.quick else 10_000)
    epoch = _epochs(name, whole)
    facts = {"molecules": len(whole), "batches": -(-len(whole) // COUNT), "rival": STORE}
    return Work({"all": lambda: sum(batch.num_graphs for batch in epoch())}, facts, seconds=0.0)


def _epochs(name: str, whole: MoleculeStore) -> Callable[[], Iterable[Batch]]:
    if name == SAMPLER:
        sampler = PairBudgetSampler(whole.sizes, 1 << 60, max_molecules=COUNT, jitter=10.0)
        return lambda: map(whole.batch, sampler)
    if name == STORE:
        return lambda: map(whole.batch, torch.randperm(len(whole)).split(COUNT))
    molecules = [each for start in torch.arange(len(whole)).split(500) for each in whole.batch(start).to_data_list()]
    if name in LOADERS:
        workers = LOADERS[name]
        loader = DataLoader(molecules, COUNT, shuffle=True, num_workers=workers, persistent_workers=workers > 0)
        return lambda: loader
    return lambda: (
        Batch.from_data_list([molecules[i] for i in order.tolist()])
        for order in torch.randperm(len(whole)).split(COUNT)
    )
