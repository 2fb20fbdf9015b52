"""Embeddings: from codes and values of atoms and pairs to vectors."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from gtx.encodings import CategoricalFeatureSpec, ContinuousFeatureSpec, Encoding
from gtx.encodings.encoding import Feature
from gtx.graph import CompleteGraph
from gtx.nn.blocks import GELU
from gtx.nn.compiled import embed_features

# --- Embeddings of codes and values.


class CategoricalEmbedding(nn.Module):
    """Embedding of categorical features: the sum over the columns of one learned vector per code.

    Args:
        sizes: codes of each column.
        channels: width of the vectors.
        silent_first: whether the vector of code 0 ("other") of each column starts at zero, so that code 0 has no effect
            if it never occurs in training.

    Shapes:
        codes int64 `[*, len(sizes)]` to `[*, channels]`.
    """

    offsets: Tensor

    def __init__(self, sizes: Sequence[int], channels: int, silent_first: bool = False) -> None:
        super().__init__()
        self.sizes: tuple[int, ...] = tuple(sizes)
        self.silent_first = silent_first
        self.table: nn.Parameter = nn.Parameter(torch.empty(sum(sizes), channels))
        self.register_buffer("offsets", _offsets(sizes), persistent=False)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.normal_(self.table, std=len(self.sizes) ** -0.5)
        if self.silent_first:
            with torch.no_grad():
                self.table[self.offsets[:-1]] = 0.0

    def forward(self, codes: Tensor) -> Tensor:
        embedded = embed_features([self], None, [codes]) if codes.dim() == 2 else None
        if embedded is not None:
            return embedded
        # one-hot codes times the table: for the small tables of molecules quicker than looking rows up
        rows = _rows(codes, self.offsets)
        return self.table.new_zeros(*codes.shape[:-1], len(self.table)).scatter_(-1, rows, 1.0) @ self.table

    def __repr__(self) -> str:
        return f"CategoricalEmbedding({list(self.sizes)}, {self.table.shape[1]})"


class ValueEmbedding(nn.Linear):
    """Linear map of real values, `[*, K]` to `[*, channels]`, such as those of an encoding.

    Raises:
        ValueError: integers, or other than K values.
    """

    def forward(self, values: Tensor) -> Tensor:
        if not values.is_floating_point() or values.shape[-1] != self.in_features:
            raise ValueError(f"expected real values [*, {self.in_features}], got {values.dtype} {list(values.shape)}")
        return super().forward(values)


def make_embedding(feature: Feature, channels: int) -> nn.Module:
    """Make the module that embeds a feature: an embedding table for categories, a linear map for real values."""
    if isinstance(feature, CategoricalFeatureSpec):
        return CategoricalEmbedding(feature.sizes, channels)
    return ValueEmbedding(feature.channels, channels)


def as_real(feature: Tensor, dtype: torch.dtype) -> Tensor:
    """Return real features in a precision, and codes as they are."""
    return feature.to(dtype) if feature.is_floating_point() else feature


def has_coordinates(pos: Tensor, batch: Tensor, num_graphs: int) -> Tensor:
    """Return which molecules have an atom with finite coordinates, bool `[B]`."""
    placed = torch.zeros(num_graphs, dtype=torch.long, device=pos.device)
    return placed.index_add_(0, batch, pos.isfinite().all(-1).long()) > 0


class CategoryVocabulary(nn.Module):
    """Set of the codes that occur in training, all before `observe`; any other code is replaced by code 0, "other"."""

    seen: Tensor
    offsets: Tensor

    def __init__(self, sizes: Sequence[int]) -> None:
        super().__init__()
        self.sizes: tuple[int, ...] = tuple(sizes)
        self.register_buffer("seen", torch.ones(sum(sizes), dtype=torch.bool))
        self.register_buffer("offsets", _offsets(sizes), persistent=False)

    def observe(self, codes: Tensor, more: bool = False) -> None:
        """Record codes, integers `[*, len(sizes)]`, as seen; with `more`, codes seen before remain seen."""
        if not more:
            self.seen.zero_()
        self.seen[_rows(codes.long(), self.offsets).flatten()] = True

    def unseen(self, codes: Tensor) -> Tensor:
        """Mark the codes not seen in training, bool `[*, len(sizes)]`."""
        return ~self.seen[_rows(codes, self.offsets)]

    def forward(self, codes: Tensor) -> Tensor:
        return codes.masked_fill(self.unseen(codes), 0)

    def __repr__(self) -> str:
        return f"CategoryVocabulary({list(self.sizes)})"


def _offsets(sizes: Sequence[int]) -> Tensor:
    """Return where the rows of each column begin in a table, and the end, int64 `[F + 1]`."""
    return torch.tensor([0, *accumulate(sizes)], dtype=torch.long)


def _rows(codes: Tensor, offsets: Tensor) -> Tensor:
    """Return the rows of codes, integers `[*, F]`, in a table whose columns begin at `offsets`.

    Raises:
        ValueError: other columns, or on a CPU a code that is not in its column.
    """
    columns = len(offsets) - 1
    if codes.is_floating_point() or codes.dim() == 0 or codes.shape[-1] != columns:
        raise ValueError(f"expected codes, integers [*, {columns}], got {codes.dtype} {list(codes.shape)}")
    if codes.device.type == "cpu" and not torch.compiler.is_compiling():
        wrong = (codes < 0) | (codes >= offsets.diff())
        if wrong.any():
            at = wrong.nonzero()[0]
            column, code = int(at[-1]), int(codes[tuple(at)])
            raise ValueError(
                f"expected codes from 0 to {int(offsets.diff()[column]) - 1} in column {column}, got {code} "
                f"in row {int(at[0])}"
            )
    return codes + offsets[:-1]


# --- From the pair features of several encodings to one vector per pair.

PORTION = 2**16
"""Pairs that are embedded at a time in plain torch where no gradient is wanted, as that takes some five times as much
memory as their embedding."""


class PairEmbedding(nn.Module):
    r"""Embedding of pairs of nodes: the sum of the embeddings of their features and an MLP, or the features themselves.

    \[ e_{rs} = \mathrm{MLP}\Bigl( \sum_f W_f\, f_{rs} \Bigr), \qquad \mathrm{MLP} = \mathrm{GELU} \circ W \circ
       \mathrm{GELU} \]

    In single precision on a CPU, one compiled loop computes the embedding (`gtx/nn/features.c`).

    Args:
        features: kinds of the pair features that the encodings yield.
        channels: width of the embedding; None to concatenate the values without an embedding.
        mlp: whether an MLP follows the sum.

    Shapes:
        one tensor `[num_pairs, *]` per feature to `[num_pairs, width]`; None where there are no features.

    Raises:
        ValueError: `channels` is None, but a feature consists of integer codes.
    """

    def __init__(self, features: Sequence[Feature], channels: int | None, mlp: bool = True) -> None:
        super().__init__()
        self.parts: nn.ModuleList | None = None
        self.mlp: nn.Sequential | None = None
        self.width = channels if features else None
        if channels is None:
            values = [feature for feature in features if isinstance(feature, ContinuousFeatureSpec)]
            if len(values) < len(features):
                raise ValueError("codes must be embedded: expected pair_channels, got None")
            self.width = sum(feature.channels for feature in values) or None
        elif features:
            self.parts = nn.ModuleList(make_embedding(feature, channels) for feature in features)
            self.mlp = nn.Sequential(GELU(), nn.Linear(channels, channels), GELU()) if mlp else None

    def forward(self, features: Sequence[Tensor]) -> Tensor | None:
        if not features:
            return None
        if self.parts is None:
            return torch.cat(list(features), -1)
        embedded = embed_features(self.parts, self.mlp, features)
        if embedded is not None:
            return embedded
        if torch.is_grad_enabled() or torch.compiler.is_compiling() or features[0].shape[0] <= PORTION:
            return self._embed(features)
        pairs = next(self.parameters()).new_empty(features[0].shape[0], self.width or 0)
        for rows, *portion in zip(*(each.split(PORTION) for each in (pairs, *features)), strict=True):
            rows.copy_(self._embed(portion))
        return pairs

    def _embed(self, features: Sequence[Tensor]) -> Tensor:
        pairs = sum(part(feature) for part, feature in zip(self.parts or (), features, strict=True))
        return pairs if self.mlp is None else self.mlp(pairs)


# --- Encodings of the graph and of space side by side, of which either may be off for a molecule.


class TransformerMPairEncoding(Encoding):
    r"""Encoding of pairs for molecules with or without coordinates: one channel for the graph and one for space.

    \[ g^{2D}_b \sum_{f \in 2D} W_f f \;+\; g^{3D}_b\, \mathrm{MLP}\Bigl(\sum_{f \in 3D} W_f f\Bigr) \]

    for pairs, and the same without the MLP for nodes. The switches g are 0 or 1 for each molecule b. A molecule without
    coordinates uses the graph channel alone. A molecule with coordinates uses both channels; in training, the molecule
    uses the graph channel, the space channel or both, chosen at random, so that the model learns to predict from each
    channel alone.

    Source: Luo et al. 2022, Transformer-M (arXiv:2210.01765).

    Args:
        flat: encodings of the graph.
        space: encodings of the coordinates; empty for a model without coordinates.
        channels: width of the node features.
        pair_channels: of the pairs.
        modes: probabilities of the graph channel alone, of the space channel alone, and of both channels, which sum to
            1.

    The module reads what the encodings read, and with `space` also `pos` `[N, 3]` in Å, NaN where unknown. The module
    yields node values `[N, channels]` and pair values `[num_pairs, pair_channels]`.

    Raises:
        ValueError: encodings of the graph without node or pair values, encodings of the coordinates without pair
            values, or modes that are no three probabilities.
    """

    node: ContinuousFeatureSpec
    pair: ContinuousFeatureSpec

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
        if not any(encoding.node for encoding in flat) or not any(encoding.pair for encoding in flat):
            raise ValueError(f"expected encodings of the graph with node values and pair values, got {list(flat)}")
        if space and not any(encoding.pair for encoding in space):
            raise ValueError(f"expected encodings of the coordinates with pair values, got {list(space)}")
        self.modes: tuple[float, ...] = tuple(modes)
        self.node, self.pair = ContinuousFeatureSpec(channels), ContinuousFeatureSpec(pair_channels)
        self.flat: _Channel = _Channel(flat, channels, pair_channels, mlp=False)
        self.space: _Channel | None = _Channel(space, channels, pair_channels, mlp=True) if space else None
        self.constant_shapes: bool = all(encoding.constant_shapes for encoding in (*flat, *space))

    def forward(self, data: Data, graph: CompleteGraph) -> tuple[Tensor, Tensor]:
        node, pair = self.flat(data, graph)
        if self.space is None:
            return node, pair
        other_node, other_pair = self.space(data, graph)
        of_pair = graph.batch[graph.pair_index[1]]
        flat, space = (switch[:, None].to(node.dtype) for switch in self.switches(data, graph))
        node = flat[graph.batch] * node + space[graph.batch] * other_node
        return node, flat[of_pair] * pair + space[of_pair] * other_pair

    def switches(self, data: Data, graph: CompleteGraph) -> tuple[Tensor, Tensor]:
        """Select the molecules that use each channel, graph and space, bool `[B]` each; drawn in training."""
        known = has_coordinates(data.pos, graph.batch, graph.num_graphs)
        if not self.training:
            return torch.ones_like(known), known
        drawn = torch.rand(graph.num_graphs, device=known.device)
        only_flat, only_space = drawn < self.modes[0], (drawn >= self.modes[0]) & (drawn < sum(self.modes[:2]))
        return ~(known & only_space), known & ~only_flat

    def __repr__(self) -> str:
        return f"TransformerMPairEncoding({self.node.channels}, {self.pair.channels}, modes={self.modes})"


class _Channel(nn.Module):
    """Embedding of the values of some encodings: nodes `[N, channels]` and pairs `[num_pairs, pair_channels]`."""

    def __init__(self, encodings: Sequence[Encoding], channels: int, pair_channels: int, mlp: bool) -> None:
        super().__init__()
        self.encodings = nn.ModuleList(encodings)
        self.nodes = nn.ModuleDict(
            {str(i): make_embedding(e.node, channels) for i, e in enumerate(encodings) if e.node}
        )
        self.pairs = PairEmbedding([e.pair for e in encodings if e.pair], pair_channels, mlp)

    def forward(self, data: Data, graph: CompleteGraph) -> tuple[Tensor, Tensor]:
        dtype = next(self.parameters()).dtype
        nodes, pairs = zip(*(encoding(data, graph) for encoding in self.encodings), strict=True)
        embedded = [self.nodes[str(i)](as_real(node, dtype)) for i, node in enumerate(nodes) if node is not None]
        return sum(embedded), self.pairs([as_real(pair, dtype) for pair in pairs if pair is not None])
