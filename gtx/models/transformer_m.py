"""Transformer-M: one model for molecules as graphs and in space."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import nn

from gtx.encodings import Degree, EdgePath, GaussianDistance, ShortestPath, SummedDistance
from gtx.models.graph_transformer import GraphTransformer
from gtx.models.parts import head_width
from gtx.models.space import may_use_coordinates
from gtx.nn import EdgeAttention, GraphTransformerLayer, TwoChannels


@may_use_coordinates
def transformer_m(
    out_channels: int,
    *,
    atom_sizes: Sequence[int],
    bond_sizes: Sequence[int],
    coordinates: bool = False,
    channels: int = 64,
    heads: int = 8,
    pair_channels: int = 32,
    dropout: float = 0.1,
    farthest: int = 20,
    path: int = 5,
    gaussians: int = 64,
    cutoff: float = 10.0,
    modes: Sequence[float] = (0.2, 0.5, 0.3),
    readout: Sequence[str] = (),
    **arguments: Any,
) -> GraphTransformer:
    """Transformer-M: Graphormer's encodings in a channel for the graph, distances in a channel for space.

    Molecules without coordinates have the first channel alone; those with coordinates have both, and in training one of
    them or both, by chance. Both channels end in a bias per head that all layers share. The paper's second task, to
    guess how coordinates were moved, is left out.

    Source: Luo et al. 2022 (arXiv:2210.01765); the channel of the graph, Ying et al. 2021 (arXiv:2106.05234).

    Args:
        coordinates: also have the channel of space; the batch must have `pos`, NaN where unknown.
        pair_channels: width of the pairs before the bias of each head.
        farthest: longest path distance with a code of its own, bonds.
        path: how many bonds of a path are told apart.
        gaussians: of the distance, learned, with a scale and shift for each pair of elements.
        cutoff: the last Gaussian's centre at first, Å.
        modes: in training, how often a molecule with coordinates has the graph alone, space alone, or both.
        readout: how atoms are pooled beside the virtual node; default not at all.
        arguments: as `GraphTransformer` takes them, by name; so are those not named here.
    """
    flat = [Degree(), ShortestPath(farthest), EdgePath(bond_sizes[0], path, farthest)]
    distance = GaussianDistance(gaussians, cutoff, learned=True, pair_types=atom_sizes[0])
    space = [SummedDistance(distance)] if coordinates else []

    def layer(i: int) -> GraphTransformerLayer:
        attention = EdgeAttention(
            channels, head_width(channels, heads), heads, edge_dim=heads, edge_bias=nn.Identity(), project=True
        )
        return GraphTransformerLayer(attention, None, channels, channels, dropout)

    return GraphTransformer(
        out_channels,
        atom_sizes,
        bond_sizes,
        encodings=[TwoChannels(flat, space, channels, pair_channels, modes)],
        channels=channels,
        pair_channels=heads,
        pair_mlp=False,
        dropout=dropout,
        local=False,
        readout=readout,
        virtual_nodes=1,
        layer=layer,
        **arguments,
    )
