"""What lies around an atom: moments by their equation, angles, nothing from beyond the cutoff; types of atoms."""

from __future__ import annotations

import math

import pytest
import torch
from torch_geometric.data import Batch, Data

from gtx.encodings import ExpNormDistance, GaussianDistance, NeighbourAtomTypes, NeighbourDistancesAndAngles
from gtx.encodings.space import HARMONICS, harmonics
from gtx.graph import CompleteGraph

CUTOFF = 3.0


@pytest.fixture
def placed(batch: Batch) -> Batch:
    """The shared batch with its coordinates in double precision."""
    made = batch.clone()
    made.pos = batch.pos.double()
    return made


@pytest.fixture(scope="module")
def moments() -> NeighbourDistancesAndAngles:
    torch.manual_seed(0)
    made = NeighbourDistancesAndAngles(GaussianDistance(8, cutoff=4.0), types=128, channels=6, cutoff=CUTOFF).double()
    torch.nn.init.normal_(made.types)
    return made


def of(moments: NeighbourDistancesAndAngles, pos: torch.Tensor, types: torch.Tensor | None = None) -> torch.Tensor:
    """The encoding of one molecule, `[n, 18]`, before the norm."""
    x = torch.full((len(pos), 1), 6) if types is None else types[:, None]
    bare = torch.nn.Identity()
    norm, moments.norm = moments.norm, bare
    try:
        return moments(Data(x=x, pos=pos), CompleteGraph.from_ptr(torch.tensor([0, len(pos)])))[0]
    finally:
        moments.norm = norm


def ring(*degrees: float, radius: float = 1.5) -> torch.Tensor:
    """An atom and neighbours around it at these angles, in a plane."""
    around = [(radius * math.cos(math.radians(a)), radius * math.sin(math.radians(a)), 0.0) for a in degrees]
    return torch.tensor([(0.0, 0.0, 0.0), *around], dtype=torch.float64)


def test_is_its_equation_pair_by_pair(moments: NeighbourDistancesAndAngles) -> None:
    generator = torch.Generator().manual_seed(1)
    pos = 1.5 * torch.randn(6, 3, generator=generator, dtype=torch.float64)
    types = torch.tensor([6, 1, 8, 6, 7, 1])
    for r, found in enumerate(of(moments, pos, types)):
        sums = torch.zeros(9, 6, dtype=torch.float64)
        for s in range(6):
            d = (pos[s] - pos[r]).norm()
            if s == r or d >= CUTOFF:
                continue
            basis = torch.cat([moments.distance.basis(d[None])[0], torch.ones(1, dtype=torch.float64)])
            x = d / CUTOFF
            soft = 1 - 10 * x**3 + 15 * x**4 - 6 * x**5
            message = soft * (1 + moments.types[types[s]]) * (moments.filter.weight @ basis)
            sums += torch.outer(harmonics((pos[s] - pos[r]) / d), message)
        expected = [sums[0]]
        for degree in (1, 2):
            own = sums[HARMONICS[degree]]
            expected.append(((own @ moments.left[degree - 1]) * (own @ moments.right[degree - 1])).sum(0))
        torch.testing.assert_close(found, torch.cat(expected))


def test_sees_angles_where_distances_are_the_same(moments: NeighbourDistancesAndAngles) -> None:
    straight, bent = (of(moments, ring(0, angle))[0] for angle in (180, 105))
    torch.testing.assert_close(straight[:6], bent[:6])  # degree 0: distances alone
    assert (straight[6:] - bent[6:]).abs().min() > 1e-5
    square, rectangle = (of(moments, ring(*angles))[0] for angles in ((0, 90, 180, 270), (0, 60, 180, 240)))
    torch.testing.assert_close(square[:12], rectangle[:12])  # neighbours that face each other have no first moment
    assert (square[12:] - rectangle[12:]).abs().min() > 1e-5


def test_nothing_comes_from_the_cutoff_on_and_nothing_jumps_there(moments: NeighbourDistancesAndAngles) -> None:
    near, at = (of(moments, ring(0, radius=CUTOFF + step))[0] for step in (-1e-4, 0.0))
    assert at.eq(0).all() and near.ne(0).all() and near.abs().max() < 1e-6
    with_third = torch.cat([ring(0, 100), torch.tensor([[0.0, 0.0, CUTOFF]], dtype=torch.float64)])
    assert of(moments, with_third)[0].equal(of(moments, ring(0, 100))[0])


def test_unknown_coordinates_say_nothing(
    moments: NeighbourDistancesAndAngles, placed: Batch, graph: CompleteGraph
) -> None:
    values = moments(placed, graph)[0]
    unknown = placed.pos.isnan().any(-1)
    assert unknown.any() and values.isfinite().all()
    assert values[unknown].equal(moments.norm.bias.expand(int(unknown.sum()), -1))
    assert (values[~unknown] != moments.norm.bias).any()


def test_slopes_are_finite_and_right(moments: NeighbourDistancesAndAngles, placed: Batch, graph: CompleteGraph) -> None:
    placed.pos.requires_grad_()
    moments(placed, graph)[0].square().sum().backward()
    assert placed.pos.grad.isfinite().all() and placed.pos.grad.any()
    pos = ring(0, 100, 200) + 0.1 * torch.randn(4, 3, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda pos: of(moments, pos), pos.requires_grad_(), fast_mode=True)
    together = torch.zeros(3, 3, dtype=torch.float64, requires_grad=True)
    of(moments, together).sum().backward()
    assert together.grad.eq(0).all()


def test_bad_arguments_and_no_coordinates_are_errors(graph: CompleteGraph) -> None:
    with pytest.raises(ValueError, match="expected at least 1 channel"):
        NeighbourDistancesAndAngles(GaussianDistance(8), 128, 0)
    with pytest.raises(ValueError, match="positive"):
        NeighbourDistancesAndAngles(GaussianDistance(8), 128, cutoff=0.0)
    with pytest.raises(ValueError, match=r"expected pos \[N, 3\] in Å, got None"):
        flat = Data(x=torch.zeros(graph.num_nodes, 1, dtype=torch.long), pos=None)
        NeighbourDistancesAndAngles(GaussianDistance(8), 128)(flat, graph)


# --- Types of the atoms around each atom: the sum over its neighbours, and no others.


def test_types_of_neighbours_are_the_equation_atom_by_atom_and_keep_to_the_edges(
    batch: Batch, graph: CompleteGraph
) -> None:
    torch.manual_seed(0)
    distance = ExpNormDistance(6, 2.5)
    encoding = NeighbourAtomTypes(distance, 128, 5)
    near = torch.rand(graph.num_pairs, generator=torch.Generator().manual_seed(0)) < 0.7
    for edges in (graph, graph.masked(near)):
        found, _ = encoding(batch, edges)
        expected = torch.zeros_like(found)
        for sender, receiver in edges.edge_index.T.tolist():
            d = (batch.pos[sender] - batch.pos[receiver]).norm()
            if sender != receiver and d < 2.5:  # never of unknown coordinates
                filtered = encoding.filter.weight @ distance.basis(d[None])[0]
                expected[receiver] += encoding.types.weight[batch.x[sender, 0]] * filtered
        torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)
        assert found.abs().max() > 0.1
