"""The default models of gtx: a network, and a ridge regression with a kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, Literal

from gtx.base.schema import Text, check, entries, integer, list_of
from gtx.encodings import (
    BondFeatures,
    GaussianDistance,
    NeighbourDistancesAndAngles,
    NodeDegree,
    RandomWalkProbabilities,
    SameRing,
    ShortestPathLength,
    SimplePathCounts,
)
from gtx.encodings.sides import sizes_of_sides, usual_schemes
from gtx.kernel import KernelRidge
from gtx.models.assembly import check_argument_names, graph_transformer
from gtx.models.graph_transformer import GraphTransformer
from gtx.nn import SubstructureCountEmbedding
from gtx.nn.features import FARTHEST

EncodingName = Literal["bonds", "path", "walk", "degree", "ring", "simple_paths"]

_COLUMNS = list_of(integer()) | None
LABELS = list_of(
    list_of(
        entries(
            {"radius": integer(0, FARTHEST)},
            {"atoms": _COLUMNS, "bonds": _COLUMNS, "sides": list_of(list_of(integer()))},
        )
    )
)
"""Kind of the labels of a kernel: for each choice its schemes, arguments of `hash_atom_environments` by name."""

FOUNDATION = entries({"sha256": Text, "width": integer(1)})
"""Kind of the specification of a foundation."""


def standard(
    out_channels: int,
    *,
    atom_sizes: Sequence[int],
    bond_sizes: Sequence[int],
    channels: int = 64,
    num_descriptors: int = 0,
    coordinates: bool = False,
    encodings: Sequence[EncodingName] = ("bonds", "path", "walk", "degree"),
    substructures: Mapping[str, Any] | None = None,
    foundation: Mapping[str, Any] | None = None,
    steps: int = 16,
    farthest: int = 20,
    cutoff: float = 10.0,
    moments: int = 0,
    **arguments: Any,
) -> GraphTransformer:
    """Make the default model: attention over all pairs of atoms, and message passing over bonds.

    The encodings of the model are bonds, path lengths, random walks and degrees.

    Args:
        out_channels: number of predictions per molecule.
        atom_sizes: number of codes of each atom column.
        bond_sizes: number of codes of each bond column.
        channels: width of the nodes.
        num_descriptors: number of descriptors per molecule.
        coordinates: whether distances in space are encoded; the batch must then have `pos`.
        encodings: names of the encodings of the graph; "ring" (`gtx.encodings.SameRing`) is for atoms whose codes
            contain no information on rings; "simple_paths" (`gtx.encodings.SimplePathCounts`) counts paths of up to 8
            bonds.
        substructures: arguments of `gtx.nn.SubstructureCountEmbedding` by name, such as the columns `atoms` and
            `bonds`; the embedding is concatenated to the readout. None for no counts of substructures, {} for the
            default arguments.
        foundation: pretrained network whose embedding of the molecule is concatenated to the readout, see
            `graph_transformer`; default: none.
        steps: number of steps of the random walks.
        farthest: longest path distance with a separate code, in bonds.
        cutoff: cutoff of the distance encoding, in Å.
        moments: number of channels of `gtx.encodings.NeighbourDistancesAndAngles`, for targets that depend on the
            geometry; 0 for none.
        arguments: further arguments of `graph_transformer`, by name.

    Raises:
        ValueError: the name of an encoding is unknown, or moments are requested without coordinates.
    """
    check_argument_names(standard, arguments)
    makers = {
        "bonds": lambda: BondFeatures(bond_sizes),
        "path": lambda: ShortestPathLength(farthest),
        "walk": lambda: RandomWalkProbabilities(steps),
        "degree": NodeDegree,
        "ring": SameRing,
        "simple_paths": SimplePathCounts,
    }
    if unknown := set(encodings) - set(makers):
        raise ValueError(f"expected encodings out of {', '.join(makers)}, got {sorted(unknown)}")
    chosen = [makers[name]() for name in encodings]
    if coordinates:
        chosen.append(GaussianDistance(cutoff=cutoff))
    if moments:
        if not coordinates:
            raise ValueError(f"moments of the surroundings need coordinates, got moments={moments} without")
        chosen.append(
            NeighbourDistancesAndAngles(GaussianDistance(64, pair_types=atom_sizes[0]), atom_sizes[0], moments)
        )
    counted = None
    if substructures is not None:
        _check_columns("substructures", substructures, atom_sizes, bond_sizes)
        counted = SubstructureCountEmbedding(channels, **substructures)
    if foundation is not None:
        check(dict(foundation), FOUNDATION, "foundation")
    return graph_transformer(
        out_channels,
        atom_sizes,
        bond_sizes,
        num_descriptors,
        chosen,
        channels,
        substructures=counted,
        foundation=foundation,
        **arguments,
    )


def kernel_ridge(
    out_channels: int,
    *,
    atom_sizes: Sequence[int] | None = None,
    bond_sizes: Sequence[int] | None = None,
    num_descriptors: int = 0,
    labels: Sequence[Sequence[Mapping[str, Any]]] | None = None,
    rows: int = 0,
    kinds: int = 0,
    entries: int = 0,
    foundation: Mapping[str, Any] | None = None,
    reaction: bool = False,
) -> KernelRidge:
    """Make the kernel model: kernel ridge regression on circular substructures, descriptors and embeddings.

    By default, the leave-one-out error on training rows chooses between two kinds of substructures: elements and bond
    types within 2 bonds; or within 3 bonds, and also atoms and their neighbours with all codes. The leave-one-out error
    also chooses the weights of descriptors and embeddings.

    Args:
        out_channels: number of predictions per molecule.
        atom_sizes: codes per atom column, to check `labels`; the first is the element.
        bond_sizes: number of codes of each bond column, to check `labels`; the first column is the bond type.
        num_descriptors: number of descriptors; with 0, the default, the kernel is the Tanimoto kernel of substructures
            (Ralaivola et al. 2005).
        labels, rows, kinds, entries, foundation: see `gtx.kernel.KernelRidge`.
        reaction: whether atoms and bonds have codes of both sides of a reaction; substructures that the reaction
            destroys or forms are then counted too.

    Raises:
        ValueError: `labels` lacks a radius, or has an unknown column or argument; `foundation` reads other codes.
    """
    sides = sizes_of_sides(atom_sizes, bond_sizes, reaction)
    labels = labels or usual_schemes(sides)
    check(labels, LABELS, "labels")
    for one in chain.from_iterable(labels):
        if unknown := set(one) - {"radius", "atoms", "bonds", "sides"}:
            raise ValueError(f"labels: expected radius, atoms and bonds, got {sorted(unknown)}")
        _check_columns("labels", one, atom_sizes, bond_sizes)
    if foundation is not None:
        check(dict(foundation), FOUNDATION, "foundation")
        if foundation.get("sides") != sides:
            raise ValueError(f"foundation: expected sides {sides}, got {foundation.get('sides')}")
    return KernelRidge(out_channels, labels, num_descriptors, rows, kinds, entries, foundation)


def _check_columns(
    entry: str, labels: Mapping[str, Any], atom_sizes: Sequence[int] | None, bond_sizes: Sequence[int] | None
) -> None:
    """Raise a `ValueError` if labels of substructures are of columns that are not there; None for unknown columns."""
    for columns, sizes in (("atoms", atom_sizes), ("bonds", bond_sizes)):
        if sizes and (wrong := [i for i in labels.get(columns) or () if not 0 <= i < len(sizes)]):
            raise ValueError(f"{entry}: expected {columns} columns from 0 to {len(sizes) - 1}, got {wrong}")
