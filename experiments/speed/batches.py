"""Cutting batches out of a store, against PyG's `Batch.from_data_list` and its `DataLoader` with workers.

    python -m experiments.speed.batches

Every batch of a shuffled epoch over 10,000 molecules of ZINC-12k, 128 at a time; the same molecules with the same
contents, in the store's flat tensors or as a list of `Data`. The workers of the `DataLoader` live on from epoch to
epoch, and the first epoch, in which they start, does not count; their own memory is not in the peak.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor
from torch_geometric.data import Batch
from torch_geometric.loader import DataLoader

from experiments.speed.cases import Work, options, race, serve
from experiments.speed.molecules import SETS, store
from experiments.speed.results import Table, megabytes, ratio, write
from gtx.data import MoleculeStore, PairBudgetSampler

MODULE = "experiments.speed.batches"
COUNT = 128
STORE, SAMPLER, LIST = "gtx: MoleculeStore.batch", "gtx: with its PairBudgetSampler", "PyG: Batch.from_data_list"
LOADERS = {f"PyG: DataLoader, {workers} workers": workers for workers in (0, 1, 2)}


def make(name: str, molecules: int, set: str = "zinc12k") -> Work:
    """A case, by the name in the table."""
    whole = store(set, molecules)
    count = -(-len(whole) // COUNT)
    work = _epochs(name, whole)
    return Work({"all": lambda: _use(work())}, {"molecules": len(whole), "batches": count}, seconds=0.0)


def _epochs(name: str, whole: MoleculeStore) -> Callable[[], Iterator[Batch]]:
    if name == STORE:
        return lambda: map(whole.batch, _orders(len(whole)))
    if name == SAMPLER:
        sampler = PairBudgetSampler(whole.sizes, 1 << 60, max_molecules=COUNT, jitter=10.0)
        return lambda: map(whole.batch, sampler)
    molecules = [each for start in torch.arange(len(whole)).split(500) for each in whole.batch(start).to_data_list()]
    if name == LIST:
        return lambda: (Batch.from_data_list([molecules[i] for i in order.tolist()]) for order in _orders(len(whole)))
    workers = LOADERS[name]
    loader = DataLoader(molecules, COUNT, shuffle=True, num_workers=workers, persistent_workers=workers > 0)
    return lambda: iter(loader)


def _orders(count: int) -> tuple[Tensor, ...]:
    return torch.randperm(count).split(COUNT)


def _use(batches: Iterator[Batch]) -> None:
    for batch in batches:
        assert batch.num_graphs


def tables(records: Sequence[dict]) -> list[Table]:
    """Per batch."""
    gtx = next((record for record in records if record["case"] == STORE), None)
    rows = []
    for record in records:
        if "failed" in record:
            rows.append([record["case"], record["failed"], "", "", ""])
        else:
            each = f"{record['seconds'] / record['batches'] * 1e3:.3g} ms"
            rate = f"{record['molecules'] / record['seconds']:,.0f}"
            rows.append([record["case"], each, rate, megabytes(record), ratio(record, gtx)])
    columns = ["how", f"per batch of {COUNT}", "molecules per second", "peak memory", "time over gtx"]
    return [Table("Batches", columns, rows)]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure all, or be the process of one case."""

    def more(parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--set", default="zinc12k", choices=list(SETS), help="molecules to take")
        parser.add_argument("--molecules", type=int, help="how many (default 10,000; quick 1,000)")

    read = options(__doc__, arguments, more)
    molecules = read.molecules or (1000 if read.quick else 10_000)
    if read.case:
        return serve(lambda name: make(name, molecules, read.set), read)
    words = ["--set", read.set, "--molecules", str(molecules)]
    records = race(MODULE, [STORE, SAMPLER, LIST, *LOADERS], read, words=words)
    write("batches", __doc__, read, records, tables(records), set=read.set)


if __name__ == "__main__":
    main()
