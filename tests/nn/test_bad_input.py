"""What does not fit is refused in one line that says what was expected and what came."""

from __future__ import annotations

import pytest
import torch

from gtx.attention import (
    ClippedDotScore,
    DistanceAdjacencyBlend,
    EdgeModulatedDotScore,
    GatedSoftmax,
    GATScore,
    GATv2Score,
    GRITScore,
    RMATScore,
)
from gtx.encodings import CategoricalFeatureSpec, ContinuousFeatureSpec
from gtx.graph import CompleteGraph
from gtx.nn import EdgeAttention, EdgeStateUpdate, GraphTransformerLayer, LearnedDegreeScaling, PairEmbedding, Readout

GRAPH = CompleteGraph.from_ptr(torch.tensor([0, 3, 5]))  # 13 pairs
X = torch.randn(5, 8)


def refused(match: str) -> object:
    return pytest.raises(ValueError, match=match)


@pytest.mark.parametrize("edges", [GRAPH, GRAPH.edge_index], ids=["complete", "edge list"])
def test_pair_features_of_the_wrong_length_or_none(edges: object) -> None:
    layer = EdgeAttention(8, 4, 2, edge_dim=5)
    with refused(r"expected edge features \[13, 5\], got \[12, 5\]"):
        layer(X, edges, torch.randn(12, 5))
    with refused(r"expected edge features \[13, 5\], got \[13, 4\]"):
        layer(X, edges, torch.randn(13, 4))
    with refused(r"expected edge features \[13, 5\], got \[13\]"):
        layer(X, edges, torch.randn(13))
    with refused(r"expected edge features \[13, 5\], got None"):
        layer(X, edges)
    with refused(r"edge features \[13, 5\] came, but this layer has edge_dim=None"):
        EdgeAttention(8, 4, 2)(X, edges, torch.randn(13, 5))


def test_features_of_all_pairs_and_not_of_the_edges_that_are_left() -> None:
    layer, graph = EdgeAttention(8, 4, 2, edge_dim=5), GRAPH.masked(torch.arange(13) != 2)
    assert layer(X, graph, torch.randn(13, 5)).shape == (5, 8)
    with refused(r"expected edge features \[13, 5\], got \[12, 5\]"):
        layer(X, graph, torch.randn(12, 5))


@pytest.mark.parametrize("edges", [GRAPH, GRAPH.edge_index], ids=["complete", "edge list"])
@pytest.mark.parametrize(
    "parts",
    [
        {"score": RMATScore(2, 4, 5)},
        {"score": ClippedDotScore(2, 5)},
        {"score": GRITScore(2, 4, 5)},
        {"score": EdgeModulatedDotScore(2, 4, 5)},
        {"normaliser": GatedSoftmax(2, 5)},
        {"normaliser": DistanceAdjacencyBlend()},
    ],
    ids=lambda parts: repr(next(iter(parts.values()))),
)
def test_parts_that_need_edge_features(parts: dict, edges: object) -> None:
    with refused("edge (features|states).*expected|expected edge features.*got None"):
        EdgeAttention(8, 4, 2, **parts)(X, edges)


def test_projections() -> None:
    with refused("projections out of separate, key_value, shared, none, got query"):
        EdgeAttention(8, 4, 2, projections="query")
    for kind in ("key_value", "shared", "none"):
        with refused(f"projections '{kind}' make key and value one: expected key_channels 4, got 3"):
            EdgeAttention(8, 4, 2, projections=kind, key_channels=3)
    with refused("without projections the nodes are the heads: expected 12 channels, got 8"):
        EdgeAttention(8, 4, 3, projections="none")


@pytest.mark.parametrize("name", ["out_channels", "heads", "key_channels"])
def test_counts(name: str) -> None:
    with refused(f"expected a positive {name}, got 0"):
        EdgeAttention(8, **({"out_channels": 4} | {name: 0}))


def test_edge_values() -> None:
    with refused("expected edge_value True, False or 'state', got 'states'"):
        EdgeAttention(8, 4, edge_dim=5, edge_value="states")


def test_layers_whose_parts_miss_something() -> None:
    attention = EdgeAttention(8, 4, 2)
    with refused("expected attention with an edge_dim, got None"):
        GraphTransformerLayer(attention, None, 8, edge_update=EdgeStateUpdate(5, attention.state_width))
    with refused(r"counts bonds: expected bond_index \[2, E\], got None"):
        GraphTransformerLayer(attention, None, 8, scaler=LearnedDegreeScaling(8))(X, GRAPH)


@pytest.mark.parametrize("p", [1.0, -0.1, float("nan")])
def test_dropout(p: float) -> None:
    with refused(f"expected 0 <= dropout < 1, got {p}"):
        EdgeAttention(8, 4, dropout=p)


def test_nodes_of_another_number() -> None:
    with refused(r"expected 5 nodes, as in CompleteGraph\(.*\), got 4"):
        EdgeAttention(8, 4)(X[:4], GRAPH)
    with refused(r"expected edge_index \[2, E\] or a CompleteGraph, got \[3, 4\]"):
        EdgeAttention(8, 4)(X, torch.zeros(3, 4, dtype=torch.long))


def test_codes_are_embedded_and_values_may_stand_as_they_are() -> None:
    with refused("codes must be embedded: expected pair_channels, got None"):
        PairEmbedding([ContinuousFeatureSpec(3), CategoricalFeatureSpec((4,))], None)
    plain = PairEmbedding([ContinuousFeatureSpec(3), ContinuousFeatureSpec(2)], None)
    one, two = torch.randn(13, 3), torch.randn(13, 2)
    assert plain.width == 5 and torch.equal(plain([one, two]), torch.cat([one, two], 1))
    assert PairEmbedding([], 8).width is None and PairEmbedding([], 8)([]) is None


def test_readouts() -> None:
    with refused(r"readouts out of sum, mean, max, attention, got \['median'\]"):
        Readout(8, ["sum", "median"])
    with refused(r"readouts out of sum, mean, max, attention, got \[\]"):
        Readout(8, [])


def test_a_score_that_is_a_function_or_a_class_is_refused() -> None:
    for score in (lambda query, key, edge=None: (query * key).sum(-1), GATv2Score):
        with pytest.raises(TypeError, match=r"expected a score, an instance of a class derived from .*Score, got <"):
            EdgeAttention(32, 8, heads=4, score=score)


def test_a_score_of_another_width_is_refused() -> None:
    with pytest.raises(ValueError, match=r"expected modules for 4 heads, got GATv2Score\(2, 8\)"):
        EdgeAttention(32, 8, heads=4, score=GATv2Score(2, 8))
    with pytest.raises(ValueError, match=r"expected a score for 8 channels, got GATScore\(4, 16\)"):
        EdgeAttention(32, 8, heads=4, score=GATScore(4, 16))


@pytest.mark.parametrize("name", ["beta", "root_weight"])
def test_arguments_of_transformer_conv_that_are_not_offered(name: str) -> None:
    assert EdgeAttention(8, 4, **{name: False}).width == 4
    with pytest.raises(
        TypeError, match=f"has no {name}=True as TransformerConv: leave it out, and add a torch.nn.Linear"
    ):
        EdgeAttention(8, 4, **{name: True})
