"""Graphs define which nodes attend to which: all pairs of a molecule (never listed), or pairs that a rule selects."""

from gtx.graph.complete import BipartiteGraph, CompleteGraph
from gtx.graph.edge_selectors import (
    AllPairEdges,
    BondEdges,
    CausalEdges,
    DistanceCutoffEdges,
    EdgeSelector,
    ExpanderEdges,
    HopCutoffEdges,
    add_virtual_nodes,
)

__all__ = [
    "AllPairEdges",
    "BipartiteGraph",
    "BondEdges",
    "CausalEdges",
    "CompleteGraph",
    "DistanceCutoffEdges",
    "EdgeSelector",
    "ExpanderEdges",
    "HopCutoffEdges",
    "add_virtual_nodes",
]
