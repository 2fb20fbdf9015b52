"""Encodings of a batch of molecules, against PyG's transforms, which take one molecule at a time.

    python -m experiments.speed.bench_encodings

128 molecules of ZINC-12k. The first comparison is random walks of 20 steps (of atoms and of pairs) and shortest paths
by gtx, its `CompleteGraph` included, with PyG's `AddRandomWalkPE(20)`, which yields the atoms' part alone; the second
is Laplacian eigenvectors. The others of gtx follow alone, each with the graph at hand, as in a model with several.
Positions, where an encoding reads them, are random.
"""

from __future__ import annotations

import copy
from argparse import Namespace

import torch
from torch_geometric.transforms import AddLaplacianEigenvectorPE, AddRandomWalkPE

from experiments.speed.harness import Topic, Work
from experiments.speed.measured import main, megabytes, rival_table
from experiments.speed.samples import featurised
from gtx import encodings
from gtx.graph import CompleteGraph
from gtx.molecules import Featuriser

COUNT = 128
WALK, EIGEN = "gtx: RandomWalk(20) + ShortestPath()", "gtx: LaplacianEigenvectors(8)"
TRANSFORMS = {
    "PyG: AddRandomWalkPE(20)": lambda: AddRandomWalkPE(20),
    "PyG: AddLaplacianEigenvectorPE(8)": lambda: AddLaplacianEigenvectorPE(8, is_undirected=True),
}
WITH_GRAPH = {
    WALK: lambda: [encodings.RandomWalk(20), encodings.ShortestPath()],
    EIGEN: lambda: [encodings.LaplacianEigenvectors(8)],
    "gtx: CompleteGraph": list,
}
ALONE = {
    "gtx: ShortestPath()": encodings.ShortestPath,
    "gtx: RandomWalk(20)": lambda: encodings.RandomWalk(20),
    "gtx: Degree()": encodings.Degree,
    "gtx: Bonds": lambda: encodings.Bonds(Featuriser().bond_sizes),
    "gtx: EdgePath": lambda: encodings.EdgePath(Featuriser().bond_sizes[0]),
    "gtx: HopMasks()": encodings.HopMasks,
    "gtx: SameRing()": encodings.SameRing,
    "gtx: GaussianDistance()": encodings.GaussianDistance,
    "gtx: BesselDistance()": encodings.BesselDistance,
    "gtx: ExpNormDistance()": encodings.ExpNormDistance,
    "gtx: FourierDistance()": encodings.FourierDistance,
    "gtx: Moments": lambda: encodings.Moments(encodings.GaussianDistance(64, pair_types=128), 128),
}
FIGURES = {
    "per molecule": lambda record: f"{record['seconds'] / record['molecules'] * 1e6:.3g} µs",
    "peak memory": megabytes,
    "time over gtx": None,
}
RIVALS = {WALK: WALK, EIGEN: EIGEN, **dict(zip(TRANSFORMS, (WALK, EIGEN), strict=True))}


def make_case(name: str, read: Namespace) -> Work:
    """A case, by the name in the table."""
    whole = featurised("zinc12k", COUNT)
    batch = whole.batch(torch.arange(len(whole))).to(read.device)
    batch.pos = torch.randn(batch.num_nodes, 3, device=read.device) * 3
    molecules, graph = batch.to_data_list(), CompleteGraph.from_batch(batch.batch, pack=False)
    part = (TRANSFORMS | WITH_GRAPH | ALONE)[name]()

    def transformed() -> list:
        return [part(copy.copy(molecule)) for molecule in molecules]

    def with_graph() -> list:
        graph = CompleteGraph.from_batch(batch.batch, batch.num_graphs, pack=False)  # as models make it
        return [encoding(batch, graph) for encoding in part]

    def alone() -> object:
        return encoding(batch, graph)

    step = transformed if name in TRANSFORMS else with_graph if name in WITH_GRAPH else alone
    encoding = part.to(read.device) if name in ALONE else None
    facts = {"molecules": len(whole), "nodes": batch.num_nodes}
    return Work({"all": torch.no_grad()(step)}, facts | {"rival": RIVALS.get(name, "")})


def case_groups(read: Namespace) -> list[list[str]]:
    """Each of the two comparisons, and the rest."""
    (walk, eigen), rest = TRANSFORMS, ["gtx: CompleteGraph", *ALONE]
    return [[WALK, walk], [EIGEN, eigen], rest[:3] if read.quick else rest]


TOPIC = Topic(
    "encodings",
    __doc__,
    make_case,
    case_groups,
    lambda records: [rival_table(records, "Encodings", ["encoding"], FIGURES)],
)

if __name__ == "__main__":
    main(TOPIC)
