"""The encoder-decoder Transformer from molecules to sequences, and decoding: greedy, or by beam search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch_geometric.data import Batch

from gtx.graph import BipartiteGraph, CausalEdges, CompleteGraph
from gtx.models import Architecture, GraphTransformer, LevelReadout, standard
from gtx.nn import DecoderLayer, EdgeAttention, MoleculeModel
from gtx.nn.blocks import GELU
from gtx.nn.decoder_layer import KeyValueCache, TokenEmbedding
from gtx.nn.features import TrainingMolecules
from gtx.sequence.sequences import END_TOKEN, START_TOKEN, SequenceBatch


class TokenTransformer(nn.Module):
    """Transformer decoder over tokens and their positions, with self-attention and cross-attention to a source.

    Source: Vaswani et al. 2017, section 3 (arXiv:1706.03762).

    Args:
        size: number V of tokens, including start and end.
        source_channels: width of the source that the tokens attend to.
        channels: width d of the tokens, even.
        layers: number of layers.
        heads: number of attention heads, a divisor of `channels`.
        hidden: width of the hidden layers of the MLPs; default 4d.
        dropout: dropout rate on the sum of token and position embedding and on the output of each branch, in training.
        attention_dropout: dropout rate of the attention weights, in training.
        norm_first: whether norms come first (pre-norm) or last (post-norm) in each branch.
        activation: activation function of the MLPs, "relu" or "gelu".

    Raises:
        ValueError: sizes that do not fit, or an unknown activation.
    """

    layers: Sequence[DecoderLayer]

    def __init__(
        self,
        size: int,
        source_channels: int,
        channels: int = 256,
        layers: int = 4,
        heads: int = 8,
        hidden: int | None = None,
        dropout: float = 0.1,
        attention_dropout: float = 0.1,
        norm_first: bool = True,
        activation: Literal["relu", "gelu"] = "relu",
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
            function = nn.ReLU() if activation == "relu" else GELU()
            cross = attention((source_channels, channels))
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
        source: Tensor,
        cross_edges: BipartiteGraph,
        weights: list[Tensor] | None = None,
    ) -> Tensor:
        """Compute the logits of the next token after each token, `[N, V]`.

        Args:
            tokens: N tokens.
            graph: edges between tokens.
            source, cross_edges, weights: as in `DecoderLayer`.
        """
        x = self.dropout(self.embedding(tokens.items, tokens.place))
        for layer in self.layers:
            x = layer(x, graph, source, cross_edges, weights)
        return self.embedding.scores(self.norm(x))


class IncrementalDecoder:
    """Decoder of sequences of equal length, one per row, with a key-value cache.

    Args:
        decoder: in evaluation mode.
        memory: encoded sources, one per row.
        limit: the largest number of tokens, the start among them.
    """

    def __init__(self, decoder: TokenTransformer, memory: SequenceBatch, limit: int) -> None:
        self.decoder = decoder
        self.rows: int = len(memory)
        self.device: torch.device = decoder.embedding.bias.device
        self.past: list[KeyValueCache] = [
            KeyValueCache.empty(layer.attention, self.rows, limit) for layer in decoder.layers
        ]
        crosses = [layer.cross for layer in decoder.layers if layer.cross is not None]
        self.source: list[KeyValueCache] = [_project_memory(cross, memory) for cross in crosses]

    def step(self, tokens: Tensor) -> Tensor:
        """Add a token to every row (int64 `[R]`): logits of the next, `[R, V]`."""
        decoder = self.decoder
        x = decoder.embedding(tokens, torch.full_like(tokens, self.past[0].length))
        for layer, past, source in zip(decoder.layers, self.past, self.source, strict=True):
            x = layer.step(x, past, source)
        return decoder.embedding.scores(decoder.norm(x))

    def select(self, rows: Tensor) -> None:
        """Go on with these rows (int64 `[R']`), any number of times each."""
        if rows.equal(torch.arange(self.rows, device=self.device)):
            return
        self.past = [cache.select(rows) for cache in self.past]
        self.source = [cache.select(rows) for cache in self.source]
        self.rows = len(rows)


def _project_memory(attention: EdgeAttention, memory: SequenceBatch) -> KeyValueCache:
    """Project the encoded sources to keys and values of each row."""
    (key, absent), (value, _) = (
        SequenceBatch(part, memory.ptr).padded() for part in attention.keys_and_values(memory.items)
    )
    return KeyValueCache(key.transpose(1, 2).contiguous(), value.transpose(1, 2).contiguous(), absent)


class CrossAttentionMaps(NamedTuple):
    """Result of a forward pass with the weights of the cross-attention.

    Attributes:
        logits: logits of the next tokens, as from `MoleculeToSequenceModel.forward`, `[N, V]`.
        edge_index: int64 `[2, E]`, atoms and tokens.
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

    Source: Vaswani et al. 2017 (arXiv:1706.03762).

    Args:
        encoder: a `GraphTransformer`, or a module of your own with its `nodes` and `embedding.channels`.
        size: number V of tokens, including start and end.
        setting: further arguments of `TokenTransformer`, such as the width of the decoder, by name.
    """

    def __init__(self, encoder: GraphTransformer, size: int, **setting: Any) -> None:
        super().__init__()
        self.encoder = encoder
        self.decoder: TokenTransformer = TokenTransformer(size, encoder.embedding.channels, **setting)

    def forward(self, source: Batch, tokens: SequenceBatch) -> Tensor:
        """Compute the logits of the next token after each token, `[N, V]`.

        Args:
            source: B molecules.
            tokens: B sequences of the tokens so far, each with the start token first.
        """
        return self.write(tokens, self.read(source))

    def read(self, source: Batch) -> SequenceBatch:
        """Encode the atoms of each molecule, to which the tokens attend."""
        return SequenceBatch(self.encoder.nodes(source), source.ptr)

    def write(self, tokens: SequenceBatch, memory: SequenceBatch, weights: list[Tensor] | None = None) -> Tensor:
        """Decode: logits `[N, V]` of the token after each token, given the encoded sources."""
        graph = CompleteGraph.from_ptr(tokens.ptr, pack=False)
        graph = graph.masked(CausalEdges()(None, graph))
        cross = BipartiteGraph.between(memory.ptr, tokens.ptr, pack=False)
        return self.decoder(tokens, graph, memory.items, cross, weights)

    def observe(self, molecules: TrainingMolecules, more: bool = False) -> None:
        """Record which codes occur in the TRAINING molecules, as the encoder does."""
        self.encoder.observe(molecules, more)

    def attention(self, source: Batch, tokens: SequenceBatch) -> CrossAttentionMaps:
        """Compute the logits, and the weights from the atoms to the tokens in every layer."""
        memory, weights = self.read(source), list[Tensor]()
        logits = self.write(tokens, memory, weights)
        edges = BipartiteGraph.between(memory.ptr, tokens.ptr, pack=False)
        return CrossAttentionMaps(logits, edges.edge_index, weights)

    def begin(self, source: Batch, limit: int) -> IncrementalDecoder:
        """Begin a sequence for each molecule, of at most `limit` tokens, with the start token."""
        return IncrementalDecoder(self.decoder, self.read(source), limit)


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
    return MoleculeToSequenceModel(without, size, **{**both, **decoder})


ARCHITECTURE = Architecture(molecule_to_sequence, TokenTransformer)


# --- Decoding: a trained model writes token by token, always the likeliest one, or by beam search.


class GeneratedSequence(NamedTuple):
    r"""Sequence that a model generated, with its log-probability.

    Attributes:
        tokens: generated tokens, without start and end.
        log_probability: log-probability \(\ln p(y)\), including the end token, if any.
        ended: whether the end token was generated; otherwise the sequence was cut off at the limit.
        score: score by which sequences are ranked, by default the log-probability.
    """

    tokens: list[int]
    log_probability: float
    ended: bool
    score: float


def greedy_search(model: MoleculeToSequenceModel, source: Batch, limit: int) -> list[GeneratedSequence]:
    """Generate one sequence per molecule, of at most `limit` tokens, by the most probable token at every step."""
    return [likeliest for (likeliest,) in beam_search(model, source, limit, 1, 0.0)]


def next_token(logits: Tensor) -> Tensor:
    """Compute the log-probabilities of the next token, float64; the start token has probability 0."""
    logits = logits.double()
    logits[:, START_TOKEN] = -torch.inf
    return logits.log_softmax(-1)


# --- Beam search: several prefixes are followed at once.


@torch.inference_mode()
def beam_search(
    model: MoleculeToSequenceModel, source: Batch, limit: int, width: int = 4, penalty: float = 0.6
) -> list[list[GeneratedSequence]]:
    r"""Generate sequences by beam search, which keeps the `width` most probable prefixes at every step.

    Because every token lowers the probability of a sequence, sequences that have ended are ranked by their
    log-probability divided by a power of their length:

    \[ \mathrm{score}(y) = \ln p(y) \Big/ \Bigl(\frac{5 + |y|}{6}\Bigr)^{\alpha} \]

    The length |y| includes the end token. The search stops when no prefix can exceed the best score; the bound for a
    prefix is the score of its present probability at the largest length.

    Source: Wu et al. 2016, eq. 14 (arXiv:1609.08144); width 4 and \(\alpha = 0.6\) are those of Vaswani et al. 2017,
    section 6.1 (arXiv:1706.03762).

    Args:
        model: model in evaluation mode.
        source: the molecules.
        limit: largest number of tokens, without the end token.
        width: number k of prefixes that are kept and of sequences that are returned. With k = 1 and no penalty, beam
            search equals greedy search.
        penalty: length penalty \(\alpha\); with 0, sequences are ranked by probability alone.

    Returns:
        For each input at most k sequences, first the sequences that have ended, sorted by score.

    Raises:
        ValueError: a width below 1, or a negative penalty.
    """
    if width < 1 or penalty < 0:
        raise ValueError(f"expected a width of at least 1 and a penalty of at least 0, got {width} and {penalty}")

    def rank(log_p: Tensor, length: int) -> Tensor:
        return log_p / ((5 + length) / 6) ** penalty

    state = model.begin(source, limit + 1)
    device, B = state.device, state.rows
    sequences: list[list[GeneratedSequence]] = [[] for _ in range(B)]
    sources = torch.arange(B, device=device)  # [A] that are still searched
    total = torch.zeros(B, 1, dtype=torch.float64, device=device)  # [A, k] log-probability of each prefix
    tokens = torch.zeros(B, 1, 0, dtype=torch.long, device=device)  # [A, k, t]
    last = torch.full((B,), START_TOKEN, device=device)
    for step in range(limit + 1):
        if len(sources) == 0:
            break
        A, k = total.shape
        log_p = next_token(state.step(last)).view(A, k, -1)
        V = log_p.shape[-1]
        best, at = (total[:, :, None] + log_p).flatten(1).topk(min(2 * width, k * V))  # half of them or more go on
        parent, token = at // V, at % V
        ends = ((token == END_TOKEN) & best.isfinite())[:, :width]  # an end must be among the k likeliest itself
        for a, c in ends.nonzero().tolist():
            score = float(rank(best[a, c], step + 1))
            prefix = tokens[a, parent[a, c]].tolist()
            sequences[sources[a]].append(GeneratedSequence(prefix, float(best[a, c]), True, score))
        for source in sources.tolist():
            sequences[source] = sorted(sequences[source], key=lambda one: -one.score)[:width]
        if step == limit:  # places without an ended sequence get unfinished prefixes, the likeliest first
            for source, *prefixes in zip(sources, tokens, total, rank(total, limit), strict=True):
                rest = zip(*(part.tolist() for part in prefixes), strict=True)
                cut = [GeneratedSequence(row, log_p, False, score) for row, log_p, score in rest if log_p != -torch.inf]
                free = width - len(sequences[source])
                sequences[source] += sorted(cut, key=lambda one: -one.score)[:free]
            break

        total, kept = best.masked_fill(token == END_TOKEN, -torch.inf).topk(min(width, best.shape[1]))
        parent, token = parent.gather(1, kept), token.gather(1, kept)
        tokens = torch.cat([tokens.gather(1, parent[:, :, None].expand(-1, -1, step)), token[:, :, None]], 2)
        hope = rank(total[:, 0], limit + 1)
        ended = [sequences[source] for source in sources.tolist()]
        worst = [each[-1].score if len(each) == width else -torch.inf for each in ended]
        going = (~(hope <= hope.new_tensor(worst))).nonzero().squeeze(1)  # NaN goes on to the limit
        state.select((parent + torch.arange(A, device=device)[:, None] * k)[going].flatten())
        sources, total, tokens, last = sources[going], total[going], tokens[going], token[going].flatten()
    return sequences
