"""Checks of the arguments of a `GraphTransformer` and of the batches that it reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from inspect import Parameter
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Batch

from gtx.attention import Normaliser, Score
from gtx.base.errors import InputError
from gtx.models.embedding import Vocabularies
from gtx.nn import SubstructureCountEmbedding

PER = ("molecule", "atom", "bond")
OF_LAYERS = ("score", "normaliser", "edge_value")
"""Arguments that a custom `layer` replaces."""

MOST_LAYERS = 1000
"""More would take minutes to make, and nobody has trained so many."""


def check_arguments(given: Mapping[str, Any], usual: Mapping[str, Parameter]) -> None:
    """Raise a `ValueError` that names an argument at fault.

    Args:
        given: the arguments by name.
        usual: the parameters, with their defaults.
    """
    for name in ("out_channels", "channels", "layers", "pair_channels"):
        if given[name] is not None and given[name] < 1:
            raise ValueError(f"expected {name} of at least 1, got {given[name]}")
    if given["layers"] > MOST_LAYERS:
        raise ValueError(f"expected layers of at most {MOST_LAYERS:,}, got {given['layers']}")
    ignored = [name for name in OF_LAYERS if given[name] != usual[name].default]
    if ignored and given["layer"] is not None:
        raise ValueError(f"layer makes the layers and decides {', '.join(ignored)} itself: leave them out")
    for name, kind in (("score", Score), ("normaliser", Normaliser), ("substructures", SubstructureCountEmbedding)):
        if given[name] is not None and not isinstance(given[name], kind):
            home = kind.__module__.rpartition(".")[0]
            raise ValueError(f"expected a {kind.__name__} of {home}, a module, got {given[name]!r}")
    for name in ("edges", "layer"):
        if given[name] is not None and not callable(given[name]):
            raise ValueError(f"expected {name} that can be called, got {given[name]!r}")
    per, virtual_nodes, readout = given["per"], given["virtual_nodes"], given["readout"]
    if per not in PER:
        raise ValueError(f'expected per of "molecule", "atom" or "bond", got {per!r}')
    if unknown := set(given["also"] or {}) - ({"atom", "bond"} - {per}):
        raise ValueError(f'expected also of "atom" and "bond" beside per {per!r}, got {sorted(unknown)}')
    for kind, outputs in (given["also"] or {}).items():
        if isinstance(outputs, bool) or not isinstance(outputs, int) or outputs < 1:
            raise ValueError(f"expected a whole number of 1 or more outputs of each {kind}, got {outputs!r}")
    if virtual_nodes < 0 or (not virtual_nodes and not readout):
        raise ValueError(f"expected a readout or virtual nodes, got {list(readout)} and {virtual_nodes} of them")


MADE_BY = "as gtx.molecules.Featuriser makes them; gtx.data.from_pyg translates data of PyG that have a SMILES"


def check_batch(batch: Batch, vocabularies: Vocabularies, bonds: bool, descriptors: int) -> None:
    """Raise an `InputError` that names the attribute and the column if a batch does not suit a model.

    Codes are compared with their sizes on a CPU alone: on a GPU the answer would have to be waited for.

    Args:
        batch: the molecules.
        vocabularies: codes of atoms and bonds that the model knows.
        bonds: whether the model needs the bonds' codes.
        descriptors: how many global features the model reads.
    """
    if getattr(batch, "batch", None) is None:
        raise InputError(
            f"expected a batch of molecules, got a {type(batch).__name__} without an attribute batch; "
            "torch_geometric.data.Batch.from_data_list makes one out of several Data"
        )
    _check_codes("x", "atom", batch.x, vocabularies.atoms.sizes)
    if bonds or getattr(batch, "edge_attr", None) is not None:
        _check_codes("edge_attr", "directed bond", getattr(batch, "edge_attr", None), vocabularies.bonds.sizes)
    if descriptors:
        u = getattr(batch, "u", None)
        if u is None or u.dim() != 2 or u.shape[1] != descriptors:
            raise InputError(
                f"batch.u: expected {descriptors} descriptors for each molecule, [B, {descriptors}], {MADE_BY}; "
                f"got {_shown(u)}"
            )


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
