"""Graphs say who attends to whom: all pairs of nodes of a molecule, never written out, or fewer, by an edge set."""

from gtx.graph.bipartite import BipartiteGraph, cross_edges, receiver_portions
from gtx.graph.capacity import Capacity, CapacityGraph, NotConstant
from gtx.graph.complete import CompleteGraph
from gtx.graph.edge_sets import (
    AllPairs,
    BondedPairs,
    Causal,
    EdgeSet,
    EitherOf,
    Expander,
    WithinDistance,
    WithinHops,
    WithVirtual,
    circular_labels,
    with_virtual,
)
from gtx.graph.packing import Packing, SizeOrder, SizeRange

__all__ = [
    "AllPairs",
    "BipartiteGraph",
    "BondedPairs",
    "Capacity",
    "CapacityGraph",
    "Causal",
    "CompleteGraph",
    "EdgeSet",
    "EitherOf",
    "Expander",
    "NotConstant",
    "Packing",
    "SizeOrder",
    "SizeRange",
    "WithVirtual",
    "WithinDistance",
    "WithinHops",
    "circular_labels",
    "cross_edges",
    "receiver_portions",
    "with_virtual",
]
