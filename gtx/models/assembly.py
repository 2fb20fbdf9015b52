"""A graph transformer put together from sizes, encodings, scores, layers: what every named model is a setting of."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import partial, wraps
from inspect import signature
from typing import Any, TypeVar

from torch import nn

from gtx.attention import Normaliser, Score
from gtx.base.errors import did_you_mean
from gtx.encodings import Encoding
from gtx.encodings.sides import encode_sides
from gtx.graph import EdgeSelector
from gtx.models.embedding import MoleculeEmbedding
from gtx.models.graph_transformer import GraphTransformer, Level, LevelOutput, LevelReadout, make_head
from gtx.nn import BondMessagePassing, EdgeAttention, GraphTransformerLayer, SubstructureCountEmbedding

# --- What a layer is made from.

Module = TypeVar("Module", bound=nn.Module)


def fresh(module: Module | None) -> Module | None:
    """Return a copy with initial weights of its own."""
    copy = deepcopy(module)
    getattr(copy, "reset_parameters", lambda: None)()
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
        """Channels of each head; a `ValueError` if the heads do not divide the channels."""
        if self.heads < 1 or self.channels % self.heads:
            raise ValueError(
                f"expected heads that divide the channels, got {self.heads} heads and {self.channels} channels"
            )
        return self.channels // self.heads

    def attention(self, **modules: Any) -> EdgeAttention:
        """Make an attention of these sizes from the nodes to the nodes.

        Args:
            modules: further arguments of `gtx.nn.EdgeAttention`, by name: score, normaliser and the like.
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


# --- The parts of a model, put together.


def graph_transformer(
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
    foundation: Mapping[str, Any] | None = None,
    score: Score | None = None,
    normaliser: Normaliser | None = None,
    norm_first: bool = True,
    edges: EdgeSelector | None = None,
    virtual_nodes: int = 0,
    bond_tokens: bool = False,
    layer: Callable[[LayerSettings], nn.Module] | None = None,
    zero_head: bool = False,
    edge_list: bool = False,
    per: Level = "molecule",
    also: Mapping[Level, int] | None = None,
    atom_features: int = 0,
    bond_features: int = 0,
    reaction: bool = False,
) -> GraphTransformer:
    r"""Make a graph transformer from its settings: the embedding, the layers, the readout and the head.

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
        foundation: pretrained network whose embedding of the molecule is concatenated to the readout, as `{"sha256":
            of its file, "width": of its embedding}`, see `PretrainedEmbedding`; default: none.
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
        reaction: whether atoms and bonds have codes of both sides of a reaction; the encodings of paths, walks and
            rings are then those of each side, see `gtx.encodings.BothSides`.

    Raises:
        ValueError: arguments contradict each other, or `layer` would ignore an argument.
    """
    _check_arguments(locals())
    encodings = encode_sides(encodings, atom_sizes, bond_sizes, reaction)
    embedding = MoleculeEmbedding(
        atom_sizes,
        bond_sizes,
        channels,
        encodings,
        pair_channels,
        pair_mlp,
        edges,
        bonds=local,
        virtual_nodes=virtual_nodes,
        bond_tokens=bond_tokens,
        atom_features=atom_features,
        bond_features=bond_features,
        bonds_as_pairs=layer is None or bond_tokens or any(encoding.pair for encoding in encodings),
    )
    width = embedding.pair_width

    def standard_layer(of: LayerSettings) -> GraphTransformerLayer:
        attention = of.attention(
            score=fresh(score), normaliser=fresh(normaliser), edge_value=edge_value and width is not None
        )
        messages = BondMessagePassing(channels) if local else None
        return GraphTransformerLayer(attention, messages, channels, dropout=dropout, norm_first=norm_first)

    make_layer = layer or standard_layer
    stack = [
        make_layer(LayerSettings(i, i == layers - 1, channels, heads, width, dropout, attention_dropout))
        for i in range(layers)
    ]
    norm = nn.LayerNorm(channels) if norm_first else None
    make_readout = partial(LevelReadout, channels=channels, bond_sizes=bond_sizes, bond_features=bond_features)
    first = make_readout(
        per,
        pooling=readout,
        descriptors=num_descriptors,
        virtual_nodes=virtual_nodes,
        substructures=substructures,
        foundation=foundation,
    )
    head = make_head(first.width, channels, out_channels, dropout, zero_head)
    further: dict[str, LevelOutput] = {}
    for level, outputs in (also or {}).items():
        other = make_readout(level, given=first.molecule_width)
        further[level] = LevelOutput(other, make_head(other.width, channels, outputs, dropout, zero_head))
    return GraphTransformer(embedding, stack, first, head, norm, further, edge_list)


_MOST_LAYERS = 1000
"""More would take minutes to make, and nobody has trained so many."""


def _check_arguments(arguments: Mapping[str, Any]) -> None:
    """Raise a `ValueError` that names an argument of `graph_transformer` at fault."""
    for name in ("out_channels", "channels", "layers", "pair_channels"):
        if arguments[name] is not None and arguments[name] < 1:
            raise ValueError(f"expected {name} of at least 1, got {arguments[name]}")
    if arguments["layers"] > _MOST_LAYERS:
        raise ValueError(f"expected layers of at most {_MOST_LAYERS:,}, got {arguments['layers']}")
    parameters = signature(graph_transformer).parameters
    of_layers = ("score", "normaliser", "edge_value")
    ignored = [name for name in of_layers if arguments[name] != parameters[name].default]
    if ignored and arguments["layer"] is not None:
        raise ValueError(f"layer makes the layers and decides {', '.join(ignored)} itself: leave them out")
    for name, kind in (("score", Score), ("normaliser", Normaliser), ("substructures", SubstructureCountEmbedding)):
        if arguments[name] is not None and not isinstance(arguments[name], kind):
            home = kind.__module__.rpartition(".")[0]
            raise ValueError(f"expected a {kind.__name__} of {home}, a module, got {arguments[name]!r}")
    for name in ("edges", "layer"):
        if arguments[name] is not None and not callable(arguments[name]):
            raise ValueError(f"expected {name} that can be called, got {arguments[name]!r}")
    per, also = arguments["per"], arguments["also"] or {}
    if per not in ("molecule", "atom", "bond"):
        raise ValueError(f'expected per of "molecule", "atom" or "bond", got {per!r}')
    if unknown := set(also) - ({"atom", "bond"} - {per}):
        raise ValueError(f'expected also of "atom" and "bond" beside per {per!r}, got {sorted(unknown)}')
    for level, outputs in also.items():
        if isinstance(outputs, bool) or not isinstance(outputs, int) or outputs < 1:
            raise ValueError(f"expected a whole number of 1 or more outputs of each {level}, got {outputs!r}")
    virtual_nodes, readout = arguments["virtual_nodes"], arguments["readout"]
    if virtual_nodes < 0 or (not virtual_nodes and not readout):
        raise ValueError(f"expected a readout or virtual nodes, got {list(readout)} and {virtual_nodes} of them")


# --- Published models: settings that decide some of the arguments.


def check_argument_names(model: Callable[..., nn.Module], arguments: Mapping[str, Any]) -> None:
    """Raise a `TypeError` if a named model is called with an argument that neither it nor `graph_transformer` has."""
    own = signature(model).parameters.keys() - {"arguments"}
    every = own | signature(graph_transformer).parameters.keys()
    for argument in arguments:
        if argument not in every:
            takes = every if model.__name__ == "standard" else every - _DECIDED | own
            raise TypeError(
                f"the model {model.__name__} has no argument {argument!r}{did_you_mean(argument, takes) or '.'} "
                f"Expected one of {', '.join(map(repr, sorted(takes)))}"
            )


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

    @wraps(setting)
    def build(out_channels: int, **arguments: Any) -> GraphTransformer:
        if "coordinates" not in own and arguments.pop("coordinates", False):
            raise ValueError(f"the model {name} uses no coordinates; `gtx models` lists those that do")
        if "coordinates" in own and own["coordinates"].default and not arguments.get("coordinates", True):
            raise ValueError(f"the model {name} needs coordinates, and the molecules have none")
        check_argument_names(setting, arguments)
        for argument in arguments:
            if argument in _DECIDED - own.keys():
                raise ValueError(f"the model {name} decides {argument!r} itself; swap modules of standard")
        return setting(out_channels, **arguments)

    return build
