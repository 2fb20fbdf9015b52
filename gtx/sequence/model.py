"""The encoder-decoder Transformer from molecules to sequences, its decoder alone, and incremental decoding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch_geometric.data import Batch

from gtx.graph import BipartiteGraph, CausalEdges, CompleteGraph
from gtx.models import Architecture, GraphTransformer, LevelReadout, standard
from gtx.nn import DecoderLayer, EdgeAttention, MoleculeModel
from gtx.nn.decoder_layer import KeyValueCache, TokenEmbedding
from gtx.nn.mlp import GELU
from gtx.sequence.sequences import SequenceBatch


class TokenTransformer(nn.Module):
    """Transformer over tokens and their positions, with self-attention and, if there is a source, cross-attention.

    Source: Vaswani et al. 2017, section 3 (arXiv:1706.03762).

    Args:
        size: number V of tokens, including start and end.
        channels: width d of the tokens, even.
        layers: number of layers.
        heads: number of attention heads, a divisor of `channels`.
        hidden: width of the hidden layers of the MLPs; default 4d.
        dropout: dropout rate on the sum of token and position embedding and on the output of each branch, in training.
        attention_dropout: dropout rate of the attention weights, in training.
        norm_first: whether norms come first (pre-norm) or last (post-norm) in each branch.
        activation: activation function of the MLPs, "relu" or "gelu".
        source_channels: width of the source that the tokens also attend to; None for no source.

    Raises:
        ValueError: sizes that do not fit, or an unknown activation.
    """

    layers: Sequence[DecoderLayer]

    def __init__(
        self,
        size: int,
        channels: int = 256,
        layers: int = 4,
        heads: int = 8,
        hidden: int | None = None,
        dropout: float = 0.1,
        attention_dropout: float = 0.1,
        norm_first: bool = True,
        activation: Literal["relu", "gelu"] = "relu",
        source_channels: int | None = None,
    ) -> None:
        super().__init__()
        for name, value in {"channels": channels, "layers": layers, "heads": heads}.items():
            if value < 1:
                raise ValueError(f"expected {name} of at least 1, got {value}")
        if channels % heads:
            raise ValueError(f"expected heads that divide the channels, got {heads} heads and {channels} channels")
        if activation not in ("relu", "gelu"):
            raise ValueError(f"expected the activation 'relu' or 'gelu', got {activation!r}")

        def attention(inputs: int | tuple[int, int]) -> EdgeAttention:
            return EdgeAttention(inputs, channels // heads, heads, dropout=attention_dropout, project=True)

        def layer() -> DecoderLayer:
            cross = None if source_channels is None else attention((source_channels, channels))
            function = nn.ReLU() if activation == "relu" else GELU()
            return DecoderLayer(attention(channels), cross, channels, hidden, dropout, norm_first, function)

        self.embedding: TokenEmbedding = TokenEmbedding(size, channels)
        self.dropout: nn.Dropout = nn.Dropout(dropout)
        made = nn.ModuleList(layer() for _ in range(layers))
        self.layers = made  # type: ignore[assignment]  # a sequence that torch's stubs leave untyped
        self.norm: nn.LayerNorm | nn.Identity = nn.LayerNorm(channels) if norm_first else nn.Identity()

    def forward(
        self,
        tokens: SequenceBatch,
        graph: CompleteGraph,
        source: Tensor | None = None,
        cross_edges: Tensor | BipartiteGraph | None = None,
        weights: list[Tensor] | None = None,
    ) -> Tensor:
        """Return the tokens after the last layer, `[N, channels]`.

        Args:
            tokens: N tokens.
            graph: edges between tokens.
            source, cross_edges, weights: as in `DecoderLayer`.
        """
        x = self.dropout(self.embedding(tokens.items, tokens.place))
        for layer in self.layers:
            x = layer(x, graph, source, cross_edges, weights)
        return self.norm(x)

    def step(self, tokens: Tensor, past: list[KeyValueCache], source: list[KeyValueCache | None]) -> Tensor:
        """Compute `forward` for the next token of each row (int64 `[R]`): `[R, channels]`.

        `past` and `source` have the keys and values of each layer; those of the new tokens are appended to `past`.
        """
        x = self.embedding(tokens, torch.full_like(tokens, past[0].length))
        for layer, own, read in zip(self.layers, past, source, strict=True):
            x = layer.step(x, own, read)
        return self.norm(x)


class Writing:
    """Incremental decoding of sequences of equal length, one per row, with a key-value cache.

    Args:
        decoder: in evaluation mode.
        memory: encoded sources, one per row; None for a language model, which begins with one row.
        limit: the largest number of tokens, the start among them.
    """

    def __init__(self, decoder: TokenTransformer, memory: SequenceBatch | None, limit: int) -> None:
        self.decoder = decoder
        self.rows: int = 1 if memory is None else len(memory)
        self.device: torch.device = decoder.embedding.bias.device
        self.past: list[KeyValueCache] = [
            KeyValueCache.empty(layer.attention, self.rows, limit) for layer in decoder.layers
        ]
        self.source: list[KeyValueCache | None] = [_project_memory(layer.cross, memory) for layer in decoder.layers]

    def step(self, tokens: Tensor) -> Tensor:
        """Add a token to every row (int64 `[R]`): logits of the next, `[R, V]`."""
        return self.decoder.embedding.scores(self.decoder.step(tokens, self.past, self.source))

    def select(self, rows: Tensor) -> None:
        """Go on with these rows (int64 `[R']`), any number of times each."""
        self.past = [kept.select(rows) for kept in self.past]
        self.source = [None if kept is None else kept.select(rows) for kept in self.source]
        self.rows = len(rows)


def _project_memory(attention: EdgeAttention | None, memory: SequenceBatch | None) -> KeyValueCache | None:
    """Project the encoded sources, if there are any, to keys and values of each row."""
    if attention is None or memory is None:
        return None
    projected = (SequenceBatch(part, memory.ptr).padded() for part in attention.keys_and_values(memory.items))
    (key, absent), (value, _) = projected
    return KeyValueCache(key.transpose(1, 2).contiguous(), value.transpose(1, 2).contiguous(), absent)


class TokenSequenceEncoder(TokenTransformer):
    """Transformer encoder of sequences: every token attends to every token of its sequence.

    The arguments are those of `TokenTransformer`.
    """

    def nodes(self, source: SequenceBatch) -> Tensor:
        """Return the tokens after the last layer, `[N, channels]`."""
        return self(source, CompleteGraph.from_ptr(source.ptr, pack=False))


class CrossAttentionMaps(NamedTuple):
    """Result of a forward pass with the weights of the cross-attention.

    Attributes:
        logits: logits of the next tokens, as from `MoleculeToSequenceModel.forward`, `[N, V]`.
        edge_index: int64 `[2, E]`, atoms (or whatever was read) and tokens.
        weights: weights of the cross-attention of each layer, `[E, H]`, before dropout; `logits` can be differentiated
            with respect to the weights.
    """

    logits: Tensor
    edge_index: Tensor
    weights: list[Tensor]


class MoleculeToSequenceModel(MoleculeModel):
    r"""Encoder-decoder model that reads molecules and generates sequences.

    In every layer of the decoder, tokens attend to the atoms of the encoder and to earlier tokens:

    \[ p(y_1, \ldots, y_n, \mathrm{end} \mid G) = \prod_t p(y_t \mid y_1, \ldots, y_{t-1}, G) \]

    With a `TokenSequenceEncoder`, the model is the Transformer from sequences to sequences. Without an encoder, the
    model is a language model, \(p(y)\), like GPT.

    Sources: Vaswani et al. 2017 (arXiv:1706.03762); Radford et al. 2018 (GPT) for the decoder alone.

    Args:
        encoder: a `GraphTransformer`, a `TokenSequenceEncoder`, or anything with `nodes(source) -> [M, *]` whose
            sources have a `ptr` `[B + 1]`; None for a language model.
        size: number V of tokens, including start and end.
        source_channels: width of the output of the encoder; by default the width of the decoder.
        setting: arguments of `TokenTransformer`, such as the width of the decoder, by name.
    """

    def __init__(
        self,
        encoder: GraphTransformer | TokenSequenceEncoder | None,
        size: int,
        source_channels: int | None = None,
        **setting: Any,
    ) -> None:
        super().__init__()
        if encoder is not None:
            setting["source_channels"] = source_channels or setting.get("channels", 256)
        self.encoder = encoder
        self.decoder: TokenTransformer = TokenTransformer(size, **setting)

    def forward(self, source: Batch | SequenceBatch | None, tokens: SequenceBatch) -> Tensor:
        """Compute the logits of the next token after each token, `[N, V]`.

        Args:
            source: B molecules or sequences; None for a language model.
            tokens: B sequences of the tokens so far, each with the start token first.
        """
        return self.write(tokens, self.read(source))

    def read(self, source: Batch | SequenceBatch | None) -> SequenceBatch | None:
        """Encode the source that the tokens attend to: the atoms of each molecule, or None.

        Raises:
            ValueError: a source and no encoder, or an encoder and no source.
        """
        if source is None and self.encoder is None:
            return None
        if source is None or self.encoder is None:
            need, came = ("none" if part is None else type(part).__name__ for part in (self.encoder, source))
            raise ValueError(f"expected a source for the encoder ({need}), got {came}")
        return SequenceBatch(self.encoder.nodes(source), source.ptr)

    def write(self, tokens: SequenceBatch, memory: SequenceBatch | None, weights: list[Tensor] | None = None) -> Tensor:
        """Decode: logits `[N, V]` of the token after each token, given the encoded sources."""
        graph = CompleteGraph.from_ptr(tokens.ptr, pack=False)
        graph = graph.masked(CausalEdges()(None, graph))
        if memory is None:
            return self.decoder.embedding.scores(self.decoder(tokens, graph))
        cross = BipartiteGraph.between(memory.ptr, tokens.ptr, pack=False)
        return self.decoder.embedding.scores(self.decoder(tokens, graph, memory.items, cross, weights))

    def observe(self, data: Any, more: bool = False) -> None:
        """Learn from training molecules (or examples of them) which codes there are, as the encoder does."""
        source = getattr(data, "source", data)
        if isinstance(self.encoder, MoleculeModel) and source is not None:
            self.encoder.observe(source, more)

    def attention(self, source: Batch | SequenceBatch, tokens: SequenceBatch) -> CrossAttentionMaps:
        """Write what was given, and keep every layer's weights from the source to the tokens."""
        memory = self.read(source)
        weights: list[Tensor] = []
        if memory is None:
            raise ValueError("a language model reads nothing: it has no cross-attention")
        logits = self.write(tokens, memory, weights)
        edges = BipartiteGraph.between(memory.ptr, tokens.ptr, pack=False)
        return CrossAttentionMaps(logits, edges.edge_index, weights)

    def begin(self, source: Batch | SequenceBatch | None, limit: int) -> Writing:
        """Begin a sequence for each source (one without a source) of at most `limit` tokens, with the start token."""
        return Writing(self.decoder, self.read(source), limit)


def molecule_to_sequence(
    size: int,
    *,
    atom_sizes: Sequence[int],
    bond_sizes: Sequence[int],
    coordinates: bool = False,
    channels: int = 128,
    heads: int = 8,
    layers: int = 4,
    dropout: float = 0.1,
    attention_dropout: float = 0.1,
    encoder: Mapping[str, Any] | None = None,
    **decoder: Any,
) -> MoleculeToSequenceModel:
    """Make an encoder-decoder model: a `standard` graph transformer as encoder, and a decoder as wide and as deep.

    The encoder has no readout and no head.

    Args:
        size: number of tokens, including start and end.
        atom_sizes: number of codes of each atom column.
        bond_sizes: number of codes of each bond column.
        coordinates: whether the encoder also reads distances in space.
        channels, heads, layers, dropout, attention_dropout: settings of both encoder and decoder.
        encoder: further or different arguments of `standard` for the encoder.
        decoder: further arguments of `TokenTransformer` for the decoder, by name.
    """
    both: dict[str, Any] = {"channels": channels, "heads": heads, "layers": layers}
    both |= {"dropout": dropout, "attention_dropout": attention_dropout}
    sizes: dict[str, Any] = {"atom_sizes": atom_sizes, "bond_sizes": bond_sizes, "coordinates": coordinates}
    reader = standard(1, **sizes, **{**both, **(encoder or {})})
    without = GraphTransformer(
        reader.embedding, reader.layers, LevelReadout("atom", reader.embedding.channels), nn.Identity(), reader.norm
    )
    return MoleculeToSequenceModel(without, size, without.width, **{**both, **decoder})


ARCHITECTURE = Architecture(molecule_to_sequence, TokenTransformer)
