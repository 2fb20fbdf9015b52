"""The first part of a graph transformer: from a batch of molecules to nodes, edges and pair features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch_geometric.data import Batch

from gtx.encodings import ContinuousFeatureSpec, Encoding
from gtx.graph import AllPairEdges, CompleteGraph, EdgeSelector
from gtx.nn import AddBondNodes, AddVirtualNodes, CategoricalEmbedding, PairEmbedding
from gtx.nn.bonds import LazyBondEmbedding, OriginalAndVirtualNodes
from gtx.nn.compiled import can_sum
from gtx.nn.embedding import CategoryVocabulary, as_real, make_embedding
from gtx.nn.features import TrainingMolecules, UserFeatureProjection

# --- Codes of atoms and bonds, of which training shows some.


class Vocabularies(nn.Module):
    """Codes of atoms and bonds that occur in training; other codes become 0, "other"."""

    def __init__(self, atom_sizes: Sequence[int], bond_sizes: Sequence[int]) -> None:
        super().__init__()
        self.atoms: CategoryVocabulary = CategoryVocabulary(atom_sizes)
        self.bonds: CategoryVocabulary = CategoryVocabulary(bond_sizes)


# --- The embedding of a batch.


class EmbeddedMolecules(NamedTuple):
    """Batch of molecules as the layers of a graph transformer read it.

    Attributes:
        x: nodes, `[N, channels]`: atoms, and bonds or virtual nodes where the model has them.
        edges: pairs between which there is attention, a graph or an edge list.
        pairs: features of these pairs, `[num_pairs, pair_channels]`; None where there are none.
        nodes: which nodes are atoms, and which are virtual.
        bond_index: bonds, as indices of nodes, int64 `[2, E]`.
        bonds: features of the bonds, `[E, channels]`, for messages over bonds; None where nobody reads them.
    """

    x: Tensor
    edges: CompleteGraph | Tensor
    pairs: Tensor | None
    nodes: OriginalAndVirtualNodes
    bond_index: Tensor
    bonds: Tensor | LazyBondEmbedding | None


class MoleculeEmbedding(nn.Module):
    """Embedding of a batch of molecules: codes of atoms and bonds, encodings of nodes and pairs, additional nodes.

    Args:
        atom_sizes, bond_sizes, channels, encodings, pair_channels, pair_mlp, edges: as of
            `gtx.models.graph_transformer`.
        bonds: whether bonds are embedded, for messages over bonds.
        virtual_nodes, bond_tokens, atom_features, bond_features: as of `gtx.models.graph_transformer`.
        bonds_as_pairs: whether the features of bonds are also those of pairs.

    Raises:
        ValueError: the arguments contradict each other.
    """

    def __init__(
        self,
        atom_sizes: Sequence[int],
        bond_sizes: Sequence[int],
        channels: int,
        encodings: Sequence[Encoding] = (),
        pair_channels: int | None = 32,
        pair_mlp: bool = True,
        edges: EdgeSelector | None = None,
        bonds: bool = True,
        virtual_nodes: int = 0,
        bond_tokens: bool = False,
        atom_features: int = 0,
        bond_features: int = 0,
        bonds_as_pairs: bool = True,
    ) -> None:
        super().__init__()
        self.channels = channels
        self.edges: EdgeSelector = AllPairEdges() if edges is None else edges
        self.vocabularies: Vocabularies = Vocabularies(atom_sizes, bond_sizes)
        self.atoms: CategoricalEmbedding = CategoricalEmbedding(atom_sizes, channels, silent_first=True)
        self.bonds: CategoricalEmbedding | None = (
            CategoricalEmbedding(bond_sizes, channels, silent_first=True) if bonds else None
        )
        self.atom_features: UserFeatureProjection = UserFeatureProjection("atom_features", atom_features, channels)
        self.bond_features: UserFeatureProjection = UserFeatureProjection(
            "bond_features", bond_features, channels if bonds else None
        )
        self.encodings: nn.ModuleList = nn.ModuleList(encodings)
        self.names: list[str] = [f"{i} {encoding}" for i, encoding in enumerate(encodings)]
        self.nodes: nn.ModuleDict = nn.ModuleDict(
            {str(i): make_embedding(e.node, channels) for i, e in enumerate(encodings) if e.node}
        )
        features = [e.pair for e in encodings if e.pair]
        self.bonds_as_pairs: bool = bonds_as_pairs and bond_features > 0 and pair_channels is not None
        if bond_features and not (bonds or self.bonds_as_pairs):
            raise ValueError("a model that embeds neither bonds nor pairs cannot read bond_features")
        if self.bonds_as_pairs:
            features.append(ContinuousFeatureSpec(bond_features))
        self.pairs: PairEmbedding = PairEmbedding(features, pair_channels, pair_mlp)
        if (virtual_nodes or bond_tokens) and pair_channels is None:
            raise ValueError("further nodes need pair features of their own: expected pair_channels, got None")
        self.pair_width: int | None = pair_channels if bond_tokens else self.pairs.width
        self.tokens: AddBondNodes | None = (
            AddBondNodes(bond_sizes, channels, pair_channels) if bond_tokens and pair_channels is not None else None
        )
        self.virtual: AddVirtualNodes | None = (
            AddVirtualNodes(virtual_nodes, channels, self.pair_width) if virtual_nodes else None
        )

    @property
    def more_nodes(self) -> bool:
        """True if there are nodes beside the atoms."""
        return self.tokens is not None or self.virtual is not None

    def graph(self, batch: Batch) -> CompleteGraph:
        """Return the graph of the atoms of a batch, with the edges of the model."""
        graph = batch.graph if "graph" in batch else CompleteGraph.from_batch(batch.batch, batch.num_graphs, pack=False)
        return graph.masked(self.edges(batch, graph))

    def forward(
        self,
        batch: Batch,
        graph: CompleteGraph,
        edge_list: bool = False,
        bond_codes: bool = False,
    ) -> EmbeddedMolecules:
        """Embed a batch.

        Args:
            batch: the molecules.
            graph: the edges between the atoms.
            edge_list: whether edges and pairs are those of an edge list.
            bond_codes: whether the layers can read bonds as codes, which saves time.
        """
        x, features = self._features(batch, graph)
        at_once = edge_list and not self.more_nodes
        features = [as_real(graph.select(feature) if at_once else feature, x.dtype) for feature in features]
        pairs = self.pairs(features)
        nodes = OriginalAndVirtualNodes(torch.arange(graph.num_nodes, device=x.device), None)
        bonds: Tensor | LazyBondEmbedding | None = None
        if self.bonds is not None:
            codes = self.vocabularies.bonds(batch.edge_attr)
            if bond_codes and not self.bond_features.features and can_sum(self.bonds.table):
                bonds = LazyBondEmbedding(codes, self.bonds)
            else:
                bonds = self.bond_features(batch, self.bonds(codes))
        if self.tokens is not None:
            codes = self.vocabularies.bonds(batch.edge_attr)
            graph, nodes, x, pairs = self.tokens(graph, x, pairs, batch.edge_index, codes)
        if self.virtual is not None:
            graph, (place, virtual), x, pairs = self.virtual(graph, x, pairs)
            nodes = OriginalAndVirtualNodes(place[nodes.atoms], virtual)
        if self.more_nodes and edge_list and pairs is not None:
            pairs = graph.select(pairs)
        edges = graph.edge_index if edge_list else graph
        return EmbeddedMolecules(x, edges, pairs, nodes, nodes.atoms[batch.edge_index], bonds)

    @property
    def named_encodings(self) -> dict[str, nn.Module]:
        """The encodings by place and representation: networks with a name in common compute the same under it."""
        return dict(zip(self.names, self.encodings, strict=True))

    def _features(self, batch: Batch, graph: CompleteGraph) -> tuple[Tensor, list[Tensor]]:
        """Embed the atoms, `[N, channels]`, and list the raw features of the pairs, `[num_pairs, *]` each."""
        x = self.atom_features(batch, self.atoms(self.vocabularies.atoms(batch.x)))
        pairs, fixed = [], batch.fixed if "fixed" in batch else {}
        for i, (name, encoding) in enumerate(self.named_encodings.items()):
            node, pair = fixed[name] if name in fixed else encoding(batch, graph)
            if node is not None:
                x = x + self.nodes[str(i)](as_real(node, x.dtype))
            if pair is not None:
                pairs.append(pair)
        if self.bonds_as_pairs:
            pairs.append(self.bond_features.of_pairs(batch, graph))
        return x, pairs

    def bond_inputs(self, batch: Batch) -> tuple[Tensor, Tensor | None]:
        """Return the codes of the bonds, `[E, F]`, and the user's features of them as z-scores, `[E, K]` or None."""
        features = self.bond_features.scaled(batch) if self.bond_features.features else None
        return self.vocabularies.bonds(batch.edge_attr), features

    def observe(self, molecules: TrainingMolecules, more: bool = False) -> None:
        """Record the codes of the TRAINING molecules, and fit the scales of the user's features."""
        self.vocabularies.atoms.observe(molecules.atoms, more)
        self.vocabularies.bonds.observe(molecules.bond_codes, more)
        if not more:
            self.atom_features.observe(molecules)
            self.bond_features.observe(molecules)
