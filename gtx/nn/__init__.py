"""Layers for PyTorch Geometric models: attention (`EdgeAttention`), and layers that are built from attention."""

from gtx.elementwise import GELU, Dropout
from gtx.graph import hash_atom_environments
from gtx.nn.bonds import (
    AddBondNodes,
    AddVirtualNodes,
    BondMessagePassing,
    BondReadout,
    EmbeddedBondFeatures,
    NodeIndices,
)
from gtx.nn.decoder_layer import DecoderLayer, KeyValues, TokenEmbedding
from gtx.nn.edge_attention import EdgeAttention
from gtx.nn.embedding import (
    CategoricalEmbedding,
    CategoryVocabulary,
    ChunkedPairEmbedding,
    GraphAndSpaceEncoding,
    PairEmbedding,
    make_embedding,
)
from gtx.nn.features import ClippedScaler, SubstructureEmbedding, TrainingMolecules, UserFeatures
from gtx.nn.readout import DegreeScaler, Readout
from gtx.nn.transformer_layer import EdgeStateUpdate, GPSLayer, GraphTransformerLayer
from gtx.nn.triplet_attention import TripletAttention
from gtx.nn.vector_layer import EquivariantAttentionLayer

__all__ = [
    "GELU",
    "AddBondNodes",
    "AddVirtualNodes",
    "BondMessagePassing",
    "BondReadout",
    "CategoricalEmbedding",
    "CategoryVocabulary",
    "ChunkedPairEmbedding",
    "ClippedScaler",
    "DecoderLayer",
    "DegreeScaler",
    "Dropout",
    "EdgeAttention",
    "EdgeStateUpdate",
    "EmbeddedBondFeatures",
    "EquivariantAttentionLayer",
    "GPSLayer",
    "GraphAndSpaceEncoding",
    "GraphTransformerLayer",
    "KeyValues",
    "NodeIndices",
    "PairEmbedding",
    "Readout",
    "SubstructureEmbedding",
    "TokenEmbedding",
    "TrainingMolecules",
    "TripletAttention",
    "UserFeatures",
    "hash_atom_environments",
    "make_embedding",
]
