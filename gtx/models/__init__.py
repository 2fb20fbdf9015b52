"""Whole models: the graph transformer and its named settings."""

from __future__ import annotations

from gtx.models.attention_maps import AttentionMaps
from gtx.models.building import build_model
from gtx.models.catalogue import ARCHITECTURES, SOLVED, WRITERS, Architecture
from gtx.models.components import Components
from gtx.models.egt import egt, tgt
from gtx.models.exphormer import exphormer
from gtx.models.gat import gaan, gat, gatv2
from gtx.models.gps import gps
from gtx.models.graph_transformer import GraphTransformer
from gtx.models.graphormer import graphormer
from gtx.models.grit import grit
from gtx.models.kernel import kernel
from gtx.models.mat import mat
from gtx.models.over_conformers import OverConformers
from gtx.models.rmat import rmat
from gtx.models.sequence import CrossAttentionMaps, MoleculeToSequence, SequenceEncoder, molecule_to_sequence
from gtx.models.standard import standard
from gtx.models.token_transformer import BASE, TokenTransformer
from gtx.models.tokengt import tokengt
from gtx.models.torchmd_net import torchmd_net
from gtx.models.transformer import transformer
from gtx.models.transformer_m import transformer_m

__all__ = [
    "ARCHITECTURES",
    "BASE",
    "SOLVED",
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
