"""Layers for PyTorch Geometric models: attention (`EdgeAttention`), and layers that are built from attention."""

from gtx.nn.bonds import AddBondNodes, AddVirtualNodes, BondMessagePassing
from gtx.nn.decoder_layer import DecoderLayer
from gtx.nn.edge_attention import EdgeAttention
from gtx.nn.embedding import CategoricalEmbedding, PairEmbedding, TransformerMPairEncoding
from gtx.nn.features import SubstructureCountEmbedding
from gtx.nn.molecule_model import MoleculeModel
from gtx.nn.readout import LearnedDegreeScaling, Readout
from gtx.nn.transformer_layer import EdgeStateUpdate, GPSLayer, GraphTransformerLayer
from gtx.nn.triplet_attention import TripletAttention
from gtx.nn.vector_layer import EquivariantAttentionLayer

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
