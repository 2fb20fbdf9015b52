"""The graph transformer: encodings, layers, readout, head."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import wraps
from inspect import signature
from typing import Any, Literal, NamedTuple, TypeVar

import torch
from torch import Tensor, nn
from torch_geometric.data import Batch

from gtx.attention import Normaliser, Score
from gtx.elementwise import GELU, Dropout
from gtx.encodings import ContinuousFeatureSpec, Encoding
from gtx.graph import AllPairEdges, CompleteGraph, EdgeSelector
from gtx.models.checks import check_arguments, check_batch
from gtx.nn import (
    AddBondNodes,
    AddVirtualNodes,
    BondMessagePassing,
    CategoricalEmbedding,
    EdgeAttention,
    GraphTransformerLayer,
    PairEmbedding,
    Readout,
    SubstructureCountEmbedding,
)
from gtx.nn.bonds import BondVectorFromAtoms, LazyBondEmbedding, OriginalAndVirtualNodes
from gtx.nn.embedding import CategoryVocabulary, ChunkedPairEmbedding, make_embedding
from gtx.nn.fast.bonds import can_sum
from gtx.nn.features import ClippedStandardScaler, TrainingMolecules, UserFeatureProjection

PORTION, KEPT = 2**23, 2**26
"""Bytes of pairs that are embedded at a time on a CPU, and that are kept for all layers, where no gradient is
wanted; beyond, each layer embeds them anew. What embeds a portion and reads it takes some five times as much beside."""

# --- Helpers of the constructors: copies of a module with fresh weights, and what a layer is made from.


Module = TypeVar("Module", bound=nn.Module)


def fresh(module: Module | None) -> Module | None:
    """Return a copy with initial weights of its own."""
    copy = deepcopy(module)
    reset = getattr(copy, "reset_parameters", None)
    if reset is not None:
        reset()
    return copy


@dataclass(frozen=True)
class LayerSettings:
    """Settings that a model gives to the function that makes its layers.

    Attributes:
        index: number of the layer, from 0.
        last: whether it is the last layer.
        channels: width of the nodes.
        heads: attention heads.
        edge_dim: channels of the pair features; None if there are none.
        dropout: on branches, in training.
        attention_dropout: on attention weights, in training.
    """

    index: int
    last: bool
    channels: int
    heads: int
    edge_dim: int | None
    dropout: float
    attention_dropout: float

    @property
    def head_channels(self) -> int:
        """Channels of each head.

        Raises:
            ValueError: the heads do not divide the channels.
        """
        if self.heads < 1 or self.channels % self.heads:
            raise ValueError(
                f"expected heads that divide the channels, got {self.heads} heads and {self.channels} channels"
            )
        return self.channels // self.heads

    def attention(self, **modules: Any) -> EdgeAttention:
        """Make an attention of these sizes from the nodes to the nodes.

        Args:
            modules: score, normaliser and the like, as `gtx.nn.EdgeAttention` takes them, by name.
        """
        return EdgeAttention(
            self.channels,
            self.head_channels,
            self.heads,
            dropout=self.attention_dropout,
            edge_dim=self.edge_dim,
            project=True,
            **modules,
        )


# --- Attention weights, which a model returns beside its predictions.


class AttentionMaps(NamedTuple):
    """Result of a forward pass with the attention weights of all layers and heads.

    Attributes:
        out: predictions `[B, T]`.
        edge_index: senders and receivers of the edges, int64 `[2, E]`.
        weights: attention weights of each layer, `[E, H]`, before dropout; `out` can be differentiated with respect to
            the weights.
        place: index of each atom among the nodes of `edge_index`, int64 `[N]`; other nodes are bonds or virtual nodes.
    """

    out: Tensor
    edge_index: Tensor
    weights: list[Tensor]
    place: Tensor


# --- A graph transformer: encodings, layers, readout, head.
#
# Read next: `gtx/nn/transformer_layer.py`, one of the layers.


class GraphTransformer(nn.Module):
    r"""Graph transformer that predicts values for each molecule, atom or bond of a batch.

    The codes of atoms and bonds are embedded, and encodings add features of nodes and pairs. In each layer, every atom
    attends to the atoms from which it has an edge. A readout and an MLP compute the prediction. The arguments can
    replace each of these modules.

    Args:
        out_channels: number of predictions per molecule, atom or bond.
        atom_sizes: number of codes of each column of `batch.x`; code 0 means "other".
        bond_sizes: number of codes of each column of `batch.edge_attr`; code 0 means "other".
        num_descriptors: number D of descriptors of each molecule in `batch.u`, which are concatenated to the readout as
            clipped z-scores; 0 for none.
        encodings: position and distance encodings.
        channels: width of the nodes.
        layers: number of layers.
        heads: number of attention heads, a divisor of `channels`.
        pair_channels: width of the pair embeddings, shared by all layers; None to concatenate the values of the
            encodings without an embedding.
        pair_mlp: whether an MLP follows the sum of the pair embeddings.
        dropout: dropout rate of the branches, in training.
        attention_dropout: dropout rate of the attention weights, in training.
        edge_value: whether pair features are added to the values, in addition to the scores.
        local: whether each layer also passes messages over bonds (GINE, Hu et al. 2020, arXiv:1905.12265).
        readout: kinds of pooling of the atoms, see `gtx.nn.Readout`; may be empty for a model with virtual nodes.
        substructures: module of counts of substructures, concatenated to the readout; default: none.
        score: score of the attention, copied for every layer with separate weights; default: scaled dot product.
        normaliser: function from scores to attention weights, copied for every layer; default: softmax.
        norm_first: whether norms come first (pre-norm) in each layer.
        edges: rule that decides which pairs are edges; by default all pairs.
        virtual_nodes: number of virtual nodes per molecule, which have edges to and from all atoms, and whose states
            are concatenated to the readout.
        bond_tokens: whether bonds are nodes of the graph too, see `gtx.nn.AddBondNodes`.
        layer: function that makes a layer from its `LayerSettings`, in place of the default layer; the layer is called
            like a `gtx.nn.GraphTransformerLayer`. The arguments `score`, `normaliser` and `edge_value` must then be
            left out.
        zero_head: whether the last layer of the head, and so every initial output, is 0. With a sum over atoms, initial
            outputs are otherwise large, and with many targets the head can converge to a constant output.
        edge_list: whether attention is computed on an edge list instead of a complete graph; useful for few edges
            (bonds), explainers and checks.
        per: level of the predictions: "molecule"; "atom", in the order of `batch.x`; or "bond", in the order of
            `batch.edge_index`, the same for both directions. An atom's head reads its state after the last layer, a
            bond's what `BondVectorFromAtoms` makes of its atoms, in place of `readout`; what would join the
            readout of the molecule joins that of each atom or bond.
        also: number of additional outputs for each "atom" or "bond", each with a separate head, which also reads
            descriptors and virtual nodes of the molecule.
        atom_features: number of extra features of each atom in `batch.atom_features`, which are added to the embedding
            of the atoms, see `gtx.nn.features.UserFeatureProjection`.
        bond_features: number of extra features of each bond in `batch.bond_features`, equal for both directions. The
            features are added to the bond embeddings that `local` reads and to the pair embeddings; the head of a bond
            also reads them.

    Raises:
        ValueError: arguments contradict each other, or `layer` would ignore an argument.

    Shapes:
        a batch as `gtx.data.MoleculeStore.batch` gives it (`x` `[N, A]`, `edge_index` `[2, E]`, `edge_attr` `[E, F]`,
        `batch` `[N]`, and `u` `[B, D]`, `pos` `[N, 3]`, `atom_features` `[N, K]` and `bond_features` `[E, K]` where
        used) to `[B, out_channels]`; per atom to `[N, out_channels]`, per bond to `[E, out_channels]`. With `also` a
        tuple: these outputs first, then those of `also` in its order.
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
        pair_channels: int | None = 32,
        pair_mlp: bool = True,
        dropout: float = 0.1,
        attention_dropout: float = 0.0,
        edge_value: bool = True,
        local: bool = True,
        readout: Sequence[str] = ("sum", "mean", "max"),
        substructures: SubstructureCountEmbedding | None = None,
        score: Score | None = None,
        normaliser: Normaliser | None = None,
        norm_first: bool = True,
        edges: EdgeSelector | None = None,
        virtual_nodes: int = 0,
        bond_tokens: bool = False,
        layer: Callable[[LayerSettings], nn.Module] | None = None,
        zero_head: bool = False,
        edge_list: bool = False,
        per: Literal["molecule", "atom", "bond"] = "molecule",
        also: Mapping[str, int] | None = None,
        atom_features: int = 0,
        bond_features: int = 0,
    ) -> None:
        check_arguments(locals(), signature(GraphTransformer).parameters)
        super().__init__()
        self.edges: EdgeSelector = AllPairEdges() if edges is None else edges
        self.edge_list = edge_list
        self.atom_vocabulary: CategoryVocabulary = CategoryVocabulary(atom_sizes)
        self.bond_vocabulary: CategoryVocabulary = CategoryVocabulary(bond_sizes)
        self.atom_embedding: CategoricalEmbedding = CategoricalEmbedding(atom_sizes, channels, silent_first=True)
        self.bond_embedding: CategoricalEmbedding | None = (
            CategoricalEmbedding(bond_sizes, channels, silent_first=True) if local else None
        )
        self.atom_features: UserFeatureProjection = UserFeatureProjection("atom_features", atom_features, channels)
        self.bond_features: UserFeatureProjection = UserFeatureProjection(
            "bond_features", bond_features, channels if local else None
        )

        self.descriptor_scaler: ClippedStandardScaler = ClippedStandardScaler(num_descriptors)

        self.encodings: nn.ModuleList = nn.ModuleList(encodings)
        self.node_embeddings: nn.ModuleDict = nn.ModuleDict(
            {str(i): make_embedding(e.node, channels) for i, e in enumerate(encodings) if e.node}
        )
        pairs = [e.pair for e in encodings if e.pair]
        embeds_pairs = pair_channels is not None and bool(pairs or layer is None or bond_tokens)
        if bond_features and not (local or embeds_pairs):
            raise ValueError("a model that embeds neither bonds nor pairs cannot read bond_features")
        self.bonds_as_pairs: bool = embeds_pairs and bond_features > 0
        if self.bonds_as_pairs:
            pairs.append(ContinuousFeatureSpec(bond_features))
        self.pair_embedding: PairEmbedding = PairEmbedding(pairs, pair_channels, pair_mlp)
        width = pair_channels if bond_tokens else self.pair_embedding.width
        self.tokens: AddBondNodes | None = (
            AddBondNodes(bond_sizes, channels, width) if bond_tokens and width is not None else None
        )
        self.virtual: AddVirtualNodes | None = (
            AddVirtualNodes(virtual_nodes, channels, width) if virtual_nodes else None
        )

        def standard_layer(of: LayerSettings) -> GraphTransformerLayer:
            attention = of.attention(
                score=fresh(score), normaliser=fresh(normaliser), edge_value=edge_value and width is not None
            )
            messages = BondMessagePassing(channels) if local else None
            return GraphTransformerLayer(attention, messages, channels, dropout=dropout, norm_first=norm_first)

        make_layer = layer or standard_layer
        self.layers: nn.ModuleList = nn.ModuleList(
            make_layer(LayerSettings(i, i == layers - 1, channels, heads, width, dropout, attention_dropout))
            for i in range(layers)
        )
        self.norm: nn.LayerNorm | nn.Identity = nn.LayerNorm(channels) if norm_first else nn.Identity()
        self.per = per
        self.readout: Readout | BondVectorFromAtoms | None = None
        if per == "molecule" and readout:
            self.readout = Readout(channels, readout)
        elif per == "bond":
            self.readout = BondVectorFromAtoms(channels, bond_sizes)
        self.substructures = substructures
        joined = virtual_nodes * channels + num_descriptors
        counted = substructures.width if substructures else 0
        pooled = {
            "molecule": len(readout) * channels,
            "atom": channels,
            "bond": 3 * channels + bond_features,
        }
        self.width: int = pooled[per] + joined + counted  # of `embed`

        def head_of(width: int, outputs: int) -> nn.Sequential:
            first, last = nn.Linear(width, channels), nn.Linear(channels, outputs)
            if zero_head:
                nn.init.zeros_(last.weight)
                nn.init.zeros_(last.bias)
            return nn.Sequential(first, GELU(), Dropout(dropout), last)

        self.head: nn.Module = head_of(self.width, out_channels)
        self.also: nn.ModuleDict = nn.ModuleDict(
            {
                kind: nn.ModuleDict(
                    ({"readout": BondVectorFromAtoms(channels, bond_sizes)} if kind == "bond" else {})
                    | {"head": head_of(pooled[kind] + joined, outputs)}
                )
                for kind, outputs in (also or {}).items()
            }
        )

    @property
    def constant_shapes(self) -> bool:
        """True if batches of constant shape can be read, see `gtx.data.batches.make_constant_shape_batch`."""
        plain = not self.edge_list and self.tokens is None and not self.also
        return plain and all(e.constant_shapes or e.fixed for e in self.encodings)

    @property
    def fixed(self) -> dict[str, bool]:
        """Names of the encodings that are the same in every epoch.

        The value of a name is True if batches of constant shape need the encoding to be precomputed, see
        `gtx.data.batches.precompute_encodings`.
        """
        return {str(i): not e.constant_shapes for i, e in enumerate(self.encodings) if e.fixed}

    def compute_encodings(self, batch: Batch, names: Sequence[str]) -> dict[str, tuple[Tensor | None, Tensor | None]]:
        """Compute some of the fixed encodings of a batch, for nodes `[N, *]` and pairs `[num_pairs, *]`."""
        graph = self.graph(batch)
        return {name: self.encodings[int(name)](batch, graph) for name in names}

    def forward(self, batch: Batch, graph: CompleteGraph | None = None) -> Tensor | tuple[Tensor, ...]:
        """Predict for molecules, atoms or bonds, `[*, out_channels]`, in the scaled units of training; a tuple with
        `also`.

        Args:
            batch: the molecules.
            graph: edges between the atoms; default `self.graph(batch)`.
        """
        x, nodes, _ = self._encode(batch, graph, self.edge_list)
        output = self.head(self._head_input(self.per, x, nodes, batch))
        further = [
            each.get_submodule("head")(self._head_input(level, x, nodes, batch)) for level, each in self.also.items()
        ]
        return (output, *further) if further else output

    def graph(self, batch: Batch) -> CompleteGraph:
        """Return the graph of the atoms of a batch, with the edges of the model."""
        graph = batch.graph if "graph" in batch else CompleteGraph.from_batch(batch.batch, batch.num_graphs, pack=False)
        return graph.masked(self.edges(batch, graph))

    def embed(self, batch: Batch, graph: CompleteGraph | None = None) -> Tensor:
        """Embed each molecule (or atom, or bond), `[B, width]`: the input of the head.

        The embedding concatenates the readout, virtual nodes, descriptors and counts of substructures.
        """
        x, nodes, _ = self._encode(batch, graph, self.edge_list)
        return self._head_input(self.per, x, nodes, batch)

    def nodes(self, batch: Batch, graph: CompleteGraph | None = None) -> Tensor:
        """Return the states of the atoms after the last layer, `[N, channels]`."""
        x, nodes, _ = self._encode(batch, graph, self.edge_list)
        return x[nodes.atoms]

    def attention(self, batch: Batch, graph: CompleteGraph | None = None) -> AttentionMaps:
        """Predict, and return the attention weights of every layer, computed on an edge list."""
        weights: list[Tensor] = []
        x, nodes, edges = self._encode(batch, graph, True, weights)
        edge_index = edges.edge_index if isinstance(edges, CompleteGraph) else edges
        out = self.head(self._head_input(self.per, x, nodes, batch))
        return AttentionMaps(out, edge_index, weights, nodes.atoms)

    def _features(self, batch: Batch, graph: CompleteGraph) -> tuple[Tensor, list[Tensor]]:
        """Embed the atoms, `[N, channels]`, and list the raw features of the pairs, `[num_pairs, *]` each."""
        x = self.atom_features(batch, self.atom_embedding(self.atom_vocabulary(batch.x)))
        pairs, fixed = [], batch.fixed if "fixed" in batch else {}
        for i, encoding in enumerate(self.encodings):
            node, pair = fixed[str(i)] if str(i) in fixed else encoding(batch, graph)
            if node is not None:
                x = x + self.node_embeddings[str(i)](_as(node, x))
            if pair is not None:
                pairs.append(pair)
        if self.bonds_as_pairs:
            pairs.append(self.bond_features.of_pairs(batch, graph))
        return x, pairs

    def _portion(self, graph: CompleteGraph, x: Tensor) -> int | None:
        """Pairs to embed at a time; None where all of them are few, or some module needs them together."""
        size = x.element_size() * (self.pair_embedding.width or 0)
        known = all(type(e) is GraphTransformerLayer and e.edge_update is None for e in self.layers)
        known = known and self.tokens is None and self.virtual is None and type(graph) is CompleteGraph
        plain = not (torch.is_grad_enabled() or torch.compiler.is_compiling()) and x.device.type == "cpu"
        return PORTION // size if known and plain and size * graph.num_pairs > PORTION else None

    def _encode(
        self, batch: Batch, graph: CompleteGraph | None, edge_list: bool, weights: list[Tensor] | None = None
    ) -> tuple[Tensor, OriginalAndVirtualNodes, Tensor | CompleteGraph]:
        """All nodes after the last layer, which of them are atoms, and the edges."""
        sizes = self.atom_vocabulary.sizes, self.bond_vocabulary.sizes
        needs_bonds = self.bond_embedding is not None or self.tokens is not None
        needs_bonds = needs_bonds or "bond" in (self.per, *self.also)
        check_batch(batch, *sizes, needs_bonds, len(self.descriptor_scaler.mean))
        graph = self.graph(batch) if graph is None else graph
        further = self.tokens is not None or self.virtual is not None
        x, features = self._features(batch, graph)
        portion = None if edge_list or weights is not None else self._portion(graph, x)
        pairs: Tensor | None = None
        portions: ChunkedPairEmbedding | None = None
        if portion is None:
            own = edge_list and not further
            pairs = self.pair_embedding([_as(graph.select(pair) if own else pair, x) for pair in features])
        else:
            portions = ChunkedPairEmbedding(graph, self.pair_embedding, features, x.dtype, portion)
            if graph.num_pairs * x.element_size() * (self.pair_embedding.width or 0) <= KEPT:
                pairs, portions = portions.joined(), None
        nodes = OriginalAndVirtualNodes(torch.arange(graph.num_nodes, device=x.device), None)
        if self.tokens is not None:
            codes = self.bond_vocabulary(batch.edge_attr)
            graph, nodes, x, pairs = self.tokens(graph, x, pairs, batch.edge_index, codes)
        if self.virtual is not None:
            graph, (place, virtual), x, pairs = self.virtual(graph, x, pairs)
            nodes = OriginalAndVirtualNodes(place[nodes.atoms], virtual)
        if further and edge_list:
            pairs = None if pairs is None else graph.select(pairs)
        edges = graph.edge_index if edge_list else graph
        bond_index = nodes.atoms[batch.edge_index]
        bonds = None
        if self.bond_embedding is not None:
            codes, table = self.bond_vocabulary(batch.edge_attr), self.bond_embedding
            by_code = all(isinstance(getattr(layer, "local", None), BondMessagePassing) for layer in self.layers)
            by_code = by_code and can_sum(table.table) and not self.bond_features.features
            bonds = LazyBondEmbedding(codes, table) if by_code else self.bond_features(batch, table(codes))
        for layer in self.layers:
            x, pairs = layer(x, edges, pairs if portions is None else portions, bond_index, bonds, weights)
        return self.norm(x), nodes, edges

    def _head_input(self, level: str, x: Tensor, nodes: OriginalAndVirtualNodes, batch: Batch) -> Tensor:
        """Pool the nodes after the last layer to molecules, atoms or bonds, and join what the molecule brings."""
        atoms = x if nodes.virtual is None and self.tokens is None else x[nodes.atoms]
        joined = []  # of each molecule, [B, *]
        if nodes.virtual is not None and self.virtual is not None:
            joined.append(x[nodes.virtual].view(batch.num_graphs, x.shape[1] * len(self.virtual.node)))
        if len(self.descriptor_scaler.mean):
            joined.append(self.descriptor_scaler(batch.u))
        if self.substructures is not None and level == self.per:
            joined.append(self.substructures(batch))
        if level == "molecule":
            pooled = [] if self.readout is None else [self.readout(atoms, batch.batch, batch.num_graphs)]
            return torch.cat(pooled + joined, -1)
        own, molecule = [atoms], batch.batch
        if level == "bond":
            readout = self.get_submodule("readout" if self.per == "bond" else "also.bond.readout")
            own = [readout(atoms, batch.edge_index, self.bond_vocabulary(batch.edge_attr))]
            if self.bond_features.features:
                own.append(self.bond_features.scaled(batch))
            molecule = molecule[batch.edge_index[0]]
        return torch.cat([*own, *(part[molecule] for part in joined)], -1)

    def observe(self, molecules: TrainingMolecules, more: bool = False) -> None:
        """Record which codes occur in the TRAINING molecules, and fit the scaling of the descriptors.

        Args:
            molecules: the training molecules.
            more: whether the model was trained before; new codes are then added to the recorded codes, and the scaling
                of descriptors does not change.
        """
        self.atom_vocabulary.observe(molecules.atoms, more)
        self.bond_vocabulary.observe(molecules.bond_codes, more)
        if len(self.descriptor_scaler.mean) and not more:
            self.descriptor_scaler.observe(molecules.descriptors)
        for given in (self.atom_features, self.bond_features) if not more else ():
            given.observe(molecules)
        if self.substructures is not None and not more:
            self.substructures.observe(molecules)


def _as(feature: Tensor, x: Tensor) -> Tensor:
    """Real features in the precision of the nodes; codes as they are."""
    return feature.to(x.dtype) if feature.is_floating_point() else feature


# what a published architecture decides by itself, unless its setting takes it
_DECIDED = {
    *("score", "normaliser", "edge_value", "norm_first", "layer"),
    *("encodings", "local", "edges", "pair_channels", "pair_mlp", "virtual_nodes", "bond_tokens"),
}


def published(setting: Callable[..., GraphTransformer]) -> Callable[..., GraphTransformer]:
    """Refuse arguments that the model does not take, and coordinates that it needs or cannot use.

    The model gets an argument `coordinates`, whether the molecules have any. A model that needs coordinates names it
    with the default True, one that can use them with False, and one that uses none does not name it.
    """
    name, own = setting.__name__, signature(setting).parameters
    known = own.keys() | signature(GraphTransformer).parameters.keys()

    @wraps(setting)
    def build(out_channels: int, **arguments: Any) -> GraphTransformer:
        if "coordinates" not in own and arguments.pop("coordinates", False):
            raise ValueError(f"the model {name} uses no coordinates; `gtx models` lists those that do")
        if "coordinates" in own and own["coordinates"].default and not arguments.get("coordinates", True):
            raise ValueError(f"the model {name} needs coordinates, and the molecules have none")
        for argument in arguments:
            if argument not in known:
                takes = ", ".join(sorted(known - _DECIDED | own.keys() - {"arguments"}))
                raise ValueError(f"the model {name} has no argument {argument!r}; it takes {takes}")
            if argument in _DECIDED - own.keys():
                raise ValueError(f"the model {name} decides {argument!r} itself; swap modules of standard")
        return setting(out_channels, **arguments)

    return build
