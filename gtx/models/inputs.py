"""Checks that a batch has the columns and codes that a model reads; batches of other libraries have other codes."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch_geometric.data import Batch

from gtx.errors import InputError
from gtx.nn import Vocabulary

MADE_BY = "as gtx.molecules.Featuriser makes them; gtx.data.from_pyg translates data of PyG that have a SMILES"


def check_batch(
    batch: Batch, atom_sizes: Sequence[int], bond_sizes: Sequence[int], bonds: bool, descriptors: int
) -> None:
    """Raise an `InputError` that names the attribute and the column if a batch does not suit a model.

    Codes are compared with their sizes on a CPU alone: on a GPU the answer would have to be waited for.

    Args:
        batch: the molecules.
        atom_sizes, bond_sizes: how many codes each column has.
        bonds: whether the model needs the bonds' codes.
        descriptors: how many global features the model reads.
    """
    if getattr(batch, "batch", None) is None:
        raise InputError(
            f"expected a batch of molecules, got a {type(batch).__name__} without an attribute batch; "
            "torch_geometric.data.Batch.from_data_list makes one out of several Data"
        )
    _check_codes("x", "atom", batch.x, atom_sizes)
    if bonds or getattr(batch, "edge_attr", None) is not None:
        _check_codes("edge_attr", "directed bond", getattr(batch, "edge_attr", None), bond_sizes)
    if descriptors:
        u = getattr(batch, "u", None)
        if u is None or u.dim() != 2 or u.shape[1] != descriptors:
            raise InputError(
                f"batch.u: expected {descriptors} descriptors for each molecule, [B, {descriptors}], {MADE_BY}; "
                f"got {_shown(u)}"
            )


def unseen_codes(batch: Batch, atoms: Vocabulary, bonds: Vocabulary) -> list[list[tuple[str, int, int]]]:
    """Per molecule of a batch, the codes that vocabularies do not know: ("atom" or "bond", column, code)."""
    found: list[set] = [set() for _ in range(batch.num_graphs)]
    kinds = (
        ("atom", atoms, batch.x, batch.batch),
        ("bond", bonds, batch.edge_attr, batch.batch[batch.edge_index[0]]),
    )
    for kind, vocabulary, codes, graph in kinds:
        at, column = vocabulary.unseen(codes).nonzero(as_tuple=True)
        for g, c, code in zip(graph[at].tolist(), column.tolist(), codes[at, column].tolist(), strict=True):
            found[g].add((kind, c, code))
    return [sorted(entry) for entry in found]


def _check_codes(name: str, of: str, codes: Tensor | None, sizes: Sequence[int]) -> None:
    if codes is None or codes.dim() != 2 or codes.shape[1] != len(sizes) or codes.is_floating_point():
        raise InputError(
            f"batch.{name}: expected {len(sizes)} codes for each {of}, integers [n, {len(sizes)}], {MADE_BY}; "
            f"got {_shown(codes)}"
        )
    if codes.device.type != "cpu" or torch.compiler.is_compiling():
        return
    wrong = (codes < 0) | (codes >= codes.new_tensor(sizes))
    if wrong.any():
        row, column = wrong.nonzero()[0].tolist()
        raise InputError(
            f"batch.{name}: expected codes from 0 to {sizes[column] - 1} in column {column}, {MADE_BY}; "
            f"got {int(codes[row, column])} in row {row}"
        )


def _shown(tensor: Tensor | None) -> str:
    return "none" if tensor is None else f"{tensor.dtype} {list(tensor.shape)}"
