"""The graph transformer: embedding, layers, readout, head, of which readout and head are here too.

Read next: `gtx/models/embedding.py`, its first part, and `gtx/nn/transformer_layer.py`, one of its layers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch_geometric.data import Batch

from gtx.base.errors import InputError
from gtx.graph import CompleteGraph
from gtx.models.embedding import EmbeddedMolecules, MoleculeEmbedding, Vocabularies
from gtx.nn import BondMessagePassing, MoleculeModel, Readout, SubstructureCountEmbedding
from gtx.nn.blocks import GELU
from gtx.nn.bonds import BondVectorFromAtoms
from gtx.nn.features import ClippedStandardScaler, TrainingMolecules

# --- Readout and head: from nodes to a vector of each molecule, atom or bond, and to outputs.

Level = Literal["molecule", "atom", "bond"]


class PretrainedEmbedding(nn.Module):
    """Embedding of molecules `[B, width]` by a pretrained network that is not trained further, as clipped z-scores.

    `gtx.prediction.foundation_embedding.attach_foundation` sets `embed`, a function from a batch to `[B, width]`, which
    is not part of the state dict. Batches with `embeddings` do not need it.

    Args:
        foundation: `{"sha256": of the file of the pretrained network, "width": of its embedding}`.
    """

    def __init__(self, foundation: Mapping[str, Any]) -> None:
        super().__init__()
        self.foundation: dict[str, Any] = dict(foundation)
        self.scaler: ClippedStandardScaler = ClippedStandardScaler(foundation["width"])
        self.embed: Callable[[Batch], Tensor] | None = None

    def values(self, batch: Batch) -> Tensor:
        """Return the embeddings of a batch before scaling, `[B, width]`."""
        if "embeddings" in batch:
            return batch.embeddings
        if self.embed is None:
            raise ValueError("embed: the model reads embeddings, and has no network that makes them")
        return self.embed(batch)

    def observe(self, molecules: TrainingMolecules) -> None:
        """Fit the scaling to the TRAINING molecules."""
        parts = torch.arange(len(molecules)).split(256)
        self.scaler.observe(torch.cat([self.values(molecules.batch(rows)) for rows in parts]))

    def forward(self, batch: Batch) -> Tensor:
        return self.scaler(self.values(batch).to(self.scaler.mean.dtype))


class LevelReadout(nn.Module):
    r"""Readout of a level: the vector of each molecule, atom or bond that its head reads.

    \[ z_b = [\mathrm{pool}_{i \in b}(v_i),\, m_b,\, c_b], \qquad z_i = [v_i,\, m_b,\, c_b], \qquad
       z_{sr} = [v_s + v_r,\, |v_s - v_r|,\, E(\mathrm{code}_{sr}),\, f_{sr},\, m_b,\, c_b] \]

    for a molecule b, its atoms i and its bonds (s, r), with the features f of a bond that the user gave, what
    `of_molecules` gives of the whole molecule, m, and the embedded counts of its substructures, c.

    Args:
        level: "molecule", "atom" or "bond".
        channels: width of the nodes.
        pooling: kinds of pooling of the atoms of a molecule, see `gtx.nn.Readout`; may be empty.
        bond_sizes, bond_features, virtual_nodes, substructures, foundation: as of `gtx.models.graph_transformer`.
        descriptors: number D of descriptors of a molecule, in `batch.u`.
        given: width of m if it is given, in place of that of descriptors, embedding and virtual nodes.

    Shapes:
        atoms `[N, channels]`, m `[B, *]` and for bonds their codes `[E, F]` and features `[E, K]`, to `[*, width]`.
    """

    def __init__(
        self,
        level: Level,
        channels: int,
        pooling: Sequence[str] = (),
        bond_sizes: Sequence[int] = (),
        bond_features: int = 0,
        descriptors: int = 0,
        virtual_nodes: int = 0,
        substructures: SubstructureCountEmbedding | None = None,
        foundation: Mapping[str, Any] | None = None,
        given: int | None = None,
    ) -> None:
        super().__init__()
        self.level = level
        self.pool: Readout | BondVectorFromAtoms | None = None
        if level == "molecule" and pooling:
            self.pool = Readout(channels, pooling)
        elif level == "bond":
            self.pool = BondVectorFromAtoms(channels, bond_sizes)
        own = {"molecule": 0, "atom": channels, "bond": bond_features}[level] + (self.pool.width if self.pool else 0)
        self.virtual_width: int = virtual_nodes * channels
        self.num_descriptors = descriptors
        self.descriptors: ClippedStandardScaler | None = ClippedStandardScaler(descriptors) if descriptors else None
        self.embedding: PretrainedEmbedding | None = None if foundation is None else PretrainedEmbedding(foundation)
        self.substructures = substructures
        embedded = 0 if foundation is None else foundation["width"]
        self.molecule_width: int = self.virtual_width + descriptors + embedded if given is None else given
        self.width: int = own + self.molecule_width + (substructures.width if substructures else 0)

    def observe(self, molecules: TrainingMolecules) -> None:
        """Fit the scales of descriptors and embedding and the choice of substructures to the TRAINING molecules."""
        if self.descriptors is not None:
            self.descriptors.observe(molecules.descriptors)
        if self.embedding is not None:
            self.embedding.observe(molecules)
        if self.substructures is not None:
            self.substructures.observe(molecules)

    def of_molecules(self, virtual: Tensor | None, batch: Batch) -> list[Tensor]:
        """List what every level reads of a molecule, `[B, *]` each: virtual nodes, descriptors, embedding.

        The states of the virtual nodes, `[B * count, channels]`, are given molecule by molecule.
        """
        parts = []
        if virtual is not None and self.virtual_width:
            parts.append(virtual.view(batch.num_graphs, self.virtual_width))
        if self.descriptors is not None:
            parts.append(self.descriptors(batch.u))
        return parts if self.embedding is None else [*parts, self.embedding(batch)]

    def forward(
        self, atoms: Tensor, molecules: list[Tensor], batch: Batch, bonds: tuple[Tensor, Tensor | None] | None = None
    ) -> Tensor:
        """Compute the vectors.

        Args:
            atoms: states of the atoms, `[N, channels]`.
            molecules: result of `of_molecules`.
            batch: the molecules.
            bonds: codes and features of the bonds, for the level "bond".
        """
        if self.substructures is not None:
            molecules = [*molecules, self.substructures(batch)]
        if self.level == "molecule":
            pooled = [] if self.pool is None else [self.pool(atoms, batch.batch, batch.num_graphs)]
            return torch.cat([*pooled, *molecules], -1)
        if self.level == "atom" or bonds is None or self.pool is None:
            own, molecule = [atoms], batch.batch
        else:
            codes, features = bonds
            own = [self.pool(atoms, batch.edge_index, codes), *([] if features is None else [features])]
            molecule = batch.batch[batch.edge_index[0]]
        return torch.cat([*own, *(part[molecule] for part in molecules)], -1)


class LevelOutput(nn.Module):
    """Readout of a further level and its head."""

    def __init__(self, readout: LevelReadout, head: nn.Module) -> None:
        super().__init__()
        self.readout = readout
        self.head = head


def make_head(width: int, channels: int, outputs: int, dropout: float = 0.0, zero: bool = False) -> nn.Sequential:
    """Make the head of a level, an MLP with one hidden layer; with `zero` its initial outputs are 0."""
    first, last = nn.Linear(width, channels), nn.Linear(channels, outputs)
    if zero:
        nn.init.zeros_(last.weight)
        nn.init.zeros_(last.bias)
    return nn.Sequential(first, GELU(), nn.Dropout(dropout), last)


# --- Attention weights, which a model returns beside its predictions.


class AttentionMaps(NamedTuple):
    """Result of a forward pass with the attention weights of all layers and heads.

    Attributes:
        embedding: embeddings `[B, width]`, the input of the head.
        edge_index: senders and receivers of the edges, int64 `[2, E]`.
        weights: attention weights of each layer, `[E, H]`, before dropout; `embedding` can be differentiated with
            respect to the weights.
        place: index of each atom among the nodes of `edge_index`, int64 `[N]`; other nodes are bonds or virtual nodes.
        readers: indices of the nodes that the readout reads, int64: of atoms and bonds, every atom.
        num_nodes: number of nodes.
    """

    embedding: Tensor
    edge_index: Tensor
    weights: list[Tensor]
    place: Tensor
    readers: Tensor
    num_nodes: int


class EncodedPart(NamedTuple):
    """Some molecules of a batch, and the network that encodes them.

    Attributes:
        encoder: the network.
        batch: batch of these molecules.
        atoms: index of each of their atoms in the whole batch, int64.
    """

    encoder: GraphTransformer
    batch: Batch
    atoms: Tensor


# --- The graph transformer.


class GraphTransformer(MoleculeModel):
    r"""Graph transformer that predicts values for each molecule, atom or bond of a batch, from four parts.

    \[ v, e = \mathrm{embedding}(G), \qquad v \leftarrow \mathrm{layer}_l(v, e), \qquad
       y = \mathrm{head}(\mathrm{readout}(\mathrm{norm}(v))) \]

    `gtx.models.graph_transformer` puts the parts together from sizes, encodings, scores and the like;
    `gtx.models.standard` and the named models are settings of it.

    Args:
        embedding: module that embeds the molecules as nodes, edges and pair features.
        layers: layers, called like `gtx.nn.GraphTransformerLayer`.
        readout: module that makes the vector of each molecule, atom or bond.
        head: module that maps these vectors to predictions.
        norm: norm of the nodes after the last layer; default: none.
        also: readouts and heads of further levels, "atom" or "bond".
        edge_list: as of `gtx.models.graph_transformer`.

    Shapes:
        a batch as `gtx.data.MoleculeStore.batch` gives it (`x` `[N, A]`, `edge_index` `[2, E]`, `edge_attr` `[E, F]`,
        `batch` `[N]`, and `u` `[B, D]`, `pos` `[N, 3]`, `atom_features` `[N, K]` and `bond_features` `[E, K]` where
        used) to `[B, out_channels]`; per atom to `[N, out_channels]`, per bond to `[E, out_channels]`. With `also` a
        tuple: these outputs first, then those of `also` in its order.
    """

    also: Mapping[str, LevelOutput]
    width: int

    def __init__(
        self,
        embedding: MoleculeEmbedding,
        layers: Iterable[nn.Module],
        readout: LevelReadout,
        head: nn.Module,
        norm: nn.Module | None = None,
        also: Mapping[str, LevelOutput] | None = None,
        edge_list: bool = False,
    ) -> None:
        super().__init__()
        self.embedding = embedding
        self.layers: nn.ModuleList = nn.ModuleList(layers)
        self.norm: nn.Module = nn.Identity() if norm is None else norm
        self.readout = readout
        self.head = head
        self.also = nn.ModuleDict(also or {})  # type: ignore[assignment]  # torch's stubs leave its values untyped
        self.edge_list = edge_list
        self.per = readout.level
        self.width = readout.width

    @property
    def constant_shapes(self) -> bool:
        flat = not self.edge_list and self.embedding.tokens is None and not self.also
        return flat and all(e.constant_shapes or e.fixed for e in self.embedding.encodings)

    @property
    def fixed(self) -> dict[str, bool]:
        named = self.embedding.named_encodings
        return {name: not encoding.constant_shapes for name, encoding in named.items() if encoding.fixed}

    def compute_encodings(self, batch: Batch, names: Sequence[str]) -> dict[str, tuple[Tensor | None, Tensor | None]]:
        graph, named = self.graph(batch), self.embedding.named_encodings
        return {name: named[name](batch, graph) for name in names}

    def forward(self, batch: Batch, graph: CompleteGraph | None = None) -> Tensor | tuple[Tensor, ...]:
        """Predict for molecules, atoms or bonds, `[*, out_channels]`, in the scaled units of training; a tuple with
        `also`.

        Args:
            batch: the molecules.
            graph: edges between the atoms; default `self.graph(batch)`.
        """
        x, embedded = self._encode(batch, graph)
        output = self.head(self._read(self.readout, x, embedded, batch))
        further = [each.head(self._read(each.readout, x, embedded, batch)) for each in self.also.values()]
        return (output, *further) if further else output

    def graph(self, batch: Batch) -> CompleteGraph:
        """Return the graph of the atoms of a batch, with the edges of the model."""
        return self.embedding.graph(batch)

    def embed(self, batch: Batch, graph: CompleteGraph | None = None) -> Tensor:
        """Embed each molecule (or atom, or bond), `[B, width]`: the input of the head.

        The embedding concatenates the readout, virtual nodes, descriptors and counts of substructures.
        """
        return self._read(self.readout, *self._encode(batch, graph), batch)

    def parts(self, batch: Batch) -> list[EncodedPart]:
        """Return the batch as its one part, as `MultiComponentModel.parts`."""
        return [EncodedPart(self, batch, torch.arange(len(batch.batch), device=batch.batch.device))]

    def nodes(self, batch: Batch, graph: CompleteGraph | None = None) -> Tensor:
        """Return the states of the atoms after the last layer, `[N, channels]`."""
        x, embedded = self._encode(batch, graph)
        return x[embedded.nodes.atoms]

    def attention(self, batch: Batch, graph: CompleteGraph | None = None) -> AttentionMaps:
        """Embed each molecule, and return the attention weights of every layer, computed on an edge list."""
        weights: list[Tensor] = []
        x, embedded = self._encode(batch, graph, weights)
        edges = embedded.edges
        edge_index = edges.edge_index if isinstance(edges, CompleteGraph) else edges
        vectors, nodes = self._read(self.readout, x, embedded, batch), embedded.nodes
        readers = [] if self.per == "molecule" and self.readout.pool is None else [nodes.atoms]
        readers += [] if nodes.virtual is None else [nodes.virtual]
        return AttentionMaps(vectors, edge_index, weights, nodes.atoms, torch.cat(readers), len(x))

    def _encode(
        self, batch: Batch, graph: CompleteGraph | None, weights: list[Tensor] | None = None
    ) -> tuple[Tensor, EmbeddedMolecules]:
        """Compute all nodes after the last layer, and return the embedding that the layers read."""
        reads_bonds = self.embedding.bonds is not None or self.embedding.tokens is not None
        bonds = reads_bonds or "bond" in (self.per, *self.also)
        _check_batch(batch, self.embedding.vocabularies, bonds, self.readout.num_descriptors)
        graph = self.graph(batch) if graph is None else graph
        edge_list = self.edge_list or weights is not None
        bond_codes = all(isinstance(getattr(each, "local", None), BondMessagePassing) for each in self.layers)
        embedded = self.embedding(batch, graph, edge_list, bond_codes)
        x, edges, pairs, _, bond_index, bond_attr = embedded
        for layer in self.layers:
            x, pairs = layer(x, edges, pairs, bond_index, bond_attr, weights)
        return self.norm(x), embedded

    def _read(self, readout: LevelReadout, x: Tensor, embedded: EmbeddedMolecules, batch: Batch) -> Tensor:
        """Make the vectors of a level from the nodes after the last layer."""
        nodes = embedded.nodes
        atoms = x[nodes.atoms] if self.embedding.more_nodes else x
        molecules = self.readout.of_molecules(None if nodes.virtual is None else x[nodes.virtual], batch)
        return readout(atoms, molecules, batch, self.embedding.bond_inputs(batch) if readout.level == "bond" else None)

    def observe(self, molecules: TrainingMolecules, more: bool = False) -> None:
        """Record which codes occur in the TRAINING molecules, and fit the scaling of the descriptors."""
        self.embedding.observe(molecules, more)
        if not more:
            self.readout.observe(molecules)


# --- Check of a batch before it is read.

_MADE_BY = "as gtx.molecules.Featuriser makes them; gtx.data.from_pyg translates data of PyG that have a SMILES"


def _check_batch(batch: Batch, vocabularies: Vocabularies, bonds: bool, descriptors: int) -> None:
    """Raise an `InputError` that names the attribute and the column if a batch does not suit a model.

    Codes of bonds are needed if the model reads `bonds`. Codes are compared with their sizes on a CPU alone: on a GPU
    the answer would have to be waited for.
    """
    if getattr(batch, "batch", None) is None:
        raise InputError(
            f"expected a batch of molecules, got a {type(batch).__name__} without an attribute batch; "
            "torch_geometric.data.Batch.from_data_list makes one out of several Data"
        )
    _check_codes("x", "atom", batch.x, vocabularies.atoms.sizes)
    if bonds or getattr(batch, "edge_attr", None) is not None:
        _check_codes("edge_attr", "directed bond", getattr(batch, "edge_attr", None), vocabularies.bonds.sizes)
    if descriptors:
        u = getattr(batch, "u", None)
        if u is None or u.dim() != 2 or u.shape[1] != descriptors:
            raise InputError(
                f"batch.u: expected {descriptors} descriptors for each molecule, [B, {descriptors}], {_MADE_BY}; "
                f"got {_shown(u)}"
            )


def _check_codes(name: str, of: str, codes: Tensor | None, sizes: Sequence[int]) -> None:
    if codes is None or codes.dim() != 2 or codes.shape[1] != len(sizes) or codes.is_floating_point():
        raise InputError(
            f"batch.{name}: expected {len(sizes)} codes for each {of}, integers [n, {len(sizes)}], {_MADE_BY}; "
            f"got {_shown(codes)}"
        )
    if codes.device.type != "cpu" or torch.compiler.is_compiling():
        return
    wrong = (codes < 0) | (codes >= codes.new_tensor(sizes))
    if wrong.any():
        row, column = wrong.nonzero()[0].tolist()
        raise InputError(
            f"batch.{name}: expected codes from 0 to {sizes[column] - 1} in column {column}, {_MADE_BY}; "
            f"got {int(codes[row, column])} in row {row}"
        )


def _shown(tensor: Tensor | None) -> str:
    return "none" if tensor is None else f"{tensor.dtype} {list(tensor.shape)}"
