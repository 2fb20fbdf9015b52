"""Layers for PyTorch Geometric models: attention as an edge update, and what is stacked from it."""

from gtx.nn.degree_scaler import DegreeScaler
from gtx.nn.dropout import Dropout
from gtx.nn.edge_attention import EdgeAttention
from gtx.nn.edge_update import EdgeUpdate
from gtx.nn.embedding import CodeEmbedding, Vocabulary, embed
from gtx.nn.gps_layer import GPSLayer
from gtx.nn.pair_embedding import PairEmbedding
from gtx.nn.readout import Readout
from gtx.nn.scaling import ClippedScaler
from gtx.nn.stochastic_depth import StochasticDepth
from gtx.nn.transformer_layer import GraphTransformerLayer
from gtx.nn.virtual_nodes import Nodes, VirtualNodes

__all__ = [
    "ClippedScaler",
    "CodeEmbedding",
    "DegreeScaler",
    "Dropout",
    "EdgeAttention",
    "EdgeUpdate",
    "GPSLayer",
    "GraphTransformerLayer",
    "Nodes",
    "PairEmbedding",
    "Readout",
    "StochasticDepth",
    "VirtualNodes",
    "Vocabulary",
    "embed",
]
