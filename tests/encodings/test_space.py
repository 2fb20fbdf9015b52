"""Encodings of space: distances, directions, and what lies around an atom.

That no motion of a molecule changes them, and their slopes by the coordinates, are checked of models that read them.
"""

import math

import pytest
import torch
from torch_geometric.data import Batch, Data

from gtx.encodings import (
    BesselDistance,
    Encoding,
    ExpNormDistance,
    FourierDistance,
    GaussianDistance,
    MATDistanceAndAdjacency,
    NeighbourAtomTypes,
    NeighbourDistancesAndAngles,
    PairUnitVector,
)
from gtx.encodings.space import HARMONICS, envelope, harmonics
from gtx.graph import CompleteGraph
from tests.molecules_for_tests import in_double, whole_batch

ALL = [
    BesselDistance(5, cutoff=5.0),
    ExpNormDistance(6, cutoff=8.0, learned=True),
    FourierDistance(4, cutoff=8.0),
    GaussianDistance(8),
    GaussianDistance(8, cutoff=5.0, learned=True, pair_types=128),
    MATDistanceAndAdjacency(),
]


@pytest.mark.parametrize("encoding", ALL, ids=repr)
def test_unknown_coordinates_are_zeros_that_say_so(encoding: Encoding, batch: Batch, graph: CompleteGraph) -> None:
    _, values = encoding(batch, graph)
    unknown = batch.pos.isnan().any(-1)[graph.pair_index[0]]
    assert 0 < unknown.sum() < graph.num_pairs
    assert values[:, -1].equal((~unknown).float())
    values = (
        values[:, [0, 2]] if isinstance(encoding, MATDistanceAndAdjacency) else values
    )  # its bonds are known all the same
    assert values[unknown].eq(0).all()
    assert values[~unknown].ne(0).any(1).all()


@pytest.mark.parametrize(
    "encoding", [*ALL, PairUnitVector(), NeighbourDistancesAndAngles(GaussianDistance(8), 128)], ids=repr
)
def test_no_coordinates_is_an_error(encoding: Encoding, graph: CompleteGraph) -> None:
    with pytest.raises(ValueError, match=r"expected pos \[N, 3\] in Å, got None"):
        encoding(whole_batch(), graph)


def of_distances(encoding: Encoding, *distances: float) -> torch.Tensor:
    """The encoding of one distance after another, `[len(distances), K]`, without the last channel."""
    far = torch.tensor([[0.0, 0, 0], *([0, d, 0] for d in distances)])
    _, values = encoding(Data(pos=far), CompleteGraph.from_ptr(torch.tensor([0, len(far)])))
    return values[1 : len(far), :-1]


def test_a_gaussian_is_one_at_its_centre() -> None:
    at_centre, itself = of_distances(GaussianDistance(6, cutoff=10.0), 4.0, 0.0)
    assert at_centre[2] == 1 and itself[0] == 1
    assert at_centre[1].item() == pytest.approx(math.exp(-0.5))  # one width away


def test_bessel_is_its_equation() -> None:
    c, d = 5.0, 1.3
    values = of_distances(BesselDistance(4, c), d, 1e-3, 0.0, 5.1)
    n, x = torch.arange(1, 5), torch.tensor(d / c)
    u = 1 - 28 * x**6 + 48 * x**7 - 21 * x**8
    torch.testing.assert_close(values[0], math.sqrt(2 / c) * torch.sin(n * math.pi * x) / d * u)
    torch.testing.assert_close(values[2], values[1], rtol=1e-5, atol=0)  # the limit, for a node with itself
    assert values[3].eq(0).all()


def test_exp_norm_is_its_equation() -> None:
    c, d = 8.0, 2.0
    mu = torch.linspace(math.exp(-c), 1, 6)
    beta = (2 / 6 * (1 - math.exp(-c))) ** -2
    u = 1 - 6 * (d / c) ** 5 + 15 * (d / c) ** 4 - 10 * (d / c) ** 3
    values = of_distances(ExpNormDistance(6, c), d, 8.5)
    torch.testing.assert_close(values[0], u * torch.exp(-beta * (math.exp(-d) - mu) ** 2))
    assert values[1].eq(0).all()


def test_fourier_is_its_equation() -> None:
    values = of_distances(FourierDistance(4, 10.0), 2.5, 22.5)
    expected = [math.sin(math.pi / 4), 1, math.cos(math.pi / 4), 0]
    torch.testing.assert_close(values[0], torch.tensor(expected), atol=1e-6, rtol=0)
    torch.testing.assert_close(values[1], values[0], atol=1e-5, rtol=0)  # twice the cutoff farther


@pytest.mark.parametrize("exponent", [3, 6])
def test_envelope_leads_to_zero_smoothly(exponent: int) -> None:
    x = torch.tensor([0.0, 1 - 1e-4, 1.0, 2.0], dtype=torch.float64, requires_grad=True)
    u = envelope(x, exponent)
    (slope,) = torch.autograd.grad(u.sum(), x, create_graph=True)
    (bend,) = torch.autograd.grad(slope.sum(), x)
    assert u[0] == 1 and u[2:].eq(0).all()
    assert u[1].abs() < 1e-9 and slope[1].abs() < 1e-5 and bend[1].abs() < 5e-2


def test_pair_types_scale_and_shift_by_receiver_and_sender() -> None:
    pair = Data(x=torch.tensor([[1], [2]]), pos=torch.tensor([[0.0, 0, 0], [0, 3.0, 0]]))
    graph = CompleteGraph.from_ptr(torch.tensor([0, 2]))
    plain, typed = GaussianDistance(11), GaussianDistance(11, pair_types=3)
    assert typed(pair, graph)[1].equal(plain(pair, graph)[1])
    with torch.no_grad():
        typed.scale[1, 2], typed.shift[1, 2] = 2.0, 1.0  # receiver of type 1, sender of type 2
    values = typed(pair, graph)[1].view(2, 2, -1)
    assert values[0, 1].argmax() == 7 and values[1, 0].argmax() == 3


def test_pair_distance_is_distance_and_bond(batch: Batch, graph: CompleteGraph) -> None:
    _, values = MATDistanceAndAdjacency()(batch, graph)
    start, stop = batch.ptr[0], batch.ptr[1]
    of_first = values[: graph.pair_ptr[1]].view(stop, stop, 3)
    pos = batch.pos[start:stop]
    torch.testing.assert_close(of_first[..., 0], torch.cdist(pos, pos, compute_mode="donot_use_mm_for_euclid_dist"))
    assert values[:, 1].sum() == batch.num_edges and values[graph.pair_of(batch.edge_index), 1].all()


def test_a_direction_points_from_receiver_to_sender_and_fades() -> None:
    """It turns with the molecule: see `tests/nn/test_transformer_layer.py`."""
    graph = CompleteGraph.from_ptr(torch.tensor([0, 4]))
    pos = torch.tensor([[0.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 4.0], [torch.nan] * 3], requires_grad=True)
    _, values = PairUnitVector(4.0)(Data(pos=pos), graph)
    found = values.view(4, 4, 4)
    assert found[0, 0].tolist() == [0, 0, 0, 1]  # an atom with itself
    assert found[0, 1].tolist() == [0, 1, 0, 0.5] and found[1, 0].tolist() == [0, -1, 0, 0.5]
    assert found[0, 2].tolist() == [0, 0, 1, 0] and found[1, 2, 3] == 0  # beyond it
    assert found[3].eq(0).all() and found[:, 3].eq(0).all()  # unknown
    values.sin().sum().backward()
    assert pos.grad.isfinite().all() and pos.grad.any()


@pytest.mark.parametrize(
    "encoding",
    [NeighbourDistancesAndAngles(GaussianDistance(8), 128, 4), NeighbourAtomTypes(GaussianDistance(8), 128, 4)],
    ids=repr,
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_coordinates_of_another_precision(encoding: Encoding, dtype: torch.dtype, batch: Batch, graph) -> None:
    expected, other = encoding.float()(batch, graph)[0], batch.clone()
    other.pos = batch.pos.double() if dtype == torch.float32 else batch.pos
    found = encoding.to(dtype)(other, graph)[0]
    assert found.dtype == dtype
    torch.testing.assert_close(found.float(), expected, rtol=1e-4, atol=1e-5)


# --- What lies around an atom: moments by their equation, types of atoms.


CUTOFF = 3.0


@pytest.fixture(scope="module")
def moments() -> NeighbourDistancesAndAngles:
    """Before the norm."""
    torch.manual_seed(0)
    made = NeighbourDistancesAndAngles(GaussianDistance(8, cutoff=4.0), types=128, channels=6, cutoff=CUTOFF).double()
    torch.nn.init.normal_(made.types)
    made.norm = torch.nn.Identity()
    return made


def of_molecule(
    moments: NeighbourDistancesAndAngles, pos: torch.Tensor, types: torch.Tensor | None = None
) -> torch.Tensor:
    """The encoding of one molecule, `[n, 18]`."""
    x = torch.full((len(pos), 1), 6) if types is None else types[:, None]
    return moments(Data(x=x, pos=pos), CompleteGraph.from_ptr(torch.tensor([0, len(pos)])))[0]


def test_is_its_equation_pair_by_pair(moments: NeighbourDistancesAndAngles) -> None:
    generator = torch.Generator().manual_seed(1)
    pos = 1.5 * torch.randn(6, 3, generator=generator, dtype=torch.float64)
    types = torch.tensor([6, 1, 8, 6, 7, 1])
    for r, found in enumerate(of_molecule(moments, pos, types)):
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


def test_unknown_coordinates_say_nothing(moments, batch: Batch, graph: CompleteGraph) -> None:
    placed = in_double(batch)
    values = moments(placed, graph)[0]
    unknown = placed.pos.isnan().any(-1)
    assert unknown.any() and values.isfinite().all()
    assert values[unknown].eq(0).all() and values[~unknown].ne(0).any()


def test_atoms_in_one_place_have_no_slope(moments: NeighbourDistancesAndAngles) -> None:
    together = torch.zeros(3, 3, dtype=torch.float64, requires_grad=True)
    of_molecule(moments, together).sum().backward()
    assert together.grad.eq(0).all()


# --- Types of the atoms around each atom: the sum over its neighbours, and no others.


def test_types_of_neighbours_are_the_equation_atom_by_atom_and_keep_to_the_edges(batch, graph) -> None:
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
