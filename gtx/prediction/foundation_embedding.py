"""Embeddings by the foundation, which networks and kernels of other models read: of molecules, and of reactions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, TypeVar

import torch
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from torch import Tensor, nn
from torch_geometric.data import Batch, Data

from gtx.base.errors import InputError
from gtx.data import MoleculeStore
from gtx.encodings.sides import Sides, split_sides
from gtx.graph.packing import offsets
from gtx.kernel import KernelRidge
from gtx.models import GraphTransformer
from gtx.models.graph_transformer import PretrainedEmbedding
from gtx.molecules.graphs import ATOM_INDEX, atom_code
from gtx.prediction.foundation import FOUNDATION_MODEL, read_model_card
from gtx.prediction.model_file import read_model
from gtx.tasks.closed_form import over_batches

Module = TypeVar("Module", bound=nn.Module)


@lru_cache(maxsize=4)
def _network(sha256: str, device: str) -> GraphTransformer:
    """Load the foundation to a device; the checksum of its file is the key of the cache."""
    (network,), *_ = read_model(FOUNDATION_MODEL)
    if not isinstance(network, GraphTransformer):
        raise TypeError(f"expected a graph transformer in {FOUNDATION_MODEL}, got {type(network).__name__}")
    return network.to(device)


@dataclass(frozen=True)
class FoundationEmbedding:
    """Function from a batch of B molecules to their embeddings by the foundation, float32 `[B, width]`.

    It reads only codes of atoms and bonds, and leaves the result in the batch as `embeddings`, so that network and
    kernel of a blend compute it once. A copy or a pickle holds only the checksum; the network is loaded once per
    process and device.
    """

    sha256: str  # of the foundation's file
    sides: Sides | None = None  # numbers of codes of reactions, whose two sides are then embedded, [B, 2 width]

    @classmethod
    def of(cls, foundation: Mapping[str, Any]) -> FoundationEmbedding:
        """Make the embedding that `foundation_spec` describes; refuse that of another foundation."""
        sides = foundation.get("sides")
        if foundation != (available := foundation_spec(sides)):
            raise InputError(
                f"it reads embeddings by a foundation with SHA-256 {foundation['sha256'][:12]} and "
                f"{foundation['width']} numbers, this gtx has {available['sha256'][:12]} with {available['width']}: "
                "use the gtx that made the file, or train anew"
            )
        return cls(foundation["sha256"], sides)

    def __call__(self, batch: Batch) -> Tensor:
        if "embeddings" not in batch:
            with torch.no_grad():
                embed = self.network(str(batch.x.device)).embed
                batch.embeddings = embed(batch) if self.sides is None else embed_reactions(embed, batch, self.sides)
        return batch.embeddings

    @property
    def reads_molecules(self) -> bool:
        """True if it embeds molecules as they are, from which an explanation can remove atoms."""
        return self.sides is None

    def network(self, device: str = "cpu") -> GraphTransformer:
        """Return the pretrained network on a device."""
        return _network(self.sha256, device)


def foundation_spec(sides: Sides | None = None) -> dict[str, Any]:
    """Return the argument `foundation` of a model, see `gtx.kernel.KernelRidge` and `gtx.models.graph_transformer`.

    For reactions, `sides` are the numbers of codes of atom and bond columns.
    """
    sha256 = read_model_card()["sha256"]
    spec: dict[str, Any] = {"sha256": sha256, "width": _network(sha256, "cpu").width}
    return spec if sides is None else spec | {"width": 2 * spec["width"], "sides": sides}


def attach_foundation(module: Module) -> Module:
    """Give the foundation to every part of a module that reads its embeddings, see `FoundationEmbedding.of`."""
    for part in reading_parts(module):
        part.embed = FoundationEmbedding.of(part.foundation)
    return module


def reading_parts(module: nn.Module) -> list[Any]:
    """List the kernels and readouts within a module that read embeddings of the foundation."""
    parts = [part for part in module.modules() if isinstance(part, (KernelRidge, PretrainedEmbedding))]
    return [part for part in parts if not isinstance(part, KernelRidge) or part.embeddings is not None]


def with_embeddings(store: MoleculeStore, foundation: Mapping[str, Any]) -> MoleculeStore:
    """Return a store of the same molecules with their embeddings by the foundation, see `foundation_spec`."""
    return replace(store, embeddings=over_batches(FoundationEmbedding.of(foundation), store))


# --- Reactions, by a network that reads molecules: those of both sides.

HYDROGENS, DEGREE = ATOM_INDEX["hydrogens"], ATOM_INDEX["degree"]


def embed_reactions(embed: Callable[[Batch], Tensor], batch: Batch, sizes: Sides) -> Tensor:
    """Embed B reactions by an embedding of molecules `[molecules, width]`: float32 `[B, 2 width]`.

    The first half is the sum over the molecules of the first side; the second half is that of the second side minus
    that of the first.
    """
    first, second = (_embed_side(embed, side, sizes[0]) for side in split_sides(batch, *sizes))
    return torch.cat([first, second - first], 1)


def _embed_side(embed: Callable[[Batch], Tensor], side: Data, atom_sizes: Sequence[int]) -> Tensor:
    molecules, owner = separate_molecules(side, atom_sizes)
    each = embed(molecules)
    return each.new_zeros(side.num_graphs, each.shape[1]).index_add_(0, owner, each)


def separate_molecules(side: Data, atom_sizes: Sequence[int]) -> tuple[Batch, Tensor]:
    """Divide one side of reactions by `split_sides` into its molecules, with hydrogens as a count of their neighbours;
    return them and the reaction of each, int64 `[molecules]`.
    """
    x, (sender, receiver) = side.x.clone(), side.edge_index
    element = x[:, ATOM_INDEX["element"]]
    plain = (element == atom_code("element", 1)) & (x[:, ATOM_INDEX["isotope"]] == atom_code("isotope", False))
    bonds = torch.zeros_like(element).index_add_(0, receiver, torch.ones_like(receiver))
    heavy = torch.zeros_like(element).index_add_(0, receiver, (~plain[sender]).long())
    counted = plain & (bonds == 1) & (heavy == 1)
    number = torch.zeros_like(element).index_add_(0, receiver, counted[sender].long())
    more = (x[:, HYDROGENS] > 0) & (number > 0)
    total = x[:, HYDROGENS] + number
    x[:, HYDROGENS] = torch.where(more, torch.where(total > atom_code("hydrogens", 4), 0, total), x[:, HYDROGENS])
    x[:, DEGREE] -= number
    kept = (x[:, DEGREE] != atom_sizes[DEGREE] - 2) & ~counted
    bond = kept[sender] & kept[receiver]
    place = kept.cumsum(0) - 1
    edges = place[side.edge_index[:, bond]]
    count, ends = int(kept.sum()), edges.cpu().numpy()
    _, label = connected_components(coo_array((ends[0] >= 0, (ends[0], ends[1])), shape=(count, count)), directed=False)
    molecule = torch.from_numpy(label).to(x.device, torch.long)
    order = molecule.argsort(stable=True)
    new = torch.empty_like(order).scatter_(0, order, torch.arange(count, device=x.device))
    sizes = torch.bincount(molecule)
    contents = {
        "x": x[kept][order],
        "edge_index": new[edges],
        "edge_attr": side.edge_attr[bond],
        "batch": molecule[order],
        "ptr": offsets(sizes),
    }
    owner = side.batch[kept][order][contents["ptr"][:-1]]
    return Batch(_base_cls=Data, **contents), owner
