"""Encodings of a batch of molecules, against PyG's transforms, which take one molecule at a time.

    python -m experiments.speed.encodings

128 molecules of ZINC-12k. The first comparison is random walks of 20 steps (of atoms and of pairs) and shortest paths
by gtx, its `CompleteGraph` included, with PyG's `AddRandomWalkPE(20)`, which yields the atoms' part alone; the second
is Laplacian eigenvectors. The others of gtx follow alone, each with the graph at hand, as in a model with several.
Positions, where an encoding reads them, are random.
"""

from __future__ import annotations

import argparse
import copy
from collections.abc import Callable, Sequence

import torch
from torch_geometric.data import Batch
from torch_geometric.transforms import AddLaplacianEigenvectorPE, AddRandomWalkPE, BaseTransform

from experiments.speed.cases import Work, options, race, serve
from experiments.speed.molecules import SETS, store
from experiments.speed.results import Table, megabytes, ratio, write
from gtx import encodings
from gtx.encodings import Encoding
from gtx.graph import CompleteGraph
from gtx.molecules import Featuriser

MODULE = "experiments.speed.encodings"
COUNT = 128
WALK, WALK_PYG = "gtx: RandomWalk(20) + ShortestPath()", "PyG: AddRandomWalkPE(20)"
EIGEN, EIGEN_PYG = "gtx: LaplacianEigenvectors(8)", "PyG: AddLaplacianEigenvectorPE(8)"


def alone() -> dict[str, Callable[[], Encoding]]:
    """The encodings of gtx, by the name of their case."""
    bonds = Featuriser().bond_sizes
    made = {
        "CompleteGraph": None,
        "ShortestPath()": encodings.ShortestPath,
        "RandomWalk(20)": lambda: encodings.RandomWalk(20),
        "Degree()": encodings.Degree,
        "Bonds": lambda: encodings.Bonds(bonds),
        "EdgePath": lambda: encodings.EdgePath(bonds[0]),
        "HopMasks()": encodings.HopMasks,
        "SameRing()": encodings.SameRing,
        "GaussianDistance()": encodings.GaussianDistance,
        "BesselDistance()": encodings.BesselDistance,
        "ExpNormDistance()": encodings.ExpNormDistance,
        "FourierDistance()": encodings.FourierDistance,
        "Moments": lambda: encodings.Moments(encodings.GaussianDistance(64, pair_types=128), 128),
    }
    return {f"gtx: {name}": encoding for name, encoding in made.items()}


def make(name: str, device: str = "cpu", set: str = "zinc12k") -> Work:
    """A case, by the name in the table."""
    whole = store(set, COUNT)
    batch = whole.batch(torch.arange(len(whole))).to(device)
    batch.pos = torch.randn(batch.num_nodes, 3, device=device) * 3
    facts = {"molecules": len(whole), "nodes": batch.num_nodes}
    if name in (WALK_PYG, EIGEN_PYG):
        transform = AddRandomWalkPE(20) if name == WALK_PYG else AddLaplacianEigenvectorPE(8, is_undirected=True)
        return Work({"all": _each(transform, batch)}, facts)
    if name == WALK:
        return Work({"all": _together([encodings.RandomWalk(20), encodings.ShortestPath()], batch)}, facts)
    if name == EIGEN:
        return Work({"all": _together([encodings.LaplacianEigenvectors(8)], batch)}, facts)
    if name == "gtx: CompleteGraph":
        return Work({"all": _together([], batch)}, facts)
    encoding, graph = alone()[name]().to(device), CompleteGraph.from_batch(batch.batch, pack=False)
    return Work({"all": torch.no_grad()(lambda: encoding(batch, graph))}, facts)


def _together(parts: Sequence[Encoding], batch: Batch) -> Callable[[], list]:
    @torch.no_grad()
    def step() -> list:
        graph = CompleteGraph.from_batch(batch.batch, batch.num_graphs, pack=False)  # as models make it
        return [encoding(batch, graph) for encoding in parts]

    return step


def _each(transform: BaseTransform, batch: Batch) -> Callable[[], list]:
    molecules = batch.to_data_list()
    return lambda: [transform(copy.copy(molecule)) for molecule in molecules]


def tables(records: Sequence[dict]) -> list[Table]:
    """Per molecule."""
    found = {record["case"]: record for record in records}
    beside = {WALK: WALK, WALK_PYG: WALK, EIGEN: EIGEN, EIGEN_PYG: EIGEN}
    rows = []
    for case, record in found.items():
        if "failed" in record:
            rows.append([case, record["failed"], "", ""])
        else:
            each = f"{record['seconds'] / record['molecules'] * 1e6:.3g} µs"
            rows.append([case, each, megabytes(record), ratio(record, found.get(beside.get(case)))])
    return [Table("Encodings", ["encoding", "per molecule", "peak memory", "time over gtx"], rows)]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure all, or be the process of one case."""

    def more(parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--set", default="zinc12k", choices=list(SETS), help="molecules to take")

    read = options(__doc__, arguments, more)
    if read.case:
        return serve(lambda name: make(name, read.device, read.set), read)
    groups = [[WALK, WALK_PYG], [EIGEN, EIGEN_PYG], list(alone())[:3] if read.quick else list(alone())]
    words = ["--set", read.set]
    records = [record for group in groups for record in race(MODULE, group, read, words=words)]
    write("encodings", __doc__, read, records, tables(records), set=read.set)


if __name__ == "__main__":
    main()
