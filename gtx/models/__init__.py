"""Complete models: the graph transformer, and named settings of the graph transformer such as `standard`."""

from __future__ import annotations

from gtx.models.all_pairs import egt, gps, graphormer, grit, tgt, transformer
from gtx.models.assembly import LayerSettings, graph_transformer
from gtx.models.catalogue import ARCHITECTURES, Architecture, build_model
from gtx.models.composites import MultiComponentModel, MultiConformerModel
from gtx.models.embedding import EmbeddedMolecules, MoleculeEmbedding
from gtx.models.graph_transformer import (
    AttentionMaps,
    GraphTransformer,
    LevelOutput,
    LevelReadout,
    MoleculeModel,
    make_head,
)
from gtx.models.in_space import mat, rmat, torchmd_net, transformer_m
from gtx.models.sparse import exphormer, gaan, gat, gatv2, tokengt
from gtx.models.standard import kernel_ridge, standard

__all__ = [
    "ARCHITECTURES",
    "Architecture",
    "AttentionMaps",
    "EmbeddedMolecules",
    "GraphTransformer",
    "LayerSettings",
    "LevelOutput",
    "LevelReadout",
    "MoleculeEmbedding",
    "MoleculeModel",
    "MultiComponentModel",
    "MultiConformerModel",
    "build_model",
    "egt",
    "exphormer",
    "gaan",
    "gat",
    "gatv2",
    "gps",
    "graph_transformer",
    "graphormer",
    "grit",
    "kernel_ridge",
    "make_head",
    "mat",
    "rmat",
    "standard",
    "tgt",
    "tokengt",
    "torchmd_net",
    "transformer",
    "transformer_m",
]
