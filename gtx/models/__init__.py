"""Whole models: the graph transformer and its named settings."""

from gtx.models.graph_transformer import GraphTransformer
from gtx.models.standard import standard

__all__ = ["GraphTransformer", "standard"]
