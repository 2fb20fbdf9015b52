"""Graphs say who attends to whom: all pairs of nodes of a molecule, never written out, or fewer, by an edge set."""

from gtx.graph.bipartite import BipartiteGraph
from gtx.graph.capacity import Capacity, CapacityGraph, NotConstant
from gtx.graph.circular_labels import circular_labels
from gtx.graph.complete import CompleteGraph
from gtx.graph.cross import cross_edges
from gtx.graph.edge_sets import AllPairs, BondedPairs, Causal, EdgeSet, EitherOf, WithinDistance, WithinHops
from gtx.graph.expander import Expander
from gtx.graph.packing import Packing
from gtx.graph.size_order import SizeOrder, SizeRange
from gtx.graph.virtual import WithVirtual, with_virtual

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
    "with_virtual",
]
