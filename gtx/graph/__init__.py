"""Graphs define which nodes attend to which: all pairs of a molecule (never listed), or pairs that a rule selects."""

from gtx.graph.bipartite import BipartiteGraph, list_cross_edges, split_by_receivers
from gtx.graph.capacity import BatchShape, ConstantShapeGraph, ShapeNotConstantError
from gtx.graph.complete import CompleteGraph
from gtx.graph.edge_sets import (
    AllPairs,
    BondedPairs,
    CausalPairs,
    EdgeRule,
    EdgeUnion,
    ExpanderEdges,
    GraphWithVirtualNodes,
    WithinDistance,
    WithinHops,
    add_virtual_nodes,
    hash_atom_environments,
)
from gtx.graph.packing import MoleculeSizeOrder, RowPacking, SizeBucket

__all__ = [
    "AllPairs",
    "BatchShape",
    "BipartiteGraph",
    "BondedPairs",
    "CausalPairs",
    "CompleteGraph",
    "ConstantShapeGraph",
    "EdgeRule",
    "EdgeUnion",
    "ExpanderEdges",
    "GraphWithVirtualNodes",
    "MoleculeSizeOrder",
    "RowPacking",
    "ShapeNotConstantError",
    "SizeBucket",
    "WithinDistance",
    "WithinHops",
    "add_virtual_nodes",
    "hash_atom_environments",
    "list_cross_edges",
    "split_by_receivers",
]
