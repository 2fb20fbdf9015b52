"""Layers for PyTorch Geometric models: attention (`EdgeAttention`), and layers that are built from attention."""

from gtx.nn.blocks import LearnedDegreeScaling, Readout
from gtx.nn.bonds import AddBondNodes, AddVirtualNodes, BondMessagePassing
from gtx.nn.decoder_layer import DecoderLayer
from gtx.nn.edge_attention import EdgeAttention
from gtx.nn.edge_states import EdgeStateUpdate, TripletAttention
from gtx.nn.embedding import CategoricalEmbedding, PairEmbedding, TransformerMPairEncoding
from gtx.nn.features import MoleculeModel, SubstructureCountEmbedding
from gtx.nn.transformer_layer import EquivariantAttentionLayer, GPSLayer, GraphTransformerLayer

__all__ = [
    "AddBondNodes",
    "AddVirtualNodes",
    "BondMessagePassing",
    "CategoricalEmbedding",
    "DecoderLayer",
    "EdgeAttention",
    "EdgeStateUpdate",
    "EquivariantAttentionLayer",
    "GPSLayer",
    "GraphTransformerLayer",
    "LearnedDegreeScaling",
    "MoleculeModel",
    "PairEmbedding",
    "Readout",
    "SubstructureCountEmbedding",
    "TransformerMPairEncoding",
    "TripletAttention",
]
