"""Whole models: the graph transformer and its named settings."""

from __future__ import annotations

from gtx.models.all_pairs import egt, gps, graphormer, grit, tgt, transformer
from gtx.models.catalogue import ARCHITECTURES, CLOSED_FORM, WRITERS, Architecture, build_model
from gtx.models.composites import Components, OverConformers
from gtx.models.graph_transformer import AttentionMaps, GraphTransformer
from gtx.models.in_space import mat, rmat, torchmd_net, transformer_m
from gtx.models.sequence import CrossAttentionMaps, MoleculeToSequence, SequenceEncoder, molecule_to_sequence
from gtx.models.sparse import exphormer, gaan, gat, gatv2, tokengt
from gtx.models.standard import kernel, standard
from gtx.models.token_transformer import BASE, TokenTransformer

__all__ = [
    "ARCHITECTURES",
    "BASE",
    "CLOSED_FORM",
    "WRITERS",
    "Architecture",
    "AttentionMaps",
    "Components",
    "CrossAttentionMaps",
    "GraphTransformer",
    "MoleculeToSequence",
    "OverConformers",
    "SequenceEncoder",
    "TokenTransformer",
    "build_model",
    "egt",
    "exphormer",
    "gaan",
    "gat",
    "gatv2",
    "gps",
    "graphormer",
    "grit",
    "kernel",
    "mat",
    "molecule_to_sequence",
    "rmat",
    "standard",
    "tgt",
    "tokengt",
    "torchmd_net",
    "transformer",
    "transformer_m",
]
