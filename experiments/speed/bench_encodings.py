"""Encodings of a batch of molecules, against PyG's transforms, which take one molecule at a time.

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

from experiments.speed.harness import Work
from experiments.speed.pages import megabytes, microseconds
from experiments.speed.samples import featurised
from gtx import encodings
from gtx.graph import CompleteGraph
from gtx.molecules import Featuriser

COUNT = 128
WALK, EIGEN, GRAPH = "gtx: RandomWalk(20) + ShortestPath()", "gtx: LaplacianEigenvectors(8)", "gtx: CompleteGraph"
TRANSFORMS = {
    "PyG: AddRandomWalkPE(20)": lambda: AddRandomWalkPE(20),
    "PyG: AddLaplacianEigenvectorPE(8)": lambda: AddLaplacianEigenvectorPE(8, is_undirected=True),
}
WITH_GRAPH = {
    WALK: lambda: [encodings.RandomWalk(20), encodings.ShortestPath()],
    EIGEN: lambda: [encodings.LaplacianEigenvectors(8)],
    GRAPH: list,
}
NAMES = "ShortestPath Degree HopMasks SameRing GaussianDistance BesselDistance ExpNormDistance FourierDistance"
ALONE = {f"gtx: {name}()": getattr(encodings, name) for name in NAMES.split()} | {
    "gtx: RandomWalk(20)": lambda: encodings.RandomWalk(20),
    "gtx: Bonds": lambda: encodings.Bonds(Featuriser().bond_sizes),
    "gtx: EdgePath": lambda: encodings.EdgePath(Featuriser().bond_sizes[0]),
    "gtx: Moments": lambda: encodings.Moments(encodings.GaussianDistance(64, pair_types=128), 128),
}
PAIRS = [[gtx, pyg] for gtx, pyg in zip((WALK, EIGEN), TRANSFORMS, strict=True)]
RIVALS = {name: pair[0] for pair in PAIRS for name in pair}
FIGURES = {"per molecule": microseconds, "peak memory": megabytes, "time over gtx": None}
TABLE = "Encodings", ["encoding"], FIGURES


def groups(options: Namespace) -> list[list[str]]:
    return [*PAIRS, [GRAPH, *ALONE][: 3 if options.quick else None]]


def make(name: str, options: Namespace) -> Work:
    batch = featurised("zinc12k", COUNT).batch().to(options.device)
    batch.pos = torch.randn(batch.num_nodes, 3, device=options.device) * 3
    molecules, graph = batch.to_data_list(), CompleteGraph.from_batch(batch.batch, pack=False)
    part = (TRANSFORMS | WITH_GRAPH | ALONE)[name]()
    encoding = part.to(options.device) if name in ALONE else None

    @torch.no_grad()
    def step() -> object:
        if name in TRANSFORMS:
            return [part(copy.copy(molecule)) for molecule in molecules]
        if name in ALONE:
            return encoding(batch, graph)
        made = CompleteGraph.from_batch(batch.batch, batch.num_graphs, pack=False)  # as models make it
        return [encoding(batch, made) for encoding in part]

    return Work({"all": step}, {"molecules": batch.num_graphs, "nodes": batch.num_nodes, "rival": RIVALS.get(name, "")})
