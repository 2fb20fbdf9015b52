"""Layers for PyTorch Geometric models: attention as an edge update, and what is stacked from it."""

from gtx.gelu import GELU
from gtx.graph import circular_labels
from gtx.nn.bond_messages import BondMessages, EmbeddedCodes
from gtx.nn.bond_readout import BondReadout
from gtx.nn.bond_tokens import BondTokens
from gtx.nn.decoder_layer import DecoderLayer
from gtx.nn.degree_scaler import DegreeScaler
from gtx.nn.dropout import Dropout
from gtx.nn.edge_attention import EdgeAttention
from gtx.nn.edge_update import EdgeUpdate
from gtx.nn.embedding import CodeEmbedding, Vocabulary, embed
from gtx.nn.given_features import GivenFeatures
from gtx.nn.gps_layer import GPSLayer
from gtx.nn.key_values import KeyValues
from gtx.nn.pair_embedding import PairEmbedding
from gtx.nn.readout import Readout
from gtx.nn.scaling import ClippedScaler
from gtx.nn.stochastic_depth import StochasticDepth
from gtx.nn.substructures import Substructures
from gtx.nn.token_embedding import TokenEmbedding
from gtx.nn.training_set import TrainingSet
from gtx.nn.transformer_layer import GraphTransformerLayer
from gtx.nn.triplet_attention import TripletAttention
from gtx.nn.two_channels import TwoChannels
from gtx.nn.vector_layer import VectorLayer
from gtx.nn.virtual_nodes import Nodes, VirtualNodes

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
    "GivenFeatures",
    "GraphTransformerLayer",
    "KeyValues",
    "Nodes",
    "PairEmbedding",
    "Readout",
    "StochasticDepth",
    "Substructures",
    "TokenEmbedding",
    "TrainingSet",
    "TripletAttention",
    "TwoChannels",
    "VectorLayer",
    "VirtualNodes",
    "Vocabulary",
    "circular_labels",
    "embed",
]
