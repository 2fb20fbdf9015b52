"""Every attention that gtx can put together, in one list: what the shared tests run over."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn

from gtx.attention import (
    AdditiveScore,
    BilinearScore,
    ClippedDotScore,
    DistanceAdjacencyBlend,
    EdgeModulatedDotScore,
    GatedSoftmax,
    GATScore,
    GATv2Score,
    GRITScore,
    Hardmax,
    HeadGate,
    LearnedSumOverHeads,
    LinearHeadMerge,
    MaxOverHeads,
    NoNormalisation,
    RMATScore,
    ScaledDotScore,
    Score,
    Sigmoid,
    SiLUWithCutoff,
    Softmax,
)
from gtx.graph import CompleteGraph
from gtx.nn import EdgeAttention
from tests.attention.by_hand import GRAPH, inputs, matrix_features

IN, D, H, K = 12, 4, 3, 5  # channels of nodes, of a head, heads, channels of pairs; IN = H * D, for "none"


class Case(NamedTuple):
    """One attention.

    Attributes:
        make: the layer, with new weights.
        edges: its pair features: none, "random", or "matrix" (distance, adjacency, known).
        sums_to_one: whether the weights into a receiver sum to 1.
        smooth: whether its gradient is that of its output.
    """

    make: Callable[[], EdgeAttention]
    edges: str | None = None
    sums_to_one: bool = True
    smooth: bool = True

    def inputs(self, graph: CompleteGraph = GRAPH, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor | None]:
        x, e = inputs(IN, K if self.edges == "random" else None, graph, dtype)
        return x, matrix_features(graph, dtype) if self.edges == "matrix" else e


class Distance(Score):
    """A score that says nothing but its equation: no matrix form, no edge features."""

    def forward(self, query: Tensor, key: Tensor, edge: Tensor | None = None) -> Tensor:
        return -(query - key).square().sum(-1)


class Shifted(BilinearScore):
    """Another equation than that of the score it is derived from, which has a matrix form."""

    def forward(self, query: Tensor, key: Tensor, edge: Tensor | None = None) -> Tensor:
        return super().forward(query, key, edge).square() - 1


class Unclipped(ClippedDotScore):
    """Another equation than that of a score that splits itself into state and bias."""

    def forward(self, query: Tensor, key: Tensor, edge: Tensor | None = None) -> Tensor:
        return (query * key).sum(-1) + self.lin_edge(edge)


class Bounded(ScaledDotScore):
    """A score that is bounded after the product of query and key, which has a matrix form."""

    def weigh(self, state: Tensor) -> Tensor:
        return super().weigh(state).tanh()


def plain(**options: object) -> Callable[[], EdgeAttention]:
    return lambda: EdgeAttention(IN, D, H, **options)


def with_edges(**options: object) -> Callable[[], EdgeAttention]:
    return lambda: EdgeAttention(IN, D, H, edge_dim=K, **options)


def published(edge_dim: int | None = None, **parts: Callable[[], nn.Module]) -> Callable[..., Callable]:
    """An attention whose parts have weights of their own, made anew each time."""

    def setting(**options: object) -> Callable[[], EdgeAttention]:
        return lambda: EdgeAttention(
            IN, D, H, edge_dim=edge_dim, **{name: make() for name, make in parts.items()}, **options
        )

    return setting


CASES: dict[str, Case] = {
    # first principles
    "raw": Case(plain(projections="none", score=ScaledDotScore(1.0))),
    "shared": Case(plain(projections="shared", bias=False, score=ScaledDotScore(1.0))),
    "key is value": Case(plain(projections="key_value")),
    "query, key, value": Case(plain(key_channels=7)),
    "unscaled": Case(plain(key_channels=7, score=ScaledDotScore(1.0))),
    "general": Case(published(score=lambda: BilinearScore(H, 7))(key_channels=7)),
    "concat": Case(published(score=lambda: AdditiveScore(H, 7))(key_channels=7)),
    "own score": Case(plain(score=Distance())),
    # edge features
    "edges everywhere": Case(with_edges(edge_key=True, edge_value=True, key_channels=7), "random"),
    "bias by a network": Case(
        published(K, edge_bias=lambda: nn.Sequential(nn.Linear(K, 6), nn.GELU(), nn.Linear(6, H)))(), "random"
    ),
    "general, edges": Case(published(K, score=lambda: BilinearScore(H, D))(edge_key=True, edge_value=True), "random"),
    "own score, edges": Case(with_edges(score=Distance(), edge_key=True, edge_value=True), "random"),
    "derived score": Case(published(K, score=lambda: Shifted(H, D))(edge_key=True, edge_value=True), "random"),
    "derived weigh": Case(plain(score=Bounded())),
    "derived score with a clip": Case(published(K, score=lambda: Unclipped(H, K, 0.01))(edge_bias=False), "random"),
    # normalisers
    "cold": Case(plain(normaliser=Softmax(0.3))),
    "hardmax": Case(plain(normaliser=Hardmax()), smooth=False),
    "sigmoid": Case(with_edges(normaliser=Sigmoid()), "random", sums_to_one=False),
    "unnormalised": Case(with_edges(normaliser=NoNormalisation(), edge_value=True), "random", sums_to_one=False),
    # merges
    "weight tensor": Case(published(merge=lambda: LinearHeadMerge(H, D, 5))()),
    "weighted heads": Case(published(merge=lambda: LearnedSumOverHeads(H))()),
    "mean of heads": Case(plain(concat=False)),
    "largest head": Case(plain(merge=MaxOverHeads())),
    "heads side by side": Case(plain()),
    # published
    "Vaswani": Case(plain(project=True)),
    "GAT": Case(published(score=lambda: GATScore(H, D))(projections="shared", bias=False)),
    "GAT, averaged": Case(published(score=lambda: GATScore(H, D))(projections="shared", bias=False, concat=False)),
    "GAT, edges": Case(published(K, score=lambda: GATScore(H, D))(edge_key=True), "random"),
    "GATv2": Case(published(score=lambda: GATv2Score(H, D))(projections="key_value")),
    "GATv2, edges": Case(
        published(K, score=lambda: GATv2Score(H, D))(projections="key_value", edge_bias=False, edge_key=True), "random"
    ),
    "GaAN": Case(
        published(gate=lambda: HeadGate(IN, H, 6))(score=ScaledDotScore(1.0), value_activation=nn.LeakyReLU(0.1))
    ),
    "MAT": Case(
        published(3, normaliser=lambda: DistanceAdjacencyBlend((0.5, 0.25, 0.25)))(edge_bias=False), "matrix", False
    ),
    "MAT, learned": Case(
        published(3, normaliser=lambda: DistanceAdjacencyBlend(learned=True, kernel="exp"))(edge_bias=False),
        "matrix",
        False,
    ),
    "R-MAT": Case(published(K, score=lambda: RMATScore(H, D, K))(edge_bias=False, edge_value=True), "random"),
    "Graphormer": Case(published(3)(edge_bias=nn.Identity(), project=True), "matrix"),
    "EGT": Case(
        published(K, score=lambda: ClippedDotScore(H, K, 1.0), normaliser=lambda: GatedSoftmax(H, K))(edge_bias=False),
        "random",
        sums_to_one=False,
    ),
    "GRIT": Case(
        published(K, score=lambda: GRITScore(H, 7, K))(key_channels=7, edge_bias=False, edge_value="state"), "random"
    ),
    "Exphormer": Case(
        published(K, score=lambda: EdgeModulatedDotScore(H, 7, K))(key_channels=7, edge_bias=False), "random"
    ),
    "TorchMD-NET": Case(
        published(
            K,
            score=lambda: EdgeModulatedDotScore(H, D, K, scale=1.0, activation=nn.SiLU()),
            normaliser=lambda: SiLUWithCutoff(),
        )(edge_bias=False),
        "random",
        sums_to_one=False,
    ),
    "scores as values": Case(with_edges(edge_value="state"), "random"),
}


def make(name: str, dtype: torch.dtype = torch.float64) -> EdgeAttention:
    """The layer with weights of which none is zero."""
    torch.manual_seed(2)
    layer = CASES[name].make().to(dtype)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape).to(dtype))
    return layer
