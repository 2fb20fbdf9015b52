"""Graphs define which nodes attend to which: all pairs of a molecule (never listed), or pairs that a rule selects."""

from gtx.graph.bipartite import BipartiteGraph, list_source_to_target_edges, split_by_receivers
from gtx.graph.complete import CompleteGraph
from gtx.graph.constant_shape import BatchShape, ConstantShapeGraph, ShapeNotConstantError
from gtx.graph.edge_rules import (
    AllPairEdges,
    BondEdges,
    CausalEdges,
    DistanceCutoffEdges,
    EdgeRule,
    EdgeUnion,
    ExpanderEdges,
    GraphWithVirtualNodes,
    HopCutoffEdges,
    add_virtual_nodes,
    hash_atom_environments,
)
from gtx.graph.packing import FlatToPaddedMap, MoleculesBySize, SizeBucket

__all__ = [
    "AllPairEdges",
    "BatchShape",
    "BipartiteGraph",
    "BondEdges",
    "CausalEdges",
    "CompleteGraph",
    "ConstantShapeGraph",
    "DistanceCutoffEdges",
    "EdgeRule",
    "EdgeUnion",
    "ExpanderEdges",
    "FlatToPaddedMap",
    "GraphWithVirtualNodes",
    "HopCutoffEdges",
    "MoleculesBySize",
    "ShapeNotConstantError",
    "SizeBucket",
    "add_virtual_nodes",
    "hash_atom_environments",
    "list_source_to_target_edges",
    "split_by_receivers",
]
