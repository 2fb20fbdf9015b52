"""Layers for PyTorch Geometric models: attention as an edge update, and what is stacked from it."""

from gtx.nn.edge_attention import EdgeAttention

__all__ = ["EdgeAttention"]
