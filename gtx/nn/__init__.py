"""Layers for PyTorch Geometric models: attention (`EdgeAttention`), and layers that are built from attention."""

from gtx.elementwise import GELU, Dropout
from gtx.graph import hash_atom_environments
from gtx.nn.bonds import (
    AddBondNodes,
    AddVirtualNodes,
    BondMessagePassing,
    BondVectorFromAtoms,
    LazyBondEmbedding,
    OriginalAndVirtualNodes,
)
from gtx.nn.decoder_layer import DecoderLayer, KeyValueCache, TokenEmbedding
from gtx.nn.edge_attention import EdgeAttention
from gtx.nn.embedding import (
    CategoricalEmbedding,
    CategoryVocabulary,
    ChunkedPairEmbedding,
    GraphAndSpaceEncoding,
    PairEmbedding,
    make_embedding,
)
from gtx.nn.features import ClippedStandardScaler, SubstructureEmbedding, TrainingMolecules, UserFeatureProjection
from gtx.nn.readout import LearnedDegreeScaling, Readout
from gtx.nn.transformer_layer import EdgeStateUpdate, GPSLayer, GraphTransformerLayer
from gtx.nn.triplet_attention import TripletAttention
from gtx.nn.vector_layer import EquivariantAttentionLayer

__all__ = [
    "GELU",
    "AddBondNodes",
    "AddVirtualNodes",
    "BondMessagePassing",
    "BondVectorFromAtoms",
    "CategoricalEmbedding",
    "CategoryVocabulary",
    "ChunkedPairEmbedding",
    "ClippedStandardScaler",
    "DecoderLayer",
    "Dropout",
    "EdgeAttention",
    "EdgeStateUpdate",
    "EquivariantAttentionLayer",
    "GPSLayer",
    "GraphAndSpaceEncoding",
    "GraphTransformerLayer",
    "KeyValueCache",
    "LazyBondEmbedding",
    "LearnedDegreeScaling",
    "OriginalAndVirtualNodes",
    "PairEmbedding",
    "Readout",
    "SubstructureEmbedding",
    "TokenEmbedding",
    "TrainingMolecules",
    "TripletAttention",
    "UserFeatureProjection",
    "hash_atom_environments",
    "make_embedding",
]
