"""Models that write sequences: the encoder-decoder Transformer for molecules, and its decoder alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from torch import Tensor, nn
from torch_geometric.data import Batch

from gtx.graph import BipartiteGraph, Causal, CompleteGraph
from gtx.models.standard import standard
from gtx.models.token_transformer import TokenTransformer
from gtx.models.writing import Rereading, Writing
from gtx.sequence import SequenceBatch


class SequenceEncoder(TokenTransformer):
    """Reads sequences: every token attends to every token of its sequence. Arguments as `TokenTransformer`."""

    def nodes(self, source: SequenceBatch) -> Tensor:
        """Return the tokens after the last layer, `[N, channels]`."""
        return self(source, CompleteGraph.from_ptr(source.ptr, pack=False))


class CrossAttentionMaps(NamedTuple):
    """A forward pass with the weights of its cross-attention.

    Attributes:
        logits: as `MoleculeToSequence.forward` gives them, `[N, V]`.
        edge_index: int64 `[2, E]`, atoms (or whatever was read) and tokens.
        weights: of the cross-attention of each layer, `[E, H]`, before dropout; `logits` depend on them.
    """

    logits: Tensor
    edge_index: Tensor
    weights: list[Tensor]


class SourceEncoder(Protocol):
    """A model that reads sources, such as a `GraphTransformer`, which reads molecules."""

    def nodes(self, source: Any) -> Tensor:
        """Return what tokens attend to, `[M, *]`."""

    def unseen(self, batch: Batch) -> list[list[tuple[str, int, int]]]:
        """Per molecule, the codes that training did not show."""


class MoleculeToSequence(nn.Module):
    r"""An encoder reads molecules, and a decoder writes sequences.

    The encoder's atoms are keys and values in every layer of the decoder; its tokens see what was written up to them:

    \[ p(y_1, \ldots, y_n, \mathrm{end} \mid G) = \prod_t p(y_t \mid y_1, \ldots, y_{t-1}, G) \]

    With a `SequenceEncoder` it is the Transformer from sequences to sequences; without any encoder it is a language
    model, \(p(y)\), as GPT is.

    Sources: Vaswani et al. 2017 (arXiv:1706.03762); Radford et al. 2018 (GPT) for the decoder alone.

    Args:
        encoder: a `GraphTransformer`, a `SequenceEncoder`, or anything with `nodes(source) -> [M, *]` whose sources
            have a `ptr` `[B + 1]`; None for a language model.
        size: tokens V it writes, start and end among them.
        source_channels: width of what the encoder gives; default the decoder's.
        setting: the decoder's width and the like, as `TokenTransformer` takes them, by name; `**BASE` for the paper's.
    """

    encoder: SourceEncoder | None

    def __init__(
        self, encoder: nn.Module | None, size: int, source_channels: int | None = None, **setting: Any
    ) -> None:
        super().__init__()
        if encoder is not None:
            setting["source_channels"] = source_channels or setting.get("channels", 256)
        self.encoder = encoder  # type: ignore[assignment]  # a module that has `nodes`
        self.decoder: TokenTransformer = TokenTransformer(size, **setting)

    def forward(self, source: Batch | SequenceBatch | None, tokens: SequenceBatch) -> Tensor:
        """Logits of what comes after each token, `[N, V]`.

        Args:
            source: B molecules or sequences; None for a language model.
            tokens: what was written so far, the start first; B sequences.
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
        graph = graph.masked(Causal()(None, graph))
        if memory is None:
            return self.decoder.embedding.scores(self.decoder(tokens, graph))
        cross = BipartiteGraph.between(memory.ptr, tokens.ptr, pack=False)
        return self.decoder.embedding.scores(self.decoder(tokens, graph, memory.items, cross, weights))

    def observe(self, data: Any, more: bool = False) -> None:
        """Learn from training molecules (or examples of them) which codes there are, as the encoder does."""
        source = getattr(data, "source", data)
        observe = getattr(self.encoder, "observe", None)
        if observe is not None and source is not None:
            observe(source, more)

    def unseen(self, batch: Batch) -> list[list[tuple[str, int, int]]]:
        """Per molecule, the codes that training did not show, see `GraphTransformer.unseen`."""
        return [[] for _ in range(batch.num_graphs)] if self.encoder is None else self.encoder.unseen(batch)

    def attention(self, source: Batch | SequenceBatch, tokens: SequenceBatch) -> CrossAttentionMaps:
        """Write what was given, and keep every layer's weights from the source to the tokens."""
        memory = self.read(source)
        weights: list[Tensor] = []
        if memory is None:
            raise ValueError("a language model reads nothing: it has no cross-attention")
        logits = self.write(tokens, memory, weights)
        edges = BipartiteGraph.between(memory.ptr, tokens.ptr, pack=False)
        return CrossAttentionMaps(logits, edges.edge_index, weights)

    def begin(self, source: Batch | SequenceBatch | None, limit: int, cached: bool = True) -> Writing | Rereading:
        """Sequences to be written, one per source; one if there is no source. See `gtx.sequence.greedy_search`.

        Args:
            source: what is read.
            limit: the most tokens that will be read back, the start among them.
            cached: keep keys and values; if False, read everything again at every step.
        """
        memory = self.read(source)
        if cached:
            return Writing(self.decoder, memory, limit)
        return Rereading(self.write, memory, self.decoder.embedding.bias.device)


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
) -> MoleculeToSequence:
    """Make a `standard` graph transformer as encoder, without readout and head, and a decoder as wide and as deep.

    Args:
        size: tokens it writes, start and end among them.
        atom_sizes: codes per atom column.
        bond_sizes: codes per bond column.
        coordinates: also read distances in space.
        channels, heads, layers, dropout, attention_dropout: of both.
        encoder: what else `standard` takes, or takes otherwise.
        decoder: what else `TokenTransformer` takes, by name.
    """
    both: dict[str, Any] = {"channels": channels, "heads": heads, "layers": layers}
    both |= {"dropout": dropout, "attention_dropout": attention_dropout}
    sizes: dict[str, Any] = {"atom_sizes": atom_sizes, "bond_sizes": bond_sizes, "coordinates": coordinates}
    reader = standard(1, **sizes, **{**both, **(encoder or {})})
    reader.readout, reader.head = None, nn.Identity()
    width = reader.atom_embedding.table.shape[1]
    return MoleculeToSequence(reader, size, width, **{**both, **decoder})
