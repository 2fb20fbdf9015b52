"""Encodings of the graph and of space side by side, of which either may be off for a molecule."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from gtx.encodings import Encoding, Values
from gtx.graph import CompleteGraph
from gtx.nn.embedding import embed
from gtx.nn.pair_embedding import PairEmbedding


class TwoChannels(Encoding):
    r"""One model for molecules with coordinates and without: a channel for the graph and one for space.

    \[ g^{2D}_b \sum_{f \in 2D} W_f f \;+\; g^{3D}_b\, \mathrm{MLP}\Bigl(\sum_{f \in 3D} W_f f\Bigr) \]

    for pairs, and the same without the MLP for nodes. The switches g are 0 or 1 for each molecule b. One without
    coordinates has the graph's channel alone. One with coordinates has both; in training, it is drawn whether it has
    the graph's alone, that of space alone, or both, so that each learns to do without the other.

    Source: Luo et al. 2022, Transformer-M (arXiv:2210.01765).

    Args:
        flat: encodings of the graph.
        space: encodings of the coordinates; none for a model without coordinates.
        channels: of the nodes.
        pair_channels: of the pairs.
        modes: probabilities of the graph's channel alone, that of space alone, and both; they sum to 1.

    Reads what the encodings read, and with `space` `pos` `[N, 3]`, Å, NaN where unknown. Yields node values
    `[N, channels]` and pair values `[num_pairs, pair_channels]`.

    Raises:
        ValueError: no encoding of the graph, or modes that are no three probabilities.
    """

    def __init__(
        self,
        flat: Sequence[Encoding],
        space: Sequence[Encoding],
        channels: int,
        pair_channels: int,
        modes: Sequence[float] = (0.2, 0.5, 0.3),
    ) -> None:
        super().__init__()
        if len(modes) != 3 or min(modes) < 0 or abs(sum(modes) - 1) > 1e-6:
            raise ValueError(f"expected the probabilities of three modes, with sum 1, got {list(modes)}")
        if not flat:
            raise ValueError("expected encodings of the graph for molecules without coordinates, got none")
        self.modes = tuple(modes)
        self.node, self.pair = Values(channels), Values(pair_channels)
        self.flat = _Channel(flat, channels, pair_channels, mlp=False)
        self.space = _Channel(space, channels, pair_channels, mlp=True) if space else None
        self.constant_shapes = all(encoding.constant_shapes for encoding in (*flat, *space))

    def forward(self, data: Data, graph: CompleteGraph) -> tuple[Tensor, Tensor]:
        node, pair = self.flat(data, graph)
        if self.space is None:
            return node, pair
        of_pair = graph.batch[graph.pair_index[1]]
        flat, space = (switch[:, None].to(node.dtype) for switch in self.switches(data, graph))
        other_node, other_pair = self.space(data, graph)
        node = flat[graph.batch] * node + space[graph.batch] * other_node
        return node, flat[of_pair] * pair + space[of_pair] * other_pair

    def switches(self, data: Data, graph: CompleteGraph) -> tuple[Tensor, Tensor]:
        """Which molecules have the channel of the graph and that of space, bool `[B]` each; in training drawn anew."""
        placed = data.pos.isfinite().all(-1)
        known = torch.zeros(graph.num_graphs, dtype=torch.long, device=placed.device)
        known = known.index_add_(0, graph.batch, placed.long()) > 0
        if not self.training:
            return torch.ones_like(known), known
        drawn = torch.rand(graph.num_graphs, device=placed.device)
        only_flat, only_space = drawn < self.modes[0], (drawn >= self.modes[0]) & (drawn < sum(self.modes[:2]))
        return ~(known & only_space), known & ~only_flat

    def __repr__(self) -> str:
        return f"TwoChannels({self.node.channels}, {self.pair.channels}, modes={self.modes})"


class _Channel(nn.Module):
    """What some encodings yield, embedded: nodes `[N, channels]` and pairs `[num_pairs, pair_channels]`."""

    def __init__(self, encodings: Sequence[Encoding], channels: int, pair_channels: int, mlp: bool) -> None:
        super().__init__()
        self.encodings = nn.ModuleList(encodings)
        self.nodes = nn.ModuleList(embed(e.node, channels) if e.node else None for e in encodings)
        self.pairs = PairEmbedding([e.pair for e in encodings if e.pair], pair_channels, mlp)

    def forward(self, data: Data, graph: CompleteGraph) -> tuple[Tensor, Tensor]:
        precision = next(self.parameters()).dtype

        def real(feature: Tensor | None) -> Tensor | None:
            return feature if feature is None or not feature.is_floating_point() else feature.to(precision)

        given = [tuple(map(real, encoding(data, graph))) for encoding in self.encodings]
        node = sum(of(node) for of, (node, _) in zip(self.nodes, given, strict=True) if of is not None)
        return node, self.pairs([pair for _, pair in given if pair is not None])
