"""A graph transformer: encodings, layers, readout, head."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch_geometric.data import Batch
from torch_geometric.nn import GINEConv

from gtx.attention import Normaliser, Score
from gtx.encodings import Encoding
from gtx.graph import CompleteGraph
from gtx.nn import ClippedScaler, CodeEmbedding, EdgeAttention, GraphTransformerLayer, Readout, Vocabulary, embed

if TYPE_CHECKING:
    from gtx.data import MoleculeStore


class GraphTransformer(nn.Module):
    r"""From a batch of molecules to one prediction each.

    Atoms and bonds are embedded by their codes; encodings add what they know of nodes and pairs; the layers let every
    atom attend to every atom of its molecule; a readout and an MLP give the prediction. Every part can be another
    module.

    Args:
        out_channels: predictions per molecule.
        atom_sizes: codes of each column of `batch.x`; code 0 means "other".
        bond_sizes: the same for `batch.edge_attr`.
        num_descriptors: global features D of each molecule in `batch.u`, joined to the readout; 0 for none.
        encodings: position and distance encodings.
        channels: width of the nodes.
        layers: number of layers.
        heads: attention heads; they divide `channels`.
        pair_channels: width of the pair features, shared by all layers.
        dropout: on branches, in training.
        attention_dropout: on attention weights, in training.
        edge_value: pair features enter the values too, not the scores alone.
        local: a bond message-passing branch (GINE, Hu et al. 2020, arXiv:1905.12265) beside the attention.
        readout: how nodes are pooled, see `gtx.nn.Readout`.
        score: the attention's score, copied for every layer; default scaled dot product.
        normaliser: from scores to weights, copied for every layer; default softmax.
        norm_first: pre-norm layers.
        edge_list: write all pairs out and attend over that edge list: the definition, slow, for checks and explainers.

    Shapes:
        a batch as `gtx.data.MoleculeStore.batch` gives it (`x` `[N, A]`, `edge_index` `[2, E]`, `edge_attr` `[E, F]`,
        `batch` `[N]`, and `u` `[B, D]` and `pos` `[N, 3]` where used) to `[B, out_channels]`.
    """

    def __init__(
        self,
        out_channels: int,
        atom_sizes: Sequence[int],
        bond_sizes: Sequence[int],
        num_descriptors: int = 0,
        encodings: Sequence[Encoding] = (),
        channels: int = 64,
        layers: int = 4,
        heads: int = 8,
        pair_channels: int = 32,
        dropout: float = 0.1,
        attention_dropout: float = 0.0,
        edge_value: bool = True,
        local: bool = True,
        readout: Sequence[str] = ("sum", "mean", "max"),
        score: Score | None = None,
        normaliser: Normaliser | None = None,
        norm_first: bool = True,
        edge_list: bool = False,
    ) -> None:
        super().__init__()
        if channels % heads:
            raise ValueError(f"expected heads that divide the channels, got {heads} heads and {channels} channels")
        self.edge_list = edge_list
        self.atom_vocabulary, self.bond_vocabulary = Vocabulary(atom_sizes), Vocabulary(bond_sizes)
        self.atom_embedding = CodeEmbedding(atom_sizes, channels, silent_first=True)
        self.bond_embedding = CodeEmbedding(bond_sizes, channels, silent_first=True) if local else None

        self.encodings = nn.ModuleList(encodings)
        self.node_embeddings = nn.ModuleList(embed(e.node, channels) if e.node else None for e in encodings)
        self.pair_embeddings = nn.ModuleList(embed(e.pair, pair_channels) if e.pair else None for e in encodings)
        has_pairs = any(e.pair for e in encodings)
        self.pair_mlp = nn.Sequential(nn.GELU(), nn.Linear(pair_channels, pair_channels), nn.GELU())

        def layer() -> GraphTransformerLayer:
            attention = EdgeAttention(
                channels,
                channels // heads,
                heads,
                dropout=attention_dropout,
                edge_dim=pair_channels if has_pairs else None,
                project=True,
                score=deepcopy(score),
                normaliser=deepcopy(normaliser),
                edge_value=edge_value,
            )
            return GraphTransformerLayer(
                attention, bond_messages(channels) if local else None, channels, dropout=dropout, norm_first=norm_first
            )

        self.layers = nn.ModuleList(layer() for _ in range(layers))
        self.norm = nn.LayerNorm(channels) if norm_first else nn.Identity()
        self.readout = Readout(channels, readout)
        self.descriptor_scaler = ClippedScaler(num_descriptors)
        self.head = nn.Sequential(
            nn.Linear(self.width, channels), nn.GELU(), nn.Dropout(dropout), nn.Linear(channels, out_channels)
        )

    @property
    def width(self) -> int:
        """Channels of `embed`."""
        return self.readout.width + len(self.descriptor_scaler.mean)

    def forward(self, batch: Batch) -> Tensor:
        """Predictions `[B, out_channels]`, in the scaled units of training."""
        return self.head(self.embed(batch))

    def embed(self, batch: Batch) -> Tensor:
        """One vector per molecule, `[B, width]`: the readout, and the descriptors as clipped z-scores."""
        pooled = self.readout(self.nodes(batch), batch.batch, batch.num_graphs)
        return torch.cat([pooled, self.descriptor_scaler(batch.u)], -1) if len(self.descriptor_scaler.mean) else pooled

    def nodes(self, batch: Batch) -> Tensor:
        """The atoms after the last layer, `[N, channels]`."""
        graph = CompleteGraph.from_batch(batch.batch, batch.num_graphs)
        x, pairs = self.embed_graph(batch, graph)
        bonds = None
        if self.bond_embedding is not None:
            bonds = self.bond_embedding(self.bond_vocabulary(batch.edge_attr))
        for layer in self.layers:
            x = layer(x, graph.edge_index if self.edge_list else graph, pairs, batch.edge_index, bonds)
        return self.norm(x)

    def embed_graph(self, batch: Batch, graph: CompleteGraph) -> tuple[Tensor, Tensor | None]:
        """What the first layer sees: nodes `[N, channels]` and pairs `[num_edges, pair_channels]`, or None."""
        x = self.atom_embedding(self.atom_vocabulary(batch.x))
        pairs = None
        for encoding, of_node, of_pair in zip(self.encodings, self.node_embeddings, self.pair_embeddings, strict=True):
            node, pair = encoding(batch, graph)
            if node is not None:
                x = x + of_node(_as(node, x))
            if pair is not None:
                embedded = of_pair(_as(pair, x))
                pairs = embedded if pairs is None else pairs + embedded
        return x, None if pairs is None else self.pair_mlp(pairs)

    def observe(self, store: MoleculeStore, more: bool = False) -> None:
        """Learn from the TRAINING molecules which codes there are and how descriptors are distributed.

        Args:
            store: the training molecules.
            more: this model was trained before: codes add to those it knows, and its scale of descriptors stays.
        """
        self.atom_vocabulary.observe(store.atoms, more)
        self.bond_vocabulary.observe(store.bond_codes, more)
        if len(self.descriptor_scaler.mean) and not more:
            self.descriptor_scaler.observe(store.descriptors)

    def unseen(self, batch: Batch) -> list[list[tuple[str, int, int]]]:
        """Per molecule, the codes treated as "other": ("atom" or "bond", column, code)."""
        found: list[set] = [set() for _ in range(batch.num_graphs)]
        kinds = (
            ("atom", self.atom_vocabulary, batch.x, batch.batch),
            ("bond", self.bond_vocabulary, batch.edge_attr, batch.batch[batch.edge_index[0]]),
        )
        for kind, vocabulary, codes, graph in kinds:
            at, column = vocabulary.unseen(codes).nonzero(as_tuple=True)
            for g, c, code in zip(graph[at].tolist(), column.tolist(), codes[at, column].tolist(), strict=True):
                found[g].add((kind, c, code))
        return [sorted(entry) for entry in found]


def _as(feature: Tensor, x: Tensor) -> Tensor:
    """Real features in the precision of the nodes; codes as they are."""
    return feature.to(x.dtype) if feature.is_floating_point() else feature


def bond_messages(channels: int) -> GINEConv:
    """Message passing over the bonds: an MLP of a node plus the sum of relu(neighbour + bond)."""
    mlp = nn.Sequential(nn.Linear(channels, channels), nn.GELU(), nn.Linear(channels, channels))
    return GINEConv(mlp, edge_dim=channels)
