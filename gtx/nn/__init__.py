"""Layers for PyTorch Geometric models: attention as an edge update, and what is stacked from it."""

from gtx.graph import circular_labels
from gtx.native.elementwise import GELU, Dropout
from gtx.nn.bonds import BondMessages, BondReadout, BondTokens, EmbeddedCodes, Nodes, VirtualNodes
from gtx.nn.decoder_layer import DecoderLayer, KeyValues, TokenEmbedding
from gtx.nn.edge_attention import EdgeAttention
from gtx.nn.embedding import CodeEmbedding, PairEmbedding, PairPortions, TwoChannels, Vocabulary, embed
from gtx.nn.features import ClippedScaler, Substructures, TrainingSet, UserFeatures
from gtx.nn.readout import DegreeScaler, Readout
from gtx.nn.transformer_layer import EdgeUpdate, GPSLayer, GraphTransformerLayer
from gtx.nn.triplet_attention import TripletAttention
from gtx.nn.vector_layer import VectorLayer

__all__ = [
    "GELU",
    "BondMessages",
    "BondReadout",
    "BondTokens",
    "ClippedScaler",
    "CodeEmbedding",
    "DecoderLayer",
    "DegreeScaler",
    "Dropout",
    "EdgeAttention",
    "EdgeUpdate",
    "EmbeddedCodes",
    "GPSLayer",
    "GraphTransformerLayer",
    "KeyValues",
    "Nodes",
    "PairEmbedding",
    "PairPortions",
    "Readout",
    "Substructures",
    "TokenEmbedding",
    "TrainingSet",
    "TripletAttention",
    "TwoChannels",
    "UserFeatures",
    "VectorLayer",
    "VirtualNodes",
    "Vocabulary",
    "circular_labels",
    "embed",
]
