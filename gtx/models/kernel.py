"""Ridge regression with a kernel as one of gtx's models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gtx.kernel import KernelRidge
from gtx.nn.features import FARTHEST
from gtx.schema import Record, text, whole


def kernel(
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
) -> KernelRidge:
    """Make a ridge regression with a kernel of circular substructures, descriptors and embeddings, solved in closed
    form.

    By default leaving out training rows decides between two ways to count: substructures of elements and bond types
    within 2 bonds; or within 3 bonds, and beside them atoms and their neighbours by all codes. They decide the shares
    of descriptors and embeddings too.

    Args:
        out_channels: predictions per molecule.
        atom_sizes: codes per atom column, to check `labels`; the first is the element.
        bond_sizes: codes per bond column, the same; the first is the type.
        num_descriptors: 0, the default, is the Tanimoto kernel of substructures (Ralaivola et al. 2005).
        labels, rows, kinds, entries, foundation: see `gtx.kernel.KernelRidge`.

    Raises:
        ValueError: a column that there is not, or an argument of labels.
    """
    elements = {"atoms": [0], "bonds": [0]}
    labels = labels or [[{"radius": 2, **elements}], [{"radius": 3, **elements}, {"radius": 1}]]
    for one in (one for alternative in labels for one in alternative):
        if unknown := set(one) - {"radius", "atoms", "bonds"}:
            raise ValueError(f"labels: expected radius, atoms and bonds, got {sorted(unknown)}")
        if not 0 <= one["radius"] <= FARTHEST:
            raise ValueError(f"labels: expected a radius from 0 to {FARTHEST}, got {one['radius']}")
        for columns, sizes in (("atoms", atom_sizes), ("bonds", bond_sizes)):
            if sizes and (wrong := [i for i in one.get(columns) or () if not 0 <= i < len(sizes)]):
                raise ValueError(f"labels: expected {columns} columns from 0 to {len(sizes) - 1}, got {wrong}")
    if foundation is not None:
        Record({"sha256": text(), "width": whole(1)}).check(dict(foundation), "foundation")
    return KernelRidge(out_channels, labels, num_descriptors, rows, kinds, entries, foundation)
