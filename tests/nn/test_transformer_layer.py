"""A layer is attention, local messages and an MLP as residuals; edge states, degrees and readouts beside it."""

from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

from gtx.graph import CompleteGraph
from gtx.nn import (
    BondMessagePassing,
    EdgeAttention,
    EdgeStateUpdate,
    GraphTransformerLayer,
    LearnedDegreeScaling,
    Readout,
)
from gtx.nn.blocks import GELU
from tests.training.distributed import processes

GRAPH = CompleteGraph.from_ptr(torch.tensor([0, 3, 8]))
BONDS = torch.tensor([[0, 1, 3, 4], [1, 0, 4, 3]])


def make(local: bool = True, **options: object) -> GraphTransformerLayer:
    torch.manual_seed(0)
    attention = EdgeAttention(8, 4, heads=2, edge_dim=3, project=True)
    return GraphTransformerLayer(attention, BondMessagePassing(8) if local else None, 8, **options)


def inputs() -> tuple:
    torch.manual_seed(1)
    return torch.randn(8, 8), torch.randn(GRAPH.num_edges, 3), torch.randn(4, 8)


@pytest.mark.parametrize("norm_first", [True, False])
def test_is_the_equation_in_its_docstring(norm_first: bool) -> None:
    layer = make(norm_first=norm_first).eval()
    x, e, b = inputs()

    def mix(v: torch.Tensor) -> torch.Tensor:
        return layer.attention(v, GRAPH, e) + layer.local(v, BONDS, b)

    one, two = layer.norm_attention, layer.norm_mlp
    if norm_first:
        v = x + mix(one(x))
        expected = v + layer.mlp(two(v))
    else:
        v = one(x + mix(x))
        expected = two(v + layer.mlp(v))
    torch.testing.assert_close(layer(x, GRAPH, e, BONDS, b)[0], expected)


# --- Edge states are updated by residuals.


K, S = 5, 6


@pytest.mark.parametrize("hidden", [0, 7])
@pytest.mark.parametrize("norm_first", [True, False])
def test_edge_update_is_the_equation_in_its_docstring(hidden: int, norm_first: bool) -> None:
    torch.manual_seed(0)
    update = EdgeStateUpdate(K, S, hidden, norm_first=norm_first).double()
    e, states = torch.randn(9, K, dtype=torch.float64), torch.randn(9, S, dtype=torch.float64)

    def norm(x: torch.Tensor) -> torch.Tensor:
        return F.layer_norm(x, (K,))  # as the norms start

    expected = e + states @ update.lin_state.weight.T + update.lin_state.bias
    if norm_first:
        expected = expected + update.mlp(norm(expected)) if hidden else expected
    else:
        expected = norm(expected)
        expected = norm(expected + update.mlp(expected)) if hidden else expected
    torch.testing.assert_close(update(e, states), expected, atol=1e-12, rtol=0)


def test_dropout_acts_in_training_only() -> None:
    x, e, b = inputs()
    cases = [(make(dropout=0.5), (x, GRAPH, e, BONDS, b)), (EdgeStateUpdate(K, K, 7, 0.5), torch.randn(2, 9, K))]
    cases += [(EdgeAttention(8, 4, heads=2, dropout=0.5), (x, edges)) for edges in (GRAPH, GRAPH.edge_index)]
    for module, given in cases:
        for training in (True, False):
            one, other = (module.train(training)(*given) for _ in range(2))
            assert torch.equal(one[0], other[0]) is not training


def test_a_degree_scaler_starts_as_nothing() -> None:
    """Its equation is that of GRIT in `test_published_layers.py`."""
    scaler, x = LearnedDegreeScaling(3), torch.randn(4, 3)
    assert torch.equal(scaler(x, torch.tensor([0.0, 1.0, 2.0, 4.0])), x)
    assert repr(scaler) == "LearnedDegreeScaling(3)"


# --- Readouts pool each molecule by itself; one without atoms gives zeros.


BATCH = torch.tensor([0, 0, 0, 2])


@pytest.mark.parametrize(
    ("kind", "of"), [("sum", lambda x: x.sum(0)), ("mean", lambda x: x.mean(0)), ("max", lambda x: x.max(0).values)]
)
def test_pools_each_molecule(kind: str, of: object) -> None:
    x = torch.randn(4, 5) - 3.0
    expected = torch.stack([of(x[:3]), torch.zeros(5), of(x[3:])])
    torch.testing.assert_close(Readout(5, [kind])(x, BATCH, 3), expected)


def test_attention_pooling_is_one_learned_query_for_all() -> None:
    """softmax_i(w·v_i + b) v_i, summed: attention whose receiver asks the same of every molecule."""
    readout = Readout(5, ["attention"]).double()
    x = torch.randn(4, 5, dtype=torch.float64)
    linear = readout.parts[0].gate_nn
    expected = torch.zeros(3, 5, dtype=torch.float64)  # the second molecule has no atoms
    for molecule in (0, 2):
        nodes = [i for i in range(4) if BATCH[i] == molecule]
        scores = torch.stack([(linear.weight[0] * x[i]).sum() + linear.bias[0] for i in nodes])
        for weight, i in zip(scores.exp() / scores.exp().sum(), nodes, strict=True):
            expected[molecule] = expected[molecule] + weight * x[i]
    torch.testing.assert_close(readout(x, BATCH, 3), expected, atol=1e-10, rtol=0)


# --- The GELU of MLPs takes batches of ever new shapes without growing.


def print_growth() -> None:
    """By how many MiB 300 batches of new shapes let this process grow, after 100 others."""
    torch.set_num_threads(1)
    sizes = []
    for count in range(1, 401):
        GELU()(torch.ones(count, 16, requires_grad=True)).sum().backward()
        sizes.append(int(Path("/proc/self/statm").read_text().split()[1]) * 4096)  # resident
    print((sizes[-1] - sizes[99]) / 2**20)


@pytest.mark.slow
def test_memory_does_not_grow_with_the_number_of_shapes(tmp_path) -> None:
    ((status, said),) = processes(tmp_path, print_growth)
    assert status == 0 and float(said) < 10  # MiB
