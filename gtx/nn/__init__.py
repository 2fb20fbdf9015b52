"""Layers for PyTorch Geometric models: attention as an edge update, and what is stacked from it."""

from gtx.nn.edge_attention import EdgeAttention
from gtx.nn.embedding import CodeEmbedding, Vocabulary, embed
from gtx.nn.readout import Readout
from gtx.nn.scaling import ClippedScaler
from gtx.nn.transformer_layer import GraphTransformerLayer

__all__ = [
    "ClippedScaler",
    "CodeEmbedding",
    "EdgeAttention",
    "GraphTransformerLayer",
    "Readout",
    "Vocabulary",
    "embed",
]
