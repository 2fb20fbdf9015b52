"""Models of molecules with coordinates: a graph transformer of gtx's parts, named models of gtx, and PyG's SchNet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Batch
from torch_geometric.nn import SchNet, global_add_pool, global_mean_pool

from gtx.data import MoleculeStore
from gtx.encodings import BondFeatures, GaussianDistance, NeighbourDistancesAndAngles, ShortestPathLength
from gtx.graph import CompleteGraph
from gtx.models import (
    ARCHITECTURES,
    GraphTransformer,
    LevelReadout,
    MoleculeModel,
    graph_transformer,
    make_head,
)


class AtomByAtom(MoleculeModel):
    r"""A graph transformer that predicts by atoms, as SchNet does: an MLP of every atom, and their sum or mean.

    The sum is \(\sum_i \mathrm{MLP}(v_i) / \bar n\): \(\bar n\), the mean number of atoms of a training molecule, makes
    it of a size with what one atom gives, and so training calmer.

    Args:
        model: its own readout and head are not used.
        extensive: whether atoms are summed; if not, their mean is taken.
    """

    def __init__(self, model: GraphTransformer, extensive: bool) -> None:
        super().__init__()
        readout = LevelReadout("atom", model.embedding.channels)
        head = make_head(readout.width, readout.width, 1)
        self.model = GraphTransformer(
            model.embedding, model.layers, readout, head, model.norm, edge_list=model.edge_list
        )
        self.extensive = extensive
        self.register_buffer("mean_size", torch.ones(()))

    def forward(self, batch: Batch) -> Tensor:
        each = self.model(batch)
        if not self.extensive:
            return global_mean_pool(each, batch.batch, batch.num_graphs)
        return global_add_pool(each, batch.batch, batch.num_graphs) / self.mean_size

    def observe(self, store: MoleculeStore, more: bool = False) -> None:
        self.model.observe(store, more)
        if not more:
            self.mean_size.fill_(store.sizes.double().mean())


def space(
    atom_sizes: Sequence[int], bond_sizes: Sequence[int], extensive: bool, moments: int = 128, **arguments: Any
) -> nn.Module:
    """Make full attention with distances in space and along perceived bonds in score and value, beside bond messages.

    Atoms begin with the moments of what surrounds them, which hold the angles. Distances are 64 Gaussians up to 8 Å,
    their scale and shift learned for each pair of elements. An extensive prediction is a sum over atoms, another is
    that of the readout of `GraphTransformer`.

    Args:
        atom_sizes: codes per atom column.
        bond_sizes: codes per bond column.
        extensive: whether the target grows with the molecule.
        moments: channels of `gtx.encodings.NeighbourDistancesAndAngles`.
        arguments: anything else `graph_transformer` takes, by name.
    """

    def distance() -> GaussianDistance:
        return GaussianDistance(64, 8.0, pair_types=atom_sizes[0])

    encodings = [
        BondFeatures(bond_sizes),
        ShortestPathLength(8),
        distance(),
        NeighbourDistancesAndAngles(distance(), atom_sizes[0], moments),
    ]
    model = graph_transformer(1, atom_sizes, bond_sizes, encodings=encodings, **arguments)
    return AtomByAtom(model, extensive) if extensive else model


class SchNetOfBatch(MoleculeModel):
    """PyG's SchNet (Schütt et al. 2017, arXiv:1706.08566) on batches of gtx: all pairs within the cutoff interact.

    Args:
        extensive: whether atoms are summed; if not, their mean is taken.
        cutoff: Å.
        arguments: anything else `torch_geometric.nn.SchNet` takes, by name.
    """

    def __init__(self, extensive: bool, cutoff: float = 10.0, **arguments: Any) -> None:
        super().__init__()
        readout = "add" if extensive else "mean"
        self.net = SchNet(cutoff=cutoff, interaction_graph=WithinCutoff(cutoff), readout=readout, **arguments)

    def forward(self, batch: Batch) -> Tensor:
        return self.net(batch.x[:, 0], batch.pos, batch.batch)


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


FAMILY = ("torchmd_net", "tgt", "transformer_m", "exphormer", "tokengt")
"""Named models of gtx that predict atom by atom here; each has coordinates unless it cannot use any."""


def make(
    name: str, extensive: bool, atom_sizes: Sequence[int], bond_sizes: Sequence[int], **arguments: Any
) -> nn.Module:
    """Make a model of one output by its name: `gtx` is `space`, `schnet` that of PyG, the others are of `FAMILY`."""
    if name == "gtx":
        return space(atom_sizes, bond_sizes, extensive, **arguments)
    if name == "schnet":
        return SchNetOfBatch(extensive, **arguments)
    entry = ARCHITECTURES[name]
    sizes = {"atom_sizes": atom_sizes, "bond_sizes": bond_sizes, "coordinates": entry.coordinates != "none"}
    return AtomByAtom(entry.make(1, **sizes, **arguments), extensive)
