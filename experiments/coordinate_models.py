"""Models of molecules with coordinates: a graph transformer of gtx's parts, named models of gtx, and PyG's SchNet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Batch
from torch_geometric.nn import SchNet, global_add_pool, global_mean_pool

from gtx.data import MoleculeStore
from gtx.encodings import Bonds, GaussianDistance, Moments, ShortestPath
from gtx.graph import CompleteGraph
from gtx.models import ARCHITECTURES, Architecture, GraphTransformer
from gtx.nn import GELU


class AtomSum(GraphTransformer):
    r"""A graph transformer whose prediction is a sum over atoms, as SchNet's is: \(\sum_i \mathrm{MLP}(v_i) / \bar n\).

    \(\bar n\), the mean number of atoms of a training molecule, makes a molecule's sum of a size with what one atom
    gives, and so training calmer. Arguments as of `GraphTransformer`; its readout is not used.
    """

    def __init__(self, out_channels: int, *args: Any, channels: int = 64, dropout: float = 0.0, **more: Any) -> None:
        super().__init__(out_channels, *args, channels=channels, dropout=dropout, readout=("sum",), **more)
        self.head = nn.Sequential(nn.Linear(channels, channels), GELU(), nn.Linear(channels, out_channels))
        self.register_buffer("mean_size", torch.ones(()))

    def forward(self, batch: Batch, graph: CompleteGraph | None = None) -> Tensor:
        each = self.head(self.nodes(batch, graph)) / self.mean_size
        return global_add_pool(each, batch.batch, batch.num_graphs)

    def observe(self, store: MoleculeStore, more: bool = False) -> None:
        super().observe(store, more)
        if not more:
            self.mean_size.fill_(store.sizes.double().mean())


def space(
    out_channels: int,
    *,
    atom_sizes: Sequence[int],
    bond_sizes: Sequence[int],
    extensive: bool,
    gaussians: int = 64,
    cutoff: float = 8.0,
    farthest: int = 8,
    moments: int = 128,
    **arguments: Any,
) -> GraphTransformer:
    """Full attention with distances in space and along perceived bonds in score and value, beside bond messages.

    Atoms begin with the moments of what surrounds them, which hold the angles.

    Args:
        out_channels: predictions per molecule.
        atom_sizes: codes per atom column.
        bond_sizes: codes per bond column.
        extensive: a sum over atoms; if not, the readout of `GraphTransformer`.
        gaussians: of the distance, their scale and shift learned for each pair of elements.
        cutoff: the last Gaussian's centre, Å.
        farthest: longest path distance with a code of its own, bonds.
        moments: channels of `gtx.encodings.Moments`; 0 for none.
        arguments: anything else `GraphTransformer` takes, by name.
    """

    def distance() -> GaussianDistance:
        return GaussianDistance(gaussians, cutoff, pair_types=atom_sizes[0])

    encodings = [Bonds(bond_sizes), ShortestPath(farthest), distance()]
    if moments:
        encodings.append(Moments(distance(), atom_sizes[0], moments))
    kind = AtomSum if extensive else GraphTransformer
    return kind(out_channels, atom_sizes, bond_sizes, encodings=encodings, **arguments)


class AtomByAtom(nn.Module):
    """A named model that predicts by atoms, as SchNet does: an MLP of every atom, and their sum or mean.

    Args:
        model: of one output; its own readout and head are not used.
        extensive: whether atoms are summed; if not, their mean is taken.
    """

    def __init__(self, model: GraphTransformer, extensive: bool) -> None:
        super().__init__()
        channels = model.head[-1].in_features
        model.readout, model.substructures = None, None
        model.head = nn.Sequential(nn.Linear(channels, channels), GELU(), nn.Linear(channels, 1))
        self.model, self.extensive = model, extensive
        self.register_buffer("mean_size", torch.ones(()))

    def forward(self, batch: Batch) -> Tensor:
        each = self.model.head(self.model.nodes(batch))
        if not self.extensive:
            return global_mean_pool(each, batch.batch, batch.num_graphs)
        return global_add_pool(each, batch.batch, batch.num_graphs) / self.mean_size

    def observe(self, store: MoleculeStore, more: bool = False) -> None:
        self.model.observe(store, more)
        if not more:
            self.mean_size.fill_(store.sizes.double().mean())


def named(name: str) -> Callable[..., AtomByAtom]:
    """The named model of gtx, atom by atom; it has coordinates unless it cannot use any."""

    def make(out_channels: int, *, extensive: bool, **arguments: Any) -> AtomByAtom:
        if out_channels != 1:
            raise ValueError(f"a sum or mean over atoms is one number: expected out_channels 1, got {out_channels}")
        entry = ARCHITECTURES[name]
        return AtomByAtom(entry.make(1, coordinates=entry.coordinates != "none", **arguments), extensive)

    return make


class SchNetOfBatch(nn.Module):
    """PyG's SchNet (Schütt et al. 2017, arXiv:1706.08566) on batches of gtx: all pairs within the cutoff interact.

    Args:
        out_channels: must be 1.
        extensive: whether atoms are summed; if not, their mean is taken.
        cutoff: Å.
        arguments: anything else `torch_geometric.nn.SchNet` takes, by name.
    """

    def __init__(self, out_channels: int, *, extensive: bool, cutoff: float = 10.0, **arguments: Any) -> None:
        super().__init__()
        if out_channels != 1:
            raise ValueError(f"SchNet predicts one number per molecule: expected out_channels 1, got {out_channels}")
        near = WithinCutoff(cutoff)
        readout = "add" if extensive else "mean"
        self.net = SchNet(cutoff=cutoff, interaction_graph=near, readout=readout, **arguments)

    def forward(self, batch: Batch) -> Tensor:
        return self.net(batch.x[:, 0], batch.pos, batch.batch)

    def observe(self, store: MoleculeStore, more: bool = False) -> None:
        """Nothing is learned before training."""


class WithinCutoff(nn.Module):
    """All ordered pairs of different atoms of a molecule nearer than `cutoff`, Å, and their distances."""

    def __init__(self, cutoff: float) -> None:
        super().__init__()
        self.cutoff = cutoff

    def forward(self, pos: Tensor, batch: Tensor) -> tuple[Tensor, Tensor]:
        sender, receiver = CompleteGraph.from_batch(batch).pair_index
        apart = (pos[sender] - pos[receiver]).norm(dim=-1)
        near = (sender != receiver) & (apart < self.cutoff)
        return torch.stack([sender[near], receiver[near]]), apart[near]


def schnet(
    out_channels: int, *, atom_sizes: Sequence[int], bond_sizes: Sequence[int], **arguments: Any
) -> SchNetOfBatch:
    """SchNet; the sizes of code tables do not concern it."""
    return SchNetOfBatch(out_channels, **arguments)


FAMILY = ("torchmd_net", "tgt", "transformer_m", "exphormer", "tokengt")
"""Named models of gtx that are measured here."""
MODELS = {
    "space": Architecture(space, "full attention with distances, summed over atoms", "gtx"),
    "schnet": Architecture(schnet, "continuous-filter convolutions", "Schütt et al. 2017, arXiv:1706.08566"),
    **{f"atoms_{name}": ARCHITECTURES[name]._replace(make=named(name)) for name in FAMILY},
}
