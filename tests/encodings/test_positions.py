"""Laplacian eigenvectors and sinusoids of a position."""

import math

import pytest
import torch
from torch_geometric.data import Batch, Data
from torch_geometric.utils import to_dense_adj

from gtx.encodings import LaplacianEigenvectors, SinusoidalPosition
from gtx.encodings.positions import sinusoidal_encoding
from gtx.graph import CompleteGraph
from tests.molecules_for_tests import renumbered

K = 40  # more than any molecule here has


def laplacian(data: Data) -> torch.Tensor:
    A = to_dense_adj(data.edge_index, max_num_nodes=data.num_nodes)[0].double()
    D = A.sum(1)
    return torch.diag((D > 0).double()) - A / (D.clamp(min=1)[:, None] * D.clamp(min=1)).sqrt()


def parts(node: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Eigenvectors `[n, m]` and eigenvalues `[m]` of one molecule, those that are there."""
    vectors, values = node.double().chunk(2, -1)
    assert (values == values[:1]).all()
    there = values[0] > 0
    assert vectors[:, ~there].eq(0).all()
    return vectors[:, there], values[0, there]


@pytest.mark.parametrize("max_buckets", [1, 4])
def test_they_are_the_eigenvectors(max_buckets: int, batch: Batch) -> None:
    graph = CompleteGraph.from_batch(batch.batch, max_buckets=max_buckets)
    node, pair = LaplacianEigenvectors(K).eval()(batch, graph)
    assert pair is None and node.isfinite().all()
    for b, data in enumerate(batch.to_data_list()):
        vectors, values = parts(node[graph.ptr[b] : graph.ptr[b + 1]])
        L = laplacian(data)
        torch.testing.assert_close(L @ vectors, vectors * values, atol=1e-5, rtol=0)
        torch.testing.assert_close(vectors.T @ vectors, torch.eye(len(values)).double(), atol=1e-5, rtol=0)
        expected = torch.linalg.eigvalsh(L)
        torch.testing.assert_close(values, expected[expected > 1e-9], atol=1e-6, rtol=1e-5)


def test_signs_are_drawn_per_eigenvector_and_molecule_in_training_alone(batch: Batch, graph: CompleteGraph) -> None:
    encoding = LaplacianEigenvectors(3)
    torch.manual_seed(0)
    plain, drawn, again = encoding.eval()(batch, graph)[0], *(encoding.train()(batch, graph)[0] for _ in range(2))
    assert encoding.eval()(batch, graph)[0].equal(plain)
    assert drawn[:, 3:].equal(plain[:, 3:]) and drawn.abs().equal(plain.abs()) and not drawn.equal(again)
    signs = set()
    for b in range(graph.num_graphs):
        of, of_plain = (each[graph.ptr[b] : graph.ptr[b + 1], :3] for each in (drawn, plain))
        sign = (of * of_plain).sum(0).sign()
        assert of.equal(of_plain * sign)
        signs.add(tuple(sign.tolist()))
    assert len(signs) > 3


def test_in_evaluation_the_sign_is_that_of_the_cubes(batch: Batch, graph: CompleteGraph) -> None:
    other, order = renumbered(batch)
    encoding = LaplacianEigenvectors(2).eval()
    ofs, others = encoding(batch, graph)[0], encoding(other, graph)[0]
    aspirin = slice(0, int(graph.ptr[1]))  # no symmetry, and its first two eigenvalues are simple
    assert (ofs[aspirin, :2] ** 3).sum(0).gt(1e-3).all()
    torch.testing.assert_close(others[aspirin], ofs[order[aspirin]], atol=1e-5, rtol=0)


def test_absolute_has_no_signs(batch: Batch, graph: CompleteGraph) -> None:
    absolute, signed = LaplacianEigenvectors(4, "absolute")(batch, graph)[0], LaplacianEigenvectors(4)(batch, graph)[0]
    assert absolute.equal(signed.abs()) and not absolute.equal(signed)


def test_invariant_sees_neighbours_but_no_sign(batch: Batch, graph: CompleteGraph) -> None:
    encoding = LaplacianEigenvectors(5, "invariant", channels=4)
    vectors, values = encoding.eigenvectors(batch.edge_index, graph)
    node = encoding(batch, graph)[0]
    assert node.shape == (graph.num_nodes, 20)
    signs = torch.tensor([1, -1, -1, 1, -1])
    result = encoding.invariant(vectors * signs, values, batch.edge_index)
    torch.testing.assert_close(result.flatten(1), node)
    assert result[values == 0].eq(0).all() and result[values > 0].any(-1).all()
    assert (encoding.invariant(vectors.abs(), values, batch.edge_index) - result).abs().max() > 1e-3
    node.sum().backward()
    assert all(parameter.grad.any() for parameter in encoding.parameters())
    assert encoding.double()(batch, graph)[0].dtype == torch.float64


# --- Sinusoids of a position: both published conventions, and what both have in common.


CONVENTIONS = ["interleaved", "halves"]


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_is_its_equation(convention: str) -> None:
    t, D = 7, 8
    row = sinusoidal_encoding(torch.tensor([t]), D, convention)[0].tolist()
    for i in range(D // 2):
        if convention == "interleaved":
            angle, at = t / 10000 ** (2 * i / D), (2 * i, 2 * i + 1)
        else:
            angle, at = t / 10000 ** (i / (D / 2 - 1)), (i, D // 2 + i)
        assert [row[a] for a in at] == pytest.approx([math.sin(angle), math.cos(angle)])


def test_far_positions_keep_their_digits() -> None:
    assert sinusoidal_encoding(torch.tensor(123_456), 2)[0].item() == pytest.approx(math.sin(123_456), abs=1e-6)
    assert sinusoidal_encoding(torch.rand(2, 3, dtype=torch.float64), 4).dtype == torch.float64


def test_encoding_counts_within_each_graph(batch: Batch, graph: CompleteGraph) -> None:
    node, pair = SinusoidalPosition(6, "halves")(batch, graph)
    assert pair is None
    for start, stop in zip(batch.ptr[:-1], batch.ptr[1:], strict=True):
        assert node[start:stop].equal(sinusoidal_encoding(torch.arange(int(stop - start)), 6, "halves"))
